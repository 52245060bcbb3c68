//! `sbom`: the packages in use as a bill of materials, as CycloneDX 1.6 or SPDX 2.3 in JSON.
//!
//! It is made of Mu.lock and of what is on this machine, and the same lock gives the same bytes: there is no date in it but that of
//! `SOURCE_DATE_EPOCH`, and its number is made of its content. What a package does not say is marked as incomplete.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use mu_provider::ArchiveDigest;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::lock::LockedPackage;
use crate::ops::graph::inventory::{Inventory, PackageInUse, license_expression};
use crate::ops::session::source::{PackagePlace, escaped, purl_of_own};
use crate::ops::{CommandError, Session};

/// In which format a bill of materials is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SbomFormat {
    /// CycloneDX 1.6.
    CycloneDx,
    /// SPDX 2.3.
    Spdx,
}

/// The bill of materials of the packages in use; `version` is that of this program.
pub fn sbom(session: &Session, format: SbomFormat, version: &str) -> Result<Value, CommandError> {
    let inventory = Inventory::load(session)?;
    let bill = Bill::new(session, &inventory);
    Ok(match format {
        SbomFormat::CycloneDx => bill.cyclonedx(version),
        SbomFormat::Spdx => bill.spdx(version, created(session)),
    })
}

/// The time in a bill: that of `SOURCE_DATE_EPOCH`, or else the beginning of Unix time, because no clock makes the same bytes twice.
fn created(session: &Session) -> Timestamp {
    let seconds = session.environment.variable("SOURCE_DATE_EPOCH");
    let seconds = seconds.and_then(|text| text.parse().ok()).unwrap_or_default();
    Timestamp::from_second(seconds).unwrap_or_default()
}

/// What is in a bill of materials, in either format.
struct Bill<'i> {
    /// The name of the workspace.
    name: String,
    /// The packages of the workspace, which are what the bill is about.
    roots: Vec<Line<'i>>,
    /// What they use.
    used: Vec<Line<'i>>,
    /// The images that packages declare.
    images: BTreeSet<String>,
}

/// A package in a bill.
struct Line<'i> {
    package: &'i PackageInUse,
    entry: Option<&'i LockedPackage>,
    /// Its purl, which also names it inside the bill.
    purl: String,
    /// The purls of what it depends on.
    needs: BTreeSet<String>,
    /// The images that it declares; `None` if it declares none.
    images: Option<Vec<String>>,
}

