//! Which files of a folder are left out, according to `.gitignore`, `.muignore` and `.helmignore`.
//!
//! The rules of a folder apply to what is in it. Rules of deeper folders take precedence over those of outer
//! ones, and in one folder `.muignore` over `.gitignore`, so that `!dist` brings back what Git should not
//! have. Only files of the repository are read, never a user's own Git settings: what is packed must not
//! depend on the machine.

use std::path::Path;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::fs::{self, FileError};

/// The files that Git reads.
pub(crate) const OF_GIT: &[&str] = &[".gitignore"];

/// The file that Helm reads.
pub(crate) const OF_HELM: &[&str] = &[".helmignore"];

/// The files that `mu pack` reads, in ascending precedence.
pub(crate) const OF_PACKAGES: &[&str] = &[".gitignore", ".muignore"];

/// What editors and systems leave beside files: copies, locks and swap files, and what they note about folders.
const LEFT_BEHIND: [&str; 10] = [
    "*~",
    ".#*",
    "\\#*#",
    "._*",
    ".*.sw[a-p]",
    "*.orig",
    "*.bak",
    ".DS_Store",
    "Thumbs.db",
    "desktop.ini",
];

/// The rules that apply in one folder, outermost first.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    names: &'static [&'static str],
    folders: Vec<Gitignore>,
}

