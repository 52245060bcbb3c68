//! What others have published: a few packages of random versions in a place of each kind, of which some need others.

use std::fs;
use std::path::{Path, PathBuf};

use mu_testing::git::{git, git_with_input};
use mu_testing::{
    Artifact, Bundle, Chart, Charts, DockerRegistry, Hub, KudoOperator, KudoRepository, Nginx,
    Operators, Package, tar_gz, write,
};
use serde_json::json;
use tempfile::TempDir;

use super::random::Random;

/// How the versions of a package are written.
const FORMS: [&[&str]; 5] = [
    &["1.0.0", "1.1.0", "1.2.0", "1.2.1", "2.0.0"],
    &["v1.0.0", "v1.1.0", "v1.4.0", "v2.0.0", "v2.1.0"],
    &["1.0.0-rc.1", "1.0.0", "1.1.0", "1.2.0-rc.1", "2.0.0-rc.2"],
    &["0.1.0", "0.1.2", "0.2.0", "0.3.0", "1.0.0"],
    // Only where numbers may be left out.
    &["1.9", "1.17", "1.28", "1.28.3", "2.0"],
];

const CAPABILITY: &str = "net.acme.example/v1/Network";

/// The kinds of places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A hub in a folder.
    Hub,
    /// Repositories, of which some have no tags.
    Git,
    /// A chart repository on a web server.
    Charts,
    /// Charts in a registry.
    OciCharts,
    /// KCL modules in a registry, whose dependencies name their places.
    Modules,
    /// KCL modules in a registry, whose dependencies are versions alone.
    Kcl,
    /// Packages of Crossplane in a registry.
    Crossplane,
    /// Operators of KUDO in a repository on a web server.
    Kudo,
    /// Operators in a catalog, whose channels have chains of upgrades.
    Olm,
    /// Archives on a web server, each by its URL.
    Archives,
    /// Folders outside of the workspace.
    Folders,
}

pub(super) const PLACES: [Place; 11] = [
    Place::Hub,
    Place::Git,
    Place::Charts,
    Place::OciCharts,
    Place::Modules,
    Place::Kcl,
    Place::Crossplane,
    Place::Kudo,
    Place::Olm,
    Place::Archives,
    Place::Folders,
];

/// A published package.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) place: Place,
    pub(super) name: String,
    pub(super) reference: String,
    /// What its id in a lock ends with.
    pub(super) id: String,
    /// As they were published, from the lowest to the highest; empty where a repository has no tags.
    pub(super) versions: Vec<String>,
}

impl Known {
    /// One of its versions, as a reference has it.
    pub(super) fn version(&self, random: &mut Random) -> Option<String> {
        let bare = |version: &String| version.trim_start_matches('v').to_owned();
        (!self.versions.is_empty()).then(|| bare(random.one(&self.versions)))
    }

    /// A requirement on it that some version satisfies, without its reference.
    pub(super) fn range(&self, random: &mut Random) -> String {
        let Some(version) = self.version(random) else { return String::new() };
        match random.below(8) {
            0 => String::new(),
            1 => format!("#~{version}"),
            2 => format!("#>={version}"),
            3 => format!("#{version}"),
            _ => format!("#^{version}"),
        }
    }
}

/// Docker's registry and a web server, for all worlds of a test.
pub(super) struct Servers {
    registry: DockerRegistry,
    web: Nginx,
    www: TempDir,
}

impl Servers {
    pub(super) fn start() -> Self {
        let www = tempfile::tempdir().expect("there is room");
        Self { registry: DockerRegistry::start(), web: Nginx::serve(www.path(), ""), www }
    }
}

/// All that is published.
pub(super) struct Universe {
    folder: TempDir,
    pub(super) packages: Vec<Known>,
    /// Where bases lead, as settings have it: that of names without one in a `kcl.mod`, and those of operators.
    pub(super) registries: String,
}

