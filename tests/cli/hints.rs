//! Every command that an error prints solves the problem when it is pasted into a shell: for each kind of
//! conflict, and each form that an entry of a manifest can have.

use serde_json::{Value, json};

use crate::support::{Package, Sandbox};
use crate::ways_out::{shells, told, told_in};

/// How the entries of a manifest are written.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    List,
    Map,
    LocalName,
    LongInMap,
    Channel,
    AppVersion,
    Prerelease,
    Json,
    /// A list in one line.
    Flow,
    /// Each entry is in both lists, in the other one in another form.
    Both,
    /// The only manifest is in a folder below the root.
    Folder,
    /// Each entry is in a separate package.
    Packages,
}

impl Form {
    /// An entry: its name and version.
    fn text(self, (name, spec): (&str, &str)) -> String {
        match self {
            Self::List | Self::Both | Self::Folder => format!("  - {name}#{spec}\n"),
            Self::Flow => format!("\"{name}#{spec}\", "),
            Self::Map => format!("  {name}: \"{spec}\"\n"),
            Self::LocalName => format!("  my-{}: \"{name}#{spec}\"\n", name.replace('/', "-")),
            Self::LongInMap => format!("  {name}: {{version: \"{spec}\", channel: stable}}\n"),
            Self::Channel => format!("  - {{ref: \"{name}#{spec}\", channel: stable}}\n"),
            Self::AppVersion => format!("  - {{ref: \"{name}#{spec}\", appVersion: \"2.4\"}}\n"),
            Self::Prerelease => format!("  - ref: \"{name}#{spec}\"\n    prerelease: true\n"),
            Self::Json | Self::Packages => String::new(),
        }
    }

    /// Writes the workspace's requirements: names and versions.
    fn write(self, sandbox: &Sandbox, entries: &[(&str, &str)]) {
        let head = "name: acme/web\nversion: 0.1.0\n";
        match self {
            Self::Json => {
                let entries: Vec<String> =
                    entries.iter().map(|(name, spec)| format!("{name}#{spec}")).collect();
                let manifest = json!({"name": "acme/web", "dependencies": entries});
                sandbox.write("Mu.json", &format!("{manifest:#}\n"));
            }
            Self::Packages => {
                for (index, (name, spec)) in entries.iter().enumerate() {
                    let place = ["one", "two", "three"][index];
                    let manifest =
                        format!("name: acme/{place}\ndependencies:\n  - {name}#{spec}\n");
                    sandbox.write(&format!("{place}/Mu.yaml"), &manifest);
                }
            }
            _ => {
                let all: String = entries.iter().map(|one| self.text(*one)).collect();
                let manifest = match self {
                    Self::Flow => format!("{head}dependencies: [{}]\n", all.trim_end_matches(", ")),
                    Self::Both => {
                        let entries = entries.iter().copied();
                        let other: String = entries.map(|one| Self::Flow.text(one)).collect();
                        format!("{head}dependencies:\n{all}devDependencies: [{other}]\n")
                    }
                    _ => format!("{head}dependencies:\n{all}"),
                };
                let folder = if self == Self::Folder { "deploy/" } else { "" };
                sandbox.write(&format!("{folder}Mu.yaml"), &manifest);
            }
        }
    }
}

/// A kind of conflict.
struct Kind {
    /// The requirements of the workspace.
    entries: &'static [(&'static str, &'static str)],
    /// The packages of the hub: `NAME VERSION: DEPENDENCIES`, and after a `;` keys of the index line.
    offers: &'static str,
    /// Settings of the workspace.
    settings: &'static str,
    /// The failing command, if it is not `mu get`, after one that succeeds.
    command: &'static [&'static str],
}

const RANGE: Kind = Kind {
    entries: &[("aws/app", "^1"), ("aws/vpc", "^1")],
    offers: "aws/app 0.9.0: aws/vpc#^1
             aws/app 1.0.0: aws/vpc#^2
             aws/vpc 1.4.0:
             aws/vpc 2.3.0:",
    settings: "",
    command: &[],
};

