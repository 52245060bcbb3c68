//! The passwords of chart repositories that the user has given to Helm.
//!
//! They are read only: `helm repo add` writes them.

use std::path::Path;

use mu_formats::Guarded;
use mu_provider::SafeUrl;
use mu_provider::http::{AskedServer, Credential, Secret};

use crate::fs;

/// Repositories with passwords.
pub(super) struct Repositories(Vec<(SafeUrl, String, Secret)>);

impl Repositories {
    /// Those in Helm's `repositories.yaml`; none if it cannot be read.
    pub(super) fn read(file: &Path) -> Self {
        let text = fs::read_text_if_there(file).ok().flatten().unwrap_or_default();
        let all = Guarded::read(&text).into_iter().filter_map(|repository| {
            let url = SafeUrl::parse(&repository.url).ok()?.as_folder();
            Some((url, repository.user, Secret::new(repository.password)))
        });
        Self(all.collect())
    }

    /// The password for a server: that of the repository which what is asked for is in, or else of another one there, because archives
    /// may be beside it.
    pub(super) fn find(&self, asked: &AskedServer) -> Option<Credential> {
        let path = asked.url().as_url().path();
        let there = self.0.iter().filter(|(url, ..)| url.is_same_server(asked.url()));
        // The repository whose folder is nearest around the URL. One that is only on the same server comes last.
        let rank = |url: &SafeUrl| {
            let folder = url.as_url().path();
            if path.starts_with(folder) { folder.len() } else { 0 }
        };
        let (_, user, password) = there.max_by_key(|(url, ..)| rank(url))?;
        let own = Credential::password(asked, user, password.clone());
        Some(own.known_from("Helm's repositories.yaml"))
    }
}

#[cfg(test)]
mod tests {
    use mu_provider::http::{Recipient, TokenHosts};

    use super::*;

    #[test]
    fn a_repositorys_password_is_for_its_own_server_alone() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let file = folder.path().join("repositories.yaml");
        let entry = |url: &str, user: &str| {
            format!("- {{name: {user}, url: '{url}', username: {user}, password: x}}\n")
        };
        let text = [
            "repositories:\n".to_owned(),
            entry("https://h.example/charts", "one"),
            entry("https://h.example/charts/inner/", "two"),
            entry("https://h.example:8443/", "three"),
            "- {name: open, url: 'https://open.example/', username: '', password: ''}\n".to_owned(),
        ];
        std::fs::write(&file, text.concat()).expect("can be written");
        let repositories = Repositories::read(&file);
        for (text, user) in [
            ("https://h.example/charts/index.yaml", Some("one")),
            ("https://h.example/charts/inner/index.yaml", Some("two")),
            ("https://h.example:8443/x.tgz", Some("three")),
            ("http://h.example/charts/index.yaml", None),
            ("https://i.example/charts/index.yaml", None),
            ("https://open.example/index.yaml", None),
        ] {
            let url = SafeUrl::parse(text).expect("is a URL");
            let found = repositories.find(&AskedServer::new(&url));
            let released = found.map(|own| {
                own.release(Recipient::Server(&url), &TokenHosts::default()).expect("is its own")
            });
            let found = released.and_then(|released| released.user_and_password(""));
            assert_eq!(found.map(|(user, _)| user).as_deref(), user, "{text}");
        }
        let other = SafeUrl::parse("https://h.example/other.tgz").expect("is a URL");
        assert!(repositories.find(&AskedServer::new(&other)).is_some(), "it is the same server");
    }
}
