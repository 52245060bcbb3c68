//! Provider plugins: an honest one from `examples/`, and programs that break the protocol in every way.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use mu_testing::http::{Reply, TestServer};
use mu_testing::tar_gz;

use crate::support::{Sandbox, digest_of, tree, write};

/// A sandbox in which the plugin of `examples/` serves `books.example/`.
pub(crate) fn with_shelf() -> Sandbox {
    let mut sandbox = Sandbox::new();
    // The system's Python; one from a version manager would need more variables than a plugin gets.
    sandbox.set("PATH", "/usr/bin:/bin");
    let shelf = sandbox.path("shelf").display().to_string();
    sandbox.set("MU_PLUGIN_SHELF", &shelf);
    let program = fs::read("examples/plugins/mu-provider-shelf").expect("is there");
    install(&sandbox, "home/.mu/plugins/mu-provider-shelf", program);
    for (name, version, needs) in [
        ("tools/lamp", "1.0.0", ""),
        ("tools/lamp", "1.1.0", "dependencies:\n  - tools/bulb#^2\n"),
        ("tools/bulb", "2.0.0", ""),
        ("tools/bulb", "2.3.0", ""),
    ] {
        let folder = sandbox.path("shelf").join("books.example").join(name).join(version);
        write(&folder, "Mu.yaml", format!("name: {name}\nversion: {version}\n{needs}"));
        write(&folder, "README.md", format!("{name} {version}\n"));
    }
    sandbox
}

/// Puts a program where it can be run.
pub(crate) fn install(sandbox: &Sandbox, path: &str, program: impl AsRef<[u8]>) {
    let path = sandbox.path(path);
    write(
        path.parent().expect("is in a folder"),
        path.file_name().and_then(|name| name.to_str()).expect("is UTF-8"),
        program,
    );
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("can be set");
}

/// A plugin `odd` that answers `initialize` correctly, and then runs these lines of Python for each message
/// in `ask`.
pub(crate) fn odd(sandbox: &Sandbox, lines: &str) {
    let lines: String = lines.lines().map(|line| format!("    {line}\n")).collect();
    let program = format!(
        r#"#!/usr/bin/python3
import json, os, sys, time
def answer(ask, result):
    print(json.dumps({{"jsonrpc": "2.0", "id": ask["id"], "result": result}}), flush=True)
for line in sys.stdin:
    ask = json.loads(line)
    if ask["method"] == "shutdown":
        break
    if ask["method"] == "initialize":
        answer(ask, {{"protocol": 1, "name": "odd", "version": "1", "schemes": ["odd"],
            "hosts": ["*.example"], "capabilities": {{"manifest": True}}}})
        continue
    if ask["method"] == "manifest":
        answer(ask, None)
        continue
{lines}"#
    );
    install(sandbox, "home/.mu/plugins/mu-provider-odd", program);
    sandbox.asks_for(&["odd://odd.example/a/b#^1"]);
}

/// Answers `versions` with one release.
pub(crate) const LISTS: &str = r#"if ask["method"] == "versions":
    answer(ask, {"packages": [{"lines": [{"version": "1.0.0"}]} for _ in ask["params"]["packages"]]})
    continue
"#;

#[test]
fn a_plugin_serves_its_scheme() {
    let sandbox = with_shelf();
    sandbox.asks_for(&["shelf://books.example/tools/lamp#^1"]);
    sandbox.mu(&["get"]).ok().says(&[
        "+ books.example/tools/bulb 2.3.0",
        "+ books.example/tools/lamp 1.1.0",
        "installed 2 packages",
    ]);
    let pack = sandbox.path("work/.mu/packs/books.example/tools/lamp");
    let there = sandbox.path("shelf/books.example/tools/lamp/1.1.0");
    assert_eq!(digest_of(&pack), digest_of(&there));
    let lock = sandbox.lock();
    let lamp = &lock["packages"][1];
    assert_eq!(lamp["source"], "shelf+shelf://books.example/");
    assert_eq!(lamp["locator"], "1.1.0");
    assert_eq!(lamp["digest"], *digest_of(&there));
    // From the lock alone, in an empty cache, where newer versions change nothing.
    fs::remove_dir_all(sandbox.path("cache")).expect("is there");
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is there");
    let newer = sandbox.path("shelf/books.example/tools/bulb/2.4.0");
    write(&newer, "Mu.yaml", "name: tools/bulb\nversion: 2.4.0\n");
    sandbox.mu(&["get", "--locked"]).ok();
    assert!(sandbox.read(".mu/packs/books.example/tools/bulb/README.md").contains("2.3.0"));
    sandbox.mu(&["verify"]).ok();
    sandbox.mu(&["update"]).ok().says(&["~ books.example/tools/bulb 2.3.0 → 2.4.0"]);
    sandbox.mu(&["get", "--offline", "--locked"]).ok();
}

