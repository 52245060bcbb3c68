//! Runs every `console` block of the documents, and compares the output with the one in the document.
//!
//! A document's blocks are one session, in a copy of `testdata/demo`, `testdata/charts`, `testdata/graph`, `testdata/kudo` and `testdata/operators`. The copy's folder is shown
//! as `~/mu`. Documents about `testdata/team` have that too, and a registry, which is shown as `localhost:5000`. What a session writes below `docs` (pictures) is compared with the files there.
//! `BLESS=1 cargo test --test project sessions` writes answers and files anew.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use mu_testing::oci::Behaviour;
use mu_testing::{OciServer, team};

use super::demo::Demo;
use super::{check_generated, files, read, root};

struct Session {
    demo: Demo,
    folder: PathBuf,
    registry: Option<OciServer>,
}

impl Session {
    fn new(text: &str) -> Self {
        let demo = Demo::new();
        let registry = text.contains("$ cd testdata/team").then(|| {
            let registry = OciServer::start(Behaviour::default());
            team::publish(&demo.root().join("testdata/team/workspace"), &registry.host());
            registry
        });
        let programs = demo.root().join("bin");
        fs::create_dir_all(&programs).expect("can be made");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_mu"), programs.join("mu"))
            .expect("can be made");
        // `cargo run -- …` is `mu …` that was built before.
        let cargo = programs.join("cargo");
        fs::write(
            &cargo,
            "#!/bin/sh\n[ \"$1 $2\" = 'run --' ] || exit 3\nshift 2\nexec mu \"$@\"\n",
        )
        .expect("can be written");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&cargo, mode).expect("is ours");
        let folder = demo.root().to_owned();
        for page in files("docs") {
            fs::create_dir_all(folder.join(page.parent().expect("is below"))).expect("can be made");
        }
        Self { demo, folder, registry }
    }

    /// The output of a line: first stdout, then stderr.
    fn run(&mut self, line: &str) -> String {
        if let Some(folder) = line.strip_prefix("cd ") {
            self.folder = self.folder.join(folder).canonicalize().expect(line);
            return String::new();
        }
        let path = std::env::var("PATH").expect("there is a path");
        let programs = self.demo.root().join("bin");
        let mut command = Command::new(mu_testing::program("sh"));
        let host = self.registry.as_ref().map_or(team::REGISTRY.to_owned(), OciServer::host);
        command
            .args(["-c", &line.replace(team::REGISTRY, &host)])
            .current_dir(&self.folder)
            .env_clear();
        self.demo.set_environment(&mut command);
        command.env("PATH", format!("{}:{path}", programs.display()));
        let output = command.output().expect("there is a shell");
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(text).expect("is text");
        let root = self.demo.root().to_str().expect("is UTF-8");
        let text = text.replace(&format!("{root}/machine/home"), "~");
        let text = text.replace(&format!("{root}/machine/runtime"), "/usr/local/mu");
        let text = text.replace(root, "~/mu");
        let text = text.replace(&host, team::REGISTRY);
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        lines.join("\n")
    }
}

/// The files that a session wrote below `docs`, by path.
fn written(root: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = walkdir::WalkDir::new(root.join("docs")).sort_by_file_name();
    let files = entries.into_iter().map(|entry| entry.expect("can be read"));
    let file = |entry: walkdir::DirEntry| {
        let path = entry.path().strip_prefix(root).expect("is below").to_str().expect("is UTF-8");
        (path.to_owned(), fs::read(entry.path()).expect("can be read"))
    };
    files.filter(|entry| entry.file_type().is_file()).map(file).collect()
}

/// The document with the real answers of its sessions, and the files that they write below `docs`.
fn replay(text: &str) -> (String, Vec<(String, Vec<u8>)>) {
    let mut session = Session::new(text);
    let mut replayed = String::new();
    let mut in_block = false;
    for line in text.lines() {
        if in_block && line == "```" {
            in_block = false;
        } else if line == "```console" {
            in_block = true;
        } else if in_block && !line.starts_with("$ ") {
            continue;
        }
        replayed.push_str(line);
        replayed.push('\n');
        if let Some(command) = line.strip_prefix("$ ").filter(|_| in_block) {
            let answer = session.run(command);
            if !answer.is_empty() {
                replayed.push_str(&answer);
                replayed.push('\n');
            }
        }
    }
    (replayed, written(session.demo.root()))
}

#[test]
fn sessions_in_documents_are_real() {
    let documents =
        files("docs").into_iter().chain(["README.md".into(), "testdata/demo/README.md".into()]);
    let mut sessions = 0;
    let mut pictures = Vec::new();
    for path in documents {
        let path = path.to_str().expect("is UTF-8");
        if !path.ends_with(".md") || !root().join(path).is_file() {
            continue;
        }
        let text = read(path);
        if text.contains("```console") {
            sessions += 1;
            let (replayed, files) = replay(&text);
            check_generated(path, replayed.as_bytes());
            for (path, content) in files {
                check_generated(&path, &content);
                pictures.push(PathBuf::from(path));
            }
        }
    }
    let mut kept = files("docs");
    kept.retain(|path| path.extension().is_some_and(|extension| extension == "svg"));
    pictures.sort();
    assert_eq!(pictures, kept, "every picture is made by a session");
    assert!(sessions > 5, "{sessions} documents have sessions");
}
