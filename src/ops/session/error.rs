//! The error of every operation: a code that programs can rely on, the error itself, and hints.
//!
//! The error types of all modules are converted here. [`crate::report`] prints it.

use std::error::Error;
use std::fmt;

use mu_provider::{ErrorKind, ProviderError, causes};
use schemars::JsonSchema;
use serde::Serialize;

use crate::fs::FileError;
use crate::lock::LockError;
use crate::manifest::ManifestError;
use crate::manifest::edit::EditError;
use crate::manifest::source::SourceError;
use crate::packs::PacksError;
use crate::reference::ReferenceError;
use crate::reference::pasted;
use crate::search::SearchError;
use crate::store::TreeStoreError;
use crate::trust::TrustError;
use crate::workspace::edits::EditsError;
use crate::workspace::{CONFIG_FILE, ForeignError, WORKSPACE_FILE, WorkspaceError};

/// The stable word for what went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// A reference cannot be read.
    Reference,
    /// A manifest cannot be read or edited.
    Manifest,
    /// A workspace's settings or members are wrong.
    Workspace,
    /// The lock would have to change, and `--locked` forbids it.
    LockOutdated,
    /// There is no such package, version, tag or commit.
    NotFound,
    /// No versions fit together.
    NoSolution,
    /// Content is not what was promised, or breaks the rules for hostile content.
    Integrity,
    /// A place could not be reached.
    Network,
    /// A place requires credentials, or refused those it got.
    Auth,
    /// The network is needed, and `--offline` forbids it.
    Offline,
    /// Something that mu will not overwrite is in the way.
    Conflict,
    /// A file operation failed.
    Io,
    /// The command line is not valid.
    Usage,
    /// Something that is not trusted would have to be.
    Untrusted,
    /// A provider plugin broke its protocol, was silent, or died.
    Plugin,
}

impl Code {
    /// The exit status: 2 for usage, 1 for everything else.
    pub fn exit_status(self) -> u8 {
        if self == Self::Usage { 2 } else { 1 }
    }
}

/// A failed operation.
#[derive(Debug)]
pub struct CommandError {
    /// What went wrong, for programs.
    pub code: Code,
    /// What went wrong, with its causes.
    pub error: Box<dyn Error + Send + Sync>,
    /// What the user can do.
    pub hints: Vec<String>,
    /// Facts for programs; `null` if there are none.
    pub details: serde_json::Value,
}

impl CommandError {
    /// Creates an error with a message.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self::from_error(code, Box::<dyn Error + Send + Sync>::from(message.into()))
    }

    /// An error around another.
    pub fn from_error(code: Code, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { code, error: error.into(), hints: Vec::new(), details: serde_json::Value::Null }
    }

    /// Adds something that the user can do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Removes the ways out from a choice of versions that failed: their commands are for a workspace with these
    /// requirements on this machine.
    #[must_use]
    #[cfg(feature = "publish")]
    pub(crate) fn without_ways_out(mut self) -> Self {
        if matches!(self.code, Code::NoSolution | Code::NotFound) {
            self.hints.clear();
            if let Some(details) = self.details.as_object_mut() {
                details.remove("waysOut");
            }
        }
        self
    }

    /// Adds facts for programs.
    #[must_use]
    pub fn with_details(mut self, details: impl Serialize) -> Self {
        self.details = serde_json::to_value(details).expect("facts are texts, numbers and lists");
        self
    }

    /// An error in the text of a file.
    fn in_file(code: Code, error: SourceError) -> Self {
        let details = place(&error);
        Self::from_error(code, error).with_details(details)
    }

    /// The mistake in a file that caused it, if there is one.
    pub(crate) fn in_source(&self) -> Option<&SourceError> {
        causes(&*self.error).find_map(|error| error.downcast_ref())
    }

    /// Adds what was being done when it happened.
    #[must_use]
    pub fn while_doing(self, what: impl Into<String>) -> Self {
        let error = Context { what: what.into(), source: self.error };
        Self { error: Box::new(error), ..self }
    }
}

/// Where a mistake in a file is, for programs.
pub(crate) fn place(error: &SourceError) -> serde_json::Value {
    serde_json::json!({
        "path": error.path().display().to_string(),
        "line": error.line(),
        "column": error.column(),
    })
}

/// An error with its causes, in one line. What was said before is not repeated.
pub(crate) fn in_one_line(error: &(dyn Error + 'static)) -> String {
    let texts = causes(error).map(ToString::to_string);
    let joined = texts.reduce(|text, cause| match text.contains(&cause) {
        true => text,
        false => format!("{text}: {cause}"),
    });
    joined.unwrap_or_default()
}

/// A message in front of the error that caused it.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
struct Context {
    what: String,
    source: Box<dyn Error + Send + Sync>,
}

impl fmt::Display for CommandError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, formatter)
    }
}

