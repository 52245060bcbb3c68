//! `mu vendor --for helm` follows what it is derived from, as Helm itself shows.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use mu_testing::{Artifact, DockerRegistry};

use crate::support::{Chart, Charts, Helm, Nginx, Run, Sandbox, tree, write};

/// What a chart of these tests renders: which chart it is, and a value.
const SHOWN: &str = "chart: {{ .Chart.Name }} {{ .Chart.Version }}\nvalue: {{ .Values.value }}\n";

fn chart(name: &str, version: &str) -> Chart {
    let chart = Chart::new(name, version).file("templates/shown.yaml", SHOWN);
    chart.file("values.yaml", "value: original\n")
}

/// A dependency in a `Chart.yaml`.
fn need(name: &str, range: &str, repository: &str) -> String {
    format!("- {{name: {name}, version: {range:?}, repository: {repository:?}}}\n")
}

/// A repository with charts, on nginx, and a workspace that is still empty.
struct Around {
    sandbox: Sandbox,
    charts: Charts,
    nginx: Nginx,
}

impl Around {
    fn new() -> Self {
        let mut sandbox = Sandbox::new();
        fs::create_dir_all(sandbox.path("www/stable")).expect("can be made");
        let mut charts = Charts::new(&sandbox.path("www/stable"));
        for (name, versions) in [
            ("redis", ["17.0.0", "17.3.1"]),
            ("postgresql", ["12.1.0", "12.5.8"]),
            ("nginx", ["4.7.0", "4.8.2"]),
        ] {
            versions.iter().for_each(|version| charts.add(&chart(name, version)));
        }
        let nginx = Nginx::serve(&sandbox.path("www"), "");
        sandbox.replace(&nginx.host(), "[HOST]");
        fs::remove_dir_all(sandbox.path("work/.mu")).expect("is there");
        Self { sandbox, charts, nginx }
    }

    /// With folders that may use each other.
    fn with_trust() -> Self {
        let around = Self::new();
        around.sandbox.trusts_folder("*");
        around
    }

    fn url(&self) -> String {
        self.nginx.url("stable")
    }

    /// Writes a chart of ours into a folder of the sandbox.
    fn write(&self, folder: &str, chart: Chart, needs: &[String]) {
        let chart = match needs {
            [] => chart,
            needs => chart.lines(&format!("dependencies:\n{}", needs.concat())),
        };
        for (path, (_, bytes)) in chart.files() {
            write(&self.sandbox.path(folder), &path, bytes);
        }
    }

    fn vendor(&self, more: &[&str]) -> Run {
        self.sandbox.mu(&[&["vendor", "--for", "helm"], more].concat())
    }

    /// What both Helms make of the chart in a folder.
    fn rendered(&self, folder: &str) -> BTreeMap<String, String> {
        let [first, second] = Helm::all()
            .map(|helm| helm.template(&self.sandbox.path("helm"), &self.sandbox.path(folder)));
        assert_eq!(first, second);
        first
    }

    /// What Helm makes of it on its own, when its dependencies are updated in this order.
    fn by_helm_alone(&self, folders: &[&str]) -> BTreeMap<String, String> {
        let home = self.sandbox.path("helm");
        let last = folders.last().expect("there is one");
        let [first, second] = Helm::all().map(|helm| {
            let _ = fs::remove_dir_all(self.sandbox.path("alone"));
            for folder in folders {
                for (path, (kind, bytes)) in tree(&self.sandbox.path(folder)) {
                    let is_derived = ["charts/", "Chart.lock", ".mu/", "Mu.lock"];
                    if kind != 'd' && !is_derived.iter().any(|start| path.starts_with(start)) {
                        write(&self.sandbox.path(&format!("alone/{folder}")), &path, bytes);
                    }
                }
            }
            for folder in folders {
                let place = self.sandbox.path(&format!("alone/{folder}"));
                let place = place.to_str().expect("is UTF-8");
                // For registries of OCI.
                let arguments = ["dependency", "update", "--plain-http", place];
                helm.run(&home, &arguments).expect("Helm can");
            }
            helm.template(&home, &self.sandbox.path(&format!("alone/{last}")))
        });
        assert_eq!(first, second);
        first
    }

    fn charts(&self, folder: &str) -> Vec<String> {
        names(&self.sandbox.path(&format!("{folder}/charts")))
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("is a folder");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("is").file_name().into_string().expect("is")).collect();
    names.sort();
    names
}

