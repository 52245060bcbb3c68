//! Dependencies as other tools list them: what each would be for mu, and which version of it is in use.
//!
//! These tools have no packages: they copy files from Git repositories and archives, or install charts. So their files are no
//! manifests of packages, and are read once, by `mu import`, for its user. Readers do no I/O, as those of formats. What a line cannot be
//! for mu is said with it. A URL becomes a [`Reference`], whose own checks refuse passwords, options and control characters.

pub mod go;
pub mod helmfile;
pub mod jsonnet;
pub mod project;
mod template;
pub mod terraform;
pub mod vendir;

use mu_manifest::reference::{Reference, VersionSpec};
use mu_manifest::source::line_at_offset;
use mu_provider::brief;

use crate::helm::dependency_reference;
use crate::kcl::git_reference;
use crate::node::{Fault, FormatError, Node};
use crate::reader;
use crate::shape::{Shape, Values};

/// What a file of another tool lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct List {
    /// The dependencies, in the order of the file.
    pub dependencies: Vec<ListedDependency>,
    /// Keys that such a file does not have.
    pub unknown: Vec<String>,
}

/// A dependency in a file of another tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedDependency {
    /// What the file calls it.
    pub called: String,
    /// Its line, counted from 1; 0 if its place is not known.
    pub line: usize,
    /// What it is for mu, or why it can be nothing.
    pub meaning: Result<Meaning, String>,
}

/// What a dependency is for mu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meaning {
    /// The package, with the version that the file asks for, if it asks for one.
    pub reference: Reference,
    /// Whether it asks for prereleases, too.
    pub prerelease: bool,
    /// What is in use of it, if that is known.
    pub in_use: Option<InUse>,
    /// What the file says of it that has no counterpart.
    pub left_out: Vec<String>,
    /// What it is if the first reading is not there: a branch, where the file has a name that can be one of a tag, too.
    pub otherwise: Option<Reference>,
    /// What a template says of it, which may become something else for others: the key, and the default that it was read as.
    pub defaults: Vec<(&'static str, String)>,
}

/// What is in use of a dependency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InUse {
    /// A commit of its repository.
    Commit(String),
    /// A version.
    Version(String),
}

/// What lies beside a file of another tool, and is a part of what it lists. Paths are relative to its folder.
pub trait FilesBeside {
    /// The text of a file; `None` if it is not there, or is nothing that the file may name.
    fn text(&self, path: &str) -> Option<String>;

    /// Whether there is a folder.
    fn has_folder(&self, path: &str) -> bool;

    /// The URL of the chart repository that the user's own Helm knows by this name.
    fn repository(&self, name: &str, chart: &str) -> Option<String>;
}

impl Meaning {
    /// A package, of which nothing more is known.
    pub fn new(reference: Reference) -> Self {
        Self {
            reference,
            prerelease: false,
            in_use: None,
            left_out: Vec::new(),
            otherwise: None,
            defaults: Vec::new(),
        }
    }

    /// A folder of a Git repository, at a version, tag, branch or commit.
    ///
    /// # Errors
    ///
    /// When mu has no reference for it: the reason.
    pub fn of_git(url: &str, folder: &str, revision: Option<&str>) -> Result<Self, String> {
        if url.trim().is_empty() {
            return Err("it does not say the URL of its repository".to_owned());
        }
        let mut text = shortest(url.trim().trim_end_matches('/'));
        let folder = folder.trim().trim_start_matches("./").trim_matches('/');
        if !folder.is_empty() && folder != "." {
            text.push('/');
            text.push_str(folder);
        }
        if let Some(revision) = revision {
            // What a folder's own tags are called has the folder in it, and a reference has not.
            let own = revision.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
            text.push('#');
            text.push_str(own.unwrap_or(revision));
        }
        Self::parse(&text)
    }

    /// A folder of a Git repository, at a name that Git itself looks for: a tag, a branch or a commit. What reads as a range here, such as
    /// `1.x` and `v1`, and words for a version, such as `latest`, are names like all others there.
    ///
    /// # Errors
    ///
    /// As [`Self::of_git`].
    pub fn of_git_name(url: &str, folder: &str, name: &str) -> Result<Self, String> {
        let meaning = Self::of_git(url, folder, Some(name))?;
        Ok(meaning.at_name(name))
    }

    /// With the tag of this name, or else the branch, if its reference says something else than a name.
    fn at_name(self, name: &str) -> Self {
        let is_name = self.reference.spec().is_pinned();
        let named = |kind: &str| VersionSpec::parse(&format!("refs/{kind}/{name}")).ok();
        match (named("tags"), named("heads")) {
            (Some(tag), Some(branch)) if !is_name => Self {
                otherwise: Some(self.reference.with_version(Some(branch))),
                reference: self.reference.with_version(Some(tag)),
                ..self
            },
            _ => self,
        }
    }

    /// With the branch of this name, if nothing else can be meant.
    #[must_use]
    pub fn at_branch(self) -> Self {
        match self.otherwise {
            Some(branch) => Self { reference: branch, otherwise: None, ..self },
            None => self,
        }
    }