#[test]
fn content_that_is_not_what_was_locked_is_not_installed() {
    let sandbox = with_shelf();
    sandbox.asks_for(&["shelf://books.example/tools/bulb#=2.0.0"]);
    sandbox.mu(&["get"]).ok();
    fs::remove_dir_all(sandbox.path("cache")).expect("is there");
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is there");
    let place = sandbox.path("shelf/books.example/tools/bulb/2.0.0");
    write(&place, "README.md", "changed\n");
    sandbox.mu(&["get", "--locked", "--json"]).fails_with("integrity");
    assert!(!sandbox.has(".mu/packs/books.example/tools/bulb"));
}

#[test]
fn a_registry_names_a_plugin() {
    let sandbox = with_shelf();
    fs::create_dir_all(sandbox.path("home/.mu")).expect("can be made");
    sandbox.write(
        ".mu/workspace.yaml",
        "registries:\n  hub.mu.com/: {provider: shelf, url: \"https://books.example/\"}\n",
    );
    sandbox.asks_for(&["tools/lamp#^1"]);
    sandbox.mu(&["get"]).ok().says(&["tools/bulb 2.3.0", "tools/lamp 1.1.0"]);
    sandbox.mu(&["versions", "tools/lamp"]).ok().says(&["1.1.0", "1.0.0"]);
    sandbox.mu(&["search", "bulb"]).ok().says(&["tools/bulb", "2.3.0"]);
    sandbox.mu(&["why", "tools/bulb"]).ok().says(&["tools/lamp ^1 → "]);
}

#[test]
fn the_folder_without_plugins_is_named_as_it_is() {
    let sandbox = Sandbox::new();
    let run = sandbox.mu(&["plugin", "list"]).ok();
    run.says(&["no plugins in [DIR]/home/.mu/plugins, and none on PATH"]);
}

#[test]
fn a_plugin_is_listed_checked_and_asked() {
    let sandbox = with_shelf();
    sandbox.mu(&["plugin", "list"]).ok().says(&["shelf", "1.0.0", ".mu/plugins/mu-provider-shelf"]);
    let json = sandbox.mu(&["plugin", "list", "--json"]).ok().json();
    assert_eq!(json["plugins"][0]["schemes"][0], "shelf");
    let run = sandbox.mu(&["plugin", "check", "shelf", "shelf://books.example/tools/lamp"]).ok();
    let run = run.says(&[
        "✓ starts and introduces itself: `shelf` 1.0.0, schemes: shelf",
        "✓ lists the package: 2 releases",
        "✓ lists it again: unchanged",
        "✓ knows what is not there: looked at ",
        "✓ gives the manifest of 1.1.0: Mu.yaml",
        "✓ fetches 1.1.0: 2 files, h1:",
        "✓ fetches 1.1.0 from what a lock keeps: the same",
    ]);
    let bulb = sandbox.path("shelf/books.example/tools/bulb/2.3.0/README.md");
    fs::remove_file(bulb).expect("is there");
    let alone = sandbox.mu(&["plugin", "check", "shelf", "shelf://books.example/tools/bulb"]).ok();
    alone.says(&["✓ fetches 2.3.0: 1 file, h1:"]);
    let check = ["plugin", "check", "shelf", "shelf://books.example/tools/lamp", "--json"];
    let json = sandbox.mu(&check).ok().json();
    assert!(json["checks"].as_array().is_some_and(|checks| checks.len() == 7), "{json}");
    let named = ["plugin", "check", "shelf", "--base", "books.example/", "--name", "tools/lamp"];
    assert_eq!(sandbox.mu(&named).ok().stdout, run.stdout);
    sandbox.mu(&[&named[..5], &["--json"]].concat()).fails_with("usage");
    for package in ["books.example/tools/lamp", "shelf://books.example/tools/lamp", "tools/lamp"] {
        if package == "tools/lamp" {
            let registries = "hub.mu.com/: {provider: shelf, url: \"https://books.example/\"}";
            sandbox.write(".mu/workspace.yaml", &format!("registries:\n  {registries}\n"));
        }
        let json =
            sandbox.mu(&["plugin", "run", "shelf", "versions", package, "--json"]).ok().json();
        let lines = &json["result"]["packages"][0]["lines"];
        assert_eq!(lines[1]["version"], "1.1.0", "{package}: {json}");
    }
    sandbox.write(".mu/workspace.yaml", "");
    let elsewhere =
        ["plugin", "run", "shelf", "versions", "https://books.example/tools/lamp", "--json"];
    sandbox.mu(&elsewhere).fails_with("usage");
    let question = r#"{"base": "books.example/", "words": "lamp", "limit": 3}"#;
    let json = sandbox.mu(&["plugin", "run", "shelf", "search", question, "--json"]).ok().json();
    assert_eq!(json["result"]["results"][0]["name"], "tools/lamp");
    sandbox.mu(&["plugin", "run", "shelf", "nonsense", "--json"]).fails_with("plugin");
    sandbox.mu(&["plugin", "run", "missing", "versions", "--json"]).fails_with("not-found");
    // A wrong answer is reported as such.
    odd(&sandbox, "answer(ask, {\"packages\": []})");
    sandbox.mu(&["plugin", "check", "odd", "odd://odd.example/a/b"]).fails().says(&[
        "✗ lists the package: the plugin `mu-provider-odd` answered `versions` for 0 packages, and was asked for 1",
        "1 check failed",
    ]);
}

