//! Catalogs and bundles as OLM's own tools write them, and as they should not be.

use mu_provider::Release;
use serde_json::Value;

use super::{
    ANNOTATIONS, CatalogDocuments, DEPENDENCIES, Index, PROPERTIES_FILE, best_release, is_bundle,
    read,
};
use crate::format::{Reading, Texts};
use crate::manifest;
use crate::node::{Kind, Node};
use crate::shape::{Shape, Values};

mod told;

fn index(text: &str) -> Index {
    let mut catalog = CatalogDocuments::default();
    catalog.add("catalog.yaml", text, &mut |_| None).expect("is short");
    assert!(catalog.has_catalog_documents());
    catalog.finish()
}

/// All that the documents of a text say, as JSON.
fn documents(text: &str) -> Vec<Value> {
    fn value(node: &Node<'_>) -> Value {
        match &node.kind {
            Kind::Null => Value::Null,
            Kind::Scalar(text) => text.as_ref().into(),
            Kind::List(items) => items.iter().map(value).collect(),
            Kind::Map(entries, _) => {
                entries.iter().map(|one| (one.key.to_string(), value(&one.value))).collect()
            }
        }
    }
    let mut all = Vec::new();
    let mut take = |node: Node<'_>, _| all.push(value(&node));
    crate::reader::documents(text, &Shape::All, &mut Values::default(), &mut take)
        .expect("is YAML");
    all
}

fn lines(index: &Index, package: &str) -> Vec<String> {
    let lines = index.packages.get(package).map(Vec::as_slice).unwrap_or_default();
    let text = std::str::from_utf8(lines).expect("is UTF-8");
    text.lines().map(str::to_owned).collect()
}

fn releases(index: &Index, package: &str) -> Vec<Release> {
    lines(index, package).iter().map(|line| serde_json::from_str(line).expect("is one")).collect()
}

const KAFKA: &str = r#"
schema: olm.package
name: kafka
defaultChannel: stable
---
schema: olm.channel
package: kafka
name: fast
entries:
- {name: kafka.v0.3.0, replaces: kafka.v0.2.0, skips: [kafka.v0.2.1], skipRange: '>=0.1.0 <0.3.0'}
---
schema: olm.channel
package: kafka
name: stable
entries:
- {name: kafka.v0.2.0, replaces: kafka.v0.1.0}
- {name: kafka.v0.3.0, replaces: kafka.v0.2.0}
---
schema: olm.bundle
package: kafka
name: kafka.v0.2.0
image: quay.io/acme/kafka@sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a
properties:
- {type: olm.package, value: {packageName: kafka, version: 0.2.0}}
- {type: olm.gvk, value: {group: kafka.example, version: v1, kind: Kafka}}
- {type: olm.gvk.required, value: {group: cert-manager.io, version: v1, kind: Certificate}}
- {type: olm.gvk.required, value: {version: v1, kind: ConfigMap}}
- {type: olm.package.required, value: {packageName: zookeeper, versionRange: '>=0.9.0 !1.0.0'}}
- {type: olm.maxOpenShiftVersion, value: 4.12}
- {type: olm.constraint, value: {all: {constraints: [{gvk: {group: a.example, version: v1, kind: A}}, {package: {packageName: b, versionRange: 1.x}}]}}}
- type: olm.csv.metadata
  value:
    displayName: Kafka
    minKubeVersion: v1.25.0
    keywords: [queue]
    maintainers: [{name: Ada, email: ada@acme.example}]
    links: [{name: Docs, url: 'https://kafka.example/'}]
    annotations: {description: Runs Kafka, createdAt: '2026-01-02T03:04:05Z', repository: 'https://git.acme.example/kafka'}
    crdDescriptions: {owned: [{name: topics.kafka.example, version: v1, kind: Topic}]}
---
schema: olm.bundle
package: kafka
name: kafka.v0.3.0
properties:
- {type: olm.package, value: {packageName: kafka, version: 0.3.0}}
---
schema: olm.deprecations
package: kafka
entries:
- {reference: {schema: olm.channel, name: stable}, message: 'use fast'}
"#;

