//! Where packages come from: several registries, those of one command, and errors about wrong ones.

use std::fs;

use mu_testing::Nginx;
use serde_json::{Value, json};

use crate::support::git::Origin;
use crate::support::{Hub, Package, Run, Sandbox};

/// A public hub, and one for `secret/`, where names are the same.
fn two_hubs() -> Sandbox {
    let sandbox = Sandbox::with_dependencies(&["secret/tool#^1"]);
    sandbox.publish(&[Package::new("aws/lib", "1.0.0"), Package::new("secret/tool", "1.9.0")]);
    let private = Hub::new(&sandbox.path("private"));
    for package in [
        Package::new("secret/tool", "1.0.0").needs("aws/lib").needs("kit"),
        Package::new("secret/kit", "1.0.0"),
        Package::new("other/thing", "1.0.0"),
    ] {
        private.publish(&package);
    }
    // The searched catalogs are made from the index.
    for hub in ["../hub", "../private"] {
        sandbox.mu(&["hub", "check", hub, "--repair"]).ok();
    }
    sandbox
}

fn ids(sandbox: &Sandbox) -> Vec<String> {
    let lock = sandbox.lock();
    let packages = lock["packages"].as_array().expect("is a list").clone();
    let text = |value: &Value| value.as_str().expect("is text").to_owned();
    let shown = |package: &Value| format!("{} {}", text(&package["id"]), text(&package["version"]));
    packages.iter().map(shown).collect()
}

#[test]
fn a_registry_for_this_machine_leads_no_path_elsewhere_and_mu_says_so() {
    let origin = Origin::new("lib.git");
    origin.commit(&[("Mu.yaml", "name: lib\nversion: 1.0.0\n")]);
    origin.git(&["tag", "v1.0.0"]);
    let sandbox = Sandbox::new();
    sandbox.asks_for(&[&format!("git+file://{}#^1", origin.folder().display())]);
    let told = "the registry `localhost/` has no effect on `";
    sandbox.mu(&["get"]).ok().does_not_say(&[told]);
    sandbox.write(".mu/workspace.yaml", "registries: {localhost/: ../hub}\n");
    for arguments in [&["get"][..], &["update"]] {
        let run = sandbox.mu(arguments).ok().says(&[told, "by its path; `overrides` can"]);
        assert_eq!(run.stderr.matches(told).count(), 1, "{}", run.shown());
    }
    sandbox.write(".mu/workspace.yaml", "registries: {localhost:8080/: ../hub}\n");
    sandbox.mu(&["get"]).ok().does_not_say(&["has no effect"]);
}

#[test]
fn the_file_at_the_root_of_a_registry_means_the_registry() {
    let sandbox = Sandbox::with_dependencies(&["aws/lib", "x.example/tool"]);
    sandbox.publish(&[Package::new("aws/lib", "1.0.0")]);
    Hub::new(&sandbox.path("www/mu")).publish(&Package::new("tool", "1.0.0"));
    let nginx = Nginx::serve(&sandbox.path("www"), "");
    for url in [nginx.url("mu/hub.json"), "../www/mu/hub.json".to_owned()] {
        let settings = format!("registries: {{x.example/: {{url: \"{url}\"}}}}\n");
        sandbox.write(".mu/workspace.yaml", &settings);
        sandbox.mu(&["get"]).ok();
        assert_eq!(ids(&sandbox), ["hub.mu.com/aws/lib 1.0.0", "x.example/tool 1.0.0"]);
        fs::remove_file(sandbox.path("work/Mu.lock")).expect("was written");
    }
}

