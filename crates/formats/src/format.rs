//! What every format has in common: its reader, the reader's input (the files of a package, wherever they are: a folder's, a Git
//! tree's, an archive's), its answer, also as the manifest that the rest of mu knows, and how a package of the format is stored
//! in an OCI registry. Of some manifests (`Unedited`), mu reads the dependencies and does not edit them.
//!
//! Registries do not know formats: media types and annotations show which format an artifact has, and where its files and its
//! manifest are. The provider requests them from the registry.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;
use std::sync::Arc;

use mu_manifest::edit::{Dialect, Placed};
use mu_manifest::reference::{Name, Range, Reference, Version, VersionSpec};
use mu_manifest::source::{New, SourceError, TextProblem};
use mu_manifest::{
    Capability, Constraint, Globs, Manifest, Person, Requirement, Upgrade, Versioning, Versions,
};
use mu_provider::{Dependency, Maintainer, Release};

use crate::node::{Fault, FormatError};
use crate::user_files::HelmRepositoryAliases;

/// The `format` in a hub's index for a package that was copied from a Git commit or another place, if that gives the
/// name and version instead of a manifest in it.
pub const GIT: &str = "git";

/// The format of operators of OLM.
pub const OLM: &str = "olm";

/// The format of operators of KUDO.
pub const KUDO: &str = "kudo";

/// A kind of foreign package.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// Its name, which also comes before the `+` in a protocol: `helm`.
    pub name: &'static str,
    /// What people call such a package.
    pub kind: &'static str,
    /// The file at the package's top that makes a folder a package.
    pub manifest: &'static str,
    /// Other files at the package's top that its reader looks into.
    pub others: &'static [&'static str],
    /// Whether its manifests say a name and a version that the package is known by.
    pub is_named: bool,
    /// A folder, with a slash, whose files the reader also looks into.
    pub folder: Option<&'static str>,
    /// Whether a text is a manifest of this format, where other tools have files of that name. A manifest
    /// with a mistake in it is still one.
    pub is_one: Option<fn(&str) -> bool>,
    /// Whether versions may leave numbers out: `1.28`.
    pub lenient: bool,
    /// How its manifests write dependencies, for commands that change them.
    pub dialect: fn(&HelmRepositoryAliases) -> Arc<dyn Dialect>,
    /// Where a package is that a manifest names by one word alone, as a reference, if the format has a place for them.
    pub place_of_word: Option<fn(&str) -> String>,
    /// What packs it, in the words of a hint.
    pub packed_by: &'static str,
    /// What its packages look like in an OCI registry, if they can be there.
    pub artifact: Option<Artifact>,
    /// Reads only the name and the version.
    pub head: fn(&Texts) -> Result<Release, FormatError>,
    /// Reads a package.
    pub read: fn(&Texts, &Reading<'_>) -> Result<Package, FormatError>,
}

/// The surroundings of the package that is read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reading<'a> {
    /// Whether the package is where its author works on it, so that the folders beside it are there too.
    pub is_own: bool,
    /// Whether the folders beside a package are there that others use where it is.
    pub is_folder: bool,
    /// Whether the files are as their author has them, and no tool has packed what belongs to them.
    pub is_source: bool,
    /// Short names that the user gave to registries of the format.
    pub aliases: Option<&'a HelmRepositoryAliases>,
    /// The names of what lies where the package carries others inside (`charts/`), if that was looked up.
    pub carried: Option<&'a BTreeSet<String>>,
}

/// Where a dependency is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The line in its file, counted from 1.
    pub line: usize,
    /// The place in its list, counted from 0.
    pub index: usize,
}

/// What a foreign manifest says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Package {
    /// What it says, as the line of an index.
    pub release: Release,
    /// Where each of its dependencies is written.
    pub places: Vec<Place>,
    /// The name that each of its dependencies has in the manifest, if that is not the one of the package;
    /// left out by formats without such names.
    pub names: Vec<Option<String>>,
    /// The numbers of those dependencies that are marked as needed only by others.
    pub indirect: Vec<usize>,
}

/// Checks the name of a package that is one segment of a name; messages call it `what`.
pub(crate) fn check_name_segment(name: &str, what: &str) -> Result<(), String> {
    if name.contains('/') || name.ends_with(".git") {
        return Err(format!("`{name}` is not the name of {what}"));
    }
    Name::parse(name).map(drop).map_err(|error| error.to_string())
}

/// What a release is known to depend on, so that nothing is added twice.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    dependencies: HashSet<Dependency>,
    bundled: HashSet<String>,
    /// What the dependencies are called in the manifest.
    called: HashSet<String>,
}