#[test]
fn a_range_of_upgrades_that_cannot_be_read_is_left_out_and_named() {
    let text = KAFKA.replace("'>=0.1.0 <0.3.0'", "newer");
    let mut catalog = CatalogDocuments::default();
    catalog.add("catalog.yaml", &text, &mut |_| None).expect("is short");
    let index = catalog.finish();
    let notes = [
        "the `skipRange` of `kafka.v0.3.0` in the channel `fast` is left out: the range `newer` is not a range: `newer` is not a version",
    ];
    assert_eq!(index.notes, notes);
    let newest = releases(&index, "kafka").pop().expect("is there");
    assert!(newest.unusable.is_none() && newest.upgrade.iter().all(|one| one.skip_range.is_none()));
    assert_eq!(newest.upgrade.len(), 2, "the other steps count");
}

#[test]
fn an_openshift_that_yaml_has_shortened_is_read_as_it_was_meant() {
    for (written, expected) in [
        ("4.12", "<=4.12"),
        ("4.10", "<=4.10"),
        ("'4.10'", "<=4.10"),
        ("4.20", "<=4.20"),
        ("4.9", "<=4.9"),
        ("'v4.8.3'", "<=4.8.3"),
        ("4", "<=4.0"),
        ("'5'", "<=5.0"),
        ("'4.22'", "<=4.22"),
        ("'4.23'", "<=5.0"),
    ] {
        let text = KAFKA.replace(
            "olm.maxOpenShiftVersion, value: 4.12",
            &format!("olm.maxOpenShiftVersion, value: {written}"),
        );
        let found = releases(&index(&text), "kafka");
        assert_eq!(found[0].constraints["openshift"], expected, "{written}");
    }
}

#[test]
fn what_is_said_of_a_package_is_told_beside_what_is_said_of_its_channels() {
    let more = "- {reference: {schema: olm.package}, message: kafka is at its end}\n- {reference: {schema: olm.channel, name: fast}, message: 'use fast'}\n";
    let more = format!(
        "{more}- {{reference: {{schema: olm.bundle, name: kafka.v0.2.0}}, message: loses data}}\n"
    );
    let index = index(&format!("{KAFKA}{more}"));
    let said = releases(&index, "kafka");
    let said: Vec<_> = said.iter().map(|release| release.deprecated.reason()).collect();
    let expected = ["loses data; use fast; kafka is at its end", "use fast; kafka is at its end"];
    assert_eq!(said, expected.map(|text| Some(text.to_owned())));
}

#[test]
fn a_bundle_becomes_a_line() {
    let index = index(KAFKA);
    let [first, second] = &lines(&index, "kafka")[..] else { panic!("are two: {index:?}") };
    let expected = concat!(
        r#"{"name":"kafka","version":"0.2.0","archive":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","#,
        r#""urls":["oci://quay.io/acme/kafka@sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"],"#,
        r#""dependencies":[{"ref":"zookeeper#>=0.9.0 <1.0.0 || >=0.9.0 >1.0.0","prerelease":true},{"ref":"b#>=1.0.0 <2.0.0","prerelease":true}],"#,
        r#""provides":["kafka.example/v1/Kafka","kafka.example/v1/Topic"],"requires":["cert-manager.io/v1/Certificate","a.example/v1/A"],"#,
        r#""constraints":{"kubernetes":">=1.25.0","openshift":"<=4.12"},"channels":["stable"],"upgrade":{"replaces":"0.1.0"},"#,
        r#""deprecated":"use fast","format":"olm","published":"2026-01-02T03:04:05Z","description":"Runs Kafka","keywords":["queue"],"#,
        r#""maintainers":[{"name":"Ada","email":"ada@acme.example"}],"website":"https://kafka.example/","repository":"https://git.acme.example/kafka","locator":"kafka.v0.2.0"}"#,
    );
    assert_eq!(first, expected);
    // The channels differ in how it is reached, and not all of them are deprecated.
    let expected = concat!(
        r#"{"name":"kafka","version":"0.3.0","dependencies":[],"channels":["stable","fast"],"defaultChannel":"stable","#,
        r#""upgrade":[{"channel":"stable","replaces":"0.2.0"},{"channel":"fast","replaces":"0.2.0","skips":["0.2.1"],"skipRange":">=0.1.0 <0.3.0"}],"#,
        r#""format":"olm","locator":"kafka.v0.3.0"}"#,
    );
    assert_eq!(second, expected);
    assert_eq!(index.kinds["kafka.example/v1/Kafka"], ["kafka"]);
    assert_eq!(best_release(&releases(&index, "kafka")).map(|best| &*best.version), Some("0.3.0"));
}