#[test]
fn helm_no_longer_deploys_what_is_no_dependency() {
    let around = Around::new();
    let url = around.url();
    let needs = [need("redis", "17.x", &url), need("postgresql", "12.x", &url)];
    around.write("work", chart("app", "1.0.0"), &needs);
    around.vendor(&[]).ok();
    assert_eq!(around.charts("work"), ["postgresql-12.5.8.tgz", "redis-17.3.1.tgz"]);
    let sandbox = &around.sandbox;
    sandbox.mu(&["remove", "postgresql"]).ok();
    let lock = sandbox.read("Chart.lock");
    // What somebody put there is named, and stays.
    write(&sandbox.path("work"), "charts/mine-1.0.0.tgz", chart("mine", "1.0.0").archive());
    around.write("work/charts/other", chart("other", "2.0.0"), &[]);
    sandbox.write("charts/README.md", "");
    sandbox.write("charts/_parked/Chart.yaml", "");
    let said = [
        "- charts/postgresql-12.5.8.tgz",
        "Helm would render `",
        "charts/mine-1.0.0.tgz`, which no dependency names; remove the archive",
        "charts/other`, which no dependency names; remove the folder, or name it under `dependencies`",
    ];
    around.vendor(&["--dry-run"]).ok().says(&said).says(&["~ Chart.lock"]);
    assert_eq!(sandbox.read("Chart.lock"), lock);
    around.vendor(&[]).ok().says(&said).does_not_say(&["README", "_parked"]);
    let left = ["README.md", "_parked", "mine-1.0.0.tgz", "other", "redis-17.3.1.tgz"];
    assert_eq!(around.charts("work"), left);
    for mine in ["mine-1.0.0.tgz", "README.md"] {
        fs::remove_file(sandbox.path(&format!("work/charts/{mine}"))).expect("is there");
    }
    for more in ["other", "_parked"] {
        fs::remove_dir_all(sandbox.path(&format!("work/charts/{more}"))).expect("is there");
    }
    around.vendor(&[]).ok().does_not_say(&["would render"]);
    assert_eq!(around.rendered("work"), around.by_helm_alone(&["work"]));
}

#[test]
fn a_lock_of_helm_that_a_merge_has_torn_is_written_again() {
    let around = Around::new();
    around.write("work", chart("app", "1.0.0"), &[need("redis", "17.x", &around.url())]);
    around.vendor(&[]).ok();
    let lock = around.sandbox.read("Chart.lock");
    around.sandbox.write("Chart.lock", &lock.replace("version: 17.3.1", "version: 17.0.0"));
    around.vendor(&["--check"]).fails().says(&["~ Chart.lock"]);
    around.vendor(&[]).ok();
    let place = around.sandbox.path("work");
    let place = place.to_str().expect("is UTF-8");
    assert!(around.sandbox.read("Chart.lock").contains("version: 17.3.1"));
    for helm in Helm::all() {
        let listed = helm.run(&around.sandbox.path("helm"), &["dependency", "list", place]);
        assert!(listed.expect("Helm can").contains("ok"));
    }
    // What the charts require now is not what was locked.
    around.write("work", chart("app", "1.0.0"), &[need("redis", "17.0.x", &around.url())]);
    around.vendor(&["--check"]).fails().says(&["run `mu get`, and commit Mu.lock"]);
}

#[test]
fn helm_gets_a_patched_chart_with_its_patch() {
    let around = Around::new();
    around.write("work", chart("app", "1.0.0"), &[need("redis", "17.x", &around.url())]);
    around.vendor(&[]).ok();
    let sandbox = &around.sandbox;
    let draft = sandbox.mu(&["patch", "redis"]).ok();
    let folder = draft.shown().lines().find(|line| line.contains(".mu/patch/")).expect("is said");
    let folder = format!(".mu/patch/{}", folder.rsplit('/').next().expect("has parts"))
        .replace("[HOST]", &around.nginx.host().replace(':', "+"));
    sandbox.write(&format!("{folder}/values.yaml"), "value: mended\n");
    sandbox.mu(&["patch", "--save", &folder]).ok();
    around.vendor(&["--check"]).fails().says(&["+ charts/redis-17.3.1.tgz"]);
    around.vendor(&[]).ok().says(&["+ charts/redis-17.3.1.tgz"]);
    assert!(around.rendered("work").values().any(|text| text.contains("value: mended")));
    around.vendor(&["--check", "--locked"]).ok().says(&["up to date"]);
    // Without the patch, it is again what was published.
    sandbox.mu(&["patch", "--drop", "redis"]).ok();
    around.vendor(&[]).ok();
    let published = fs::read(sandbox.path("www/stable/redis-17.3.1.tgz")).expect("is there");
    let vendored = fs::read(sandbox.path("work/charts/redis-17.3.1.tgz")).expect("is there");
    assert_eq!(vendored, published);
}

