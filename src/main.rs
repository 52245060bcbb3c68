//! The `mu` program: arguments in, exit status out. The library does everything else.

use std::process::ExitCode;

/// With musl's own allocator, threads wait for each other.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    // Work on a hub takes memory and gives it back, again and again: in large pages that are kept, it would take half as much again.
    if !std::env::args_os().any(|argument| argument == "hub") {
        mu_heap::prepare();
    }
    ExitCode::from(mu::cli::run(std::env::args_os()))
}
