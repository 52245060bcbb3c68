//! What people should know before they depend on a package: that it was withdrawn, that it has moved, or that
//! it claims to replace another one, and whether that one agrees.
//!
//! On each machine, mu itself decides whether one package may replace another. The page only shows the hub's
//! data.

use serde_json::Value;

use super::frame::Frame;
use super::relations::{Known, are_neighbours};
use super::target::Target;
use mu_hub::lines::PublishedLine;

/// Something to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Notice {
    /// Whether to be careful.
    pub(super) is_warning: bool,
    pub(super) parts: Vec<Part>,
}

/// A part of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Text(String),
    /// A package, and its page if it is of this hub.
    Package(String, Option<String>),
}

/// The package that a page is about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'page> {
    pub(super) name: &'page str,
    /// The line that represents it.
    pub(super) line: &'page PublishedLine,
    /// The hub's base.
    pub(super) base: &'page str,
    pub(super) frame: &'page Frame<'page>,
}

/// All notices about a package; fewer while the hub's relations are not known yet.
pub(super) fn notices(subject: Subject<'_>, known: &Known) -> Vec<Notice> {
    let mut notices = Vec::new();
    if subject.line.is_yanked() {
        notices.push(warning(vec![text(
            "Every version of this package was yanked: nothing new should depend on it.",
        )]));
    }
    notices.extend(deprecated(subject.line).map(deprecation));
    notices.extend(moved(subject, known));
    for reference in subject.line.texts("replaces") {
        notices.push(claim(subject, known, reference));
    }
    for claimant in known.claimants(subject.name, subject.base) {
        notices.extend(claimed(subject, known, claimant));
    }
    notices
}

/// The notices about one version; `newer` is the package's newest release, if that is another one.
pub(super) fn of_version(subject: Subject<'_>, newer: Option<&str>) -> Vec<Notice> {
    let Subject { name, line, frame, .. } = subject;
    let mut notices = Vec::new();
    if line.is_yanked() {
        let reason = line.text("yanked").filter(|reason| !reason.is_empty());
        let why = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        let rest = "mu does not choose it any more; a lock that names it still works.";
        notices.push(warning(vec![Part::Text(format!("This version was yanked{why}. {rest}"))]));
    }
    notices.extend(deprecated(line).map(deprecation));
    if let Some(newer) = newer {
        let page = Some(frame.version(name, newer));
        let link = Part::Package(newer.to_owned(), page);
        let parts = vec![text("The newest release is "), link, text(".")];
        notices.push(Notice { is_warning: false, parts });
    }
    notices
}

/// The replacement that a deprecated version suggests; an empty text if it suggests none.
pub(super) fn deprecated(line: &PublishedLine) -> Option<&str> {
    match line.map().get("deprecated")? {
        Value::Bool(true) => Some(""),
        Value::String(why) => Some(why),
        _ => None,
    }
}

fn deprecation(why: &str) -> Notice {
    let more = if why.is_empty() { String::new() } else { format!(": {why}") };
    warning(vec![Part::Text(format!("This version is deprecated{more}."))])
}

/// The notice that the package has moved, and whether the other one knows; `None` if it has not.
fn moved(subject: Subject<'_>, known: &Known) -> Option<Notice> {
    let to = subject.line.text("movedTo")?;
    let mut parts = vec![text("This package has moved to "), subject.package(known, to), text(".")];
    let other = known.resolve(subject.name, to, subject.base);
    if let Some(other) = other {
        let knows = known.claimants(subject.name, subject.base).contains(&other);
        parts.push(text(match knows {
            true => " That package agrees: it says that it replaces this one.",
            false => " That package does not say that it replaces this one.",
        }));
    }
    Some(Notice { is_warning: false, parts })
}

/// The notice that the package claims to replace another, and whether that one agrees.
fn claim(subject: Subject<'_>, known: &Known, reference: &str) -> Notice {
    let Subject { name, base, .. } = subject;
    let mut parts =
        vec![text("This package claims to replace "), subject.package(known, reference)];
    let old = known.resolve(name, reference, base);
    let (is_warning, rest) = match old.map(|old| (old, known.find(old))) {
        Some((old, Some(brief))) if brief.has_moved_to(old, name, base) => {
            (false, ", and that package agrees: it says that it has moved here.")
        }
        Some((old, _)) if are_neighbours(old, name) => {
            (false, ". Both belong to one namespace, so mu uses one in place of the other.")
        }
        Some(_) => (
            true,
            ", but that package does not say so. mu uses one in place of the other only if you agree.",
        ),
        None => (
            true,
            ", which is not in this hub, so whether that package agrees is not known here. mu checks that itself.",
        ),
    };
    parts.push(text(rest));
    Notice { is_warning, parts }
}

/// The notice that another package claims to replace this one, which has not agreed; `None` if it has.
fn claimed(subject: Subject<'_>, known: &Known, claimant: &str) -> Option<Notice> {
    let Subject { name, base, frame, .. } = subject;
    let has_moved = known.find(name)?.has_moved_to(name, claimant, base);
    if has_moved {
        return None;
    }
    let package = Part::Package(claimant.to_owned(), Some(frame.package(claimant)));
    let (is_warning, rest) = match are_neighbours(name, claimant) {
        true => (false, " of the same namespace says that it replaces this package."),
        false => (
            true,
            " claims to replace this package, but this one does not say so. mu uses one in place of the other only if you agree.",
        ),
    };
    Some(Notice { is_warning, parts: vec![package, text(rest)] })
}

impl Subject<'_> {
    /// A package that the subject names.
    fn package(&self, known: &Known, reference: &str) -> Part {
        let found = known.resolve(self.name, reference, self.base);
        let shown = Target::parse(reference)
            .map_or(reference, |_| reference.split('#').next().unwrap_or(reference));
        Part::Package(shown.to_owned(), found.map(|name| self.frame.package(name)))
    }
}

fn text(text: &str) -> Part {
    Part::Text(text.to_owned())
}

fn warning(parts: Vec<Part>) -> Notice {
    Notice { is_warning: true, parts }
}
