//! Prints what was measured, as the tables of `docs/performance.md`.

use crate::measure::{Calls, Result};

/// Prints a row for each contestant; ratios are against the last one.
pub(crate) fn times(title: &str, results: &[Result]) {
    println!("\n#### {title}\n");
    println!("| | median ms | lowest | highest | ratio | processor ms | ratio |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: |");
    let work = results.last().map_or(1.0, Result::processor).max(0.1);
    let floor = results.last().map_or(1.0, Result::median);
    for result in results {
        println!(
            "| {} | {:.1} | {:.1} | {:.1} | {:.2} | {:.0} | {:.2} |",
            result.name,
            result.median(),
            result.times.first().copied().unwrap_or_default(),
            result.times.last().copied().unwrap_or_default(),
            result.median() / floor,
            result.processor(),
            result.processor() / work,
        );
    }
    println!();
}

/// Prints what a process asked of the system.
pub(crate) fn calls(name: &str, calls: Option<&Calls>) {
    match calls {
        Some(calls) => println!(
            "- {name}: {} system calls, {} files opened, {} looked at",
            calls.all, calls.opened, calls.looked_at
        ),
        None => println!("- {name}: system calls not counted: strace is not installed"),
    }
}

/// Prints the most memory that a process had.
pub(crate) fn memory(name: &str, mebibytes: Option<f64>) {
    match mebibytes {
        Some(mebibytes) => println!("- {name}: at most {mebibytes:.0} MiB of memory"),
        None => println!("- {name}: memory not measured: /usr/bin/time is not installed"),
    }
}
