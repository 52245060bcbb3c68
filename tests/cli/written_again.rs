//! What commands write into manifests is found again, in small random worlds: of every format, with tags of every form, with both
//! strategies.
//!
//! After each command that succeeds, the lock fits the manifest, and without the lock `mu get` finds the same versions, or newer
//! ones where the manifest allows those.

use std::collections::BTreeMap;
use std::fs;

use mu_testing::git::git;
use mu_testing::oci::Behaviour;
use mu_testing::{Artifact, Chart, Charts, Nginx, OciServer, write};

use crate::support::{Package, Sandbox};

/// Numbers that look random, and are the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("is small") % count
    }

    fn one<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// How the versions of a package are written.
const FORMS: [&[&str]; 5] = [
    &["1.0.0", "1.1.0", "1.2.0", "1.2.1", "2.0.0"],
    &["v1.0.0", "v1.1.0", "v1.4.0", "v2.0.0", "v2.1.0"],
    &["1.0.0-rc.1", "1.0.0", "1.1.0", "1.2.0-rc.1", "2.0.0-rc.2"],
    &["0.1.0", "0.1.2", "0.2.0", "0.3.0", "1.0.0"],
    // Only where numbers may be left out.
    &["1.9", "1.17", "1.28", "1.28.3", "2.0"],
];

/// The formats of manifests, and where the packages are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// `Mu.yaml`, with packages of a hub.
    Hub,
    /// `Mu.yaml`, with repositories.
    Git,
    /// `Mu.yaml`, with KCL modules.
    Modules,
    Chart,
    Kcl,
    Crossplane,
}

impl Format {
    fn file(self) -> &'static str {
        match self {
            Self::Hub | Self::Git | Self::Modules => "Mu.yaml",
            Self::Chart => "Chart.yaml",
            Self::Kcl => "kcl.mod",
            Self::Crossplane => "crossplane.yaml",
        }
    }

    fn manifest(self) -> &'static str {
        match self {
            Self::Hub | Self::Git | Self::Modules => "name: acme/web\nversion: 0.1.0\n",
            Self::Chart => "apiVersion: v2\nname: app\nversion: 0.1.0\n",
            Self::Kcl => "[package]\nname = \"app\"\nversion = \"0.1.0\"\n",
            Self::Crossplane => {
                "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata:\n  name: conf\n"
            }
        }
    }

    fn forms(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::Modules | Self::Kcl => &FORMS,
            _ => &FORMS[..4],
        }
    }
}

/// Packages `a`, `b` and `c` in their places, of which earlier ones need later ones.
struct World {
    sandbox: Sandbox,
    format: Format,
    /// By name: the reference, and the versions.
    packages: BTreeMap<&'static str, (String, Vec<String>)>,
    servers: (OciServer, Option<Nginx>),
}