impl<'i> Bill<'i> {
    fn new(session: &Session, inventory: &'i Inventory) -> Self {
        let purls: BTreeMap<usize, String> = inventory
            .packages
            .iter()
            .map(|package| (package.node, purl(session, package, inventory.entry(package))))
            .collect();
        let line = |package: &'i PackageInUse| {
            let edges = inventory.graph.vertices[package.node].edges.iter();
            let images = inventory.images(package).ok();
            let images = images.map(|images| images.into_iter().map(|image| image.image).collect());
            Line {
                package,
                entry: inventory.entry(package),
                purl: purls[&package.node].clone(),
                needs: edges.filter_map(|edge| purls.get(&edge.to).cloned()).collect(),
                images,
            }
        };
        // The workspace's own packages are what the bill is about; everything else is below them.
        let lines = inventory.packages.iter().map(line);
        let (roots, used): (Vec<Line<'i>>, Vec<Line<'i>>) =
            lines.partition(|line| line.package.locked.is_none());
        let images = roots.iter().chain(&used).flat_map(|line| line.images.iter().flatten());
        let name = match &roots[..] {
            [one] => one.package.named.id.name_str().to_owned(),
            _ => {
                let namespace = session.workspace.namespace.as_ref();
                namespace.map_or_else(|| "workspace".to_owned(), |own| own.name.to_string())
            }
        };
        Self { name, images: images.cloned().collect(), roots, used }
    }

    fn lines(&self) -> impl Iterator<Item = &Line<'i>> {
        self.roots.iter().chain(&self.used)
    }

    /// The bill as CycloneDX 1.6 has it: <https://cyclonedx.org/docs/1.6/json/>.
    fn cyclonedx(&self, version: &str) -> Value {
        // What depends on what, and where it stands. Everything is named by its purl, also inside of the document:
        //
        //     metadata.component   the workspace
        //       └─ application     a package of the workspace      components, without a scope
        //            └─ library    a package of Mu.lock            components; `excluded` if only tests and tools need it
        //                 └─ container   an image that it declares   components
        //
        // The arrows are in `dependencies`, one list for each package. A package that declares no image may run some: its own
        // list is no more than a part, which `compositions` says.
        let root = "workspace";
        let components = self.lines().map(Line::component);
        let images = self.images.iter().map(|image| {
            let purl = purl_of_image(image);
            json!({ "type": "container", "bom-ref": purl, "name": image, "purl": purl })
        });
        let components: Vec<Value> = components.chain(images).collect();
        let roots: Vec<&str> = self.roots.iter().map(|line| &*line.purl).collect();
        let below = self.lines().map(|line| {
            let images = line.images.iter().flatten().map(|image| purl_of_image(image));
            let needs: BTreeSet<String> = line.needs.iter().cloned().chain(images).collect();
            json!({ "ref": line.purl, "dependsOn": needs })
        });
        let mut dependencies = vec![json!({ "ref": root, "dependsOn": roots })];
        dependencies.extend(below);
        // Without a statement, a reader may take a list for complete.
        let silent = self.lines().filter(|line| line.images.is_none());
        let silent: Vec<&str> = silent.map(|line| &*line.purl).collect();
        let compositions = match silent.is_empty() {
            true => json!([]),
            false => json!([{ "aggregate": "incomplete", "assemblies": silent }]),
        };
        // The number is made of all the rest, so it is filled in at the end.
        let mut bill = json!({
            "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
            "bomFormat": "CycloneDX",
            "specVersion": "1.6",
            "serialNumber": "",
            "version": 1,
            "metadata": {
                "tools": { "components": [{ "type": "application", "name": "mu", "version": version }] },
                "component": { "type": "application", "bom-ref": root, "name": self.name },
            },
            "components": components,
            "dependencies": dependencies,
            "compositions": compositions,
        });
        bill["serialNumber"] = format!("urn:uuid:{}", number_of(&bill)).into();
        bill
    }

    /// The bill as SPDX 2.3 has it: <https://spdx.github.io/spdx-spec/v2.3/>.
    fn spdx(&self, version: &str, created: Timestamp) -> Value {
        // Names inside of the document may have only letters, digits, dots and hyphens, so packages are numbered in the order of
        // their purls, and images in theirs.
        let root = "SPDXRef-workspace";
        let names: BTreeMap<&str, String> = self
            .lines()
            .map(|line| &*line.purl)
            .enumerate()
            .map(|(number, purl)| (purl, format!("SPDXRef-package-{}", number + 1)))
            .collect();
        let images: BTreeMap<&str, String> = self
            .images
            .iter()
            .enumerate()
            .map(|(number, image)| (&**image, format!("SPDXRef-image-{}", number + 1)))
            .collect();
        let mut packages = vec![spdx_package(root, &self.name)];
        packages.extend(self.lines().map(|line| line.spdx_package(&names[&*line.purl])));
        packages.extend(images.iter().map(|(image, name)| {
            let mut package = spdx_package(name, image);
            package["externalRefs"] = external(&purl_of_image(image));
            package
        }));
        // The same as a list of sentences:
        //
        //     document DESCRIBES workspace
        //     workspace CONTAINS each of its packages
        //     package DEPENDS_ON package, package DEPENDS_ON image
        //     package DEPENDS_ON NOASSERTION, where it declares no image: there may be more
        //
        let mut relationships = vec![relationship("SPDXRef-DOCUMENT", "DESCRIBES", root)];
        for line in &self.roots {
            relationships.push(relationship(root, "CONTAINS", &names[&*line.purl]));
        }
        for line in self.lines() {
            let own = &names[&*line.purl];
            let below = line.needs.iter().filter_map(|purl| names.get(&**purl));
            let run = line.images.iter().flatten().filter_map(|image| images.get(&**image));
            relationships
                .extend(below.chain(run).map(|other| relationship(own, "DEPENDS_ON", other)));
            if line.images.is_none() {
                // What else it depends on is not known.
                relationships.push(relationship(own, "DEPENDS_ON", "NOASSERTION"));
            }
        }
        let created = created.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let mut bill = json!({
            "spdxVersion": "SPDX-2.3",
            "dataLicense": "CC0-1.0",
            "SPDXID": "SPDXRef-DOCUMENT",
            "name": self.name,
            "documentNamespace": "",
            "creationInfo": { "created": created, "creators": [format!("Tool: mu-{version}")] },
            "packages": packages,
            "relationships": relationships,
        });
        let namespace = format!("https://spdx.org/spdxdocs/mu-{}", number_of(&bill));
        bill["documentNamespace"] = namespace.into();
        bill
    }
}