/// `platform` needs `../shop`, which needs `../cart` and redis; `cart` needs nginx.
fn three_levels() -> Around {
    let around = Around::with_trust();
    let url = around.url();
    around.write("cart", chart("cart", "0.2.5"), &[need("nginx", "4.x", &url)]);
    let needs = [need("redis", "^17.0", &url), need("cart", "0.2.x", "file://../cart")];
    around.write("shop", chart("shop", "1.6.2"), &needs);
    let needs = [need("shop", ">=1.0.0-0", "file://../shop"), need("postgresql", "12.x", &url)];
    around.write("work", chart("platform", "3.4.0"), &needs);
    around
}

#[test]
fn charts_in_folders_are_packed_with_all_that_they_need() {
    let around = three_levels();
    let sandbox = &around.sandbox;
    around.vendor(&[]).ok();
    let expected = around.by_helm_alone(&["cart", "shop", "work"]);
    assert_eq!(expected.len(), 12, "{expected:?}");
    assert_eq!(around.rendered("work"), expected);
    sandbox.mu(&["tree"]).ok().says(&["cart 0.2.5", "nginx 4.8.2", "redis 17.3.1"]);
    assert!(!sandbox.has("shop/charts") && !sandbox.has("cart/charts"), "they are not ours");
    // What their author has there is derived, and may be old.
    let old = chart("redis", "17.0.0").archive();
    write(&sandbox.path("shop"), "charts/redis-17.0.0.tgz", old);
    write(&sandbox.path("shop"), "charts/former-1.0.0.tgz", chart("former", "1.0.0").archive());
    let former =
        "dependencies:\n- name: former\n  repository: x\n  version: 1.0.0\ndigest: sha256:0\n";
    write(&sandbox.path("shop"), "Chart.lock", former);
    around.vendor(&[]).ok();
    assert_eq!(around.rendered("work"), expected);
    // A machine with nothing of it compares the same, and writes nothing.
    fs::remove_dir_all(sandbox.path("cache")).expect("is there");
    fs::remove_dir_all(sandbox.path("work/.mu")).expect("is there");
    let before = sandbox.state();
    around.vendor(&["--check"]).ok().says(&["up to date"]);
    assert_eq!(sandbox.state(), before);
}

#[test]
fn a_chart_that_would_be_lost_is_an_error() {
    let around = three_levels();
    let url = around.url();
    let needs = [need("redis", "^17.0", &url), "- {name: gone, version: 1.0.0}\n".to_owned()];
    around.write("shop", chart("shop", "1.6.2"), &needs);
    around.vendor(&[]).fails().says(&[
        "the chart `shop` in `",
        "needs `gone`, which is neither in its `charts` nor in Mu.lock",
        "Helm would install `shop` without `gone`",
    ]);
    assert!(!around.sandbox.has("work/charts"));
}

#[test]
fn an_archive_without_a_chart_that_it_names_is_refused() {
    let mut around = Around::new();
    let url = around.url();
    let web =
        chart("web", "1.0.0").lines(&format!("dependencies:\n{}", need("redis", "17.x", &url)));
    around.charts.add(&web);
    around.write("work", chart("app", "1.0.0"), &[need("web", "1.x", &url)]);
    around
        .vendor(&[])
        .fails()
        .says(&["the archive of `web` 1.0.0 lacks the chart `redis`, which its Chart.yaml names"]);
    assert!(!around.sandbox.has("work/charts"));
}