impl Rules {
    /// The rules in files called `names` for the content of the package in `folder`, from those in `top`, a folder around it. Where those
    /// around leave out the package itself, or its manifest, called `manifest`, they say nothing about its files: somebody else builds
    /// or clones it there.
    ///
    /// # Errors
    ///
    /// When a file of rules cannot be read.
    pub(crate) fn for_content(
        names: &'static [&'static str],
        folder: &Path,
        top: &Path,
        manifest: &str,
        warnings: &mut Vec<String>,
    ) -> Result<Self, FileError> {
        let around = folder.ancestors().skip(1);
        let mut around: Vec<&Path> = around.take_while(|around| around.starts_with(top)).collect();
        around.reverse();
        let mut rules = Self { names, folders: Vec::new() };
        let mut foreign = Vec::new();
        for outer in around {
            if outer != top && rules.leave_out(outer, true) {
                return Self::from_folder_alone(names, folder, warnings);
            }
            rules = rules.with_folder_inside(outer, &mut foreign)?;
        }
        if rules.leave_out(folder, true)
            || !manifest.is_empty() && rules.leave_out(&folder.join(manifest), false)
        {
            return Self::from_folder_alone(names, folder, warnings);
        }
        warnings.append(&mut foreign);
        rules.with_folder_inside(folder, warnings)
    }

    /// These rules, which take precedence over one that leaves out what editors and systems leave beside files in `folder`.
    pub(crate) fn over_left_behind(mut self, folder: &Path) -> Self {
        let mut builder = GitignoreBuilder::new(folder);
        for pattern in LEFT_BEHIND {
            let added = builder.add_line(None, pattern);
            added.expect("the patterns are valid");
        }
        self.folders.insert(0, builder.build().expect("the patterns are valid"));
        self
    }

    /// The rules in the files of `folder` alone.
    ///
    /// # Errors
    ///
    /// When a file of rules cannot be read.
    pub(crate) fn from_folder_alone(
        names: &'static [&'static str],
        folder: &Path,
        warnings: &mut Vec<String>,
    ) -> Result<Self, FileError> {
        Self { names, folders: Vec::new() }.with_folder_inside(folder, warnings)
    }

    /// These rules and those of a folder inside.
    ///
    /// # Errors
    ///
    /// When a file of rules cannot be read.
    pub(crate) fn with_folder_inside(
        &self,
        folder: &Path,
        warnings: &mut Vec<String>,
    ) -> Result<Self, FileError> {
        let mut rules = self.clone();
        for name in self.names {
            let path = folder.join(name);
            let Some(text) = fs::read_text_if_there(&path)? else { continue };
            let mut builder = GitignoreBuilder::new(folder);
            for (number, line) in text.lines().enumerate() {
                // Git ignores such lines too.
                if let Err(error) = builder.add_line(None, line) {
                    let place = format!("{}:{}", path.display(), number + 1);
                    warnings.push(format!("{place}: this pattern has no effect: {error}"));
                }
            }
            match builder.build() {
                Ok(matcher) => rules.folders.push(matcher),
                Err(error) => {
                    warnings.push(format!("{}: has no effect: {error}", path.display()));
                }
            }
        }
        Ok(rules)
    }

    /// The rules for what is in the repository at `top`, with those of this clone alone: Git's own, without a user's.
    ///
    /// # Errors
    ///
    /// When a file of rules cannot be read.
    pub(crate) fn of_git(top: &Path) -> Result<Self, FileError> {
        let mut rules = Self { names: OF_GIT, folders: Vec::new() };
        let exclude = top.join(".git/info/exclude");
        let is_file = fs::metadata(&exclude).is_ok_and(|found| found.is_file());
        let text = if is_file { fs::read_text_if_there(&exclude)? } else { None };
        let mut builder = GitignoreBuilder::new(top);
        for line in text.unwrap_or_default().lines() {
            // Git ignores such lines too.
            let _ = builder.add_line(None, line);
        }
        rules.folders.extend(builder.build());
        rules.with_folder_inside(top, &mut Vec::new())
    }

    /// Whether these rules of the repository at `top`, or those in folders on the way, leave out the folder `inner`.
    ///
    /// # Errors
    ///
    /// When a file of rules cannot be read.
    pub(crate) fn leave_out_on_the_way(&self, top: &Path, inner: &Path) -> Result<bool, FileError> {
        let on_the_way = inner.ancestors().take_while(|folder| *folder != top);
        let mut on_the_way: Vec<&Path> = on_the_way.collect();
        on_the_way.reverse();
        let mut rules = self.clone();
        for folder in on_the_way {
            if rules.leave_out(folder, true) {
                return Ok(true);
            }
            rules = rules.with_folder_inside(folder, &mut Vec::new())?;
        }
        Ok(false)
    }

    /// Whether the entry at `path` is left out.
    pub(crate) fn leave_out(&self, path: &Path, is_folder: bool) -> bool {
        for rules in self.folders.iter().rev() {
            match rules.matched(path, is_folder) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_rules_and_muignore_count_first() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = folder.path();
        let write = |path: &str, text: &str| {
            fs::write_atomic(&root.join(path), text.as_bytes()).expect("can be written");
        };
        write(".git/HEAD", "");
        write(".gitignore", "*.log\n/dist/\n[z-a]\n");
        write("aws/ec2/.gitignore", "!keep.log\n/out\n");
        write("aws/ec2/.muignore", "!/out\nnotes\n");
        write("aws/ec2/sub/.gitignore", "keep.log\n");
        let mut warnings = Vec::new();
        let package = root.join("aws/ec2");
        let rules = Rules::for_content(OF_PACKAGES, &package, root, "Mu.yaml", &mut warnings)
            .expect("can be read");
        let sub =
            rules.with_folder_inside(&package.join("sub"), &mut warnings).expect("can be read");
        for (rules, path, is_folder, expected) in [
            (&rules, "a.log", false, true),
            (&rules, "keep.log", false, false),
            (&sub, "sub/keep.log", false, true),
            (&rules, "dist", true, false),
            (&rules, "out", true, false),
            (&rules, "notes", false, true),
            (&rules, ".gitignore", false, false),
        ] {
            let found = rules.leave_out(&package.join(path), is_folder);
            assert_eq!(found, expected, "{path}");
        }
        assert_eq!(warnings.len(), 1, "{warnings:?}");
    }

    #[test]
    fn rules_that_leave_out_the_package_say_nothing_about_its_files() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = folder.path();
        let write = |path: &str, text: &str| {
            fs::write_atomic(&root.join(path), text.as_bytes()).expect("can be written");
        };
        for ignored in ["/out/", "out", "*", "out/**", "/out/lib/"] {
            write(".gitignore", ignored);
            write("out/lib/.gitignore", "*.log");
            let package = root.join("out/lib");
            let rules = Rules::for_content(OF_PACKAGES, &package, root, "Mu.yaml", &mut Vec::new())
                .expect("can be read");
            assert!(!rules.leave_out(&package.join("a"), false), "{ignored}");
            assert!(rules.leave_out(&package.join("a.log"), false), "{ignored}");
        }
    }
}