    /// A chart of a repository, in a range.
    ///
    /// # Errors
    ///
    /// As [`Self::of_git`].
    pub fn of_chart(repository: &str, name: &str, range: Option<&str>) -> Result<Self, String> {
        if name.is_empty() {
            return Err("it does not say the name of its chart".to_owned());
        }
        let (text, prerelease) = dependency_reference(repository, name, range)?;
        Ok(Self { prerelease, ..Self::parse(&text)? })
    }

    /// What a reference means.
    ///
    /// # Errors
    ///
    /// When the text is no reference: the reason.
    fn parse(text: &str) -> Result<Self, String> {
        let read = Reference::parse(text).map_err(|error| brief(&error.to_string()).into_owned());
        read.map(Self::new)
    }

    /// Another folder of the same repository, at what is in use: `own` is the folder that this one is. Its version counts there, too, if
    /// it is one of the whole repository.
    fn beside(
        &self,
        own: &str,
        folder: &str,
        in_use: Option<InUse>,
        is_of_repository: bool,
    ) -> Result<Self, String> {
        let text = self.reference.as_str();
        let (place, version) = text.split_once('#').unwrap_or((text, ""));
        let Some(repository) = place.strip_suffix(own) else {
            return Err(format!(
                "it is the folder `{folder}` of a repository that mu cannot tell from `{text}`"
            ));
        };
        let place = format!("{}/{folder}", repository.trim_end_matches('/'));
        let (version, otherwise) = match &in_use {
            Some(InUse::Commit(commit)) if !is_of_repository => (commit.as_str(), None),
            _ => (version, self.otherwise.as_ref()),
        };
        let version = if version.is_empty() { String::new() } else { format!("#{version}") };
        let found = Self::parse(&format!("{}{version}", place.trim_end_matches('/')))?;
        let otherwise = otherwise.map(|other| found.reference.with_version(Some(other.spec())));
        Ok(Self { otherwise, ..found.at(in_use) })
    }

    /// With what is in use.
    #[must_use]
    fn at(self, in_use: Option<InUse>) -> Self {
        Self { in_use, ..self }
    }

    /// With what has no counterpart.
    #[must_use]
    fn without(mut self, what: impl IntoIterator<Item = &'static str>) -> Self {
        self.left_out.extend(what.into_iter().map(str::to_owned));
        self
    }
}

/// Hosts of which everybody knows that the first two segments are a repository.
const KNOWN_HOSTS: [&str; 4] = ["github.com", "gitlab.com", "bitbucket.org", "codeberg.org"];

/// The shortest reference to a place in a Git repository.
fn shortest(place: &str) -> String {
    known(place).unwrap_or_else(|| git_reference(place))
}

/// A place in a repository at a host of which its kind is known, so that nothing else has to be said.
fn known(place: &str) -> Option<String> {
    let rest = place.strip_prefix("https://")?;
    let mut segments = rest.split('/');
    let [host, owner, repository] = [segments.next()?, segments.next()?, segments.next()?];
    // In a group of groups, the repository is a later segment.
    let is_plain = !rest.contains(['@', '?']) && segments.clone().all(|one| !one.ends_with(".git"));
    if !KNOWN_HOSTS.contains(&host) || !is_plain {
        return None;
    }
    let repository = repository.strip_suffix(".git").unwrap_or(repository);
    let mut text = format!("https://{host}/{owner}/{repository}");
    segments.for_each(|one| text.extend(["/", one]));
    Some(text)
}

/// A range of semantic versions, if mu reads it the same way.
fn range_of(constraints: &str) -> Option<String> {
    let spec = VersionSpec::parse(constraints.trim()).ok()?;
    matches!(spec, VersionSpec::Range(_) | VersionSpec::Pin(_) | VersionSpec::Latest)
        .then(|| spec.to_string())
}

/// Which line of a text a value is in.
fn line_of(text: &str, node: &Node<'_>) -> usize {
    line_at_offset(text, node.span.start)
}

/// Reads what `shape` declares of the first document of the text of `file`, and what its keys are that the format does not have.
fn read<'t, T>(
    file: &str,
    text: &'t str,
    shape: &'static Shape,
    make: impl FnOnce(&Node<'t>) -> Result<T, Fault>,
) -> Result<(T, Vec<String>), FormatError> {
    let read = || -> Result<_, Fault> {
        let (root, unknown) = reader::read_all(text, shape)?;
        if !root.is_map() {
            return Err(root.fault("expected keys and values"));
        }
        let unknown = unknown.check(false)?;
        Ok((make(&root)?, unknown))
    };
    read().map_err(|fault| FormatError::new(file, text, fault))
}

/// Reads what `shape` declares of every document of a text, one after the other.
fn read_documents<'t>(
    file: &str,
    text: &'t str,
    shape: &'static Shape,
    take: &mut dyn FnMut(Node<'t>),
) -> Result<Vec<String>, FormatError> {
    let mut unknown = Vec::new();
    let mut values = Values::default();
    let mut faults = Vec::new();
    reader::documents(text, shape, &mut values, &mut |node, keys| {
        match keys.check(false) {
            Ok(keys) => unknown.extend(keys),
            Err(fault) => faults.push(fault),
        }
        take(node);
    })
    .map_err(|(_, fault)| FormatError::new(file, text, fault))?;
    match faults.into_iter().next() {
        Some(fault) => Err(FormatError::new(file, text, fault)),
        None => Ok(unknown),
    }
}

#[cfg(test)]
mod tests;
