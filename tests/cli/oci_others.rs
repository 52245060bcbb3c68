//! Tags of packages in OCI registries that are something else, that lead to nothing any more, or that cannot be listed.

use mu_testing::oci::Behaviour;
use mu_testing::{Artifact, Chart, OciServer};

use super::support::Sandbox;

/// A registry with these versions of the KCL module `k8s`, each with its dependencies, and a workspace that needs `1.28` or newer.
fn modules(versions: &[(&str, &str)]) -> (Sandbox, OciServer) {
    let (mut sandbox, server) = (Sandbox::new(), OciServer::start(Behaviour::default()));
    let host = server.host();
    sandbox.replace(&host, "[HOST]");
    for (version, needs) in versions {
        push(&server, version, needs);
    }
    let settings = format!("registries: {{ghcr.io/kcl-lang/: \"oci://{host}/kcl-lang\"}}\n");
    sandbox.write(".mu/workspace.yaml", &settings);
    let shop = "[package]\nname = \"shop\"\nversion = \"0.1.0\"\n[dependencies]\nk8s = \"1.28\"\n";
    sandbox.write("kcl.mod", shop);
    (sandbox, server)
}

fn push(server: &OciServer, version: &str, needs: &str) -> Artifact {
    let text =
        format!("[package]\nname = \"k8s\"\nversion = \"{version}\"\n[dependencies]\n{needs}");
    let artifact = Artifact::module("k8s", version, &[("kcl.mod", &text)], true);
    artifact.push(&server.host(), "kcl-lang/k8s", version);
    artifact
}

/// Charts called `web` with these versions, as a dependency.
fn charts(versions: &[&str]) -> (Sandbox, OciServer) {
    let (mut sandbox, server) = (Sandbox::new(), OciServer::start(Behaviour::default()));
    let host = server.host();
    sandbox.replace(&host, "[HOST]");
    for version in versions {
        Artifact::chart(&Chart::new("web", version)).push(&host, "charts/web", version);
    }
    sandbox.asks_for(&[&format!("oci://{host}/charts/web")]);
    (sandbox, server)
}

/// The digest of a part of a manifest.
fn digest(artifact: &Artifact, part: &str) -> String {
    let manifest = artifact.manifest();
    manifest.pointer(part).and_then(|digest| digest.as_str()).expect("is there").to_owned()
}

#[test]
fn a_request_that_fails_takes_no_version_away_for_longer() {
    let (sandbox, server) = modules(&[("1.28", ""), ("1.29", "")]);
    let other = format!("sha256:{}", "0".repeat(64));
    server.behave(|behaviour| behaviour.lying_digest = Some(other));
    sandbox.mu(&["get"]).fails().says(&["is not the one that was expected"]);
    server.behave(|behaviour| behaviour.lying_digest = None);
    sandbox.mu(&["get"]).ok().says(&["k8s 1.29"]);
}

#[test]
fn an_image_among_the_versions_of_a_module_takes_none_away() {
    let (sandbox, server) = modules(&[("1.28", ""), ("1.29", ""), ("1.3", "")]);
    let image = |number: usize| {
        let config = format!("{{\"os\":\"linux\",\"of\":{number}}}");
        Artifact::new("application/vnd.oci.image.config.v1+json", config.as_bytes())
    };
    image(0).push(&server.host(), "kcl-lang/k8s", "1.30");
    sandbox.mu(&["get"]).ok().says(&["k8s 1.29"]);
    // Of many, only some are looked at.
    for number in 1..=20 {
        image(number).push(&server.host(), "kcl-lang/k8s", &format!("2.{number}"));
    }
    let before = server.requests().len();
    sandbox.mu(&["update", "--refresh"]).fails();
    let asked = server.requests().split_off(before);
    let manifests = asked.iter().filter(|request| request.contains("/manifests/2.")).count();
    assert_eq!(manifests, 8, "{asked:#?}");
}