#[test]
fn names_stay_whole_in_a_registry_that_says_so() {
    let sandbox = two_hubs();
    let add = ["registry", "add", "hub.mu.com/secret/", "../private"];
    sandbox.mu(&add).ok();
    // By default, the hub is treated as one for that namespace alone, and the error says why nothing was
    // found.
    let why = "the registry `hub.mu.com/secret/` strips `secret/`, so mu looked for `tool`; if the registry has `secret/tool`, set `strip: false`: `mu registry add hub.mu.com/secret/ file://";
    sandbox.mu(&["get"]).fails().says(&[why, "/private/ --no-strip`"]);
    sandbox.mu(&["info", "secret/tool"]).fails().says(&[why]);
    let run = sandbox.mu(&[&add[..], &["--no-strip"]].concat()).ok();
    run.says(&["hub.mu.com/secret/: file://", "/private/ → file://", "/private/, names whole"]);
    sandbox.mu(&["get"]).ok();
    let expected =
        ["hub.mu.com/aws/lib 1.0.0", "hub.mu.com/secret/kit 1.0.0", "hub.mu.com/secret/tool 1.0.0"];
    assert_eq!(ids(&sandbox), expected);
    // If one of them lists a package that the other serves, it is not shown.
    let found = sandbox.mu(&["search", "", "--json"]).ok().json();
    let found = found["packages"].as_array().expect("is a list").iter();
    let found: Vec<_> = found.map(|one| one["id"].as_str().expect("is text")).collect();
    assert_eq!(found, ["hub.mu.com/aws/lib", "hub.mu.com/secret/kit", "hub.mu.com/secret/tool"]);
    sandbox.mu(&["add", "secret/kitt"]).fails().says(&["secret/kit"]).does_not_say(&["strip"]);
    let list = sandbox.mu(&["registry", "list"]).ok();
    list.says(&["names leave out", "nothing"]);
    // Publishing goes there too, under the whole name.
    sandbox.write("Mu.yaml", "name: secret/new\nversion: 1.0.0\ndependencies: ['secret/kit#^1']\n");
    sandbox.mu(&["publish"]).ok();
    assert!(sandbox.path("private/index/secret/new.jsonl").is_file());
}

#[test]
fn a_registry_can_be_for_one_command() {
    let sandbox = two_hubs();
    let settings =
        || fs::read_to_string(sandbox.path("work/.mu/workspace.yaml")).expect("is there");
    let before = settings();
    let private = ["--registry", "hub.mu.com/=../private", "--registry", "x.example=../hub"];
    let resolved = sandbox.mu(&[&["resolve", "secret/kit", "--json"], &private[..]].concat());
    assert_eq!(resolved.ok().json()["packages"][0]["id"], "hub.mu.com/secret/kit");
    sandbox.mu(&[&["info", "x.example/aws/lib"], &private[..]].concat()).ok();
    sandbox.mu(&["info", "secret/kit"]).fails();
    assert_eq!(settings(), before);
    for (value, said) in [
        ("hub.mu.com/", "expected BASE=PLACE"),
        ("hub.mu.com/=nowhere", "`nowhere` is neither a URL nor a folder"),
        ("https://hub.mu.com/=./x", "has no protocol"),
    ] {
        let error = sandbox.mu(&["get", "--registry", value, "--json"]).fails_with("usage");
        let message = error["message"].as_str().expect("is text");
        assert!(message.contains("--registry") && message.contains(said), "{message}");
    }
}

#[test]
fn nothing_is_looked_for_elsewhere_than_where_it_may_be() {
    let sandbox = two_hubs();
    sandbox.mu(&["registry", "add", "private.example/", "../private"]).ok();
    let found = |more: &[&str]| {
        let answer = sandbox.mu(&[&["search", "o", "--json"], more].concat()).ok().json();
        let packages = answer["packages"].as_array().expect("is a list").clone();
        let id = |package: &Value| package["id"].as_str().expect("is text").to_owned();
        packages.iter().map(id).collect::<Vec<_>>()
    };
    let only = ["--only", "private.example"];
    assert!(found(&[]).contains(&"hub.mu.com/secret/tool".to_owned()));
    assert_eq!(found(&only), ["private.example/other/thing", "private.example/secret/tool"]);
    assert_eq!(found(&["--only", "private.example/secret/"]), ["private.example/secret/tool"]);
    assert_eq!(found(&[&only[..], &["--only", "hub.mu.com/"]].concat()), found(&[]));
    let run = sandbox.mu(&["resolve", "aws/lib", "--only", "private.example/"]).fails();
    run.says(&["looked at only `private.example/`, because of `--only`"]);
    let resolve = ["resolve", "private.example/secret/kit", "--only", "private.example/", "--json"];
    let resolved = sandbox.mu(&resolve).ok().json();
    assert_eq!(resolved["packages"].as_array().map(Vec::len), Some(1));
    sandbox.mu(&["get", "--only", "https://x.example/", "--json"]).fails_with("usage");
}

