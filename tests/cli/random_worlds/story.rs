//! A workspace, what was done in it so far, and runs of programs that end.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use mu_testing::git;

use crate::support::{Run, Sandbox, tree, write};

/// After which a program hangs. Each takes a fraction of a second.
const PATIENCE: Duration = Duration::from_secs(300);

/// A workspace and its history.
pub(super) struct Story {
    pub(super) sandbox: Sandbox,
    /// A shell's commands that do the same again.
    pub(super) script: String,
}

/// What a person has in a workspace: files by path, without what Git and mu keep for themselves.
pub(super) type State = std::collections::BTreeMap<String, (char, Vec<u8>)>;

impl Story {
    /// An empty one, in which `hub` is the hub, and these `folders` outside of it are trusted.
    pub(super) fn new(hub: &str, folders: &str) -> Self {
        let sandbox = Sandbox::new();
        let config =
            format!("registries: {{hub.mu.com/: \"{hub}\"}}\ntrust: {{folders: {folders}}}\n");
        write(sandbox.root(), "home/.mu/config.yaml", &config);
        let mut story = Self { sandbox, script: String::new() };
        let root = story.sandbox.root().display().to_string();
        let lines = [
            format!("mkdir -p {root}/home/.mu {root}/work/.mu && cd {root}/work"),
            format!(
                "export HOME={root}/home MU_HOME={root}/home/.mu MU_CACHE_DIR={root}/cache MUROOT={root}/runtime"
            ),
            "export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1".to_owned(),
            format!("cat >$MU_HOME/config.yaml <<'END'\n{}\nEND", config.trim_end()),
        ];
        lines.iter().for_each(|line| story.line(line));
        story
    }

    fn line(&mut self, line: &str) {
        self.script.push_str(line);
        self.script.push('\n');
    }

    /// Says something between the commands.
    pub(super) fn note(&mut self, note: &str) {
        note.lines().for_each(|line| self.line(&format!("# {line}")));
    }

    fn folder(&self) -> PathBuf {
        self.sandbox.path("work")
    }

    /// Runs mu in the workspace.
    pub(super) fn mu(&mut self, arguments: &[&str]) -> Run {
        self.mu_in("work", arguments)
    }

    /// Runs mu in a folder of the sandbox.
    pub(super) fn mu_in(&mut self, folder: &str, arguments: &[&str]) -> Run {
        let words: Vec<String> = arguments.iter().map(|word| quoted(word)).collect();
        let command = format!("mu {}", words.join(" "));
        let place = if folder == "work" { String::new() } else { format!(" -C ../{folder}") };
        self.line(&command.replacen("mu", &format!("mu{place}"), 1));
        let mut program = self.sandbox.command(arguments);
        program.current_dir(self.sandbox.path(folder));
        let (output, has_hung) = ended(program);
        let run = Run::new(&command, &output, &[]);
        let said = run.shown().to_owned();
        self.note(&said.lines().skip(1).collect::<Vec<_>>().join("\n"));
        assert!(!has_hung, "it hangs: {said}");
        assert!(matches!(run.status, 0..=2), "it ended otherwise than by itself: {said}");
        run
    }

    /// Expects that the lock in a folder fits; if it does not, what it should be is noted.
    pub(super) fn fits(&mut self, folder: &str) {
        let run = self.mu_in(folder, &["get", "--locked"]);
        if run.status != 0 {
            self.mu_in(folder, &["get"]);
            let place = format!("../{folder}");
            self.git(&["-C", &place, "diff", "--", "Mu.lock", "Mu.yaml"]);
        }
        run.ok();
    }

    /// Runs Git in the workspace; whether it succeeded.
    pub(super) fn git(&mut self, arguments: &[&str]) -> (bool, String) {
        let words: Vec<String> = arguments.iter().map(|word| quoted(word)).collect();
        self.line(&format!("git {}", words.join(" ")));
        let mut command = Command::new("git");
        command.args([
            "-c",
            "user.name=Ada",
            "-c",
            "user.email=ada@example.com",
            "-c",
            "core.hooksPath=/dev/null",
        ]);
        command.args(arguments).current_dir(self.folder()).env_clear();
        command.envs(git::variables(&self.sandbox.path("home")));
        let (output, has_hung) = ended(command);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(!has_hung, "git hangs");
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        self.note(said.trim_end());
        (output.status.success(), said)
    }

    /// The same, where it must succeed.
    pub(super) fn git_ok(&mut self, arguments: &[&str]) -> String {
        let (is_ok, said) = self.git(arguments);
        assert!(is_ok, "git {arguments:?}: {said}");
        said
    }

    /// Commits everything that Git does not ignore.
    pub(super) fn commit(&mut self) {
        self.git_ok(&["add", "--all"]);
        self.git_ok(&["commit", "--quiet", "--allow-empty", "--message", "a change"]);
    }

    /// Writes a file of the workspace.
    pub(super) fn write(&mut self, path: &str, text: &str) {
        let folder = Path::new(path).parent().unwrap_or(Path::new("")).display().to_string();
        let make = if folder.is_empty() { String::new() } else { format!("mkdir -p {folder}; ") };
        self.line(&format!("{make}cat >{path} <<'END'\n{}\nEND", text.trim_end_matches('\n')));
        write(&self.folder(), path, text);
    }

    /// Removes files or folders of the sandbox, which may be read-only.
    pub(super) fn remove(&mut self, path: &str) {
        self.line(&format!("chmod -R u+w ../{path}; rm -rf ../{path}"));
        let path = self.sandbox.path(path);
        if path.is_dir() {
            std::fs::remove_dir_all(&path).expect("is ours");
        } else if path.symlink_metadata().is_ok() {
            std::fs::remove_file(&path).expect("is ours");
        }
    }

    pub(super) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.folder().join(path)).unwrap_or_default()
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.folder().join(path).symlink_metadata().is_ok()
    }

    /// The files of a checkout.
    pub(super) fn state(&self, folder: &str) -> State {
        let mut files = tree(&self.sandbox.path(folder));
        files.retain(|path, _| {
            !path.starts_with(".git/")
                && !path.contains("/.git/")
                && !path.starts_with(".mu/packs/.mu/")
        });
        files
    }
}

/// The first difference between two states.
pub(super) fn difference(before: &State, after: &State) -> Option<String> {
    let mut text = String::new();
    for path in before.keys().chain(after.keys().filter(|path| !before.contains_key(*path))) {
        if before.get(path) == after.get(path) {
            continue;
        }
        let shown = |state: &State| {
            let shown = |(mode, content): &(char, Vec<u8>)| {
                format!("{mode} {}", String::from_utf8_lossy(content))
            };
            state.get(path).map_or_else(|| "(nothing)".to_owned(), shown)
        };
        let _ =
            write!(text, "{path}:\n--- before\n{}\n--- after\n{}\n", shown(before), shown(after));
    }
    (!text.is_empty()).then_some(text)
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=@+,".contains(letter);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{word}'") }
}

/// Waits for a program, and ends it if it does not end; whether that was so.
fn ended(mut command: Command) -> (Output, bool) {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("can be started");
    let process = rustix::process::Pid::from_child(&child);
    let (ends, has_ended) = channel::<()>();
    let watch = std::thread::spawn(move || {
        let hangs = has_ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout);
        if hangs {
            // If it has just ended, that is fine.
            let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
        }
        hangs
    });
    let output = child.wait_with_output().expect("ends");
    drop(ends);
    (output, watch.join().expect("only waits"))
}
