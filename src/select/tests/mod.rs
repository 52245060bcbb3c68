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
