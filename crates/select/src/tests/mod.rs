//! The promises of selection on small worlds: scenarios as data, random worlds against brute force, and hard
//! ones with counts.

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

use proptest::prelude::ProptestConfig;

use crate::{Change, Failure, Minimal, Move, SelectionRequest, Strategy as _};

/// What a move does with the minimal strategy.
fn moved(
    memory: &world::Memory,
    request: &SelectionRequest,
    to: Move<'_>,
) -> Result<Change, Failure> {
    Ok(Minimal.plan(memory, request, to)?.expect("its state is the requirements"))
}

/// The number of random cases, multiplied by as much as `PROPTEST_CASES` exceeds proptest's own 256. Failures
/// are not stored in a file: each becomes a scenario.
fn many(cases: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let cases = (u64::from(cases) * u64::from(default.cases) / 256).max(1);
    ProptestConfig {
        cases: cases.try_into().expect("is a number of cases that ends"),
        failure_persistence: None,
        ..default
    }
}
