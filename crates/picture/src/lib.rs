//! Dependency graphs as pictures: boxes, and arrows from each box to what it needs.
//!
//! The command line draws the packages of a workspace, and a hub's server draws those around a package. This
//! crate only draws: `layout/` places everything, and this file writes it as a self-contained picture, readable in light and dark mode,
//! and by screen readers. It draws texts as they are; callers have to make foreign texts safe and short.

mod layout;

use unicode_width::UnicodeWidthStr as _;

use crate::layout::{Layout, Point, Size, Way, layout};

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

/// How wide a character of the names and versions is, in pixels.
const WIDE: f64 = 7.3;

/// How wide a character of the labels is, in pixels.
const NARROW: f64 = 6.7;

/// Space between a text and the side of its box.
const PADDING: f64 = 12.0;

/// How high a box with one line and with two lines is.
const HEIGHTS: [f64; 2] = [28.0, 44.0];

/// How high a label is.
const LABEL: f64 = 16.0;

const STYLE: &str = "\
.paper{fill:#fff}.box{fill:#f6f8fa;stroke:#6e7781}.own .box{fill:#ddf4ff;stroke:#0969da;stroke-width:1.5}\
text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#1f2328}.own .name{font-weight:bold}\
.version,.label{fill:#57606a}.label{font-size:11px;text-anchor:middle}\
.way{fill:none;stroke:#6e7781;stroke-width:1.2}.back .way{stroke-dasharray:5 3}.tip{fill:#6e7781}\
@media(prefers-color-scheme:dark){.paper{fill:#0d1117}.box{fill:#161b22;stroke:#8b949e}\
.own .box{fill:#0c2d6b;stroke:#58a6ff}text{fill:#e6edf3}.version,.label{fill:#a6b0ba}\
.way{stroke:#8b949e}.tip{fill:#8b949e}}";

/// How many boxes, labels and bends a picture has. Time, memory and the length of the text are about
/// proportional to this. It can be far more than the number of boxes and arrows, because an arrow bends
/// beside everything that it passes.
pub fn pieces(picture: &Picture) -> usize {
    let label = Size::default();
    let edges =
        picture.edges.iter().map(|edge| layout::Edge { from: edge.from, to: edge.to, label });
    layout::count_layout_pieces(picture.nodes.len(), &edges.collect::<Vec<_>>())
}

/// A picture as SVG.
pub fn svg(picture: &Picture, style: Style) -> String {
    let sizes: Vec<Size> = picture.nodes.iter().map(size_of).collect();
    let measured =
        |edge: &Edge| layout::Edge { from: edge.from, to: edge.to, label: label_size(&edge.label) };
    let edges: Vec<layout::Edge> = picture.edges.iter().map(measured).collect();
    let layout = layout(&sizes, &edges);
    let mut text = head(picture, &layout, style);
    for (edge, way) in picture.edges.iter().zip(&layout.ways) {
        text.push_str(&drawn(picture, edge, way, &layout, &sizes));
    }
    for (node, (place, size)) in picture.nodes.iter().zip(layout.nodes.iter().zip(&sizes)) {
        text.push_str(&boxed(node, *place, *size));
    }
    text.push_str("</svg>\n");
    text
}

fn size_of(node: &Node) -> Size {
    let longest = node.name.width().max(node.version.as_deref().unwrap_or_default().width());
    let height = HEIGHTS[usize::from(node.version.is_some())];
    Size { width: longest as f64 * WIDE + 2.0 * PADDING, height }
}

fn label_size(label: &str) -> Size {
    Size { width: label.width() as f64 * NARROW + PADDING, height: LABEL }
}