#[test]
fn charts_of_one_name_and_version_fit_only_if_they_are_the_same() {
    let around = Around::new();
    for (folder, value) in [("a", "original"), ("b", "original"), ("c", "another")] {
        let place = around.sandbox.path(&format!("www/{folder}"));
        fs::create_dir_all(&place).expect("can be made");
        let own = Chart::new("web", "1.0.0").file("values.yaml", &format!("value: {value}\n"));
        Charts::new(&place).add(&own);
    }
    let needs = |folders: [&str; 2]| {
        folders.map(|folder| {
            let url = around.nginx.url(folder);
            format!("- {{name: web, version: 1.0.0, repository: '{url}', alias: {folder}web}}\n")
        })
    };
    around.write("work", chart("app", "1.0.0"), &needs(["a", "b"]));
    around.vendor(&[]).ok();
    assert_eq!(around.charts("work"), ["web-1.0.0.tgz"]);
    around.vendor(&["--check"]).ok();
    around.write("work", chart("app", "1.0.0"), &needs(["a", "c"]));
    let before = around.sandbox.read("Chart.lock");
    for arguments in [&[][..], &["--check"]] {
        around.vendor(arguments).fails().says(&[
            "two dependencies are called `web` 1.0.0: `[HOST]/a/web` and `[HOST]/c/web`",
            "Helm keeps charts by name and version alone",
        ]);
    }
    assert_eq!(around.sandbox.read("Chart.lock"), before);
}

#[test]
fn charts_that_need_each_other_are_an_error_and_no_endless_work() {
    let around = Around::with_trust();
    around.write("one", chart("one", "1.0.0"), &[need("two", "1.x", "file://../two")]);
    around.write("two", chart("two", "1.0.0"), &[need("one", "1.x", "file://../one")]);
    around.write("work", chart("app", "1.0.0"), &[need("one", "1.x", "file://../one")]);
    around.vendor(&[]).fails().says(&["/one` needs itself"]);
}

#[test]
fn links_are_packed_as_helm_packs_them() {
    use std::os::unix::fs::symlink;
    let around = Around::new();
    let sandbox = &around.sandbox;
    sandbox.write(".mu/workspace.yaml", "formats: [helm]\n");
    around.write("work/top", chart("top", "1.0.0"), &[need("app", "1.x", "file://../app")]);
    around.write("work/app", chart("app", "1.0.0"), &[]);
    sandbox.write("app/templates/.hidden.yaml", "{{ fail \"is not rendered\" }}");
    sandbox.write("app/real/a.yaml", "a: 1\n");
    sandbox.write("shared/more.yaml", "kind: More\n");
    around.write("work/base", chart("base", "1.0.0"), &[]);
    for (link, to) in [
        ("inside", "real"),
        ("templates/shared", "../../shared"),
        ("charts/base", "../../base"),
        ("LICENSE", "../shared/more.yaml"),
    ] {
        fs::create_dir_all(sandbox.path("work/app/charts")).expect("can be made");
        symlink(to, sandbox.path(&format!("work/app/{link}"))).expect("can be made");
    }
    around.vendor(&[]).ok();
    let paths = paths_in(&sandbox.path("work/top/charts/app-1.0.0.tgz"));
    for path in [
        "app/LICENSE",
        "app/charts/base/Chart.yaml",
        "app/charts/base/templates/map.yaml",
        "app/inside/a.yaml",
        "app/templates/shared/more.yaml",
    ] {
        assert!(paths.contains(&path.to_owned()), "{path} is not in {paths:?}");
    }
    assert!(!paths.contains(&"app/templates/.hidden.yaml".to_owned()), "{paths:?}");
    for mut by_helm in packaged(&around, "app") {
        let mut paths = paths.clone();
        paths.sort();
        by_helm.sort();
        assert_eq!(paths, by_helm);
    }
    // A link around itself has no end, and one out of the repository is nobody's to give away.
    symlink("..", sandbox.path("work/app/real/up")).expect("can be made");
    around.vendor(&[]).fails().says(&["leads to a folder that it is in"]);
    fs::remove_file(sandbox.path("work/app/real/up")).expect("is there");
    write(sandbox.root(), "secret", "precious");
    sandbox.write(".git/config", "password");
    for out in ["../../../secret", "../../.git/config"] {
        symlink(out, sandbox.path("work/app/real/out")).expect("can be made");
        around
            .vendor(&[])
            .fails()
            .says(&["neither in its package nor in the repository or workspace around it"]);
        fs::remove_file(sandbox.path("work/app/real/out")).expect("is there");
    }
}

/// What Helm packs of the chart `app` in a folder of the workspace.
fn packaged(around: &Around, folder: &str) -> Vec<Vec<String>> {
    let place = around.sandbox.path(&format!("work/{folder}"));
    let place = place.to_str().expect("is UTF-8");
    let into = around.sandbox.path("packaged");
    let into_text = into.to_str().expect("is UTF-8");
    let all = Helm::all().map(|helm| {
        let _ = fs::remove_dir_all(&into);
        helm.run(&around.sandbox.path("helm"), &["package", place, "-d", into_text])
            .expect("packs");
        paths_in(&into.join("app-1.0.0.tgz"))
    });
    all.into()
}

