//! The `mu` program: arguments in, exit status out.

fn main() {}
