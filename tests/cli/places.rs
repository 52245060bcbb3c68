//! The eight places, each against each: the lower number wins, in all 28 pairs.

use std::fs;

use serde_json::json;

use crate::support::{Package, Sandbox, digest_of};

const PLACES: [&str; 8] = [
    "work/hub.mu.com/aws/ec2",
    "work/ec2",
    "work/.mu/packs/hub.mu.com/aws/ec2",
    "work/.mu/packs/aws/ec2",
    "home/.mu/packs/hub.mu.com/aws/ec2",
    "home/.mu/packs/aws/ec2",
    "runtime/lib/packs/hub.mu.com/aws/ec2",
    "runtime/lib/packs/aws/ec2",
];

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(".mu/workspace.yaml", "namespace: aws\n");
    sandbox
}

fn put(sandbox: &Sandbox, place: usize, version: &str) {
    sandbox.place(PLACES[place], &Package::new("aws/ec2", version));
}

/// Each two of the eight, the lower one first.
fn pairs() -> impl Iterator<Item = (usize, usize)> {
    (0..8).flat_map(|first| (first + 1..8).map(move |second| (first, second)))
}

fn clear(sandbox: &Sandbox) {
    for place in PLACES {
        let _ = std::fs::remove_dir_all(sandbox.path(place));
    }
}

#[test]
fn of_each_two_the_first_wins() {
    let sandbox = sandbox();
    for (first, second) in pairs() {
        clear(&sandbox);
        put(&sandbox, first, "1.0.0");
        put(&sandbox, second, "1.0.0");
        let run = sandbox.mu(&["which", "aws/ec2#^1"]).ok();
        assert_eq!(run.stdout, format!("[DIR]/{}\n", PLACES[first]), "{first} {second}");
        let all = sandbox.mu(&["which", "aws/ec2#^1", "--all", "--json"]).ok().json();
        let places = all["places"].as_array().expect("is a list");
        for (number, place) in places.iter().enumerate() {
            let is_hit = number == first || number == second;
            let expected = json!({
                "place": number + 1,
                "path": format!("[DIR]/{}", PLACES[number]),
                "state": if is_hit { "hit" } else { "miss" },
                "why": null,
            });
            assert_eq!(*place, expected, "{first} {second}");
        }
    }
    assert_eq!(pairs().count(), 28);
}

#[test]
fn of_each_two_the_first_that_fits_wins() {
    let sandbox = sandbox();
    for (first, second) in pairs() {
        clear(&sandbox);
        put(&sandbox, first, "2.0.0");
        put(&sandbox, second, "1.5.0");
        let run = sandbox.mu(&["which", "hub.mu.com/aws/ec2#^1", "--json"]).ok();
        // The workspace's own wins all the same, with a warning.
        let winner = if first < 2 { first } else { second };
        assert_eq!(run.json()["place"], winner + 1, "{first} {second}");
        let warned = run.stdout.contains("version 2.0.0 does not satisfy `^1`");
        assert_eq!(warned, first < 2, "{first} {second}: {}", run.shown());
        let all = sandbox.mu(&["which", "hub.mu.com/aws/ec2#^1", "--all"]).ok();
        let passed = "passed over: version 2.0.0 does not satisfy `^1`";
        assert_eq!(all.stdout.contains(passed), first >= 2, "{first} {second}");
    }
}

