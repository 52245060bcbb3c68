//! `mu build`: which builds run, what they may do, and what becomes of their results.
//!
//! They need `bwrap`, and a kernel that lets it make namespaces.

use std::fs;
use std::io::Read as _;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};

use mu_testing::Listener;
use serde_json::json;

use crate::support::{Package, Sandbox, Terminal};

/// A workspace that depends on `aws/web`, whose build runs these lines of a shell and makes `dist`.
fn builds(script: &str) -> Sandbox {
    builds_with(script, "")
}

/// The same with more keys in the manifest's `build`.
fn builds_with(script: &str, keys: &str) -> Sandbox {
    let mut sandbox = Sandbox::with_dependencies(&["aws/web#^1"]);
    sandbox.set("MU_TEST_BUILD_LIMITS", "20 1000000");
    release(&sandbox, "1.0.0", script, keys);
    trust(&sandbox, "trust: {build: [hub.mu.com/aws/*]}\n");
    sandbox.mu(&["get"]).ok();
    sandbox
}

fn release(sandbox: &Sandbox, version: &str, script: &str, keys: &str) {
    let build = format!("build: {{command: [sh, build.sh], outputs: [dist]{keys}}}\n");
    let package = Package::new("aws/web", version).manifest(&build).file("build.sh", script);
    sandbox.publish(&[package.file("source.txt", "source\n")]);
}

fn trust(sandbox: &Sandbox, lines: &str) {
    let hub = sandbox.path("hub").display().to_string();
    let text = format!("registries: {{hub.mu.com/: \"file://{hub}/\"}}\n{lines}");
    fs::write(sandbox.path("home/.mu/config.yaml"), text).expect("can be written");
}

#[test]
fn a_build_runs_once_and_its_result_is_installed() {
    let sandbox = builds(
        "mkdir dist; cat source.txt > dist/out.txt; echo said; touch dist/run; chmod +x dist/run",
    );
    let pack = "work/.mu/packs/hub.mu.com/aws/web";
    assert!(!sandbox.has(&format!("{pack}/dist")), "`mu get` builds nothing");
    let run = sandbox.mu(&["build"]).fails();
    run.says(&["nobody has agreed to the build of `aws/web` 1.0.0, which runs `sh build.sh`"]);
    sandbox.mu(&["build", "--json"]).fails_with("untrusted");
    assert!(!sandbox.has(&format!("{pack}/dist")));

    let answer = sandbox.mu(&["build", "--yes", "--json"]).ok().json();
    let built = &answer["packages"][0];
    assert_eq!(built["id"], "hub.mu.com/aws/web");
    assert_eq!([&built["reused"], &built["checked"]], [&json!(false), &json!(false)]);
    assert_eq!(sandbox.read(".mu/packs/hub.mu.com/aws/web/dist/out.txt"), "source\n");
    assert_eq!(sandbox.read(".mu/packs/hub.mu.com/aws/web/source.txt"), "source\n");
    let log = built["log"]
        .as_str()
        .expect("is text")
        .replace("[DIR]", &sandbox.root().display().to_string());
    assert_eq!(fs::read_to_string(log).expect("is there"), "said\n");
    assert_eq!(sandbox.lock()["packages"][0]["built"], built["built"]);

    // It is a pack like any other.
    sandbox.mu(&["verify"]).ok().says(&["1 pack verified"]);
    sandbox.mu(&["status"]).ok();
    sandbox.mu(&["get", "--locked"]).ok().says(&["up to date"]);
    // The consent was remembered, and nothing runs again.
    let again = sandbox.mu(&["build", "--json"]).ok().json();
    assert_eq!(again["packages"][0]["reused"], true);
    assert_eq!(again["packages"][0]["key"], built["key"]);
    sandbox.mu(&["build", "--locked"]).ok().says(&["aws/web 1.0.0: was built before"]);

    // Packs that were removed come back as they were built, and a lost cache costs only the build.
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("was there");
    sandbox.mu(&["get", "--locked"]).ok();
    assert!(sandbox.has(&format!("{pack}/dist/run")));
    fs::remove_dir_all(sandbox.path("cache")).expect("was there");
    sandbox.mu(&["get", "--locked"]).ok().says(&["up to date"]);
    sandbox.mu(&["verify"]).ok();
    assert!(sandbox.has(&format!("{pack}/dist/run")));
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("was there");
    fs::remove_dir_all(sandbox.path("cache")).expect("was there");
    sandbox.mu(&["get", "--locked"]).ok();
    assert!(!sandbox.has(&format!("{pack}/dist")));
    sandbox.mu(&["verify"]).ok();
    sandbox.mu(&["build", "--locked"]).ok().says(&["aws/web 1.0.0: built"]);

    // Somebody changes what was built.
    fs::write(sandbox.path(&format!("{pack}/dist/new.txt")), "new").expect("can be written");
    sandbox.mu(&["verify"]).fails().says(&["its content changed"]);
}