/// Every kind, by name.
fn kinds() -> Vec<(&'static str, Kind)> {
    vec![
        ("range", RANGE),
        ("pin", Kind { entries: &[("aws/app", "^1"), ("aws/vpc", "1.4.0")], ..RANGE }),
        (
            "two packages",
            Kind {
                entries: &[("aws/one", "^1"), ("aws/two", "^1")],
                offers: "aws/one 1.0.0: aws/vpc#^1
                         aws/two 1.0.0: aws/vpc#^2
                         aws/two 0.8.0: aws/vpc#^1
                         aws/vpc 1.4.0:
                         aws/vpc 2.3.0:",
                ..RANGE
            },
        ),
        (
            "chain",
            Kind {
                entries: &[("aws/a", "^1"), ("aws/vpc", "~1.4")],
                offers: "aws/a 1.0.0: aws/b#^1
                         aws/b 1.0.0: aws/c#^1
                         aws/c 1.0.0: aws/d
                         aws/d 1.0.0: aws/vpc#^2
                         aws/vpc 1.4.0:
                         aws/vpc 2.3.0:",
                ..RANGE
            },
        ),
        (
            "two of one capability",
            Kind {
                entries: &[("net/calico", "^1"), ("net/cilium", "^1")],
                offers: "net/calico 1.0.0: ; provides=net.mu.com/v1/Network
                         net/calico 2.0.0:
                         net/cilium 1.0.0: ; provides=net.mu.com/v1/Network",
                ..RANGE
            },
        ),
        (
            "none of a capability",
            Kind {
                entries: &[("aws/app", "^1"), ("aws/log", "^1")],
                offers: "aws/app 1.0.0: ; requires=net.mu.com/v1/Network
                         aws/log 1.0.0:",
                ..RANGE
            },
        ),
        ("missing", Kind { entries: &[("aws/app", "^0"), ("aws/vpc", "^9")], ..RANGE }),
        (
            "only prereleases",
            Kind {
                entries: &[("aws/new", "^3")],
                offers: "aws/new 2.0.0:
                         aws/new 3.0.0-rc.1:",
                ..RANGE
            },
        ),
        (
            "yanked",
            Kind {
                entries: &[("aws/old", "^1")],
                offers: "aws/old 0.9.0:
                         aws/old 1.0.0: ; yanked=loses-data",
                ..RANGE
            },
        ),
        (
            "too young",
            Kind {
                entries: &[("aws/new", "^2")],
                offers: "aws/new 1.0.0: ; published=2001-01-01T00:00:00Z
                         aws/new 2.0.0: ; published=2026-11-20T00:00:00Z",
                settings: "minimumReleaseAge: 5000 days\n",
                ..RANGE
            },
        ),
        (
            "excluded",
            Kind {
                entries: &[("aws/vpc", "^2")],
                settings: "exclude: [\"aws/vpc#^2\"]\n",
                ..RANGE
            },
        ),
        (
            "runtime",
            Kind {
                entries: &[("k8s/op", "^1")],
                offers: "k8s/op 0.9.0:
                         k8s/op 1.0.0: ; constraints=kubernetes:>=1.25",
                settings: "runtime:\n  kubernetes: 1.20.0\n",
                ..RANGE
            },
        ),
        (
            "minimal",
            Kind {
                entries: &[("aws/app", "^1"), ("aws/log", "^1")],
                offers: "aws/app 1.0.0: aws/net#1
                         aws/app 1.5.0: aws/net#>=1
                         aws/log 1.0.0: aws/net#>=2
                         aws/net 1.0.0:
                         aws/net 2.0.0:",
                settings: "resolution: minimal\n",
                ..RANGE
            },
        ),
        (
            "downgrade",
            Kind {
                entries: &[("aws/app", "^1"), ("aws/vpc", "^2")],
                command: &["downgrade", "aws/vpc#1.4.0"],
                ..RANGE
            },
        ),
        (
            "update",
            Kind {
                entries: &[("aws/vpc", "~1.4")],
                command: &["update", "aws/vpc#2.3.0"],
                ..RANGE
            },
        ),
        (
            "what the command adds",
            Kind { entries: &[("aws/vpc", "^1")], command: &["get", "aws/app#^1"], ..RANGE },
        ),
        (
            "upgrade step",
            Kind {
                entries: &[("ops/kafka", "~1.0")],
                offers: "ops/kafka 1.0.0:
                         ops/kafka 1.1.0: ; upgrade=1.0.0
                         ops/kafka 3.0.0: ; upgrade=2.0.0",
                command: &["update", "ops/kafka#3.0.0"],
                ..RANGE
            },
        ),
    ]
}