fn head(picture: &Picture, layout: &Layout, style: Style) -> String {
    let (width, height) =
        (layout.size.width.ceil().max(200.0), layout.size.height.ceil().max(40.0));
    let (title, description) = (escaped(&picture.title), escaped(&picture.description));
    let style = match style {
        Style::Own => format!("<style>{STYLE}</style>\n"),
        Style::OfPage => String::new(),
    };
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         role=\"img\" aria-labelledby=\"graph-title graph-description\">\n\
         <title id=\"graph-title\">{title}</title>\n\
         <desc id=\"graph-description\">{description}</desc>\n\
         {style}<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" \
         orient=\"auto\"><path class=\"tip\" d=\"M0 0L8 4L0 8z\"/></marker></defs>\n\
         <rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n"
    )
}

fn boxed(node: &Node, place: Point, size: Size) -> String {
    let Node { name, version, is_own } = node;
    let own = if *is_own { " own" } else { "" };
    let title = match version {
        Some(version) => format!("{name} {version}"),
        None => name.clone(),
    };
    let top = place.y - size.height / 2.0;
    let left = place.x + PADDING;
    let mut text = format!(
        "<g class=\"node{own}\"><title>{}</title><rect class=\"box\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" \
         rx=\"6\"/><text class=\"name\" x=\"{}\" y=\"{}\">{}</text>",
        escaped(&title),
        number(place.x),
        number(top),
        number(size.width),
        number(size.height),
        number(left),
        number(top + 18.0),
        escaped(name),
    );
    if let Some(version) = version {
        text.push_str(&format!(
            "<text class=\"version\" x=\"{}\" y=\"{}\">{}</text>",
            number(left),
            number(top + 34.0),
            escaped(version)
        ));
    }
    text.push_str("</g>\n");
    text
}

fn drawn(picture: &Picture, edge: &Edge, way: &Way, layout: &Layout, sizes: &[Size]) -> String {
    let (from, to) = (&picture.nodes[edge.from], &picture.nodes[edge.to]);
    let title = format!("{} needs {} {}", from.name, to.name, edge.label);
    let back = if way.is_back { " back" } else { "" };
    let (path, label) = if way.points.is_empty() {
        around(layout.nodes[edge.from], sizes[edge.from])
    } else {
        (path(&way.points), way.label)
    };
    let width = label_size(&edge.label).width - PADDING / 2.0;
    format!(
        "<g class=\"edge{back}\"><title>{}</title><path class=\"way\" d=\"{path}\" marker-end=\"url(#tip)\"/>\
         <rect class=\"paper\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{LABEL}\"/>\
         <text class=\"label\" x=\"{}\" y=\"{}\">{}</text></g>\n",
        escaped(&title),
        number(label.x - width / 2.0),
        number(label.y - LABEL / 2.0),
        number(width),
        number(label.x),
        number(label.y + 4.0),
        escaped(&edge.label)
    )
}

/// A line through the points: every second stretch is a bend, which begins and ends level.
fn path(points: &[Point]) -> String {
    let mut path = String::new();
    for (index, point) in points.iter().enumerate() {
        let (x, y) = (number(point.x), number(point.y));
        let Some(before) = index.checked_sub(1).map(|index| points[index]) else {
            path.push_str(&format!("M{x} {y}"));
            continue;
        };
        if before.y == point.y {
            path.push_str(&format!("L{x} {y}"));
        } else {
            let middle = number((before.x + point.x) / 2.0);
            path.push_str(&format!("C{middle} {} {middle} {y} {x} {y}", number(before.y)));
        }
    }
    path
}

/// A loop above a node that needs itself, and where its label goes.
fn around(node: Point, size: Size) -> (String, Point) {
    let (left, top) = (node.x + 14.0, node.y - size.height / 2.0);
    let (x, right) = (number(left), number(left + 24.0));
    let (y, above) = (number(top), number(top - 18.0));
    let path = format!("M{right} {y}C{right} {above} {x} {above} {x} {y}");
    (path, Point { x: left + 12.0, y: top - 10.0 })
}

/// A number with one digit behind the point at most.
fn number(value: f64) -> String {
    let rounded = (value * 10.0).round() / 10.0;
    // Adding 0.0 turns -0 into 0.
    format!("{}", rounded + 0.0)
}

/// The text of an element, with the characters that XML would interpret written as entities.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // XML does not allow these characters.
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}