#[test]
fn what_a_plugin_says_of_its_failure_is_shown_with_the_code_of_plugins() {
    let sandbox = with_shelf();
    for kind in ["unsupported", "protocol", "something else"] {
        let failure = format!(
            r#"answer_failure = {{"code": -32000, "message": "only letters", "data": {{"kind": "{kind}", "hints": ["ask for less"]}}}}
print(json.dumps({{"jsonrpc": "2.0", "id": ask["id"], "error": answer_failure}}), flush=True)"#
        );
        for lines in [failure.clone(), format!("{LISTS}{failure}")] {
            odd(&sandbox, &lines);
            let run = sandbox.mu(&["get"]).fails();
            run.says(&["`mu-provider-odd`: only letters", "hint: ask for less"]);
            sandbox.mu(&["get", "--json"]).fails_with("plugin");
        }
        odd(&sandbox, &failure);
        let run = sandbox.mu(&["plugin", "run", "odd", "versions", "odd://odd.example/a/b"]);
        run.fails().says(&["only letters", "ask for less"]);
    }
    // What it does not know at all.
    let unknown = r#"print(json.dumps({"jsonrpc": "2.0", "id": ask["id"], "error": {"code": -32601, "message": "no"}}), flush=True)"#;
    odd(&sandbox, unknown);
    let run = sandbox.mu(&["versions", "odd://odd.example/a/b"]).fails();
    run.says(&["`mu-provider-odd` cannot list versions"]);
}

