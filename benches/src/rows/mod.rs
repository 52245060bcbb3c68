//! What is measured, a file for each kind of work.

mod get_git;
mod install;
mod resolve;
mod start;

use crate::data::Data;

/// A kind of work, and what measures it.
type Row = (&'static str, fn(&Data));

/// All kinds of work.
pub(crate) const ALL: [Row; 4] = [
    ("start", start::measure),
    ("resolve", resolve::measure),
    ("install", install::measure),
    ("git", get_git::measure),
];
