//! What a command line names: packages, with or without a version, and the manifest that a command edits.
//!
//! Whoever wants the package of an argument has to say what becomes of a version after it:
//! [`PackageName::without_version`] refuses one, with the command that takes it, and [`PackageName::with_version`]
//! hands it over. So no command drops one in silence. The manifest is that of the package with the given name, id or
//! folder, or of the one around the current folder. Nothing is looked up in the lock or a registry.

use std::path::Path;

use crate::manifest::Manifest;
use crate::ops::session::error::quoted_for_shell;
use crate::ops::{Code, CommandError, Session};
use crate::reference::{Reference, VersionSpec};
use crate::workspace::{Member, Workspace};

/// A package as a command line names it, without a version.
#[derive(Debug, Clone)]
pub struct PackageName {
    text: String,
    reference: Reference,
}

/// What a package is named for by an argument that has no place for a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// `mu remove`.
    Remove,
    /// `mu why`.
    Why,
    /// `mu tree`.
    Tree,
    /// `mu tree --invert`.
    Invert,
    /// `mu resolve --without`.
    Without,
    /// `mu unpin`.
    Unpin,
    /// `mu build`.
    Build,
    /// `mu verify`.
    Verify,
    /// `mu edit`.
    Edit,
    /// `mu edit --done`.
    Done,
    /// A package of the workspace, whose version is in its manifest.
    Member,
}

impl Purpose {
    /// What the argument is for, and what to run instead: first without the version, then with it. `{name}` stands for the
    /// package, and `{version}` for the package with the version.
    fn words(self) -> (&'static str, &'static [&'static str]) {
        const ASK: &str =
            "`mu resolve --with {version} --explain` shows what that version would change";
        // Where some command takes the version, it is the second one. Where none does, the person wants to know what that
        // version would change.
        match self {
            Self::Remove => (
                "`mu remove` removes a package in whatever version it is",
                &[
                    "`mu remove {name}` removes it",
                    "`mu update {version}` moves it to that version",
                ],
            ),
            Self::Why => (
                "`mu why` is about the version that is in use",
                &["`mu why {name}` explains that one", ASK],
            ),
            Self::Tree => (
                "`mu tree` is about the version that is in use",
                &["`mu tree {name}` shows what that one needs", ASK],
            ),
            Self::Invert => (
                "`mu tree --invert` is about the version that is in use",
                &["`mu tree --invert {name}` shows what needs that one", ASK],
            ),
            Self::Without => (
                "`--without` leaves a package out in every version",
                &[
                    "`mu resolve --without {name}` does",
                    "`mu resolve --exclude {version}` leaves out that version",
                ],
            ),
            Self::Unpin => (
                "`mu unpin` restores what was there before the pin",
                &["`mu unpin {name}` does", "`mu pin {version}` pins that version"],
            ),
            Self::Build => (
                "`mu build` builds the version that is in use",
                &["`mu build {name}` does", "`mu update {version}` moves to that version first"],
            ),
            Self::Verify => (
                "`mu verify` checks the version that is in use",
                &["`mu verify {name}` does", "`mu update {version}` moves to that version first"],
            ),
            Self::Edit => (
                "`mu edit` begins with the version that is in use",
                &["`mu edit {name}` does", "`mu update {version}` moves to that version first"],
            ),
            Self::Done => (
                "`mu edit --done` ends the edit of a package, whatever its version",
                &["`mu edit --done {name}` does"],
            ),
            Self::Member => (
                "a package of the workspace has one version, the one in its manifest",
                &["name it alone: {name}"],
            ),
        }
    }
}

impl PackageName {
    /// Reads an argument that has no place for a version.
    pub fn without_version(text: &str, purpose: Purpose) -> Result<Self, CommandError> {
        let (name, version) = Self::with_version(text)?;
        let Some(version) = version else { return Ok(name) };
        let (reason, instead) = purpose.words();
        let message = format!("`{text}` names the version {version}, but {reason}");
        let (alone, whole) = (quoted_for_shell(name.reference.as_str()), quoted_for_shell(text));
        let hints =
            instead.iter().map(|hint| hint.replace("{name}", &alone).replace("{version}", &whole));
        Err(hints.fold(CommandError::new(Code::Usage, message), CommandError::hint))
    }

