//! Charts and indexes in all their forms.

use std::path::Path;

use mu_manifest::Requirement;
use mu_manifest::edit::{Editor, Section};
use mu_manifest::reference::{Defaults, Reference, VersionSpec};
use mu_provider::{Dependency, Yanked};

use super::*;
use crate::Texts;

fn files(texts: &[(&str, &str)]) -> Texts {
    let texts = texts.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    Texts(texts.collect())
}

fn chart(text: &str) -> Result<Package, String> {
    read(&files(&[(CHART, text)]), &Reading::default()).map_err(|error| error.to_string())
}

/// References, with `(pre)` after those that accept prereleases.
fn references(release: &Release) -> Vec<String> {
    let dependencies = release.dependencies.iter().flatten();
    let shown = |dependency: &Dependency| match dependency {
        Dependency::Detailed(detailed) if detailed.prerelease => {
            format!("{} (pre)", detailed.reference)
        }
        dependency => dependency.reference().to_owned(),
    };
    dependencies.map(shown).collect()
}

const STACK: &str = r#"annotations:
  artifacthub.io/license: Apache-2.0
  artifacthub.io/links: |
    - name: Chart Source
      url: https://github.com/prometheus-community/helm-charts
apiVersion: v2
appVersion: v0.83.0
dependencies:
- condition: crds.enabled
  name: crds
  repository: ""
  version: 0.0.0
- condition: kubeStateMetrics.enabled
  name: kube-state-metrics
  repository: https://prometheus-community.github.io/helm-charts
  version: 5.36.*
- name: prometheus-node-exporter
  alias: linux-exporter
  repository: https://prometheus-community.github.io/helm-charts/
  version: 4.47.*
- name: prometheus-node-exporter
  alias: other-exporter
  repository: https://prometheus-community.github.io/helm-charts/
  version: 4.47.*
- name: common
  repository: oci://registry-1.docker.io/bitnamicharts
  tags:
    - bitnami-common
  version: 2.x.x
- name: edge
  repository: http://localhost:8879/charts
  version: '>= 1.19-0, != 1.20.0'
