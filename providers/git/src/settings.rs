//! The user's Git settings about reaching remotes.
//!
//! mu asks Git itself, which knows its files, their order and what they include. Of its many settings, mu
//! respects `core.sshCommand` and `url.….insteadOf`; another module asks credential helpers.

use mu_provider::ProviderError;

use crate::programs::GitPrograms;
use crate::remote_url::RemoteUrl;

/// The settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// `core.sshCommand`.
    pub(crate) ssh_command: Option<String>,
    /// The beginning of a URL, and its replacement.
    instead_of: Vec<(String, String)>,
}

impl Settings {
    /// Asks Git; without Git, nothing is set.
    pub(crate) fn read(programs: &GitPrograms) -> Self {
        const KEYS: &str = r"^(core\.sshcommand|url\..*\.insteadof)$";
        let Ok(mut command) = programs.git() else { return Self::default() };
        command.args(["config", "--null", "--get-regexp", KEYS]).stdin(std::process::Stdio::null());
        let output = command.output().map(|output| output.stdout).unwrap_or_default();
        Self::parse(&String::from_utf8_lossy(&output))
    }

    /// Reads `KEY`, line feed, `VALUE`, zero byte, again and again.
    fn parse(text: &str) -> Self {
        let mut settings = Self::default();
        for (key, value) in text.split('\0').filter_map(|entry| entry.split_once('\n')) {
            if key == "core.sshcommand" {
                settings.ssh_command = Some(value.to_owned());
            } else if let Some(url) = key.strip_prefix("url.")
                && let Some(url) = url.strip_suffix(".insteadof")
            {
                settings.instead_of.push((value.to_owned(), url.to_owned()));
            }
        }
        settings
    }

    /// The URL to use for `remote`, if the user's Git settings have another one.
    pub(crate) fn instead_of(
        &self,
        remote: &RemoteUrl,
    ) -> Result<Option<RemoteUrl>, ProviderError> {
        let text = remote.to_string();
        let fitting = self.instead_of.iter().filter(|(start, _)| text.starts_with(start));
        let Some((start, other)) = fitting.max_by_key(|(start, _)| start.len()) else {
            return Ok(None);
        };
        let other = format!("{other}{}", &text[start.len()..]);
        RemoteUrl::substitute(remote, &other).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use mu_provider::SafeUrl;

    use super::*;

    #[test]
    fn the_longest_start_is_replaced() {
        let settings = Settings::parse(
            "core.sshcommand\nssh -v\0url.git@example.com:.insteadof\nhttps://example.com/\0\
             url.https://mirror.org/a.b/.insteadof\nhttps://example.com/big/\0",
        );
        assert_eq!(settings.ssh_command.as_deref(), Some("ssh -v"));
        for (text, expected) in [
            ("https://example.com/a/b.git", Some("git@example.com:a/b.git")),
            ("https://example.com/big/b", Some("https://mirror.org/a.b/b")),
            ("https://example.org/a", None),
        ] {
            let url = SafeUrl::parse(text).expect("is a URL");
            let remote = RemoteUrl::new(&url, false).expect("is accepted");
            let other = settings.instead_of(&remote).expect("is accepted");
            assert_eq!(other.map(|other| other.to_string()).as_deref(), expected, "{text}");
        }
    }
}
