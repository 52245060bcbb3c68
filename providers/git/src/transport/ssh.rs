//! Git over ssh, with the user's own `ssh`: its agent, known hosts and configuration work as usual.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use mu_provider::{ErrorKind, Program, ProviderError};

use super::pipe::{self, Ending};
use super::session::{Session, describe};
use crate::programs::GitPrograms;
use crate::remote_url::RemoteUrl;
use crate::settings::Settings;
use crate::wire::WireError;

/// Which options an ssh program takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variant {
    OpenSsh,
    Putty,
    /// No options: only host and command.
    Simple,
}

/// Begins a conversation over ssh.
pub(super) fn open(
    remote: &RemoteUrl,
    programs: &GitPrograms,
    settings: &Settings,
) -> Result<Box<dyn Session>, ProviderError> {
    let (command, name) = command(remote, programs, settings)?;
    pipe::open(remote, command, explain).map_err(|error| not_run(remote, &name, error))?
}

fn not_run(remote: &RemoteUrl, name: &str, error: io::Error) -> ProviderError {
    ProviderError::new(ErrorKind::Network, format!("cannot run `{name}` to reach `{remote}`"))
        .because(error)
        .hint("install OpenSSH, or name another program in GIT_SSH_COMMAND")
}

fn command(
    remote: &RemoteUrl,
    programs: &GitPrograms,
    settings: &Settings,
) -> Result<(Command, String), ProviderError> {
    let (mut command, name) = program(remote, programs, settings)?;
    // An address of six is in brackets only in URLs.
    let host = remote.host().trim_matches(['[', ']']);
    let said = programs.variable("GIT_SSH_VARIANT").or(settings.ssh_variant.as_deref());
    let said = said.filter(|said| !said.is_empty() && *said != "auto");
    let variant = match variant(&name, said) {
        // As Git finds out what a program is whose name says nothing: OpenSSH prints its configuration for a host.
        Variant::Simple if said.is_none() && remote.port().is_some() => {
            let (mut command, _) = program(remote, programs, settings)?;
            command.args(["-G", "--", host]).stdin(Stdio::null());
            let is_open_ssh = command.output().is_ok_and(|output| output.status.success());
            if is_open_ssh { Variant::OpenSsh } else { Variant::Simple }
        }
        variant => variant,
    };
    match variant {
        Variant::OpenSsh => {
            // Never asks questions, and notices when the other side has gone.
            for option in ["BatchMode=yes", "ServerAliveInterval=30", "SendEnv=GIT_PROTOCOL"] {
                command.args(["-o", option]);
            }
            if let Some(port) = remote.port() {
                command.arg("-p").arg(port.to_string());
            }
            command.arg("--");
        }
        Variant::Putty => {
            command.arg("-batch");
            if let Some(port) = remote.port() {
                command.arg("-P").arg(port.to_string());
            }
        }
        Variant::Simple if remote.port().is_some() => {
            let text =
                format!("`{remote}` has a port, and mu does not know whether `{name}` accepts one");
            return Err(ProviderError::new(ErrorKind::Refused, text)
                .hint("set GIT_SSH_VARIANT to the kind of its options: `ssh` or `plink`"));
        }
        Variant::Simple => {}
    }
    match remote.user() {
        Some(user) => command.arg(format!("{user}@{host}")),
        None => command.arg(host),
    };
    command.arg(format!("git-upload-pack {}", quote(&remote.path())));
    command.env("GIT_PROTOCOL", "version=2");
    Ok((command, name))
}

/// The program that the user has chosen for ssh, without options, and its name.
fn program(
    remote: &RemoteUrl,
    programs: &GitPrograms,
    settings: &Settings,
) -> Result<(Command, String), ProviderError> {
    let line = programs.variable("GIT_SSH_COMMAND").or(settings.ssh_command.as_deref());
    let line = line.filter(|line| !line.trim().is_empty());
    let found = |name: &str| programs.find(name).map_err(|error| not_run(remote, name, error));
    let (command, name) = match (line, programs.variable("GIT_SSH")) {
        (Some(line), _) => {
            let mut shell = programs.command(&found("sh")?);
            shell.arg("-c").arg(format!("{line} \"$@\"")).arg(line);
            (shell, line.split_whitespace().next().unwrap_or(line))
        }
        (None, Some(named)) => {
            // A path from the user's own variable is that program, wherever it is; a name is looked for.
            let program = Program::at(Path::new(named)).map_or_else(|| found(named), Ok)?;
            (programs.command(&program), named)
        }
        (None, None) => (programs.command(&found("ssh")?), "ssh"),
    };
    Ok((command, name.to_owned()))
}

fn variant(name: &str, said: Option<&str>) -> Variant {
    let program = name.rsplit(['/', '\\']).next().unwrap_or(name).to_ascii_lowercase();
    let program = program.strip_suffix(".exe").unwrap_or(&program);
    match said.unwrap_or(program) {
        "ssh" => Variant::OpenSsh,
        "plink" | "putty" | "tortoiseplink" => Variant::Putty,
        _ => Variant::Simple,
    }
}

/// Quotes for the shell at the other end exactly as Git does, because some servers parse it themselves.
fn quote(path: &str) -> String {
    format!("'{}'", path.replace('\'', r"'\''").replace('!', r"'\!'"))
}

