//! Names of branches and tags: types that only Git's own rules make.
//!
//! A name from elsewhere may reach the arguments of `git`, where one that begins with `-` would be an option, and one
//! with `^` or `..` a range. Whether there is such a branch or tag is not known here.

use git2::Reference;

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
