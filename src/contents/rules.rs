//! What is left out when a folder becomes a package: what ignore files name, and archives that do not belong in it.
//!
//! [`Rules`] are those of `.gitignore` and `.muignore`, or of a chart's `.helmignore`. The rules of a folder apply to what is in it.
//! Rules of deeper folders take precedence over those of outer ones, and in one folder `.muignore` over `.gitignore`,
//! so that `!dist` brings back what Git should not have. Only files of the repository are read, never a user's own Git
//! settings: what is packed must not depend on the machine.
//!
//! Archives of the package itself are not packed again, whatever they are called: the manifest in them says what they
//! are. [`Derived`] are the archives in `charts/` that follow from a chart's dependencies: they are fetched or made
//! again, so they are no content of the chart. `mod.rs` applies all this; no folder is walked here.

use std::collections::BTreeSet;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use mu_formats::helm::{self, Need};
use mu_provider::{Limits, MANIFEST_NAMES, ProviderError};

use super::unreadable;
use crate::env::Environment;
use crate::formats;
use crate::fs::{self, FileError};
use crate::manifest::{FileWarning, Manifest};
use crate::reference::Version;

/// The files that Git reads.
pub(crate) const OF_GIT: &[&str] = &[".gitignore"];

/// The file that Helm reads.
const HELM_FILE: &str = ".helmignore";

/// The files that `mu pack` reads, in ascending precedence.
pub(crate) const OF_PACKAGES: &[&str] = &[".gitignore", ".muignore"];

/// Whether editors and systems leave what is called so beside files: copies, locks and swap files, and what they note about folders.
fn is_left_behind(name: &[u8]) -> bool {
    match name {
        [.., b'~'] | [b'.', b'#' | b'_', ..] | [b'#', .., b'#'] => true,
        // The swap files of Vim.
        [b'.', .., b'.', b's', b'w', b'a'..=b'p'] => true,
        b".DS_Store" | b"Thumbs.db" | b"desktop.ini" => true,
        _ => name.ends_with(b".orig") || name.ends_with(b".bak"),
    }
}

/// The rules that apply in one folder, outermost first.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    names: &'static [&'static str],
    folders: Vec<Gitignore>,
    /// Those of the chart in this folder, as Helm reads them.
    of_chart: Option<(PathBuf, helm::IgnoreRules)>,
    /// Whether what no rule names is left out if editors and systems leave it behind.
    over_left_behind: bool,
}

