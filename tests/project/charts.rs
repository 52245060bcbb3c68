//! The chart repository in `testdata/charts`, which the documents show: made here, and compared with what is there.
//!
//! `BLESS=1 cargo test --test project charts` writes it again.

use std::fs;

use mu_testing::{Chart, Charts};

use super::check_generated;

const URL: &str = "https://charts.acme.example/stable";

/// A chart that carries what it needs, by name, range and the version inside.
fn chart(name: &str, version: &str, needs: &[(&str, &str, &str)]) -> Chart {
    let mut chart = Chart::new(name, version);
    for (number, (needed, range, inside)) in needs.iter().enumerate() {
        let head = if number == 0 { "dependencies:\n" } else { "" };
        let lines = format!("{head}- name: {needed}\n  version: {range}\n  repository: {URL}\n");
        let manifest = format!("apiVersion: v2\nname: {needed}\nversion: {inside}\n");
        chart = chart.lines(&lines).file(&format!("charts/{needed}/Chart.yaml"), &manifest);
    }
    chart
}

#[test]
fn the_repository_of_the_documents_is_generated() {
    let folder = tempfile::tempdir().expect("there is room");
    let mut charts = Charts::new(folder.path());
    for (version, day) in
        [("1.17.1", "2025-03-04"), ("2.13.3", "2025-06-02"), ("2.31.0", "2025-11-05")]
    {
        let chart =
            chart("common", version, &[]).listed(&format!("created: \"{day}T09:00:00Z\"\n"));
        charts.add(&chart);
    }
    for (name, version, day, needs) in [
        ("legacy", "1.2.0", "2025-04-01", &[("common", "1.x.x", "1.17.1")][..]),
        ("mariadb", "20.2.1", "2025-06-10", &[("common", "2.x.x", "2.13.3")]),
        ("mariadb", "20.4.0", "2025-11-20", &[("common", "2.x.x", "2.31.0")]),
        (
            "web",
            "0.3.0",
            "2025-06-12",
            &[("common", "2.x.x", "2.13.3"), ("mariadb", "^20.2", "20.2.1")],
        ),
        (
            "web",
            "0.4.1",
            "2025-07-01",
            &[("common", "2.x.x", "2.13.3"), ("mariadb", "^20.2", "20.2.1")],
        ),
    ] {
        let description = format!("description: The {name} of the shop\n");
        let listed = format!("created: \"{day}T09:00:00Z\"\n");
        charts.add(&chart(name, version, needs).lines(&description).listed(&listed));
    }
    let mut names: Vec<String> = fs::read_dir(folder.path())
        .expect("is there")
        .map(|entry| entry.expect("is one").file_name().into_string().expect("is UTF-8"))
        .collect();
    names.sort();
    assert_eq!(names.len(), 9);
    for name in names {
        let bytes = fs::read(folder.path().join(&name)).expect("is there");
        check_generated(&format!("testdata/charts/repository/{name}"), &bytes);
    }
}
