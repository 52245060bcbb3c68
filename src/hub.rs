//! The `mu-hub` program: `mu` with the server of hubs. It takes the same arguments, and `mu hub serve` runs it.

use std::process::ExitCode;

/// With musl's own allocator, threads wait for each other.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    ExitCode::from(mu::cli::run_with_server(std::env::args_os(), mu_hub_server::serve))
}