impl World {
    fn new(format: Format, resolution: &str, random: &mut Random) -> Self {
        let sandbox = Sandbox::new();
        let server = OciServer::start(Behaviour::default());
        let host = server.host();
        fs::create_dir_all(sandbox.path("www")).expect("can be made");
        let mut charts = Charts::new(&sandbox.path("www"));
        let nginx = (format == Format::Chart).then(|| Nginx::serve(&sandbox.path("www"), ""));
        let url = nginx.as_ref().map(|nginx| nginx.url("")).unwrap_or_default();
        let url = url.trim_end_matches('/');
        let settings = match format {
            Format::Kcl => format!("registries: {{ghcr.io/kcl-lang/: \"oci://{host}/m\"}}\n"),
            _ => String::new(),
        };
        sandbox.write(".mu/workspace.yaml", &format!("resolution: {resolution}\n{settings}"));
        sandbox.write(format.file(), format.manifest());
        let mut packages: BTreeMap<&'static str, (String, Vec<String>)> = BTreeMap::new();
        // From the last to the first, so that what is needed is there.
        for name in ["c", "b", "a"] {
            let is_untagged = format == Format::Git && random.below(3) == 0;
            let form = random.one(format.forms());
            let versions: Vec<String> = match is_untagged {
                true => Vec::new(),
                false => form.iter().map(|version| (*version).to_owned()).collect(),
            };
            let reference = match format {
                Format::Hub => format!("x/{name}"),
                Format::Git => format!("git+file://{}", sandbox.path(name).display()),
                Format::Modules => format!("oci://{host}/m/{name}"),
                Format::Chart => format!("helm+{url}/{name}"),
                Format::Kcl => name.to_owned(),
                Format::Crossplane => format!("oci://{host}/m/{name}"),
            };
            let repository = sandbox.path(name);
            if format == Format::Git {
                write(&repository, "Mu.yaml", format!("name: x/{name}\nversion: 0.5.0\n"));
                git(&repository, &["init", "--quiet", "."]);
                commit(&repository);
            }
            for version in &versions {
                let bare = version.trim_start_matches('v');
                let needed = packages.values().nth(random.below(3)).filter(|one| !one.1.is_empty());
                let least = needed.map(|(reference, versions)| {
                    let version = random.one(&versions[..3]).trim_start_matches('v').to_owned();
                    (reference.clone(), version)
                });
                match format {
                    Format::Hub => {
                        let package = Package::new(&format!("x/{name}"), bare);
                        sandbox.publish(&[match least {
                            Some((reference, least)) => {
                                package.needs(&format!("{reference}#^{least}"))
                            }
                            None => package,
                        }]);
                    }
                    Format::Git => {
                        let needs = least.map(|(reference, least)| {
                            format!("dependencies: [\"{reference}#^{least}\"]\n")
                        });
                        let text = format!(
                            "name: x/{name}\nversion: {bare}\n{}",
                            needs.unwrap_or_default()
                        );
                        write(&repository, "Mu.yaml", text);
                        commit(&repository);
                        git(&repository, &["tag", version]);
                    }
                    Format::Chart => {
                        let chart = Chart::new(name, version);
                        charts.add(&match least {
                            Some((reference, least)) => {
                                let leaf = reference.rsplit('/').next().expect("has a name");
                                chart.needs(leaf, &format!("^{least}"), url)
                            }
                            None => chart,
                        });
                    }
                    Format::Modules | Format::Kcl => {
                        let needs = least.map(|(reference, least)| match format {
                            Format::Kcl => format!("{reference} = \"{least}\"\n"),
                            _ => format!("d = {{ oci = \"{reference}\", tag = \"{least}\" }}\n"),
                        });
                        let text = format!(
                            "[package]\nname = \"{name}\"\nversion = \"{bare}\"\n\n[dependencies]\n{}",
                            needs.unwrap_or_default()
                        );
                        let artifact = Artifact::module(name, bare, &[("kcl.mod", &*text)], true);
                        artifact.push(&host, &format!("m/{name}"), version);
                    }
                    Format::Crossplane => {
                        let needs = least.map(|(reference, least)| {
                            let place = reference.trim_start_matches("oci://");
                            format!("spec:\n  dependsOn:\n  - provider: {place}\n    version: '>={least}'\n")
                        });
                        let text = format!(
                            "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: {name}\n{}",
                            needs.unwrap_or_default()
                        );
                        Artifact::package(&text).push(&host, &format!("m/{name}"), version);
                    }
                }
            }
            packages.insert(name, (reference, versions));
        }
        Self { sandbox, format, packages, servers: (server, nginx) }
    }

