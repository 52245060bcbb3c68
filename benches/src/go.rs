//! The graph as Go modules, each major of a package a module of its own, as Go wants it.

use std::collections::BTreeMap;
use std::path::Path;

use crate::graph::{self, Package};
use crate::hub::write;

/// The module of a package's major.
pub(crate) fn module(name: &str, major: u32) -> String {
    let suffix = if major > 1 { format!("/v{major}") } else { String::new() };
    format!("bench.test/{name}{suffix}")
}

/// Writes the graph as a module proxy, without the modules' files: only what a build list needs.
pub(crate) fn write_proxy(folder: &Path, packages: &[Package]) {
    for package in packages {
        let mut lists: BTreeMap<u32, String> = BTreeMap::new();
        for version in &package.versions {
            let number = graph::text(version.number);
            let module = module(&package.name, version.number[0]);
            let mut text = format!("module {module}\n\ngo 1.16\n");
            for dependency in &version.dependencies {
                let name = &packages[dependency.package].name;
                let needed = self::module(name, dependency.least[0]);
                text.push_str(&format!("require {needed} v{}\n", graph::text(dependency.least)));
            }
            let place = folder.join(format!("{module}/@v"));
            write(&place.join(format!("v{number}.mod")), text.as_bytes());
            let information = format!(r#"{{"Version":"v{number}","Time":"2020-01-01T00:00:00Z"}}"#);
            write(&place.join(format!("v{number}.info")), information.as_bytes());
            lists.entry(version.number[0]).or_default().push_str(&format!("v{number}\n"));
        }
        for (major, list) in lists {
            let place = folder.join(format!("{}/@v/list", module(&package.name, major)));
            write(&place, list.as_bytes());
        }
    }
}
