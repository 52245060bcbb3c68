//! All data for the measurements, created once and used by every row.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::graph::{self, Package};
use crate::measure::{find, version};
use crate::report::Standing;
use crate::repository::{self, Backend};
use crate::web::{Traffic, Web, free_port};
use crate::{hub, peers, real};

/// The generated files, the servers over them, and the programs that are compared.
pub(crate) struct Data {
    pub(crate) folder: PathBuf,
    pub(crate) mu: PathBuf,
    pub(crate) uv: Option<PathBuf>,
    pub(crate) bun: Option<PathBuf>,
    pub(crate) go: Option<PathBuf>,
    pub(crate) rounds: usize,
    pub(crate) packages: Vec<Package>,
    pub(crate) web: Web,
    pub(crate) backend: Backend,
    pub(crate) standing: Standing,
}

impl Data {
    /// Creates what is missing in `folder`, and starts the servers.
    pub(crate) fn make(folder: &Path, mu: PathBuf, rounds: usize, is_real: bool) -> Self {
        let (folder, packages) = match is_real {
            true => (&folder.join("real"), real::make(&folder.join("asked"))),
            false => (&folder.to_owned(), graph::make()),
        };
        let served = folder.join("served");
        // The name changes with the content, so that the folder of an older program is created again.
        let port_file = folder.join("port-3");
        if !port_file.exists() {
            eprintln!("making the data in {}", folder.display());
            let contents = hub::contents();
            hub::write_graph(&served.join("graph"), &packages);
            hub::write_open_graph(&served.join("open"), &packages);
            hub::write_installable(&served.join("hub"), &contents);
            peers::write_simple(&served, &packages);
            peers::write_wheels(&served, &contents);
            settle_port(&served, &port_file, &contents);
        }
        let repository = folder.join("repositories/bench.git");
        if !repository.exists() {
            repository::make(&repository);
        }
        let web = loop {
            let port = fs::read_to_string(&port_file).expect("was written");
            let port = port.parse().expect("was written as a number");
            match Web::serve(&served, &folder.join("nginx"), port) {
                Some(web) => break web,
                // Another process listens there by now.
                None => settle_port(&served, &port_file, &hub::contents()),
            }
        };
        Self {
            folder: folder.to_owned(),
            mu,
            uv: find("uv"),
            bun: find("bun"),
            go: find("go"),
            rounds,
            packages,
            web,
            backend: Backend::serve(&folder.join("repositories")),
            standing: Standing::default(),
        }
    }

    /// A fresh folder to work in.
    pub(crate) fn place(&self, name: &str) -> Place<'_> {
        let folder = self.folder.join("places").join(name);
        crate::measure::remove(&folder);
        fs::create_dir_all(&folder).expect("can be made");
        Place { data: self, folder }
    }

    /// How many requests `work` sends to nginx.
    pub(crate) fn traffic(&self, work: impl FnOnce()) -> Traffic {
        let before = self.settled();
        work();
        self.settled().since(before)
    }

    /// The traffic, once nginx has logged all its answers.
    fn settled(&self) -> Traffic {
        let mut known = self.web.traffic();
        loop {
            std::thread::sleep(std::time::Duration::from_millis(30));
            let again = self.web.traffic();
            if again.requests == known.requests {
                return again;
            }
            known = again;
        }
    }

    /// Says what is compared.
    pub(crate) fn describe(&self) {
        let said = |program: &Option<PathBuf>, name: &str| match program {
            Some(program) => version(program),
            None => format!("{name} is not installed"),
        };
        println!("- mu: {} ({})", version(&self.mu), self.mu.display());
        println!("- uv: {}", said(&self.uv, "uv"));
        println!("- bun: {}", said(&self.bun, "bun"));
        for name in ["git", "curl", "cp"] {
            println!("- {name}: {}", said(&find(name), name));
        }
        println!("- graph: {}", graph::shape(&self.packages));
        let megabytes =
            |path: &str| repository::size(&self.folder.join(path)) as f64 / f64::from(1 << 20);
        println!("- its index: {:.1} MiB", megabytes("served/graph/index"));
        println!("- archives to install: {:.1} MiB", megabytes("served/hub/packs"));
        println!("- repository: {:.1} MiB", megabytes("repositories/bench.git"));
    }
}

/// Chooses the port that nginx listens on, and writes what names it.
fn settle_port(served: &Path, file: &Path, contents: &[hub::Content]) {
    let port = free_port();
    peers::write_npm(served, &format!("http://127.0.0.1:{port}/"), contents);
    hub::write(file, port.to_string().as_bytes());
}

/// A workspace with its own home and cache.
pub(crate) struct Place<'data> {
    data: &'data Data,
    pub(crate) folder: PathBuf,
}

impl Place<'_> {
    pub(crate) fn join(&self, path: &str) -> PathBuf {
        self.folder.join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        hub::write(&self.folder.join(path), text.as_bytes());
    }

    /// Writes a workspace of one package whose registry is the served folder `registry`.
    pub(crate) fn write_workspace(&self, registry: &str, references: &[String]) {
        self.write_workspace_at(&self.data.web.url(registry), references);
    }

    /// Writes a workspace of one package whose registry is at `url`.
    pub(crate) fn write_workspace_at(&self, url: &str, references: &[String]) {
        self.write(
            "work/.mu/workspace.yaml",
            &format!("members: [\".\"]\nregistries:\n  hub.mu.com/: {url}\n"),
        );
        let lines: String = references.iter().map(|text| format!("  - {text}\n")).collect();
        self.write("work/Mu.yaml", &format!("name: bench/root\ndependencies:\n{lines}"));
    }

    /// Adds a dependency to the workspace's package.
    pub(crate) fn add_dependency(&self, reference: &str) {
        let path = "work/Mu.yaml";
        let text = fs::read_to_string(self.join(path)).expect("was written");
        self.write(path, &format!("{text}  - {reference}\n"));
    }

    /// `mu` in the workspace.
    pub(crate) fn mu(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.data.mu);
        command.args(arguments).current_dir(self.folder.join("work"));
        self.set_places(&mut command);
        command
    }

    /// Gives mu its own home and cache, and the shell mu.
    fn set_places(&self, command: &mut Command) {
        command
            .env("MU", &self.data.mu)
            .env("MU_HOME", self.folder.join("home"))
            .env("MU_CACHE_DIR", self.folder.join("cache"))
            .env("MUROOT", self.folder.join("root"));
    }

    /// A shell command in the folder.
    pub(crate) fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-e", "-c", script]).current_dir(&self.folder);
        self.set_places(&mut command);
        command
    }
}
