//! Helm itself, in both of its majors, which `.ci/setup` installs: see `crates/testing/helm`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program of one version of Helm.
#[derive(Debug)]
pub struct Helm {
    program: PathBuf,
}

impl Helm {
    /// Helm 3 and Helm 4.
    pub fn all() -> [Self; 2] {
        ["helm3", "helm4"].map(|name| {
            let program = crate::file(&format!("../../target/helm/{name}"));
            assert!(program.is_file(), "{} is missing, `.ci/setup` brings it", program.display());
            Self { program }
        })
    }

    /// Runs it with a home in `home`; returns what it printed, or what it said against it.
    ///
    /// # Errors
    ///
    /// When it fails.
    pub fn run(&self, home: &Path, arguments: &[&str]) -> Result<String, String> {
        let mut command = Command::new(&self.program);
        command.args(arguments).env_clear().env("HOME", home);
        let output = command.output().expect("Helm can be run");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match output.status.success() {
            true => Ok(text(&output.stdout)),
            false => Err(text(&output.stderr)),
        }
    }

    /// What it makes of the chart in a folder: each template's text, by its path.
    pub fn template(&self, home: &Path, chart: &Path) -> BTreeMap<String, String> {
        let chart = chart.to_str().expect("is UTF-8");
        let shown = self.run(home, &["template", "demo", chart]);
        let shown = shown.unwrap_or_else(|error| panic!("{self:?} cannot render {chart}: {error}"));
        let parts = shown.split("---\n# Source: ").skip(1);
        parts.map(|part| part.split_once('\n').expect("has lines")).map(owned).collect()
    }
}

fn owned((path, text): (&str, &str)) -> (String, String) {
    (path.to_owned(), text.to_owned())
}
