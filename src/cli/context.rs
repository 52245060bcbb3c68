//! What every command gets, and how its answer is printed: as a JSON document, or as text for people.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::global::Global;
use crate::env::Environment;
use crate::ops::session::open_to_ask;
#[cfg(feature = "git")]
use crate::ops::session::open_to_end;
use crate::ops::{ChangeLock, CommandError, Events, OperationScope, Options, Session, View};
use crate::reference::PackageId;
use crate::report::{Shell, Table};

/// The server of hubs, if this program has one.
#[cfg(feature = "publish")]
pub(crate) type Server = Option<crate::ops::hub::Serve>;

/// Without hubs to publish to, there is none to serve.
#[cfg(not(feature = "publish"))]
pub(crate) type Server = ();

/// Everything that a command needs to run.
pub(crate) struct Context {
    pub(crate) environment: Environment,
    pub(crate) global: Global,
    pub(crate) shell: Arc<Shell>,
    pub(crate) server: Server,
    pub(crate) own: OwnOptions,
}

/// The options of sessions that only some commands set.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OwnOptions {
    /// Do not install what only `devDependencies` need.
    pub(crate) no_dev: bool,
    /// Find out when versions were published, because the answer says it.
    pub(crate) dated: bool,
}

/// Why a command ended early.
pub(crate) enum Stop {
    /// It failed.
    Failed(Box<CommandError>),
    /// Its output was closed.
    Closed(std::io::Error),
}

impl<E: Into<CommandError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(Box::new(error.into()))
    }
}

/// How a command ends: with an exit status, or early.
pub(crate) type CommandExit = Result<u8, Stop>;

impl Context {
    /// The context of a command with options of its own.
    pub(crate) fn with_own_options(&self, own: OwnOptions) -> Self {
        let (environment, global) = (self.environment.clone(), self.global.clone());
        Self { environment, global, shell: Arc::clone(&self.shell), server: self.server, own }
    }

    /// Opens the workspace, or the global packs, for reading.
    pub(crate) fn open(&self, scope: OperationScope) -> Result<Session, CommandError> {
        Session::open(self.environment.clone(), self.options()?, scope, self.events())
    }

    /// Opens the workspace for a question about packages elsewhere, also if its own cannot be read.
    pub(crate) fn open_asking_session(&self) -> Result<Session, CommandError> {
        open_to_ask(self.environment.clone(), self.options()?, self.events())
    }

    /// Opens the workspace only for its settings.
    pub(crate) fn open_settings_session(&self) -> Result<Session, CommandError> {
        self.open_settings_of(OperationScope::Workspace)
    }

    /// Opens the workspace or the user's own folder for its settings alone.
    pub(crate) fn open_settings_of(&self, scope: OperationScope) -> Result<Session, CommandError> {
        Session::open_settings(self.environment.clone(), self.options()?, scope, self.events())
    }

    /// Opens the workspace, or the global packs, with an exclusive lock.
    pub(crate) fn open_changing_session(
        &self,
        scope: OperationScope,
    ) -> Result<Session, CommandError> {
        Session::open_to_change(self.environment.clone(), self.options()?, scope, self.events())
    }

    /// The options of the command line and the environment.
    pub(crate) fn options(&self) -> Result<Options, CommandError> {
        let OwnOptions { no_dev, dated } = self.own;
        Ok(Options { no_dev, dated, ..self.global.operation_options(&self.environment)? })
    }

    fn events(&self) -> Arc<dyn Events> {
        Arc::clone(&self.shell) as Arc<dyn Events>
    }

    /// Opens to say what a command would change.
    fn open_dry(&self, scope: OperationScope, view: View) -> Result<Session, CommandError> {
        let session = self.open_in(scope, view)?;
        session.refuse_unread()?;
        Ok(session)
    }

    /// Keeps other processes from changing the files of the workspace, or those of the user, until what is returned is dropped. To be
    /// called before a session is opened that changes them without `open_changing_session`.
    pub(crate) fn keep_others_away(&self, global: bool) -> Result<ChangeLock, CommandError> {
        let scope = OperationScope::from_global_flag(global);
        ChangeLock::of_files(&self.environment, scope, &*self.events())
    }

