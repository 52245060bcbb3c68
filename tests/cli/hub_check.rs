//! Creating and checking a hub on the command line.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;

use serde_json::json;

use crate::support::{Package, Sandbox, write};

#[test]
fn a_hub_is_made_once_and_then_checked() {
    let sandbox = Sandbox::new();
    let run = sandbox.mu(&["hub", "init", "../srv"]).ok();
    insta::assert_snapshot!(run.shown(), @"
    $ mu hub init ../srv
    created a hub at ../srv
    [exit 0]
    ");
    let again = sandbox.mu(&["hub", "init", "../srv", "--json"]).ok().json();
    assert_eq!(again["new"], false);
    let run = sandbox.mu(&["hub", "check", "../srv"]).ok();
    insta::assert_snapshot!(run.shown(), @"
    $ mu hub check ../srv
    0 packages with 0 versions checked (0 B)
    [exit 0]
    ");
    sandbox.mu(&["hub", "check", "../nothing", "--json"]).fails_with("not-found");
    sandbox.mu(&["hub", "check", "gopher://x", "--json"]).fails_with("usage");
}

#[test]
fn what_is_wrong_is_said_and_what_follows_from_the_index_is_put_right() {
    let sandbox = Sandbox::new();
    sandbox.hub().release("aws/ec2", "1.0.0");
    sandbox.hub().release("aws/ec2", "1.1.0");
    let run = sandbox.mu(&["hub", "check", "../hub", "--repair"]).ok();
    insta::assert_snapshot!(run.shown(), @"
    $ mu hub check ../hub --repair
    repaired  catalog.jsonl: there is none yet, so searching finds nothing
    1 package with 2 versions checked (216 B)
    [exit 0]
    ");
    fs::write(sandbox.path("hub/packs/aws/ec2/left.tgz"), "x").expect("is ours");
    let run = sandbox.mu(&["hub", "check", "../hub"]).ok();
    insta::assert_snapshot!(run.shown(), @"
    $ mu hub check ../hub
    leftover  packs/aws/ec2/left.tgz: no version uses it
    1 package with 2 versions checked (216 B)
    `mu hub check --repair` removes leftovers
    [exit 0]
    ");
    sandbox.hub().flip(&sandbox.hub().archive("aws/ec2", "1.0.0"));
    // No repair can mend that, so none is offered.
    let run = sandbox.mu(&["hub", "check", "../hub"]).fails();
    run.says(&["restore the right archive"]).does_not_say(&["--repair"]);
    fs::write(sandbox.path("hub/catalog.jsonl"), "{}\n").expect("is ours");
    let run = sandbox.mu(&["hub", "check", "../hub"]).fails();
    run.says(&["`--repair` rebuilds the files", "restore the right archive"]);
    let run = sandbox.mu(&["hub", "check", "../hub", "--repair"]).fails();
    insta::assert_snapshot!(run.shown(), @"
    $ mu hub check ../hub --repair
    error: 1 problem with the hub at `../hub`
      packs/aws/ec2/ec2-1.0.0.tgz: the archive of aws/ec2 1.0.0 is refused: it is not gzip, or is damaged: incorrect data check
    
    hint: restore the right archive or index line from a backup
    [exit 1]
    ");
    let error = sandbox.mu(&["hub", "check", "../hub", "--json"]).fails_with("integrity");
    assert_eq!(error["details"]["findings"][0]["path"], "packs/aws/ec2/ec2-1.0.0.tgz");
    // Readers can still use the valid lines.
    sandbox.mu(&["get", "aws/ec2#1.1.0"]).ok();
}

/// Publishes a package with this manifest and a different index line; returns what a check finds.
fn misled(manifest: &str, line: serde_json::Value) -> Vec<String> {
    let sandbox = Sandbox::new();
    let mut package = Package::new("aws/ec2", "1.0.0").manifest(manifest);
    for (key, value) in line.as_object().expect("is an object") {
        package = package.lies(key, value.clone());
    }
    sandbox.hub().publish(&package);
    let run = sandbox.mu(&["hub", "check", "../hub"]);
    let found =
        run.shown().lines().filter_map(|line| line.trim().strip_prefix("index/aws/ec2.jsonl: "));
    found.map(str::to_owned).collect()
}

#[test]
fn a_line_that_says_something_else_than_its_manifest_is_found() {
    let dependencies = "dependencies:\n- aws/vpc#^1.2\n- {ref: log, channel: stable}\n";
    let rest = "provides: [net/v1/Network]\nconstraints: {kubernetes: \">=1.25 <2\"}\n";
    let manifest = format!("{dependencies}{rest}apiVersion: mu/v1\nversioning: semver\n");
    let log = json!({"ref": "log", "channel": "stable"});
    let true_line = json!({
        "dependencies": ["aws/vpc#^1.2", log],
        "provides": ["net/v1/Network"],
        "constraints": {"kubernetes": ">=1.25 <2"},
    });
    assert_eq!(misled(&manifest, true_line.clone()), [""; 0]);
    // The same, written in another way.
    let mut other = true_line.clone();
    other["dependencies"] = json!([{"ref": "aws/log", "channel": "stable"}, {"ref": "https://hub.acme.co/aws/vpc#^1.2"}]);
    other["constraints"]["kubernetes"] = json!(">=1.25  <2");
    other["description"] = json!("An index says more, or less");
    assert_eq!(misled(&manifest, other), [""; 0]);
    let differ = "aws/ec2 1.0.0: its line and the manifest in its archive differ in ";
    for (key, value, expected) in [
        (
            "dependencies",
            json!(["aws/vpc#^2", log]),
            "`dependencies`: only the line has `aws/vpc#^2`, only the manifest has `aws/vpc#^1.2`",
        ),
        (
            "dependencies",
            json!(["aws/vpc#^1.2"]),
            "`dependencies`: only the manifest has `log channel: stable`",
        ),
        (
            "dependencies",
            json!(["aws/vpc#^1.2", log, "evil.example/x"]),
            "`dependencies`: only the line has `evil.example/x`",
        ),
        ("provides", json!([]), "`provides`: only the manifest has `net/v1/Network`"),
        (
            "constraints",
            json!({"kubernetes": ">=1.25"}),
            "`constraints`: only the line has `kubernetes: >=1.25`, only the manifest has `kubernetes: >=1.25 <2`",
        ),
        ("replaces", json!(["aws/old"]), "`replaces`: only the line has `aws/old`"),
        ("requires", json!(["net/v1/Vm"]), "`requires`: only the line has `net/v1/Vm`"),
        ("muVersion", json!(">=9"), "`muVersion`: only the line has `>=9`"),
    ] {
        let mut line = true_line.clone();
        line[key] = value;
        assert_eq!(misled(&manifest, line), [format!("{differ}{expected}")]);
    }
}

#[test]
fn repairing_leaves_what_is_not_the_hubs_and_says_how_to_make_its_file_anew() {
    let sandbox = Sandbox::new();
    sandbox.hub().release("aws/ec2", "1.0.0");
    fs::write(sandbox.path("hub/packs/README.txt"), "whose hub this is").expect("is ours");
    sandbox.mu(&["hub", "check", "../hub", "--repair"]).ok().does_not_say(&["README"]);
    assert!(sandbox.has("hub/packs/README.txt"));
    fs::write(sandbox.path("hub/hub.json"), "{").expect("is ours");
    let run = sandbox.mu(&["hub", "check", "../hub", "--repair"]).fails();
    run.says(&["`hub.json` of the hub at", "is broken", "remove it, and run `mu hub init"]);
    fs::remove_file(sandbox.path("hub/hub.json")).expect("is ours");
    sandbox.mu(&["hub", "init", "../hub"]).ok();
    sandbox.mu(&["hub", "check", "../hub", "--repair"]).ok();
    sandbox.mu(&["get", "aws/ec2"]).ok();
}

#[test]
fn an_address_to_listen_at_is_a_host_and_a_port() {
    let sandbox = Sandbox::new();
    for wrong in ["localhost", "localhost:x", "nonsense"] {
        let run = sandbox.mu(&["hub", "serve", "../hub", "--listen", wrong]);
        assert_eq!(run.status, 2, "{}", run.shown());
        run.says(&["expected an address and a port, such as 127.0.0.1:8080"]);
    }
    // The name is understood; what it fails for comes later.
    let serve = ["hub", "serve", "../nothing", "--listen", "localhost:0"];
    sandbox.mu(&serve).fails().says(&["there is no hub"]);
    let elsewhere = ["hub", "serve", "../hub", "--listen", "192.0.2.1:80"];
    sandbox.mu(&elsewhere).fails().says(&["cannot listen at 192.0.2.1:80"]);
}

#[test]
fn the_server_is_a_program_that_may_stand_anywhere_in_the_path() {
    let sandbox = Sandbox::new();
    let built = Path::new(env!("CARGO_BIN_EXE_mu"));
    let alone = sandbox.path("alone");
    fs::create_dir_all(&alone).expect("there is room");
    let mu = alone.join("mu");
    // By a program: a file that this one has open for writing could be inherited by what another test starts, and then not run.
    let copied = std::process::Command::new("cp").arg(built).arg(&mu).status().expect("cp runs");
    assert!(copied.success());
    let serve = ["hub", "serve", "../nothing"];
    let run = |path: &Path| {
        let mut command = sandbox.command_of(&mu, &serve);
        command.env("PATH", path);
        sandbox.run(&serve, command)
    };
    let missing =
        "a hub is served by the program `mu-hub`, which is neither beside `mu` nor in PATH";
    run(&alone).fails().says(&[missing, "`cargo install --path . --profile dist --features full`"]);
    // The workspace brings none.
    let brought = sandbox.path("work/bin");
    fs::create_dir_all(&brought).expect("there is room");
    let server = Path::new(env!("CARGO_BIN_EXE_mu-hub"));
    std::os::unix::fs::symlink(server, brought.join("mu-hub")).expect("is ours");
    run(&brought).fails().says(&[missing]);
    let elsewhere = sandbox.path("elsewhere");
    fs::rename(&brought, &elsewhere).expect("is ours");
    run(&elsewhere).fails().says(&["there is no hub at"]).does_not_say(&[missing]);
}

#[test]
fn a_server_says_what_is_still_missing() {
    let sandbox = Sandbox::new();
    sandbox.mu(&["hub", "init", "../srv"]).ok();
    let said = |listen: &str, lines: usize| -> Vec<String> {
        let mut command = sandbox.command(&["hub", "serve", "../srv", "--listen", listen]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("mu runs");
        let said = BufReader::new(process.stderr.take().expect("is piped"));
        let said = said.lines().take(lines).map(|line| line.expect("is text")).collect();
        process.kill().expect("is a child");
        process.wait().expect("is a child");
        said
    };
    let token = "nobody can publish yet: `mu hub token add ../srv NAME --namespace NAMESPACE` creates a token";
    assert_eq!(said("127.0.0.1:0", 2)[1], token);
    let everywhere = said("0.0.0.0:0", 3);
    assert!(everywhere[1].starts_with("other machines need https: "), "{everywhere:?}");
    assert_eq!(everywhere[2], token);
}

#[test]
fn a_host_that_is_taken_for_a_folder_is_seen() {
    let sandbox = Sandbox::new();
    sandbox.write("Mu.yaml", "name: acme/web\nversion: 1.0.0\n");
    for (place, url) in [
        ("hub.acme.co", Some("https://hub.acme.co")),
        ("127.0.0.1:8080/mu", Some("http://127.0.0.1:8080/mu")),
        ("../srv", None),
        ("srv", None),
    ] {
        let run = sandbox.mu(&["publish", "--to", place]).fails();
        match url {
            Some(url) => drop(run.says(&[&format!("if that is a server, not a folder: `{url}`")])),
            None => drop(run.does_not_say(&["server"])),
        }
    }
}

#[test]
fn what_a_killed_run_had_unpacked_is_removed_by_the_next() {
    let sandbox = Sandbox::new();
    sandbox.hub().release("aws/ec2", "1.0.0");
    let dead = sandbox.path("cache/hub-staging/mu-hub-dead");
    fs::create_dir_all(dead.join("mu-hub-1/files")).expect("can be made");
    sandbox.mu(&["hub", "check", "../hub"]).ok();
    assert!(!dead.exists());
    let left: Vec<_> =
        fs::read_dir(sandbox.path("cache/hub-staging")).expect("is there").flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn a_hub_of_a_newer_mu_is_left_alone() {
    let sandbox = Sandbox::new();
    sandbox.hub().release("aws/ec2", "1.0.0");
    let root = r#"{"hub": 2, "generation": 7}"#;
    fs::write(sandbox.path("hub/hub.json"), root).expect("is ours");
    for arguments in [&["hub", "check", "../hub"][..], &["hub", "check", "../hub", "--repair"]] {
        sandbox
            .mu(arguments)
            .fails()
            .says(&["has version 2, and this mu writes version 1", "nothing is wrong with it"])
            .does_not_say(&["remove it", "broken"]);
    }
    assert_eq!(fs::read_to_string(sandbox.path("hub/hub.json")).expect("is there"), root);
}

#[test]
fn checking_and_tidying_take_no_more_memory_for_many_versions_than_for_few() {
    let sandbox = Sandbox::new();
    let mut made = 0;
    // Their archives are elsewhere, so that only their lines count.
    let mut peaks_of = |packages: usize| {
        for number in made..packages {
            let name = format!("large/n{number}");
            let line = |minor: usize| {
                let url = format!("https://archives.example/{name}-1.{minor}.0.tgz");
                let line = json!({
                    "name": name, "version": format!("1.{minor}.0"), "urls": [url],
                    "dependencies": [format!("large/n{}#^1", number + 1)],
                });
                format!("{line}\n")
            };
            let lines: String = (0..20).map(line).collect();
            write(&sandbox.path("hub"), &format!("index/{name}.jsonl"), lines);
        }
        made = packages;
        for path in ["catalog.jsonl", "snapshot.jsonl.gz", "snapshot.digests"] {
            let _ = fs::remove_file(sandbox.path("hub").join(path));
        }
        // It has had many changes, and its files about all packages were never written.
        let root = json!({ "hub": 1, "log": "log/", "generation": 1_000_000 });
        write(&sandbox.path("hub"), "hub.json", root.to_string());
        write(&sandbox.path("hub"), "log/000999.txt", "large/n0\n".repeat(1_000));
        let (run, tidying) = sandbox.peak(&["hub", "tidy", "../hub"]);
        run.ok();
        let root = fs::read_to_string(sandbox.path("hub/hub.json")).expect("is there");
        assert!(root.contains("\"snapshotGeneration\":1000000"), "{root}");
        let (run, checking) = sandbox.peak(&["hub", "check", "../hub", "--json"]);
        let report = run.ok().json();
        assert_eq!(report["versions"], packages * 20);
        assert_eq!(report["findings"], json!([]));
        println!("{packages} packages: {tidying} KiB to tidy, {checking} KiB to check");
        [tidying, checking]
    };
    let (few, many) = (peaks_of(500), peaks_of(2_000));
    for (few, many) in few.into_iter().zip(many) {
        assert!(many < few + (8 << 10), "{few} KiB for 10,000 versions, {many} KiB for 40,000");
    }
}