#[test]
fn a_built_pack_that_nothing_knows_any_more_stays_and_mu_says_what_it_may_be() {
    let sandbox = builds("mkdir dist; cat source.txt > dist/out.txt");
    sandbox.mu(&["build", "--yes"]).ok();
    fs::remove_file(sandbox.path("work/Mu.lock")).expect("is ours");
    fs::remove_dir_all(sandbox.path("cache")).expect("is ours");
    let run = sandbox.mu(&["get"]).fails();
    run.says(&["remove it, and `mu get` and `mu build` make it again"]);
    assert_eq!(sandbox.read(".mu/packs/hub.mu.com/aws/web/dist/out.txt"), "source\n");
    fs::remove_dir_all(sandbox.path("work/.mu/packs/hub.mu.com/aws/web")).expect("is ours");
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["build", "--yes"]).ok();
    assert_eq!(sandbox.read(".mu/packs/hub.mu.com/aws/web/dist/out.txt"), "source\n");
}

#[test]
fn a_new_version_is_asked_about_again() {
    let sandbox = builds("mkdir dist; echo 1 > dist/out.txt");
    // Something is where the answers are kept.
    fs::write(sandbox.path("home/.mu/trust"), "").expect("can be written");
    sandbox
        .mu(&["build", "--yes"])
        .ok()
        .says(&["mu will ask again, because it cannot keep the answer"]);
    fs::remove_file(sandbox.path("home/.mu/trust")).expect("was there");
    sandbox.mu(&["build"]).fails().says(&["nobody has agreed to"]);
    sandbox.mu(&["build", "--yes"]).ok();
    release(&sandbox, "1.1.0", "mkdir dist; echo 2 > dist/out.txt", "");
    sandbox.mu(&["update"]).ok();
    assert!(sandbox.lock()["packages"][0].get("built").is_none());
    sandbox.mu(&["build"]).fails().says(&["nobody has agreed to the build of `aws/web` 1.1.0"]);

    let mut terminal = Terminal::run(&sandbox, 120, "build");
    let asked = terminal.shows(|shown| shown.contains("Run it? [y/N]"));
    assert!(asked.contains("sh build.sh"), "{asked}");
    terminal.press("y\r");
    let (_, _, status) = terminal.end();
    assert_eq!(status, 0);
    assert_eq!(sandbox.read(".mu/packs/hub.mu.com/aws/web/dist/out.txt"), "2\n");
    // Back to the first one, whose consent is still there.
    sandbox.mu(&["update", "aws/web#1.0.0"]).ok();
    sandbox.mu(&["build"]).ok().says(&["aws/web 1.0.0: was built before"]);
    let agreed = fs::read_to_string(sandbox.path("home/.mu/trust/builds.json")).expect("is there");
    assert_eq!(agreed.matches("build.sh").count(), 2, "{agreed}");
}

#[test]
fn only_named_builds_run() {
    let sandbox = builds("mkdir dist; echo 1 > dist/out.txt");
    trust(&sandbox, "");
    for arguments in [&["build", "--yes"][..], &["build", "--yes", "aws/web"]] {
        let run = sandbox.mu(arguments).fails();
        run.says(&[
            "the build of `aws/web` 1.0.0 is not trusted, so it does not run",
            "trust: {build: [hub.mu.com/aws/web]}",
        ]);
    }
    trust(&sandbox, "trust: {build: [aws/web]}\n");
    sandbox.mu(&["build"]).fails().says(&["nobody has agreed to"]);
    trust(&sandbox, "trust: {build: {hub.mu.com/other/*: ask}}\n");
    sandbox.mu(&["build", "--yes"]).fails();
    trust(&sandbox, "trust: {build: {hub.mu.com/aws/*: always}}\n");
    sandbox.mu(&["build", "--yes"]).fails().says(&["expected one of `ask`, `auto`"]);
    // Nothing is signed yet, so nothing runs without a question.
    trust(&sandbox, "trust: {build: {hub.mu.com/aws/*: auto}}\n");
    let run = sandbox.mu(&["build"]).fails();
    run.says(&[
        "`auto` is for signed versions, and mu does not check signatures yet",
        "nobody has agreed to",
    ]);
    assert!(!sandbox.has("home/.mu/trust"));
    sandbox.offer("aws/plain 1.0.0:");
    sandbox.asks_for(&["aws/plain"]);
    trust(&sandbox, "");
    sandbox.mu(&["get"]).ok();
    sandbox.mu(&["build"]).ok().says(&["no package in Mu.lock has a build"]);
}

/// The command behind other walls.
fn behind(walls: &[&str], command: &Command) -> Command {
    let mut bwrap = like(command, "bwrap");
    bwrap.args(walls).arg("--").arg(command.get_program()).args(command.get_args());
    bwrap
}

