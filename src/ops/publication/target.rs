//! Where packages are published: a folder or a bucket, which is written directly, or a hub's server.

use std::sync::Arc;

use mu_hub::{Hub, HubError, Notice, Publication, Published, Tags, UploadReporter};
use mu_provider::http::RequestEvent;
use mu_provider::{
    Lead, Location, PlaceKind, Release, SafeUrl, Silent, Tree, place_without_secrets,
};
use serde_json::{Map, Value};
use url::Url;

use crate::index::Route;
use crate::manifest::agreement::Rename;
use crate::ops::explain::at_default_base;
use crate::ops::publication::hub;
use crate::ops::publication::lines::{IndexLine, Mark, existing_line, is_version, reason_of};
#[cfg(feature = "oci")]
use crate::ops::publication::oci::{OciRegistry, artifact_of};
use crate::ops::publication::server::Server;
use crate::ops::{Code, CommandError, Events, Session, VoucherGap, Warning};
use crate::reference::PackageId;

/// The number in events about what is sent by another client than ours: no request of ours has it.
const NO_REQUEST: u64 = u64::MAX;

/// A hub that accepts changes.
pub(crate) struct PublicationTarget {
    kind: Kind,
    events: Arc<dyn Events>,
    /// Its name in answers.
    pub(crate) name: String,
}

enum Kind {
    /// Files of our own, in a folder or a bucket.
    Files(Box<Hub>),
    /// A server.
    Server(Box<Server>),
    /// Repositories of an OCI registry.
    #[cfg(feature = "oci")]
    Oci(Box<OciRegistry>),
}

/// An upload, and its description.
pub(crate) struct Upload {
    /// The package's name at the hub.
    pub(crate) name: String,
    /// Its version, as it is named in references.
    pub(crate) version: String,
    /// Its index line.
    pub(crate) line: Map<String, Value>,
    /// Its archive.
    pub(crate) archive: Vec<u8>,
    /// Its old and its new namespace, if it is copied under another name.
    pub(crate) renamed: Option<Rename>,
    /// The signed statement about its archive, if there is one.
    pub(crate) provenance: Option<Vec<u8>>,
    /// What else vouches for it, as the lines of a file; empty if nothing does.
    pub(crate) evidence: String,
}

/// Whether a release was found by the digest that it is pinned to.
#[cfg(feature = "oci")]
fn is_pinned(release: &Release) -> bool {
    release.reference.as_deref().is_some_and(crate::reference::ArtifactDigest::is_artifact_digest)
}

impl PublicationTarget {
    /// The hub at `to`, or else the one of the base of `id`. Also returns the name of the package there.
    pub(crate) fn find(
        session: &Session,
        to: Option<&str>,
        id: &PackageId,
    ) -> Result<(Self, String), CommandError> {
        let name = id.name_str().to_owned();
        if let Some(to) = to {
            let named = Self::hub_at(session, to, false).map_err(|error| match error.code {
                Code::Network if error.hints.is_empty() => error.hint(
                    "check the address, and that the server runs: `mu hub serve FOLDER` starts one",
                ),
                Code::NotFound if error.hints.is_empty() => {
                    error.hint("check the address: it is the one that a hub has its `hub.json` at")
                }
                _ => error,
            })?;
            // Settings can lead the packages of the registry elsewhere.
            let own = named.own_name(id).filter(|_| session.index().registry(id).is_none());
            return Ok((named, own.unwrap_or(name)));
        }
        match session.index().registry(id) {
            Some((registry, rest)) => {
                let insecure = registry.insecure;
                let url = match &registry.url {
                    Some(url) => url.as_url().to_string(),
                    None => format!("https://{}", registry.prefix),
                };
                let named = registry.provider.as_deref();
                let provider = named.map(|name| session.index().providers().get(name));
                let is_oci = matches!(&provider, Some(Ok(provider)) if provider.facts().kind == PlaceKind::OciRegistry);
                let is_hub = matches!(&provider, Some(Ok(provider)) if provider.facts().kind == PlaceKind::Hub);
                let url = match url.split_once("://").filter(|_| is_oci) {
                    Some((_, rest)) => format!("oci://{rest}"),
                    None => url,
                };
                if provider.is_some() && !is_oci && !is_hub {
                    let message = format!(
                        "`{id}` comes from `{url}`, which is not a hub: nothing can be published there"
                    );
                    return Err(CommandError::new(Code::Usage, message)
                        .hint("publish elsewhere with `--to PLACE`, or push a tag if it is a Git repository"));
                }
                Ok((Self::hub_at(session, &url, insecure)?, rest.to_owned()))
            }
            None => {
                let hub = Self::hub_at(session, &format!("https://{}", id.base()), false);
                let is_default = id.base() == session.workspace.settings.base;
                let hub = hub.map_err(|error| match is_default {
                    true => at_default_base(session, error).hint("`--to PLACE` names another hub"),
                    false => error,
                })?;
                Ok((hub, name))
            }
        }
    }

