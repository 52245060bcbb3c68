//! Names of commits, as the rest of mu has them and as libgit2 does.

use git2::Oid;
use mu_provider::Commit;

/// The digits of SHA-1.
pub(crate) const FULL: usize = 40;

/// The commit of a release, as its listing or a lock has it; `None` for one of SHA-256, which libgit2 cannot read.
pub(crate) fn parse(digits: Option<&str>) -> Option<Oid> {
    digits.filter(|hex| hex.len() == FULL).and_then(|hex| Oid::from_str(hex).ok())
}

/// The name of a commit.
pub(crate) fn name(oid: Oid) -> Commit {
    oid.to_string().parse().expect("an object's name is printed with all its digits")
}