impl Rules {
    /// The rules in files called `names` for the content of the package in `folder`, from those in `top`, a folder around it. Where those
    /// around leave out the package itself, or its manifest, called `manifest`, they say nothing about its files: somebody else builds
    /// or clones it there.
    pub(crate) fn for_content(
        names: &'static [&'static str],
        folder: &Path,
        top: &Path,
        manifest: &str,
        warnings: &mut Vec<FileWarning>,
    ) -> Result<Self, FileError> {
        let around = folder.ancestors().skip(1);
        let mut around: Vec<&Path> = around.take_while(|around| around.starts_with(top)).collect();
        around.reverse();
        let mut rules =
            Self { names, folders: Vec::new(), of_chart: None, over_left_behind: false };
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

    /// These rules, which take precedence over one that leaves out what editors and systems leave beside files.
    pub(crate) fn over_left_behind(mut self) -> Self {
        self.over_left_behind = true;
        self
    }

    /// The rules in the files of `folder` alone.
    fn from_folder_alone(
        names: &'static [&'static str],
        folder: &Path,
        warnings: &mut Vec<FileWarning>,
    ) -> Result<Self, FileError> {
        Self { names, folders: Vec::new(), of_chart: None, over_left_behind: false }
            .with_folder_inside(folder, warnings)
    }

    /// The rules of Helm for the chart in `folder`. A line because of which Helm refuses the chart is told, and read as Git would:
    /// whoever has written it does not want what it names to be packed.
    pub(crate) fn read_helmignore(
        folder: &Path,
        warnings: &mut Vec<FileWarning>,
    ) -> Result<Self, FileError> {
        let path = folder.join(HELM_FILE);
        let text = read_rules(&path)?.unwrap_or_default();
        let (rules, refused) = helm::IgnoreRules::parse(&text);
        let mut builder = GitignoreBuilder::new(folder);
        for line in refused {
            let helm::RefusedLine { number, text, why } = line;
            let message = format!("Helm refuses this chart because of `{text}`: {why}");
            warnings.push(FileWarning::new(&path, Some(number), message));
            // What is no pattern of Git either names nothing.
            let _ = builder.add_line(None, text);
        }
        if rules.ignores(helm::CHART, false) {
            let message = format!(
                "leaves out {}, so Helm finds no chart there: `!name` leaves out all but `name`",
                helm::CHART
            );
            warnings.push(FileWarning::new(&path, None, message));
        }
        let of_chart = Some((folder.to_owned(), rules));
        Ok(Self {
            names: &[],
            folders: builder.build().into_iter().collect(),
            of_chart,
            over_left_behind: false,
        })
    }

    /// These rules and those of a folder inside.
    pub(crate) fn with_folder_inside(
        &self,
        folder: &Path,
        warnings: &mut Vec<FileWarning>,
    ) -> Result<Self, FileError> {
        let mut rules = self.clone();
        for name in self.names {
            let path = folder.join(name);
            let Some(text) = read_rules(&path)? else { continue };
            let mut builder = GitignoreBuilder::new(folder);
            for (number, line) in text.lines().enumerate() {
                if line.contains(char::REPLACEMENT_CHARACTER) && !line.starts_with('#') {
                    let message = "this pattern has no effect: it is not UTF-8, as all names in a package are";
                    warnings.push(FileWarning::new(&path, Some(number + 1), message));
                }
                // Git ignores such lines too.
                if let Err(error) = builder.add_line(None, line) {
                    let message = format!("this pattern has no effect: {error}");
                    warnings.push(FileWarning::new(&path, Some(number + 1), message));
                }
            }
            match builder.build() {
                Ok(matcher) => rules.folders.push(matcher),
                Err(error) => {
                    warnings.push(FileWarning::new(&path, None, format!("has no effect: {error}")));
                }
            }
        }
        Ok(rules)
    }

    /// The rules for what is in the repository at `top`, with those of this clone alone: Git's own, without a user's.
    pub(crate) fn of_git(top: &Path) -> Result<Self, FileError> {
        let mut rules =
            Self { names: OF_GIT, folders: Vec::new(), of_chart: None, over_left_behind: false };
        let exclude = top.join(".git/info/exclude");
        let is_file = fs::metadata(&exclude).is_ok_and(|found| found.is_file());
        let text = if is_file { read_rules(&exclude)? } else { None };
        let mut builder = GitignoreBuilder::new(top);
        for line in text.unwrap_or_default().lines() {
            // Git ignores such lines too.
            let _ = builder.add_line(None, line);
        }
        rules.folders.extend(builder.build());
        rules.with_folder_inside(top, &mut Vec::new())
    }

    /// The rules for what is in the repository at `top` that everybody has.
    #[cfg(feature = "git")]
    pub(crate) fn of_everybody(top: &Path) -> Result<Self, FileError> {
        let rules =
            Self { names: OF_GIT, folders: Vec::new(), of_chart: None, over_left_behind: false };
        rules.with_folder_inside(top, &mut Vec::new())
    }

    /// Whether these rules of the repository at `top`, or those in folders on the way, leave out the folder or file `inner`.
    pub(crate) fn leave_out_on_the_way(
        &self,
        top: &Path,
        inner: &Path,
        is_folder: bool,
    ) -> Result<bool, FileError> {
        let on_the_way = inner.ancestors().take_while(|folder| *folder != top);
        let mut on_the_way: Vec<&Path> = on_the_way.skip(1).collect();
        on_the_way.reverse();
        let mut rules = self.clone();
        for folder in on_the_way {
            if rules.leave_out(folder, true) {
                return Ok(true);
            }
            rules = rules.with_folder_inside(folder, &mut Vec::new())?;
        }
        Ok(inner != top && rules.leave_out(inner, is_folder))
    }

    /// Whether the entry at `path` is left out.
    pub(crate) fn leave_out(&self, path: &Path, is_folder: bool) -> bool {
        if let Some((chart, rules)) = &self.of_chart
            && let Some(path) = path.strip_prefix(chart).ok().and_then(Path::to_str)
            && rules.ignores(path, is_folder)
        {
            return true;
        }
        for rules in self.folders.iter().rev() {
            match rules.matched(path, is_folder) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        let name = path.file_name().unwrap_or_default();
        self.over_left_behind && is_left_behind(name.as_encoded_bytes())
    }
}

/// The byte order mark of UTF-8, which editors of Windows write before a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The lines of an ignore file as Git and Helm read it, which skip a byte order mark and take any bytes; `None` if it is not there.
fn read_rules(path: &Path) -> Result<Option<String>, FileError> {
    let Some(bytes) = fs::read_if_there(path)? else { return Ok(None) };
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        // To Git, no line of it is a pattern, and what its author wanted to be left out would be packed.
        let why = io::Error::new(io::ErrorKind::InvalidData, "it is UTF-16: save it as UTF-8");
        return Err(FileError::new("read", path, why));
    }
    let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes);
    Ok(Some(String::from_utf8_lossy(text).into_owned()))
}

