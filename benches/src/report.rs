//! Prints what was measured, as the tables of `docs/performance.md`.

use std::cell::RefCell;

use crate::measure::{Calls, Result};

/// The rows of the table of results, in the order in which they were measured.
#[derive(Default)]
pub(crate) struct Standing(RefCell<Vec<String>>);

/// The limit of a ratio or a figure, and its aim.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) must: Option<f64>,
    pub(crate) aim: Option<f64>,
}

/// Both bounds.
pub(crate) fn bounds(must: f64, aim: f64) -> Bounds {
    Bounds { must: Some(must), aim: Some(aim) }
}

/// For what has none.
pub(crate) const UNBOUNDED: Bounds = Bounds { must: None, aim: None };

impl Standing {
    /// Adds the first of `results`, compared with the one named `against`; nothing if that was not measured.
    pub(crate) fn ratio(&self, work: &str, results: &[Result], against: &str, bounds: Bounds) {
        let (Some(mu), Some(peer)) =
            (results.first(), results.iter().find(|result| result.name == against))
        else {
            let row = format!("| {work} | | {against}: not measured | | | | | |");
            return self.0.borrow_mut().push(row);
        };
        let ratio = mu.median() / peer.median();
        self.0.borrow_mut().push(format!(
            "| {work} | {:.1} | {against} {:.1} | {} | {:.2} | {} | {} | {} |",
            mu.median(),
            peer.median(),
            judged(ratio, bounds),
            mu.processor() / peer.processor().max(0.1),
            shown(bounds.must),
            shown(bounds.aim),
            verdict(ratio, bounds),
        ));
    }

    /// Adds a figure, such as `38 MiB`.
    pub(crate) fn figure(&self, work: &str, figure: Option<f64>, unit: &str, bounds: Bounds) {
        let Some(figure) = figure else {
            return self.0.borrow_mut().push(format!("| {work} | not measured | | | | | | |"));
        };
        self.0.borrow_mut().push(format!(
            "| {work} | {} {unit} | | | | {} | {} | {} |",
            judged(figure, bounds),
            shown(bounds.must),
            shown(bounds.aim),
            verdict(figure, bounds),
        ));
    }

    /// Prints what was added since it was last printed.
    pub(crate) fn print(&self, group: &str) {
        let rows = std::mem::take(&mut *self.0.borrow_mut());
        println!("\n#### {group}: how mu stands\n");
        println!("| work | mu, ms | against, ms | ratio | of processor time | must | aim | |");
        println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |");
        for row in rows {
            println!("{row}");
        }
    }
}

/// A number as a table shows it, in bold if it misses its limit.
fn judged(number: f64, bounds: Bounds) -> String {
    let text = if number >= 100.0 { format!("{number:.0}") } else { format!("{number:.2}") };
    if bounds.must.is_some_and(|must| number > must) { format!("**{text}**") } else { text }
}

fn shown(bound: Option<f64>) -> String {
    bound.map_or_else(String::new, |bound| bound.to_string())
}

fn verdict(number: f64, bounds: Bounds) -> &'static str {
    match bounds {
        Bounds { must: Some(must), .. } if number > must => "MISSES must",
        Bounds { aim: Some(aim), .. } if number <= aim => "reaches aim",
        _ => "",
    }
}

/// Prints a row for each contestant; ratios are against the last one.
pub(crate) fn times(title: &str, results: &[Result]) {
    println!("\n#### {title}\n");
    println!("| | median ms | lowest | highest | ratio | processor ms | ratio |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: |");
    let work = results.last().map_or(1.0, Result::processor).max(0.1);
    let floor = results.last().map_or(1.0, Result::median);
    for result in results {
        println!(
            "| {} | {:.1} | {:.1} | {:.1} | {:.2} | {:.1} | {:.2} |",
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

/// Prints the system calls of a process.
pub(crate) fn calls(name: &str, calls: Option<&Calls>) {
    match calls {
        Some(calls) => println!(
            "- {name}: {} system calls, {} files opened, {} looked at, {} reads",
            calls.all, calls.opened, calls.looked_at, calls.reads
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
