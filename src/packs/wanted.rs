//! Packs that should be installed, and which is inside which, by their places.

use std::ops::Bound;

use mu_provider::Digest;

/// A pack that should be installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedPack {
    /// Its place below the packs folder: `hub.mu.com/aws/ec2`.
    pub place: String,
    /// The package's id.
    pub id: String,
    /// Its version, as the lock writes it.
    pub version: String,
    /// The digest of its content.
    pub digest: Digest,
    /// The digest of its content together with what `mu build` made of it; that is as good.
    pub built: Option<Digest>,
}

impl WantedPack {
    /// Whether this is its content.
    pub fn accepts(&self, digest: &Digest) -> bool {
        self.digest == *digest || self.built.as_ref() == Some(digest)
    }

    /// Its possible contents.
    pub fn possible_digests(&self) -> impl Iterator<Item = Digest> {
        std::iter::once(self.digest).chain(self.built)
    }
}

// A place is a path with slashes, and places come sorted as texts. All below `a/b` begin with `a/b/`, so they stand together, and
// one look at the first that is not before `a/b/` tells whether there is any. `a/b` itself need not stand right before them:
//
//     a/b          <- first_from("a/b")
//     a/b-c           `-` and `.` sort before `/`
//     a/b/d        <- first_from("a/b/")
//     a/b/e
//     a/bc
//
// So it takes two looks: one for the place, and one for what is below it.

/// Whether a sorted set of places contains `place` or one below it; `first_from` returns the set's first that
/// is not before its argument.
pub(super) fn holds<'places>(
    first_from: impl Fn(&str) -> Option<&'places str>,
    place: &str,
) -> bool {
    let below = format!("{place}/");
    first_from(place) == Some(place)
        || first_from(&below).is_some_and(|first| first.starts_with(&below))
}

/// Everything that is not before `place`, as a range of a sorted set.
pub(super) fn from(place: &str) -> (Bound<&str>, Bound<&str>) {
    (Bound::Included(place), Bound::Unbounded)
}

/// The first of the places, which are sorted, that is not before `place`.
pub(super) fn first_from<'wanted>(
    wanted: &'wanted [WantedPack],
    place: &str,
) -> Option<&'wanted str> {
    let start = wanted.partition_point(|other| other.place.as_str() < place);
    wanted.get(start).map(|other| other.place.as_str())
}

/// The folders above a place, from the outside to the inside.
pub(super) fn folders_above(place: &str) -> impl Iterator<Item = &str> {
    place.match_indices('/').map(|(end, _)| &place[..end])
}

/// Whether folder `inner` is somewhere below `outer` (both slash-separated).
pub(super) fn is_below(inner: &str, outer: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'))
}
