//! What a release uploads: `packaging/dist/dist.sh` makes it of the tested program, and each kind is installed in an empty place, where the
//! demo then runs with it.
//!
//! The installers are the real ones: dpkg, apt, pip, npm, skopeo, and the script against a server. No network is there.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use crate::support::Nginx;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files, and what they are called.
struct Made {
    folder: tempfile::TempDir,
    version: &'static str,
}

impl Made {
    /// The only file with this ending.
    fn file(&self, ending: &str) -> PathBuf {
        let mut found = names(self.folder.path());
        found.retain(|name| name.ends_with(ending));
        assert_eq!(found.len(), 1, "{ending}: {found:?}");
        self.folder.path().join(&found[0])
    }
}

/// The files of a release, made once for all tests.
fn made() -> &'static Made {
    static MADE: OnceLock<Made> = OnceLock::new();
    MADE.get_or_init(|| Made { folder: make(&[]), version: env!("CARGO_PKG_VERSION") })
}

/// Makes the files in a new folder.
fn make(more: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("can be made");
    let programs = folder.path().join("programs");
    fs::create_dir(&programs).expect("can be made");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_mu"), programs.join("mu")).expect("can be made");
    let mut command = Command::new(root().join("packaging/dist/dist.sh"));
    command.env("DIST_PROGRAMS", &programs).env("DIST_OUT", folder.path().join("out"));
    command.env("DIST_LEVEL", "1").envs(more.iter().copied());
    run(&mut command);
    for name in names(&folder.path().join("out")) {
        fs::rename(folder.path().join("out").join(&name), folder.path().join(name)).expect("moves");
    }
    fs::remove_dir(folder.path().join("out")).expect("is empty");
    fs::remove_dir_all(programs).expect("is there");
    folder
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("is a folder");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("is there").file_name().into_string().expect("is text"))
        .collect();
    names.sort();
    names
}

/// Runs a program that has to succeed, and returns what it prints.
#[track_caller]
fn run(command: &mut Command) -> String {
    let output = command.output().expect("can be run");
    let [stdout, stderr] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(output.status.success(), "{command:?}\n{stdout}\n{stderr}");
    stdout
}

/// Copies the demo without what is installed in it.
fn copy_demo(into: &Path) {
    run(Command::new("cp").arg("-r").arg(root().join("testdata/demo")).arg(into));
    let _ = fs::remove_dir_all(into.join(".mu/packs"));
}

/// Runs the demo with an installed program, where nothing else of mu is.
#[track_caller]
fn runs_the_demo(program: &Path) {
    let place = tempfile::tempdir().expect("can be made");
    copy_demo(&place.path().join("demo"));
    let mut command = Command::new(program);
    command.env_clear().env("HOME", place.path().join("home")).env("PATH", "/usr/bin:/bin");
    command.current_dir(place.path()).args(["-C", "demo", "get"]);
    let output = command.output().expect("can be run");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("installed 4 packages"), "{said}");
}

#[test]
fn the_same_commit_gives_the_same_bytes_and_their_checksums() {
    let again = make(&[("TZ", "Asia/Tokyo"), ("LC_ALL", "C.UTF-8")]);
    let bytes = |folder: &Path| -> BTreeMap<String, Vec<u8>> {
        let read = |name: String| (name.clone(), fs::read(folder.join(name)).expect("is there"));
        names(folder).into_iter().map(read).collect()
    };
    let (first, second) = (bytes(made().folder.path()), bytes(again.path()));
    assert_eq!(first.keys().collect::<Vec<_>>(), second.keys().collect::<Vec<_>>());
    let differing: Vec<_> = first.iter().filter(|(name, bytes)| second[*name] != **bytes).collect();
    assert!(
        differing.is_empty(),
        "{:?}",
        differing.iter().map(|(name, _)| name).collect::<Vec<_>>()
    );
    run(Command::new("sha256sum")
        .args(["--check", "--strict", "SHA256SUMS"])
        .current_dir(made().folder.path()));
    assert_eq!(
        String::from_utf8_lossy(&first["SHA256SUMS"]).lines().count(),
        first.len() - 1,
        "each file has a checksum"
    );
}

