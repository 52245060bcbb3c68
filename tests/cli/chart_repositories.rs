//! The short names of chart repositories, which a machine without Helm's settings does not know, and charts that nobody told mu about.

use std::fs;

use mu_testing::{AUTHORITY, LOCALHOST, SELF_SIGNED};

use crate::support::{Chart, Charts, Nginx, Sandbox, write};

/// Where Helm keeps the names, in the sandbox.
const NAMES: &str = "home/.config/helm/repositories.yaml";

/// A sandbox, and a repository with `common` and `web`, which needs it.
fn repository() -> (Sandbox, Charts, Nginx) {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.path("www/stable")).expect("can be made");
    let mut charts = Charts::new(&sandbox.path("www/stable"));
    let nginx = Nginx::serve(&sandbox.path("www"), "");
    charts.add(&Chart::new("common", "2.1.0"));
    let url = nginx.url("stable");
    charts.add(&Chart::new("web", "0.3.0").needs("common", "2.x.x", &url));
    fs::remove_dir_all(sandbox.path("work/.mu")).expect("is there");
    write(sandbox.root(), NAMES, format!("repositories: [{{name: acme, url: '{url}'}}]\n"));
    (sandbox, charts, nginx)
}

/// A chart that needs others from `@acme`.
fn chart(needs: &[&str]) -> String {
    let mut text = "apiVersion: v2\nname: shop\nversion: 0.1.0\ndependencies:\n".to_owned();
    for need in needs {
        text.push_str(&format!("- {{name: {need}, version: '>=0.1', repository: '@acme'}}\n"));
    }
    text
}

#[test]
fn a_locked_chart_is_found_without_the_short_name_of_its_repository() {
    let (sandbox, mut charts, _nginx) = repository();
    sandbox.write("Chart.yaml", &chart(&["web"]));
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["vendor", "--for", "helm"]).ok();
    let [lock, helms] = ["Mu.lock", "Chart.lock"].map(|file| sandbox.read(file));
    fs::remove_file(sandbox.path(NAMES)).expect("is there");
    fs::remove_dir_all(sandbox.path("work/.mu")).expect("is there");
    sandbox.mu(&["get", "--locked"]).ok().says(&["installed 2 packages"]);
    sandbox.mu(&["vendor", "--for", "helm", "--check"]).ok();
    charts.add(&Chart::new("web", "0.4.0").needs("common", "2.x.x", &_nginx.url("stable")));
    sandbox.mu(&["outdated"]).says(&["0.4.0"]);
    assert_eq!([lock, helms], ["Mu.lock", "Chart.lock"].map(|file| sandbox.read(file)));
    sandbox.mu(&["update"]).ok().says(&["0.3.0 → 0.4.0"]);
    // What only another chart needs says nothing of where this one wants it from.
    sandbox.write("Chart.yaml", &chart(&["web", "common"]));
    sandbox.mu(&["get"]).fails().says(&[
        "the repository `@acme` is not named in Helm's `repositories.yaml`",
        "helm repo add acme URL",
        "Chart.yaml:6",
    ]);
}

#[test]
fn links_in_the_archive_of_a_chart_are_told_because_helm_reads_empty_files() {
    let (sandbox, mut charts, nginx) = repository();
    let chart = Chart::new("linked", "1.0.0");
    write(sandbox.root(), "made/linked/Chart.yaml", chart.manifest());
    write(sandbox.root(), "made/linked/templates/a.yaml", "kind: A\n");
    for name in ["b.yaml", "c.yaml"] {
        let link = sandbox.path("made/linked/templates").join(name);
        std::os::unix::fs::symlink("a.yaml", link).expect("can be made");
    }
    let archive = sandbox.path("made/linked.tgz");
    let mut tar = std::process::Command::new("tar");
    tar.args(["--sort=name", "-czf", "linked.tgz", "linked"]).current_dir(sandbox.path("made"));
    assert!(tar.status().expect("there is a tar").success());
    for helm in crate::support::Helm::all() {
        let rendered = |chart: &str| helm.template(&sandbox.path("helm"), &sandbox.path(chart));
        assert_eq!(rendered("made/linked.tgz").len(), 1, "links are empty to Helm");
        assert_eq!(rendered("made/linked").len(), 3, "it follows them in a folder");
    }
    charts.add_with(&chart, &fs::read(archive).expect("was made"));
    sandbox.write("Mu.yaml", "name: acme/app\nversion: 1.0.0\n");
    let reference = format!("helm+{}", nginx.url("stable/linked"));
    sandbox
        .mu(&["add", &reference])
        .ok()
        .says(&["templates/b.yaml` and 1 more of the chart", "as an empty file in the archive"]);
}

#[test]
fn a_chart_that_is_named_as_helm_names_it_is_answered_with_its_reference() {
    let (mut sandbox, _charts, nginx) = repository();
    sandbox.write("Chart.yaml", "apiVersion: v2\nname: shop\nversion: 0.1.0\n");
    fs::remove_file(sandbox.path("home/.mu/config.yaml")).expect("is there");
    sandbox.set("HTTPS_PROXY", "http://127.0.0.1:1");
    let reference = format!("helm+{}/web", nginx.url("stable"));
    let hint = format!("`acme` is a chart repository of your Helm: `mu add {reference}`");
    sandbox.mu(&["add", "acme/web"]).fails().says(&[&hint]);
    sandbox.mu(&["add", &reference]).ok().says(&["web 0.3.0"]);
}