/// Publishes `NAME VERSION: DEPENDENCIES ; KEY=VALUE`; everything is in the channel `stable`, and of one app
/// version.
fn publish(sandbox: &Sandbox, offers: &str) {
    for line in offers.lines().map(str::trim) {
        let (offer, keys) = line.split_once(';').unwrap_or((line, ""));
        let (package, needs) = offer.split_once(':').expect("has a colon");
        let (name, version) = package.split_once(' ').expect("has a version");
        let package = Package::new(name, version)
            .key("channels", json!(["stable"]))
            .key("appVersion", json!("2.4.0"));
        let package = needs.split_whitespace().fold(package, Package::needs);
        let keys = keys.split_whitespace().map(|key| key.split_once('=').expect("is a key"));
        let package = keys.fold(package, |package, (key, value)| match key {
            "provides" | "requires" => package.key(key, json!([value])),
            "constraints" => {
                let (fact, range) = value.split_once(':').expect("is a fact");
                package.key(key, json!({fact: range}))
            }
            "upgrade" => package.key(key, json!({"replaces": value})),
            _ => package.key(key, Value::from(value)),
        });
        sandbox.publish(&[package]);
    }
}

fn sandbox(form: Form, kind: &Kind) -> Sandbox {
    let sandbox = Sandbox::new();
    publish(&sandbox, kind.offers);
    sandbox.write(".mu/workspace.yaml", kind.settings);
    form.write(&sandbox, kind.entries);
    if !kind.command.is_empty() {
        sandbox.mu(&["get"]).ok();
    }
    sandbox
}

/// Takes every way out of every kind of conflict.
#[track_caller]
fn all_lead_out(form: Form) {
    // Shells differ in what they interpret as patterns, and one form shows that.
    let shells = if form == Form::List { shells() } else { &shells()[..1] };
    for (name, kind) in kinds() {
        // If prereleases are accepted, there is no conflict.
        if (name, form) == ("only prereleases", Form::Prerelease) {
            continue;
        }
        let command = if kind.command.is_empty() { &["get"] } else { kind.command };
        let run = told_in(shells, || sandbox(form, &kind), command);
        assert!(run.shown().contains("hint: "), "{name} {form:?}:\n{}", run.shown());
        for command in run.shown().split('`').filter(|text| text.starts_with("mu ")) {
            let bare = command.split('\'').step_by(2).any(|unquoted| unquoted.contains('#'));
            assert!(!bare, "a `#` is not quoted: {command}");
        }
    }
}

#[test]
fn commands_lead_out_where_entries_are_a_list() {
    all_lead_out(Form::List);
}

#[test]
fn commands_lead_out_where_entries_are_a_map() {
    all_lead_out(Form::Map);
    all_lead_out(Form::LocalName);
}

#[test]
fn commands_lead_out_where_entries_name_a_channel() {
    all_lead_out(Form::Channel);
    all_lead_out(Form::LongInMap);
}

#[test]
fn commands_lead_out_where_entries_name_an_app_version_or_accept_prereleases() {
    all_lead_out(Form::AppVersion);
    all_lead_out(Form::Prerelease);
}

#[test]
fn commands_lead_out_in_json_and_in_several_packages() {
    all_lead_out(Form::Json);
    all_lead_out(Form::Packages);
}

#[test]
fn commands_lead_out_in_one_line_and_below_the_root() {
    all_lead_out(Form::Flow);
    all_lead_out(Form::Folder);
}

#[test]
fn commands_lead_out_where_both_lists_have_an_entry() {
    all_lead_out(Form::Both);
}

/// One package with two channels and two app versions, of which `entry` requires one that does not exist.
fn narrowed(entry: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.publish(&[
        Package::new("chn/p", "1.0.0").key("channels", json!(["fast"])),
        Package::new("chn/p", "1.1.0").key("channels", json!(["fast", "edge"])),
        Package::new("my/kafka", "1.0.0").key("appVersion", json!("2.3.0")),
        Package::new("my/kafka", "1.1.0").key("appVersion", json!("3.0.0")),
        Package::new("pre/only", "1.0.0-rc.1"),
        Package::new("net/vpc", "1.0.0"),
        Package::new("net/vpc", "1.1.0"),
    ]);
    sandbox.write("Mu.yaml", &format!("name: acme/web\ndependencies:\n{entry}"));
    sandbox
}

