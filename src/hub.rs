//! The `mu-hub` program: `mu` with the server of hubs. It takes the same arguments, and `mu hub serve` runs it.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(mu::cli::run_with_server(std::env::args_os(), mu_hub_server::serve))
}
