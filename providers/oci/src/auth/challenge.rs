//! The credentials that a server requires, from `WWW-Authenticate` (RFC 9110, section 11.6.1).

use std::collections::BTreeMap;

/// The credentials that a server requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Challenge {
    /// A user and a password.
    Basic,
    /// A token from the server that it names.
    Bearer {
        /// The server that hands out tokens.
        realm: String,
        /// The name of the registry there.
        service: Option<String>,
        /// The access that the token must allow.
        scope: Option<String>,
    },
}

impl Challenge {
    /// The best of the challenges in these headers; `None` if mu knows none of them.
    pub(crate) fn best(headers: &[&str]) -> Option<Self> {
        let all: Vec<(String, BTreeMap<String, String>)> =
            headers.iter().flat_map(|header| parse(header)).collect();
        let bearer = all.iter().find_map(|(scheme, parameters)| {
            let realm = parameters.get("realm").filter(|_| scheme == "bearer")?.clone();
            let (service, scope) =
                (parameters.get("service").cloned(), parameters.get("scope").cloned());
            Some(Self::Bearer { realm, service, scope })
        });
        bearer.or_else(|| all.iter().any(|(scheme, _)| scheme == "basic").then_some(Self::Basic))
    }
}

/// The access that a registry asks for, as it writes it: `repository:NAME:pull`, or anything else.
pub(crate) struct Scope<'text>(pub(crate) &'text str);

impl Scope<'_> {
    /// This scope, with the right to push: some registries name only that to pull, whatever was asked.
    pub(crate) fn with_push(&self, writes: bool) -> String {
        let is_one = self.0.starts_with("repository:") && !self.0.contains(' ');
        let (before, actions) = self.0.rsplit_once(':').unwrap_or_default();
        if !writes || !is_one || actions.split(',').any(|action| matches!(action, "push" | "*")) {
            return self.0.to_owned();
        }
        match actions {
            "" => format!("{before}:pull,push"),
            actions => format!("{before}:{actions},push"),
        }
    }

    /// Whether it is for the same thing as `own`, and asks for nothing else.
    pub(crate) fn is_covered_by(&self, own: &str) -> bool {
        let parts = |scope: &str| {
            let (what, actions) = scope.rsplit_once(':').unwrap_or((scope, ""));
            (what.to_owned(), actions.split(',').map(str::to_owned).collect::<Vec<_>>())
        };
        let ((what, actions), (own, allowed)) = (parts(self.0), parts(own));
        what == own && actions.iter().all(|action| allowed.contains(action))
    }
}

/// The schemes of a header, each with its parameters; names are in lower case.
fn parse(header: &str) -> Vec<(String, BTreeMap<String, String>)> {
    let mut all: Vec<(String, BTreeMap<String, String>)> = Vec::new();
    let mut rest = header;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let end = rest.find([' ', '\t', ',', '=']).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        if word.is_empty() {
            return all;
        }
        let Some(value) = after.trim_start_matches([' ', '\t']).strip_prefix('=') else {
            all.push((word.to_ascii_lowercase(), BTreeMap::new()));
            rest = after;
            continue;
        };
        let (value, after) = parameter(value.trim_start_matches([' ', '\t']));
        if let Some((_, parameters)) = all.last_mut() {
            parameters.insert(word.to_ascii_lowercase(), value);
        }
        rest = after;
    }
}

/// The value that a text begins with, and what follows it.
fn parameter(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        let (value, after) = text.split_at(end);
        return (value.to_owned(), after);
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, quoted.get(at + 1..).unwrap_or_default()),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            other => value.push(other),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_stay_as_they_are_except_for_pushing() {
        for (scope, pushed, usual) in [
            ("repository:a/b:pull", "repository:a/b:pull,push", true),
            ("repository:a/b:pull,push", "repository:a/b:pull,push", true),
            ("repository:h:5000/a/b:pull", "repository:h:5000/a/b:pull,push", false),
            ("repository:virtual/a/b:pull", "repository:virtual/a/b:pull,push", false),
            ("repository:a/b:*", "repository:a/b:*", false),
            ("repository:a/b:", "repository:a/b:pull,push", false),
            (
                "repository:a/b:pull repository:c:pull",
                "repository:a/b:pull repository:c:pull",
                false,
            ),
            ("aws", "aws", false),
            ("registry:catalog:*", "registry:catalog:*", false),
            ("", "", false),
        ] {
            assert_eq!(Scope(scope).with_push(false), scope);
            assert_eq!(Scope(scope).with_push(true), pushed, "{scope}");
            assert_eq!(Scope(scope).is_covered_by("repository:a/b:pull,push"), usual, "{scope}");
        }
    }

    #[test]
    fn challenges_are_read() {
        let docker = r#"Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:a/b:pull,push""#;
        let bearer = |realm: &str, service: Option<&str>, scope: Option<&str>| Challenge::Bearer {
            realm: realm.to_owned(),
            service: service.map(str::to_owned),
            scope: scope.map(str::to_owned),
        };
        let expected = bearer(
            "https://auth.docker.io/token",
            Some("registry.docker.io"),
            Some("repository:a/b:pull,push"),
        );
        assert_eq!(Challenge::best(&[docker]), Some(expected));
        for (header, expected) in [
            ("Basic realm=\"x, Bearer realm=y\"", Some(Challenge::Basic)),
            ("basic", Some(Challenge::Basic)),
            ("Basic realm=x, BEARER Realm = \"a\\\"b\"", Some(bearer("a\"b", None, None))),
            ("Bearer", None),
            ("Negotiate", None),
            ("=,\"", None),
            ("Bearer realm=\"unclosed", Some(bearer("unclosed", None, None))),
        ] {
            assert_eq!(Challenge::best(&[header]), expected, "{header}");
        }
        assert_eq!(Challenge::best(&["Negotiate", "Basic"]), Some(Challenge::Basic));
    }
}
