//! The plugin in `examples/`, tested like every provider.

// Plugins run as on Unix here.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "tests make and read files as a user would")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use mu_provider::conformance::Fixture;
use mu_provider::http::{Http, HttpOptions};
use mu_provider::{
    Digest, ErrorKind, Lead, Limits, Location, Program, Programs, Provider as _, Release, SafeUrl,
    Silent, TreeWriter,
};
use mu_provider_exec::message::Packages;
use mu_provider_exec::{ExecProvider, Places, Starting};
use mu_testing::{digest_of, write};
use serde_json::{Value, json};

/// Held by each test: while one test writes a program, a child process of another test may have it open, so
/// it cannot be started.
fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    mu_provider::threads::lock(&ONE_AT_A_TIME)
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/plugins").join(name)
}

/// How a program is started here.
fn program_of(program: PathBuf, folder: &Path) -> Starting {
    let shelf = folder.join("shelf").display().to_string();
    Starting {
        records: None,
        name: "shelf".to_owned(),
        program: Program::at(&program).expect("is absolute"),
        // The system's Python; one from a version manager would need more variables.
        environment: BTreeMap::from([
            ("PATH".to_owned(), "/usr/bin:/bin".to_owned()),
            ("MU_PLUGIN_SHELF".to_owned(), shelf),
        ]),
        folder: folder.join("plugins"),
        offline: false,
        introduction: Duration::from_secs(60),
        silence: Duration::from_secs(60),
        credentials: HttpOptions::default().credentials,
    }
}

/// A provider of a program that may keep silent for `silence`.
fn provider(program: PathBuf, folder: &Path, silence: Duration) -> ExecProvider {
    let program = Starting { silence, ..program_of(program, folder) };
    ExecProvider::new(program, Http::new(HttpOptions::default()))
}

fn at(name: &str) -> Location {
    Location::new(Lead::of_user(SafeUrl::parse("shelf://books.example/").expect("is a URL")), name)
}

#[test]
fn the_example_conforms() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    for version in ["1.0.0", "1.1.0"] {
        let place = folder.path().join("shelf/books.example/tools/lamp").join(version);
        write(&place, "Mu.yaml", format!("name: tools/lamp\nversion: {version}\n"));
        write(&place, "src/light.txt", "on\n");
    }
    let newest = folder.path().join("shelf/books.example/tools/lamp/1.1.0");
    let digest: Digest = digest_of(&newest).parse().expect("is a digest");
    let provider = provider(example("mu-provider-shelf"), folder.path(), Duration::from_secs(60));
    let unknown = Release {
        version: "9.9.9".to_owned(),
        locator: Some("9.9.9".to_owned()),
        ..Release::default()
    };
    Fixture {
        provider: &provider,
        location: at("tools/lamp"),
        absent: at("tools/rope"),
        other_kind: None,
        versions: vec!["1.0.0", "1.1.0"],
        fetched: 1,
        digest,
        manifest: Some("version: 1.1.0"),
        unknown: Some(unknown),
        scratch: folder.path().join("trees"),
    }
    .check();
}

#[test]
fn an_answer_has_at_most_a_million_releases() {
    let answer = |lines: usize| {
        let one = json!({"lines": vec![Value::Null; lines]});
        let answer = json!({"packages": [one, {"absent": true}, one]});
        let packages: Packages = serde_json::from_value(answer).expect("is an answer");
        packages.of(3)
    };
    assert_eq!(answer(500_000).expect("is one million").len(), 3);
    let fault = answer(500_001).expect_err("is more");
    assert_eq!(fault, "answered `versions` with more than a million releases");
}

/// A program with these lines of shell.
fn script(folder: &Path, lines: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;

    write(folder, "plugin", format!("#!/bin/sh\n{lines}\n"));
    let path = folder.join("plugin");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("can be set");
    path
}

#[test]
fn one_that_keeps_silent_is_ended_with_all_that_it_has_started() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let left = folder.path().join("left");
    let lines = format!(
        "read line\necho '{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"protocol\":1}}}}'\n\
         sh -c 'echo $$ > {}; exec sleep 1000' &\nwait",
        left.display()
    );
    let provider =
        provider(script(folder.path(), &lines), folder.path(), Duration::from_millis(300));
    let error = provider.list(&at("a"), None, &Silent).expect_err("nobody answers");
    assert_eq!(error.kind(), ErrorKind::Plugin);
    assert!(error.to_string().contains("said nothing for 0 s after `versions`"), "{error}");
    drop(provider);
    let pid = fs::read_to_string(&left).expect("it has started something");
    let state = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    // A process that nobody has waited for yet is only a name in a list.
    assert!(state.is_empty() || state.contains(") Z "), "it still runs: {state}");
}

