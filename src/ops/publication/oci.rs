//! Publishes into an OCI registry: `oci://HOST/PREFIX`, below which each package is a repository.
//!
//! `mu-provider-oci` decides what is pushed, and maintains the index there.

use std::sync::Arc;

use jiff::Timestamp;
use mu_archive::pick_from;
use mu_archive::{ArchiveError, ArchiveLayout, digest_of_tar};
use mu_formats::{Archived, Artifact, FORMATS, Format};
use mu_hub::{HubError, Notice, Published};
use mu_provider::publishable::check_line;
use mu_provider::{
    Lead, Location, PlaceKind, Release, SafeUrl, evidence_lines, lines_to_text,
    place_without_secrets,
};
use mu_provider_oci::{ForeignArtifact, OciProvider, PushOutcome, Writer, wire};
use mu_trust::Evidence;
use serde_json::{Map, Value};

use crate::index::Route;
use crate::ops::publication::lines::Mark;
use crate::ops::publication::target::Upload;
use crate::ops::session::providers::oci;
use crate::ops::{Code, CommandError, Events, Session, Warning};
use crate::reference::PackageId;

/// The most bytes of the files of an archive that is pushed.
const LARGEST_TREE: u64 = 2 << 30;

/// What a line of a hub says of an archive, and an artifact says itself.
const LEFT_OUT: [&str; 5] = ["urls", "archive", "size", "tags", "locator"];

/// A registry that takes packages.
pub(super) struct OciRegistry {
    events: Arc<dyn Events>,
    provider: OciProvider,
    root: Lead,
    insecure: bool,
    now: Timestamp,
}

impl OciRegistry {
    /// The registry at `to`, without contacting it.
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
            events: Arc::clone(&session.events),
            now: Timestamp::from_second(session.environment.now).unwrap_or_default(),
        })
    }

    /// The name of a package whose id is a place below this one.
    pub(super) fn own_name(&self, id: &PackageId) -> Option<String> {
        let root = self.root.to_string();
        let place = root.strip_prefix("https://")?;
        id.as_str().strip_prefix(place).filter(|name| !name.is_empty()).map(str::to_owned)
    }

    /// Where a package is.
    pub(super) fn place_of(&self, name: &str) -> Location {
        Location { insecure: self.insecure, ..Location::new(self.root.clone(), name) }
    }

    fn writer(&self, name: &str) -> Result<Writer, CommandError> {
        Ok(self.provider.writer(&self.place_of(name))?)
    }

    pub(super) fn publish(&self, upload: &Upload) -> Result<Published, CommandError> {
        if let Some((format, artifact)) = made_by_a_tool(&upload.line) {
            return self.push_archive(upload, format, artifact);
        }
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

    /// Pushes the archive that the tool of a format has made as that tool does.
    fn push_archive(
        &self,
        upload: &Upload,
        format: &Format,
        artifact: &Artifact,
    ) -> Result<Published, CommandError> {
        let Upload { name, version, line, archive, provenance, .. } = upload;
        let package = format!("{name} {version}");
        let layout =
            if artifact.in_folder { ArchiveLayout::InFolder } else { ArchiveLayout::Layer };
        // An artifact says more than its archive does: the digest of the tar inside, which the config of an image has,
        // and what the format has in certain files.
        let read = digest_of_tar(archive).map_err(ArchiveError::Io).and_then(|tar| {
            Ok((tar, pick_from(archive, layout, &artifact.looks_into, LARGEST_TREE)?))
        });
        let ((tar, is_compressed), files) = read.map_err(|error| {
            CommandError::from(error.at(&package)).while_doing(format!("cannot push {package}"))
        })?;
        let digest = wire::digest(archive);
        let archived = Archived {
            name: name.rsplit('/').next().unwrap_or(name),
            version,
            created: line.get("published").and_then(Value::as_str),
            digests: [&digest, &tar.to_string()],
            is_compressed,
            files: &files,
        };
        let pushed = (artifact.pushed)(&archived).map_err(|error| {
            let text = format!("{package} cannot be pushed as a {}: {error}", format.kind);
            CommandError::new(Code::Manifest, text)
        })?;
        // A signed statement is a layer of its own, beside the archive.
        let beside = artifact.provenance.zip(provenance.as_deref());
        let foreign = ForeignArtifact {
            version: pushed.version,
            artifact_type: pushed.artifact_type,
            config: (pushed.config.0, &pushed.config.1),
            layer: (pushed.layer.0, archive),
            said_of_layer: pushed.layer.1,
            beside: beside.into_iter().collect(),
            annotations: pushed.annotations,
        };
        // How the archive is laid out, the artifact says.
        let mut line = line.clone();
        for key in LEFT_OUT {
            line.shift_remove(key);
        }
        let pushed_as = self.writer(name)?.push_foreign(&foreign, &line)?;
        if pushed_as == PushOutcome::Without {
            let (package, place) = (package.clone(), self.root.to_string());
            self.events.warning(&Warning::WithoutProvenance { package, place });
        }
        if let (Some(lacks), PushOutcome::New) = (pushed.lacks, &pushed_as) {
            let (package, kind) = (package.clone(), format.kind);
            self.events.warning(&Warning::NotAtHub { package, kind, lacks });
        }
        published(pushed_as, package, digest)
    }

    /// Attaches what vouches for a version, as a file of lines. The statement about a chart is a layer already.
    pub(super) fn attach_lines(
        &self,
        name: &str,
        version: &str,
        lines: &str,
    ) -> Result<(), CommandError> {
        let is_layer = |evidence: &Evidence| matches!(evidence, Evidence::Prov(_));
        let lines = evidence_lines(lines).filter_map(|one| one.line.ok());
        let text = lines_to_text(lines.filter(|line| !is_layer(&line.evidence)));
        match text.is_empty() {
            true => Ok(()),
            false => Ok(self.writer(name)?.attach_evidence(version, &text)?),
        }
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
            Mark::Notice(Notice::Yanked, reason) => writer.yank(version, reason, now)?,
            Mark::Notice(Notice::Deprecated, reason) => writer.deprecate(version, reason, now)?,
            Mark::Tag(tag) => writer.tag(version, tag, false, now)?,
            Mark::NoTag(tag) => writer.tag(version, tag, true, now)?,
            Mark::Moved(to) => writer.moved(to, now)?,
        })
    }
}

