//! What selection promises, shown on small worlds: scenarios as data, random worlds against brute force, hard ones counted.

mod format;
mod random;
mod scenarios;
mod world;
