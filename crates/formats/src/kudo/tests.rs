//! Operators and indexes as KUDO writes them, and as they should not be.

use mu_provider::{Dependency, Release, Yanked};

use super::{OPERATOR, completed, index, is_operator, read};
use crate::format::{Package, Reading, Texts};
use crate::manifest;

const KAFKA: &str = r#"apiVersion: kudo.dev/v1beta1
name: "kafka"
operatorVersion: "1.3.1"
kudoVersion: 0.17.0
kubernetesVersion: v1.16
appVersion: "2.5.0"
maintainers:
  - name: Zain Malik
    email: zain@kafka.example
url: https://kafka.apache.org/
tasks:
  - name: deploy
    kind: Apply
    spec:
      resources: [service.yaml]
  - name: zookeeper
    kind: KudoOperator
    spec: {package: zookeeper, appVersion: 3.4.14, operatorVersion: 0.3.0, parameterFile: zk.yaml}
  - name: again
    kind: KudoOperator
    spec: {package: zookeeper, appVersion: 3.4.14, operatorVersion: 0.3.0}
  - {name: database, kind: KudoOperator, spec: {package: mysql, appVersion: "5.7"}}
  - {name: any, kind: KudoOperator, spec: {package: cowsay}}
  - {name: inner, kind: KudoOperator, spec: {package: ./packages/exporter}}
  - {name: beside, kind: KudoOperator, spec: {package: ../monitor}}
  - {name: web, kind: KudoOperator, spec: {package: "https://kudo.example/web-1.2.tgz"}}
plans:
  deploy: {strategy: serial}
"#;

fn operator(text: &str, is_own: bool) -> Result<Package, String> {
    let files = Texts([(OPERATOR.to_owned(), text.to_owned())].into());
    let around = Reading { is_own, ..Reading::default() };
    read(&files, &around).map_err(|error| error.to_string())
}

fn references(release: &Release) -> Vec<String> {
    let all = release.dependencies.iter().flatten();
    all.map(|one| match one {
        Dependency::Reference(reference) => reference.clone(),
        Dependency::Detailed(one) => {
            format!("{} of {}", one.reference, one.app_version.as_deref().unwrap_or_default())
        }
    })
    .collect()
}

#[test]
fn an_operator_is_a_package_of_its_application_and_its_own_version() {
    let package = operator(KAFKA, true).expect("is an operator");
    let release = &package.release;
    assert_eq!((&*release.name, &*release.version), ("kafka", "1.3.1"));
    assert_eq!(release.versioning.as_deref(), Some("composite"));
    assert_eq!(
        references(release),
        [
            "zookeeper#3.4.14-0.3.0",
            "mysql of 5.7",
            "cowsay",
            "../monitor",
            "https://kudo.example/web-1.2.tgz"
        ]
    );
    assert_eq!(release.bundled, ["exporter"]);
    let lines: Vec<usize> = package.places.iter().map(|place| place.line).collect();
    assert_eq!(lines, [16, 22, 23, 25, 26]);
    let constraints: Vec<String> =
        release.constraints.iter().map(|(fact, range)| format!("{fact} {range}")).collect();
    assert_eq!(constraints, ["kubernetes >=1.16.0", "kudo >=0.17.0"]);
    let seen = manifest(&package).expect("has a name");
    assert_eq!(seen.version.as_ref().expect("has one").to_string(), "2.5.0-1.3.1");
    assert_eq!(seen.dependencies[1].app_version.as_deref(), Some("5.7"));
    assert_eq!(seen.to_release().versioning, release.versioning);
    // In an archive there is no folder beside it, and KUDO looks inside.
    let published = operator(KAFKA, false).expect("is an operator").release;
    assert_eq!(published.bundled, ["exporter", "monitor"]);
    // Without an application it has a plain version.
    let plain = operator(&KAFKA.replace("appVersion: \"2.5.0\"", ""), true).expect("is one");
    assert_eq!(plain.release.versioning, None);
    assert_eq!(
        manifest(&plain).expect("has a name").version.expect("has one").to_string(),
        "1.3.1"
    );
}