impl Seen {
    /// Adds a dependency that is not there yet, and returns whether it was not.
    pub(crate) fn depend(&mut self, release: &mut Release, dependency: Dependency) -> bool {
        let dependencies = release.dependencies.get_or_insert_default();
        let is_new = self.dependencies.insert(dependency.clone());
        if is_new {
            dependencies.push(dependency);
        }
        is_new
    }

    /// Takes note of what a dependency is called, and returns whether no other one is called so.
    pub(crate) fn note_called(&mut self, name: &str) -> bool {
        self.called.insert(name.to_owned())
    }

    /// Adds a package inside of this one.
    pub(crate) fn bundle(&mut self, release: &mut Release, name: &str) {
        if self.bundled.insert(name.to_owned()) {
            release.bundled.push(name.to_owned());
        }
    }
}

/// Leaves out what a release says twice, and the kinds that it requires and provides itself.
pub(crate) fn unique(release: &mut Release) {
    once(&mut release.provides, String::as_str);
    once(&mut release.requires, String::as_str);
    let provides: HashSet<&str> = release.provides.iter().map(String::as_str).collect();
    release.requires.retain(|kind| !provides.contains(kind.as_str()));
    if let Some(dependencies) = &mut release.dependencies {
        once(dependencies, Dependency::reference);
    }
}

/// Leaves out what is there before, by what tells it from others.
pub(crate) fn once<T>(all: &mut Vec<T>, own: impl Fn(&T) -> &str) {
    let mut seen = HashSet::new();
    let is_first: Vec<bool> = all.iter().map(|one| seen.insert(own(one))).collect();
    let mut is_first = is_first.into_iter();
    all.retain(|_| is_first.next().unwrap_or(true));
}

impl Format {
    /// The dependencies in `text`, that of a manifest which its author works on.
    pub(crate) fn placed(
        &self,
        path: &Path,
        text: &str,
        aliases: Option<&HelmRepositoryAliases>,
    ) -> Result<Vec<Placed>, SourceError> {
        let texts = Texts([(self.manifest.to_owned(), text.to_owned())].into());
        self.placed_in(path, text, &texts, aliases)
    }

    /// As [`Self::placed`], where `text` is one of several files.
    pub(crate) fn placed_in(
        &self,
        path: &Path,
        text: &str,
        texts: &Texts,
        aliases: Option<&HelmRepositoryAliases>,
    ) -> Result<Vec<Placed>, SourceError> {
        let around = Reading { is_own: true, aliases, ..Reading::default() };
        let package = (self.read)(texts, &around).map_err(|error| error.in_text(path, text))?;
        let read = manifest(&package).map(|manifest| manifest.dependencies).unwrap_or_default();
        let placed = package.places.iter().zip(read);
        Ok(placed.map(|(place, requirement)| Placed { index: place.index, requirement }).collect())
    }
}

/// The dependencies of manifests that mu reads and does not edit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unedited {
    /// Where the dependencies are, in words.
    pub(crate) place: &'static str,
    /// What a person does there to add the package with this name.
    pub(crate) add: fn(&str) -> String,
}

impl Dialect for Unedited {
    fn requirements(&self, _path: &Path, _text: &str) -> Result<Vec<Placed>, SourceError> {
        Ok(Vec::new())
    }

    fn check(
        &self,
        _path: &Path,
        _text: &str,
        new: Option<&Requirement>,
    ) -> Result<(), TextProblem> {
        Err(self.refused(new))
    }

    fn entry(&self, new: &Requirement) -> Result<(New, Requirement), TextProblem> {
        Err(self.refused(Some(new)))
    }

    fn version(&self, wanted: &Requirement) -> Result<String, TextProblem> {
        Err(self.refused(Some(wanted)))
    }
}

impl Unedited {
    fn refused(&self, new: Option<&Requirement>) -> TextProblem {
        let refused = TextProblem::new(format!("mu does not edit {}", self.place));
        refused.help(match new {
            Some(new) => (self.add)(new.reference.name().leaf()),
            None => "change it there".to_owned(),
        })
    }
}

/// Files that are in memory, by their names.
#[derive(Debug, Clone, Default)]
pub struct Texts(pub BTreeMap<String, String>);

impl Texts {
    /// The text of a file at the package's top; `None` if it is not there.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The text of a file at the package's top that makes it a package.
    pub(crate) fn manifest(&self, name: &str) -> Result<&str, FormatError> {
        let missing = || Fault::new(0..0, format!("there is no `{name}`"));
        self.text(name).ok_or_else(|| FormatError::new(name, "", missing()))
    }