#[test]
fn the_check_of_a_plugin_refuses_what_is_not_a_version() {
    let sandbox = with_shelf();
    for (line, listed) in [
        (r#"{"version": "banana"}"#, Some("`banana`, which is not one")),
        (r#"{"version": "1.28"}"#, Some("`1.28`, which is not one")),
        (r#"{"version": "1.28", "versions": "lenient"}"#, None),
        (
            r#"{"version": "b", "appVersion": "1.0.0", "versioning": "composite"}"#,
            Some("`1.0.0-b`, which is not one"),
        ),
        (r#"{"version": "1.0.0", "appVersion": "1.0.0", "versioning": "composite"}"#, None),
    ] {
        odd(&sandbox, &format!("answer(ask, {{\"packages\": [{{\"lines\": [{line}]}}]}})"));
        let run = sandbox.mu(&["plugin", "check", "odd", "odd://odd.example/a/b"]).fails();
        match listed {
            Some(why) => {
                run.says(&[&format!("✗ lists the package: a release has the version {why}")])
            }
            None => run.says(&["✓ lists the package: 1 release"]),
        };
    }
}

#[test]
fn a_plugin_hands_out_archives_and_urls() {
    let sandbox = with_shelf();
    let files = sandbox.path("files");
    write(&files, "Mu.yaml", "name: a/b\nversion: 1.0.0\n");
    let archive = tar_gz(tree(&files));
    fs::write(sandbox.path("a.tgz"), &archive).expect("can be written");
    let place = sandbox.path("a.tgz").display().to_string();
    odd(
        &sandbox,
        &format!(
            "{LISTS}import shutil\nshutil.copy({place:?}, ask[\"params\"][\"into\"] + \"/a.tgz\")\nanswer(ask, {{\"archive\": \"a.tgz\"}})"
        ),
    );
    sandbox.mu(&["get"]).ok().says(&["+ odd.example/a/b 1.0.0"]);
    assert_eq!(digest_of(&sandbox.path("work/.mu/packs/odd.example/a/b")), digest_of(&files));
    // A plugin cannot name an archive elsewhere on the machine.
    for archive in ["../../a.tgz", &place] {
        let _ = fs::remove_dir_all(sandbox.path("cache"));
        let _ = fs::remove_dir_all(sandbox.path("work/.mu/packs"));
        odd(&sandbox, &format!("{LISTS}answer(ask, {{\"archive\": {archive:?}}})"));
        sandbox.mu(&["get", "--json"]).fails_with("plugin");
        odd(&sandbox, &format!("{LISTS}answer(ask, {{\"url\": \"file://{place}\"}})"));
        sandbox.mu(&["get"]).fails();
        assert!(!sandbox.has(".mu/packs/odd.example/a/b"));
    }
}

#[test]
fn what_a_plugin_hands_over_must_agree_with_its_line() {
    // What the line and the plugin's manifest say, what the files say, and what is wrong.
    for (line, given, files, wrong) in [
        ("", "None", "name: a/b\nversion: 9.9.9\n", Some("holds version 9.9.9")),
        (
            ", \"dependencies\": []",
            "None",
            "name: a/b\nversion: 1.0.0\ndependencies: [odd.example/a/hidden]\n",
            Some("`dependencies`: only the manifest has `odd.example/a/hidden"),
        ),
        (
            "",
            "None",
            "name: a/b\nversion: 1.0.0\ndependencies: [odd.example/a/hidden]\n",
            Some("`dependencies`: only the manifest has `odd.example/a/hidden"),
        ),
        (
            "",
            "{\"name\": \"Mu.yaml\", \"text\": \"name: a/b\\nversion: 1.0.0\\n\"}",
            "name: a/b\nversion: 1.0.0\nprovides: [a.b/v1/C]\n",
            Some("`provides`: only the manifest has `a.b/v1/C`"),
        ),
        (
            "",
            "{\"name\": \"Mu.yaml\", \"text\": \"name: a/b\\nprovides: [a.b/v1/C]\\n\"}",
            "name: a/b\nversion: 1.0.0\nprovides: [a.b/v1/C]\n",
            None,
        ),
        (", \"dependencies\": []", "None", "name: other/b\nversion: 1.0.0\n", None),
    ] {
        let sandbox = with_shelf();
        let folder = sandbox.path("files");
        write(&folder, "Mu.yaml", files);
        let place = folder.join("Mu.yaml").display().to_string();
        let lists =
            LISTS.replace("\"version\": \"1.0.0\"", &format!("\"version\": \"1.0.0\"{line}"));
        odd(
            &sandbox,
            &format!(
                "{lists}import shutil\nshutil.copy({place:?}, ask[\"params\"][\"into\"])\nanswer(ask, {{}})"
            ),
        );
        let program =
            fs::read_to_string(sandbox.path("home/.mu/plugins/mu-provider-odd")).expect("is there");
        let program = program.replace("answer(ask, None)", &format!("answer(ask, {given})"));
        install(&sandbox, "home/.mu/plugins/mu-provider-odd", program);
        let run = sandbox.mu(&["get"]);
        let Some(wrong) = wrong else {
            run.ok();
            continue;
        };
        run.fails().says(&["odd.example/a/b", wrong]);
        assert!(
            !sandbox.has("work/.mu/packs/odd.example") && !sandbox.has("work/Mu.lock"),
            "{wrong}"
        );
    }
}

#[test]
fn a_plugin_on_this_machine_may_name_archives_here() {
    let sandbox = with_shelf();
    let files = sandbox.path("files");
    write(&files, "Mu.yaml", "name: a/b\nversion: 1.0.0\n");
    let archive = tar_gz(tree(&files));
    let server = TestServer::start(move |_, _| Reply::body(archive.clone()));
    let url = server.url("/a.tgz");
    for (base, is_here) in [("127.0.0.1:1", true), ("odd.example", false)] {
        let _ = fs::remove_dir_all(sandbox.path("cache"));
        odd(&sandbox, &format!("{LISTS}answer(ask, {{\"url\": {url:?}}})"));
        sandbox.asks_for(&[&format!("odd://{base}/a/b#^1")]);
        let run = sandbox.mu(&["get"]);
        match is_here {
            true => run.ok(),
            false => run.fails().says(&["it goes from the network to this machine"]),
        };
    }
}

#[test]
fn the_description_that_a_plugin_gives_is_shown() {
    for given in ["None", "{\"name\": \"Mu.yaml\", \"text\": \"name: a/b\\nversion: 1.0.0\\n\"}"] {
        let sandbox = with_shelf();
        let said = "\"description\": \"Odd \\u001b[31mthings\", \"license\": \"MIT\", \"version\": \"1.0.0\"";
        odd(&sandbox, &LISTS.replace("\"version\": \"1.0.0\"", said));
        let program =
            fs::read_to_string(sandbox.path("home/.mu/plugins/mu-provider-odd")).expect("is there");
        let program = program.replace("answer(ask, None)", &format!("answer(ask, {given})"));
        install(&sandbox, "home/.mu/plugins/mu-provider-odd", program);
        let run = sandbox.mu(&["info", "odd://odd.example/a/b"]).ok();
        run.says(&["Odd", "things", "MIT"]).does_not_say(&["\u{1b}"]);
    }
}

#[test]
fn what_breaks_the_protocol_is_ended_and_named() {
    for (lines, said) in [
        ("print('hello', flush=True)", "sent something that is not a message: `hello`"),
        ("ask['id'] = 99\nanswer(ask, {})", "answered a question that nobody asked"),
        (
            "answer(ask, {'packages': [{}, {}]})",
            "answered `versions` for 2 packages, and was asked for 1",
        ),
        ("answer(ask, {'packages': [{}]})", "answered `versions` without `lines`"),
        ("answer(ask, 7)", "answered `versions` in a way that mu cannot read"),
        (
            "print('\\x1b]0;title of window\\x07no \\x1b[1;31mmore\\x1b[0m\\x08 paper', file=sys.stderr)\nsys.exit(3)",
            "its last words: no more paper\"",
        ),
        (
            "answer(ask, {'packages': [{'lines': [{'version': '1.0.0', 'locator': 'x' * 5000}]}]})",
            "a locator of more than 4 KiB",
        ),
    ] {
        let sandbox = with_shelf();
        odd(&sandbox, lines);
        let error = sandbox.mu(&["get", "--json"]).fails_with("plugin");
        let text = error.to_string();
        assert!(
            text.contains("the plugin `mu-provider-odd`") && text.contains(said),
            "{said}: {text}"
        );
        assert!(!sandbox.has("Mu.lock"), "{said}");
    }
}

#[test]
fn a_link_in_the_place_of_the_given_folder_is_not_followed() {
    let sandbox = with_shelf();
    sandbox.write("elsewhere/secret", "not for a package");
    let elsewhere = sandbox.path("work/elsewhere").display().to_string();
    let swap = format!(
        "{LISTS}into = ask['params']['into']\nos.rmdir(into)\nos.symlink({elsewhere:?}, into)\nanswer(ask, {{}})"
    );
    odd(&sandbox, &swap);
    let error = sandbox.mu(&["get", "--json"]).fails_with("plugin");
    let said = "put something else in the place of the folder that it was given";
    assert!(error.to_string().contains(said), "{error}");
    assert!(!sandbox.has(".mu/packs/odd.example"));
}

#[test]
fn a_failure_keeps_its_kind_and_its_hints() {
    let sandbox = with_shelf();
    odd(
        &sandbox,
        r#"print(json.dumps({"jsonrpc": "2.0", "id": ask["id"], "error": {"code": -32000,
    "message": "the door is locked", "data": {"kind": "auth", "hints": ["fetch the key"]}}}), flush=True)"#,
    );
    sandbox
        .mu(&["get"])
        .fails()
        .says(&["the plugin `mu-provider-odd`: the door is locked", "hint: fetch the key"]);
    sandbox.mu(&["get", "--json"]).fails_with("auth");
}

