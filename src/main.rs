//! The `mu` program: arguments in, exit status out. Everything else is the library's.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(mu::cli::run(std::env::args_os()))
}
