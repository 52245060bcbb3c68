//! The `mu` program: arguments in, exit status out. The library does everything else.

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(debug_assertions)]
    if let Some(number) =
        std::env::var("MU_TEST_END_AT_CHANGE").ok().and_then(|text| text.parse().ok())
    {
        mu::fs::end_at_change(number);
    }
    ExitCode::from(mu::cli::run(std::env::args_os()))
}
