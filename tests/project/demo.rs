//! The demo in `testdata/demo`: this creates its hub and its Git bundle, and checks what it shows.
//!
//! `BLESS=1 cargo test --test project demo` writes the hub and the bundle.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use flate2::{Compression, GzBuilder};
use mu_provider::catalog::CatalogLine;
use mu_provider::{ArchiveDigest, Dependency, Entry, FileDigest, Mode, Release, Tree, Yanked};
use sha2::{Digest as _, Sha256};

use super::{check_generated, is_blessing, root};

/// A version of a package in the hub.
struct Published {
    name: &'static str,
    version: &'static str,
    day: &'static str,
    description: &'static str,
    dependencies: &'static [&'static str],
    files: &'static [(&'static str, &'static str)],
    yanked: Option<&'static str>,
    app_version: Option<&'static str>,
}

const PROXY: &str = "A reverse proxy in front of everything";
const TLS: &str = "Certificates, and which ciphers to offer";
const POSTGRES: &str = "PostgreSQL with backups";
const VPC: &str = "A network of its own for every team";

const HUB: &[Published] = &[
    published("web/tls", "1.0.0", "2025-02-03", TLS, &[], &[("tls.yaml", "ciphers: [aes]\n")]),
    published(
        "web/tls",
        "1.1.0",
        "2025-06-11",
        TLS,
        &[],
        &[("tls.yaml", "ciphers: [aes, chacha]\n")],
    ),
    published(
        "web/tls",
        "2.0.0",
        "2025-11-20",
        TLS,
        &[],
        &[("tls.yaml", "ciphers: [chacha]\nversion: 1.3\n")],
    ),
    published(
        "web/proxy",
        "1.0.0",
        "2025-02-10",
        PROXY,
        &["web/tls#^1.0"],
        &[("proxy.yaml", "workers: 2\n")],
    ),
    published(
        "web/proxy",
        "1.1.0",
        "2025-06-12",
        PROXY,
        &["web/tls#^1.0"],
        &[("proxy.yaml", "workers: 4\n")],
    ),
    published(
        "web/proxy",
        "1.2.0",
        "2025-09-01",
        PROXY,
        &["web/tls#^1.1"],
        &[("proxy.yaml", "workers: 8\n")],
    ),
    Published {
        yanked: Some("drops headers under load"),
        ..published(
            "web/proxy",
            "1.3.0",
            "2025-10-30",
            PROXY,
            &["web/tls#^1.1"],
            &[("proxy.yaml", "workers: 64\n")],
        )
    },
    published(
        "web/proxy",
        "2.0.0",
        "2025-11-21",
        PROXY,
        &["web/tls#^2.0"],
        &[("proxy.yaml", "workers: 8\nhttp: 3\n")],
    ),
    published(
        "net/vpc",
        "1.0.0",
        "2025-01-07",
        VPC,
        &[],
        &[("network.yaml", "range: 10.0.0.0/16\n")],
    ),
    published(
        "net/vpc",
        "1.3.0",
        "2025-08-19",
        VPC,
        &[],
        &[("network.yaml", "range: 10.0.0.0/12\n")],
    ),
    Published {
        app_version: Some("15.8"),
        ..published(
            "data/postgres",
            "15.8.0",
            "2025-03-01",
            POSTGRES,
            &["net/vpc#^1.0"],
            &[
                ("postgres.yaml", "image: postgres:15.8\n"),
                ("backup.sh", "#!/bin/sh\nexec pg_dumpall\n"),
            ],
        )
    },
    Published {
        app_version: Some("16.0"),
        ..published(
            "data/postgres",
            "16.0.0",
            "2025-05-05",
            POSTGRES,
            &["net/vpc#^1.0"],
            &[
                ("postgres.yaml", "image: postgres:16.0\n"),
                ("backup.sh", "#!/bin/sh\nexec pg_dumpall\n"),
            ],
        )
    },
    Published {
        app_version: Some("16.2"),
        ..published(
            "data/postgres",
            "16.2.0",
            "2025-10-01",
            POSTGRES,
            &["net/vpc#^1.2"],
            &[
                ("postgres.yaml", "image: postgres:16.2\n"),
                ("backup.sh", "#!/bin/sh\nexec pg_dumpall\n"),
            ],
        )
    },
];