fn explain(remote: &RemoteUrl, ending: Ending) -> ProviderError {
    let Ending { code, words, error } = ending;
    if !matches!(error, WireError::Cut | WireError::Io(_)) {
        return describe(remote, error);
    }
    /// ssh's own exit code for failures; all others are the command's.
    const SSH_FAILED: i32 = 255;
    let is_silent = words.trim().is_empty();
    let reason = if is_silent { error.to_string() } else { words };
    let failed = |kind, what: &str| ProviderError::new(kind, format!("{what} `{remote}`"));
    match code {
        Some(SSH_FAILED) if reason.contains("Host key verification failed") => {
            let failure = failed(ErrorKind::Auth, "ssh does not trust the host of");
            let user = remote.user().map(|user| format!("{user}@")).unwrap_or_default();
            let (host, port) = (remote.host().trim_matches(['[', ']']), remote.port());
            let option = port.map(|port| format!("-p {port} ")).unwrap_or_default();
            // That is how the list of known hosts calls one with a port.
            let known = port.map_or_else(|| host.to_owned(), |port| format!("'[{host}]:{port}'"));
            failure.hint(format!("connect by hand once: `ssh {option}{user}{host}`")).hint(format!(
                "if its key changed, make sure that it is right; `ssh-keygen -R {known}` forgets the old one"
            ))
        }
        Some(SSH_FAILED) if reason.contains("Permission denied") => failed(
            ErrorKind::Auth,
            "ssh was denied access to",
        )
        .hint(
            "mu never asks for a passphrase: add the key to ssh-agent, and to the host's account",
        ),
        None | Some(0 | SSH_FAILED) => failed(ErrorKind::Network, "ssh could not reach"),
        // A shell says what it has not found: that at the other end Git, and that on this machine the user's own program.
        Some(126 | 127) if !reason.contains("git-upload-pack") => {
            failed(ErrorKind::Network, "the program for ssh cannot be run to reach")
                .hint("GIT_SSH_COMMAND, GIT_SSH or Git's `core.sshCommand` names it")
        }
        Some(126 | 127) => failed(ErrorKind::Protocol, "git is not installed on the host of"),
        // Git, and every host that has its own service for it, says what is missing. What ends without a word has not asked.
        Some(code) if is_silent => {
            let failure = failed(ErrorKind::Network, "ssh could not reach");
            return failure.because(format!("it ended with the exit code {code}, and said nothing"));
        }
        Some(_) => failed(ErrorKind::NotFound, "there is no Git repository at"),
    }
    .because(reason)
}

#[cfg(all(test, unix))]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use mu_provider::{Programs, SafeUrl};

    use super::*;

    /// The program with its arguments; one that is found in `PATH` by its name.
    fn arguments(url: &str, variables: &[(&str, &str)]) -> Vec<String> {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().expect("is made");
        for name in ["ssh", "sh", "wrapper"] {
            std::fs::write(folder.path().join(name), "").expect("is written");
            let mode = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(folder.path().join(name), mode).expect("is set");
        }
        let path = folder.path().display().to_string();
        let variables: BTreeMap<String, String> = variables
            .iter()
            .chain(&[("PATH", &*path)])
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let programs = Programs::new(&Arc::new(variables), Vec::new);
        let programs = GitPrograms::new(programs, &folder.path().join("own"));
        let url = SafeUrl::parse(url).expect("is a URL");
        let remote = RemoteUrl::new(&url, false).expect("is accepted");
        let (command, _) = command(&remote, &programs, &Settings::default()).expect("is a command");
        let program = command.get_program().to_string_lossy();
        let program = program.strip_prefix(&format!("{path}/")).unwrap_or(&program);
        std::iter::once(program.to_owned())
            .chain(command.get_args().map(|argument| argument.to_string_lossy().into_owned()))
            .collect()
    }

    #[test]
    fn a_relative_path_names_no_ssh() {
        let url = SafeUrl::parse("ssh://example.com/x").expect("is a URL");
        let remote = RemoteUrl::new(&url, false).expect("is accepted");
        let variables = [("GIT_SSH".to_owned(), "bin/ssh".to_owned())];
        let programs = Programs::new(&Arc::new(BTreeMap::from(variables)), Vec::new);
        let folder = tempfile::tempdir().expect("is made");
        let programs = GitPrograms::new(programs, folder.path());
        let error = command(&remote, &programs, &Settings::default()).expect_err("is refused");
        assert_eq!(error.to_string(), "cannot run `bin/ssh` to reach `ssh://example.com/x`");
    }

    #[test]
    fn each_program_gets_its_own_options() {
        let url = "ssh://git@example.com:22/a'b!.git";
        let path = r"git-upload-pack '/a'\''b'\!'.git'";
        let options =
            ["-o", "BatchMode=yes", "-o", "ServerAliveInterval=30", "-o", "SendEnv=GIT_PROTOCOL"];
        assert_eq!(
            arguments(url, &[]),
            [&["ssh"], &options[..], &["-p", "22", "--", "git@example.com", path]].concat()
        );
        assert_eq!(
            arguments(url, &[("GIT_SSH", "/opt/plink.exe")]),
            ["/opt/plink.exe", "-batch", "-P", "22", "git@example.com", path]
        );
        let line = "ssh -i key";
        assert_eq!(
            arguments("ssh://example.com/~ada/x", &[("GIT_SSH_COMMAND", line), ("GIT_SSH", "no")]),
            [
                &["sh", "-c", "ssh -i key \"$@\"", line],
                &options[..],
                &["--", "example.com", "git-upload-pack '~ada/x'"]
            ]
            .concat()
        );
        assert_eq!(
            arguments("ssh://example.com/x", &[("GIT_SSH", "wrapper")]),
            ["wrapper", "example.com", "git-upload-pack '/x'"]
        );
        assert_eq!(
            arguments("ssh://git@[::1]/x", &[("GIT_SSH", "wrapper")]),
            ["wrapper", "git@::1", "git-upload-pack '/x'"]
        );
    }
}