/// Where a release is an artifact of an OCI registry: at its own place, or where the index of a chart repository has placed it
/// (`oci://HOST/REPOSITORY:TAG`). `None` if it is none.
pub(super) fn artifact_of(
    route: &Route,
    release: &Release,
    line: &Map<String, Value>,
) -> Option<(Location, Release)> {
    if route.provider.facts().kind == PlaceKind::OciRegistry {
        return Some((route.location.clone(), release.clone()));
    }
    let format = line.get("format").and_then(Value::as_str);
    let mut formats = FORMATS.iter().filter(|one| Some(one.name) == format);
    formats.find(|one| one.artifact.is_some())?;
    let place = release.urls.first()?.strip_prefix("oci://")?;
    // A colon before a slash belongs to a port.
    let (place, tag) = place.rsplit_once(':').filter(|(_, tag)| !tag.contains('/'))?;
    let (host, path) = place.split_once('/')?;
    let root = SafeUrl::parse(&format!("https://{host}/")).ok()?;
    // An index says where this is, so it may not lead nearer to this machine than itself.
    let location = Location::new(route.location.root.leads_to(root).ok()?, path);
    Some((location, Release { reference: Some(wire::tag_of(tag)), ..release.clone() }))
}

/// The format and the artifact of a package whose archive its own tool has made, by its line.
fn made_by_a_tool(line: &Map<String, Value>) -> Option<(&'static Format, &'static Artifact)> {
    line.get("locator")?;
    let name = line.get("format").and_then(Value::as_str)?;
    let mut formats = FORMATS.iter().filter(|format| format.name == name);
    formats.find_map(|format| Some((format, format.artifact.as_ref()?)))
}

/// What became of a version, or that `package` is there with other content than what was `offered`.
fn published(
    pushed: PushOutcome,
    package: String,
    offered: String,
) -> Result<Published, CommandError> {
    match pushed {
        PushOutcome::New => Ok(Published::New),
        PushOutcome::Same | PushOutcome::Without => Ok(Published::Same),
        PushOutcome::Differs(present) => Err(HubError::Exists { package, present, offered }.into()),
    }
}
