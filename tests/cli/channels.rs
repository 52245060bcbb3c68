//! Channels: which one counts if none is requested, and that answers name it.

use serde_json::json;

use crate::support::{Package, Sandbox};

/// `ops/db` has a stable channel, which is its default, and a fast one.
fn sandbox(dependency: &str) -> Sandbox {
    let sandbox = Sandbox::with_dependencies(&[dependency]);
    let version = |version: &str, channels: &[&str]| {
        let package = Package::new("ops/db", version).key("channels", json!(channels));
        package.key("defaultChannel", json!("stable"))
    };
    sandbox.publish(&[
        version("1.0.0", &["stable", "fast"]),
        version("1.1.0", &["stable"])
            .key("upgrade", json!({"channel": "stable", "replaces": "1.0.0"})),
        version("1.2.0", &["fast"]).key(
            "upgrade",
            json!([
                {"channel": "fast", "replaces": "1.0.0"},
                {"channel": "stable", "replaces": "1.1.0"},
            ]),
        ),
    ]);
    sandbox
}

#[test]
fn the_default_channel_comes_first_and_is_named() {
    let sandbox = sandbox("ops/db#^1");
    let json = sandbox.mu(&["get", "--json"]).ok().json();
    let package = &json["packages"][0];
    assert_eq!((&package["version"], &package["channel"]), (&json!("1.1.0"), &json!("stable")));
    assert!(sandbox.read("Mu.lock").contains("  channel: \"stable\"\n"));
    sandbox.mu(&["list"]).ok().says(&["1.1.0 (stable)"]);
    let listed = sandbox.mu(&["list", "--json"]).ok().json();
    assert_eq!(listed["packages"][0]["channel"], "stable");
    sandbox.mu(&["tree"]).ok().says(&["ops/db 1.1.0 (stable)"]);
    sandbox.mu(&["resolve"]).ok().says(&["ops/db 1.1.0 (stable)"]);
    let why =
        ["ops/db 1.1.0 (stable)", "1.2.0 is not in channel stable, whose versions come first"];
    sandbox.mu(&["why", "ops/db"]).ok().says(&why);
    sandbox.mu(&["outdated"]).ok().says(&["1.2.0 is not in channel stable"]);
    sandbox.mu(&["update"]).ok().says(&["up to date"]);
    let info = sandbox.mu(&["info", "ops/db#1.2.0"]).ok();
    info.says(&["fast (default: stable)"]);
    let info = sandbox.mu(&["info", "ops/db#1.2.0", "--json"]).ok().json();
    assert_eq!(info["defaultChannel"], "stable");
    sandbox.mu(&["get", "--locked", "--offline"]).ok();
}

#[test]
fn a_channel_that_is_asked_for_is_followed() {
    let sandbox = sandbox("ops/db#1.0.0");
    sandbox.mu(&["get"]).ok();
    // In one channel, the upgrade goes through 1.1.0; the steps of all channels count where none is said.
    let steps = ["resolve", "ops/db#1.2.0", "--installed", "ops/db#1.0.0@stable"];
    sandbox.mu(&steps).ok().says(&["1.0.0 → 1.1.0 → 1.2.0"]);
    let steps = ["resolve", "ops/db#1.2.0", "--installed", "ops/db#1.0.0"];
    sandbox.mu(&steps).ok().says(&["1.0.0 → 1.2.0"]);
    let steps = ["resolve", "ops/db#1.2.0", "--installed", "ops/db#1.0.0@fast"];
    sandbox.mu(&steps).ok().says(&["1.0.0 → 1.2.0", "ops/db 1.2.0 (fast)"]);
    sandbox
        .mu(&["resolve", "ops/db", "--installed", "ops/db#1.0.0@", "--json"])
        .fails_with("usage");
    // The lock keeps what fits; an update continues in the channel.
    sandbox.mu(&["add", "ops/db#^1", "--channel", "fast"]).ok();
    sandbox.mu(&["update"]).ok().says(&["ops/db 1.0.0 → 1.2.0"]);
    assert!(sandbox.read("Mu.lock").contains("  channel: \"fast\"\n"));
    sandbox.mu(&["outdated"]).ok();
    let json = sandbox.mu(&["resolve", "--json"]).ok().json();
    assert_eq!(json["packages"][0]["channel"], "fast");
}

