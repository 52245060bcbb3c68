//! The picture of a package's neighbours: the packages that depend on it, and its dependencies.
//!
//! The lists beside it contain the same for people who cannot see it, and have links to the packages.

use mu_manifest::reference::{Version, VersionSpec};
use mu_picture::{Edge, Node, Picture, Style};

use super::about::Related;
use mu_hub::names::printable;

/// How many packages are drawn on each side.
const EACH_SIDE: usize = 10;

/// How many characters of a long name are drawn, before and after the gap.
const KEPT: [usize; 2] = [14, 18];

/// Draws a package; `None` if it has no neighbours. `all` is the number of dependents.
pub(super) fn picture(
    (name, version): (&str, &str),
    dependencies: &[Related],
    dependents: &[Related],
    all: usize,
) -> Option<String> {
    if dependencies.is_empty() && dependents.is_empty() {
        return None;
    }
    let mut drawing = Drawing::default();
    let shown = Some(printable(version));
    drawing.nodes.push(Node { name: short(name), version: shown, is_own: true });
    drawing.keys.push(name.to_owned());
    for related in dependents.iter().take(EACH_SIDE) {
        let from = drawing.node(related);
        drawing.edges.push(Edge { from, to: 0, label: label_to(related, version) });
    }
    for related in dependencies.iter().take(EACH_SIDE) {
        let to = drawing.node(related);
        // A package can be named twice.
        if !drawing.edges.iter().any(|edge| edge.from == 0 && edge.to == to) {
            drawing.edges.push(Edge { from: 0, to, label: label(related) });
        }
    }
    for (more, is_before) in [
        (all - dependents.len().min(EACH_SIDE), true),
        (dependencies.len() - dependencies.len().min(EACH_SIDE), false),
    ] {
        if more > 0 {
            let other = drawing.nodes.len();
            let name = format!("and {more} more");
            drawing.nodes.push(Node { name, ..Node::default() });
            let (from, to) = if is_before { (other, 0) } else { (0, other) };
            drawing.edges.push(Edge { from, to, label: String::new() });
        }
    }
    let count = |count: usize, one: &str, many: &str| match count {
        1 => format!("one {one}"),
        count => format!("{count} {many}"),
    };
    let picture = Picture {
        title: format!("What is around {}", printable(name)),
        description: format!(
            "{} needs {}, and {} it. The lists of dependencies and dependents on this page name them.",
            printable(name),
            count(dependencies.len(), "package", "packages"),
            count(all, "package needs", "packages need"),
        ),
        nodes: drawing.nodes,
        edges: drawing.edges,
    };
    Some(mu_picture::svg(&picture, Style::OfPage))
}

/// What has been drawn so far.
#[derive(Default)]
struct Drawing {
    nodes: Vec<Node>,
    /// A key that identifies each node.
    keys: Vec<String>,
    edges: Vec<Edge>,
}

impl Drawing {
    /// The index of a package's node, which is added if it is missing.
    fn node(&mut self, related: &Related) -> usize {
        if let Some(known) = self.keys.iter().position(|key| *key == related.key) {
            return known;
        }
        self.keys.push(related.key.clone());
        self.nodes.push(Node { name: short(&related.text), ..Node::default() });
        self.nodes.len() - 1
    }
}

/// A name that is short enough for the picture, and safe to show.
fn short(name: &str) -> String {
    let name = printable(name);
    let characters: Vec<char> = name.chars().collect();
    let [before, behind] = KEPT;
    if characters.len() <= before + behind + 1 {
        return name;
    }
    let (begin, end) = (&characters[..before], &characters[characters.len() - behind..]);
    begin.iter().chain(&['…']).chain(end).collect()
}

fn label(related: &Related) -> String {
    related.asked.first().map(|asked| printable(asked)).unwrap_or_default()
}

/// What a dependent requires, and that it is not the version in the box, if it is not.
fn label_to(related: &Related, version: &str) -> String {
    let asked = related.asked.first().map(String::as_str).unwrap_or_default();
    let spec = VersionSpec::parse(asked).ok();
    let number =
        Version::parse_composite(version).or_else(|_| Version::parse_lenient(version)).ok();
    let is_other = spec.zip(number).is_some_and(|(spec, number)| {
        matches!(spec, VersionSpec::Range(_) | VersionSpec::Pin(_)) && !spec.accepts(&number, true)
    });
    let label = label(related);
    if is_other { format!("{label}, not {}", printable(version)) } else { label }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn related(text: &str) -> Related {
        Related {
            key: text.to_owned(),
            text: text.to_owned(),
            page: None,
            asked: vec!["^1".to_owned()],
        }
    }

    fn many(count: usize) -> Vec<Related> {
        (0..count).map(|number| related(&format!("p/{number}"))).collect()
    }

    #[test]
    fn both_sides_are_drawn_and_not_without_end() {
        let picture = picture(("a/b", "1.0.0"), &many(12), &[related("x")], 1).expect("is drawn");
        assert_eq!(picture.matches("<g class=\"node").count(), 1 + 1 + 10 + 1, "{picture}");
        assert!(
            picture.contains(">and 2 more</text>")
                && picture.contains("<title>x needs a/b ^1</title>")
        );
        assert!(picture.contains("a/b needs 12 packages, and one package needs it."), "{picture}");
        assert!(!picture.contains("<style"), "{picture}");
        assert_eq!(super::picture(("a/b", "1.0.0"), &[], &[], 0), None);
    }

    #[test]
    fn who_is_on_both_sides_is_drawn_once() {
        let both = [related("x"), related("x"), related("a/b")];
        let picture = picture(("a/b", "1.0.0"), &both, &both[..1], 1).expect("is drawn");
        assert_eq!(picture.matches("<g class=\"node").count(), 2, "{picture}");
        assert_eq!(picture.matches("<g class=\"edge").count(), 3, "{picture}");
    }

    #[test]
    fn who_needs_another_version_is_not_drawn_as_if_it_needed_this_one() {
        let dependents = [related("x"), Related { asked: vec!["^2".to_owned()], ..related("y") }];
        let picture = picture(("a/b", "2.0.0"), &[], &dependents, 2).expect("is drawn");
        assert!(picture.contains("<title>x needs a/b ^1, not 2.0.0</title>"), "{picture}");
        assert!(picture.contains("<title>y needs a/b ^2</title>"), "{picture}");
    }

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(short("acme/web"), "acme/web");
        assert_eq!(short(&"x".repeat(33)).chars().count(), 33);
        let long = "acme/a-package-with-a-name-that-is-long";
        assert_eq!(short(long), "acme/a-package…-name-that-is-long");
        assert_eq!(short(&"ä".repeat(70)).chars().count(), 33);
    }

    #[test]
    fn foreign_texts_stay_texts() {
        let hostile = related(&"<script>\u{7}\"'&".repeat(50));
        let picture = picture(("a/b", "<b>"), &[hostile], &[], 0).expect("is drawn");
        assert!(
            !picture.contains("<script") && !picture.contains("<b>") && !picture.contains('\u{7}')
        );
        assert!(picture.len() < 4_000, "{picture}");
    }
}
