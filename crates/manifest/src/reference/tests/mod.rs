//! Tests of references, ranges and versions as tables, and of what holds for any text.

mod properties;
mod ranges;
mod references;
mod rejected;
mod versions;