const fn published(
    name: &'static str,
    version: &'static str,
    day: &'static str,
    description: &'static str,
    dependencies: &'static [&'static str],
    files: &'static [(&'static str, &'static str)],
) -> Published {
    Published {
        name,
        version,
        day,
        description,
        dependencies,
        files,
        yanked: None,
        app_version: None,
    }
}

/// A commit of the repository in the bundle: its tag, its time, and its files.
type Commit = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const REPOSITORY: &[Commit] = &[
    (
        "v1.0.0",
        "2025-04-01T09:00:00Z",
        &[
            ("README.md", "# ops\n\nWhat runs beside every service.\n"),
            ("logs/Mu.yaml", "name: ops/logs\ndescription: Collects what services print\n"),
            ("logs/collector.yaml", "keep: 7 days\n"),
            ("metrics/Mu.yaml", "name: ops/metrics\ndescription: Counts requests\n"),
            ("metrics/scrape.yaml", "every: 15s\n"),
        ],
    ),
    (
        "v1.1.0",
        "2025-07-15T09:00:00Z",
        &[
            (
                "logs/Mu.yaml",
                "name: ops/logs\ndescription: Collects what services print\ndependencies:\n  - https://hub.mu.com/web/tls#^1.0\n",
            ),
            ("logs/collector.yaml", "keep: 14 days\ntls: true\n"),
        ],
    ),
    (
        "v2.0.0-beta.1",
        "2025-11-02T09:00:00Z",
        &[("logs/collector.yaml", "keep: 30 days\ntls: true\nformat: json\n")],
    ),
];

impl Published {
    fn files(&self) -> Vec<(String, Vec<u8>, bool)> {
        let mut manifest = format!(
            "name: {}\nversion: {}\ndescription: {}\n",
            self.name, self.version, self.description
        );
        if let Some(app_version) = self.app_version {
            manifest.push_str(&format!("appVersion: \"{app_version}\"\n"));
        }
        if !self.dependencies.is_empty() {
            manifest.push_str("dependencies:\n");
            for dependency in self.dependencies {
                manifest.push_str(&format!("  - {dependency}\n"));
            }
        }
        let mut files = vec![("Mu.yaml".to_owned(), manifest.into_bytes(), false)];
        for (path, content) in self.files {
            files.push(((*path).to_owned(), content.as_bytes().to_vec(), path.ends_with(".sh")));
        }
        files.sort();
        files
    }

    /// The archive: stored, not compressed, so that no new version of a compressor changes it.
    fn archive(&self) -> Vec<u8> {
        let gzip = GzBuilder::new().mtime(0).operating_system(255);
        let mut tar = tar::Builder::new(gzip.write(Vec::new(), Compression::none()));
        for (path, content, is_program) in self.files() {
            let mut header = tar::Header::new_ustar();
            header.set_size(content.len() as u64);
            header.set_mode(if is_program { 0o755 } else { 0o644 });
            header.set_mtime(0);
            tar.append_data(&mut header, path, content.as_slice()).expect("fits a header");
        }
        tar.into_inner().and_then(|gzip| gzip.finish()).expect("memory does not fail")
    }