/// A package `p` with one bundle in its channel, which has these properties besides.
fn bundle(properties: &str) -> Release {
    let text = format!(
        "schema: olm.channel\npackage: p\nname: a\nentries: [{{name: p.v1.0.0}}]\n---\nschema: olm.bundle\npackage: p\nname: p.v1.0.0\nproperties:\n- {{type: olm.package, value: {{packageName: p, version: 1.0.0}}}}\n{properties}"
    );
    releases(&index(&text), "p").remove(0)
}

#[test]
fn a_bundle_that_makes_no_sense_is_a_version_that_cannot_be_used() {
    for (properties, reason) in [
        (
            "- {type: olm.constraint, value: {any: {constraints: []}, failureMessage: needs a or b}}",
            "`any`, which mu cannot check (needs a or b)",
        ),
        ("- {type: olm.constraint, value: {cel: {rule: 'true'}}}", "`cel`"),
        (
            "- {type: olm.constraint, value: {all: {constraints: [{not: {constraints: []}}]}}}",
            "`not`",
        ),
        ("- {type: olm.constraint, value: {}}", "does not know"),
        (
            "- {type: olm.package.required, value: {packageName: q, versionRange: ^1.0.0}}",
            "the range `^1.0.0` of the dependency `q`",
        ),
        (
            "- {type: olm.package.required, value: {packageName: q, versionRange: 1.0.0 - 1.2.0}}",
            "has a hyphen",
        ),
        (
            "- {type: olm.package.required, value: {packageName: a/b, versionRange: 1.0.0}}",
            "not the name of an operator",
        ),
        ("- {type: olm.package.required, value: {packageName: q}}", "has no `versionRange`"),
        ("- {type: olm.gvk, value: {group: a, kind: B}}", "has no `version`"),
        ("- {type: olm.gvk, value: {group: ../a, version: v1, kind: B}}", "not GROUP/VERSION/KIND"),
        ("- {type: olm.maxOpenShiftVersion, value: next}", "`next` is not a version"),
        ("- {type: olm.csv.metadata, value: {minKubeVersion: none}}", "`none` is not a version"),
        ("image: quay.io/a/b@md5:0123", "not SHA-256"),
    ] {
        let release = bundle(properties);
        let said = release.unusable.clone().unwrap_or_default();
        assert!(said.contains(reason), "{properties}: {release:?}");
        assert!(release.provides.is_empty() && release.urls.is_empty());
    }
    assert_eq!(bundle("- {type: olm.label, value: {label: x}}\n- 7\n- {type: 3}").unusable, None);
}

#[test]
fn other_documents_are_not_touched_by_a_bad_one() {
    let text = format!(
        "{KAFKA}---\n[]\n---\nschema: olm.bundle\n---\nschema: olm.bundle\npackage: kafka\nname: kafka.v9.0.0\n---\nschema: olm.bundle\npackage: kafka\nname: nameless\n---\nschema: olm.channel\npackage: kafka\nname: alpha\nentries: [{{name: kafka.v9.0.0}}, 7]\n---\nschema: acme.other\n"
    );
    let found = releases(&index(&text), "kafka");
    let told: Vec<(&str, Option<&str>)> =
        found.iter().map(|one| (&*one.version, one.unusable.as_deref())).collect();
    let reason = "`kafka.v9.0.0` has no property `olm.package`";
    let nameless = "nothing says the version of `nameless`";
    let expected =
        [("0.2.0", None), ("0.3.0", None), ("9.0.0", Some(reason)), ("", Some(nameless))];
    assert_eq!(told, expected);
    // One version twice, and a bundle in no channel.
    let twice = KAFKA.replace("version: 0.3.0}", "version: 0.2.0}");
    let found = releases(&index(&twice), "kafka");
    let reason = "the catalog has it twice: as `kafka.v0.2.0` and `kafka.v0.3.0`";
    assert_eq!(found.iter().map(|one| one.unusable.as_deref()).collect::<Vec<_>>(), [Some(reason)]);
    let outside = KAFKA.replace("- {name: kafka.v0.2.0, replaces: kafka.v0.1.0}\n", "");
    let found = releases(&index(&outside), "kafka");
    assert_eq!(found[0].unusable.as_deref(), Some("no channel of the catalog has `kafka.v0.2.0`"));
}