#[test]
fn without_confinement_nothing_is_built() {
    let sandbox = builds("mkdir dist; echo 1 > dist/out.txt");
    let all = ["--dev-bind", "/", "/"];
    let missing = [&all[..], &["--ro-bind", "/dev/null", "/usr/bin/bwrap"]].concat();
    let forbidden = [&all[..], &["--unshare-user", "--disable-userns"]].concat();
    for (walls, why, advice) in [
        (missing, "there is no `/usr/bin/bwrap`", "install the package `bubblewrap`"),
        (forbidden, "`/usr/bin/bwrap` does not work here: bwrap: ", "docs/troubleshooting.md"),
    ] {
        let run = |arguments: &[&str]| {
            sandbox.run(arguments, behind(&walls, &sandbox.command(arguments)))
        };
        let refused = run(&["build", "--yes"]).fails();
        refused.says(&[
            "this machine cannot confine programs: ",
            why,
            advice,
            "`mu build --no-sandbox`",
        ]);
        run(&["build", "--yes", "--json"]).fails_with("untrusted");
        run(&["doctor"]).ok().says(&["builds: this machine cannot confine programs", advice]);
        assert!(!sandbox.has("work/.mu/packs/hub.mu.com/aws/web/dist"));
    }
    sandbox.mu(&["doctor"]).ok().says(&["builds: confined by `/usr/bin/bwrap`"]);
    sandbox.mu(&["build", "--yes", "--no-sandbox"]).ok();
    assert_eq!(sandbox.read(".mu/packs/hub.mu.com/aws/web/dist/out.txt"), "1\n");
}

#[test]
fn consent_to_a_confined_build_is_none_to_one_with_all_rights() {
    let sandbox = builds("mkdir dist; echo 1 > dist/out.txt");
    sandbox
        .mu(&["build", "--yes"])
        .ok()
        .says(&["reaches neither the network nor your other files"]);
    sandbox.mu(&["build", "--no-sandbox"]).fails().says(&[
        "nobody has agreed to the build of `aws/web` 1.0.0, which runs `sh build.sh` with all of your rights",
        "it was confined, and is not now",
    ]);
    let mut terminal = Terminal::run(&sandbox, 200, "build --no-sandbox");
    let asked = terminal.shows(|shown| shown.contains("Run it? [y/N]"));
    assert!(asked.contains("it runs with all of your rights"), "{asked}");
    assert!(!asked.contains("reaches neither"), "{asked}");
    terminal.press("y\r");
    assert_eq!(terminal.end().2, 0);
    sandbox.mu(&["build"]).ok();
    sandbox.mu(&["build", "--no-sandbox"]).ok();
}

#[test]
fn new_code_of_a_dependency_or_another_place_is_asked_about() {
    let sandbox = Sandbox::new();
    trust(&sandbox, "trust: {build: [hub.mu.com/aws/web]}\n");
    let tool =
        |version| Package::new("evil/tool", version).file("run.sh", "mkdir dist; echo > dist/x\n");
    sandbox.publish(&[tool("1.0.0")]);
    let build =
        "build: {command: [sh, -c, sh $MU_PACKS/hub.mu.com/evil/tool/run.sh], outputs: [dist]}\n";
    sandbox.publish(&[Package::new("aws/web", "1.0.0").needs("evil/tool#^1").manifest(build)]);
    sandbox.asks_for(&["aws/web"]);
    sandbox.mu(&["get"]).ok();
    let run = sandbox.mu(&["build", "--yes"]).ok();
    run.says(&["hub/`", "it can read and run evil/tool 1.0.0"]);
    sandbox.mu(&["build"]).ok();

    sandbox.publish(&[tool("1.1.0").file("more", "")]);
    sandbox.mu(&["update"]).ok();
    let run = sandbox.mu(&["build"]).fails();
    run.says(&[
        "you agreed to it before, but",
        "the dependency `evil/tool` is now 1.1.0, and was 1.0.0",
    ]);
    sandbox.mu(&["build", "--yes"]).ok();

    // The same content from elsewhere.
    fs::rename(sandbox.path("hub"), sandbox.path("other")).expect("was there");
    let other = sandbox.path("other").display().to_string();
    let settings =
        format!("registries: {{hub.mu.com/: \"file://{other}/\"}}\ntrust: {{build: [aws/web]}}\n");
    fs::write(sandbox.path("home/.mu/config.yaml"), settings).expect("can be written");
    sandbox.mu(&["build"]).fails().says(&["it now comes from `hub+file://", "/other/`"]);
}