#[test]
fn what_is_none_or_cannot_be_used_is_refused() {
    assert!(is_operator(KAFKA));
    assert!(is_operator("apiVersion: kudo.dev/v1beta1\nname: [\n"));
    for other in ["", "apiVersion: apps/v1 # kudo.dev/\n", "{{ a template }}: [", "[kudo.dev/v1]"] {
        assert!(!is_operator(other), "{other}");
    }
    let task = |spec: &str| {
        KAFKA.replace("package: zookeeper, appVersion: 3.4.14, operatorVersion: 0.3.0", spec)
    };
    for (text, expected) in [
        (
            String::new(),
            "operator.yaml:1:1: this is not an operator of KUDO: its `apiVersion` is not `kudo.dev/…`",
        ),
        (KAFKA.replace("name: \"kafka\"", ""), "operator.yaml:1:1: the operator has no `name`"),
        (
            KAFKA.replace("\"kafka\"", "a/b"),
            "operator.yaml:2:7: `a/b` is not the name of an operator",
        ),
        (KAFKA.replace("\"1.3.1\"", "one"), "operator.yaml:3:18: `one` is not a version"),
        (
            KAFKA.replace("\"2.5.0\"", "../bar"),
            "operator.yaml:6:13: the appVersion `../bar` cannot be a part of a version",
        ),
        (
            KAFKA.replace("v1.16", "'>=1.16'"),
            "operator.yaml:5:20: `kubernetesVersion`: `>=1.16` is not a version",
        ),
        (
            task("package: zookeeper, operatorVersion: 0.3.0"),
            "operator.yaml:18:49: the dependency `zookeeper` has the operatorVersion `0.3.0` without an appVersion, which does not say which version it is",
        ),
        (
            task("operatorVersion: 0.3.0"),
            "operator.yaml:16:5: a task of the kind `KudoOperator` has no `package`",
        ),
        (task("package: a b"), "operator.yaml:18:21: `a b` is not a valid package name"),
        (
            task("package: 'ftp:// x'"),
            "operator.yaml:18:21: the dependency `ftp:// x` has no valid reference",
        ),
    ] {
        let error = operator(&text, true).expect_err("is refused");
        assert!(error.starts_with(expected), "{error}");
    }
}

const INDEX: &str = r#"apiVersion: v1
entries:
  kafka:
  - appVersion: 2.5.0
    digest: 44136FA355B3678A1146AD16F7E8649E94FB4FC21FE77E8310C060F61CAAFF8A
    maintainers: [{name: Zain Malik, email: zain@kafka.example}]
    name: kafka
    operatorVersion: 1.3.1
    urls: [https://kudo.example/0.10.0/kafka-2.5.0_1.3.1.tgz]
  - {appVersion: 2.5.0, name: kafka, operatorVersion: 1.3.0, urls: [a.tgz], removed: true}
  - {appVersion: bar, name: kafka, operatorVersion: 1.2.0, urls: [a.tgz]}
  - {name: kafka, operatorVersion: 0.1.0, urls: [a.tgz]}
  - {name: kafka, version: 0.0.1, urls: [a.tgz]}
  ../evil:
  - {name: ../evil, operatorVersion: 1.0.0, urls: [a.tgz]}
generated: "2020-09-01T10:11:12Z"
"#;

#[test]
fn an_index_says_everything_but_the_tasks() {
    let index = index("index.yaml", INDEX).expect("is an index");
    assert_eq!(index.packages.keys().collect::<Vec<_>>(), ["kafka"]);
    let lines = index.packages["kafka"].split(|byte| *byte == b'\n');
    let lines: Vec<Release> = lines
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).expect("is a line"))
        .collect();
    let versions: Vec<String> = lines.iter().map(Release::full_version).collect();
    assert_eq!(versions, ["2.5.0-1.3.1", "2.5.0-1.3.0", "bar-1.2.0", "0.1.0", ""]);
    let reason = lines[4].unusable.as_deref();
    assert_eq!(reason, Some("line 13 of the index has an entry without `operatorVersion`"));
    assert_eq!(index.misnamed.keys().collect::<Vec<_>>(), ["../evil"]);
    assert_eq!(lines[0].dependencies, None);
    assert_eq!(lines[1].yanked, Yanked::Flag(true));
    assert_eq!((lines[2].app_version.as_deref(), &lines[2].unusable), (Some("bar"), &None));
    // The archive has the rest, if it is the one that the index means.
    let full = completed(&lines[0], KAFKA);
    assert_eq!((full.unusable.as_deref(), &full.archive), (None, &lines[0].archive));
    assert_eq!(references(&full)[0], "zookeeper#3.4.14-0.3.0");
    assert_eq!(full.constraints["kudo"], ">=0.17.0");
    let other = completed(&lines[1], KAFKA);
    assert_eq!(other.unusable.as_deref(), Some("its archive has kafka 2.5.0-1.3.1"));
    let broken = completed(&lines[0], "apiVersion: kudo.dev/v1\n").unusable;
    assert_eq!(broken.as_deref(), Some("operator.yaml:1:1: the operator has no `name`"));
}