- {name: private, version: 1.2.3, repository: "@acme"}
- {name: part, version: 0.1.0, repository: file://./charts/part}
- {name: beside, version: 0.1.0, repository: file://../beside}
description: kube-prometheus-stack collects Kubernetes manifests
home: https://github.com/prometheus-operator/kube-prometheus
icon: https://raw.githubusercontent.com/prometheus/logo.png
keywords:
- operator
- 42
kubeVersion: '>=1.19.0-0'
maintainers:
- email: andrew@quadcorps.co.uk
  name: andrewgkew
  url: https://github.com/andrewgkew
- name: bismarck
name: kube-prometheus-stack
sources:
- https://github.com/prometheus-community/helm-charts
type: application
version: 76.3.0
"#;

#[test]
fn a_chart_with_everything_becomes_a_line() {
    let aliases = HelmRepositoryAliases::read(
        "apiVersion: \"\"\nrepositories:\n- name: acme\n  url: https://charts.acme.example/\n",
    );
    let around = Reading { aliases: Some(&aliases), ..Reading::default() };
    let package = read(&files(&[(CHART, STACK)]), &around).expect("is a chart");
    let release = &package.release;
    assert_eq!((&*release.name, &*release.version), ("kube-prometheus-stack", "76.3.0"));
    assert_eq!(release.app_version.as_deref(), Some("v0.83.0"));
    assert_eq!(release.license.as_deref(), Some("Apache-2.0"));
    assert_eq!(release.constraints["kubernetes"], ">=1.19.0-0");
    assert_eq!(release.keywords, ["operator", "42"]);
    assert_eq!(release.maintainers.len(), 2);
    assert_eq!(release.bundled, ["crds", "part", "beside"]);
    assert_eq!(release.format.as_deref(), Some("helm"));
    assert_eq!(
        references(release),
        [
            "helm+https://prometheus-community.github.io/helm-charts/kube-state-metrics#5.36.*",
            "helm+https://prometheus-community.github.io/helm-charts/prometheus-node-exporter#4.47.*",
            "oci://registry-1.docker.io/bitnamicharts/common#2.x.x",
            "helm+http://localhost:8879/charts/edge#>=1.19.0-0 <1.20.0 || >=1.19.0-0 >1.20.0 (pre)",
            "helm+https://charts.acme.example/private#1.2.3",
        ]
    );
    let places = package.places.iter().map(|place| (place.line, place.index));
    assert_eq!(places.collect::<Vec<_>>(), [(13, 1), (17, 2), (25, 4), (30, 5), (33, 6)]);
    // On its author's machine, what is beside it is a folder.
    let own = Reading { is_own: true, ..around };
    let own = read(&files(&[(CHART, STACK)]), &own).expect("is a chart").release;
    assert_eq!(own.bundled, ["crds", "part"]);
    assert_eq!(references(&own).last().map(String::as_str), Some("../beside#0.1.0"));
    let manifest = crate::manifest(&package).expect("has a name");
    let version = manifest.version.as_ref().map(ToString::to_string);
    assert_eq!(version.as_deref(), Some("76.3.0"));
    assert_eq!(manifest.dependencies[4].line, 33);
    assert_eq!(manifest.to_release().dependencies, package.release.dependencies);
}

#[test]
fn the_first_format_has_its_dependencies_in_a_file_of_their_own() {
    let text = "name: old\nversion: v1.2\ndeprecated: true\nappVersion: 1.10\n";
    let requirements = "dependencies:\n  - name: mariadb\n    version: 2.x\n    repository: https://charts.helm.sh/stable\n";
    let both = files(&[(CHART, text), (REQUIREMENTS, requirements)]);
    let package = read(&both, &Reading::default()).expect("is a chart");
    assert_eq!(references(&package.release), ["helm+https://charts.helm.sh/stable/mariadb#2.x"]);
    assert_eq!(package.release.deprecated, Yanked::Flag(true));
    // As Helm writes it into an index.
    assert_eq!(package.release.app_version.as_deref(), Some("1.1"));
    let second =
        files(&[(CHART, &format!("apiVersion: v2\n{text}")), (REQUIREMENTS, requirements)]);
    let package = read(&second, &Reading::default()).expect("is a chart");
    assert_eq!(references(&package.release), ["helm+https://charts.helm.sh/stable/mariadb#2.x"]);
    // Helm has no dependencies of `Chart.yaml` then, unless the other file lists none.
    let listing = format!(
        "{text}dependencies: [{{name: a, version: 1.x, repository: 'https://b.example'}}]\n"
    );
    for (requirements, expected) in
        [("dependencies: []\n", &[][..]), ("# none\n", &["helm+https://b.example/a#1.x"])]
    {
        let both = files(&[(CHART, &listing), (REQUIREMENTS, requirements)]);
        let package = read(&both, &Reading::default()).expect("is a chart");
        assert_eq!(references(&package.release), expected);
    }
    let wrong = files(&[
        (CHART, text),
        (REQUIREMENTS, "dependencies:\n- name: a\n  version: x.y\n  repository: https://h/\n"),
    ]);
    let error = read(&wrong, &Reading::default()).expect_err("has no such range");
    assert_eq!((&*error.file, error.line, error.column), (REQUIREMENTS, 3, 12));
}

#[test]
fn what_is_wrong_is_pointed_at() {
    let head = "apiVersion: v2\nname: web\nversion: 1.0.0\n";
    let dependency = |rest: &str| format!("{head}dependencies:\n- name: a\n{rest}");
    for (text, expected) in [
        ("", "Chart.yaml:1:1: a chart is a map of keys"),
        ("- a\n", "Chart.yaml:1:1: a chart is a map of keys"),
        ("name: web\n", "Chart.yaml:1:1: the chart has no `version`"),
        ("version: 1.0.0\n", "Chart.yaml:1:1: the chart has no `name`"),
        ("name: a/b\nversion: 1.0.0\n", "Chart.yaml:1:7: `a/b` is not the name of a chart"),
        ("name: web\nversion: one\n", "Chart.yaml:2:10: `one` is not a version"),
        ("name: web\nname: web\nversion: 1.0.0\n", "Chart.yaml:2:1: `name` appears twice"),
        (
            "apiVersion: v3\nname: web\nversion: 1.0.0\n",
            "Chart.yaml:1:13: charts of the format `v3` are not supported, only v1 and v2",
        ),
        (
            &format!("{head}kubeVersion: '>=latest'\n"),
            "Chart.yaml:4:14: `kubeVersion`: the range `>=latest` is not a range: `latest` is not a version",
        ),
        (
            &dependency("  version: latest\n  repository: https://h.example\n"),
            "Chart.yaml:6:12: the range `latest` of the dependency `a` is not a range: `latest` is not a version",
        ),
        (
            &format!("{head}type: module\n"),
            "Chart.yaml:4:7: the type `module` is none that Helm knows: `application` or `library`",
        ),
        (
            &dependency("  version: 1.x\n  repository: https://h.example\n  alias: a.b\n"),
            "Chart.yaml:8:10: the alias `a.b` has other characters than letters, digits, `-` and `_`, which Helm refuses",
        ),
        (
            &dependency("- {name: a, version: 2.x, repository: 'https://h.example'}\n"),
            "Chart.yaml:6:10: two dependencies are called `a`: give one of them an `alias` of its own",
        ),
        (
            &dependency("  alias: b\n- {name: b, version: 2.x, repository: 'https://h.example'}\n"),
            "Chart.yaml:7:10: two dependencies are called `b`: give one of them an `alias` of its own",
        ),
        (
            &dependency("  version: 1.x\n  repository: s3://bucket/charts\n"),
            "Chart.yaml:7:15: its repository has the scheme `s3`, which only a Helm plugin supports",
        ),
        (
            &dependency("  version: 1.x\n  repository: https://h.example/charts?token=x\n"),
            "Chart.yaml:7:15: the URL of its repository has a query (`?`), and mu asks no repository with one: a token belongs into `mu login`, and not into a chart",
        ),
        (
            &format!("{head}<<<<<<< HEAD\ndescription: a\n=======\n"),
            "Chart.yaml:4:1: a merge has left its marks here",
        ),
        (
            &dependency("  version: 1.x\n  repository: [a]\n"),
            "Chart.yaml:7:15: `repository` must be text",
        ),
        (&format!("{head}dependencies: a\n"), "Chart.yaml:4:15: `dependencies` must be a list"),
    ] {
        assert_eq!(chart(text).map(|package| package.release.name), Err(expected.to_owned()));
    }
    // Where it was packed, the name of the repository meant something; what came from there is in the archive.
    let named = dependency("  version: 1.x\n  repository: '@acme'\n");
    let texts = files(&[(CHART, &named)]);
    assert_eq!(read(&texts, &Reading::default()).expect("is a chart").release.bundled, ["a"]);
    let none = std::collections::BTreeSet::new();
    for around in [
        Reading { is_own: true, ..Reading::default() },
        Reading { is_source: true, ..Reading::default() },
        Reading { carried: Some(&none), ..Reading::default() },
    ] {
        let error = read(&texts, &around).expect_err("leads nowhere");
        assert_eq!(
            error.reason,
            "the repository `@acme` is not named in Helm's `repositories.yaml`: name it with `helm repo add acme URL`, or write its URL here"
        );
    }
    let secret = dependency("  version: 1.x\n  repository: https://ada:hunter2@h.example/c\n");
    let error = chart(&secret).expect_err("may hold a secret");
    assert!(!error.contains("hunter2"), "{error}");
}

fn lines(index: &Index, name: &str) -> Vec<Release> {
    let lines = index.packages[name].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).expect("is a line")).collect()
}

