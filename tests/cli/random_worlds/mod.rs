//! Random sequences of commands in small random worlds of every provider, with both strategies.
//!
//! After each command that succeeds: `mu verify` is clean and `mu get --locked` passes, a second `mu get` changes nothing, a fresh
//! clone gets the same, and without the lock `mu get` works, too. A command that fails changes nothing, and none hangs.
//!
//! `MU_RANDOM_WORLDS=FIRST..LAST` runs the sequences of these seeds instead of the few of every day. Of each sequence that fails, the
//! seed is printed, and a script with all its commands is kept. `MU_TESTED_PROGRAM` is the path of another build of mu.

mod moves;
mod random;
mod story;
mod universe;
mod world;

use std::fs;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use self::universe::{Servers, Universe};
use self::world::{Format, World};

/// How many neighbouring seeds share what others have published.
const SHARE: u64 = 20;

/// How many things are done in one sequence.
const STEPS: usize = 8;

/// The seeds that the environment names, or those of every day and those that once `found` a fault.
fn seeds(every_day: u64, found: &[u64]) -> Vec<u64> {
    let Ok(text) = std::env::var("MU_RANDOM_WORLDS") else {
        return (0..every_day).chain(found.iter().copied()).collect();
    };
    let numbers: Option<Range<u64>> = text
        .split_once("..")
        .and_then(|(first, last)| Some(first.parse().ok()?..last.parse().ok()?));
    numbers.expect("MU_RANDOM_WORLDS is FIRST..LAST").collect()
}

/// Runs the sequences of a format.
fn check(format: Format, every_day: u64, found: &[u64]) {
    let seeds = seeds(every_day, found);
    let part = format!("{format:?}").to_lowercase();
    let scripts = Path::new(env!("CARGO_TARGET_TMPDIR")).join("random_worlds");
    fs::create_dir_all(&scripts).expect("can be made");
    let servers = Servers::start();
    let mut failed = Vec::new();
    let mut universe: Option<(u64, Universe)> = None;
    for &seed in &seeds {
        let number = seed / SHARE;
        let universe = match &universe {
            Some((other, universe)) if *other == number => universe,
            _ => {
                let new = Universe::new(&servers, number, format.places(), &part);
                &universe.insert((number, new)).1
            }
        };
        let mut world = World::new(universe, format, seed);
        let ended = catch_unwind(AssertUnwindSafe(|| {
            world.begin();
            (0..STEPS).for_each(|_| world.step());
        }));
        let Err(why) = ended else { continue };
        let why = why.downcast_ref::<String>().cloned().unwrap_or_default();
        world.story.note(&format!("\n{why}\n\n{}", universe.told()));
        let script = scripts.join(format!("{part}-{seed}.sh"));
        fs::write(&script, &world.story.script).expect("can be written");
        println!("{part}, seed {seed}: {}\n{why}\n", script.display());
        failed.push(seed);
    }
    let (count, first, last) = (seeds.len(), seeds.first(), seeds.last());
    println!("{count} sequences of {part}, seeds {first:?} to {last:?}, {STEPS} steps each");
    assert!(
        failed.is_empty(),
        "{} of {count} sequences of {part} have failed: seeds {failed:?}; their commands are in `{}`; run one again with MU_RANDOM_WORLDS=SEED..SEED+1",
        failed.len(),
        scripts.display()
    );
}

#[test]
fn in_manifests_of_mu() {
    // Packs that were recognized and not linked; a requirement that moved to a major that had joined; a version that only its own
    // dependencies required; another major than the manifest's, chosen for `mu add` without a version.
    check(Format::Mu, 8, &[400_315, 501_582, 700_871, 801_992]);
}

#[test]
fn in_charts() {
    // Git had left a package in two versions in the lock, without a conflict; without the lock, no versions fit together.
    check(Format::Chart, 3, &[602_018, 701_748]);
}

#[test]
fn in_modules() {
    // What `mu remove` had cleared, the next `mu get` said again.
    check(Format::Kcl, 3, &[501_551]);
}

#[test]
fn in_packages_of_crossplane() {
    check(Format::Crossplane, 3, &[600_353]);
}