#[test]
fn app_version_and_operator_version_together_tell_versions_apart() {
    let entry = |app: &str, own: &str, digit: &str| {
        let digest = digit.repeat(64);
        format!(
            "  - {{appVersion: {app}, name: kafka, operatorVersion: {own}, digest: {digest}, urls: [a.tgz]}}\n"
        )
    };
    let entries = [
        entry("2.3.0", "1.1.0", "a"),
        entry("3.0.0", "1.1.0", "b"),
        entry("3.0.1", "1.1.0", "c"),
        entry("3.0.0", "1.2.0", "d"),
        // These two are one version.
        entry("3.0.0", "1.2.0", "e"),
        // One that cannot be used is no other one, either.
        entry("2.4.0", "1.3.0", "x"),
        entry("2.3.0", "1.3.0", "f").replace("appVersion: 2.3.0, ", ""),
    ];
    let text = format!("entries:\n  kafka:\n{}", entries.concat());
    let index = index("index.yaml", &text).expect("is an index");
    let lines = index.packages["kafka"].split(|byte| *byte == b'\n');
    let lines = lines.filter_map(|line| serde_json::from_slice::<Release>(line).ok());
    let seen: Vec<_> = lines.map(|line| (line.full_version(), line.unusable.is_some())).collect();
    let seen: Vec<(&str, bool)> = seen.iter().map(|(text, bad)| (&**text, *bad)).collect();
    assert_eq!(
        seen,
        [
            ("2.3.0-1.1.0", false),
            ("3.0.0-1.1.0", false),
            ("3.0.1-1.1.0", false),
            ("3.0.0-1.2.0", true),
            ("2.4.0-1.3.0", true),
            ("1.3.0", false),
        ]
    );
}

#[test]
fn an_app_version_can_be_any_text() {
    let text = KAFKA.replace("\"2.5.0\"", "11 SR2").replace("3.4.14,", "Frodo,");
    let package = operator(&text, true).expect("is an operator");
    let version = manifest(&package).expect("has a name").version.expect("has one");
    assert_eq!(version.to_string(), "11 SR2-1.3.1");
    assert_eq!((version.app(), version.revision()), (Some("11 SR2"), Some("1.3.1")));
    assert_eq!(references(&package.release)[0], "zookeeper#Frodo-0.3.0");
    assert_eq!(package.release.api_version.as_deref(), Some("kudo.dev/v1beta1"));
}

#[test]
fn indexes_of_helm_and_of_kudo_are_told_apart() {
    let charts =
        "entries:\n  web:\n  - {apiVersion: v2, name: web, version: 1.0.0, urls: [w.tgz]}\n";
    let error = index("index.yaml", charts).expect_err("has charts");
    assert_eq!((error.line, error.column), (3, 42));
    assert!(error.reason.contains("`helm+https://` leads to charts"), "{error}");
    let aliases = crate::HelmRepositoryAliases::default();
    let text = INDEX.replace("version: 0.0.1, ", "");
    let error = crate::helm::index("index.yaml", &text, &aliases).expect_err("has operators");
    assert!(error.reason.contains("which `kudo+https://` leads to"), "{error}");
    assert_eq!(index("index.yaml", "entries: {}\n").map(|index| index.packages.len()), Ok(0));
}