    fn release(&self, archive: &[u8]) -> Release {
        let entries = self.files().into_iter().map(|(path, content, is_program)| Entry {
            path,
            mode: if is_program { Mode::Executable } else { Mode::File },
            sha256: FileDigest::from_bytes(Sha256::digest(&content).into()),
            size: content.len() as u64,
        });
        let dependencies = self.dependencies.iter();
        Release {
            name: self.name.to_owned(),
            version: self.version.to_owned(),
            app_version: self.app_version.map(str::to_owned),
            digest: Some(Tree::new(entries.collect()).digest().to_string()),
            archive: Some(ArchiveDigest::from_bytes(Sha256::digest(archive).into()).to_string()),
            size: Some(archive.len() as u64),
            dependencies: Some(
                dependencies.map(|text| Dependency::Reference((*text).to_owned())).collect(),
            ),
            yanked: self.yanked.map_or(Yanked::No, |why| Yanked::Reason(why.to_owned())),
            published: Some(format!("{}T12:00:00Z", self.day)),
            description: Some(self.description.to_owned()),
            ..Release::default()
        }
    }
}

#[test]
fn the_hub_is_current() {
    let folder = "testdata/demo/hub";
    let file = serde_json::to_string(&mu_provider_hub::wire::HubFile::default()).expect("prints");
    check_generated(&format!("{folder}/hub.json"), format!("{file}\n").as_bytes());
    let mut names: Vec<&str> = HUB.iter().map(|package| package.name).collect();
    names.dedup();
    let mut files = 1;
    for name in &names {
        let mut lines = String::new();
        for package in HUB.iter().filter(|package| package.name == *name) {
            let archive = package.archive();
            let release = package.release(&archive);
            let path = mu_provider_hub::wire::archive_path(name, &release);
            check_generated(&format!("{folder}/packs/{path}"), &archive);
            lines.push_str(&serde_json::to_string(&release).expect("prints"));
            lines.push('\n');
        }
        let path = mu_provider_hub::wire::index_path(name);
        check_generated(&format!("{folder}/index/{path}"), lines.as_bytes());
    }
    names.sort_unstable();
    let catalog: Vec<String> = names
        .iter()
        .map(|name| {
            let mut releases = HUB.iter().filter(|package| package.name == *name).rev();
            let latest = releases.find(|package| package.yanked.is_none()).expect("is there");
            let line = CatalogLine {
                name: latest.name.to_owned(),
                latest: latest.version.to_owned(),
                description: Some(latest.description.to_owned()),
                app_version: latest.app_version.map(str::to_owned),
                ..CatalogLine::default()
            };
            format!("{}\n", serde_json::to_string(&line).expect("prints"))
        })
        .collect();
    let path = format!("{folder}/{}", mu_provider_hub::CATALOG);
    check_generated(&path, catalog.concat().as_bytes());
    files += 1 + names.len() + HUB.len();
    assert_eq!(super::files(folder).len(), files, "there are files that nothing makes any more");
}

fn git(folder: &Path, time: &str, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(folder);
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"] {
        command.env_remove(name);
    }
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    for role in ["AUTHOR", "COMMITTER"] {
        command
            .env(format!("GIT_{role}_NAME"), "Ada L")
            .env(format!("GIT_{role}_EMAIL"), "ada@acme.example")
            .env(format!("GIT_{role}_DATE"), time);
    }
    let output = command.output().expect("git is installed");
    assert!(output.status.success(), "git {arguments:?}: {}", shown(&output));
    String::from_utf8(output.stdout).expect("git prints text")
}

#[test]
fn the_bundle_is_current() {
    let folder = tempfile::tempdir().expect("there is room");
    let repository = folder.path();
    git(repository, "", &["init", "--quiet", "--initial-branch=main", "."]);
    for (tag, time, files) in REPOSITORY {
        for (path, content) in *files {
            let path = repository.join(path);
            fs::create_dir_all(path.parent().expect("is below")).expect("can be made");
            fs::write(path, content).expect("can be written");
        }
        git(repository, time, &["add", "--all"]);
        git(repository, time, &["commit", "--quiet", "--message", &format!("ops {tag}")]);
        git(repository, time, &["tag", tag]);
    }
    let bundle = root().join("testdata/demo/ops.bundle");
    let bundle = bundle.to_str().expect("is UTF-8");
    if is_blessing() {
        let arguments = ["bundle", "create", "--quiet", bundle, "HEAD", "main", "--tags"];
        git(repository, "", &arguments);
    }
    // Other versions of Git pack the same objects in other bytes, so names are compared, not bytes.
    git(repository, "", &["bundle", "verify", "--quiet", bundle]);
    let mut found: Vec<String> =
        git(repository, "", &["bundle", "list-heads", bundle]).lines().map(str::to_owned).collect();
    found.sort();
    let mut expected: Vec<String> =
        git(repository, "", &["show-ref", "--head", "--heads", "--tags"])
            .lines()
            .map(str::to_owned)
            .collect();
    expected.sort();
    assert_eq!(found, expected, "`BLESS=1 cargo test --test project` writes it again");
}

