//! What is measured, a file for each kind of work.

mod catalog;
mod charts;
mod get_git;
mod hard;
mod install;
mod latency;
mod load;
mod operators;
mod publish;
mod resolve;
mod start;
mod strategies;

use crate::data::Data;

/// A kind of work, and what measures it.
type Row = (&'static str, fn(&Data));

/// All kinds of work.
pub(crate) const ALL: [Row; 12] = [
    ("start", start::measure),
    ("resolve", resolve::measure),
    ("strategies", strategies::measure),
    ("hard", hard::measure),
    ("latency", latency::measure),
    ("install", install::measure),
    ("git", get_git::measure),
    ("load", load::measure),
    ("publish", publish::measure),
    ("catalog", catalog::measure),
    ("charts", charts::measure),
    ("operators", operators::measure),
];