/// The unusable versions of the catalog `text`, with the reasons, and its documents that cannot be read.
fn unusable(text: &str) -> (Vec<String>, Vec<String>) {
    let index = index(text);
    let all = index.packages.keys().flat_map(|package| releases(&index, package));
    let told =
        all.filter_map(|one| Some(format!("{} {}: {}", one.name, one.version, one.unusable?)));
    (told.collect(), index.broken)
}

#[test]
fn a_document_that_cannot_be_read_takes_out_its_package_alone() {
    let web = KAFKA.replace("kafka", "web");
    let lines = KAFKA.lines().count();
    // It says which package it is about, wherever that is in it.
    for (bad, line, column, reason) in [
        (
            "schema: olm.bundle\nname: [web.v0.4.0\npackage: web",
            4,
            8,
            "illegal placement of ':' indicator",
        ),
        (
            "# b: [\na: b: [\n  {package: \"web\"",
            3,
            5,
            "mapping values are not allowed in this context",
        ),
        (
            "schema: olm.package\nname: 'web'\n\tx",
            4,
            2,
            "tabs disallowed within this context (block indentation)",
        ),
    ] {
        let (told, broken) = unusable(&format!("{KAFKA}---\n{bad}\n---{web}"));
        let line = lines + line;
        let why =
            format!("`catalog.yaml`, line {line}, column {column}: this is not YAML: {reason}");
        let said = format!("a document about it cannot be read: {why}");
        assert_eq!(broken, [why], "{bad}");
        let expected = ["0.2.0", "0.3.0"].map(|version| format!("web {version}: {said}"));
        assert_eq!(told, expected, "{bad}");
    }
    // Nobody knows what it is about.
    let unknown = "---\nschema: olm.bundle\npackages: [";
    let (told, broken) = unusable(&format!("{KAFKA}{unknown}\n---{web}"));
    assert_eq!((told.len(), broken.len()), (0, 1), "{told:?} {broken:?}");
    // All others of the file are about one package.
    let (told, broken) = unusable(&format!("{KAFKA}{unknown}"));
    assert_eq!((told.len(), broken.len()), (2, 1), "{told:?} {broken:?}");
    // Documents of JSON, in one line each and in several.
    for bad in [
        r#"{"schema": "olm.bundle", "package": "web", "name": "web.v0.4.0""#,
        "{\n  \"schema\": \"olm.bundle\",\n  \"package\": \"web\",\n}",
        r#"{"package" : "web" "name": {"a": 1}}"#,
    ] {
        let mut stream = String::new();
        for document in documents(&format!("{web}---{KAFKA}")) {
            stream.push_str(&format!("{document}\n"));
        }
        let bad = format!("{bad}\n{stream}");
        let (told, broken) = unusable(&format!("{stream}{bad}"));
        assert_eq!((told.len(), broken.len()), (2, 1), "{told:?} {broken:?}");
        assert!(told.iter().all(|told| told.starts_with("web ")), "{told:?}");
    }
    // Of many, few are named.
    let many = "---\npackage: web\na: [\n---\nb: [\n".repeat(100);
    let mut catalog = CatalogDocuments::default();
    for file in 0..30 {
        catalog.add(&format!("{file}.yaml"), &many, &mut |_| None).expect("is short");
    }
    assert!(!catalog.has_catalog_documents());
    let broken = catalog.finish().broken;
    assert_eq!((broken.len(), broken.last().map(|one| &**one)), (21, Some("5980 more documents")));
}