/// What every gzip'd file begins with.
pub(crate) const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Whether the file at `path` in a package, which is at `place`, is an archive of the package, of any version. What cannot be read is
/// not.
pub(super) fn is_archive_of_package(manifest: &Manifest, path: &str, place: &Path) -> bool {
    let leaf = manifest.name.name().leaf();
    let is_usual =
        !path.contains('/') && path.starts_with(&format!("{leaf}-")) && path.ends_with(".tgz");
    is_usual || called(place).is_some_and(|name| name == manifest.name.as_str())
}

/// The name of the package in an archive.
fn called(place: &Path) -> Option<String> {
    let mut file = fs::open(place).ok()?;
    let mut bytes = vec![0; GZIP.len()];
    file.read_exact(&mut bytes).ok().filter(|()| bytes == GZIP)?;
    let most = Limits::default().bytes;
    file.take(most).read_to_end(&mut bytes).ok()?;
    let is_manifest = |path: &str| MANIFEST_NAMES.contains(&path);
    let files = mu_archive::pick(&bytes, &is_manifest, most).ok()?;
    let (name, content) = files.into_iter().next()?;
    let (manifest, _) =
        Manifest::parse(Path::new(&name), std::str::from_utf8(&content).ok()?).ok()?;
    Some(manifest.name.as_str().to_owned())
}

/// The archives that follow from dependencies: those of any version of a present one, and those that Helm's lock names.
pub(crate) struct Derived {
    names: Vec<String>,
    locked: BTreeSet<String>,
}

impl Derived {
    /// Those of the dependencies `needs`, and of `lock`, which Helm or mu wrote when there were perhaps others.
    pub(crate) fn new(needs: &[Need], lock: Option<&str>) -> Self {
        // A chart without a repository was put there by a person.
        let is_brought = |need: &&Need| need.requirement.is_some() || !need.repository.is_empty();
        let kept: BTreeSet<&str> =
            needs.iter().filter(|need| !is_brought(need)).map(|need| &*need.name).collect();
        let former = lock.and_then(|lock| helm::locked("", lock).ok());
        let former = former.unwrap_or_default().into_iter();
        Self {
            names: needs.iter().filter(is_brought).map(|need| need.name.clone()).collect(),
            locked: former
                .filter(|(name, _)| !kept.contains(&**name))
                .map(|(name, version)| format!("{name}-{version}.tgz"))
                .collect(),
        }
    }

    /// Whether the file called `file` in `charts/` is such an archive.
    pub(crate) fn is_derived_archive(&self, file: &str) -> bool {
        self.locked.contains(file) || self.names.iter().any(|name| is_archive_of(file, name))
    }

    /// Whether the file at `path` in the chart is such an archive.
    pub(super) fn contains(&self, path: &str) -> bool {
        helm::in_charts(path).is_some_and(|file| self.is_derived_archive(file))
    }
}

/// Whether a file is called like an archive of the chart `name`.
pub(crate) fn is_archive_of(file: &str, name: &str) -> bool {
    let rest = file.strip_prefix(name).and_then(|rest| rest.strip_prefix('-'));
    let version = rest.and_then(|rest| rest.strip_suffix(".tgz"));
    version.is_some_and(|version| Version::parse_lenient(version).is_ok())
}

/// A repository whose name is not known here.
const SOMEWHERE: &str = "https://localhost";

/// The archives that follow from the chart in a folder, which is worked on there.
pub(super) fn derived(folder: &Path, environment: &Environment) -> Result<Derived, ProviderError> {
    // Which archives follow does not depend on where they come from.
    let names = formats::helms_aliases(environment).or_of_chart(|_| Some(SOMEWHERE.to_owned()));
    let all = formats::helms_needs(&folder.join(helm::CHART), &names, true);
    let all = all.map_err(|error| unreadable(&error))?;
    let lock = fs::read_text_if_there(&folder.join(all.lock))?;
    Ok(Derived::new(&all.needs, lock.as_deref()))
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
    fn the_rules_of_a_clone_are_read_as_bytes_and_without_their_mark() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = folder.path();
        let rules = b"\xef\xbb\xbfmine.txt\ncaf\xe9\n";
        fs::write_atomic(&root.join(".git/info/exclude"), rules).expect("can be written");
        let rules = Rules::of_git(root).expect("can be read");
        assert!(rules.leave_out(&root.join("mine.txt"), false));
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