    /// The hub at `to`.
    pub(crate) fn hub_at(
        session: &Session,
        to: &str,
        insecure: bool,
    ) -> Result<Self, CommandError> {
        let kind = match to.split_once("://").map(|(scheme, _)| scheme) {
            Some("http" | "https") => {
                let url = SafeUrl::parse(to).map_err(|error| {
                    let to = place_without_secrets(to);
                    CommandError::new(Code::Usage, format!("`{to}` is not a valid URL: {error}"))
                })?;
                Kind::Server(Box::new(Server::open(session, &url, insecure)?))
            }
            #[cfg(feature = "oci")]
            Some("oci") => Kind::Oci(Box::new(OciRegistry::open(session, to, insecure)?)),
            _ => {
                let events = Arc::clone(&session.events);
                let sending: UploadReporter = Arc::new(move |done, total| {
                    events.request(&RequestEvent::Sending { number: NO_REQUEST, done, total });
                });
                let place = hub::hub_place(&session.environment, to).map_err(|error| {
                    error.hint("packages are published to servers (`https://HOST/`) and OCI registries (`oci://HOST/PREFIX`), too")
                })?;
                let opened = Hub::open(&place.telling(sending));
                let opened = opened.map_err(|error| match (&error, server_meant(to)) {
                    (HubError::Missing { .. }, Some(url)) => {
                        let hint = format!("if that is a server, not a folder: `{url}`");
                        CommandError::from(error).hint(hint)
                    }
                    _ => error.into(),
                })?;
                Kind::Files(Box::new(opened))
            }
        };
        let name = match &kind {
            Kind::Server(server) => server.root.to_string(),
            _ => to.to_owned(),
        };
        Ok(Self { kind, name, events: Arc::clone(&session.events) })
    }

    /// The name here of a package that is named by its place in this OCI registry (`oci://HOST/PREFIX/NAME`); `None` for others.
    #[cfg_attr(not(feature = "oci"), allow(unused_variables))]
    pub(crate) fn own_name(&self, id: &PackageId) -> Option<String> {
        match &self.kind {
            #[cfg(feature = "oci")]
            Kind::Oci(registry) => registry.own_name(id),
            _ => None,
        }
    }

    /// Publishes a version.
    pub(crate) fn publish(&self, mut upload: Upload) -> Result<Published, CommandError> {
        let provenance = match self.takes_artifacts() {
            true => None,
            false => upload
                .provenance
                .take()
                .map(|one| (upload.name.clone(), upload.version.clone(), one)),
        };
        let evidence = std::mem::take(&mut upload.evidence);
        let (name, version) = (upload.name.clone(), upload.version.clone());
        let published = match &self.kind {
            Kind::Files(hub) => {
                let Upload { line, archive, .. } = upload;
                let published = hub.publish(&Publication { line, archive: archive.into() })?;
                if hub.has_left() {
                    self.events.warning(&Warning::NotInCatalog { hub: self.name.clone() });
                }
                published
            }
            Kind::Server(server) => server.publish(upload)?,
            #[cfg(feature = "oci")]
            Kind::Oci(registry) => registry.publish(&upload)?,
        };
        if let Some((name, version, provenance)) = provenance {
            self.keep_provenance(&name, &version, provenance);
        }
        self.keep_evidence(&name, &version, &evidence);
        Ok(published)
    }

    /// Copies an artifact from one OCI registry into another, as it is: of another ecosystem, pinned to its digest, or under the name that
    /// it has there. `None` if this is not possible here.
    #[cfg_attr(not(feature = "oci"), allow(unused_variables))]
    pub(crate) fn copy(
        &self,
        route: &Route,
        release: &Release,
        line: &Map<String, Value>,
        name: &str,
    ) -> Result<Option<Published>, CommandError> {
        match &self.kind {
            #[cfg(feature = "oci")]
            Kind::Oci(registry)
                if line.contains_key("format")
                    || is_pinned(release)
                    || route.location.path == name =>
            {
                match artifact_of(route, release, line) {
                    Some((from, release)) => registry.copy(&from, &release, line, name).map(Some),
                    None => Ok(None),
                }
            }
            _ => Ok(None),
        }
    }