const INDEX: &str = r#"apiVersion: v1
entries:
  web:
  - apiVersion: v2
    created: "2026-03-01T10:11:12.123456789Z"
    dependencies:
    - name: common
      repository: https://charts.example/stable
      version: ^1.0.0
    digest: 44136FA355B3678A1146AD16F7E8649E94FB4FC21FE77E8310C060F61CAAFF8A
    name: web
    type: application
    urls:
    - web-1.1.0.tgz
    - https://mirror.example/web-1.1.0.tgz
    version: 1.1.0
  - apiVersion: v2
    name: web
    version: 1.0.1
    removed: true
    urls: [web-1.0.1.tgz]
  - apiVersion: v2
    name: web
    version: 1.0.0
    dependencies:
    - {name: common, repository: "https://charts.example/stable", version: newest}
    urls: [web-1.0.0.tgz]
  - apiVersion: v2
    name: other
    version: 0.9.0
    urls: [web-0.9.0.tgz]
  - {apiVersion: v2, name: web, version: 0.8.0}
  - {apiVersion: v2, name: web, version: 0.7.0, urls: [a.tgz], digest: abc}
  - not a chart
  - {apiVersion: v2, name: web}
  old:
  - name: old
    version: v1.2
    urls: [oci://registry.example/old:1.2]
  ../evil:
  - {apiVersion: v2, name: ../evil, version: 1.0.0, urls: [a.tgz]}
  empty: null
generated: "2026-03-01T10:11:12Z"
"#;

#[test]
fn an_index_is_read_chart_by_chart() {
    let index = index("index.yaml", INDEX, &HelmRepositoryAliases::default()).expect("is an index");
    assert_eq!(index.packages.keys().collect::<Vec<_>>(), ["old", "web"]);
    let web = lines(&index, "web");
    let versions: Vec<&str> = web.iter().map(|release| &*release.version).collect();
    assert_eq!(versions, ["1.1.0", "1.0.1", "1.0.0", "0.9.0", "0.8.0", "0.7.0", "", ""]);
    assert_eq!(references(&web[0]), ["helm+https://charts.example/stable/common#^1.0.0"]);
    assert_eq!(web[0].urls, ["web-1.1.0.tgz", "https://mirror.example/web-1.1.0.tgz"]);
    let archive = web[0].archive.as_deref().expect("has a digest");
    assert!(archive.starts_with("sha256:44136fa3"), "{archive}");
    assert_eq!(web[0].published.as_deref(), Some("2026-03-01T10:11:12.123456789Z"));
    assert_eq!(web[1].yanked, Yanked::Flag(true));
    let unusable: Vec<&str> = web[2..].iter().filter_map(|one| one.unusable.as_deref()).collect();
    assert_eq!(
        unusable,
        [
            "the range `newest` of the dependency `common` is not a range: `newest` is not a version",
            "its name is `other`",
            "the index does not say where its archive is",
            "its digest is not SHA-256 in hexadecimal",
            "line 34 of the index has an entry without `version`",
            "line 35 of the index has an entry without `version`",
        ]
    );
    // An index need not have the dependencies of a chart of the first format.
    assert_eq!(lines(&index, "old")[0].dependencies, None);
    assert_eq!(index.misnamed.keys().collect::<Vec<_>>(), ["../evil"]);
}

#[test]
fn what_an_index_has_in_the_wrong_form_is_not_passed_over() {
    let text = "entries:\n  text: web-1.0.0.tgz\n  map: {version: 1.0.0}\n  nothing: []\n  none:\n  a b: []\n  c d:\n  \
                - {apiVersion: v2, name: c d, version: 1.0.0, urls: [a.tgz]}\n  x/y: {}\n  mixed:\n  - {apiVersion: v2, name: mixed, version: 1.0.0, urls: [a.tgz]}\n  \
                - {name: mixed, operatorVersion: 1.0.0, urls: [a.tgz]}\n";
    let read = index("index.yaml", text, &HelmRepositoryAliases::default()).expect("is an index");
    let reasons = |name: &str| -> Vec<Option<String>> {
        lines(&read, name).into_iter().map(|line| line.unusable).collect()
    };
    for (name, line) in [("text", 2), ("map", 3)] {
        let reason = format!("line {line} of the index has no list of its versions");
        assert_eq!(reasons(name), [Some(reason)]);
    }
    let reason = "line 12 of the index has an entry without `version`".to_owned();
    assert_eq!(reasons("mixed"), [None, Some(reason)]);
    assert_eq!(read.packages.keys().collect::<Vec<_>>(), ["map", "mixed", "text"]);
    let misnamed: Vec<&str> = read.misnamed.values().map(String::as_str).collect();
    assert_eq!(read.misnamed.keys().collect::<Vec<_>>(), ["c d", "x/y"]);
    assert!(misnamed[0].ends_with("(line 7)"), "{misnamed:?}");
    assert_eq!(misnamed[1], "`x/y` is not the name of a chart (line 9)");
    // Nothing is known about KUDO's operators in an index of charts.
    let kudo = crate::kudo::index("index.yaml", "entries:\n  kafka: 1.0.0\n  a/b: [x]\n");
    let kudo = kudo.expect("is an index");
    assert_eq!(kudo.packages.keys().collect::<Vec<_>>(), ["kafka"]);
    assert_eq!(kudo.misnamed["a/b"], "`a/b` is not the name of an operator (line 3)");
}

#[test]
fn an_index_in_json_is_the_same() {
    let text = r#"{"apiVersion":"v1","entries":{"web":[{"apiVersion":"v2","name":"web","version":"1.0.0",
        "appVersion":"1.10","deprecated":true,"urls":["web-1.0.0.tgz"],"description":"a \"b\" \u00e9\/"}]},"generated":"x"}"#;
    let index = index("index.yaml", text, &HelmRepositoryAliases::default()).expect("is an index");
    let release = &lines(&index, "web")[0];
    assert_eq!(release.description.as_deref(), Some("a \"b\" é/"));
    assert_eq!(release.deprecated, Yanked::Flag(true));
}

