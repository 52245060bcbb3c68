//! TAB in a checkout that somebody else has made, in real shells: what `mu` offers is never run, expanded, or an option.
//!
//! What is offered, and when, is in `care`.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::Sandbox;
#[cfg(feature = "publish")]
use crate::support::Served;

/// What a shell prints when it waits for a line.
const READY: &str = "ready> ";

/// A setting that every checkout of these tests has, so that a shell has something to show.
const OFFERED: &str = "runtime.kubernetes";

/// Texts that run something, expand, or are options; `RUN` is a program and its argument.
const HOSTILE: [&str; 12] = [
    "$(RUN)",
    "`RUN`",
    "a;RUN;",
    "a\nRUN\n",
    "a' RUN '",
    "a\" RUN \"",
    "a|RUN",
    "a&&RUN",
    "<(RUN)",
    "${x:=$(RUN)}",
    "--config=$(RUN)",
    "${(e):-$(RUN)}",
];

/// The hostile texts, with a program that leaves a mark, and that as a word without blanks.
fn hostile(sandbox: &Sandbox) -> Vec<String> {
    let mark = sandbox.path("ran").display().to_string();
    let forms = [format!("touch {mark}"), format!("touch${{IFS}}{mark}")];
    let all = HOSTILE.iter().flat_map(|text| forms.iter().map(|run| text.replace("RUN", run)));
    all.collect()
}

/// A text as YAML.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// An interactive shell in a terminal; it is killed when this is dropped.
struct Shell {
    process: Child,
    printed: String,
}

