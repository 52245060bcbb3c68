//! Dependency graphs as pictures: boxes, and arrows from each box to what it needs.
//!
//! The command line draws the packages of a workspace, and a hub's server draws those around a package. This
//! crate only draws: `layout/` places everything, and `svg.rs` writes it. It draws texts as they are; callers
//! have to make foreign texts safe and short.

mod layout;
mod svg;

pub use self::svg::{pieces, svg};

/// A box.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// The first line.
    pub name: String,
    /// The second line.
    pub version: Option<String>,
    /// Whether the picture is about this package.
    pub is_own: bool,
}

/// An arrow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edge {
    /// The box that it leads from, by its place.
    pub from: usize,
    /// The box that it leads to.
    pub to: usize,
    /// What is written on it.
    pub label: String,
}

/// The picture to draw.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Picture {
    /// Its description, for readers who cannot see it.
    pub title: String,
    /// Its description in sentences, for readers who cannot see it.
    pub description: String,
    /// The boxes; earlier ones come first if nothing else decides.
    pub nodes: Vec<Node>,
    /// The arrows; at most one between the same two boxes in the same direction.
    pub edges: Vec<Edge>,
}

/// Where the colours come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// The picture has its own colours, for light and dark.
    Own,
    /// The page around the picture defines the colours, for the same classes.
    OfPage,
}