#[test]
fn a_version_that_is_gone_keeps_no_other_one_from_being_used() {
    for part in ["", "/config/digest"] {
        let (sandbox, server) = charts(&["1.0.0", "2.0.0"]);
        let host = server.host();
        let newest = Artifact::chart(&Chart::new("web", "3.0.0"));
        let manifest = newest.push(&host, "charts/web", "3.0.0");
        server.lose(&if part.is_empty() { manifest } else { digest(&newest, part) });
        sandbox.mu(&["get"]).ok().says(&["charts/web 2.0.0"]);
        sandbox.mu(&["update", "--refresh"]).ok();
        sandbox.mu(&["outdated"]).ok();
        // It says why, if nothing else fits.
        sandbox.asks_for(&[&format!("oci://{host}/charts/web#^3")]);
        let why = if part.is_empty() {
            "it is listed, but there is no version 3.0.0"
        } else {
            "does not exist"
        };
        sandbox.mu(&["get"]).fails().says(&[why]);
    }
    let (sandbox, server) = modules(&[("1.28", "")]);
    let newest = push(&server, "1.29", "");
    server.lose(&digest(&newest, "/layers/0/digest"));
    sandbox.mu(&["get"]).ok().says(&["k8s 1.28"]);
}

#[test]
fn a_version_that_needs_its_authors_folder_keeps_no_other_one_from_being_used() {
    let (sandbox, _server) = modules(&[("1.28", ""), ("1.29", "sub = { path = \"../sub\" }\n")]);
    sandbox.mu(&["get"]).ok().says(&["k8s 1.28"]);
}

#[test]
fn a_next_page_is_read_or_named() {
    let (sandbox, server) = charts(&["1.0.0", "1.1.0"]);
    let host = server.host();
    for (link, why) in [
        ("NEXT; rel=\"next\"", Some("; rel=\"next\"`: a link there is `<URL>; rel=\"next\"`")),
        ("<http://other.exampleNEXT>; rel=\"next\"", Some("it is on another server")),
        ("</elsewhereNEXT>; rel=\"next\"", Some("it is not below `/v2/`")),
        // Behind a proxy, a registry may think of itself by another scheme.
        ("<https://HOSTNEXT>; rel=\"next\"", None),
        ("<http://HOSTNEXT>; rel=\"next\"", None),
        ("</first>; rel=\"first\", <NEXT>; rel=next", None),
    ] {
        let link = link.replace("HOST", &host);
        server.behave(|behaviour| (behaviour.page, behaviour.link) = (1, Some(link)));
        match why {
            Some(why) => {
                let run = sandbox.mu(&["get"]).fails().does_not_say(&["last=1.0.0"]);
                run.says(&["/tags/list` names a next page that is not read, `", why]);
            }
            None => drop(sandbox.mu(&["update", "--refresh"]).ok()),
        }
    }
    assert_eq!(sandbox.locked(), [format!("{host}/charts/web 1.1.0")]);
}

#[test]
fn an_archive_may_be_packed_in_any_way_that_its_tools_read() {
    let (sandbox, server) = charts(&[]);
    let host = server.host();
    let chart = Chart::new("web", "1.0.0").file("values.yaml", "a: 1\n");
    let files = chart.files().into_iter().map(|(path, file)| (format!("web/{path}"), file));
    let tar = mu_testing::tar(files);
    let (first, second) = tar.split_at(700);
    let archive = [mu_testing::gzip(first), mu_testing::gzip(second)].concat();
    let said = br#"{"apiVersion":"v2","name":"web","version":"1.0.0"}"#;
    let kind = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
    let artifact = Artifact::new("application/vnd.cncf.helm.config.v1+json", said);
    artifact.layer(kind, &archive, &[]).push(&host, "charts/web", "1.0.0");
    sandbox.mu(&["get"]).ok().says(&["charts/web 1.0.0"]);
    let pack = sandbox.path(&format!("work/.mu/packs/{}/charts/web", host.replace(':', "+")));
    assert_eq!(mu_testing::tree(&pack), chart.files());
}

#[test]
fn what_is_compressed_with_zstd_is_said() {
    let (sandbox, server) = modules(&[]);
    let kind = "application/vnd.oci.image.layer.v1.tar+zstd";
    let module = Artifact::new("application/vnd.oci.empty.v1+json", b"{}");
    let module = module.layer(kind, b"x", &[]).says("org.kcllang.package.name", "k8s");
    module.push(&server.host(), "kcl-lang/k8s", "1.28");
    let run = sandbox.mu(&["get"]).fails();
    run.says(&["its archive is compressed with zstd, and mu reads gzip"]);
}
