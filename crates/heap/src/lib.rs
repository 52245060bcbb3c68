//! Asks the system for the memory of a run in large pages. A run that chooses versions uses some ten megabytes once, and ends: handing them out
//! in pages of 4 KiB takes a fifth of its time on virtual machines, where each page that is touched for the first time costs a
//! microsecond. With pages of 2 MiB it takes next to nothing.
//!
//! This is the one crate that calls C without a safe interface, because none has these two calls. It changes how memory is
//! handed out, and never what is in it. With other C libraries, and on other systems, it does nothing.

/// Prepares the heap of this process, which has one thread so far and is going to end soon: its first 32 MiB are asked for at once, in large
/// pages if the system has any. Memory that nobody uses is not taken. Other threads have heaps of their own, as before; with one for
/// all, they wait for each other.
///
/// What the system refuses stays as it was, and only takes longer.
pub fn prepare() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    large_pages::prepare();
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod large_pages {
    use std::hint::black_box;

    /// How much of the heap is asked for at once, in bytes. What a run needs above that comes in small pages.
    const AT_ONCE: usize = 32 << 20;

    /// The size of a large page, in bytes.
    const LARGE: usize = 2 << 20;

    /// Less than the C library takes from outside its heap (128 KiB), and more than half of what it has at the start (132 KiB).
    const PROBE: usize = 100 << 10;

    pub(super) fn prepare() {
        let at_once = libc::c_int::try_from(AT_ONCE).expect("is small");
        // SAFETY: `mallopt` changes how the allocator asks the system for memory, and takes any value. There is no other thread that could allocate.
        unsafe {
            libc::mallopt(libc::M_TOP_PAD, at_once);
        }
        // The heap grows by `AT_ONCE` when it does not have room for both.
        let probes: [Vec<u8>; 2] = [Vec::with_capacity(PROBE), Vec::with_capacity(PROBE)];
        drop(black_box(probes));
        // SAFETY: with 0, `sbrk` moves nothing, and says where the heap ends.
        let end = unsafe { libc::sbrk(0) };
        let begin = (end.addr().saturating_sub(AT_ONCE)).next_multiple_of(LARGE);
        let Some(length) = end.addr().checked_sub(begin) else { return };
        // SAFETY: this is advice on the size of pages, for memory in which nothing changes by it. Where the heap has not grown, these
        // addresses are not in use, and the system says so.
        unsafe {
            libc::madvise(end.with_addr(begin), length, libc::MADV_HUGEPAGE);
        }
    }
}
