//! The conditions of a command line on versions: channel, app version, revision and prereleases.
//!
//! Channel and app version are requirements like others. A revision is not, because no manifest can require
//! one: mu requires the newest version that has it instead.

use crate::index::releases::{Position, Releases};
use crate::index::{Requirement, Universe as _};
use crate::manifest;
use crate::ops::explain::failure::unavailable_error;
pub use crate::ops::requirements::supposition::Narrowing;
use crate::ops::session::error::quoted_for_shell;
use crate::ops::{Code, CommandError, Session};
use crate::reference::{PackageId, Version, VersionSpec};
use crate::select::incompatibilities;

impl Narrowing {
    /// Whether it leaves everything as it is.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// A dependency on the newest version with the revision, if one is given; otherwise the dependency as it
    /// is.
    pub(crate) fn at_revision(
        &self,
        session: &Session,
        dependency: manifest::Requirement,
    ) -> Result<manifest::Requirement, CommandError> {
        if self.revision.is_none() || dependency.reference.local().is_some() {
            return Ok(dependency);
        }
        let id = session.id_of_argument(&dependency.reference);
        session.index().declare(&id, &dependency.reference, &session.environment.current);
        let asked = Requirement::new(id.clone(), dependency.reference.spec());
        let newest = self.newest(session, &id, &[&asked])?;
        let reference = dependency.reference.with_version(Some(VersionSpec::exactly(&newest)));
        // The version already satisfies the conditions.
        Ok(manifest::Requirement { reference, app_version: None, ..dependency })
    }

    /// The newest version of a package that satisfies the conditions, and that all of `asked` accept.
    pub(crate) fn newest(
        &self,
        session: &Session,
        id: &PackageId,
        asked: &[&Requirement],
    ) -> Result<Version, CommandError> {
        let revision = self.revision.as_deref().map(RevisionPrefix::parse).transpose()?;
        let index = session.index();
        let releases = index.releases(id).map_err(|error| unavailable_error(session, error))?;
        let apps = releases.app_versioning();
        let runtime = &session.workspace.settings.runtime;
        let own = Version::parse(env!("CARGO_PKG_VERSION")).ok();
        // Who names a version exactly wants it, although it was withdrawn.
        let is_exact = asked.iter().any(|one| matches!(one.spec, VersionSpec::Pin(_)));
        // The same conditions that selection has, since what is found here is then required exactly: it must not be
        // refused afterwards.
        let fits = |position: &Position| {
            let version = releases.version(*position);
            let details = releases.details(*position);
            let is_asked = asked
                .iter()
                .all(|one| one.spec.accepts(&version, self.prereleases || one.prerelease));
            let of_app = self.app_version.as_ref().is_none_or(|wanted| {
                let app = releases.app_version(*position);
                app.is_some_and(|app| apps.accepts(wanted, app))
            });
            let in_channel = self.channel.as_ref().is_none_or(|channel| {
                details.is_some_and(|details| details.channels.contains(channel))
            });
            let can_be_used = details.is_none_or(|details| {
                (is_exact || details.yanked.is_none())
                    && incompatibilities(details, runtime, own.as_ref()).next().is_none()
            });
            let of_revision = revision.as_ref().is_none_or(|wanted| wanted.accepts(&version));
            is_asked && of_app && in_channel && can_be_used && of_revision
        };
        let mut fitting = (0..releases.len()).rev().filter(fits);
        // `1.28` is any version that begins so, unless one was published by just that name.
        let is_named = |version: &Version| {
            let name = version.to_string();
            asked.iter().any(|one| one.spec.as_str().trim_start_matches('v') == name)
        };
        let named = fitting.clone().find(|at| is_named(&releases.version(*at)));
        match named.or_else(|| fitting.next()) {
            Some(newest) => Ok(releases.version(newest)),
            None => Err(self.missing(session, &releases, asked)),
        }
    }

    fn missing(
        &self,
        session: &Session,
        releases: &Releases,
        asked: &[&Requirement],
    ) -> CommandError {
        let id = releases.id();
        let words = [
            self.app_version.as_ref().map(|app| format!("of app version {app}")),
            self.revision.as_ref().map(|revision| format!("of revision {revision}")),
            self.channel.as_ref().map(|channel| format!("in channel {channel}")),
        ];
        // The last one is what the command was given.
        let own = asked.last().map(|one| &one.spec).filter(|spec| **spec != VersionSpec::Latest);
        let own = own.map(ToString::to_string);
        let words: Vec<String> = own.into_iter().chain(words.into_iter().flatten()).collect();
        let message = format!(
            "`{id}` has no version {} that can be used and fits what is required of it",
            words.join(" and ")
        );
        let name = quoted_for_shell(&session.short_name(id));
        let error = CommandError::new(Code::NotFound, message);
        error.hint(format!("`mu versions {name}` shows which versions there are"))
    }
}

/// A revision, or its first numbers: the second part of a composite version, or the whole of any other
/// version.
#[derive(Debug, Clone)]
pub(crate) struct RevisionPrefix(VersionSpec);

impl RevisionPrefix {
    /// Reads a revision.
    pub(crate) fn parse(text: &str) -> Result<Self, CommandError> {
        match VersionSpec::parse(text) {
            Ok(spec @ (VersionSpec::Pin(_) | VersionSpec::Range(_))) => Ok(Self(spec)),
            Ok(_) => Err(CommandError::new(
                Code::Usage,
                format!(
                    "--revision takes a version such as 1.2.0, or the first numbers of one, not `{text}`"
                ),
            )),
            Err(error) => Err(CommandError::new(Code::Usage, format!("--revision: {error}"))),
        }
    }

    /// Whether a version is of this revision.
    pub(crate) fn accepts(&self, version: &Version) -> bool {
        match version.revision() {
            Some(revision) => Version::parse_lenient(revision)
                .is_ok_and(|revision| self.0.accepts(&revision, true)),
            None => self.0.accepts(version, true),
        }
    }
}

/// The error of conditions in a command that names no packages.
pub(crate) fn without_packages(example: &str) -> CommandError {
    let message =
        "--app-version, --revision, --channel and --pre need the packages that they are about";
    CommandError::new(Code::Usage, message).hint(format!("name them, such as `{example}`"))
}
