//! A program of one thread, as `mu` is when it starts: looks at its own memory.

use std::path::Path;

fn main() {
    mu_heap::prepare();
    let numbers: Vec<Box<u64>> = (0..500_000).map(Box::new).collect();
    assert!(numbers.iter().map(|number| **number).eq(0..500_000));
    if cfg!(all(target_os = "linux", target_env = "gnu")) {
        #[expect(clippy::disallowed_methods, reason = "the file is the system's")]
        let maps = std::fs::read_to_string("/proc/self/smaps").expect("the system has it");
        let heap = |address: &u64| {
            let at = std::ptr::from_ref(address).addr();
            // A part of the memory is a line with its addresses, and lines about it; the last one has its flags (`hg`: large pages).
            let parts = maps.split_inclusive("VmFlags:").zip(maps.split("VmFlags:").skip(1));
            let mut flags = parts.filter_map(|(part, after)| {
                let range = part.lines().find(|line| line.contains("p ") && line.contains('-'))?;
                let (begin, rest) = range.split_once('-')?;
                let end = rest.split(' ').next()?;
                let range =
                    usize::from_str_radix(begin, 16).ok()?..usize::from_str_radix(end, 16).ok()?;
                range.contains(&at).then(|| after.lines().next().unwrap_or_default())
            });
            flags.next().expect("it is somewhere").to_owned()
        };
        let has_large_pages = Path::new("/sys/kernel/mm/transparent_hugepage").exists();
        for address in [&*numbers[250_000], &*numbers[499_999]] {
            assert!(!has_large_pages || heap(address).contains(" hg"), "{}", heap(address));
        }
    }
}