#[test]
fn a_build_gets_no_token_and_a_secret_only_with_a_warning() {
    let mut sandbox =
        builds_with("mkdir dist; env > dist/env", ", env: [AWS_SECRET_ACCESS_KEY, FLAVOUR]");
    sandbox.set("AWS_SECRET_ACCESS_KEY", "x");
    sandbox.set("FLAVOUR", "sour");
    sandbox.mu(&["build", "--yes"]).ok().says(&[
        "with your variables AWS_SECRET_ACCESS_KEY, FLAVOUR",
        "the build of `aws/web` gets AWS_SECRET_ACCESS_KEY, and what it makes could contain that",
    ]);
    // Whatever the settings, the answers and the command line say.
    let mut sandbox = builds_with("mkdir dist; env > dist/env", ", env: [Mu_Token_HUB_MU_COM]");
    sandbox.set("Mu_Token_HUB_MU_COM", "SECRET");
    for arguments in [&["build", "--yes"][..], &["build", "--yes", "--no-sandbox"]] {
        let run = sandbox.mu(arguments).fails();
        run.says(&["wants the environment variable `Mu_Token_HUB_MU_COM`, and mu never hands over its tokens"]);
    }
    assert!(!sandbox.has("work/.mu/packs/hub.mu.com/aws/web/dist"));
}

