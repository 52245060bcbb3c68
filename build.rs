//! Links the unoptimised programs, which the tests start ten thousand times, to one fixed address.
//!
//! A program for any address has 290,000 places that are written anew at each start, which takes longer than what most tests ask of it. What is
//! released is optimised, and stays loadable at any address, as hardening wants it: nothing is changed there.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name, value| env::var_os(name).is_some_and(|found| found == value);
    if is("PROFILE", "debug")
        && is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
    {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