#[test]
fn a_plugin_that_dies_is_started_once_more() {
    let sandbox = with_shelf();
    let mark = sandbox.path("died").display().to_string();
    let died = format!(
        "if not os.path.exists({mark:?}):\n    open({mark:?}, 'w').close()\n    os._exit(1)\n"
    );
    odd(
        &sandbox,
        &format!(
            "{died}{LISTS}open(ask['params']['into'] + '/a', 'w').write('a')\nanswer(ask, {{}})"
        ),
    );
    sandbox.mu(&["get"]).ok().says(&["+ odd.example/a/b 1.0.0", "it is started once more"]);
}

#[test]
fn however_mu_ends_a_busy_plugin_ends_with_it() {
    use std::io::Read as _;
    use std::process::{Command, Stdio};

    // What is started in the background of a script ignores interrupts, and so does all that it starts.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let is_interruptible = ignored.unwrap_or_default() & 0b10 == 0;
    for signal in ["-TERM", "-INT", "-KILL"] {
        if signal == "-INT" && !is_interruptible {
            continue;
        }
        let sandbox = with_shelf();
        let pipe = sandbox.path("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().expect("runs").success());
        // Its child process does the work, and does not look at the end of the input.
        let busy = format!(
            "import subprocess\npipe = os.open({:?}, os.O_WRONLY)\nos.write(pipe, b'busy')\n\
             os.set_inheritable(pipe, True)\nsubprocess.call(['sleep', '60'], close_fds=False)",
            pipe.display().to_string()
        );
        odd(&sandbox, &busy);
        let mut command = sandbox.command(&["get"]);
        let mut mu = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("runs");
        let mut held = fs::File::open(&pipe).expect("the plugin opens it, too");
        let mut busy = [0; 4];
        held.read_exact(&mut busy).expect("it is busy");
        let begin = Instant::now();
        let id = mu.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().expect("runs").success());
        assert!(!mu.wait().expect("has ended").success(), "{signal}");
        // Nothing holds the other end any more.
        assert_eq!(held.read_to_end(&mut Vec::new()).expect("can be read"), 0);
        assert!(begin.elapsed() < Duration::from_secs(40), "{signal}: {:?}", begin.elapsed());
    }
}