    /// A command line about some of the packages.
    fn command(&self, random: &mut Random) -> Vec<String> {
        let (name, (reference, versions)) =
            self.packages.iter().nth(random.below(3)).expect("there are three");
        let words = |text: &str| text.split(' ').map(str::to_owned).collect();
        let version = match versions.is_empty() {
            true => None,
            false => Some(random.one(versions).trim_start_matches('v').to_owned()),
        };
        let at = |version: &str| format!("{reference}#{version}");
        match (random.below(12), version) {
            (0, Some(version)) => words(&format!("add {}", at(&format!("^{version}")))),
            (0..=2, _) => words(&format!("add {reference}")),
            (3, _) => words("update"),
            (4, Some(version)) => words(&format!("update {name}#{version}")),
            (5, Some(version)) => words(&format!("upgrade {name}#{version}")),
            (6, _) => words("upgrade"),
            (7, Some(version)) => words(&format!("downgrade {name}#{version}")),
            (8, _) => words("pin"),
            (9, Some(version)) => words(&format!("pin {name}#{version}")),
            (10, _) => words(&format!("upgrade {name} --pre")),
            _ => words("unpin"),
        }
    }

    /// Checks what a command left.
    fn check(&self, story: &[String]) {
        let Self { sandbox, format, .. } = self;
        let told = || format!("{format:?}\n{}\n{}", story.join("\n"), sandbox.read(format.file()));
        let lock = sandbox.read("Mu.lock");
        let locked = sandbox.mu(&["get", "--locked"]);
        assert_eq!(locked.status, 0, "{}\n{lock}\n{}", told(), locked.shown());
        let before = sandbox.locked();
        let manifest = sandbox.read(format.file());
        assert!(!manifest.contains("\"*\"") && !manifest.contains("version: \"\""), "{}", told());
        // What charts and packages cannot say, only the lock has.
        let is_whole = !lock.contains("# indirect");
        fs::remove_file(sandbox.path("work/Mu.lock")).expect("is there");
        let found = sandbox.mu(&["get"]);
        assert_eq!(found.status, 0, "{}\n{lock}\n{}", told(), found.shown());
        let after = sandbox.locked();
        if sandbox.read(".mu/workspace.yaml").contains("minimal") && is_whole {
            assert_eq!(after, before, "{}", told());
            assert_eq!(sandbox.read(format.file()), manifest, "{}", told());
        }
        sandbox.write("Mu.lock", &lock);
        sandbox.write(format.file(), &manifest);
        sandbox.mu(&["get"]).ok();
    }
}

fn commit(repository: &std::path::Path) {
    git(repository, &["add", "."]);
    let who = ["-c", "user.name=a", "-c", "user.email=a@b"];
    git(
        repository,
        &[&who[..], &["commit", "--quiet", "--allow-empty", "--message", "a"]].concat(),
    );
}

fn check(format: Format) {
    for seed in 1..=4 {
        for resolution in ["highest", "minimal"] {
            let mut random = Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
            (0..9).for_each(|_| {
                random.below(2);
            });
            let world = World::new(format, resolution, &mut random);
            let first = world.packages["a"].0.clone();
            let mut story = vec![format!("{resolution}, seed {seed}")];
            story.extend(world.packages.iter().map(|(name, known)| format!("{name}: {known:?}")));
            world.sandbox.mu(&["add", &first]).ok();
            story.push(format!("add {first}"));
            world.check(&story);
            for _ in 0..6 {
                let line = world.command(&mut random);
                let before = world.sandbox.state();
                let words: Vec<&str> = line.iter().map(String::as_str).collect();
                let run = world.sandbox.mu(&words);
                story.push(run.shown().to_owned());
                match run.status {
                    0 => world.check(&story),
                    // Not every random command can be done, but none leaves half of it.
                    _ => assert_eq!(world.sandbox.state(), before, "{}", story.join("\n")),
                }
            }
            drop(world.servers);
        }
    }
}

#[test]
fn in_a_manifest_of_mu_with_a_hub() {
    check(Format::Hub);
}

#[test]
fn in_a_manifest_of_mu_with_repositories() {
    check(Format::Git);
}

#[test]
fn in_a_manifest_of_mu_with_modules() {
    check(Format::Modules);
}

#[test]
fn in_a_chart() {
    check(Format::Chart);
}

#[test]
fn in_a_module() {
    check(Format::Kcl);
}

#[test]
fn in_a_package_of_crossplane() {
    check(Format::Crossplane);
}
