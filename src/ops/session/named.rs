//! Packages as a command line names them, and which commands do something with a version there.
//!
//! Whoever wants the package of an argument has to say what becomes of a version after it: [`PackageName::without_version`] refuses one,
//! with the command that takes it, and [`PackageName::with_version`] hands it over. So no command drops one in silence.

use crate::ops::session::error::quoted_for_shell;
use crate::ops::{Code, CommandError};
use crate::reference::{Reference, VersionSpec};

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
    ///
    /// # Errors
    ///
    /// When it has a version, or is not a reference.
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
    ///
    /// # Errors
    ///
    /// As [`Self::without_version`].
    pub fn all_alone(texts: &[String], purpose: Purpose) -> Result<Vec<Self>, CommandError> {
        texts.iter().map(|text| Self::without_version(text, purpose)).collect()
    }

    /// Reads an argument whose version, if it has one, the caller uses.
    ///
    /// # Errors
    ///
    /// When it is not a reference.
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