    /// Opens for a command that changes something, except in a dry run.
    pub(crate) fn open_for(
        &self,
        scope: OperationScope,
        dry_run: bool,
    ) -> Result<Session, CommandError> {
        match dry_run {
            true => self.open_dry(scope, View::Team),
            false => self.open_changing_session(scope),
        }
    }

    /// Opens to end edits: also where nothing may be installed with them, or a manifest in one of them is broken.
    #[cfg(feature = "git")]
    pub(crate) fn open_to_end(&self) -> Result<Session, CommandError> {
        let options = Options { view: Some(View::Here), ..self.options()? };
        open_to_end(self.environment.clone(), options, self.events())
    }

    /// Opens the workspace for reading, in a view.
    pub(crate) fn open_in(
        &self,
        scope: OperationScope,
        view: View,
    ) -> Result<Session, CommandError> {
        let options = Options { view: Some(view), ..self.options()? };
        Session::open(self.environment.clone(), options, scope, self.events())
    }

    /// Opens for a command that changes the manifest of this package, or of the one around the current folder.
    pub(crate) fn open_for_manifest(
        &self,
        scope: OperationScope,
        package: Option<&str>,
        dry_run: bool,
    ) -> Result<Session, CommandError> {
        let view = View::Around(package.map(str::to_owned));
        if dry_run {
            return self.open_dry(scope, view);
        }
        let options = Options { view: Some(view), ..self.options()? };
        Session::open_to_change(self.environment.clone(), options, scope, self.events())
    }

    /// A text with the names of packages as people write them here.
    pub(crate) fn short<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.shell.short(text)
    }

    /// The name of a package in the answer.
    pub(crate) fn name<'i>(&'i self, id: &'i PackageId) -> Cow<'i, str> {
        self.shell.name(id)
    }

    /// Prints a line of the answer.
    pub(crate) fn line(&self, text: &str) -> Result<(), Stop> {
        self.shell.line(text).map_err(Stop::Closed)
    }

    /// Prints text of the answer.
    pub(crate) fn print(&self, text: &str) -> Result<(), Stop> {
        self.shell.print(text).map_err(Stop::Closed)
    }

    /// Prints the answer as a JSON document.
    pub(crate) fn json<A: Serialize + JsonSchema>(&self, answer: &A) -> CommandExit {
        self.shell.json(answer).map_err(Stop::Closed)?;
        Ok(0)
    }

    /// Prints the answer: as a JSON document, or as `print` does for people.
    pub(crate) fn answer<A: Serialize + JsonSchema>(
        &self,
        answer: &A,
        print: impl FnOnce(&A) -> Result<(), Stop>,
    ) -> CommandExit {
        if self.shell.is_json() {
            return self.json(answer);
        }
        print(answer)?;
        Ok(0)
    }

    /// Prints the answer of checks, and fails if one of them did: the error has the answer as its `details`.
    pub(crate) fn answer_checks<A: Serialize + JsonSchema>(
        &self,
        answer: &A,
        failure: Option<CommandError>,
        print: impl FnOnce(&A) -> Result<(), Stop>,
    ) -> CommandExit {
        let Some(error) = failure else { return self.answer(answer, print) };
        if !self.shell.is_json() {
            print(answer)?;
        }
        Err(error.with_details(answer).into())
    }

    /// Prints a table, or a message if it is empty.
    pub(crate) fn table(&self, table: &Table, empty: &str) -> Result<(), Stop> {
        if table.is_empty() {
            self.shell.status(empty);
            return Ok(());
        }
        self.print_table(table)
    }

    /// Prints a table, as wide as the terminal is.
    pub(crate) fn print_table(&self, table: &Table) -> Result<(), Stop> {
        self.print(&table.render(self.shell.columns()))
    }

    /// A path for people: relative to the current folder, if it is below.
    pub(crate) fn path_for_people(&self, path: &Path) -> String {
        path.strip_prefix(&self.environment.current).unwrap_or(path).display().to_string()
    }
}

/// An answer that is a list of packages.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Packages<P> {
    /// The packages.
    pub(crate) packages: Vec<P>,
}
