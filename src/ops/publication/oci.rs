//! Publishes into an OCI registry: `oci://HOST/PREFIX`, below which each package is a repository.
//!
//! `mu-provider-oci` decides what is pushed, and maintains the index there.

use jiff::Timestamp;
use mu_formats::helm;
use mu_hub::{HubError, Published};
use mu_provider::publishable::check_line;
use mu_provider::{Lead, Location, Release, SafeUrl, place_without_secrets};
use mu_provider_oci::{ForeignArtifact, OciProvider, Pushed, Writer};
use serde_json::{Map, Value};

use crate::ops::publication::lines::Mark;
use crate::ops::publication::target::Upload;
use crate::ops::session::providers::oci;
use crate::ops::{Code, CommandError, Session};
use crate::reference::PackageId;

/// A registry that takes packages.
pub(super) struct OciRegistry {
    provider: OciProvider,
    root: Lead,
    insecure: bool,
    now: Timestamp,
}

impl OciRegistry {
    /// The registry at `to`, without contacting it.
    ///
    /// # Errors
    ///
    /// When that is not a place in an OCI registry.
    pub(super) fn open(session: &Session, to: &str, insecure: bool) -> Result<Self, CommandError> {
        let rest = to.strip_prefix("oci://").unwrap_or(to);
        let url = SafeUrl::parse(&format!("https://{rest}")).map_err(|error| {
            let to = place_without_secrets(to);
            CommandError::new(Code::Usage, format!("`{to}` is not a URL: {error}"))
        })?;
        if url.may_hold_secret() || url.as_url().query().is_some() {
            let text = format!("`{url}` contains a password, which must not be in a URL");
            return Err(CommandError::new(Code::Usage, text)
                .hint(format!("`mu login {}` stores one", url.host_and_port())));
        }
        if url.as_url().fragment().is_some() {
            let text = format!("`{url}` is not a place in a registry: it has a `#`");
            return Err(CommandError::new(Code::Usage, text));
        }
        Ok(Self {
            provider: OciProvider::new(oci(&session.environment, &session.http())),
            root: Lead::of_user(url.as_folder()),
            insecure: insecure || session.options.allow_insecure,
            now: Timestamp::from_second(session.environment.now).unwrap_or_default(),
        })
    }

    /// The name of a package whose id is a place below this one.
    pub(super) fn own_name(&self, id: &PackageId) -> Option<String> {
        let root = self.root.to_string();
        let place = root.strip_prefix("https://")?;
        id.as_str().strip_prefix(place).filter(|name| !name.is_empty()).map(str::to_owned)
    }

    fn writer(&self, name: &str) -> Result<Writer, CommandError> {
        let mut location = Location::new(self.root.clone(), name);
        location.insecure = self.insecure;
        Ok(self.provider.writer(&location)?)
    }

    pub(super) fn publish(&self, upload: &Upload) -> Result<Published, CommandError> {
        check_line(&upload.line).map_err(|error| {
            let package = format!("{} {}", upload.name, upload.version);
            CommandError::new(Code::Manifest, format!("{package} cannot be published: {error}"))
        })?;
        let writer = self.writer(&upload.name)?;
        let pushed = writer.publish(&upload.line, &upload.version, &upload.archive)?;
        let offered = upload.line.get("digest").and_then(Value::as_str).unwrap_or_default();
        published(pushed, format!("{} {}", upload.name, upload.version), offered.to_owned())
    }

    /// Copies an artifact of another ecosystem as it is.
    pub(super) fn copy(
        &self,
        from: &Location,
        release: &Release,
        line: &Map<String, Value>,
        name: &str,
    ) -> Result<Published, CommandError> {
        let copied = self.writer(name)?.copy(&self.provider, from, release, line)?;
        let offered = release.archive.clone().unwrap_or_default();
        published(copied, format!("{name} {}", release.version), offered)
    }

    /// Pushes the archive of a chart as Helm does.
    pub(super) fn push_chart(
        &self,
        chart: &helm::Pushed,
        archive: &[u8],
        provenance: Option<&[u8]>,
        line: &Map<String, Value>,
        name: &str,
    ) -> Result<Published, CommandError> {
        let helm::Pushed { version, config: (kind, config), content, annotations } = chart;
        let artifact = ForeignArtifact {
            version: version.clone(),
            config: (kind, config),
            layer: (content, archive),
            beside: provenance.into_iter().map(|bytes| (helm::PROVENANCE, bytes)).collect(),
            annotations: annotations.clone(),
        };
        let offered = mu_provider_oci::wire::digest(archive);
        let pushed = self.writer(name)?.push_foreign(&artifact, line)?;
        published(pushed, format!("{name} {version}"), offered)
    }

    pub(super) fn lines(&self, name: &str) -> Result<Vec<Map<String, Value>>, CommandError> {
        Ok(self.writer(name)?.lines()?)
    }

    pub(super) fn line(
        &self,
        name: &str,
        version: &str,
    ) -> Result<Option<Map<String, Value>>, CommandError> {
        Ok(self.writer(name)?.line(version)?)
    }

    pub(super) fn mark(
        &self,
        name: &str,
        version: &str,
        mark: Mark<'_>,
    ) -> Result<bool, CommandError> {
        mark.check()?;
        let (writer, now) = (self.writer(name)?, self.now);
        Ok(match mark {
            Mark::Yanked(reason) => writer.yank(version, reason, now)?,
            Mark::Tag(tag) => writer.tag(version, tag, false, now)?,
            Mark::NoTag(tag) => writer.tag(version, tag, true, now)?,
            Mark::Moved(to) => writer.moved(to, now)?,
        })
    }
}

/// What became of a version, or that `package` is there with other content than what was `offered`.
fn published(pushed: Pushed, package: String, offered: String) -> Result<Published, CommandError> {
    match pushed {
        Pushed::New => Ok(Published::New),
        Pushed::Same => Ok(Published::Same),
        Pushed::Differs(present) => Err(HubError::Exists { package, present, offered }.into()),
    }
}
