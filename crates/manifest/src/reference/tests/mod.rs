//! Tests of references, ranges and versions as tables, and properties of any text.

mod properties;
mod ranges;
mod references;
mod rejected;
mod versions;
