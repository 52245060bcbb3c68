//! Dependencies as `Chart.yaml` writes them, for commands that change it.

use std::path::Path;

use mu_manifest::Requirement;
use mu_manifest::edit::{Dialect, Placed};
use mu_manifest::reference::{Protocol, Reference, VersionSpec};
use mu_manifest::source::{New, Problem, SourceError};

use super::{FORMAT, REQUIREMENTS};
use crate::aliases::Aliases;
use crate::range::{ranged, rewritten};
use crate::reader;
use crate::shape::Shape::{Map, Text};

/// What Helm takes for any version.
const ANY: &str = "*";

/// The dependencies of charts.
#[derive(Debug, Clone, Default)]
pub struct Charts {
    /// Short names of repositories.
    pub aliases: Aliases,
}

impl Dialect for Charts {
    fn requirements(&self, path: &Path, text: &str) -> Result<Vec<Placed>, SourceError> {
        FORMAT.placed(path, text, Some(&self.aliases))
    }

    fn check(&self, path: &Path, text: &str, new: Option<&Requirement>) -> Result<(), Problem> {
        let is_second = reader::read(text, &Map(&[("apiVersion", Text)]))
            .is_ok_and(|root| matches!(root.text("apiVersion"), Ok(Some(("v2", _)))));
        let file = path.with_file_name(REQUIREMENTS);
        if is_second {
            return Ok(());
        }
        let line = new.and_then(|new| match self.entry(new).ok()?.0 {
            New::Lines(pairs) => {
                let pairs = pairs.iter().filter_map(|(key, value)| match value {
                    New::Text(text) => Some(format!("{key}: {text:?}")),
                    _ => None,
                });
                Some(format!("{{{}}}", pairs.collect::<Vec<_>>().join(", ")))
            }
            _ => None,
        });
        let what = match line {
            Some(line) => format!("write `- {line}` under `dependencies` in `{}`", file.display()),
            None => format!("change `{}` yourself", file.display()),
        };
        Err(Problem::new(format!(
            "a chart of `apiVersion: v1` has its dependencies in `{REQUIREMENTS}`, which mu reads but does not edit"
        ))
        .help(format!(
            "{what}; or write `apiVersion: v2` here, and move the `dependencies` here"
        )))
    }

    fn entry(&self, new: &Requirement) -> Result<(New, Requirement), Problem> {
        let reference = &new.reference;
        let refused = || {
            Problem::new(format!("a chart cannot depend on `{reference}`"))
                .help("charts depend on charts of repositories and of OCI registries: `helm+https://HOST/REPOSITORY/CHART`, `oci://HOST/REPOSITORY/CHART`")
        };
        let (scheme, protocol) = match reference.protocol() {
            Some(Protocol::HelmHttps) => ("https", "helm+https"),
            Some(Protocol::HelmHttp) => ("http", "helm+http"),
            Some(Protocol::Oci) => ("oci", "oci"),
            _ => return Err(refused()),
        };
        let base = reference.base().ok_or_else(refused)?;
        let name = reference.name();
        let folder = name.namespace().map(|folder| format!("/{folder}")).unwrap_or_default();
        let host = base.as_str().trim_end_matches('/');
        let version = self.version(new)?;
        let text = format!("{protocol}://{host}{folder}/{}#{version}", name.leaf());
        let read = Reference::parse(&text).map_err(|_| refused())?;
        let pairs = vec![
            ("name", New::Text(name.leaf().to_owned())),
            ("version", New::Text(version)),
            ("repository", New::Text(format!("{scheme}://{host}{folder}"))),
        ];
        let read = Requirement { prerelease: names_prerelease(&read), ..Requirement::new(read) };
        Ok((New::Lines(pairs), read))
    }

    fn read_as(&self, wanted: &Requirement) -> Requirement {
        let spec = self.version(wanted).ok().and_then(|text| VersionSpec::parse(&text).ok());
        let reference = wanted.reference.with_version(spec);
        let prerelease = names_prerelease(&reference);
        Requirement { reference, prerelease, indirect: false, ..wanted.clone() }
    }

    fn version(&self, wanted: &Requirement) -> Result<String, Problem> {
        match wanted.reference.spec() {
            VersionSpec::Latest => ranged(ANY, wanted),
            VersionSpec::Range(range) => ranged(range.as_str(), wanted),
            VersionSpec::Pin(pin) => Ok(pin.as_str().to_owned()),
            other => {
                Err(Problem::new(format!("`{other}` is not a version or a range that Helm reads")))
            }
        }
    }
}

fn names_prerelease(reference: &Reference) -> bool {
    let text = reference.version_text().unwrap_or_default();
    rewritten(text).is_ok_and(|range| range.prerelease)
}