/// The paths in the archive of a chart.
fn paths_in(archive: &Path) -> Vec<String> {
    let file = fs::File::open(archive).expect("is there");
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(file));
    let entries = archive.entries().expect("is an archive");
    entries
        .map(|entry| entry.expect("is whole").path().expect("is UTF-8").display().to_string())
        .collect()
}

#[test]
fn a_helmignore_leaves_out_what_helm_leaves_out() {
    let around = Around::new();
    let sandbox = &around.sandbox;
    sandbox.write(".mu/workspace.yaml", "formats: [helm]\n");
    around.write("work/top", chart("top", "1.0.0"), &[need("app", "1.x", "file://../app")]);
    around.write("work/app", chart("app", "1.0.0"), &[]);
    for path in
        ["keep.txt", "a.txt", "b.md", "docs/a.md", "docs/deep/a.md", "{a,b}", "x1", "templates/x1"]
    {
        sandbox.write(&format!("app/{path}"), "");
    }
    for rules in [
        "*.txt\n",
        "docs/*.md\n/x1\n",
        "{a,b}\n",
        "x[^2]\n*.t?t\n",
        "docs/\n!*\n",
        "!*.yaml\n",
        "\u{feff}*.md\r\n  keep.txt  \r\n",
    ] {
        sandbox.write("app/.helmignore", rules);
        around.vendor(&[]).ok().does_not_say(&["Helm refuses"]);
        let mut paths = paths_in(&sandbox.path("work/top/charts/app-1.0.0.tgz"));
        paths.sort();
        for mut by_helm in packaged(&around, "app") {
            by_helm.sort();
            assert_eq!(paths, by_helm, "{rules:?}");
        }
    }
    // With `!name`, Helm leaves out all else, also the manifest.
    sandbox.write("app/.helmignore", "!keep.txt\n");
    let said =
        "leaves out Chart.yaml, so Helm finds no chart there: `!name` leaves out all but `name`";
    around.vendor(&[]).ok().says(&[said]);
    refused_by_helm(&around, "Chart.yaml file is missing");
    // Helm refuses the whole chart; mu says so, and packs nothing of what the line names.
    sandbox.write("app/.helmignore", "b.md\n**/deep\n");
    let said = ".helmignore:2: Helm refuses this chart because of `**/deep`: Helm knows no `**`";
    around.vendor(&[]).ok().says(&[said]);
    let paths = paths_in(&sandbox.path("work/top/charts/app-1.0.0.tgz"));
    assert!(paths.contains(&"app/docs/a.md".to_owned()), "{paths:?}");
    assert!(!paths.iter().any(|path| path.contains("deep") || path.contains("b.md")), "{paths:?}");
    refused_by_helm(&around, "double-star");
}

/// Neither Helm packs the chart `app`, and says this.
fn refused_by_helm(around: &Around, words: &str) {
    let place = around.sandbox.path("work/app");
    let place = place.to_str().expect("is UTF-8");
    for helm in Helm::all() {
        let refused = helm.run(&around.sandbox.path("helm"), &["package", place]);
        let refused = refused.expect_err("refuses");
        assert!(refused.contains(words), "{refused}");
    }
}

#[test]
fn what_helm_loads_no_chart_with_is_an_error_where_it_is_written() {
    let around = Around::new();
    let url = around.url();
    let also =
        |more: &str| format!("- {{name: redis, version: 17.x, repository: '{url}'{more}}}\n");
    for (needs, said, helms) in [
        (
            [also(""), also("")].concat(),
            "two dependencies are called `redis`: give one of them an `alias` of its own",
            "more than one dependency with name or alias",
        ),
        (
            [also(", alias: nginx"), need("nginx", "4.x", &url)].concat(),
            "two dependencies are called `nginx`: give one of them an `alias` of its own",
            "more than one dependency with name or alias",
        ),
        (also(", alias: a.b"), "the alias `a.b` has other characters", "disallowed characters"),
        (
            format!("{}type: module\n", also("")),
            "the type `module`",
            "must be application or library",
        ),
    ] {
        around.write("work/app", chart("app", "1.0.0"), &[needs]);
        around.sandbox.write(".mu/workspace.yaml", "formats: [helm]\n");
        around.vendor(&[]).fails().says(&[said, "work/app/Chart.yaml:"]);
        refused_by_helm(&around, helms);
    }
    around.write("work/app", chart("app", "1.0.0"), &[also(""), also(", alias: second")]);
    around.vendor(&[]).ok();
}