#[test]
fn one_that_speaks_another_protocol_is_not_used() {
    let _alone = alone();
    for (answer, said) in [
        ("{\"protocol\":7}", "speaks version 7 of the protocol, and this mu speaks 1"),
        ("7", "introduces itself in a way that mu cannot read"),
    ] {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let lines = format!(
            "read line\necho '{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{answer}}}'\nread line"
        );
        let provider =
            provider(script(folder.path(), &lines), folder.path(), Duration::from_secs(60));
        let error = provider.about().expect_err("cannot be used");
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn programs_are_looked_for_where_the_user_puts_them() {
    let _alone = alone();
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let root = folder.path();
    for place in ["home", "path", "work/bin"] {
        for name in ["a", place.split('/').next().expect("has one")] {
            let file = format!("mu-provider-{name}");
            write(&root.join(place), &file, "");
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(root.join(place).join(&file), mode).expect("can be set");
        }
        write(&root.join(place), "mu-provider-text", "");
    }
    write(&root.join("path"), "mu-provider-plain", "");
    std::os::unix::fs::symlink(root.join("work/bin"), root.join("link")).expect("can be made");
    let folders = ["work/bin", "link", "path"].map(|place| root.join(place).display().to_string());
    let path = format!("bin::{}", folders.join(":"));
    let places = Places {
        named: BTreeMap::from([("mine".to_owned(), root.join("mine"))]),
        folder: root.join("home"),
        programs: Programs::new(&Arc::new(BTreeMap::from([("PATH".to_owned(), path)])), {
            let work = root.join("work");
            move || vec![work.clone()]
        }),
    };
    let names: Vec<String> = places.all().into_keys().collect();
    assert_eq!(names, ["a", "home", "mine", "path", "text"]);
    let found = |name: &str| places.find(name).map(|program| program.path().to_owned());
    assert_eq!(found("a"), Some(root.join("home/mu-provider-a")));
    assert_eq!(found("mine"), Some(root.join("mine")));
    // Among the plugins, it says why it cannot be run.
    assert_eq!(found("text"), Some(root.join("home/mu-provider-text")));
    for absent in ["work", "plain", "../path/mu-provider-path", "A", ""] {
        assert_eq!(found(absent), None, "{absent}");
    }
}

#[test]
fn one_that_dies_while_it_introduces_itself_is_started_once_more() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let starts = folder.path().join("starts");
    let dies = format!(
        "read line\necho once >> {starts}\necho 'no more paper' >&2\n[ $(wc -l < {starts}) -ge $TIMES ] || exit 1\n\
         echo '{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"protocol\":1}}}}'\nread line",
        starts = starts.display()
    );
    let with = |times: &str| {
        let _ = fs::remove_file(&starts);
        let program = script(folder.path(), &dies.replace("$TIMES", times));
        provider(program, folder.path(), Duration::from_secs(60))
    };
    with("2").about().expect("the second one lives");
    let provider = with("9");
    for said in ["ended before it answered `initialize`", "ended twice, and is not started again"] {
        let error = provider.about().expect_err("it dies each time");
        assert!(error.to_string().contains(said), "{error}");
        let cause = std::error::Error::source(&error).expect("it has said something");
        assert_eq!(cause.to_string(), "its last words: no more paper");
    }
    assert_eq!(fs::read_to_string(&starts).expect("it was started"), "once\nonce\n");
}

#[test]
fn one_that_only_talks_does_not_get_more_time_to_introduce_itself() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let talk = r#"{"jsonrpc":"2.0","method":"log","params":{"text":"nearly there"}}"#;
    let program = script(folder.path(), &format!("read line\nyes '{talk}' | head -n 9000000"));
    let program =
        Starting { introduction: Duration::from_millis(300), ..program_of(program, folder.path()) };
    let provider = ExecProvider::new(program, Http::new(HttpOptions::default()));
    let error = provider.about().expect_err("it never introduces itself");
    assert!(error.to_string().contains("did not answer within 0 s after `initialize`"), "{error}");
}