#[test]
fn what_an_entry_says_besides_its_version_is_changed_where_it_is_listed() {
    for (entry, command, after) in [
        (
            "  - {ref: chn/p, channel: slow}\n",
            "mu add chn/p --channel edge",
            "  - {ref: chn/p#^1.1.0, channel: edge}\n",
        ),
        (
            "  - {ref: \"chn/p#1.1.0\", channel: slow}\n",
            "mu add 'chn/p#1.1.0' --channel edge",
            "  - {ref: \"chn/p#1.1.0\", channel: edge}\n",
        ),
        (
            "  chn/p: {version: \"^1.0\", channel: slow}\n",
            "mu add chn/p --channel edge",
            "  chn/p: {version: \"^1.0\", channel: edge}\n",
        ),
        (
            "  - {ref: my/kafka, appVersion: \"2.4\"}\n",
            "mu add my/kafka --app-version 3.0.0",
            "  - {ref: my/kafka#^1.1.0, appVersion: \"3.0.0\"}\n",
        ),
        (
            "  - my/kafka#^1.0\n",
            "mu add my/kafka --app-version 2.3",
            "  - {ref: \"my/kafka#^1.0\", appVersion: \"2.3\"}\n",
        ),
        (
            "  - pre/only\n",
            "mu add pre/only --pre",
            "  - {ref: \"pre/only#^1.0.0-rc.1\", prerelease: true}\n",
        ),
        (
            "  - \"pre/only#^1\"\n",
            "mu add 'pre/only#^1' --pre",
            "  - {ref: \"pre/only#^1\", prerelease: true}\n",
        ),
        (
            "  - {ref: \"net/vpc#^1.0\", channel: stable}\n",
            "mu add 'net/vpc#^1.0' --channel ''",
            "  - {ref: \"net/vpc#^1.0\"}\n",
        ),
        (
            "  kafka: {ref: \"my/kafka#^1.0\", channel: stable, appVersion: \"3\"}\n",
            "mu add my/kafka --channel '' --app-version ''",
            "  kafka: {ref: \"my/kafka#^1.0\"}\n",
        ),
    ] {
        let sandbox = narrowed(entry);
        sandbox.shell("bash", command).ok();
        let expected = format!("name: acme/web\ndependencies:\n{after}");
        let bare = |text: &str| text.replace('"', "");
        assert_eq!(bare(&sandbox.read("Mu.yaml")), bare(&expected), "{command}");
        sandbox.mu(&["get", "--locked"]).ok();
    }
}

#[test]
fn what_narrows_an_entry_is_changed_by_the_hint() {
    for (entry, hint) in [
        ("  - {ref: chn/p, channel: slow}\n", "`mu add chn/p --channel fast`"),
        ("  - {ref: \"chn/p#1.1.0\", channel: slow}\n", "`mu add 'chn/p#1.1.0' --channel fast`"),
        ("  chn/p: {version: \"^1.0\", channel: slow}\n", "--channel "),
        ("  my-chn: {ref: \"chn/p#^1.0\", channel: slow}\n", "--channel "),
        ("  - {ref: my/kafka, appVersion: \"2.4\"}\n", "`mu add my/kafka --app-version 3.0.0`"),
        ("  - {ref: \"my/kafka#^1.0\", appVersion: \"2.4\"}\n", "--app-version "),
        ("  - pre/only\n", "`mu add pre/only --pre`"),
        ("  pre/only: latest\n", "--pre`"),
        ("  - {ref: \"net/vpc#^1.0\", channel: stable}\n", "`mu add 'net/vpc#^1.0' --channel ''`"),
        (
            "  net/vpc: {version: \"^1.0\", appVersion: \"3\"}\n",
            "`mu add 'net/vpc#^1.0' --app-version ''`",
        ),
    ] {
        for strategy in ["highest", "minimal"] {
            let make = || {
                let mut sandbox = narrowed(entry);
                sandbox.set("MU_RESOLUTION", strategy);
                sandbox
            };
            let run = told(make, &["get"]).says(&[hint]);
            assert!(!run.shown().contains("warning"), "{}", run.shown());
        }
    }
}