impl Shell {
    /// Starts a shell that has read what `mu completions` prints for it.
    fn start(sandbox: &Sandbox, shell: &str) -> Self {
        let script = sandbox.mu(&["completions", shell]).ok().stdout;
        let home = sandbox.path("home");
        std::fs::write(home.join(format!("mu.{shell}")), script).expect("can be written");
        let (rc, text, start) = match shell {
            "bash" => (
                ".bashrc",
                format!("source ~/mu.bash; bind 'set page-completions off'; PS1='{READY}'\n"),
                "bash --rcfile ~/.bashrc -i",
            ),
            "zsh" => (
                ".zshrc",
                format!("autoload -U compinit; compinit -u -D; source ~/mu.zsh; PS1='{READY}'\n"),
                "zsh -d -i",
            ),
            _ => (
                "config.fish",
                format!("source ~/mu.fish; function fish_prompt; echo -n '{READY}'; end\n"),
                "fish --no-config --init-command 'source ~/config.fish' -i",
            ),
        };
        std::fs::write(home.join(rc), text).expect("can be written");
        let like = sandbox.command(&[]);
        let mut command = Command::new(mu_testing::program("script"));
        command.env_clear().envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let program = Path::new(env!("CARGO_BIN_EXE_mu"));
        let folder = program.parent().expect("is in a folder").display();
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{folder}:{path}"));
        command.env("TERM", "xterm").env("SHELL", "/bin/sh").current_dir(sandbox.path("work"));
        let line = format!("stty cols 200 rows 50; exec {start}");
        command.args(["--quiet", "--return", "--flush", "--command", &line, "/dev/null"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let process = command.spawn().expect("these tests need `script`, of util-linux");
        let mut shell = Self { process, printed: String::new() };
        shell.waits_for(READY);
        shell
    }

    /// Waits until the shell has printed a text since this was last asked.
    #[track_caller]
    fn waits_for(&mut self, text: &str) {
        let mut buffer = [0; 4096];
        let output = self.process.stdout.as_mut().expect("is piped");
        loop {
            if let Some((_, rest)) = self.printed.split_once(text) {
                self.printed = rest.to_owned();
                return;
            }
            let count = output.read(&mut buffer).expect("can be read");
            assert!(count > 0, "the shell ended, and printed: {}", self.printed);
            self.printed.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
    }

    fn press(&mut self, keys: &str) {
        let input = self.process.stdin.as_mut().expect("is piped");
        input.write_all(keys.as_bytes()).and_then(|()| input.flush()).expect("can be typed");
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_tab_in_a_checkout_runs_nothing_in_any_shell() {
    let sandbox = Sandbox::new();
    let mut settings = "runtime:\n  kubernetes: 1.30.0\n".to_owned();
    for text in hostile(&sandbox) {
        settings.push_str(&format!("  {}: 1.0.0\n", quoted(&text)));
    }
    sandbox.write(".mu/workspace.yaml", &settings);
    let known = sandbox.mu(&["config", "list"]).ok().stdout;
    assert!(known.contains("runtime.$("), "the checkout is as it is meant: {known}");
    for shell in ["bash", "zsh", "fish"] {
        let mut terminal = Shell::start(&sandbox, shell);
        terminal.press("mu config get \t\t");
        terminal.waits_for(OFFERED);
        // The line is left, and the shell waits for the next one.
        terminal.press("\u{15}echo end-of-$((1 + 1))\r");
        if shell == "fish" {
            terminal.press("\u{3}echo end-of-2\r");
        }
        terminal.waits_for("end-of-2");
        assert!(!sandbox.has("ran"), "{shell} ran a program of the checkout");
    }
}

#[test]
fn only_names_that_mean_nothing_to_a_shell_are_offered_whatever_a_checkout_names() {
    let sandbox = Sandbox::with_dependencies(&["aws/ec2"]);
    sandbox.offer("aws/ec2 1.0.0:\naws/eks 1.0.0:");
    sandbox.mu(&["get"]).ok();
    let lock = sandbox.read("Mu.lock");
    let clean = sandbox.read("Mu.yaml");
    // One of each kind of name.
    let commands: [&[&str]; 4] =
        [&["config", "get", ""], &["add", ""], &["remove", ""], &["publish", ""]];
    let mut offered = 0;
    for text in ["$(touch${IFS}ran)", "`touch ran`", "--config=$(touch ran)"] {
        let name = quoted(text);
        let id = quoted(&format!("hub.mu.com/{text}"));
        let settings = [
            format!("runtime: {{kubernetes: 1.30.0, {name}: 1.0.0}}\n"),
            format!("registries: {{{name}: \"https://x.example/\"}}\n"),
            format!("overrides: {{{id}: ./x}}\n"),
            format!("patches: {{{id}: patches/x.patch}}\n"),
            format!("packages: {{{id}: {{provides: [{name}]}}}}\n"),
            format!("aliases: {{{id}: x.example/}}\n"),
            format!("{name}: 1\n"),
            format!("trust: {{{name}: [x]}}\n"),
        ];
        let manifests = [
            clean.replace("acme/web", text),
            format!("{clean}exports: {{{name}: }}\nprovides: [{name}]\n"),
            format!("{clean}devDependencies: [{id}]\n"),
        ];
        let locks = [lock.replace("hub.mu.com/aws/ec2", text), lock.replace("aws/ec2", text)];
        let changed = (settings.iter().map(|text| (".mu/workspace.yaml", text)))
            .chain(manifests.iter().map(|text| ("Mu.yaml", text)))
            .chain(locks.iter().map(|text| ("Mu.lock", text)));
        for (file, content) in changed {
            for (file, content) in
                [(".mu/workspace.yaml", ""), ("Mu.yaml", &*clean), ("Mu.lock", &*lock)]
            {
                sandbox.write(file, content);
            }
            sandbox.write(file, content);
            for words in commands {
                let run = sandbox.mu(&[&["__complete", "--"], words].concat()).ok();
                for line in run.stdout.lines() {
                    offered += 1;
                    let is_plain = |letter: char| {
                        letter.is_ascii_alphanumeric() || "._/+:@#^~=-".contains(letter)
                    };
                    assert!(line.chars().all(is_plain) && !line.starts_with('-'), "{line:?}");
                }
            }
        }
    }
    assert!(offered > 50, "only {offered} names");
}

#[cfg(feature = "publish")]
#[test]
fn packages_of_a_hub_complete_once_its_server_was_searched() {
    let sandbox = Sandbox::new();
    sandbox.mu(&["hub", "init", "../srv"]).ok();
    let served = Served::start(&sandbox, "../srv", &[]);
    sandbox.offer("acme/vpc 1.0.0:\nacme/web 1.0.0:");
    let add = ["hub", "token", "add", "../srv", "me", "--namespace", "acme", "--json"];
    let token = sandbox.mu(&add).ok().json()["token"].as_str().expect("is a token").to_owned();
    for name in ["vpc", "web"] {
        let archive = std::fs::read(sandbox.hub().archive(&format!("acme/{name}"), "1.0.0"));
        let archive = archive.expect("was published");
        served.put(&token, &format!("acme/{name}/1.0.0"), &archive).is(201);
    }
    sandbox.hub_is_at(&format!("http://{}/", served.address));
    let complete = || sandbox.mu(&["__complete", "--", "add", "acme/"]).ok().stdout;
    assert_eq!(complete(), "");
    sandbox.mu(&["search", "vpc"]).ok().says(&["acme/vpc"]);
    assert_eq!(complete(), "acme/vpc\nacme/web\n");
    sandbox.mu(&["search", "web", "--offline"]).ok().says(&["acme/web"]);
}

#[test]
fn commands_come_before_options_and_registries_and_topics_complete() {
    let sandbox = Sandbox::new();
    sandbox.mu(&["registry", "add", "acme.co/", "https://acme.co/"]).ok();
    let complete = |words: &[&str]| {
        let words: Vec<&str> = [&["__complete", "--"], words].concat();
        sandbox.mu(&words).ok().stdout
    };
    assert_eq!(complete(&["login", ""]), "acme.co\nhub.mu.com\n");
    assert_eq!(complete(&["registry", "rm", ""]), "acme.co/\nhub.mu.com/\n");
    assert_eq!(complete(&["help", "re"]), "references\nregistry\nremove\nresolve\n");
    let mut terminal = Shell::start(&sandbox, "bash");
    terminal.press("mu \t\t");
    terminal.waits_for("init ");
    terminal.press("\u{15}mu registry \t\t");
    terminal.waits_for("remove");
    assert!(!terminal.printed.contains("--offline"));
}
