//! The graph as Go modules, whose build list needs only minimal selection.

use std::path::Path;

use crate::graph::{self, Package};
use crate::hub::write;

/// The module of a package.
pub(crate) fn module(name: &str) -> String {
    format!("bench.test/{name}")
}

/// A version as Go accepts it: later majors would be other modules, so they become minors.
pub(crate) fn version([major, minor, patch]: [u32; 3]) -> String {
    format!("v{}", graph::text([1, major * 1_000 + minor, patch]))
}

/// Writes the graph as a module proxy, without the modules' files: only what a build list needs.
pub(crate) fn write_proxy(folder: &Path, packages: &[Package]) {
    for package in packages {
        let module = module(&package.name);
        let place = folder.join(format!("{module}/@v"));
        let mut list = String::new();
        for release in &package.versions {
            let number = version(release.number);
            let mut text = format!("module {module}\n\ngo 1.16\n");
            for dependency in &release.dependencies {
                let needed = self::module(&packages[dependency.package].name);
                text.push_str(&format!("require {needed} {}\n", version(dependency.least)));
            }
            write(&place.join(format!("{number}.mod")), text.as_bytes());
            let information = format!(r#"{{"Version":"{number}","Time":"2020-01-01T00:00:00Z"}}"#);
            write(&place.join(format!("{number}.info")), information.as_bytes());
            list.push_str(&format!("{number}\n"));
        }
        write(&place.join("list"), list.as_bytes());
    }
}