impl From<FileError> for CommandError {
    fn from(error: FileError) -> Self {
        // A link is no failure of the disk: whoever has prepared this folder has put it there.
        match error.is_link() {
            true => Self::from_error(Code::Untrusted, error)
                .hint("replace the link by what it leads to, or remove it"),
            false => Self::from_error(Code::Io, error),
        }
    }
}

impl From<ReferenceError> for CommandError {
    fn from(error: ReferenceError) -> Self {
        let details = serde_json::json!({ "text": error.text(), "offset": error.span().start });
        let help = pasted::help(&error);
        let command = Self::from_error(Code::Reference, error).with_details(details);
        help.into_iter().fold(command, Self::hint)
    }
}

impl From<SourceError> for CommandError {
    fn from(error: SourceError) -> Self {
        Self::in_file(Code::Manifest, error)
    }
}

impl From<ManifestError> for CommandError {
    fn from(error: ManifestError) -> Self {
        match error {
            ManifestError::Source(error) => error.into(),
            ManifestError::Folder { .. } => Self::from_error(Code::Manifest, error)
                .hint("rename the folder, or move it to another place"),
            other => Self::from_error(Code::Manifest, other),
        }
    }
}

impl From<WorkspaceError> for CommandError {
    fn from(error: WorkspaceError) -> Self {
        match error {
            WorkspaceError::Manifest(ManifestError::Source(error)) => {
                // Settings and manifests are read by one parser. Only the file tells which of them is wrong.
                let is_settings =
                    [WORKSPACE_FILE, CONFIG_FILE].iter().any(|name| error.path().ends_with(name));
                Self::in_file(if is_settings { Code::Workspace } else { Code::Manifest }, error)
            }
            WorkspaceError::Manifest(error) => error.into(),
            WorkspaceError::Foreign(error) => foreign(error),
            WorkspaceError::Edits(error) => error.into(),
            WorkspaceError::Repeated { .. } => Self::from_error(Code::Workspace, error).hint(
                "rename one of them, or leave one out with `members` in `.mu/workspace.yaml`",
            ),
        }
    }
}

/// The error of a folder that mu refuses as a workspace, with what to do.
fn foreign(error: ForeignError) -> CommandError {
    let hints = match &error {
        ForeignError::Link { .. } => {
            vec!["remove the link, or put the file or folder itself there".to_owned()]
        }
        ForeignError::Kind { .. } => vec!["move it away, and run the command again".to_owned()],
        ForeignError::Owner { root, .. } => {
            let list =
                quoted_for_shell(&serde_json::json!([root.display().to_string()]).to_string());
            vec![
                format!(
                    "if you trust its owner: `mu config set --global trust.workspaces {list}`, together with those that are in `~/.mu/{CONFIG_FILE}`"
                ),
                "to work beside it, run `mu init --workspace` in a folder of your own".to_owned(),
            ]
        }
    };
    CommandError { hints, ..CommandError::from_error(Code::Untrusted, error) }
}

impl From<TrustError> for CommandError {
    fn from(error: TrustError) -> Self {
        match error {
            // A place that cannot be asked says so itself: it is never one without signatures.
            TrustError::Provider(error) => error.into(),
            TrustError::Store(error) => error.into(),
            TrustError::Signer { .. } | TrustError::Root { .. } => {
                Self::from_error(Code::Workspace, error)
            }
        }
    }
}

impl From<LockError> for CommandError {
    fn from(error: LockError) -> Self {
        match error {
            LockError::File(error) => error.into(),
            LockError::Newer { version, .. } => Self::from_error(Code::Workspace, error)
                .hint(format!("install a mu that reads lock format {version}")),
            LockError::Source(error) => Self::in_file(Code::Workspace, error),
            LockError::Foreign(error) => foreign(error),
        }
    }
}

impl From<EditsError> for CommandError {
    fn from(error: EditsError) -> Self {
        match error {
            EditsError::File(error) => error.into(),
            EditsError::Foreign(error) => foreign(error),
            EditsError::Damaged { .. } => Self::from_error(Code::Workspace, error)
                .hint("move it away: the clones that it names stay"),
        }
    }
}

impl From<ProviderError> for CommandError {
    fn from(error: ProviderError) -> Self {
        let code = code_of(error.kind());
        let hints = error.hints().to_vec();
        Self { hints, ..Self::from_error(code, error) }
    }
}