impl Line<'_> {
    /// Its component in CycloneDX.
    fn component(&self) -> Value {
        let named = &self.package.named;
        let mut component = json!({
            "type": if self.entry.is_some() { "library" } else { "application" },
            "bom-ref": self.purl,
            "name": named.id.name_str(),
        });
        if let Some(version) = &named.version {
            component["version"] = version.clone().into();
        }
        if let Some(description) = &self.package.description {
            component["description"] = description.clone().into();
        }
        if self.package.is_for_development {
            component["scope"] = "excluded".into();
        }
        if let Some(archive) = self.entry.and_then(|entry| entry.archive) {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": digits(archive) }]);
        }
        if let Some(license) = &self.package.license {
            component["licenses"] = match license_expression(license) {
                Some(expression) => json!([{ "expression": expression }]),
                None => json!([{ "license": { "name": license } }]),
            };
        }
        component["purl"] = self.purl.clone().into();
        // CycloneDX has no place for the digest of a tree, nor for a patch of it.
        if let Some(entry) = self.entry {
            let mut properties = vec![property("mu:source", &entry.source.to_string())];
            properties
                .extend(entry.installed_digest().map(|h1| property("mu:digest", &h1.to_string())));
            properties.extend(entry.patch.map(|patch| property("mu:patch", &patch.to_string())));
            component["properties"] = properties.into();
        }
        component
    }

    /// Its package in SPDX, called `name` there.
    fn spdx_package(&self, name: &str) -> Value {
        let named = &self.package.named;
        let mut package = spdx_package(name, named.id.name_str());
        if let Some(version) = &named.version {
            package["versionInfo"] = version.clone().into();
        }
        if let Some(url) = self.entry.and_then(|entry| entry.url.as_deref()) {
            package["downloadLocation"] = url.into();
        }
        if let Some(archive) = self.entry.and_then(|entry| entry.archive) {
            let value = digits(archive);
            package["checksums"] = json!([{ "algorithm": "SHA256", "checksumValue": value }]);
        }
        if let Some(license) = &self.package.license {
            // Only an expression is allowed there; what people wrote otherwise is a comment.
            match license_expression(license) {
                Some(expression) => package["licenseDeclared"] = expression.into(),
                None => package["licenseComments"] = license.clone().into(),
            }
        }
        if let Some(description) = &self.package.description {
            package["description"] = description.clone().into();
        }
        package["externalRefs"] = external(&self.purl);
        package
    }
}

/// A property of CycloneDX.
fn property(name: &str, value: &str) -> Value {
    json!({ "name": name, "value": value })
}

/// A package of SPDX of which only the name is known.
fn spdx_package(id: &str, name: &str) -> Value {
    json!({
        "SPDXID": id,
        "name": name,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": false,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": "NOASSERTION",
        "copyrightText": "NOASSERTION",
    })
}

/// The purl of a package of SPDX.
fn external(purl: &str) -> Value {
    json!([{
        "referenceCategory": "PACKAGE-MANAGER",
        "referenceType": "purl",
        "referenceLocator": purl,
    }])
}

/// A relationship of SPDX.
fn relationship(from: &str, kind: &str, to: &str) -> Value {
    json!({ "spdxElementId": from, "relationshipType": kind, "relatedSpdxElement": to })
}

/// The purl of a package in use.
fn purl(session: &Session, package: &PackageInUse, entry: Option<&LockedPackage>) -> String {
    match entry {
        Some(entry) => PackagePlace::of_locked(session.index().providers(), entry).purl(),
        None => purl_of_own(&package.named.id, package.named.version.as_deref()),
    }
}

/// The purl of a container image.
fn purl_of_image(image: &str) -> String {
    let (place, digest) = match image.split_once('@') {
        Some((place, digest)) => (place, format!("@{}", escaped(digest))),
        None => (image, String::new()),
    };
    // A colon behind the last slash begins the tag; one before it, a port.
    let begin = place.rfind('/').map_or(0, |at| at + 1);
    let (place, tag) = match place[begin..].find(':') {
        Some(at) => (&place[..begin + at], format!("&tag={}", escaped(&place[begin + at + 1..]))),
        None => (place, String::new()),
    };
    let leaf = escaped(&place[begin..]).to_lowercase();
    format!("pkg:oci/{leaf}{digest}?repository_url={}{tag}", escaped(place))
}

/// The hexadecimal digits of a digest, without the name of the algorithm.
fn digits(digest: ArchiveDigest) -> String {
    digest.to_string().trim_start_matches("sha256:").to_owned()
}

/// A UUID made of content, as RFC 9562 has version 8.
fn number_of(bill: &Value) -> String {
    let mut hash: [u8; 32] = Sha256::digest(bill.to_string().as_bytes()).into();
    // The version and the variant have fixed bits; the others are free.
    hash[6] = 0x80 | (hash[6] & 0x0f);
    hash[8] = 0x80 | (hash[8] & 0x3f);
    let text = digits(ArchiveDigest::from_bytes(hash));
    let parts = [&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..32]];
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use super::purl_of_image;

    #[test]
    fn an_image_has_a_purl_with_its_place_and_tag() {
        let place = "localhost%3A5000%2Fweb%2Fapp";
        for (image, expected) in [
            ("nginx", "pkg:oci/nginx?repository_url=nginx".to_owned()),
            ("nginx:1.27", "pkg:oci/nginx?repository_url=nginx&tag=1.27".to_owned()),
            (
                "localhost:5000/web/App",
                format!("pkg:oci/app?repository_url={}", place.replace("app", "App")),
            ),
            (
                "localhost:5000/web/app:2@sha256:00",
                format!("pkg:oci/app@sha256%3A00?repository_url={place}&tag=2"),
            ),
        ] {
            assert_eq!(purl_of_image(image), expected);
        }
    }
}