#[test]
fn the_end_of_one_is_noticed_though_others_hold_its_output() {
    let _alone = alone();
    let leaves = "setsid sh -c 'touch left; exec sleep 20' 9>&- & while [ ! -e left ]; do :; done";
    for (start, most) in [("sleep 60 &", 40), (leaves, 15)] {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("runs");
        assert!(made.success());
        let begin = Instant::now();
        // It ends as soon as nothing holds the other end.
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe).expect("can be read")
        });
        let lines = format!(
            "read line\necho '{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"protocol\":1}}}}'\nread line\n\
             [ -e {mark} ] && exit 1\ntouch {mark}\nexec 9> {pipe}\necho here >&9\n{start}\nexit 1",
            mark = folder.path().join("mark").display(),
            pipe = pipe.display()
        );
        let provider =
            provider(script(folder.path(), &lines), folder.path(), Duration::from_secs(600));
        let error = provider.list(&at("a"), None, &Silent).expect_err("it has ended");
        assert!(error.to_string().contains("ended before it answered `versions`"), "{error}");
        assert_eq!(reader.join().expect("it was read"), "here\n");
        assert!(begin.elapsed() < Duration::from_secs(most), "{:?}", begin.elapsed());
    }
}

#[test]
fn one_that_asks_for_a_pause_gets_it() {
    let _alone = alone();
    let fails = |data: &str| format!("{{\"code\":-32000,\"message\":\"busy\",\"data\":{data}}}");
    let later = fails(r#"{"kind":"network","retryAfter":7.5}"#);
    let of_all = |error: &str| format!("\"error\":{error}");
    let of_one = |error: &str| format!("\"result\":{{\"packages\":[{{\"error\":{error}}}]}}");
    let pause = Duration::from_millis(7500);
    for (failure, times, pauses) in [
        (of_all(&later), 2, vec![pause; 2]),
        (of_one(&later), 3, vec![pause; 3]),
        (of_one(&later), 9, vec![pause; 3]),
        (of_all(&fails(r#"{"kind":"network"}"#)), 1, vec![]),
        (of_all(&fails(r#"{"retryAfter":-1}"#)), 1, vec![]),
        (of_one(&fails(r#"{"retryAfter":1000000}"#)), 1, vec![Duration::from_secs(60)]),
    ] {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let lines = format!(
            "id=0\nwhile read line; do\nid=$((id + 1))\nif [ $id = 1 ]; then said='\"result\":{{\"protocol\":1}}'\n\
             elif [ $id -le {} ]; then said='{failure}'\n\
             else said='\"result\":{{\"packages\":[{{\"lines\":[]}}]}}'; fi\n\
             echo '{{\"jsonrpc\":\"2.0\",\"id\":'$id','$said'}}'\ndone",
            times + 1
        );
        let paused = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&paused);
        let sleep = Arc::new(move |pause| mu_provider::threads::lock(&notes).push(pause));
        let http = Http::new(HttpOptions { sleep, ..HttpOptions::default() });
        let program = program_of(script(folder.path(), &lines), folder.path());
        let answer = ExecProvider::new(program, http).list(&at("a"), None, &Silent);
        assert_eq!(*mu_provider::threads::lock(&paused), pauses, "{failure}");
        let is_answered = times <= pauses.len();
        assert_eq!(answer.is_ok(), is_answered, "{failure} {answer:?}");
        if let Err(error) = answer {
            assert!(error.to_string().contains("busy"), "{error}");
        }
    }
}

#[test]
fn files_come_in_the_form_that_was_declared() {
    let _alone = alone();
    for (declared, answer, said) in [
        (r#"["folder"]"#, "{}", None),
        (
            r#"["archive","url"]"#,
            "{}",
            Some("answered `fetch` in the form `folder`, and said that it uses `archive`, `url`"),
        ),
        (r#"["folder"]"#, r#"{"archive":"a.tgz"}"#, Some("the form `archive`")),
        (r#"["archive"]"#, r#"{"url":"https://x.example/a.tgz"}"#, Some("the form `url`")),
    ] {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let lines = format!(
            "read line\necho '{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"protocol\":1,\"capabilities\":{{\"fetch\":{declared}}}}}}}'\n\
             read line\necho '{{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{answer}}}'\nread line"
        );
        let provider =
            provider(script(folder.path(), &lines), folder.path(), Duration::from_secs(60));
        let tree = folder.path().join("tree");
        fs::create_dir(&tree).expect("can be made");
        let open = mu_provider::Folder::open(&tree).expect("can be opened");
        let mut tree = TreeWriter::new(open, Limits::default());
        let fetched = provider.fetch(&at("a"), &Release::default(), &mut tree, &Silent);
        match said {
            None => fetched.expect("it is as declared"),
            Some(said) => {
                let error = fetched.expect_err("it is not as declared");
                assert_eq!(error.kind(), ErrorKind::Plugin);
                assert!(error.to_string().contains(said), "{error}");
            }
        }
    }
}