#[test]
fn a_registry_that_nothing_can_come_from_is_not_added() {
    let sandbox = Sandbox::new();
    let file = sandbox.path("work/.mu/workspace.yaml");
    for (arguments, message, help) in [
        (&["a.example/", "hhttps://x"][..], "unknown protocol `hhttps://`", "`https://`?"),
        (&["a.example/", "gti+https://x"], "unknown protocol `gti+https://`", "`git+https://`?"),
        (&["a.example/", "--provider", "gti"], "unknown provider `gti`", "did you mean `git`?"),
        (
            &["a.example/", "http://10.0.0.1/"],
            "`http://10.0.0.1/` is refused: plain http can be read and changed in transit",
            "use https, or accept the risk with `--insecure`",
        ),
    ] {
        let run = sandbox.mu(&[&["registry", "add", "--json"], arguments].concat());
        let error = run.fails_with("usage");
        assert_eq!(error["message"], message);
        assert!(error["help"].to_string().contains(help), "{error}");
        assert_eq!(fs::read_to_string(&file).expect("is there"), "");
    }
    sandbox.mu(&["registry", "add", "a.example/", "http://10.0.0.1/", "--insecure"]).ok();
    sandbox.mu(&["registry", "add", "b.example/", "http://localhost:1/"]).ok();
    let add = sandbox.mu(&["registry", "add", "b.example/", "--provider", "git", "--json"]).ok();
    assert_eq!(add.json()["replaced"], "http://localhost:1/");
    let list = sandbox.mu(&["registry", "list", "--json"]).ok().json();
    let strip: Vec<_> = list["registries"].as_array().expect("is a list").iter().collect();
    assert!(strip.iter().all(|registry| registry["strip"] == json!(true)), "{list}");
    // The error points into a file that was written by hand.
    sandbox.write(".mu/workspace.yaml", "registries:\n  a.example/: hhttps://x/\n");
    let run = sandbox.mu(&["info", "a.example/x"]).fails();
    run.says(&[
        "error: unknown protocol `hhttps://`",
        ".mu/workspace.yaml:2:15",
        "  a.example/: hhttps://x/",
        "did you mean `https://`?",
    ]);
}

/// A part of a URL after `#` is sent nowhere, so nobody would miss it, and some sites keep keys there.
#[test]
fn what_follows_a_place_is_never_shown() {
    const KEY: &str = "hunter2";
    let refused = |run: Run| {
        let said = format!("{}{}", run.stdout, run.stderr);
        assert!(run.status != 0 && !said.contains(KEY), "{}", run.shown());
    };
    let sandbox = Sandbox::with_dependencies(&["acme/site"]);
    let places = [
        "https://h.example/",
        "https://h.example:x/",
        "oci://h.example/x",
        "bad://h.example/",
        "https://h.example/?q",
    ];
    for place in places.map(|place| format!("{place}#{KEY}")) {
        refused(sandbox.mu(&["registry", "add", "hub.mu.com/", &place]));
        refused(sandbox.mu(&["get", "--registry", &format!("hub.mu.com/={place}")]));
        refused(sandbox.mu(&["publish", "--to", &place]));
        for settings in [
            format!("registries:\n  hub.mu.com/: \"{place}\"\n"),
            format!("registries: {{hub.mu.com/: {{url: '{place}', insecure: true}}}}\n"),
        ] {
            sandbox.write(".mu/workspace.yaml", &settings);
            for command in [&["get"][..], &["get", "--json"], &["registry", "list"]] {
                refused(sandbox.mu(command));
            }
            refused(sandbox.mu(&["doctor"]));
            sandbox.write(".mu/workspace.yaml", "");
        }
    }
}

#[test]
fn a_folder_is_where_the_command_line_says_it_is() {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.path("work/deploy")).expect("can be made");
    sandbox.hub().release("aws/ec2", "1.0.0");
    // The user's own settings are elsewhere, and for every workspace.
    let run = sandbox.mu(&["registry", "add", "-g", "one.example/", "../hub"]).ok();
    run.does_not_say(&["warning"]);
    let folder = sandbox.path("hub").display().to_string();
    let written = fs::read_to_string(sandbox.path("home/.mu/config.yaml")).expect("is there");
    let written = written.replace('"', "");
    assert!(written.contains(&format!("one.example/: {folder}\n")), "{written}");
    // Those of a workspace are relative to its root.
    let arguments = ["registry", "add", "two.example/", "../../hub"];
    sandbox.mu_in("work/deploy", &arguments).ok().does_not_say(&["warning"]);
    let run = sandbox.mu_in("work/deploy", &["registry", "add", "three.example/", "./hub"]).ok();
    run.says(&["[DIR]/work/deploy/hub/`, which is not there"]);
    let written = sandbox.read(".mu/workspace.yaml");
    for line in ["two.example/: ../hub\n", "three.example/: ./deploy/hub\n"] {
        assert!(written.contains(line), "{written}");
    }
    for base in ["one.example", "two.example"] {
        sandbox.mu(&["info", &format!("{base}/aws/ec2")]).ok();
    }
}
