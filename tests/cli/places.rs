//! The eight locations, each against each: the lower number wins, in all 28 pairs.

use serde_json::json;

use crate::support::{Package, Sandbox};

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