    /// The hub, if mu writes its files itself.
    pub(crate) fn hub_of_files(&self) -> Option<&Hub> {
        match &self.kind {
            Kind::Files(hub) => Some(hub),
            _ => None,
        }
    }

    /// The number of the last change, as a server says it now.
    pub(crate) fn generation(&self) -> Option<u64> {
        match &self.kind {
            Kind::Server(server) => server.generation(),
            _ => None,
        }
    }

    /// Whether an archive that another tool has made becomes what that tool pushes, because it can read it there.
    pub(crate) fn takes_artifacts(&self) -> bool {
        #[cfg(feature = "oci")]
        return matches!(self.kind, Kind::Oci(_));
        #[cfg(not(feature = "oci"))]
        false
    }

    /// Keeps the signed statement about the archive of a version that is there. What cannot be kept is told.
    pub(crate) fn keep_provenance(&self, name: &str, version: &str, provenance: Vec<u8>) {
        if let Err(error) = self.add_provenance(name, version, provenance) {
            self.warn_of_gap(VoucherGap::ProvenanceNotCopied, name, version, &error);
        }
    }

    /// Keeps the signed statement about the archive of a version that is there.
    pub(crate) fn add_provenance(
        &self,
        name: &str,
        version: &str,
        provenance: Vec<u8>,
    ) -> Result<(), CommandError> {
        match &self.kind {
            Kind::Files(hub) => {
                let kept = hub.add_provenance(name, version, provenance.into());
                kept.map(drop).map_err(CommandError::from)
            }
            Kind::Server(server) => server.upload_provenance(name, version, provenance),
            // It is part of the artifact, which never changes.
            #[cfg(feature = "oci")]
            Kind::Oci(_) => Ok(()),
        }
    }

    /// Keeps what vouches for a version that is there, as the lines of a file. What cannot be kept is told.
    pub(crate) fn keep_evidence(&self, name: &str, version: &str, lines: &str) {
        if let Err(error) = self.add_evidence(name, version, lines) {
            self.warn_of_gap(VoucherGap::EvidenceNotCopied, name, version, &error);
        }
    }

    /// Warns of what lacks of that which vouches for a version.
    pub(crate) fn warn_of_gap(
        &self,
        gap: VoucherGap,
        name: &str,
        version: &str,
        error: &CommandError,
    ) {
        let (name, version) = (name.to_owned(), version.to_owned());
        let why = mu_provider::with_causes(&*error.error);
        self.events.warning(&Warning::Voucher { gap, name, version, why });
    }

    /// Keeps what vouches for a version that is there, as the lines of a file, if there are any.
    pub(crate) fn add_evidence(
        &self,
        name: &str,
        version: &str,
        lines: &str,
    ) -> Result<(), CommandError> {
        if lines.is_empty() {
            return Ok(());
        }
        match &self.kind {
            Kind::Files(hub) => {
                let kept = hub.add_evidence(name, version, lines.to_owned().into());
                kept.map(drop).map_err(CommandError::from)
            }
            Kind::Server(server) => server.upload_evidence(name, version, lines),
            #[cfg(feature = "oci")]
            Kind::Oci(registry) => registry.attach_lines(name, version, lines),
        }
    }

    /// Checks that the line of an upload matches the manifest in its archive, as every client does at
    /// installation. A folder or bucket is checked when it is written.
    pub(crate) fn compare(&self, session: &Session, upload: &Upload) -> Result<(), CommandError> {
        match &self.kind {
            Kind::Files(_) => Ok(()),
            _ => {
                let (line, archive) = (upload.line.clone(), upload.archive.clone().into());
                let staging = hub::staging(&session.environment);
                Ok(mu_hub::compare(&Publication { line, archive }, staging)?)
            }
        }
    }

    /// The index line of a version, if it is there.
    pub(crate) fn line(
        &self,
        name: &str,
        version: &str,
    ) -> Result<Option<Map<String, Value>>, CommandError> {
        #[cfg(feature = "oci")]
        if let Kind::Oci(registry) = &self.kind {
            return registry.line(name, version);
        }
        Ok(self.lines(name)?.into_iter().find(|line| is_version(line, version)))
    }