    /// What `read` makes of a file at the package's top that makes it a package.
    pub(crate) fn read<T>(
        &self,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, Fault>,
    ) -> Result<T, FormatError> {
        let text = self.manifest(name)?;
        read(text).map_err(|fault| FormatError::new(name, text, fault))
    }
}

/// How packages of a format lie in OCI registries.
#[derive(Debug, Clone, Copy)]
pub struct Artifact {
    /// Finds the package in a registry's manifest; `None` if it does not have this format. Otherwise returns
    /// which layer has the files, counted from 0, or why none has.
    pub find: fn(&ArtifactManifest<'_>) -> Option<Result<usize, String>>,
    /// The label in an image's config that marks its layer, by the part before the layer's digest, and its value: builders of
    /// images drop the annotations of layers, and keep labels. If there is no label either, the last layer with a manifest counts.
    pub label: Option<(&'static str, &'static str)>,
    /// Whether the config is the package's manifest, as JSON; otherwise it is a file in the layer.
    pub in_config: bool,
    /// Whether the files are in one folder with any name.
    pub in_folder: bool,
    /// The media type of the layer with the signed statement of its author about the archive, if its tool keeps one there.
    pub provenance: Option<&'static str>,
    /// Which of its files `pushed` looks into.
    pub looks_into: fn(&str) -> bool,
    /// What its tool makes of an archive when it pushes that.
    pub pushed: fn(&Archived<'_>) -> Result<Pushed, FormatError>,
}

/// An archive that the tool of a format has made, and what is known of its package.
#[derive(Debug, Clone, Copy)]
pub struct Archived<'a> {
    /// The last segment of its name.
    pub name: &'a str,
    /// Its version, as it is listed.
    pub version: &'a str,
    /// When it was made, if that is known.
    pub created: Option<&'a str>,
    /// Its digest, and that of the tar in it.
    pub digests: [&'a str; 2],
    /// Whether it is compressed.
    pub is_compressed: bool,
    /// Those of its files that [`Artifact::looks_into`].
    pub files: &'a BTreeMap<String, Vec<u8>>,
}

impl Archived<'_> {
    /// Its files as texts.
    pub(crate) fn texts(&self) -> Texts {
        let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
        Texts(self.files.iter().map(|(name, bytes)| (name.clone(), text(bytes))).collect())
    }
}

/// An archive as an artifact in a registry: what there is beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pushed {
    /// The version that is its tag.
    pub version: String,
    /// The type of the artifact, if it is said.
    pub artifact_type: Option<&'static str>,
    /// The media type of its config, and the config.
    pub config: (&'static str, Vec<u8>),
    /// The media type of its archive, and what is said of that.
    pub layer: (&'static str, BTreeMap<String, String>),
    /// The annotations of its manifest.
    pub annotations: BTreeMap<String, String>,
    /// What the artifact of its author may have had that is not in the archive.
    pub lacks: Option<&'static str>,
}

/// A registry's manifest, as far as formats look at it.
#[derive(Debug, Clone, Default)]
pub struct ArtifactManifest<'a> {
    /// The media type of its config.
    pub config: &'a str,
    /// Its annotations.
    pub annotations: BTreeMap<&'a str, &'a str>,
    /// Its layers.
    pub layers: Vec<Layer<'a>>,
}

/// A layer of an image.
#[derive(Debug, Clone, Default)]
pub struct Layer<'a> {
    /// Its media type.
    pub media_type: &'a str,
    /// Its annotations.
    pub annotations: BTreeMap<&'a str, &'a str>,
}