#[test]
fn what_is_no_index_is_refused() {
    for (text, expected) in [
        ("<html>\n", "index.yaml:1:1: this is not an index of charts: it has no `entries`"),
        ("", "index.yaml:1:1: this is not an index of charts: it has no `entries`"),
        ("apiVersion: v1\n", "index.yaml:1:1: this is not an index of charts: it has no `entries`"),
        ("entries: {}\nentries: {}\n", "index.yaml:2:1: `entries` appears twice"),
    ] {
        let read = index("index.yaml", text, &HelmRepositoryAliases::default());
        assert_eq!(read.map_err(|error| error.to_string()), Err(expected.to_owned()));
        assert!(!is_index(text) || text.starts_with("entries"), "{text}");
    }
    assert!(is_index(INDEX) && is_index("generated: x\nentries:\n  a:\n"));
    for text in ["entries: {a: [{name: a", "entries:\n\t- a", "entries: {a: [*b]}"] {
        let error =
            index("index.yaml", text, &HelmRepositoryAliases::default()).expect_err("is not YAML");
        assert!(error.reason.starts_with("this is not YAML"), "{error}");
    }
    let deep = format!("entries: {}", "[".repeat(100_000));
    assert!(index("index.yaml", &deep, &HelmRepositoryAliases::default()).is_err());
    let none = index("index.yaml", "entries: null\n", &HelmRepositoryAliases::default());
    assert_eq!(none, Ok(Index::default()));
}

