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

impl Protocol {
    /// The protocol of a scheme in lower case, which must consist of valid letters.
    pub(super) fn from_scheme(scheme: &str) -> Self {
        match scheme {
            "https" => Self::Https,
            "http" => Self::Http,
            "ssh" => Self::Ssh,
            "git" => Self::Git,
            "git+https" => Self::GitHttps,
            "git+http" => Self::GitHttp,
            "git+ssh" => Self::GitSsh,
            "git+file" => Self::GitFile,
            "helm+https" => Self::HelmHttps,
            "helm+http" => Self::HelmHttp,
            "helm+file" => Self::HelmFile,
            "kudo+https" => Self::KudoHttps,
            "kudo+http" => Self::KudoHttp,
            "kudo+file" => Self::KudoFile,
            "olm+https" => Self::OlmHttps,
            "olm+http" => Self::OlmHttp,
            "olm+file" => Self::OlmFile,
            // What an artifact in a registry is, its media types tell.
            "oci" | "helm+oci" | "kudo+oci" => Self::Oci,
            "file" => Self::File,
            other => Self::Plugin(other.into()),
        }
    }

    /// The scheme, such as `git+https`.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
            Self::Ssh => "ssh",
            Self::Git => "git",
            Self::GitHttps => "git+https",
            Self::GitHttp => "git+http",
            Self::GitSsh => "git+ssh",
            Self::GitFile => "git+file",
            Self::HelmHttps => "helm+https",
            Self::HelmHttp => "helm+http",
            Self::HelmFile => "helm+file",
            Self::KudoHttps => "kudo+https",
            Self::KudoHttp => "kudo+http",
            Self::KudoFile => "kudo+file",
            Self::OlmHttps => "olm+https",
            Self::OlmHttp => "olm+http",
            Self::OlmFile => "olm+file",
            Self::Oci => "oci",
            Self::File => "file",
            Self::Plugin(scheme) => scheme,
        }
    }

    /// Whether only Git uses it.
    pub fn is_git(&self) -> bool {
        matches!(
            self,
            Self::Ssh | Self::Git | Self::GitHttps | Self::GitHttp | Self::GitSsh | Self::GitFile
        )
    }

    /// The provider that it names before its `+`, of those that hold packages of another format.
    pub fn provider(&self) -> Option<&'static str> {
        match self {
            Self::HelmHttps | Self::HelmHttp | Self::HelmFile => Some("helm"),
            Self::KudoHttps | Self::KudoHttp | Self::KudoFile => Some("kudo"),
            Self::OlmHttps | Self::OlmHttp | Self::OlmFile => Some("olm"),
            _ => None,
        }
    }

    /// Whether it names something on this machine, so that its path is all there is.
    pub fn is_file(&self) -> bool {
        matches!(self, Self::GitFile | Self::HelmFile | Self::KudoFile | Self::OlmFile)
    }

    /// Whether it uses http, where many hosts accept a token as the user.
    pub(super) fn is_http(&self) -> bool {
        matches!(
            self,
            Self::Https
                | Self::Http
                | Self::GitHttps
                | Self::GitHttp
                | Self::HelmHttps
                | Self::HelmHttp
                | Self::KudoHttps
                | Self::KudoHttp
                | Self::OlmHttps
                | Self::OlmHttp
        )
    }

    /// The port that need not be written.
    pub(super) fn default_port(&self) -> Option<u16> {
        match self {
            Self::Https
            | Self::GitHttps
            | Self::HelmHttps
            | Self::KudoHttps
            | Self::OlmHttps
            | Self::Oci => Some(443),
            Self::Http | Self::GitHttp | Self::HelmHttp | Self::KudoHttp | Self::OlmHttp => {
                Some(80)
            }
            Self::Ssh | Self::GitSsh => Some(22),
            Self::Git => Some(9418),
            Self::GitFile
            | Self::HelmFile
            | Self::KudoFile
            | Self::OlmFile
            | Self::File
            | Self::Plugin(_) => None,
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
