//! What selection promises, shown on small worlds: scenarios as data, random worlds against brute force, hard ones counted.

mod ahead;
mod format;
mod hard;
mod minimal;
mod moves;
mod random;
mod random_replaces;
mod random_virtual;
mod scenarios;
mod stopped;
mod ways_out;
mod world;

use crate::select::{Change, Failure, Minimal, Move, Request, Strategy as _};

/// What the minimal strategy makes of a move.
fn moved(memory: &world::Memory, request: &Request, to: Move<'_>) -> Result<Change, Failure> {
    Ok(Minimal.plan(memory, request, to)?.expect("its state is the requirements"))
}
