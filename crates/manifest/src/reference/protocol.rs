//! The part before `://`: how to reach a package. It is not part of the package's identity.

use std::fmt;

/// How to reach a package, as the reference says.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// `https://`, the default.
    Https,
    /// `http://`
    Http,
    /// `ssh://`, which is Git's.
    Ssh,
    /// `git://`
    Git,
    /// `git+https://`
    GitHttps,
    /// `git+http://`
    GitHttp,
    /// `git+ssh://`, and the scp form `git@host:org/repo`.
    GitSsh,
    /// `git+file://`: a repository on this machine.
    GitFile,
    /// `helm+https://`: a chart repository.
    HelmHttps,
    /// `helm+http://`
    HelmHttp,
    /// `helm+file://`: a chart repository on this machine.
    HelmFile,
    /// `kudo+https://`: a repository of KUDO operators.
    KudoHttps,
    /// `kudo+http://`
    KudoHttp,
    /// `kudo+file://`: a repository of KUDO operators on this machine.
    KudoFile,
    /// `olm+https://`: a catalog of operators.
    OlmHttps,
    /// `olm+http://`
    OlmHttp,
    /// `olm+file://`: a catalog of operators on this machine.
    OlmFile,
    /// `oci://`
    Oci,
    /// `file://`: a folder on this machine.
    File,
    /// A scheme that a plugin serves, in lower case.
    Plugin(Box<str>),
}

/// The schemes, in lower case. What an artifact in a registry is, its media types tell.
static SCHEMES: [(&str, Protocol); 21] = [
    ("https", Protocol::Https),
    ("http", Protocol::Http),
    ("ssh", Protocol::Ssh),
    ("git", Protocol::Git),
    ("git+https", Protocol::GitHttps),
    ("git+http", Protocol::GitHttp),
    ("git+ssh", Protocol::GitSsh),
    ("git+file", Protocol::GitFile),
    ("helm+https", Protocol::HelmHttps),
    ("helm+http", Protocol::HelmHttp),
    ("helm+file", Protocol::HelmFile),
    ("kudo+https", Protocol::KudoHttps),
    ("kudo+http", Protocol::KudoHttp),
    ("kudo+file", Protocol::KudoFile),
    ("olm+https", Protocol::OlmHttps),
    ("olm+http", Protocol::OlmHttp),
    ("olm+file", Protocol::OlmFile),
    ("oci", Protocol::Oci),
    ("helm+oci", Protocol::Oci),
    ("kudo+oci", Protocol::Oci),
    ("file", Protocol::File),
];

impl Protocol {
    /// All schemes but those of plugins.
    pub fn built_in_schemes() -> impl Iterator<Item = &'static str> {
        SCHEMES.iter().map(|(scheme, _)| *scheme)
    }

    /// The protocol of a scheme in lower case, which must consist of valid letters.
    pub(super) fn from_scheme(scheme: &str) -> Self {
        let known = SCHEMES.iter().find(|(known, _)| *known == scheme);
        known.map_or_else(|| Self::Plugin(scheme.into()), |(_, protocol)| protocol.clone())
    }

    /// The scheme, such as `git+https`.
    pub fn as_str(&self) -> &str {
        if let Self::Plugin(scheme) = self {
            return scheme;
        }
        let known = SCHEMES.iter().find(|(_, protocol)| protocol == self);
        known.expect("each has its scheme in the table").0
    }

    /// What is before the `+` of its scheme, if anything is, and what is after it; nothing of a plugin's.
    fn parts(&self) -> (&str, &str) {
        let scheme = if let Self::Plugin(_) = self { "" } else { self.as_str() };
        scheme.split_once('+').unwrap_or(("", scheme))
    }

    /// Whether only Git uses it.
    pub fn is_git(&self) -> bool {
        let (tool, way) = self.parts();
        tool == "git" || matches!(way, "git" | "ssh")
    }

    /// The provider that it names before its `+`, of those that hold packages of another format.
    pub fn provider(&self) -> Option<&'static str> {
        let (tool, _) = self.parts();
        ["helm", "kudo", "olm"].into_iter().find(|provider| *provider == tool)
    }

    /// Whether it names something on this machine, so that its path is all there is.
    pub fn is_file(&self) -> bool {
        let (tool, way) = self.parts();
        !tool.is_empty() && way == "file"
    }

    /// Whether it uses http, where many hosts accept a token as the user.
    pub(super) fn is_http(&self) -> bool {
        matches!(self.parts().1, "https" | "http")
    }

    /// The port that need not be written.
    pub(super) fn default_port(&self) -> Option<u16> {
        match self.parts().1 {
            "https" | "oci" => Some(443),
            "http" => Some(80),
            "ssh" => Some(22),
            "git" => Some(9418),
            _ => None,
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