#[test]
fn a_plugin_sees_no_token_but_those_of_its_hosts() {
    let mut sandbox = with_shelf();
    sandbox.set_token("api.example", "for-the-plugin");
    sandbox.set_token("hub.mu.com", "not-for-it");
    let seen = sandbox.path("seen").display().to_string();
    let lines = format!(
        r#"if ask["method"] == "versions":
    with open({seen:?}, "w") as file:
        json.dump(dict(os.environ), file)
        for url in ["https://api.example/x", "https://hub.mu.com/", "http://api.example/", "https://example/"]:
            print(json.dumps({{"jsonrpc": "2.0", "id": 1, "method": "credential", "params": {{"url": url}}}}), flush=True)
            file.write("\n" + sys.stdin.readline())
    answer(ask, {{"packages": [{{"absent": True}}]}})
    continue
"#
    );
    odd(&sandbox, &lines);
    sandbox.mu(&["get", "--json"]).fails_with("not-found");
    let seen = fs::read_to_string(sandbox.path("seen")).expect("the plugin has written it");
    assert!(!seen.contains("not-for-it") && !seen.contains("MU_TOKEN"), "{seen}");
    let answers: Vec<&str> = seen.lines().filter(|line| line.contains("\"result\"")).collect();
    let has_token = |line: &&str| line.contains("Bearer for-the-plugin");
    assert_eq!(
        answers.iter().map(has_token).collect::<Vec<_>>(),
        [true, false, false, false],
        "{seen}"
    );
}

