//! The other plugins of `examples/`, one in shell and one for Terraform's registries; and records of what is said to a plugin.

use std::fs;
use std::path::Path;
use std::process::Command;

use mu_testing::git::{HttpServer, Origin};
use mu_testing::{Nginx, tar_gz};

use crate::plugins::{LISTS, install, odd, with_shelf};
use crate::support::{Sandbox, tree, write};

/// A sandbox with a plugin of `examples/`.
fn with_example(name: &str) -> Sandbox {
    let mut sandbox = Sandbox::new();
    sandbox.set("PATH", "/usr/bin:/bin");
    let file = format!("mu-provider-{name}");
    let program = fs::read(Path::new("examples/plugins").join(&file)).expect("is there");
    install(&sandbox, &format!("home/.mu/plugins/{file}"), program);
    sandbox
}

#[test]
fn a_plugin_in_shell_serves_archives() {
    let mut sandbox = with_example("shed");
    let shed = sandbox.path("shed");
    sandbox.set("MU_PLUGIN_SHED", shed.to_str().expect("is UTF-8"));
    let files = sandbox.path("files");
    for version in ["1.0.0", "1.1.0", "2.0.0"] {
        write(&files, "Mu.yaml", format!("name: tools/lamp\nversion: {version}\n"));
        let archive = tar_gz(tree(&files));
        write(&shed, &format!("tools.example/tools/lamp-{version}.tgz"), &archive);
        // Another package, whose name begins in the same way.
        write(&shed, &format!("tools.example/tools/lamp-post-{version}.tgz"), archive);
    }
    sandbox.asks_for(&["shed://tools.example/tools/lamp#^1"]);
    sandbox.mu(&["get"]).ok().says(&["+ tools.example/tools/lamp 1.1.0"]);
    assert!(sandbox.read(".mu/packs/tools.example/tools/lamp/Mu.yaml").contains("1.1.0"));
    sandbox.mu(&["versions", "tools.example/tools/lamp"]).ok().says(&["2.0.0", "1.1.0", "1.0.0"]);
    let check = ["plugin", "check", "shed", "shed://tools.example/tools/lamp", "--json"];
    let json = sandbox.mu(&check).ok().json();
    assert!(json["checks"].as_array().is_some_and(|checks| checks.len() == 7), "{json}");
    sandbox.mu(&["get", "shed://tools.example/tools/hammer"]).fails().says(&["tools/hammer-*.tgz"]);
    fs::remove_file(shed.join("tools.example/tools/lamp-1.1.0.tgz")).expect("is there");
    fs::remove_dir_all(sandbox.path("cache")).expect("is there");
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is there");
    sandbox.mu(&["get", "--locked"]).fails().says(&["the archive is gone"]);
}