impl Universe {
    /// The universe of this number, with these kinds of places; `part` keeps it apart from others.
    pub(super) fn new(servers: &Servers, number: u64, places: &[Place], part: &str) -> Self {
        let folder = mu_testing::temporary_folder();
        let host = servers.registry.host();
        let part = format!("{part}{number}");
        let mut random = Random::new(number.wrapping_mul(0x5851_f42d_4c95_7f2d));
        let publisher = Publisher {
            folder: folder.path(),
            host: host.clone(),
            www: servers.www.path().join(&part),
            web: servers.web.url(&part),
            part: part.clone(),
        };
        Hub::new(&folder.path().join("hub"));
        let packages =
            places.iter().flat_map(|place| publisher.place(*place, &mut random)).collect();
        let registries = format!(
            "{{ghcr.io/kcl-lang/: \"oci://{host}/{part}/k\", kudo.example/: \"kudo+{}/o\", olm.example/: \"olm+file://{}\"}}",
            publisher.web,
            folder.path().join("catalog").display()
        );
        Self { folder, packages, registries }
    }

    /// The folders outside of workspaces, as a list in YAML.
    pub(super) fn folders(&self) -> String {
        let folders = self.packages.iter().filter(|known| known.place == Place::Folders);
        let folders: Vec<&str> = folders.map(|known| &*known.reference).collect();
        json!(folders).to_string()
    }

    /// Where the hub is.
    pub(super) fn hub(&self) -> String {
        format!("file://{}/", self.folder.path().join("hub").display())
    }

    /// What the hub has, and the versions of the other packages.
    pub(super) fn told(&self) -> String {
        let mut text = String::new();
        for known in &self.packages {
            text.push_str(&format!("{}: {}\n", known.reference, known.versions.join(" ")));
            let index = self.folder.path().join(format!("hub/index/{}.jsonl", known.reference));
            if known.place == Place::Hub {
                text.push_str(&fs::read_to_string(index).unwrap_or_default());
            }
        }
        text
    }
}

struct Publisher<'a> {
    folder: &'a Path,
    host: String,
    part: String,
    www: PathBuf,
    web: String,
}