#[test]
fn what_aliases_and_merge_keys_name_is_read_in_an_index() {
    let text = "x: &common {apiVersion: v2, name: web}\nentries: &all\n  web: &web\n  - &a\n    <<: *common\n    version: 1.0.0\n    urls: &urls [w.tgz]\n  - <<: *a\n    version: 2.0.0\n  - {apiVersion: v2, name: web, version: 3.0.0, urls: *urls}\n  - *a\n  other: *web\nagain: *all\n";
    let read = index("index.yaml", text, &HelmRepositoryAliases::default()).expect("is an index");
    let versions: Vec<String> =
        lines(&read, "web").iter().map(|line| line.version.clone()).collect();
    assert_eq!(versions, ["1.0.0", "2.0.0", "3.0.0", "1.0.0"]);
    assert!(lines(&read, "web").iter().all(|line| line.urls == ["w.tgz"]));
    let other = lines(&read, "other");
    assert_eq!(other.len(), 4);
    assert_eq!(other[0].unusable.as_deref(), Some("its name is `web`"));
    // How much they repeat is limited.
    let long = "x".repeat(20_000);
    let text = format!(
        "entries:\n  web:\n  - {{apiVersion: v2, name: web, version: 1.0.0, description: &d {long}, urls: [w.tgz]}}\n{}",
        "  - {apiVersion: v2, name: web, version: 2.0.0, urls: [w.tgz], description: *d}\n"
            .repeat(1_000)
    );
    let error =
        index("index.yaml", &text, &HelmRepositoryAliases::default()).expect_err("is too much");
    assert!(error.is_excess && error.reason.contains("repeat too much"), "{error}");
}