#[test]
fn the_archive_brings_manual_completions_and_licences() {
    let place = tempfile::tempdir().expect("can be made");
    let archive = made().file("-gnu.tar.gz");
    run(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(place.path()));
    let top = names(place.path());
    let folder = place.path().join(&top[0]);
    assert!(top.len() == 1 && top[0].starts_with(&format!("mu-{}-", made().version)), "{top:?}");
    for file in ["man/man1/mu-get.1", "completions/mu.bash", "LICENSE-MIT", "CHANGELOG.md"] {
        assert!(folder.join(file).is_file(), "{file}");
    }
    let notices =
        fs::read_to_string(folder.join("LICENSES-OF-DEPENDENCIES.txt")).expect("is there");
    assert!(notices.contains("reqwest ") && notices.contains("Permission is hereby granted"));
    runs_the_demo(&folder.join("mu"));
    let sbom = fs::read(made().file(".cdx.json")).expect("is there");
    let sbom: Value = serde_json::from_slice(&sbom).expect("is JSON");
    assert_eq!(sbom["bomFormat"], "CycloneDX");
    let components = sbom["components"].as_array().expect("is a list");
    let named = |name: &str| components.iter().find(|one| one["name"] == name);
    let serde = named("serde").expect("is linked");
    assert_eq!(serde["hashes"][0]["content"].as_str().map(str::len), Some(64));
    assert!(named("insta").is_none(), "what only tests need is not linked");
}

#[test]
fn the_debian_package_installs() {
    let place = tempfile::tempdir().expect("can be made");
    let package = made().file(".deb");
    let admin = place.path().join("var/lib/dpkg");
    fs::create_dir_all(admin.join("info")).expect("can be made");
    fs::create_dir_all(admin.join("updates")).expect("can be made");
    fs::write(admin.join("status"), "").expect("can be written");
    let dpkg = || {
        let mut command = Command::new("dpkg");
        command.arg(format!("--root={}", place.path().display())).arg("--log=/dev/null");
        command
    };
    // The empty root has not even a C library.
    run(dpkg().args(["--force-depends", "--force-not-root", "--install"]).arg(&package));
    runs_the_demo(&place.path().join("usr/bin/mu"));
    let files = run(dpkg().args(["--listfiles", "mu"]));
    for file in ["/usr/share/man/man1/mu.1.gz", "/usr/share/doc/mu/copyright"] {
        assert!(files.lines().any(|line| line == file), "{files}");
    }
    // This machine has what it depends on.
    let apt = run(Command::new("apt-get").args(["install", "--simulate"]).arg(&package));
    assert!(apt.contains("Inst mu ("), "{apt}");
}

#[test]
fn the_wheel_installs() {
    let place = tempfile::tempdir().expect("can be made");
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile"]);
    pip.arg("--root-user-action=ignore").arg("--prefix").arg(place.path()).arg(made().file(".whl"));
    run(&mut pip);
    runs_the_demo(&place.path().join("bin/mu"));
    assert!(place.path().join("share/man/man1/mu.1").is_file());
}