/// A registry of Terraform modules: `acme/vpc/aws` as archives, which needs `acme/subnets/aws` in a Git repository and
/// `acme/tags/null` in a folder of a zip.
fn terraform_registry(root: &Path, git: &HttpServer) -> Nginx {
    let versions = |all: &str| format!("{{\"modules\": [{{\"versions\": [{all}]}}]}}");
    let place = |module: &str, file: &str| format!("v1/modules/acme/{module}/{file}");
    write(root, ".well-known/terraform.json", r#"{"modules.v1": "/v1/modules/"}"#);
    let needs = r#""root": {"dependencies": [
        {"name": "subnets", "source": "acme/subnets/aws", "version": "~> 1.2, != 1.3.0"},
        {"name": "tags", "source": "acme/tags/null", "version": ">= 1.0"},
        {"name": "local", "source": "./modules/x", "version": ""}]}"#;
    write(
        root,
        &place("vpc/aws", "versions"),
        versions(&format!(r#"{{"version": "1.0.0"}}, {{"version": "1.1.0", {needs}}}"#)),
    );
    write(
        root,
        &place("subnets/aws", "versions"),
        versions(r#"{"version": "1.2.0"}, {"version": "1.3.0"}, {"version": "2.0.0"}"#),
    );
    write(root, &place("tags/null", "versions"), versions(r#"{"version": "1.5.0"}"#));
    let files = root.join("files");
    write(&files, "vpc-main/main.tf", "# the network\n");
    write(root, "archives/vpc.tar.gz", tar_gz(tree(&files)));
    write(&root.join("tags"), "modules/tags/main.tf", "# the tags\n");
    let zip = "import shutil, sys; shutil.make_archive(sys.argv[1], 'zip', sys.argv[2])";
    let (target, source) = (root.join("archives/tags"), root.join("tags"));
    let mut python = Command::new("/usr/bin/python3");
    assert!(python.args(["-c", zip]).args([target, source]).status().expect("runs").success());
    let download = |module: &str, version: &str, to: &str| {
        format!(
            "location = /v1/modules/acme/{module}/{version}/download {{ add_header X-Terraform-Get \"{to}\"; return 204; }}\n"
        )
    };
    let git = format!("git::{}subnets//modules/aws?ref=v1.2.0", git.root());
    let more = [
        download("vpc/aws", "1.1.0", "/archives/vpc.tar.gz//*?archive=tar.gz"),
        download("subnets/aws", "1.2.0", &git),
        download("tags/null", "1.5.0", "/archives/tags.zip//modules/tags"),
    ];
    Nginx::serve(root, &more.concat())
}

#[test]
fn modules_of_terraform_are_packages() {
    let mut sandbox = with_example("terraform");
    let origin = Origin::new("subnets");
    origin.commit(&[("modules/aws/main.tf", "# the subnets\n"), ("README.md", "more\n")]);
    origin.git(&["tag", "v1.2.0"]);
    let git = HttpServer::start(origin.root());
    let registry = terraform_registry(&sandbox.path("registry"), &git);
    let host = registry.host();
    // What the plugin runs would go through the proxies of this machine otherwise.
    sandbox.set("NO_PROXY", "localhost,127.0.0.1");
    sandbox.asks_for(&[&format!("terraform://{host}/acme/vpc/aws#^1")]);
    sandbox.mu(&["get"]).ok().says(&[
        "acme/subnets/aws 1.2.0",
        "acme/tags/null 1.5.0",
        "acme/vpc/aws 1.1.0",
        "installed 3 packages",
    ]);
    let packs = format!(".mu/packs/{}", host.replace(':', "+"));
    for (module, said) in [
        ("vpc/aws", "# the network\n"),
        ("subnets/aws", "# the subnets\n"),
        ("tags/null", "# the tags\n"),
    ] {
        assert_eq!(sandbox.read(&format!("{packs}/acme/{module}/main.tf")), said);
    }
    assert!(!sandbox.has(&format!("{packs}/acme/subnets/aws/README.md")));
    sandbox.mu(&["why", &format!("{host}/acme/subnets/aws")]).ok().says(&["acme/vpc/aws"]);
    sandbox.mu(&["verify"]).ok();
    // From the lock alone.
    fs::remove_dir_all(sandbox.path("cache")).expect("is there");
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is there");
    let before = registry.log().len();
    sandbox.mu(&["get", "--locked"]).ok();
    let asked = registry.log()[before..].to_vec();
    assert!(!asked.iter().any(|line| line.contains("/versions")), "{asked:?}");
    sandbox
        .mu(&["get", &format!("terraform://{host}/acme/nothing/aws"), "--json"])
        .fails_with("not-found");
    sandbox.mu(&["get", "--offline", "--locked"]).ok();
    let vpc = format!("terraform://{host}/acme/vpc/aws");
    sandbox.mu(&["plugin", "check", "terraform", &vpc]).ok();
}

#[test]
fn what_is_said_is_recorded_without_tokens_and_asked_again() {
    let mut sandbox = with_shelf();
    let records = sandbox.path("records").display().to_string();
    sandbox.set("MU_PLUGIN_DEBUG", &records);
    sandbox.set_token("api.example", "for-the-plugin");
    let asks = r#"if ask["method"] == "versions":
    print(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "credential", "params": {"url": "https://api.example/x"}}), flush=True)
    token = json.loads(sys.stdin.readline())["result"]["headers"]["Authorization"]
    print(json.dumps({"jsonrpc": "2.0", "method": "log", "params": {"text": "uses " + token}}), flush=True)
"#;
    let files = "open(ask['params']['into'] + '/a', 'w').write('a')\nanswer(ask, {})";
    odd(&sandbox, &format!("{asks}{LISTS}{files}"));
    sandbox.mu(&["get"]).ok();
    let record = fs::read_to_string(sandbox.path("records/odd-1.jsonl")).expect("was written");
    assert!(record.contains("Bearer ****") && record.contains("uses Bearer ****"), "{record}");
    assert!(!record.contains("for-the-plugin"), "{record}");
    assert!(record.starts_with("{\"sent\":"), "{record}");
    // Asked again by name, and as a program that is nowhere mu would look for it.
    sandbox.set("MU_PLUGIN_DEBUG", "");
    let replay = ["plugin", "check", "odd", "--replay", &records];
    let number =
        |line: &str, method: &str| line.contains(&format!("answers `{method}` as in odd-1.jsonl:"));
    let run = sandbox.mu(&replay).ok();
    for method in ["versions", "fetch"] {
        assert!(run.stdout.lines().any(|line| number(line, method)), "{}", run.stdout);
    }
    let other = LISTS.replace("1.0.0", "1.0.1");
    odd(&sandbox, &format!("{asks}{other}{files}"));
    let program = fs::read(sandbox.path("home/.mu/plugins/mu-provider-odd")).expect("is there");
    install(&sandbox, "work/mu-provider-odd", program);
    fs::remove_file(sandbox.path("home/.mu/plugins/mu-provider-odd")).expect("is there");
    let replay = ["plugin", "check", "./mu-provider-odd", "--replay", &records];
    sandbox.mu(&replay).fails().says(&[
        "/result/packages/0/lines/0/version is `\"1.0.1\"`, and was `\"1.0.0\"`",
        "1 check failed",
    ]);
    // Something that does not exist, and something that is not a plugin.
    let nowhere = sandbox.path("nowhere").display().to_string();
    sandbox.mu(&["plugin", "check", "./mu-provider-odd", "--replay", &nowhere]).fails();
    let empty = sandbox.path("work").display().to_string();
    sandbox
        .mu(&["plugin", "check", "./mu-provider-odd", "--replay", &empty])
        .fails()
        .says(&["there is no record of the plugin `odd`", "MU_PLUGIN_DEBUG="]);
    write(&sandbox.path("records"), "odd-2.jsonl", "{\"sent\": {}}\nnonsense\n");
    for (plugin, said) in [
        (replay[2], "odd-2.jsonl:2 is not a line of a record"),
        ("./odd", "has to start with `mu-provider-`"),
    ] {
        let error = sandbox
            .mu(&["plugin", "check", plugin, "--replay", &records, "--json"])
            .fails_with("usage");
        assert!(error.to_string().contains(said), "{error}");
    }
    sandbox.mu(&["plugin", "check", "bin/mu-provider-x", "--json"]).fails_with("not-found");
}