/// Checked against `helm show chart` and `helm dependency list` of Helm 3 and 4.
#[test]
fn the_lines_of_a_quoted_text_begin_anywhere_as_for_helm() {
    let chart = "name: shop\nversion: 1.0.0\ndescription: 'it''s # a \"shop\"\nfor: - all\n and more'\nmaintainers:\n- name: \"Ann \\\"x\\\" \\\nB\nC\" # who\ndependencies:\n- # first\n  name: base\n  version: &v !!str '>=1\n  <2'\n  repository: https://a.example/\n- name: last\n  version: *v\n  repository: https://a.example/\n";
    let package = self::chart(chart).expect("is a chart");
    let expected = ["helm+https://a.example/base#>=1 <2", "helm+https://a.example/last#>=1 <2"];
    assert_eq!(references(&package.release), expected);
    let description = package.release.description.as_deref();
    assert_eq!(description, Some("it's # a \"shop\" for: - all and more"));
    let lines: Vec<usize> = package.places.iter().map(|place| place.line).collect();
    assert_eq!(lines, [12, 16]);
    let windows = format!("\u{feff}{}", chart.replace('\n', "\r\n"));
    assert_eq!(self::chart(&windows).expect("is a chart").release, package.release);
    // What comes later is pointed at where it is, and what Helm refuses is refused.
    let shop = "name: shop\nversion: 1.0.0\ndescription: 'a\nü'\n";
    for (text, expected) in [
        (format!("{shop}dependencies:\n- nam: x\n"), "6:3: unknown key `nam`"),
        (format!("{shop}home: [\n"), "5:7: this is not YAML"),
        (shop.replace('ü', "---"), "4:1: this is not YAML"),
        (shop.replace("ü'", "ü"), "4:1: this is not YAML"),
    ] {
        let error = self::chart(&text).expect_err("makes no sense");
        assert!(error.contains(expected), "{text}: {error}");
    }
    // One after the other is found only by reading up to it, so their number is limited.
    let many = format!("{shop}x-many:\n{}", "- 'a\n'\n- 'a\nb'\n".repeat(20_000));
    assert!(self::chart(&many).is_err_and(|error| error.contains("invalid indentation")));
    // Short lines get many spaces, so these are limited, too.
    let deep = format!("{shop}x-deep:\n{}'a{}'\n", " ".repeat(150), "\nb".repeat(20_000));
    assert!(self::chart(&deep).is_err_and(|error| error.contains("invalid indentation")));
}