#[test]
fn charts_below_a_folder_are_named_with_the_setting_that_makes_them_its_own() {
    let (sandbox, _charts, _nginx) = repository();
    sandbox.write("web/Chart.yaml", &chart(&["web"]));
    sandbox.write("rules/kcl.mod", "[package]\nname = \"rules\"\nversion = \"0.1.0\"\n");
    let hint = "`mu config set formats '[helm, kcl]'`";
    sandbox.mu(&["get"]).fails().says(&["there is no Mu.yaml", hint]);
    // Inside of it, too, once the folder is a workspace.
    sandbox.write(".mu/workspace.yaml", "link: copy\n");
    sandbox.mu_in("work/web", &["get"]).fails().says(&[hint]);
    sandbox.mu(&["config", "set", "formats", "[helm, kcl]"]).ok();
    sandbox.mu_in("work/web", &["get"]).ok().says(&["installed 2 packages"]);
    fs::remove_dir_all(sandbox.path("work/.mu")).expect("is there");
    fs::remove_file(sandbox.path("work/Mu.lock")).expect("is there");
    sandbox.mu(&["init", "--workspace"]).ok();
    let settings = sandbox.read(".mu/workspace.yaml");
    assert!(settings.ends_with("formats: [helm, kcl]\n"), "{settings}");
    sandbox.mu(&["get"]).ok().says(&["installed 2 packages"]);
    // A chart of the root counts anyway.
    let alone = Sandbox::new();
    fs::remove_dir_all(alone.path("work/.mu")).expect("is there");
    alone.write("Chart.yaml", &chart(&[]));
    alone.mu(&["init", "--workspace"]).ok();
    assert!(!alone.read(".mu/workspace.yaml").contains("formats"));
}

#[test]
fn certificates_that_the_user_has_named_to_helm_count_for_their_repository_alone() {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.path("www/stable")).expect("can be made");
    Charts::new(&sandbox.path("www/stable")).add(&Chart::new("web", "1.0.0"));
    let [nginx, other] = [(); 2].map(|()| Nginx::serve_tls(&sandbox.path("www"), &LOCALHOST));
    let url = nginx.url("stable");
    let names = |more: &str| {
        let text = format!("repositories: [{{name: acme, url: '{url}', {more}}}]\n");
        write(sandbox.root(), NAMES, text);
        sandbox.mu(&["get"])
    };
    sandbox.asks_for(&[&format!("helm+{url}/web")]);
    let refused = "cannot be verified";
    names("username: ''").fails().says(&[refused]).does_not_say(&["insecure_skip_tls_verify"]);
    names("insecure_skip_tls_verify: true").fails().says(&[
        refused,
        "mu does not follow `insecure_skip_tls_verify` in `",
        "repositories.yaml`: name a file with the certificate there as `caFile`",
    ]);
    names("caFile: /there/is/no.pem").fails().says(&["/there/is/no.pem"]);
    write(sandbox.root(), "authority.pem", AUTHORITY);
    let trusted = format!("caFile: '{}'", sandbox.path("authority.pem").display());
    names(&trusted).ok().says(&["web 1.0.0"]);
    sandbox.asks_for(&[&format!("helm+{}/web", other.url("stable"))]);
    names(&trusted).fails().says(&[refused]);
}

#[test]
fn a_server_whose_certificate_is_signed_by_itself_is_trusted_where_that_is_named() {
    let mut sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.path("www/stable")).expect("can be made");
    Charts::new(&sandbox.path("www/stable")).add(&Chart::new("web", "1.0.0"));
    let nginx = Nginx::serve_tls(&sandbox.path("www"), &SELF_SIGNED);
    let url = nginx.url("stable");
    sandbox.asks_for(&[&format!("helm+{url}/web")]);
    let hint =
        "or a certificate that is signed by itself, name the file with that in SSL_CERT_FILE";
    sandbox.mu(&["get"]).fails().says(&["signed by itself", hint]);
    write(sandbox.root(), "own.pem", SELF_SIGNED.certificate);
    write(sandbox.root(), "other.pem", AUTHORITY);
    let [own, other] = ["own.pem", "other.pem"].map(|file| sandbox.path(file));
    let [own, other] = [own, other].map(|path| path.display().to_string());
    write(
        sandbox.root(),
        NAMES,
        format!("repositories: [{{name: a, url: '{url}', caFile: '{own}'}}]"),
    );
    sandbox.mu(&["get"]).ok().says(&["web 1.0.0"]);
    fs::remove_file(sandbox.path(NAMES)).expect("is there");
    fs::remove_dir_all(sandbox.path("cache")).expect("is there");
    sandbox.set("SSL_CERT_FILE", &other);
    let hint = "is among those that are trusted: SSL_CERT_FILE is `[DIR]/other.pem`";
    sandbox.mu(&["update"]).fails().says(&["signed by itself", hint]);
    sandbox.set("SSL_CERT_FILE", &own);
    sandbox.mu(&["update"]).ok();
}

#[test]
fn a_repository_that_is_named_without_a_chart_is_told() {
    let (sandbox, _charts, nginx) = repository();
    sandbox.write("Mu.yaml", "name: acme/shop\n");
    let url = nginx.url("stable");
    let run = sandbox.mu(&["add", &format!("helm+{url}")]).fails();
    run.says(&[&format!(
        "if `{url}` is a chart repository, name a chart in it: `helm+{url}/CHART`"
    )]);
    sandbox.mu(&["add", &format!("helm+{url}/web")]).ok();
    // Where there is an index, the chart is what is missing.
    let run = sandbox.mu(&["add", &format!("helm+{url}/webb")]).fails();
    run.says(&["did you mean", "stable/web"]).does_not_say(&["is a chart repository"]);
}