#[test]
fn a_file_that_is_too_large_for_helm_is_said() {
    let mut around = Around::new();
    let large = "x".repeat((5 << 20) + 1);
    around.charts.add(&chart("large", "1.0.0").file("files/data", &large));
    around.write("work", chart("app", "1.0.0"), &[need("large", "1.x", &around.url())]);
    let said = "`files/data` of the chart large 1.0.0 has 5242881 bytes, and Helm 4 loads no chart";
    around.vendor(&[]).ok().says(&[said]);
    around.vendor(&["--check"]).ok().says(&[said]);
    let place = around.sandbox.path("work");
    let [_, newest] = Helm::all();
    let refused = newest
        .run(&around.sandbox.path("helm"), &["template", "app", place.to_str().expect("is UTF-8")]);
    refused.expect_err("is refused");
}

#[test]
fn a_chart_inside_of_another_version_than_its_dependent_asks_for_is_no_fit() {
    let around = Around::new();
    let write = |range: &str| {
        let needs = format!("- {{name: part, version: '{range}', alias: piece}}\n");
        around.write("work", chart("app", "1.0.0"), &[needs]);
    };
    around.write("work/charts/part", chart("part", "1.0.0"), &[]);
    write("^2.0.0");
    for flags in [&[][..], &["--check"], &["--dry-run"]] {
        around.vendor(flags).fails().says(&[
            "charts/part` is part 1.0.0, and `",
            "asks for ^2.0.0",
            "put a version there that is in the range, or change the range",
        ]);
    }
    let place = around.sandbox.path("work");
    let place = place.to_str().expect("is UTF-8");
    for helm in Helm::all() {
        let listed = helm.run(&around.sandbox.path("helm"), &["dependency", "list", place]);
        assert!(listed.expect("lists").contains("wrong version"));
    }
    write("^1.0.0");
    around.vendor(&[]).ok();
    around.vendor(&["--check"]).ok();
    assert!(around.rendered("work").keys().any(|path| path.contains("charts/piece/")));
}

#[test]
fn helm_packs_no_files_of_mu() {
    let around = Around::new();
    let sandbox = &around.sandbox;
    around.write("work", chart("app", "1.0.0"), &[need("redis", "17.x", &around.url())]);
    sandbox.write(".helmignore", "*.swp\r\n.git/");
    // Without a change of committed files, it is only said.
    sandbox.mu(&["get", "--dry-run"]).ok();
    around.vendor(&["--dry-run"]).ok().says(&["write `.mu/` and `Mu.lock` into `.helmignore`"]);
    assert_eq!(sandbox.read(".helmignore"), "*.swp\r\n.git/");
    sandbox.mu(&["get"]).ok();
    let expected = "*.swp\r\n.git/\r\n# Files of mu, which are not a part of the chart.\r\n.mu/\r\nMu.lock\r\n";
    assert_eq!(sandbox.read(".helmignore"), expected);
    around.vendor(&[]).ok().does_not_say(&["helmignore"]);
    sandbox.mu(&["update"]).ok();
    assert_eq!(sandbox.read(".helmignore"), expected);
    for paths in packaged(&around, "") {
        assert!(paths.contains(&"app/charts/redis/Chart.yaml".to_owned()), "{paths:?}");
        let own = |path: &&String| path.contains(".mu/") || path.ends_with("Mu.lock");
        assert_eq!(paths.iter().find(own), None);
    }
    // What leaves them out in other words is enough, and what is missing of them is added.
    sandbox.write(".helmignore", ".*\n");
    sandbox.mu(&["get"]).ok();
    let expected = ".*\n# Files of mu, which are not a part of the chart.\nMu.lock\n";
    assert_eq!(sandbox.read(".helmignore"), expected);
    // Where no chart is, there is nothing to ignore.
    let other = Sandbox::with_dependencies(&[]);
    other.mu(&["get"]).ok();
    assert!(!other.has("work/.helmignore"));
}