impl From<TreeStoreError> for CommandError {
    fn from(error: TreeStoreError) -> Self {
        match error {
            TreeStoreError::Provider(error) => error.into(),
            TreeStoreError::File(error) => error.into(),
            TreeStoreError::Mismatch { .. } => Self::from_error(Code::Integrity, error),
            TreeStoreError::Corrupt { .. } => Self::from_error(Code::Integrity, error).hint(
                "`mu verify --store` names all that was changed; `mu get` without `--store-readonly` fetches it again",
            ),
            TreeStoreError::ReadOnly { .. } => Self::from_error(Code::NotFound, error)
                .hint("run `mu fetch` with the same Mu.lock where the store can be written"),
        }
    }
}

impl From<PacksError> for CommandError {
    fn from(error: PacksError) -> Self {
        match error {
            PacksError::File(error) => error.into(),
            PacksError::Store(error) => error.into(),
            PacksError::NotOwn { ref id, .. } => {
                let hint = format!("to keep a change, use `mu patch {id}`, or a package folder of your own in the workspace");
                Self::from_error(Code::Conflict, error)
                    .hint("move the folder away, or delete it, and run the command again")
                    .hint(hint)
            }
            PacksError::InTheWay { ref path, ref others, .. } if !others.is_empty() => {
                let folders = [path].into_iter().chain(others).map(|path| quoted_for_shell(&path.display().to_string()));
                let folders = folders.collect::<Vec<_>>().join(" ");
                Self::from_error(Code::Conflict, error)
                    .hint(format!("move the folders away, or delete them (`rm -r {folders}`), and run the command again"))
            }
            PacksError::InTheWay { .. } | PacksError::Inside { .. } => Self::from_error(Code::Conflict, error)
                .hint("move the folder away, or delete it, and run the command again"),
            PacksError::NoFolder { .. } => Self::from_error(Code::Conflict, error)
                .hint("move the file away, or delete it, and run the command again"),
            PacksError::Changed { .. } => Self::from_error(Code::Integrity, error)
                .hint("nothing was installed; if the change is intended, publish it, or keep the package in the workspace")
                .hint("to restore the package, delete the folder and run the command again"),
            PacksError::Link { .. } => Self::from_error(Code::Untrusted, error)
                .hint("remove the link, or put the folder itself there"),
            PacksError::Refused { .. } => Self::from_error(Code::Integrity, error),
            PacksError::NewerRecord { .. } => Self::from_error(Code::Workspace, error),
        }
    }
}

/// The code for a provider's error.
pub fn code_of(kind: ErrorKind) -> Code {
    match kind {
        ErrorKind::NotFound => Code::NotFound,
        ErrorKind::Auth => Code::Auth,
        ErrorKind::Integrity => Code::Integrity,
        ErrorKind::Offline => Code::Offline,
        ErrorKind::Refused => Code::Untrusted,
        ErrorKind::Manifest => Code::Manifest,
        ErrorKind::Plugin => Code::Plugin,
        ErrorKind::Io => Code::Io,
        // Everything else is about a connection, or an answer that makes no sense: another attempt may succeed.
        _ => Code::Network,
    }
}

impl From<EditError> for CommandError {
    fn from(error: EditError) -> Self {
        match error {
            EditError::Source(error) => error.into(),
            EditError::Refused { ref path, ref help, .. } => {
                let (path, help) = (path.display().to_string(), help.clone());
                let refused = Self::from_error(Code::Manifest, error);
                let refused = refused.with_details(serde_json::json!({ "path": path }));
                help.into_iter().fold(refused, Self::hint)
            }
            EditError::Unsafe { .. } => {
                Self::from_error(Code::Manifest, error).hint("make the change by hand")
            }
        }
    }
}

impl From<SearchError> for CommandError {
    fn from(error: SearchError) -> Self {
        let hints = error.search_hints();
        Self { hints, ..Self::from_error(Code::NotFound, error) }
    }
}

/// A word of a command line, in quotes if a shell might interpret it: zsh can treat `#`, `^` and `~` as
/// patterns, and cmd.exe removes `^`.
pub(crate) fn quoted_for_shell(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/.-_:@+=".contains(c);
    // In zsh, `=word` is the path of a program.
    if !word.is_empty() && !word.starts_with('=') && word.chars().all(is_plain) {
        return word.to_owned();
    }
    // Inside single quotes, nothing can stand for a single quote, so it ends them: `it's` is `'it'\''s'`.
    format!("'{}'", word.replace('\'', r"'\''"))
}
