//! `pin` and `unpin`: there and back.

use crate::support::Sandbox;

const MANIFEST: &str = "\
name: acme/web
dependencies:
  - aws/ec2#^1.0
  - aws/s3
  - aws/vpc#2.0.0  # for a reason
devDependencies:
  - test/kit#>=1 <3
";

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("Mu.yaml", MANIFEST);
    for (name, version) in [
        ("aws/ec2", "1.0.0"),
        ("aws/ec2", "1.3.0"),
        ("aws/s3", "2.1.0"),
        ("aws/vpc", "2.0.0"),
        ("test/kit", "1.0.0"),
    ] {
        sandbox.hub().release(name, version);
    }
    sandbox.mu(&["get"]).ok();
    sandbox
}

#[test]
fn pins_are_taken_back_to_what_was_there() {
    let sandbox = sandbox();
    let lock = sandbox.locked();
    let run = sandbox.mu(&["pin"]).ok();
    insta::assert_snapshot!(run.shown(), @"
    $ mu pin
    aws/ec2 ^1.0 → 1.3.0 in Mu.yaml
    aws/s3 any version → 2.1.0 in Mu.yaml
    test/kit >=1 <3 → 1.0.0 in Mu.yaml
    up to date (4 packages)
    [exit 0]
    ");
    insta::assert_snapshot!(sandbox.read("Mu.yaml"), @"
    name: acme/web
    dependencies:
      - aws/ec2#1.3.0 # pinned from ^1.0
      - aws/s3#2.1.0 # pinned from no version
      - aws/vpc#2.0.0  # for a reason
    devDependencies:
      - test/kit#1.0.0 # pinned from >=1 <3
    ");
    assert_eq!(sandbox.locked(), lock);
    sandbox.mu(&["get", "--locked"]).ok();
    // A pin that a person wrote was not written by `pin`. It is changed only if it is named, to what is
    // compatible with it.
    sandbox.mu(&["unpin", "aws/ec2", "aws/s3", "test/kit"]).ok();
    assert_eq!(sandbox.read("Mu.yaml"), MANIFEST);
    assert_eq!(sandbox.locked(), lock);
    sandbox.mu(&["unpin"]).ok();
    assert_eq!(sandbox.read("Mu.yaml"), MANIFEST);
    sandbox.mu(&["unpin", "aws/vpc"]).ok();
    assert_eq!(sandbox.read("Mu.yaml"), MANIFEST.replace("#2.0.0", "#^2.0.0"));
}

#[test]
fn one_package_is_pinned_alone() {
    let sandbox = sandbox();
    sandbox.mu(&["pin", "aws/ec2"]).ok();
    let expected = MANIFEST.replace("ec2#^1.0", "ec2#1.3.0 # pinned from ^1.0");
    assert_eq!(sandbox.read("Mu.yaml"), expected);
    sandbox.hub().release("aws/ec2", "1.4.0");
    sandbox.mu(&["update"]).ok();
    assert_eq!(sandbox.locked()[0], "hub.mu.com/aws/ec2 1.3.0");
    sandbox.mu(&["unpin", "aws/ec2"]).ok();
    sandbox.mu(&["update"]).ok();
    assert_eq!(sandbox.locked()[0], "hub.mu.com/aws/ec2 1.4.0");
}

#[test]
fn what_nothing_asks_for_cannot_be_pinned() {
    let sandbox = sandbox();
    sandbox.mu(&["pin", "aws/nothing"]).fails().says(&["aws/nothing"]);
    assert_eq!(sandbox.read("Mu.yaml"), MANIFEST);
}

#[test]
fn what_has_no_place_for_a_note_is_said_when_it_is_pinned() {
    let sandbox = sandbox();
    let lost = "so `mu unpin` cannot restore it: `aws/ec2 ^1.0` in Mu.yaml, `aws/s3` without a version in Mu.yaml";
    sandbox.write("Mu.yaml", "name: acme/web\ndependencies: [\"aws/ec2#^1.0\", aws/s3]\n");
    sandbox.mu(&["pin", "--dry-run"]).ok().says(&[lost]);
    sandbox.mu(&["pin"]).ok().says(&[lost]);
    sandbox.mu(&["unpin", "aws/ec2"]).ok();
    let text = "name: acme/web\ndependencies: [\"aws/ec2#^1.3.0\", aws/s3#2.1.0]\n";
    assert_eq!(sandbox.read("Mu.yaml"), text);
    // With a place, nothing is lost, and nothing is said.
    sandbox.write("Mu.yaml", MANIFEST);
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["pin"]).ok().does_not_say(&["cannot restore"]);
}