#[test]
fn streams_of_json_are_read_as_well() {
    let yaml = index(KAFKA);
    let stream: String = documents(KAFKA).iter().map(Value::to_string).collect();
    let mut catalog = CatalogDocuments::default();
    catalog.add("catalog.json", &stream, &mut |_| None).expect("is short");
    assert_eq!(catalog.finish(), yaml);
    // YAML may look like JSON, too.
    let all: Vec<String> = documents(KAFKA).iter().map(Value::to_string).collect();
    assert_eq!(index(&all.join("\n---\n")), yaml);
    for (text, line) in [("{\"schema\":\"olm.package\"}\n{\"a\": [}", 2), ("a: [\n", 1), ("{", 1)] {
        let mut catalog = CatalogDocuments::default();
        catalog.add("c", text, &mut |_| None).expect("is short");
        assert_eq!(catalog.first_broken().map(|error| error.line), Some(line), "{text}");
    }
}

/// A thousand bundles of fifty packages, each version with a step from the one before.
fn thousand() -> String {
    let mut text = String::new();
    for package in 0..50 {
        let name = format!("p{package}");
        text.push_str(&format!("---\nschema: olm.package\nname: {name}\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: {name}\nname: stable\nentries:\n"));
        for minor in 0..20 {
            text.push_str(&format!(
                "- {{name: {name}.v1.{minor}.0, replaces: {name}.v1.{}.0}}\n",
                minor - 1
            ));
        }
        for minor in 0..20 {
            let needs = (package + 1) % 50;
            text.push_str(&format!("---\nschema: olm.bundle\npackage: {name}\nname: {name}.v1.{minor}.0\nproperties:\n- {{type: olm.package, value: {{packageName: {name}, version: 1.{minor}.0}}}}\n- {{type: olm.gvk, value: {{group: p{package}.example, version: v1, kind: Kind}}}}\n- {{type: olm.gvk.required, value: {{group: p{needs}.example, version: v1, kind: Kind}}}}\n"));
        }
    }
    text
}

#[test]
fn a_catalog_of_a_thousand_bundles_is_read_whole() {
    let index = index(&thousand());
    let count = |package: &str| releases(&index, package).len();
    assert_eq!((index.packages.len(), index.kinds.len()), (50, 50));
    assert_eq!(index.packages.keys().map(|package| count(package)).sum::<usize>(), 1_000);
    let all = index.packages.keys().flat_map(|package| releases(&index, package));
    assert_eq!(all.filter(|release| release.upgrade.len() == 1).count(), 950);
}

/// Defines two versions of a kind; the ClusterServiceVersion names one.
const CRD: &str = "kind: CustomResourceDefinition\nspec: {group: web.example, names: {kind: Web}, versions: [{name: v1}, {name: v1beta1}]}\n";

fn files(csv: &str, dependencies: &str) -> Texts {
    let annotations = "annotations:\n  operators.operatorframework.io.bundle.package.v1: web\n  operators.operatorframework.io.bundle.channels.v1: fast,stable\n  operators.operatorframework.io.bundle.channel.default.v1: stable\n";
    let properties = "properties: [{type: olm.maxOpenShiftVersion, value: '4.9'}]";
    let files = [
        (ANNOTATIONS, annotations),
        (DEPENDENCIES, dependencies),
        (PROPERTIES_FILE, properties),
        ("manifests/crd.yaml", CRD),
        ("manifests/odd.yaml", "kind: CustomResourceDefinition"),
        ("manifests/web.yaml", csv),
    ];
    Texts(files.map(|(name, text)| (name.to_owned(), text.to_owned())).into())
}

