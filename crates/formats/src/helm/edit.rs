//! Dependencies as `Chart.yaml` writes them, for commands that change it.

use std::path::Path;

use mu_manifest::Requirement;
use mu_manifest::edit::{Dialect, Placed};
use mu_manifest::reference::{Protocol, Reference, VersionSpec};
use mu_manifest::source::{New, SourceError, TextProblem};

use super::{CHART, FORMAT, REQUIREMENTS};
use crate::aliases::HelmRepositoryAliases;
use crate::files::Texts;
use crate::range::{ranged, rewritten};

/// A `Chart.yaml` that says nothing of a chart.
const NAMELESS: &str = "name: chart\nversion: 0.0.0\n";

/// What Helm takes for any version.
const ANY: &str = "*";

/// The dependencies of charts.
#[derive(Debug, Clone, Default)]
pub struct Charts {
    /// Short names of repositories.
    pub aliases: HelmRepositoryAliases,
}

impl Dialect for Charts {
    fn requirements(&self, path: &Path, text: &str) -> Result<Vec<Placed>, SourceError> {
        match path.file_name() {
            // Name and version are in another file.
            Some(name) if name == REQUIREMENTS => {
                let chart = (CHART.to_owned(), NAMELESS.to_owned());
                let texts = Texts([chart, (REQUIREMENTS.to_owned(), text.to_owned())].into());
                FORMAT.placed_in(path, text, &texts, Some(&self.aliases))
            }
            _ => FORMAT.placed(path, text, Some(&self.aliases)),
        }
    }

    fn check(&self, _: &Path, _: &str, _: Option<&Requirement>) -> Result<(), TextProblem> {
        Ok(())
    }

    fn entry(&self, new: &Requirement) -> Result<(New, Requirement), TextProblem> {
        let reference = &new.reference;
        let refused = || {
            TextProblem::new(format!("a chart cannot depend on `{reference}`"))
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
        let mut pairs = vec![
            ("name", New::Text(name.leaf().to_owned())),
            ("version", New::Text(version)),
            ("repository", New::Text(format!("{scheme}://{host}{folder}"))),
        ];
        let alias = new.alias.clone();
        pairs.extend(alias.iter().map(|alias| ("alias", New::Text(alias.clone()))));
        let prerelease = names_prerelease(&read);
        let read = Requirement { prerelease, alias, ..Requirement::new(read) };
        Ok((New::Lines(pairs), read))
    }

    fn read_as(&self, wanted: &Requirement) -> Requirement {
        let spec = self.version(wanted).ok().and_then(|text| VersionSpec::parse(&text).ok());
        let reference = wanted.reference.with_version(spec);
        let prerelease = names_prerelease(&reference);
        Requirement { reference, prerelease, indirect: false, ..wanted.clone() }
    }

    fn version(&self, wanted: &Requirement) -> Result<String, TextProblem> {
        match wanted.reference.spec() {
            VersionSpec::Latest => ranged(ANY, wanted),
            VersionSpec::Range(range) => ranged(range.as_str(), wanted),
            VersionSpec::Pin(pin) => Ok(pin.as_str().to_owned()),
            other => Err(TextProblem::new(format!(
                "`{other}` is not a version or a range that Helm reads"
            ))),
        }
    }
}

fn names_prerelease(reference: &Reference) -> bool {
    let text = reference.version_text().unwrap_or_default();
    rewritten(text).is_ok_and(|range| range.prerelease)
}