#[test]
fn a_workspace_that_is_begun_in_a_chart_is_not_packed() {
    let around = Around::new();
    around.write("work", chart("app", "1.0.0"), &[]);
    around.sandbox.mu(&["init", "--workspace"]).ok();
    let own = |path: &&String| path.contains(".mu/");
    for paths in packaged(&around, "") {
        assert_eq!(paths.iter().find(own), None);
    }
}

#[test]
fn one_chart_of_a_workspace_is_filled_alone() {
    let around = Around::new();
    let url = around.url();
    around.sandbox.write(".mu/workspace.yaml", "formats: [helm]\n");
    around.write("work/cart", chart("cart", "0.2.5"), &[need("nginx", "4.x", &url)]);
    around.write("work/shop", chart("shop", "1.0.0"), &[need("redis", "17.x", &url)]);
    around.vendor(&["-p", "cart"]).ok();
    assert_eq!(around.charts("work/cart"), ["nginx-4.8.2.tgz"]);
    assert!(!around.sandbox.has("work/shop/charts"));
    around
        .vendor(&["-p", "nothing"])
        .fails()
        .says(&["`nothing` is not a package of this workspace"]);
}

/// A chart with another one inside, and the dependency that names it.
fn with_inside(outer: Chart, needs: &str, inner: &Chart, folder: &str) -> Chart {
    let mut outer = outer.lines(&format!("dependencies:\n{needs}"));
    for (path, (_, bytes)) in inner.files() {
        let text = String::from_utf8(bytes).expect("is text");
        outer = outer.file(&format!("charts/{folder}/{path}"), &text);
    }
    outer
}

#[test]
fn what_helm_uses_from_inside_of_charts_is_said_and_follows_the_lock_if_asked() {
    let mut around = Around::new();
    let url = around.url();
    let deep = need("nginx", "4.x", &url);
    let redis = with_inside(chart("cache", "1.0.0"), &deep, &chart("nginx", "4.7.0"), "nginx");
    around.charts.add(&redis);
    let newer = chart("cache", "1.1.0");
    around.charts.add(&with_inside(newer, &deep, &chart("nginx", "4.7.0"), "nginx"));
    let web = with_inside(chart("web", "0.4.1"), &need("cache", "1.x", &url), &redis, "cache");
    around.charts.add(&web);
    around.write("work", chart("app", "1.0.0"), &[need("web", "0.4.1", &url)]);
    let sandbox = &around.sandbox;
    sandbox.mu(&["get"]).ok();
    let inside = "1.0.0 inside web, for Helm";
    let deeper = "4.7.0 inside cache inside web, for Helm";
    for arguments in [&["list"][..], &["tree"]] {
        sandbox.mu(arguments).ok().says(&[inside, deeper]);
    }
    sandbox.mu(&["why", "cache"]).ok().says(&["Helm uses 1.0.0 from inside web"]);
    let listed = sandbox.mu(&["--json", "list"]).ok().json();
    let nginx = listed["packages"].as_array().expect("is a list").iter();
    let nginx = nginx.filter(|one| one["version"] == "4.8.2").collect::<Vec<_>>();
    assert_eq!(nginx[0]["helm"][0]["version"], "4.7.0");
    assert_eq!(nginx[0]["helm"][0]["inside"], "cache inside web");
    around.vendor(&[]).ok().says(&[
        "Helm uses cache 1.0.0 from inside web 0.4.1; Mu.lock has 1.1.0",
        "Helm uses nginx 4.7.0 from inside cache inside web 0.4.1; Mu.lock has 4.8.2",
    ]);
    let runs = |version: &str| {
        around.rendered("work").values().any(|text| text.contains(&format!("chart: {version}\n")))
    };
    assert!(runs("cache 1.0.0") && runs("nginx 4.7.0"));
    sandbox.mu(&["list"]).ok().says(&[inside]);
    // Made again, all of them are those of the lock.
    around.vendor(&["--unify", "--check"]).fails().says(&["charts/web-0.4.1.tgz"]);
    let run = around.vendor(&["--unify"]).ok();
    assert!(!run.shown().contains("Helm uses"), "{}", run.shown());
    assert!(runs("web 0.4.1") && runs("cache 1.1.0") && runs("nginx 4.8.2"));
    assert!(!runs("cache 1.0.0") && !runs("nginx 4.7.0"));
    around.vendor(&["--unify", "--check"]).ok();
    let list = sandbox.mu(&["list"]).ok();
    assert!(!list.stdout.contains("for Helm"), "{}", list.shown());
    around.vendor(&["--check"]).fails();
    sandbox.mu(&["vendor", "--for", "kcl", "--unify"]).says(&["for the archives of charts"]);
}