/// Converts a foreign package into a manifest; `None` if its name is not a valid name.
///
/// The dependencies were parsed as references when the package was read, so none is lost here.
pub fn manifest(package: &Package) -> Option<Manifest> {
    let release = &package.release;
    let dependencies = release.dependencies.iter().flatten().enumerate();
    let dependencies = dependencies.filter_map(|(index, dependency)| {
        let mut requirement = Requirement::new(Reference::parse(dependency.reference()).ok()?);
        if let Dependency::Detailed(detailed) = dependency {
            requirement.prerelease = detailed.prerelease;
            requirement.app_version.clone_from(&detailed.app_version);
        }
        requirement.alias = package.names.get(index).cloned().flatten();
        requirement.indirect = package.indirect.contains(&index);
        requirement.line = package.places.get(index).map_or(0, |place| place.line);
        Some(requirement)
    });
    let parsed = |texts: &[String]| -> Vec<Reference> {
        texts.iter().filter_map(|text| Reference::parse(text).ok()).collect()
    };
    let capabilities = |texts: &[String]| -> Vec<Capability> {
        texts.iter().filter_map(|text| Capability::parse(text).ok()).collect()
    };
    let constraints = release.constraints.iter();
    Some(Manifest {
        name: Reference::parse(&release.name).ok()?,
        version: version_of(release),
        written_version: Some(release.version.clone()).filter(|text| !text.is_empty()),
        app_version: release.app_version.clone(),
        versioning: match release.versioning {
            Some(_) => Versioning::Composite,
            None => Versioning::Semver,
        },
        versions: if release.is_lenient() { Versions::Lenient } else { Versions::Strict },
        format: release.format.clone(),
        api_version: release.api_version.clone(),
        mu_version: release.mu_version.as_deref().and_then(|text| Range::parse(text).ok()),
        description: release.description.clone(),
        authors: Vec::new(),
        maintainers: release.maintainers.iter().map(person).collect(),
        website: release.website.clone(),
        repository: release.repository.clone(),
        deprecated: release.deprecated.reason(),
        license: release.license.clone(),
        keywords: release.keywords.clone(),
        readme: None,
        files: Globs::all(),
        dependencies: dependencies.collect(),
        dev_dependencies: Vec::new(),
        replaces: parsed(&release.replaces),
        conflicts: Vec::new(),
        provides: capabilities(&release.provides),
        requires: capabilities(&release.requires),
        constraints: constraints
            .filter_map(|(fact, text)| Some((fact.clone(), Constraint::parse(text).ok()?)))
            .collect(),
        channels: release.channels.clone(),
        default_channel: release.default_channel.clone(),
        upgrade: release.upgrade.iter().map(upgrade).collect(),
        exports: Default::default(),
        build: None,
        generated: false,
    })
}

/// The version of a release with all that tells it from others: of a composite one, app version and revision. It may leave
/// numbers out.
pub fn version_of(release: &Release) -> Option<Version> {
    match (&release.versioning, &release.app_version) {
        (Some(_), app) => Version::composite(app.as_deref()?, &release.version).ok(),
        (None, _) => Version::parse_lenient(&release.version).ok(),
    }
}

/// Makes the manifest of a foreign package agree with the index line `line` in the keys where the two may
/// differ: an index may have less, and may write numbers differently.
pub fn as_listed(manifest: &mut Manifest, line: &Release) {
    if line.format.as_deref() == Some(OLM) {
        // A catalog says what its operators need, provide and take the place of. A bundle need not.
        let listed = self::manifest(&Package { release: line.clone(), ..Package::default() });
        if let Some(listed) = listed {
            let (name, version) = (manifest.name.clone(), manifest.version.clone());
            *manifest = Manifest { name, version, ..listed };
        }
        return;
    }
    manifest.app_version.clone_from(&line.app_version);
    if line.api_version.is_none() {
        manifest.api_version = None;
    }
    if line.dependencies.is_none() {
        manifest.dependencies.clear();
    }
    if line.format.as_deref() == Some(GIT) {
        for requirement in &mut manifest.dependencies {
            if let Some(listed) = beside(line, &requirement.reference) {
                requirement.reference = listed;
            }
        }
    }
}

/// What a line says in place of a folder beside the package in its repository: one version of the package that has that place
/// in the hub.
fn beside(line: &Release, written: &Reference) -> Option<Reference> {
    let meant = Name::parse(&line.name).ok()?.at_relative_path(written.local()?)?;
    let listed = line.dependencies.iter().flatten();
    let mut listed = listed.filter_map(|one| Reference::parse(one.reference()).ok());
    listed.find(|one| {
        one.base().is_none()
            && one.protocol().is_none()
            && *one.name() == meant
            && matches!(one.version(), Some(VersionSpec::Pin(_)))
    })
}

/// Whether two texts are one version, which may leave numbers out.
pub fn same_version(one: &str, other: &str) -> bool {
    let other = Version::parse_lenient(other);
    Version::parse_lenient(one).is_ok_and(|one| other.is_ok_and(|other| one == other))
}

fn upgrade(step: &mu_provider::Upgrade) -> Upgrade {
    let version = |text: &String| Version::parse_lenient(text).ok();
    Upgrade {
        channel: step.channel.clone(),
        replaces: step.replaces.as_ref().and_then(version),
        skips: step.skips.iter().filter_map(version).collect(),
        skip_range: step.skip_range.as_ref().and_then(|text| Range::parse(text).ok()),
    }
}

fn person(maintainer: &Maintainer) -> Person {
    match maintainer {
        Maintainer::Text(text) => Person::parse(text),
        Maintainer::Person { name, email } => {
            Person { name: name.clone(), email: email.clone(), url: None }
        }
    }
}
