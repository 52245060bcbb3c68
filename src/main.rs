//! The `mu` program: arguments in, exit status out. The library does everything else.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(mu::cli::run(std::env::args_os()))
}
