//! `mu diff` and `mu update --diff`: what changed between versions, before anything is written.

use crate::support::{Package, Sandbox, Terminal};

/// A workspace that locks `aws/ec2` 1.0.0, where 1.1.0 has changes of every kind.
fn moved() -> Sandbox {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2#^1"]);
    let numbers = |last: &str| (1..=9).map(|n| format!("{n}\n")).collect::<String>() + last;
    sandbox.publish(&[Package::new("aws/ec2", "1.0.0")
        .file("a.txt", &numbers("ten\n"))
        .file("gone.txt", "gone\n")
        .file("run.sh", "#!/bin/sh\n")
        .file("link", "-> a.txt")
        .file("logo.png", "\u{89}PNG\0\u{1}")
        .file("long.txt", &"x".repeat((1 << 20) + 1))
        .file("same.txt", "same\n")]);
    sandbox.mu(&["get"]).ok();
    sandbox.publish(&[
        Package::new("aws/ec2", "1.1.0")
            .needs("aws/log")
            .file("a.txt", &numbers("\u{1b}[31mred\u{202e}"))
            .file("new.txt", "new\n")
            .file("run.sh*", "#!/bin/sh\n")
            .file("link", "-> same.txt")
            .file("logo.png", "\u{89}PNG\0\u{1}\u{2}")
            .file("long.txt", &"y".repeat((1 << 20) + 2))
            .file("same.txt", "same\n"),
        Package::new("aws/log", "1.0.0"),
    ]);
    sandbox
}

#[test]
fn shows_what_an_update_would_change() {
    let sandbox = moved();
    let before = sandbox.state();
    let run = sandbox.mu(&["diff", "aws/ec2"]).ok();
    insta::assert_snapshot!(run.shown());
    let run = sandbox.mu(&["diff", "--stat", "aws/ec2#1.1.0"]).ok();
    insta::assert_snapshot!(run.shown(), @"
    $ mu diff --stat aws/ec2#1.1.0
    aws/ec2 1.0.0 -> aws/ec2 1.1.0
    changed in the manifest: dependencies, version
     Mu.yaml  | +3 -1
     a.txt    | +1 -1
     gone.txt | +0 -1 (gone)
     link     | +1 -1
     logo.png | binary, 7 B -> 8 B
     long.txt | too long to show, 1.0 MiB -> 1.0 MiB
     new.txt  | +1 -0 (new)
     run.sh   | mode 100644 -> 100755
     8 files changed, +6 -4 lines
    [exit 0]
    ");
    // The other way round, and without a lock.
    std::fs::remove_file(sandbox.path("work/Mu.lock")).expect("was there");
    let run = sandbox.mu(&["diff", "aws/ec2#1.1.0", "#1.0.0"]).ok();
    run.says(&[
        "aws/ec2 1.1.0 -> aws/ec2 1.0.0",
        "\n+gone\n",
        "\n-new\n",
        "deleted file mode 100644",
    ]);
    sandbox.mu(&["diff", "aws/ec2#1.0.0", "aws/ec2#1.0.0"]).ok().says(&["the content is the same"]);
    let run = sandbox.mu(&["diff", "aws/ec2"]).fails();
    run.says(&["is not in Mu.lock", "`mu diff aws/ec2 '#VERSION'`"]);
    let mut after = sandbox.state();
    after.insert("Mu.lock".to_owned(), before["Mu.lock"].clone());
    assert_eq!(after, before, "nothing is written");
}

#[test]
fn programs_get_hunks_and_numbers() {
    let sandbox = moved();
    let answer = sandbox.mu(&["diff", "aws/ec2", "--json"]).ok().json();
    assert_eq!(answer["from"]["version"], "1.0.0");
    assert_eq!(answer["to"]["version"], "1.1.0");
    assert_eq!(answer["manifest"], serde_json::json!(["dependencies", "version"]));
    let files = answer["files"].as_array().expect("is a list");
    let paths: Vec<_> = files.iter().map(|file| file["path"].as_str().expect("is text")).collect();
    assert_eq!(
        paths,
        ["Mu.yaml", "a.txt", "gone.txt", "link", "logo.png", "long.txt", "new.txt", "run.sh"]
    );
    let contents: Vec<_> = files.iter().map(|file| file["content"].as_str()).collect();
    assert_eq!(contents[4..], [Some("binary"), Some("long"), Some("text"), Some("same")]);
    assert_eq!([&files[7]["fromMode"], &files[7]["toMode"]], ["100644", "100755"]);
    let hunks = files[1]["hunks"].as_str().expect("is text");
    assert!(hunks.contains("\u{1b}[31mred"), "programs get what is in the file: {hunks}");
    // Git can apply what is printed.
    assert!(hunks.starts_with("@@ -7,4 +7,4 @@\n 7\n"), "{hunks}");
}

#[test]
fn an_update_shows_what_moves_before_it_is_written() {
    let sandbox = moved();
    let before = sandbox.read("Mu.lock");
    let run = sandbox.mu(&["update", "--diff", "--dry-run"]).ok();
    run.says(&["aws/ec2 1.0.0 -> aws/ec2 1.1.0\n", "\n+new\n", "aws/log 1.0.0 is new\n"]);
    assert_eq!(sandbox.read("Mu.lock"), before);

    // On a terminal, a person decides.
    let mut terminal = Terminal::run(&sandbox, 100, "update --diff");
    terminal.shows(|shown| shown.contains("Update these packages? [y/N]"));
    terminal.press("n\r");
    let (shown, _, status) = terminal.end();
    assert!(shown.contains("nothing was updated, as you answered"), "{shown}");
    assert_eq!(status, 1);
    assert_eq!(sandbox.read("Mu.lock"), before);

    let answer = sandbox.mu(&["update", "--diff", "--json"]).ok().json();
    assert_eq!(answer["diffs"].as_array().map(Vec::len), Some(2));
    assert_eq!(answer["diffs"][0]["to"]["version"], "1.1.0");
    assert_eq!(sandbox.locked(), ["hub.mu.com/aws/ec2 1.1.0", "hub.mu.com/aws/log 1.0.0"]);
}