#[test]
fn all_eight_at_once_are_shown_in_order() {
    let sandbox = sandbox();
    for (place, version) in ["1.0.0", "1.1.0", "1.2.0", "2.0.0", "1.3.0", "1.4.0", "0.9.0", "1.0.0"]
        .into_iter()
        .enumerate()
    {
        put(&sandbox, place, version);
    }
    let run = sandbox.mu(&["which", "aws/ec2#^1", "--all"]).ok();
    insta::assert_snapshot!(run.shown(), @"
    $ mu which aws/ec2#^1 --all
    1  [DIR]/work/hub.mu.com/aws/ec2  hit
    2  [DIR]/work/ec2  hit
    3  [DIR]/work/.mu/packs/hub.mu.com/aws/ec2  hit
    4  [DIR]/work/.mu/packs/aws/ec2  passed over: version 2.0.0 does not satisfy `^1`
    5  [DIR]/home/.mu/packs/hub.mu.com/aws/ec2  hit
    6  [DIR]/home/.mu/packs/aws/ec2  hit
    7  [DIR]/runtime/lib/packs/hub.mu.com/aws/ec2  passed over: version 0.9.0 does not satisfy `^1`
    8  [DIR]/runtime/lib/packs/aws/ec2  hit
    warning: [DIR]/work/ec2/Mu.yaml: not used: `[DIR]/work/hub.mu.com/aws/ec2` is found first
    [exit 0]
    ");
}

/// A package in every one of the places for packs, and no hub that could be asked.
fn without_a_hub(dependencies: &[&str]) -> Sandbox {
    let sandbox = Sandbox::with_dependencies(dependencies);
    sandbox.hub_is_at("https://hub.invalid/");
    let elk = Package::new("aws/elk", "1.2.0").needs("aws/utils#~1.5");
    sandbox.place("runtime/lib/packs/hub.mu.com/aws/elk", &elk);
    sandbox.place("home/.mu/packs/aws/utils", &Package::new("aws/utils", "1.5.3"));
    sandbox.place("runtime/lib/packs/aws/utils", &Package::new("aws/utils", "1.9.0"));
    sandbox
}

#[test]
fn what_is_installed_is_chosen_from_offline() {
    for resolution in ["highest", "minimal"] {
        let mut sandbox = without_a_hub(&["aws/elk#^1"]);
        sandbox.set("MU_RESOLUTION", resolution);
        chooses_from_installed(&sandbox);
    }
}

fn chooses_from_installed(sandbox: &Sandbox) {
    sandbox.mu(&["get", "--offline"]).ok();
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/elk 1.2.0", "hub.mu.com/aws/utils 1.5.3"]);
    let lock = sandbox.lock();
    assert_eq!(lock["packages"][0]["source"], "hub+https://hub.invalid/");
    let pack = sandbox.path("work/.mu/packs/hub.mu.com/aws/elk");
    assert_eq!(lock["packages"][0]["digest"], digest_of(&pack));
    sandbox.mu(&["verify"]).ok();
    // Packs of the workspace work as well without cache and lock; nobody knows any more who put them there.
    for folder in ["cache", "runtime/lib", "home/.mu/packs"] {
        fs::remove_dir_all(sandbox.path(folder)).expect("was there");
    }
    fs::remove_file(sandbox.path("work/Mu.lock")).expect("was there");
    sandbox.mu(&["get", "--offline"]).ok();
    let again = sandbox.lock();
    for (number, name) in ["aws/elk", "aws/utils"].into_iter().enumerate() {
        let (before, after) = (&lock["packages"][number], &again["packages"][number]);
        assert_eq!(after["source"], format!("pack+.mu/packs/hub.mu.com/{name}"));
        for key in ["id", "version", "digest", "requested"] {
            assert_eq!(after[key], before[key], "{key}");
        }
    }
}

#[test]
fn what_is_not_installed_is_named_offline() {
    for resolution in ["highest", "minimal"] {
        let mut sandbox = without_a_hub(&[]);
        sandbox.set("MU_RESOLUTION", resolution);
        names_what_is_missing(&sandbox);
    }
}

fn names_what_is_missing(sandbox: &Sandbox) {
    sandbox.mu(&["get", "aws/elk", "--offline"]).ok();
    let error = sandbox.mu(&["get", "aws/ec2", "--offline", "--json"]).fails_with("offline");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("aws/ec2")), "{error}");
    // A pack that does not fit does not help either.
    let error = sandbox.mu(&["get", "aws/elk#^2", "--offline", "--json"]).fails_with("offline");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("aws/elk")), "{error}");
}