#[test]
fn a_build_reaches_no_network_and_no_other_files() {
    let listener = Listener::start(drop);
    let port = listener.address().port();
    let sandbox = builds("true");
    fs::write(sandbox.path("home/secret"), "secret").expect("can be written");
    let home = sandbox.path("home").display().to_string();
    let work = sandbox.path("work").display().to_string();
    let datagrams = UnixDatagram::bind(sandbox.path("datagrams")).expect("can be bound");
    datagrams.set_nonblocking(true).expect("can be set");
    let shared = Command::new("ipcmk").args(["-M", "4096"]).output().expect("there is `ipcmk`");
    let shared = String::from_utf8(shared.stdout).expect("is text");
    let shared = shared.trim().rsplit(' ').next().expect("says its number");
    let own = std::process::id();
    let script = format!(
        "
mkdir dist
try() {{ if \"$@\" > dist/out 2>&1; then echo \"$* worked\" >> dist/holes; fi; }}
try bash -c 'echo > /dev/tcp/127.0.0.1/{port}'
try perl -e 'use Socket; socket(my $s, AF_UNIX, SOCK_STREAM, 0) or exit 1'
try cat {home}/secret
try ls {home}
try ls {home}/.mu
try cat {work}/Mu.yaml
try sh -c 'echo x > {home}/new'
try sh -c 'echo x >> {work}/Mu.lock'
try sh -c ': > {work}/Mu.lock'
try truncate -s 0 {work}/Mu.lock
try mv {work}/Mu.lock dist/
try rm -r {work}
try ln {home}/secret dist/secret
try chmod 777 {home}/secret
try stat {home}
try perl -MSocket -e 'socketpair(my $a, my $b, AF_UNIX, SOCK_DGRAM, 0) or exit 1; send($a, 1, 0, sockaddr_un(\"{home}/../datagrams\")) or exit 1'
try ipcrm -m {shared}
try prlimit --pid {own} --cpu=100000
try unshare --user true
try unshare --mount true
try sh -c 'cat /proc/sys/kernel/printk_ratelimit > ratelimit && cat ratelimit > /proc/sys/kernel/printk_ratelimit'
for folder in /usr/bin / /dev /mu $MU_PACKS /proc; do try touch $folder/new; done
try chmod u+w /mu/package/Mu.yaml
try cat /proc/1/environ
try cat /proc/1/fd/0
try sh -c 'cat < /dev/tty'
echo x > /tmp/mu-build-was-here && rm $TMPDIR/mu-build-was-here
try sh -c 'echo x >&7'
echo \"$HOME|$(ls -A $HOME | wc -l)|$LC_ALL|$TZ|$SOURCE_DATE_EPOCH|$(umask)|$SECRET\" > dist/environment
echo x > $TMPDIR/x; echo x > $HOME/x; echo x > source.txt; cat /dev/null
touch dist/holes
rm dist/out
"
    );
    release(&sandbox, "1.1.0", &script, "");
    sandbox.mu(&["update"]).ok();
    let lock = sandbox.read("Mu.lock");
    let inherited = sandbox.path("home/inherited").display().to_string();
    let mut command = with_open_file(&sandbox.command(&["build", "--yes"]), &inherited);
    command.env("SECRET", "secret");
    sandbox.run(&["build", "--yes"], command).ok();
    assert_eq!(fs::read_to_string(&inherited).expect("is there"), "", "the build wrote into it");
    let pack = ".mu/packs/hub.mu.com/aws/web";
    let holes = sandbox.read(&format!("{pack}/dist/holes"));
    assert_eq!(holes, "", "these worked");
    let environment = sandbox.read(&format!("{pack}/dist/environment"));
    let (home, rest) = environment.split_once('|').expect("has parts");
    assert!(home.ends_with("/home") && !home.contains("home/.mu"), "{home}");
    assert_eq!(rest, "0|C|UTC|315532800|0022|\n");
    // What it changed in its copy is gone, except for its outputs.
    assert_eq!(sandbox.read(&format!("{pack}/source.txt")), "source\n");
    assert_eq!(listener.connections(), 0);
    assert!(datagrams.recv(&mut [0; 9]).is_err(), "something came");
    let removed = Command::new("ipcrm").args(["-m", shared]).status().expect("there is `ipcrm`");
    assert!(removed.success(), "the build has removed it");
    assert!(!Path::new("/tmp/mu-build-was-here").exists());
    assert!(!sandbox.has("home/new"));
    assert_eq!(
        sandbox.read("Mu.lock").lines().count(),
        lock.lines().count() + 1,
        "only `built` is new"
    );
}

/// Another program in the same folder, with the same variables.
fn like(command: &Command, program: &str) -> Command {
    let mut other = Command::new(program);
    command.get_envs().for_each(|(name, value)| {
        match value {
            Some(value) => other.env(name, value),
            None => other.env_remove(name),
        };
    });
    other.current_dir(command.get_current_dir().expect("is set"));
    other
}

/// The command, started by a shell that has a file open as 7.
fn with_open_file(command: &Command, file: &str) -> Command {
    let mut shell = like(command, "sh");
    shell.args(["-c", "exec 7> \"$0\"; exec \"$@\"", file]).arg(command.get_program());
    shell.args(command.get_args());
    shell
}

/// The processes whose command line contains a text.
fn processes(text: &str) -> usize {
    let entries = fs::read_dir("/proc").expect("is there").flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(text)).count()
}

#[test]
fn a_build_leaves_no_process_behind() {
    for script in [
        "sleep 987650 & mkdir dist; echo 1 > dist/out.txt",
        "setsid sh -c '(sleep 987651 &) & sleep 987651' & mkdir dist; echo 1 > dist/out.txt",
        "trap '' TERM HUP; (setsid sleep 987652 &); (trap '' TERM; sleep 987652) & exit 3",
        // Many, and some of which there is another one whenever somebody looks.
        "for i in $(seq 1000); do setsid sleep 987653 & done; mkdir dist; echo 1 > dist/out.txt",
        "case $1 in '') for i in 1 2 3; do setsid -f sh build.sh 987654; done; mkdir dist; echo 1 > dist/x;; *) exec setsid -f sh build.sh 987654;; esac",
    ] {
        let sandbox = builds(script);
        let run = sandbox.mu(&["build", "--yes"]);
        assert_eq!(run.status, i32::from(script.contains("exit 3")), "{}", run.shown());
        assert_eq!(processes("98765"), 0, "{script}");
    }
}

#[test]
fn a_build_ends_with_mu_and_leaves_nothing_half_done() {
    let script =
        "mkdir dist; echo 1 > dist/half; (setsid sleep $TIME &); sleep $TIME; echo 1 > dist/whole";
    let mut sandbox = builds_with(script, ", env: [TIME]");
    sandbox.set("TIME", "987680");
    let lock = sandbox.read("Mu.lock");
    for signal in ["INT", "TERM", "KILL"] {
        let mut child =
            sandbox.command(&["build", "--yes"]).stderr(Stdio::piped()).spawn().expect("mu starts");
        // It opens nothing outside its folders, and what it prints goes to a file: only the system tells that it runs.
        while processes("987680") < 2 {
            assert!(child.try_wait().expect("can be asked").is_none(), "the build ended by itself");
            std::thread::yield_now();
        }
        let id = child.id().to_string();
        let sent =
            Command::new("kill").args(["-s", signal, &id]).status().expect("there is `kill`");
        assert!(sent.success());
        // The program that watches the build has the other end, too.
        let mut said = String::new();
        child.stderr.take().expect("is piped").read_to_string(&mut said).expect("is text");
        assert!(!child.wait().expect("ends").success(), "{signal}: {said}");
        // The system ends it with its namespace.
        while processes("987680") > 0 {
            std::thread::yield_now();
        }
        assert_eq!(sandbox.read("Mu.lock"), lock, "{signal}");
        assert!(!sandbox.has("work/.mu/packs/hub.mu.com/aws/web/dist"), "{signal}");
    }
    // The same build begins anew.
    sandbox.set("MU_TEST_BUILD_LIMITS", "1 1000000");
    sandbox.mu(&["build", "--yes"]).fails().says(&["took longer than 1 s"]);
    sandbox.set("TIME", "0");
    sandbox.mu(&["build", "--yes"]).ok();
    assert!(sandbox.has("work/.mu/packs/hub.mu.com/aws/web/dist/whole"));
}

#[test]
fn a_patched_package_is_built_with_its_patch() {
    let sandbox = builds("mkdir dist; cat source.txt > dist/out.txt");
    sandbox.mu(&["build", "--yes"]).ok();
    let settings = sandbox.read(".mu/workspace.yaml");
    let plain = sandbox.lock()["packages"][0]["built"].clone();
    sandbox.mu(&["patch", "aws/web"]).ok();
    let copy = ".mu/patch/hub.mu.com+aws+web";
    sandbox.write(&format!("{copy}/source.txt"), "patched\n");
    sandbox.mu(&["patch", "--save", copy]).ok();
    let pack = ".mu/packs/hub.mu.com/aws/web";
    // What was built of other content is gone, and the new content is asked about.
    assert!(!sandbox.has(&format!("work/{pack}/dist")));
    assert!(sandbox.lock()["packages"][0].get("built").is_none());
    sandbox.mu(&["build"]).fails().says(&["nobody has agreed to the build"]);
    sandbox.mu(&["build", "--yes"]).ok().says(&["aws/web 1.0.0: built"]);
    assert_eq!(sandbox.read(&format!("{pack}/dist/out.txt")), "patched\n");
    assert_eq!(sandbox.read(&format!("{pack}/source.txt")), "patched\n");
    assert_ne!(sandbox.lock()["packages"][0]["built"], plain);
    sandbox.mu(&["verify"]).ok();
    // Others install it in the same way.
    fs::remove_dir_all(sandbox.path("work/.mu/packs")).expect("was there");
    sandbox.mu(&["get", "--locked"]).ok();
    assert_eq!(sandbox.read(&format!("{pack}/dist/out.txt")), "patched\n");
    sandbox.mu(&["build", "--locked"]).ok().says(&["was built before"]);
    sandbox.mu(&["patch", "--drop", "aws/web"]).ok();
    assert_eq!(sandbox.read(".mu/workspace.yaml"), settings);
    sandbox.mu(&["build"]).ok().says(&["was built before"]);
    assert_eq!(sandbox.lock()["packages"][0]["built"], plain);
}

#[test]
fn builds_use_no_edit_and_say_so() {
    let sandbox = builds("mkdir dist; cat source.txt > dist/out.txt");
    sandbox.mu(&["build", "--yes"]).ok();
    let lock = sandbox.read("Mu.lock");
    sandbox.mu(&["edit", "aws/web", "--from-pack", "--at", "web"]).ok();
    sandbox.write("web/source.txt", "edited\n");
    let run = sandbox.mu(&["build", "aws/web", "--yes"]);
    assert_eq!(run.status, 2, "{}", run.shown());
    run.says(&[
        "`aws/web` is edited in `web`",
        "run the command of its `build` yourself, in `web`",
    ]);
    sandbox
        .mu(&["build"])
        .ok()
        .says(&["builds do not use the edit of `aws/web` in `web`", "was built before"]);
    assert!(!sandbox.has("work/web/dist"));
    assert_eq!(sandbox.read("Mu.lock"), lock);
    sandbox.mu(&["edit", "--done", "aws/web", "--force"]).ok();
    assert_eq!(sandbox.read(".mu/packs/hub.mu.com/aws/web/dist/out.txt"), "source\n");
}

#[test]
fn a_build_that_fails_is_shown_whole() {
    let sandbox = builds("echo 'one\u{1b}[31m'; echo two >&2; exit 3");
    let run = sandbox.mu(&["build", "--yes"]).fails();
    assert!(!run.shown().contains('\u{1b}'));
    run.says(&[
        "the build of `aws/web` 1.0.0 failed: `sh build.sh` ended with status 3",
        "one\\u{1b}[31m",
        "two",
    ]);
    sandbox.mu(&["build", "--json"]).fails_with("io");

    let mut sandbox = builds("sleep 987660");
    sandbox.set("MU_TEST_BUILD_LIMITS", "1 1000000");
    sandbox.mu(&["build", "--yes"]).fails().says(&["was ended because it took longer than 1 s"]);
    assert_eq!(processes("987660"), 0);
    builds("cat /dev/zero").mu(&["build", "--yes"]).fails().says(&["because it printed too much"]);
    for script in [
        "cat /dev/zero > big",
        "while true; do head -c 400000 /dev/zero > $((i=i+1)); done",
        // What was removed and is still open.
        "exec 3> gone; rm gone; cat /dev/zero >&3; sleep 987661",
        // What nobody can list.
        "mkdir closed; exec 3> closed/big; chmod 0 closed; cat /dev/zero >&3; sleep 987661",
        "cat /dev/zero > $HOME/big",
        "cat /dev/zero > /tmp/big",
        "mkdir dist; truncate -s 1000001 dist/hole",
    ] {
        let sandbox = builds(script);
        let run = sandbox.mu(&["build", "--yes"]).fails();
        run.says(&["was ended because its files have more than 1000000 bytes"]);
    }
    builds("true").mu(&["build", "--yes"]).fails().says(&["did not make `dist`"]);
    builds("ln -s /etc dist").mu(&["build", "--yes"]).fails().says(&["cannot keep what the build"]);
    let sandbox = builds_with("mkdir dist; touch dist/x", ", tools: [no-such-tool]");
    sandbox
        .mu(&["build", "--yes"])
        .fails()
        .says(&["runs `no-such-tool`, which is not on this machine"]);
}

#[test]
fn what_a_build_kept_for_nobody_is_taken_and_nothing_else_stays() {
    let script = "mkdir -p dist/closed $HOME/closed; echo 1 > dist/closed/file; chmod 0 dist/closed/file dist/closed $HOME/closed dist";
    for arguments in [&["build", "--yes"][..], &["build", "--yes", "--check"]] {
        let sandbox = builds(script);
        sandbox.mu(arguments).ok();
        assert_eq!(sandbox.read(".mu/packs/hub.mu.com/aws/web/dist/closed/file"), "1\n");
        let builds = fs::read_dir(sandbox.path("cache/builds")).expect("is there").flatten();
        assert!(builds.into_iter().all(|build| !build.path().join("work").exists()));
        sandbox.mu(&["cache", "clean"]).ok();
    }
    let sandbox =
        builds("mkdir -p $HOME/closed/inner; chmod 0 $HOME/closed; mkdir dist; echo 1 > dist/x");
    sandbox.mu(&["build", "--yes", "--no-sandbox"]).ok();
    sandbox.mu(&["cache", "clean"]).ok();
}

#[test]
fn a_build_compiles_and_makes_large_files() {
    // More by hand, such as 2000000000.
    let bytes = std::env::var("MU_TEST_BUILD_BYTES").ok().and_then(|text| text.parse().ok());
    let bytes: u64 = bytes.unwrap_or(20_000_000);
    let script = format!(
        "mkdir dist; printf 'int main(void) {{ return 0; }}' > a.c; cc -o dist/run a.c; dist/run || exit 1
for i in $(seq 20); do head -c {} /dev/zero > $i; done; cat [0-9]* | wc -c > dist/size; head -c 3000000 /dev/urandom > dist/large",
        bytes / 20
    );
    let mut sandbox = builds(&script);
    sandbox.set("MU_TEST_BUILD_LIMITS", &format!("600 {}", bytes * 2));
    sandbox.mu(&["build", "--yes"]).ok();
    let pack = sandbox.path("work/.mu/packs/hub.mu.com/aws/web/dist");
    assert_eq!(fs::metadata(pack.join("large")).expect("is there").len(), 3_000_000);
    assert_eq!(fs::read_to_string(pack.join("size")).expect("is there").trim(), bytes.to_string());
    assert!(Command::new(pack.join("run")).status().expect("runs").success());
}

#[test]
fn no_link_brings_other_files_into_a_pack() {
    let sandbox = builds("true");
    fs::write(sandbox.path("home/secret"), "secret").expect("can be written");
    let home = sandbox.path("home").display().to_string();
    for (number, script) in [
        format!("mkdir dist; ln -s {home}/secret dist/secret"),
        format!("ln -s {home} dist"),
        "mkdir dist; mkfifo dist/secret".to_owned(),
    ]
    .iter()
    .enumerate()
    {
        release(&sandbox, &format!("1.{}.0", number + 1), script, "");
        sandbox.mu(&["update"]).ok();
        for arguments in [&["build", "--yes"][..], &["build", "--yes", "--no-sandbox"]] {
            let run = sandbox.mu(arguments).fails();
            run.says(&["cannot keep what the build of `aws/web` made"]);
        }
    }
    assert!(!sandbox.has("work/.mu/packs/hub.mu.com/aws/web/dist"));
}

#[test]
fn a_build_sees_packages_inside_packages() {
    let sandbox = Sandbox::new();
    trust(&sandbox, "trust: {build: [hub.mu.com/aws/web]}\n");
    let file = |name: &str| Package::new(name, "1.0.0").file("own/file", name);
    sandbox.publish(&[file("aws/lib"), file("aws/lib/deep/inner")]);
    let build = "build: {command: [sh, build.sh], outputs: [dist]}\n";
    let script = "mkdir dist; cd $MU_PACKS/hub.mu.com/aws; cat lib/own/file lib/deep/inner/own/file > $OLDPWD/dist/x";
    let web = Package::new("aws/web", "1.0.0").needs("aws/lib").needs("aws/lib/deep/inner");
    sandbox.publish(&[web.manifest(build).file("build.sh", script)]);
    sandbox.asks_for(&["aws/web"]);
    sandbox.mu(&["get"]).ok();
    for arguments in [&["build", "--yes"][..], &["build", "--yes", "--no-sandbox"]] {
        sandbox.mu(arguments).ok();
        let made = sandbox.read(".mu/packs/hub.mu.com/aws/web/dist/x");
        assert_eq!(made, "aws/libaws/lib/deep/inner");
    }
}

#[test]
fn a_build_that_is_not_reproducible_is_found() {
    let sandbox = builds("mkdir dist; head -c 8 /dev/urandom > dist/random; echo same > dist/same");
    let run = sandbox.mu(&["build", "--yes", "--check"]).fails();
    run.says(&["is not reproducible", "\n  dist/random\n"]).does_not_say(&["dist/same"]);
    sandbox.mu(&["build", "--yes"]).ok();
    fs::remove_dir_all(sandbox.path("cache")).expect("was there");
    let run = sandbox.mu(&["build", "--yes", "--locked"]).fails();
    run.says(&["what was built is not what Mu.lock says"]);
    let sandbox = builds(
        "mkdir dist; echo $SOURCE_DATE_EPOCH > dist/date; pwd > dist/folder; stat -c %Y source.txt >> dist/date",
    );
    sandbox.mu(&["build", "--yes", "--check"]).ok().says(&["built twice, with the same result"]);
}

#[test]
fn what_a_build_depends_on_decides_whether_it_runs_again() {
    let mut sandbox = Sandbox::new();
    trust(&sandbox, "trust: {build: [hub.mu.com/aws/*]}\n");
    let build = "build: {command: [sh, build.sh], outputs: [dist]";
    for (version, word) in [("1.0.0", "one"), ("1.1.0", "two")] {
        let script = format!("mkdir dist; echo {word} > dist/out.txt");
        let library = Package::new("aws/lib", version).file("build.sh", &script);
        sandbox.publish(&[library.manifest(&format!("{build}}}\n"))]);
    }
    let script =
        "mkdir dist; (cat $MU_PACKS/hub.mu.com/aws/lib/dist/out.txt; echo $FLAVOUR) > dist/out.txt";
    let web = Package::new("aws/web", "1.0.0").needs("aws/lib").file("build.sh", script);
    sandbox.publish(&[web.manifest(&format!("{build}, env: [FLAVOUR], tools: [cat]}}\n"))]);
    sandbox.asks_for(&["aws/web", "aws/lib#1.0.0"]);
    sandbox.mu(&["get"]).ok();
    let run = sandbox.mu(&["build", "--yes"]);
    assert_eq!(run.status, 2);
    run.says(&["the build of `aws/web` needs the environment variable `FLAVOUR`"]);
    let reused = |sandbox: &Sandbox| -> Vec<(String, bool)> {
        let answer = sandbox.mu(&["build", "--yes", "--json", "aws/web"]).ok().json();
        let packages = answer["packages"].as_array().expect("is a list").iter();
        let one = |one: &serde_json::Value| {
            let id = one["id"].as_str().expect("is text").rsplit('/').next().unwrap_or_default();
            (id.to_owned(), one["reused"].as_bool().expect("is a flag"))
        };
        packages.map(one).collect()
    };
    let both = |library: bool, web: bool| [("lib".to_owned(), library), ("web".to_owned(), web)];
    let out = |sandbox: &Sandbox| sandbox.read(".mu/packs/hub.mu.com/aws/web/dist/out.txt");
    sandbox.set("FLAVOUR", "sweet");
    assert_eq!(reused(&sandbox), both(false, false), "nothing had run");
    assert_eq!(out(&sandbox), "one\nsweet\n");
    assert_eq!(reused(&sandbox), both(true, true));
    sandbox.set("FLAVOUR", "sour");
    assert_eq!(reused(&sandbox), both(true, false));
    assert_eq!(out(&sandbox), "one\nsour\n");
    sandbox.asks_for(&["aws/web", "aws/lib#1.1.0"]);
    sandbox.mu(&["get"]).ok();
    assert_eq!(reused(&sandbox), both(false, false));
    assert_eq!(out(&sandbox), "two\nsour\n");
}

#[test]
fn a_workspace_package_is_not_built() {
    let sandbox = Sandbox::new();
    sandbox.write(".mu/workspace.yaml", "namespace: acme\n");
    sandbox.write("a/Mu.yaml", "name: acme/a\nversion: 1.0.0\ndependencies: [acme/b]\n");
    sandbox.write(
        "b/Mu.yaml",
        "name: acme/b\nversion: 1.0.0\nbuild: {command: [touch, x], outputs: [x]}\n",
    );
    sandbox.mu(&["get"]).ok();
    let run = sandbox.mu(&["build", "acme/b", "--yes"]);
    assert_eq!(run.status, 2, "{}", run.shown());
    run.says(&["`acme/b` is a package of this workspace"]);
    assert!(!Path::new(&sandbox.path("work/b/x")).exists());
}