#[test]
fn a_plugin_that_cannot_be_run_is_there() {
    let sandbox = with_shelf();
    let program = sandbox.path("home/.mu/plugins/mu-provider-shelf");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o644)).expect("can be set");
    sandbox.asks_for(&["shelf://books.example/tools/lamp#^1"]);
    for command in [&["get"][..], &["plugin", "check", "shelf"], &["plugin", "list"]] {
        let run = sandbox.mu(command);
        run.says(&["mu-provider-shelf` cannot be started"]).does_not_say(&["no plugin"]);
    }
    sandbox.mu(&["get"]).fails().says(&["Permission denied", "`chmod +x`"]);
    sandbox.mu(&["plugin", "list"]).says(&["Permission denied"]);
    for (text, expected) in [
        ("import json\n", "a script begins with a line such as `#!/bin/sh`"),
        ("#!/no/such/python\n", "not the program that its first line (`#!…`) names"),
    ] {
        install(&sandbox, "home/.mu/plugins/mu-provider-shelf", text);
        sandbox.mu(&["get"]).fails().says(&["cannot be started", expected]);
    }
}

#[test]
fn a_workspace_does_not_say_what_is_run() {
    let mut sandbox = with_shelf();
    fs::remove_dir_all(sandbox.path("home/.mu/plugins")).expect("is there");
    // In the workspace, in a relative folder of `PATH`, and in the settings of the workspace.
    install(&sandbox, "work/bin/mu-provider-odd", "#!/bin/sh\ntouch ran\n");
    let path = format!("bin:.:{}:/usr/bin:/bin", sandbox.path("work/bin").display());
    sandbox.set("PATH", &path);
    sandbox.asks_for(&["odd://odd.example/a/b#^1"]);
    sandbox
        .mu(&["get"])
        .fails()
        .says(&["no protocol or provider `odd`", "no plugin `mu-provider-odd`"]);
    sandbox.mu(&["plugin", "list"]).ok().does_not_say(&["odd"]);
    sandbox.write(".mu/workspace.yaml", "plugins: {odd: bin/mu-provider-odd}\n");
    sandbox
        .mu(&["get"])
        .fails()
        .says(&["a workspace cannot say which program a plugin is", "config.yaml"]);
    // The user says it.
    sandbox.write(".mu/workspace.yaml", "");
    odd(&sandbox, LISTS);
    sandbox.mu(&["plugin", "list"]).ok().says(&["odd"]);
}

#[test]
fn what_only_a_plugins_package_needs_is_asked_where_the_lock_says() {
    let sandbox = with_shelf();
    sandbox.asks_for(&["shelf://books.example/tools/lamp#^1"]);
    sandbox.mu(&["get"]).ok();
    let bulb = "books.example/tools/bulb";
    sandbox.mu(&["versions", bulb]).ok().says(&["2.3.0", "2.0.0"]);
    sandbox.mu(&["info", bulb]).ok().says(&["2.3.0"]);
    sandbox.mu(&["why", bulb]).ok().says(&["tools/lamp"]);
    sandbox.mu(&["add", "--dry-run", bulb]).ok().says(&["^2.3.0"]);
    sandbox.mu(&["update", &format!("{bulb}#2.0.0")]).ok().says(&["2.3.0 → 2.0.0"]);
    sandbox.mu(&["get", bulb]).ok();
}

#[test]
fn a_mirror_has_the_dependencies_that_a_plugin_lists_or_leaves_to_the_manifest() {
    let sandbox = with_shelf();
    let lamp = sandbox.path("shelf/books.example/tools/lamp/1.2.0");
    let needs =
        "dependencies:\n  - shelf://books.example/tools/bulb#^2\nprovides: [a.b/v1/Light]\n";
    write(&lamp, "Mu.yaml", format!("name: tools/lamp\nversion: 1.2.0\n{needs}"));
    sandbox.mu(&["hub", "init", "../copies"]).ok();
    for version in ["1.1.0", "1.2.0"] {
        sandbox.asks_for(&[&format!("shelf://books.example/tools/lamp#{version}")]);
        sandbox.mu(&["get"]).ok();
        let run = sandbox.mu(&["mirror", "--lock", "--to", "../copies"]).ok();
        run.says(&[&format!("tools/lamp {version}")]);
    }
    let lines =
        fs::read_to_string(sandbox.path("copies/index/tools/lamp.jsonl")).expect("is there");
    assert!(lines.contains("a.b/v1/Light"), "{lines}");
    sandbox.mu(&["hub", "check", "../copies"]).ok();
    sandbox.write(".mu/workspace.yaml", "registries: {books.example/: ../copies}\n");
    fs::remove_dir_all(sandbox.path("cache")).expect("is there");
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("is there");
    sandbox.mu(&["get", "--locked"]).ok();
}
