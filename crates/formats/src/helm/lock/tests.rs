//! Locks as Helm itself and public charts have them. The digests are theirs.

use super::*;
use crate::Texts;

fn read(chart: &str) -> Needs {
    let aliases =
        HelmRepositoryAliases::read("repositories:\n- {name: loc, url: 'http://127.0.0.1:8977'}\n");
    let texts = Texts([(CHART.to_owned(), chart.to_owned())].into());
    needs(&texts, &aliases, true).expect("is a chart")
}

fn chart(dependencies: &str) -> Needs {
    read(&format!("apiVersion: v2\nname: p\nversion: 0.1.0\ndependencies:\n{dependencies}"))
}

#[test]
fn published_locks_have_this_digest() {
    for (dependencies, versions, known) in [
        (
            "- name: kube-state-metrics
  version: \"2.9.*\"
  repository: https://kubernetes.github.io/kube-state-metrics
  condition: kubeStateMetrics.enabled
- name: prometheus-node-exporter
  version: \"1.12.*\"
  repository: https://prometheus-community.github.io/helm-charts
  condition: nodeExporter.enabled
- name: grafana
  version: \"6.1.*\"
  repository: https://grafana.github.io/helm-charts
  condition: grafana.enabled
",
            ["2.9.7", "1.12.0", "6.1.17"],
            "sha256:618d35aba8290330ef4c39438e6be271e17c68aed8806acd626ce8b844056415",
        ),
        (
            "- condition: memcached.enabled
  name: memcached
  repository: oci://registry-1.docker.io/bitnamicharts
  version: 7.x.x
- condition: mariadb.enabled
  name: mariadb
  repository: oci://registry-1.docker.io/bitnamicharts
  version: 18.x.x
- name: common
  repository: oci://registry-1.docker.io/bitnamicharts
  tags:
    - bitnami-common
  version: 2.x.x
",
            ["7.0.6", "18.0.5", "2.19.2"],
            "sha256:88f139bdbfc47912743cec19b9ae0dccb73703e9df39b18a6797915702078ce9",
        ),
    ] {
        assert_eq!(digest(&chart(dependencies).needs, &versions), known);
    }
}

/// Everything that a dependency can have, and numbers and signs that Go prints in its own way; the digest is Helm 4.1.4's.
const EVERYTHING: &str = "- name: common
  version: \">=1.0.0 <3\"
  repository: http://127.0.0.1:8977/
  tags: [a, \"b&c\"]
  condition: x.enabled,<y>
- name: mariadb
  version: 20.x.x
  repository: \"@loc\"
  alias: db
  enabled: true
  import-values:
  - data
  - child: \"é\\u2028x\"
    parent: .
    zz: 1
    aa: [1.5, true, null, 1e3, 10000000000000000000000, 0.0000001]
- name: local
  version: 0.1.0
  repository: \"\"
- name: side
  version: ~0.4
  repository: file://../side
- name: web
  version: \"*\"
  repository: \"alias:loc\"
  enabled: false
  tags: []
";

#[test]
fn a_lock_is_printed_as_helm_prints_it_and_kept_if_it_says_the_same() {
    let needs = chart(EVERYTHING);
    assert_eq!(needs.lock, "Chart.lock");
    let versions = ["2.1.0", "20.2.1", "0.1.0", "0.4.0", "0.3.0"];
    let text = lock(&needs.needs, &versions, None, "2026-11-23T04:03:52Z");
    assert_eq!(
        text,
        "dependencies:
- name: common
  repository: http://127.0.0.1:8977/
  version: 2.1.0
- name: mariadb
  repository: http://127.0.0.1:8977
  version: 20.2.1
- name: local
  repository: \"\"
  version: 0.1.0
- name: side
  repository: file://../side
  version: 0.4.0
- name: web
  repository: http://127.0.0.1:8977
  version: 0.3.0
digest: sha256:1eb92241896581661d5a0a4b55f780b6ba1216f54f83e84fd71edb3b98dbe714
generated: \"2026-11-23T04:03:52Z\"
"
    );
    let later = "2027-01-01T00:00:00Z";
    assert_eq!(lock(&needs.needs, &versions, Some(&text), later), text);
    let other = ["2.1.0", "20.2.1", "0.1.0", "0.4.0", "0.3.1"];
    let moved = lock(&needs.needs, &other, Some(&text), later);
    assert!(moved.contains("0.3.1") && moved.contains(later), "{moved}");
    let required = needs
        .needs
        .iter()
        .map(|need| need.requirement.as_ref().map(|requirement| requirement.reference.to_string()));
    assert_eq!(
        required.collect::<Vec<_>>(),
        [
            Some("helm+http://127.0.0.1:8977/common#>=1.0.0 <3".to_owned()),
            Some("helm+http://127.0.0.1:8977/mariadb#20.x.x".to_owned()),
            None,
            Some("../side#~0.4".to_owned()),
            Some("helm+http://127.0.0.1:8977/web#*".to_owned()),
        ]
    );
}

#[test]
fn words_that_yaml_takes_for_something_else_are_quoted() {
    for (text, printed) in [
        ("1.10", "\"1.10\""),
        ("20", "\"20\""),
        ("1.2.0", "1.2.0"),
        ("v1.2.0+5", "v1.2.0+5"),
        ("https://x.io/a", "https://x.io/a"),
        ("no", "\"no\""),
        ("@loc", "\"@loc\""),
        ("a: b", "\"a: b\""),
        ("a\"b", "\"a\\\"b\""),
    ] {
        assert_eq!(scalar(text), printed);
    }
}

#[test]
fn a_chart_of_the_first_format_has_a_lock_of_its_own() {
    let files = [
        (CHART, "name: p\nversion: 0.1.0\n"),
        (REQUIREMENTS, "dependencies:\n- {name: web, version: 1.x, repository: https://x.io/a}\n"),
    ];
    let texts = files.map(|(name, text)| (name.to_owned(), text.to_owned()));
    let needs =
        needs(&Texts(texts.into()), &HelmRepositoryAliases::default(), true).expect("is a chart");
    assert_eq!((needs.lock, needs.needs.len()), ("requirements.lock", 1));
}