    /// Reads several arguments that have no place for a version.
    pub fn all_alone(texts: &[String], purpose: Purpose) -> Result<Vec<Self>, CommandError> {
        texts.iter().map(|text| Self::without_version(text, purpose)).collect()
    }

    /// Reads an argument whose version, if it has one, the caller uses.
    pub fn with_version(text: &str) -> Result<(Self, Option<VersionSpec>), CommandError> {
        let whole = Reference::parse(text)?;
        let reference = whole.with_version(None);
        let text = text.split('#').next().unwrap_or(text).to_owned();
        Ok((Self { text, reference }, whole.version().cloned()))
    }

    /// The package, as a reference.
    pub fn reference(&self) -> &Reference {
        &self.reference
    }

    /// The text, which may be the local name of a dependency.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// The place in the workspace's members of the package called `name` (by name, id or folder), or of
/// the one around the current folder. `example` is how the command names one, for hints.
pub(crate) fn target(
    session: &Session,
    name: Option<&str>,
    example: &str,
) -> Result<usize, CommandError> {
    let members = &session.workspace.members;
    if let Some(name) = name {
        // A path comes first, because a shell completes it: `lib` is the folder here, even if a package elsewhere is
        // called so.
        let folder = crate::env::absolute(&session.environment.current, Path::new(name));
        let is_there = |member: &Member| member.folder == folder || member.place == name;
        if let Some(found) = members.iter().position(is_there) {
            return Ok(found);
        }
        // A name with a version is refused with what to write instead. What is no reference at all gets the list of
        // names.
        let named = match PackageName::without_version(name, Purpose::Member) {
            Err(error) if error.code == Code::Usage => return Err(error),
            named => named.ok(),
        };
        let id = named.map(|named| named.reference().id(&session.reference_defaults()));
        return members.iter().position(|member| Some(&member.id) == id.as_ref()).ok_or_else(
            || {
                let message = format!("`{name}` is not a package of this workspace");
                CommandError::new(Code::NotFound, message)
                    .hint(format!("its packages are: {}", names(session)))
            },
        );
    }
    match (around(session)?, members.len()) {
        (Some(index), _) => Ok(index),
        (None, 1) => Ok(0),
        (None, 0) => Err(CommandError::new(
            Code::NotFound,
            format!("there is no package in `{}`", session.workspace.root.display()),
        )
        .hint("`mu init NAME` creates a package here")),
        (None, _) => Err(CommandError::new(
            Code::Usage,
            format!(
                "`{}` has several packages, and this folder is in none of them",
                session.workspace.root.display()
            ),
        )
        .hint(format!("name one, as in `{example}`: {}", names(session)))),
    }
}

/// The place in the workspace's members of the package around the current folder.
pub(crate) fn around(session: &Session) -> Result<Option<usize>, CommandError> {
    let Workspace { root, members, .. } = &session.workspace;
    let inside = session.environment.current.ancestors().take_while(|at| at.starts_with(root));
    for folder in inside {
        if let Some(index) = members.iter().position(|member| member.folder == folder) {
            return Ok(Some(index));
        }
        if let Ok(Some(path)) = Manifest::locate(folder) {
            return Err(left_out(&path, session));
        }
    }
    Ok(None)
}

fn left_out(path: &Path, session: &Session) -> CommandError {
    let message = format!("`{}` is not a package of this workspace", path.display());
    let error = CommandError::new(Code::Workspace, message);
    let why = path.parent().and_then(|folder| session.workspace.left_out.reason_left_out(folder));
    match why {
        Some(why) => error.hint(why.to_string()),
        None => error.hint("hidden folders are not searched for packages"),
    }
}

fn names(session: &Session) -> String {
    let names: Vec<String> = session
        .workspace
        .members
        .iter()
        .map(|member| format!("`{}`", member.manifest.name))
        .collect();
    names.join(", ")
}