/// Checked against `helm dependency list` of Helm 3 and 4.
#[test]
fn what_aliases_and_merge_keys_name_is_read_in_a_chart_as_helm_reads_it() {
    let chart = "apiVersion: v2\nname: shop\nversion: &v 1.0.0\nappVersion: *v\nx-c: &c {version: 2.0.0, repository: 'https://a.example/'}\nx-d: &d {version: 3.0.0, repository: 'https://b.example/'}\nx-w: &w {<<: *d, name: whole}\ndependencies: &all\n- name: before\n  version: 1.0.0\n  <<: *c\n- <<: *c\n  name: after\n  version: 1.0.0\n- name: listed\n  <<: [*c, *d]\n- name: inside\n  <<: [{version: 9.0.0}, *d]\n- *w\n";
    let package = self::chart(chart).expect("is a chart");
    let expected = [
        "helm+https://a.example/before#2.0.0",
        "helm+https://a.example/after#1.0.0",
        "helm+https://a.example/listed#2.0.0",
        "helm+https://b.example/inside#9.0.0",
        "helm+https://b.example/whole#3.0.0",
    ];
    assert_eq!(references(&package.release), expected);
    assert_eq!(package.release.app_version.as_deref(), Some("1.0.0"));
    let lines: Vec<usize> = package.places.iter().map(|place| place.line).collect();
    assert_eq!(lines, [9, 12, 15, 17, 19]);
    // With the first bytes that Windows' editors write, and their ends of lines.
    let windows = format!("\u{feff}{}", chart.replace('\n', "\r\n"));
    assert_eq!(self::chart(&windows), Ok(package));
    for (text, expected) in [
        ("name: &n shop\nversion: 1.0.0\n<<: *n\n", "3:1: a merge key (`<<`) takes a map"),
        ("name: shop\nversion: 1.0.0\nl: &l [{a: b}]\n<<: *l\n", "4:1: a merge key"),
        ("name: shop\nversion: 1.0.0\nkeywords: &k [*k]\n", "3:15: this alias"),
        ("name: shop\nx: &x {a: b}\nversion: *x\n", "3:10: `version` must be text"),
    ] {
        let error = self::chart(text).expect_err("makes no sense");
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn entries_that_come_by_aliases_and_merge_keys_are_changed_alone_or_not_at_all() {
    let head = "apiVersion: v2\nname: shop\nversion: 1.0.0\nx-c: &c {version: ^1.0.0, repository: 'https://a.example'}\nx-w: &w {<<: *c, name: whole}\ndependencies:\n";
    let section = Section::Dependencies;
    let parse = |text: &str| Reference::parse(text).expect("is a reference");
    let reference = |name: &str| parse(&format!("helm+https://a.example/{name}"));
    let editor = |entries: &str| {
        let text = format!("{head}{entries}");
        Editor::new(Path::new(CHART), text, &Defaults::default())
            .in_dialect((FORMAT.dialect)(&HelmRepositoryAliases::default()))
    };
    let newer = VersionSpec::parse("^2.0.0").expect("is a version");
    let set = |entries: &str, name: &str| {
        let mut editor = editor(entries);
        let set = editor.set_version(section, &reference(name), Some(newer.clone()));
        set.map(|_| editor.into_text().replace(head, "")).map_err(|error| error.to_string())
    };
    let merged = "- name: web\n  <<: *c # ours\n- {<<: *c, name: db}\n- *w\n";
    let changed = merged.replace("# ours\n", "# ours\n  version: ^2.0.0\n");
    assert_eq!(set(merged, "web"), Ok(changed));
    // Helm lets the merged version count, and this one is others', too.
    let refused = |line| {
        Err(format!(
            "cannot change line {line} of `Chart.yaml` without changing other parts of it; the file was not changed"
        ))
    };
    assert_eq!(set("- name: web\n  version: 1.0.0\n  <<: *c\n", "web"), refused(7));
    assert_eq!(set("- name: a\n- *w\n", "whole"), refused(8));
    let anchored = "- &a\n  name: web\n  version: 1.0.0\n  repository: https://a.example\n- {<<: *a, alias: other}\n";
    assert_eq!(set(anchored, "web"), refused(8));
    let remove = |entries: &str, name: &str| {
        let mut editor = editor(entries);
        let removed = editor.remove(section, &reference(name));
        removed.map(|_| editor.into_text().replace(head, "")).map_err(|error| error.to_string())
    };
    assert_eq!(remove(merged, "whole"), Ok(merged.replace("- *w\n", "")));
    assert_eq!(remove(merged, "web"), Ok("- {<<: *c, name: db}\n- *w\n".to_owned()));
    let error = remove(anchored, "web").expect_err("others need it");
    assert!(error.contains("Chart.yaml") && error.contains('8'), "{error}");
    // Others can be added beside them.
    let mut editor = editor(merged);
    let new = Requirement::new(parse("helm+https://b.example/x#^1"));
    assert!(editor.add(section, &new).expect("is added"));
    let entry = "- name: x\n  version: ^1\n  repository: https://b.example\n";
    assert_eq!(editor.text(), format!("{head}{merged}{entry}"));
}

/// Checked against `helm template` of Helm 3 and 4.
#[test]
fn what_helm_reads_only_in_another_form_is_an_error_of_its_author() {
    let own = Reading { is_own: true, ..Reading::default() };
    for (line, fault) in [
        ("keywords: a", Some("`keywords` must be a list")),
        ("keywords: [a, 1, null]", None),
        ("maintainers: {name: a}", Some("`maintainers` must be a list")),
        ("maintainers: [ada]", Some("a maintainer is a map with `name`, `email` and `url`")),
        ("maintainers: [null]", Some("a maintainer is a map with `name`, `email` and `url`")),
        ("maintainers: [{name: ada}]", None),
        ("annotations: [a]", Some("`annotations` must be a map")),
        ("annotations: {a: 1, b: true}", None),
        ("home: [a]", Some("`home` must be text")),
        ("description: {a: b}", Some("`description` must be text")),
        ("description: ~", None),
        ("appVersion: [1]", Some("`appVersion` must be text")),
        ("appVersion: 1.0", None),
        ("deprecated: yes", None),
        ("deprecated: OFF", None),
        ("deprecated: 1", Some("`deprecated` must be true or false")),
    ] {
        let text = format!("apiVersion: v2\nname: web\nversion: 1.0.0\n{line}\n");
        let texts = files(&[(CHART, &text)]);
        let read = read(&texts, &own).map_err(|error| error.reason);
        match fault {
            None => assert!(read.is_ok(), "{line}: {read:?}"),
            Some(fault) => assert_eq!(read.expect_err("is refused"), fault, "{line}"),
        }
    }
}

#[test]
fn copies_are_folders_or_archives() {
    for (path, expected) in [
        ("charts/common/Chart.yaml", true),
        ("charts/common-2.0.0.tgz", true),
        ("charts/common/templates/Chart.yaml", false),
        ("charts/commons/Chart.yaml", false),
        ("charts/common-a/Chart.yaml", false),
        ("charts/web/charts/common/Chart.yaml", false),
        ("common/Chart.yaml", false),
    ] {
        assert_eq!(is_copy(path, "common"), expected, "{path}");
    }
}