impl Publisher<'_> {
    fn place(&self, place: Place, random: &mut Random) -> Vec<Known> {
        let names: &[&str] =
            if place == Place::Hub { &["a", "b", "c", "d", "e"] } else { &["a", "b", "c"] };
        let may_leave_out = matches!(place, Place::Modules | Place::Kcl);
        let forms = if may_leave_out { &FORMS[..] } else { &FORMS[..4] };
        let known = |name: &&str| {
            let reference = match place {
                Place::Hub => format!("x/{name}"),
                Place::Git => format!("git+file://{}/g/{name}", self.folder.display()),
                Place::Charts => format!("helm+{}/{name}", self.web),
                Place::OciCharts => format!("oci://{}/{}/h/{name}", self.host, self.part),
                Place::Modules => format!("oci://{}/{}/m/{name}", self.host, self.part),
                Place::Kcl => format!("oci://ghcr.io/kcl-lang/{name}"),
                Place::Crossplane => format!("oci://{}/{}/x/{name}", self.host, self.part),
                Place::Kudo => format!("kudo.example/{name}"),
                Place::Olm => format!("olm.example/{name}"),
                Place::Archives => format!("{}/u/{name}.tgz", self.web),
                Place::Folders => format!("{}/f/{name}", self.folder.display()),
            };
            let has_none = matches!(place, Place::Archives | Place::Folders);
            let is_untagged = has_none || place == Place::Git && random.is_one_in(4);
            let versions = if is_untagged { &[][..] } else { *random.one(forms) };
            let versions = versions.iter().map(|version| match place {
                // In a hub or a catalog, versions have no `v`.
                Place::Hub | Place::Kudo | Place::Olm => version.trim_start_matches('v').to_owned(),
                _ => (*version).to_owned(),
            });
            let versions = versions.collect();
            let id = match reference.split_once("://") {
                Some((_, path)) => path[path.find('/').unwrap_or(0)..].to_owned(),
                None if place == Place::Hub => format!("hub.mu.com/{reference}"),
                None => reference.clone(),
            };
            Known { place, name: (*name).to_owned(), reference, id, versions }
        };
        let all: Vec<Known> = names.iter().map(known).collect();
        match place {
            Place::Hub => self.hub(&all, random),
            Place::Git => self.repositories(&all, random),
            Place::Charts => self.charts(&all, random),
            Place::Kudo => self.kudo(&all, random),
            Place::Olm => self.catalog(&all, random),
            Place::Archives => self.archives(&all),
            Place::Folders => self.folders(&all),
            _ => self.artifacts(place, &all, random),
        }
        all
    }

    /// In a hub, packages need each other in circles, too.
    fn hub(&self, all: &[Known], random: &mut Random) {
        let hub = Hub::new(&self.folder.join("hub"));
        for known in all {
            let mut package = Package::new(&known.reference, "0").file("text.txt", "one\ntwo\n");
            package = package.file("run.sh*", "#!/bin/sh\n");
            for version in &known.versions {
                let mut package = package.clone().version(version);
                for other in all.iter().filter(|other| other.name != known.name) {
                    if random.is_one_in(4) {
                        package =
                            package.needs(&format!("{}{}", other.reference, other.range(random)));
                    }
                }
                if random.is_one_in(12) {
                    let list = json!([random.one(all).reference]);
                    if list[0] != *known.reference {
                        let line = format!("conflicts: {list}\n");
                        package = package.manifest(&line).key("conflicts", list);
                    }
                }
                match &*known.name {
                    "a" if random.is_one_in(2) => {
                        package = package.key("requires", json!([CAPABILITY]))
                    }
                    "d" | "e" => package = package.key("provides", json!([CAPABILITY])),
                    _ => {}
                }
                hub.publish(&package);
            }
        }
        let list = json!({"packages": ["x/d", "x/e"]});
        write(hub.folder(), &format!("capabilities/{CAPABILITY}.json"), list.to_string());
    }

    /// Which of the later packages a version needs, and at least in which version.
    fn later<'k>(all: &'k [Known], name: &str, random: &mut Random) -> Option<(&'k Known, String)> {
        let later: Vec<&Known> = all.iter().filter(|known| &*known.name > name).collect();
        let needed = *later.get(random.below(3))?;
        let lower = needed.versions.get(..3)?;
        Some((needed, random.one(lower).trim_start_matches('v').to_owned()))
    }

    fn repositories(&self, all: &[Known], random: &mut Random) {
        for known in all {
            let folder = self.folder.join("g").join(&known.name);
            fs::create_dir_all(&folder).expect("can be made");
            git(&folder, &["init", "--quiet", "--initial-branch=main", "."]);
            let mut stream = String::new();
            let mut commit = |version: &str, needs: Option<(&Known, String)>| {
                let needs = needs.map(|(needed, least)| {
                    format!("dependencies: [\"{}#^{least}\"]\n", needed.reference)
                });
                let manifest = format!(
                    "name: x/{}\nversion: {}\n{}",
                    known.name,
                    version.trim_start_matches('v'),
                    needs.unwrap_or_default()
                );
                stream.push_str("commit refs/heads/main\ncommitter Ada <ada@example.com> 1767225600 +0000\ndata 1\na\n");
                for (path, text) in [("Mu.yaml", &*manifest), ("text.txt", "one\ntwo\n")] {
                    stream.push_str(&format!(
                        "M 100644 inline {path}\ndata {}\n{text}\n",
                        text.len()
                    ));
                }
            };
            commit("0.5.0", None);
            let mut tags = Vec::new();
            for version in &known.versions {
                commit(version, Self::later(all, &known.name, random));
                tags.push(version);
            }
            // Each tag is where its version was committed: as many commits before the last as there are later versions.
            git_with_input(&folder, &["fast-import", "--quiet"], stream.as_bytes());
            for (later, tag) in tags.iter().rev().enumerate() {
                git(&folder, &["tag", tag, &format!("main~{later}")]);
            }
        }
    }

    fn charts(&self, all: &[Known], random: &mut Random) {
        fs::create_dir_all(&self.www).expect("can be made");
        let mut charts = Charts::new(&self.www);
        for known in all {
            for version in &known.versions {
                let chart = Chart::new(&known.name, version).file("text.txt", "one\ntwo\n");
                charts.add(&match Self::later(all, &known.name, random) {
                    Some((needed, least)) => {
                        chart.needs(&needed.name, &format!("^{least}"), &self.web)
                    }
                    None => chart,
                });
            }
        }
    }

    /// An operator of KUDO installs others in exactly one version.
    fn kudo(&self, all: &[Known], random: &mut Random) {
        let folder = self.www.join("o");
        fs::create_dir_all(&folder).expect("can be made");
        let mut repository = KudoRepository::new(&folder, &format!("{}/o/", self.web));
        for known in all {
            for version in &known.versions {
                let operator = KudoOperator::new(&known.name, version);
                repository.add(&match Self::later(all, &known.name, random) {
                    Some((needed, version)) => operator
                        .installs(&format!("package: {}, operatorVersion: {version}", needed.name)),
                    None => operator,
                });
            }
        }
    }

    fn catalog(&self, all: &[Known], random: &mut Random) {
        let mut operators = Operators::new(&self.folder.join("catalog"));
        for known in all {
            let name = |version: &String| format!("{}.v{version}", known.name);
            let mut entries = Vec::new();
            for (at, version) in known.versions.iter().enumerate() {
                let before = at.checked_sub(1).map(|before| name(&known.versions[before]));
                entries.push(match before {
                    // Without a chain of upgrades, a version is where one begins.
                    Some(before) if !random.is_one_in(4) => {
                        json!({"name": name(version), "replaces": before})
                    }
                    Some(before) => json!({"name": name(version), "skips": [before]}),
                    None => json!({"name": name(version)}),
                });
                let bundle = Bundle::new(&known.name, version);
                operators.bundle(&match Self::later(all, &known.name, random) {
                    Some((needed, least)) => bundle.needs(&needed.name, &format!(">={least}")),
                    None => bundle,
                });
            }
            operators.package(&known.name, "stable");
            operators.channel(&known.name, "stable", &entries);
        }
    }

    fn archives(&self, all: &[Known]) {
        for known in all {
            let manifest = format!("name: x/{}\nversion: 1.0.0\n", known.name);
            let files = [("Mu.yaml", manifest), ("text.txt", "one\ntwo\n".to_owned())];
            let files = files
                .map(|(path, text)| (format!("{}/{path}", known.name), ('f', text.into_bytes())));
            write(&self.www, &format!("u/{}.tgz", known.name), tar_gz(files));
        }
    }

    fn folders(&self, all: &[Known]) {
        for known in all {
            let manifest = format!("name: x/{}\nversion: 1.0.0\n", known.name);
            write(self.folder, &format!("f/{}/Mu.yaml", known.name), manifest);
            write(self.folder, &format!("f/{}/text.txt", known.name), "one\ntwo\n");
        }
    }

    fn artifacts(&self, place: Place, all: &[Known], random: &mut Random) {
        for known in all {
            let name = &*known.name;
            let folder = match place {
                Place::OciCharts => "h",
                Place::Modules => "m",
                Place::Kcl => "k",
                _ => "x",
            };
            let repository = format!("{}/{folder}/{name}", self.part);
            for version in &known.versions {
                let bare = version.trim_start_matches('v');
                let needs = Self::later(all, name, random);
                let artifact = match place {
                    Place::OciCharts => {
                        let chart = Chart::new(name, bare).file("text.txt", "one\ntwo\n");
                        Artifact::chart(&match needs {
                            Some((needed, least)) => {
                                let around =
                                    needed.reference.rsplit_once('/').expect("has a path").0;
                                chart.needs(&needed.name, &format!("^{least}"), around)
                            }
                            None => chart,
                        })
                    }
                    Place::Crossplane => {
                        let needs = needs.map(|(needed, least)| {
                            let place = needed.reference.trim_start_matches("oci://");
                            format!("spec:\n  dependsOn:\n  - provider: {place}\n    version: '>={least}'\n")
                        });
                        Artifact::package(&format!(
                            "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: {name}\n{}",
                            needs.unwrap_or_default()
                        ))
                    }
                    _ => {
                        let needs = needs.map(|(needed, least)| match place {
                            Place::Kcl => format!("{} = \"{least}\"\n", needed.name),
                            _ => format!(
                                "{} = {{ oci = \"{}\", tag = \"{least}\" }}\n",
                                needed.name, needed.reference
                            ),
                        });
                        let manifest = format!(
                            "[package]\nname = \"{name}\"\nversion = \"{bare}\"\n\n[dependencies]\n{}",
                            needs.unwrap_or_default()
                        );
                        let files = [("kcl.mod", &*manifest), ("text.txt", "one\ntwo\n")];
                        Artifact::module(name, bare, &files, random.is_one_in(2))
                    }
                };
                // Charts have their versions as tags.
                let tag = if place == Place::OciCharts { bare } else { version };
                artifact.push(&self.host, &repository, tag);
            }
        }
    }
}