#[test]
fn what_is_published_says_its_default_channel_and_steps() {
    let sandbox = Sandbox::new();
    let manifest = "name: ops/db\nversion: 1.1.0\ndescription: A database\nlicense: MIT\nchannels: [stable, fast]\n\
                    defaultChannel: stable\nupgrade:\n- {channel: stable, replaces: 1.0.0}\n- {skipRange: '<1'}\n";
    sandbox.write("Mu.yaml", manifest);
    sandbox.write("README.md", "# db\n");
    sandbox.mu(&["publish", "--to", "../hub"]).ok();
    let line = std::fs::read_to_string(sandbox.hub().index("ops/db")).expect("is there");
    let line: serde_json::Value = serde_json::from_str(&line).expect("is a line");
    assert_eq!(line["defaultChannel"], "stable");
    let steps = json!([{"channel": "stable", "replaces": "1.0.0"}, {"skipRange": "<1"}]);
    assert_eq!(line["upgrade"], steps);
    sandbox.mu(&["hub", "check", "../hub"]).ok();
    sandbox.write("Mu.yaml", "name: acme/web\ndependencies: [ops/db]\n");
    sandbox.mu(&["get"]).ok().says(&["ops/db 1.1.0"]);
    sandbox.write("Mu.yaml", "name: acme/web\ndefaultChannel: two words\n");
    sandbox.mu(&["status"]).fails().says(&["expected one word"]);
}

#[test]
fn two_copies_of_one_package_are_told() {
    let sandbox = Sandbox::with_dependencies(&["aws/lib#^1", "internal/app#^1"]);
    sandbox.publish(&[
        Package::new("aws/lib", "1.0.0"),
        Package::new("aws/app", "1.0.0").needs("aws/lib#^1"),
    ]);
    sandbox.mu(&["mirror", "aws/app", "--as", "internal/", "--to", "../hub"]).ok();
    let run = sandbox.mu(&["get"]).ok();
    let run = run.says(&["internal/lib` 1.0.0 and `", "aws/lib` 1.0.0 are copies of one package"]);
    // What the index says of them and what their content says are one warning.
    assert_eq!(run.stderr.matches("are copies of one package").count(), 1, "{}", run.stderr);
    sandbox.asks_for(&["aws/lib#^1", "internal/lib#^1"]);
    let both = "aliases: {hub.mu.com/aws/lib: hub.mu.com/aws/lib}";
    let one = "aliases: {hub.mu.com/aws/lib: hub.mu.com/internal/lib}";
    for command in ["get", "status", "resolve"] {
        sandbox.mu(&[command]).ok().says(&[one, both]);
    }
    // What the warning offers works as it is.
    let settings = sandbox.read(".mu/workspace.yaml");
    let set = |line: &str| sandbox.write(".mu/workspace.yaml", &format!("{settings}\n{line}\n"));
    set(both);
    sandbox.mu(&["get"]).ok().does_not_say(&["copies of one package", "of no use"]);
    set(one);
    sandbox.asks_for(&["aws/lib#^1", "internal/app#^1"]);
    sandbox.mu(&["get"]).ok().does_not_say(&["copies of one package", "of no use"]);
    let locked = ["hub.mu.com/internal/app 1.0.0", "hub.mu.com/internal/lib 1.0.0"];
    assert_eq!(sandbox.locked(), locked);
    set("aliases: {nonsense.example/lib: hub.mu.com/aws/lib}");
    std::fs::remove_file(sandbox.path("work/Mu.lock")).expect("is there");
    sandbox.mu(&["get"]).ok().says(&["of no use for `nonsense.example/lib`"]);
    set("");
    sandbox.asks_for(&["internal/app#^1", "internal/lib#^1"]);
    sandbox.mu(&["get"]).ok().does_not_say(&["copies of one package"]);
}

#[test]
fn packages_whose_ids_differ_only_in_case_are_told() {
    let sandbox = Sandbox::with_dependencies(&["acme/Tool", "acme/tool"]);
    sandbox.offer("acme/Tool 1.0.0:\nacme/tool 1.0.0:");
    let told = "`acme/Tool` and `acme/tool` differ only in case";
    sandbox.mu(&["get"]).ok().says(&[told]);
    sandbox.mu(&["get"]).ok().says(&[told]);
}

#[test]
fn what_a_downgrade_brings_has_a_reason() {
    let sandbox = Sandbox::with_dependencies(&["aws/b#^1"]);
    sandbox.offer("aws/b 1.1.0: aws/c#^1\naws/b 1.2.0:\naws/c 1.0.0:");
    sandbox.mu(&["get"]).ok().does_not_say(&["because"]);
    let run = sandbox.mu(&["downgrade", "aws/b#1.1.0"]).ok();
    let brought = ["aws/c 1.0.0 (brought in because ", "aws/b 1.1.0 requires it)"];
    run.says(&brought);
    // With the minimal strategy, a lowered package may bring it.
    let sandbox = Sandbox::with_dependencies(&["aws/b#^1.2"]);
    sandbox.write(".mu/workspace.yaml", "resolution: minimal\n");
    sandbox.offer(
        "aws/b 1.1.0: aws/c#^1
         aws/b 1.2.0: aws/d#^1.2
         aws/c 1.0.0:
         aws/d 1.1.0:
         aws/d 1.2.0:",
    );
    sandbox.mu(&["get"]).ok();
    let run = sandbox.mu(&["downgrade", "aws/d#1.1.0"]).ok();
    run.says(&["aws/b 1.2.0 → 1.1.0 (1.2.0 needs "]).says(&brought);
    assert!(sandbox.read("Mu.yaml").contains("aws/b#^1.1.0"));
}
