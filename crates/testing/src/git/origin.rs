//! Repositories to fetch from, made by `git`.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{git, git_with_input};

/// A folder with repositories, which servers can serve.
#[derive(Debug)]
pub struct Origin {
    root: TempDir,
    folder: PathBuf,
}

impl Origin {
    /// A folder with one empty repository, `name`, whose branch is `main`.
    pub fn new(name: &str) -> Self {
        let root = tempfile::tempdir().expect("there is room");
        let mut origin = Self { folder: root.path().to_owned(), root };
        origin.add(name);
        origin
    }

    /// Creates another repository in the same folder, and switches to it.
    pub fn add(&mut self, name: &str) {
        self.folder = self.root.path().join(name);
        fs::create_dir_all(&self.folder).expect("the folder can be made");
        git(&self.folder, &["init", "--quiet", "--initial-branch=main", "."]);
        // As on hosts that allow everything, so that version 0 and partial fetches can be tested.
        git(&self.folder, &["config", "uploadpack.allowFilter", "true"]);
    }

    /// The folder around the repositories.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// The repository's own folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Runs `git` in the repository and returns what it prints.
    pub fn git(&self, arguments: &[&str]) -> String {
        git(&self.folder, arguments)
    }

    /// Writes files and commits them; a content that begins with `-> ` makes a link.
    pub fn commit(&self, files: &[(&str, &str)]) -> String {
        for (path, content) in files {
            let path = self.folder.join(path);
            fs::create_dir_all(path.parent().expect("is below the folder")).expect("can be made");
            match content.strip_prefix("-> ") {
                Some(target) => std::os::unix::fs::symlink(target, path).expect("can be made"),
                None => fs::write(path, content).expect("can be written"),
            }
        }
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", "a change"]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Commits a manifest of this version and tags it.
    pub fn release(&self, tag: &str) -> String {
        let commit = self.commit(&[("Mu.yaml", &format!("name: a/b\n# for {tag}\n"))]);
        self.git(&["tag", tag]);
        commit
    }

    /// Commits a tree that Git itself would refuse, made of raw entries.
    pub fn commit_raw(&self, tree: &[u8]) -> String {
        let tree = self.object("tree", tree);
        let commit = self.git(&["commit-tree", &tree, "-m", "hostile"]);
        self.git(&["update-ref", "refs/heads/hostile", &commit]);
        commit
    }

    /// Writes an object without looking at it.
    pub fn object(&self, kind: &str, data: &[u8]) -> String {
        let arguments = ["hash-object", "--literally", "-w", "--stdin", "-t", kind];
        git_with_input(&self.folder, &arguments, data)
    }

    /// A tree with these entries, in this order; the last is the name of the object.
    pub fn tree(&self, entries: &[(&str, &[u8], &str)]) -> Vec<u8> {
        let mut data = Vec::new();
        for (mode, name, oid) in entries {
            data.extend_from_slice(mode.as_bytes());
            data.push(b' ');
            data.extend_from_slice(name);
            data.push(0);
            data.extend(oid.as_bytes().chunks(2).map(|pair| {
                let pair = std::str::from_utf8(pair).expect("is hex");
                u8::from_str_radix(pair, 16).expect("is hex")
            }));
        }
        data
    }
}