#[test]
fn an_umbrella_is_what_helm_alone_makes_of_it() {
    let mut around = Around::with_trust();
    let registry = DockerRegistry::start();
    let host = registry.host();
    around.sandbox.replace(&host, "[REGISTRY]");
    for version in ["2.0.3", "2.1.0", "3.0.0"] {
        Artifact::chart(&chart("queue", version)).push(&host, "charts/queue", version);
    }
    let (sandbox, url) = (&around.sandbox, around.url());
    let queue = |range: &str, more: &str| {
        format!("- {{name: queue, version: {range:?}, repository: 'oci://{host}/charts'{more}}}\n")
    };
    let also = |name: &str, range: &str, more: &str| {
        format!("- {{name: {name}, version: {range:?}, repository: {url:?}, {more}}}\n")
    };
    around.write("cart", chart("cart", "0.2.5"), &[also("nginx", "4.x", "alias: front")]);
    let needs = [
        also("redis", "^17.0", "condition: redis.enabled"),
        also("redis", "^17.0", "alias: sessions, tags: [extra]"),
        need("cart", "0.2.x", "file://../cart"),
        queue("^2.0", ", alias: jobs, condition: jobs.enabled"),
    ];
    let values = "value: original\nredis: {enabled: false}\nsessions: {value: ours}\n";
    around.write("shop", chart("shop", "1.6.2").file("values.yaml", values), &needs);
    let imports = "import-values: [{child: value, parent: imported}]";
    let needs = [
        need("shop", ">=1.0.0-0", "file://../shop"),
        also("postgresql", "12.x", "alias: db, condition: db.enabled"),
        also("nginx", "4.x", imports),
        queue("2.x", ""),
    ];
    let values = "value: original\ndb: {enabled: true, value: db}\nshop: {cart: {front: {value: deep}}, jobs: {value: queued}}\n";
    around.write("work", chart("platform", "3.4.0").file("values.yaml", values), &needs);
    let expected = around.by_helm_alone(&["cart", "shop", "work"]);
    let shows = |text: &str| expected.values().any(|shown| shown.contains(text));
    assert!(shows("value: ours") && shows("value: db") && shows("value: deep"), "{expected:?}");
    assert!(shows("value: queued") && shows("chart: queue 2.1.0"), "{expected:?}");
    sandbox.mu(&["get"]).ok();
    around.vendor(&[]).ok();
    assert_eq!(around.rendered("work"), expected);
    // A patch is the only difference afterwards.
    sandbox.mu(&["patch", "postgresql"]).ok();
    let drafts = names(&sandbox.path("work/.mu/patch"));
    let draft = drafts.iter().find(|name| name.contains("postgresql")).expect("is there");
    let edited = format!(".mu/patch/{draft}");
    sandbox.write(&format!("{edited}/templates/shown.yaml"), &format!("{SHOWN}patched: true\n"));
    sandbox.mu(&["patch", "--save", &edited]).ok();
    around.vendor(&[]).ok();
    let patched = around.rendered("work");
    let differing = patched.iter().filter(|(path, text)| expected.get(*path) != Some(text));
    let differing: Vec<_> = differing.map(|(path, _)| path.as_str()).collect();
    assert_eq!(differing, ["platform/charts/db/templates/shown.yaml"]);
    // Helm takes what mu has written.
    let home = sandbox.path("helm");
    let place = sandbox.path("work");
    let place = place.to_str().expect("is UTF-8");
    let packed = sandbox.path("packed");
    let packed = packed.to_str().expect("is UTF-8");
    for helm in Helm::all() {
        helm.run(&home, &["lint", place]).expect("nothing is wrong with it");
        helm.run(&home, &["package", place, "-d", packed]).expect("is packed");
        let listed = helm.run(&home, &["dependency", "list", place]).expect("is listed");
        assert_eq!(listed.matches("\tok").count(), 4, "{listed}");
        let archive = sandbox.path("packed/platform-3.4.0.tgz");
        assert_eq!(helm.template(&home, &archive), patched);
    }
    for helm in Helm::all() {
        // It fetches all again, without a complaint about the lock.
        helm.run(&home, &["repo", "add", "stable", &url]).expect("is known from now on");
        helm.run(&home, &["dependency", "build", "--plain-http", place]).expect("the lock fits");
    }
}
