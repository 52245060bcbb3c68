//! Dependency graphs as pictures: boxes, and arrows from each to what it needs.
//!
//! The command line draws what a workspace has, a hub's server what is around a package. Here is only how it is drawn:
//! `layout/` says where everything goes, `svg.rs` writes it. Texts are drawn as they are; foreign ones have to be made
//! safe and short before.

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
    /// Whether it is what the picture is about.
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

/// What is to be drawn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Picture {
    /// Its description, for readers who cannot see it.
    pub title: String,
    /// The same in sentences.
    pub description: String,
    /// The boxes; the first come first where nothing else decides.
    pub nodes: Vec<Node>,
    /// The arrows; at most one between the same two boxes in the same direction.
    pub edges: Vec<Edge>,
}

/// Where the colours come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// They are in the picture, for light and dark.
    Own,
    /// The page around it has them, for the same classes.
    OfPage,
}
