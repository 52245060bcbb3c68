//! Names in Git: of branches and tags, as types that only Git's own rules make, and of commits, as the rest of mu has them and as libgit2
//! does.
//!
//! A name from elsewhere may reach the arguments of `git`, where one that begins with `-` would be an option, and one
//! with `^` or `..` a range. Whether there is such a branch or tag is not known here.

use git2::{Oid, Reference};
use mu_provider::Commit;

macro_rules! ref_name {
    ($(#[$about:meta])* $name:ident, $folder:literal) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name(String);

        impl $name {
            /// The name, if Git accepts it.
            pub fn new(short: &str) -> Option<Self> {
                let full = format!("{}{short}", $folder);
                let is_valid = !short.starts_with('-') && Reference::is_valid_name(&full);
                is_valid.then_some(Self(full))
            }

            /// With the folder that Git has it in.
            pub fn full(&self) -> &str {
                &self.0
            }

            /// As people write it.
            pub fn short(&self) -> &str {
                self.0.strip_prefix($folder).unwrap_or(&self.0)
            }
        }
    };
}

ref_name! {
    /// The name of a branch.
    BranchName, "refs/heads/"
}

ref_name! {
    /// The name of a tag.
    TagName, "refs/tags/"
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_option_and_no_range_is_a_name() {
        let name = BranchName::new("edit/a-1.0.0").expect("is one");
        assert_eq!((name.full(), name.short()), ("refs/heads/edit/a-1.0.0", "edit/a-1.0.0"));
        assert_eq!(TagName::new("v1.0.0").expect("is one").full(), "refs/tags/v1.0.0");
        for text in [
            "",
            "-",
            "--upload-pack=x",
            "-u",
            "a..b",
            "a^{commit}",
            "a:b",
            "a~1",
            "@{1}",
            "a b",
            "a\nb",
            "/a",
            "a.lock",
        ] {
            assert_eq!((BranchName::new(text), TagName::new(text)), (None, None), "{text}");
        }
    }
}
