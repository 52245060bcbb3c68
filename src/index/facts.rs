//! What each key of an index line is to mu: the one declaration of a package's facts.
//!
//! A locked package is chosen again without its index line. So what selection reads of a chosen version has to be in the lock; what
//! it reads only to choose among several versions is asked of the registry whenever there is a choice. How the lock writes a fact
//! is not here.

use mu_provider::Release;

/// What a key of an index line is to mu.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    /// Selection reads it of each version that is chosen; the lock has it under this key.
    Chosen(&'static str),
    /// Selection reads it only to choose among versions. A locked version stays without it, and whoever lets it move asks.
    Among,
    /// It says which content a version has, and where; the lock has it under this key.
    Content(&'static str),
    /// Selection does not read it.
    Told,
}

impl Fact {
    /// Whether selection reads it.
    fn is_read(self) -> bool {
        matches!(self, Self::Chosen(_) | Self::Among)
    }
}

/// Whether a fact of a published version can change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Time {
    Fixed,
    Changeable,
}

macro_rules! facts {
    ($($(#[$about:meta])* $field:ident: $fact:expr, $time:ident;)*) => {
        /// Every key of an index line, by the name of its field, with what it is to mu.
        pub const FACTS: &[(&str, Fact)] = {
            use Fact::{Among, Chosen, Content, Told};
            &[$((stringify!($field), $fact)),*]
        };

        /// A line with only the facts that are wanted.
        fn only(line: &Release, is_wanted: impl Fn(Fact, Time) -> bool) -> Release {
            use Fact::{Among, Chosen, Content, Told};
            // Without `..`, so that a key that is not declared does not compile.
            let Release { $($field),* } = line;
            let mut wanted = Release::default();
            $(if is_wanted($fact, Time::$time) {
                wanted.$field.clone_from($field);
            })*
            wanted
        }
    };
}

facts! {
    name: Chosen("id"), Changeable;
    // The name in the archive is compared when that is fetched.
    origin: Among, Fixed;
    version: Chosen("version"), Changeable;
    app_version: Chosen("appVersion"), Fixed;
    versioning: Chosen("versioning"), Changeable;
    // The lock reads every version leniently.
    versions: Among, Changeable;
    // What this mu cannot read is never chosen, and refused when it is installed.
    api_version: Among, Fixed;
    mu_version: Chosen("muVersion"), Fixed;
    digest: Content("digest"), Fixed;
    archive: Content("archive"), Fixed;
    manifest: Content("manifest"), Changeable;
    size: Told, Changeable;
    urls: Content("url"), Changeable;
    dependencies: Chosen("dependencies"), Fixed;
    provides: Chosen("provides"), Fixed;
    requires: Chosen("requires"), Fixed;
    replaces: Chosen("replaces"), Fixed;
    conflicts: Chosen("conflicts"), Fixed;
    constraints: Chosen("constraints"), Fixed;
    // The lock has the one that it was chosen from; a requirement of another one is asked about.
    channels: Chosen("channel"), Fixed;
    default_channel: Among, Fixed;
    // Steps lead to a version that something moves to.
    upgrade: Among, Fixed;
    // A name that the lock does not have is asked about.
    tags: Among, Changeable;
    // A locked version stays although it is withdrawn.
    yanked: Among, Changeable;
    deprecated: Among, Changeable;
    // What can never be used is never locked.
    unusable: Among, Changeable;
    format: Among, Changeable;
    // The copies inside of a locked package are looked up when they matter.
    bundled: Among, Changeable;
    moved_to: Among, Changeable;
    // A locked version is old enough.
    published: Among, Changeable;
    unknown: Told, Changeable;
    description: Told, Changeable;
    keywords: Told, Changeable;
    license: Told, Changeable;
    maintainers: Told, Changeable;
    website: Told, Changeable;
    repository: Told, Changeable;
    // A manifest that requires the package may have to say it.
    kind: Told, Changeable;
    dependency_kinds: Told, Changeable;
    // A warning says it when the version is chosen.
    called: Told, Changeable;
    commit: Content("commit"), Changeable;
    artifact: Content("artifact"), Changeable;
    reference: Told, Changeable;
    locator: Content("locator"), Changeable;
    tip: Among, Changeable;
}

/// The part of a line that must never change, because selection and installing depend on it.
pub(super) fn fixed_part(line: &Release) -> Release {
    only(line, |_, time| time == Time::Fixed)
}

/// A line without what selection does not read.
pub(super) fn read_by_selection(line: &Release) -> Release {
    only(line, |fact, _| fact.is_read())
}