/// The demo in a separate folder, with its own machine around it.
pub(crate) struct Demo(tempfile::TempDir);

impl Demo {
    pub(crate) fn new() -> Self {
        let folder = mu_testing::temporary_folder();
        let others = ["testdata/charts", "testdata/graph", "testdata/kudo", "testdata/operators"];
        let others = others.map(super::files);
        for path in super::files("testdata/demo").into_iter().chain(others.concat()) {
            let below = path.iter().skip(2).collect::<PathBuf>();
            let is_graph = path.starts_with("testdata/graph");
            // Packs that somebody's `mu get` has left here are not part of the demo.
            if below.starts_with(".mu/packs")
                || below == Path::new("Mu.lock")
                || is_graph && below.starts_with("hub")
            {
                continue;
            }
            let target = folder.path().join(&path);

            fs::create_dir_all(target.parent().expect("is below")).expect("can be made");
            fs::copy(root().join(path), target).expect("can be copied");
        }
        Self(folder)
    }

    /// The folder in the place of the repository.
    pub(crate) fn root(&self) -> &Path {
        self.0.path()
    }

    fn folder(&self) -> PathBuf {
        self.root().join("testdata/demo")
    }

    /// Gives a command its own home, cache and runtime.
    pub(crate) fn set_environment(&self, command: &mut Command) {
        let machine = self.root().join("machine");
        command.env("HOME", machine.join("home")).env("MU_CACHE_DIR", machine.join("cache"));
        command.env("MUROOT", machine.join("runtime"));
    }

    /// Runs `mu` in the demo.
    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mu"));
        command.args(arguments).current_dir(self.folder()).env_clear();
        self.set_environment(&mut command);
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command.output().expect("mu can be run")
    }

    /// What `mu` answers; its own folder is written `/demo`.
    fn answer(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "mu {arguments:?}: {}", shown(&output));
        let text = String::from_utf8(output.stdout).expect("is text");
        text.replace(self.folder().to_str().expect("is UTF-8"), "/demo")
    }
}

fn shown(output: &Output) -> String {
    format!(
        "{}{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn the_demo_shows_what_its_page_says() {
    let demo = Demo::new();
    let installed = demo.answer(&["get"]);
    for line in [
        "+ git.acme.example/ops/logs 1.1.0",
        "+ data/postgres 16.2.0",
        "+ web/proxy 1.2.0",
        "+ web/tls 1.1.0",
    ] {
        assert!(installed.contains(line), "{line}: {installed}");
    }
    assert_eq!(demo.answer(&["which", "net/vpc"]), "/demo/net/vpc\n");
    assert_eq!(demo.answer(&["which", "acme/theme"]), "/demo/acme/theme\n");
    assert_eq!(demo.answer(&["which", "web/proxy#^1.1"]), "/demo/.mu/packs/hub.mu.com/web/proxy\n");
    assert!(demo.folder().join(".mu/packs/git.acme.example/ops/logs/collector.yaml").is_file());
    assert!(!demo.folder().join(".mu/packs/hub.mu.com/net").exists());
    assert_eq!(demo.answer(&["verify"]), "4 packs verified\n");
    let mut all = fs::OpenOptions::new().append(true).open(demo.folder().join("README.md"));
    writeln!(all.as_mut().expect("is there"), "more").expect("can be written");
    assert_eq!(demo.answer(&["get", "--locked", "--offline"]), "");
}