#[test]
fn a_folder_is_read_by_what_its_files_say() {
    let csv = "kind: ClusterServiceVersion\nmetadata: {name: web.v1.2.0, annotations: {olm.skipRange: <1.2.0}}\nspec: {version: 1.2.0, replaces: web.v1.1.0, minKubeVersion: 1.20.0, customresourcedefinitions: {owned: [{name: webs.web.example, version: v1, kind: Web}], required: [{name: certs.certs.example, version: v1, kind: Cert}]}}\n";
    let dependencies = "dependencies:\n- {type: olm.package, value: {packageName: db, version: '>=1.0.0'}}\n- {type: olm.gvk, value: {group: q.example, version: v1, kind: Q}}\n- {type: olm.label, value: {label: x}}\n";
    let package = read(&files(csv, dependencies), &Reading::default()).expect("is a bundle");
    let line = serde_json::to_string(&package.release).expect("prints");
    let expected = concat!(
        r#"{"name":"web","version":"1.2.0","dependencies":[{"ref":"db#>=1.0.0","prerelease":true}],"provides":["web.example/v1/Web","web.example/v1beta1/Web"],"#,
        r#""requires":["certs.example/v1/Cert","q.example/v1/Q"],"constraints":{"kubernetes":">=1.20.0","openshift":"<=4.9"},"#,
        r#""channels":["stable","fast"],"defaultChannel":"stable","upgrade":{"replaces":"1.1.0","skipRange":"<1.2.0"},"format":"olm"}"#,
    );
    assert_eq!(line, expected);
    assert_eq!(manifest(&package).expect("has a name").dependencies.len(), 1);
    for (csv, reason) in [
        ("kind: ConfigMap", "no ClusterServiceVersion"),
        ("kind: ClusterServiceVersion\n---\nkind: ClusterServiceVersion", "more than one"),
        ("kind: ClusterServiceVersion\nspec: {version: v}", "`v` is not a version"),
        ("kind: ClusterServiceVersion\nspec: [", "not YAML"),
    ] {
        let error = read(&files(csv, ""), &Reading::default()).expect_err(reason);
        assert!(error.reason.contains(reason), "{error}");
    }
    assert!(!is_bundle("annotations: {}"));
}

#[test]
fn a_catalog_with_too_much_is_not_read() {
    let catalog = |text: &str| CatalogDocuments::default().add("c", text, &mut |_| None);
    let broken = catalog(&"---\na: [\n".repeat(10_001)).expect_err("is too much");
    assert_eq!(broken.to_string(), "more than 10,000 documents that cannot be read");
    let names: String = (0..100_001)
        .map(|number| format!("{{\"schema\":\"olm.package\",\"name\":\"p{number}\"}}\n"))
        .collect();
    let many = catalog(&names).expect_err("is too much");
    assert_eq!(many.to_string(), "more than 100,000 packages and bundles");
}

#[test]
fn keys_that_no_catalog_has_are_told_or_take_out_what_needs_them() {
    let newest = |text: &str| releases(&index(text), "kafka").pop().expect("is there");
    let usable = |text: &str| (newest(text).unusable, newest(text).unknown);
    // What nobody needs is told: of its bundle, or of its package.
    let text = KAFKA.replace("name: kafka.v0.3.0\nprop", "name: kafka.v0.3.0\nlogo: x\nprop");
    assert_eq!(usable(&text), (None, vec!["logo".to_owned()]));
    let text = KAFKA
        .replace("package: kafka\nname: stable", "package: kafka\nname: stable\nx-own: 1\nhint: 2");
    assert_eq!(usable(&text), (None, vec!["hint".to_owned()]));
    // A misspelt key is the reason why its bundle, or its package, cannot be used.
    let reason =
        |from: &str, to: &str| newest(&KAFKA.replace(from, to)).unusable.unwrap_or_default();
    let last = "properties:\n- {type: olm.package, value: {packageName: kafka, version: 0.3.0}}";
    let said = reason(last, &last.replace("properties", "propertis"));
    assert_eq!(said, "unknown key `propertis`; did you mean `properties`?");
    let said = reason(last, &last.replace("version:", "versoin:"));
    assert_eq!(said, "unknown key `versoin`; did you mean `version`?");
    let said = reason("{name: kafka.v0.3.0, replaces:", "{name: kafka.v0.3.0, replces:");
    assert_eq!(
        said,
        "a document about it cannot be read: `catalog.yaml`: unknown key `replces`; did you mean `replaces`?"
    );
    // Authors have types of properties of their own, and documents.
    let own = "- {type: acme.own, value: {versoin: 1}}\n- {type: olm.label, value: {lable: x}}\n";
    let text =
        format!("{}{own}", KAFKA.split("---\nschema: olm.deprecations").next().expect("is there"));
    assert_eq!(usable(&text), (None, Vec::new()));
    let text = format!("{KAFKA}---\nschema: acme.other\npackage: kafka\npropertis: []\n");
    assert_eq!(usable(&text), (None, Vec::new()));
}