#[test]
fn the_npm_packages_install() {
    let place = tempfile::tempdir().expect("can be made");
    fs::write(place.path().join("package.json"), "{}").expect("can be written");
    let mut npm = Command::new("npm");
    npm.args(["install", "--offline", "--no-audit", "--no-fund", "--loglevel=error"]);
    npm.arg("--cache").arg(place.path().join("cache")).current_dir(place.path());
    let main = format!("mu-cli-{}.tgz", made().version);
    let all = names(made().folder.path()).into_iter().filter(|name| name.ends_with(".tgz"));
    npm.args(all.map(|name| made().folder.path().join(name)));
    run(&mut npm);
    let program = place.path().join("node_modules/.bin/mu");
    runs_the_demo(&program);
    let failed = Command::new(&program).args(["get", "--no-such-flag"]).output().expect("runs");
    assert_eq!(failed.status.code(), Some(2), "its exit status is passed on");
    // Without the package for this system, it says which one is missing.
    let alone = tempfile::tempdir().expect("can be made");
    let archive = made().folder.path().join(main);
    run(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(alone.path()));
    let output =
        Command::new("node").arg(alone.path().join("package/bin/mu.js")).output().expect("runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("`mu-cli-linux-"), "{said}");
}

#[test]
fn the_image_runs_without_root_and_without_a_shell() {
    let place = tempfile::tempdir().expect("can be made");
    let archive = format!("oci-archive:{}", made().file(".oci.tar").display());
    let config = run(Command::new("skopeo").args(["inspect", "--config", &archive]));
    let config: Value = serde_json::from_str(&config).expect("is JSON");
    assert_eq!(config["config"]["User"], "65532:65532");
    assert_eq!(config["config"]["Entrypoint"][0], "/usr/bin/mu");
    let layout = place.path().join("layout");
    run(Command::new("skopeo")
        .args(["copy", "--quiet", "--insecure-policy", &archive])
        .arg(format!("dir:{}", layout.display())));
    let manifest = fs::read(layout.join("manifest.json")).expect("is there");
    let manifest: Value = serde_json::from_slice(&manifest).expect("is JSON");
    let layer = manifest["layers"][0]["digest"].as_str().expect("is text");
    let layer = layout.join(layer.strip_prefix("sha256:").expect("is SHA-256"));
    let files = run(Command::new("tar").arg("-tvzf").arg(&layer));
    let programs: Vec<&str> = files
        .lines()
        .filter(|line| line.contains(" ./usr/bin/") && line.starts_with('-'))
        .collect();
    assert!(programs.len() == 1 && programs[0].ends_with("/mu"), "{programs:?}");
    assert!(
        !files.contains("/sh\n") && !files.lines().any(|line| line[..10].contains('s')),
        "{files}"
    );
    let image = place.path().join("image");
    fs::create_dir(&image).expect("can be made");
    run(Command::new("tar").arg("--no-same-owner").arg("-xzf").arg(&layer).arg("-C").arg(&image));
    copy_demo(&image.join("work/demo"));
    let mut bwrap = Command::new("bwrap");
    bwrap.arg("--bind").arg(&image).args([
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--unshare-all",
    ]);
    bwrap.args(["--uid", "65532", "--gid", "65532", "--chdir", "/work", "--clearenv"]);
    for pair in config["config"]["Env"].as_array().expect("is a list") {
        let (name, value) = pair.as_str().and_then(|pair| pair.split_once('=')).expect("is a pair");
        bwrap.args(["--setenv", name, value]);
    }
    let output = bwrap.args(["/usr/bin/mu", "-C", "demo", "get"]).output().expect("bwrap runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("installed 4 packages"), "{said}");
}

#[test]
fn the_install_script_takes_nothing_that_does_not_fit_its_checksum() {
    let place = tempfile::tempdir().expect("can be made");
    let served = place.path().join("served");
    run(Command::new("cp").arg("-r").arg(made().folder.path()).arg(&served));
    let nginx = Nginx::serve(&served, "");
    let script = served.join("install.sh");
    let install = |url: &str, into: &str| {
        let mut command = Command::new("sh");
        command.arg(&script).env_clear().env("PATH", "/usr/bin:/bin").env("HOME", place.path());
        command.env("MU_INSTALL_DIR", place.path().join(into)).env("MU_URL", url);
        let output = command.output().expect("sh runs");
        (
            output.status.success(),
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(),
        )
    };
    let url = nginx.url("").trim_end_matches('/').to_owned();
    let (is_fine, said) = install(&url, "bin");
    assert!(
        is_fine && said.contains("installed mu ") && said.contains("add it to the path"),
        "{said}"
    );
    assert_eq!(names(&place.path().join("bin")), ["mu"]);
    runs_the_demo(&place.path().join("bin/mu"));
    let (is_fine, said) = install(&format!("{url}/nowhere"), "none");
    assert!(!is_fine && said.contains("could not download"), "{said}");
    // One byte of the archive is another one.
    let archive = served.join(made().file("-gnu.tar.gz").file_name().expect("has a name"));
    let mut bytes = fs::read(&archive).expect("is there");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&archive, bytes).expect("can be written");
    let (is_fine, said) = install(&url, "other");
    assert!(!is_fine && said.contains("nothing was installed"), "{said}");
    assert!(!place.path().join("other").exists() && !place.path().join("none").exists());
    // A release that knows its address asks nobody for it, and else it says what to set.
    let (is_fine, said) = install("", "other");
    assert!(!is_fine && said.contains("set MU_URL"), "{said}");
}