    /// The files of a published version, whose index line is `line`. Nothing of it is kept, so no rule is asked about it.
    pub(crate) fn published_tree(
        &self,
        session: &Session,
        name: &str,
        line: &Map<String, Value>,
    ) -> Result<Tree, CommandError> {
        let release: Release = serde_json::from_value(Value::Object(line.clone()))
            .map_err(|error| CommandError::from_error(Code::Integrity, error))?;
        let in_hub = |url: SafeUrl, insecure: bool| {
            let location = Location::new(Lead::of_user(url.as_folder()), name);
            ("hub", Location { insecure, ..location })
        };
        let (provider, location) = match &self.kind {
            Kind::Files(_) => in_hub(self.url_of_files(session)?, false),
            Kind::Server(server) => in_hub(server.root.clone(), server.insecure),
            #[cfg(feature = "oci")]
            Kind::Oci(registry) => ("oci", registry.place_of(name)),
        };
        let provider = session.index().providers().get(provider);
        let provider =
            provider.map_err(|error| CommandError::from_error(Code::Reference, error))?;
        let _store = session.use_store()?;
        Ok(session.store.inspect(|tree| provider.fetch(&location, &release, tree, &Silent))?)
    }

    /// Where the files are that mu writes itself.
    fn url_of_files(&self, session: &Session) -> Result<SafeUrl, CommandError> {
        let place = &self.name;
        if place.contains("://") {
            let parsed = SafeUrl::parse(place);
            return parsed.map_err(|error| CommandError::from_error(Code::Usage, error));
        }
        let folder = crate::env::absolute(&session.environment.current, place.as_ref());
        match Url::from_directory_path(&folder) {
            Ok(url) => Ok(url.into()),
            Err(()) => {
                let message = format!("`{}` cannot be written as a URL", folder.display());
                Err(CommandError::new(Code::Io, message))
            }
        }
    }

    /// All index lines of a package, as they were published; none if there is no such package.
    pub(crate) fn lines(&self, name: &str) -> Result<Vec<Map<String, Value>>, CommandError> {
        match &self.kind {
            Kind::Files(hub) => Ok(hub.lines(name)?),
            Kind::Server(server) => server.lines(name),
            #[cfg(feature = "oci")]
            Kind::Oci(registry) => registry.lines(name),
        }
    }

    /// Changes a published version; returns whether that changed anything.
    pub(crate) fn mark(
        &self,
        name: &str,
        version: &str,
        mark: Mark<'_>,
    ) -> Result<bool, CommandError> {
        match &self.kind {
            Kind::Files(hub) => {
                let tags = |tag: &str| vec![tag.to_owned()];
                Ok(match mark {
                    Mark::Notice(notice, reason) => hub.notice(name, version, notice, reason)?,
                    Mark::Tag(tag) => hub.tag(name, version, &Tags::Add(tags(tag)))?,
                    Mark::NoTag(tag) => hub.tag(name, version, &Tags::Remove(tags(tag)))?,
                    Mark::Moved(to) => hub.moved(name, to)?,
                })
            }
            Kind::Server(server) => server.mark(name, version, mark),
            #[cfg(feature = "oci")]
            Kind::Oci(registry) => registry.mark(name, version, mark),
        }
    }

    /// Whether [`Target::mark`] would change anything.
    pub(crate) fn would_mark(
        &self,
        name: &str,
        version: &str,
        mark: Mark<'_>,
    ) -> Result<bool, CommandError> {
        mark.check()?;
        Ok(!mark.is_on(&self.existing(name, version)?))
    }

    /// Whether this is said against a version.
    pub(crate) fn has_notice(
        &self,
        name: &str,
        version: &str,
        notice: Notice,
    ) -> Result<bool, CommandError> {
        Ok(reason_of(&self.existing(name, version)?, notice).is_some())
    }

    fn existing(&self, name: &str, version: &str) -> Result<IndexLine, CommandError> {
        Ok(existing_line(self.lines(name)?, &self.name, name, version)?)
    }
}

/// The URL of the server that a place without a protocol may mean: one that starts like a host.
fn server_meant(place: &str) -> Option<String> {
    let host = place.split('/').next().filter(|host| !host.starts_with('.'))?;
    if !host.contains(['.', ':']) || place.contains("://") {
        return None;
    }
    let is_here = host.starts_with("127.") || host.starts_with("localhost:");
    let protocol = if is_here { "http" } else { "https" };
    Some(format!("{protocol}://{place}"))
}
