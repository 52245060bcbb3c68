//! The purl of a package, by where it comes from: <https://github.com/package-url/purl-spec>. For bills of materials, and for advisories,
//! which name packages so.

use mu_formats::osv::AdvisedPackage;
use mu_provider::{PlaceKind, Release};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::index::{Providers, Route};
use crate::lock::LockedPackage;
use crate::reference::{PackageId, Version};

/// What a purl has in another form: everything but letters, digits and these four.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Where repositories of GitHub are.
const GITHUB: &str = "https://github.com/";

/// Where a version of a package comes from.
pub(crate) struct PackagePlace<'a> {
    /// The package that is there.
    id: &'a PackageId,
    version: Option<&'a str>,
    parsed: Option<Version>,
    kind: Option<PlaceKind>,
    /// The registry or the repository.
    place: String,
    folder: Option<&'a str>,
    commit: Option<&'a str>,
    /// The digest of an artifact.
    digest: Option<String>,
    tag: Option<&'a str>,
}

impl<'a> PackagePlace<'a> {
    /// Where a locked package comes from, as the lock says.
    pub(crate) fn of_locked(providers: &Providers, entry: &'a LockedPackage) -> Self {
        let provider = providers.get(&entry.source.provider).ok();
        Self {
            id: &entry.id,
            version: entry.is_versioned().then_some(&*entry.version),
            parsed: entry.parsed_version().filter(|_| entry.is_versioned()),
            kind: provider.map(|provider| provider.facts().kind),
            place: entry.source.place.clone(),
            folder: entry.folder.as_deref(),
            commit: entry.commit.as_deref(),
            digest: entry.manifest.or(entry.artifact).map(|digest| digest.to_string()),
            tag: Some(entry.reference.as_deref().unwrap_or(&entry.version)),
        }
    }

    /// The same, and of a package that is used in another one's place, that package.
    pub(crate) fn of_locked_content(providers: &Providers, entry: &'a LockedPackage) -> Self {
        let place = Self::of_locked(providers, entry);
        Self { id: entry.from.as_ref().unwrap_or(&entry.id), ..place }
    }

    /// Where a version comes from that may be chosen.
    pub(crate) fn of_candidate(
        id: &'a PackageId,
        version: Option<&Version>,
        (route, release): (&'a Route, &'a Release),
    ) -> Self {
        Self {
            id,
            version: version.map(|_| &*release.version),
            parsed: version.cloned(),
            kind: Some(route.provider.facts().kind),
            place: route.location.root.to_string(),
            folder: route.location.folder.as_deref().filter(|folder| !folder.is_empty()),
            commit: release.commit.as_deref(),
            digest: release.manifest.clone(),
            tag: Some(release.reference.as_deref().unwrap_or(&release.version)),
        }
    }

    /// Its purl.
    pub(crate) fn purl(&self) -> String {
        let leaf = escaped(self.id.name().leaf());
        let at = |version: &str| format!("@{}", escaped(version));
        let version = self.version.map(at).unwrap_or_default();
        // A purl has its version behind `@`, then what else is known of the place, then a folder behind `#`:
        //
        //     pkg:oci/web@sha256%3A12…?repository_url=ghcr.io%2Facme%2Fcharts%2Fweb&tag=1.4.0
        //     pkg:github/acme/infra@1895753…#modules/vpc
        //     pkg:generic/ec2@1.0.6?repository_url=hub.mu.com%2Faws%2Fec2
        //
        match self.kind {
            Some(PlaceKind::OciRegistry) => {
                // The version of an artifact is its digest there.
                let digest = self.digest.as_deref().map(at).unwrap_or_default();
                let tag = escaped(self.tag.unwrap_or_default());
                let place = escaped(self.id.as_str());
                format!("pkg:oci/{}{digest}?repository_url={place}&tag={tag}", leaf.to_lowercase())
            }
            Some(PlaceKind::Repository) => {
                // GitHub has a type of its own, by owner and repository; any other repository is named by its URL, and the commit is a
                // part of that.
                let commit = self.commit.map(at).unwrap_or_else(|| version.clone());
                let folder = self.folder.iter().map(|folder| format!("#{}", escaped(folder)));
                let folder: String = folder.collect();
                let place = self.place.strip_prefix(GITHUB);
                match place.map(|place| place.trim_end_matches(".git")) {
                    Some(place) => {
                        let place = escaped(place).replace("%2F", "/").to_lowercase();
                        format!("pkg:github/{place}{commit}{folder}")
                    }
                    None => {
                        let url = escaped(&format!("git+{}", self.place));
                        format!(
                            "pkg:generic/{leaf}{version}?vcs_url={url}{}{folder}",
                            commit.replace('@', "%40")
                        )
                    }
                }
            }
            // Everything but the last segment says where it is.
            _ => {
                let place = escaped(self.id.as_str());
                format!("pkg:generic/{leaf}{version}?repository_url={place}")
            }
        }
    }

    /// What advisories may say of it.
    pub(crate) fn advised(&self) -> AdvisedPackage {
        let mut package = AdvisedPackage::new(self.id.as_str(), &self.purl());
        if self.kind == Some(PlaceKind::Repository) {
            package = package.in_repository(&self.place, self.commit);
            // Where a mirror has it, its id still says which repository that is a mirror of.
            let mut segments = self
                .id
                .as_str()
                .strip_prefix("github.com/")
                .into_iter()
                .flat_map(|name| name.split('/'));
            if let (Some(owner), Some(repository)) = (segments.next(), segments.next()) {
                package.add_name(self.id.as_str(), &format!("pkg:github/{owner}/{repository}"));
            }
        }
        let written = self.version.into_iter().chain(self.tag);
        package.in_version(self.parsed.clone(), &written.collect::<Vec<_>>())
    }
}

/// The purl of a package of the workspace, which comes from nowhere else.
pub(crate) fn purl_of_own(id: &PackageId, version: Option<&str>) -> String {
    let version = version.map(|version| format!("@{}", escaped(version))).unwrap_or_default();
    format!("pkg:generic/{}{version}", escaped(id.as_str()))
}

/// Text inside of a purl.
pub(crate) fn escaped(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}
