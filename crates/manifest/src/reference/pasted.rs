//! What other tools write where mu has a reference: the line to write instead.
//!
//! go-getter and Terraform (`git::https://h/x.git//sub?ref=v1`), Go and npm (`h/x@v1`), pip (`git+https://h/x@v1#subdirectory=pkg`), Docker
//! (`redis:7`, `docker://h/x:1@sha256:…`), Helm (`@acme/web`), hosts' short names (`github:a/b`), addresses of pages, and forms of scp that a reference does not have.

use super::{Protocol, Reference, ReferenceError};

/// Short names of hosts.
const HOSTS: [(&str, &str); 6] = [
    ("github:", "github.com/"),
    ("gitlab:", "gitlab.com/"),
    ("bitbucket:", "bitbucket.org/"),
    ("gh:", "github.com/"),
    ("gl:", "gitlab.com/"),
    ("bb:", "bitbucket.org/"),
];

/// Where the pages of hosts show a folder at a branch or tag.
const PAGES: [&str; 7] =
    ["/-/tree/", "/-/blob/", "/-/tags/", "/-/releases/", "/-/commit/", "/tree/", "/blob/"];

/// The reference that was probably meant by a text that is not one.
pub fn help(error: &ReferenceError) -> Option<String> {
    let pasted = || {
        let meant = error.is_of_whole_reference().then(|| meant(error.text())).flatten()?;
        Some(format!("write `{meant}`"))
    };
    error.help().or_else(|| in_helms_repository(error.text())).or_else(pasted)
}

/// What to write for a chart in a repository that Helm knows by a short name. Only the user's own Helm knows its URL.
fn in_helms_repository(text: &str) -> Option<String> {
    let (repository, chart) = text.strip_prefix('@')?.split_once('/')?;
    let is_one = !repository.is_empty() && Reference::parse(chart).is_ok();
    is_one.then(|| {
        format!(
            "write `helm+URL/{chart}`, with the URL of `{repository}` that `helm repo list` shows"
        )
    })
}

/// The parts of what was pasted.
struct Parts {
    place: String,
    folder: Option<String>,
    version: Option<String>,
}

/// The reference that a text of another tool most likely means; `None` if it is not known, or a reference already.
pub fn meant(text: &str) -> Option<String> {
    let (place, fragment) = match text.split_once('#') {
        Some((place, fragment)) => (place, Some(fragment)),
        None => (text, None),
    };
    let place = place.strip_prefix("git::").unwrap_or(place);
    let place = match place.strip_prefix("docker://") {
        Some(image) => format!("oci://{image}"),
        None => place.to_owned(),
    };
    let mut parts = Parts { place, folder: None, version: None };
    parts.take_fragment(fragment.unwrap_or_default());
    parts.take_query();
    parts.take_user();
    parts.name_host();
    parts.take_folder();
    parts.take_page();
    parts.take_version();
    parts.take_range();
    let Parts { place, folder, version } = parts;
    let mut written = place.trim_end_matches('/').to_owned();
    let mut version = version;
    if let Some(folder) = folder.as_deref().map(|folder| folder.trim_matches('/'))
        && !folder.is_empty()
    {
        written.push('/');
        written.push_str(folder);
        // In a folder, its own tags are named without it.
        version = version.map(|version| {
            let own = version.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
            own.map(str::to_owned).unwrap_or(version)
        });
    }
    if let Some(version) = version.filter(|version| !version.is_empty()) {
        written.push('#');
        written.push_str(&version);
    }
    (written != text && Reference::parse(&written).is_ok()).then_some(written)
}

impl Parts {
    /// Where the host ends and the path begins.
    fn path_start(&self) -> usize {
        let authority = self.place.find("://").map_or(0, |colon| colon + "://".len());
        self.place[authority..].find('/').map_or(self.place.len(), |slash| authority + slash)
    }

    /// `subdirectory=pkg` and `semver:^1` after the `#`.
    fn take_fragment(&mut self, fragment: &str) {
        if let Some(range) = fragment.strip_prefix("semver:") {
            self.version = Some(range.to_owned());
        } else if fragment.contains('=') && fragment.split('&').all(|pair| pair.contains('=')) {
            let mut pairs = fragment.split('&').filter_map(|pair| pair.split_once('='));
            let folder = pairs.find(|(key, _)| *key == "subdirectory");
            self.folder = folder.map(|(_, folder)| folder.to_owned());
        } else {
            self.version = Some(fragment.to_owned()).filter(|fragment| !fragment.is_empty());
        }
    }

    /// `?ref=v1`
    fn take_query(&mut self) {
        let Some((place, query)) = self.place.split_once('?') else { return };
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let version = pairs.find(|(key, _)| ["ref", "tag", "branch", "rev"].contains(key));
        if let Some((_, version)) = version {
            self.version = Some(version.to_owned());
        }
        self.place = place.to_owned();
    }

    /// The user in front of a host over http, as hosts put into the URL to clone (`https://acme@dev.azure.com/…`); with a password,
    /// if there is one.
    fn take_user(&mut self) {
        for scheme in ["https://", "http://", "git+https://", "git+http://"] {
            let Some(rest) = self.place.strip_prefix(scheme) else { continue };
            let (server, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            if let Some((_, host)) = server.rsplit_once('@') {
                self.place = format!("{scheme}{host}{path}");
            }
            return;
        }
    }

    /// `github:a/b`, `host:path`, `user@host:/path`, `user@host/path`, `ssh://user@host:path` and `[user@host:port]:path`.
    fn name_host(&mut self) {
        for (short, host) in HOSTS {
            if let Some(rest) = self.place.strip_prefix(short).filter(|rest| !rest.starts_with('/'))
            {
                self.place = format!("{host}{rest}");
                return;
            }
        }
        // Two forms mixed: that of scp has no scheme.
        let rest =
            ["ssh://", "git+ssh://"].iter().find_map(|scheme| self.place.strip_prefix(scheme));
        if let Some((host, path)) = rest.and_then(|rest| rest.split_once(':'))
            && host.contains('@')
            && !host.contains(['/', '['])
            && !path.starts_with(|first: char| first.is_ascii_digit())
        {
            self.place = format!("{host}:{path}");
        }
        if self.place.contains("://") {
            return;
        }
        // A slash in the place of the colon.
        if let Some((host, path)) = self.place.split_once('/')
            && let Some((user, name)) = host.split_once('@')
            && !user.is_empty()
            && !host.contains(':')
            && name.contains('.')
            && name.ends_with(|last: char| last.is_ascii_alphabetic())
        {
            self.place = format!("{host}:{path}");
            return;
        }
        if let Some((inner, path)) =
            self.place.strip_prefix('[').and_then(|rest| rest.split_once("]:"))
            && let Some((host, port)) = inner.rsplit_once(':')
            && !host.contains(':')
            && port.bytes().all(|byte| byte.is_ascii_digit())
        {
            let home = if path.starts_with('/') { "" } else { "/~/" };
            self.place = format!("ssh://{host}:{port}{home}{path}");
            return;
        }
        let Some((host, path)) = self.place.split_once(':') else { return };
        if host.contains('/') || path.is_empty() {
            return;
        }
        if Protocol::built_in_schemes().any(|scheme| scheme == host) {
            // Half of what is between a scheme and a host.
            if path.starts_with('/') {
                self.place = format!("{host}:/{path}");
            }
            return;
        }
        if path.starts_with('/') && !path.starts_with("//") {
            self.place = format!("ssh://{host}{path}");
        } else if !host.contains('@')
            // A host that is known to ssh alone has no dot.
            && (host.contains('.') || path.ends_with(".git"))
            && path.contains('/')
            && !path.starts_with(|first: char| first.is_ascii_digit() || first == '/')
        {
            self.place = format!("ssh://{host}/~/{path}");
        }
    }

    /// `x.git//sub`
    fn take_folder(&mut self) {
        let start = self.path_start();
        if let Some(at) = self.place[start..].find("//").map(|at| start + at) {
            let folder = self.place[at + 2..].trim_start_matches('/').to_owned();
            self.folder = Some(folder).filter(|folder| !folder.is_empty());
            self.place.truncate(at);
        }
    }

    /// `/tree/main/sub`
    fn take_page(&mut self) {
        let Some((repository, rest)) = PAGES
            .iter()
            .find_map(|page| self.place.split_once(page))
            .filter(|_| self.folder.is_none())
        else {
            return;
        };
        let (version, folder) = rest.split_once('/').unwrap_or((rest, ""));
        self.version = Some(version.to_owned());
        self.folder = Some(folder.to_owned());
        self.place = repository.to_owned();
    }

    /// `x@v1` and `x:1.0` at the end of the path.
    fn take_version(&mut self) {
        let start = self.path_start();
        let is_url = start < self.place.len();
        let last = self.place.rfind('/').map_or(0, |slash| slash + 1);
        if is_url && last < start {
            return;
        }
        let Some(at) = self.place[last..].find(['@', ':']).map(|at| last + at) else { return };
        let version = &self.place[at + 1..];
        // Other texts behind it may be a port or a user.
        let begins_like_one = version == "latest"
            || version
                .starts_with(|first: char| first.is_ascii_digit() || "v^~=<>".contains(first));
        let is_port =
            self.place[at..].starts_with(':') && version.bytes().all(|byte| byte.is_ascii_digit());
        let is_certain = is_url || begins_like_one && !is_port;
        // Of a tag with a digest, only the digest counts.
        let digest = version.split_once('@').filter(|(_, digest)| digest.starts_with("sha256:"));
        let version = digest.map_or(version, |(_, digest)| digest);
        if at > last && !version.is_empty() && is_certain {
            self.version = Some(version.to_owned());
            self.place.truncate(at);
        }
    }

    /// `x==1.0`, `x ~> 1.2` and `x 1.0` at the end of the path.
    fn take_range(&mut self) {
        let last = self.place.rfind('/').map_or(0, |slash| slash + 1);
        let signs = ['=', '~', '^', '<', '>', ' '];
        let Some(at) = self.place[last..].find(signs).map(|at| last + at) else { return };
        let range = range(&self.place[at..]);
        let is_range = range.contains(|one: char| one.is_ascii_digit())
            && range.chars().all(|one| one.is_ascii_alphanumeric() || "<>=~^.*+- ".contains(one))
            && !range.starts_with(|first: char| first.is_ascii_alphabetic() && first != 'v');
        if self.version.is_none() && at > last && is_range {
            self.version = Some(range);
            self.place.truncate(at);
        }
    }
}

/// What a range of other tools is here: `~> 1.2` of Terraform and `~=1.2` of pip move the last number that they have, as `^1.2` does, and
/// `~> 1.2.3` as `~1.2.3`.
fn range(text: &str) -> String {
    let own = |part: &str| {
        let part = part.trim();
        for operator in ["~>", "~="] {
            if let Some(version) = part.strip_prefix(operator).map(str::trim) {
                let sign = if version.matches('.').count() > 1 { '~' } else { '^' };
                return format!("{sign}{version}");
            }
        }
        part.trim_start_matches('=').trim().to_owned()
    };
    text.split(',').map(own).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::meant;

    #[test]
    fn what_other_tools_write_is_known() {
        for (text, expected) in [
            ("docker://h.co/charts/x:1.2.0", "oci://h.co/charts/x#1.2.0"),
            (
                "oci://h.co/x:1.2.0@sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
                "oci://h.co/x#sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
            ),
            ("git::https://h.co/x.git//a/b?ref=v1.2.0", "https://h.co/x.git/a/b#v1.2.0"),
            ("git::https://h.co/x.git//a?ref=a/v1.2.0", "https://h.co/x.git/a#v1.2.0"),
            ("git::ssh://git@h.co/x.git//a?depth=1&ref=v1", "ssh://git@h.co/x.git/a#v1"),
            ("git@h.co:o/x.git//a?ref=v1", "git@h.co:o/x.git/a#v1"),
            ("https://h.co/x.git?ref=v1.2.0", "https://h.co/x.git#v1.2.0"),
            ("github.com/a/b/c@master", "github.com/a/b/c#master"),
            ("github.com/a/b@v1.2.3", "github.com/a/b#v1.2.3"),
            ("x@2", "x#2"),
            ("https://h.co/a/b@v1.2.3", "https://h.co/a/b#v1.2.3"),
            ("git+https://h.co/x.git@v1.0#subdirectory=pkg", "git+https://h.co/x.git/pkg#v1.0"),
            ("git+https://h.co/x.git@v1#egg=x&subdirectory=pkg", "git+https://h.co/x.git/pkg#v1"),
            (
                "git+ssh://git@github.com/a/x.git#semver:^1.2",
                "git+ssh://git@github.com/a/x.git#^1.2",
            ),
            ("github:a/x#v1", "github.com/a/x#v1"),
            ("gitlab:a/x", "gitlab.com/a/x"),
            ("https://gitlab.com/a/x/-/tree/main/m/vpc", "https://gitlab.com/a/x/m/vpc#main"),
            ("https://h.co/a//b.git", "https://h.co/a/b.git"),
            ("https://h.co/a/b.git/", "https://h.co/a/b.git"),
            ("h.xz:path/to/x.git", "ssh://h.xz/~/path/to/x.git"),
            ("[git@h.xz:2222]:path/x.git", "ssh://git@h.xz:2222/~/path/x.git"),
            ("root@host:/abs/x.git", "ssh://root@host/abs/x.git"),
            ("corp:/srv/x.git", "ssh://corp/srv/x.git"),
            ("corp:team/x.git", "ssh://corp/~/team/x.git"),
            ("git@github.com/a/x.git", "git@github.com:a/x.git"),
            ("ssh://git@github.com:a/x.git", "git@github.com:a/x.git"),
            ("git+ssh://git@github.com:a/x.git#v1", "git@github.com:a/x.git#v1"),
            ("https://acme@dev.azure.com/acme/p/_git/x", "https://dev.azure.com/acme/p/_git/x"),
            ("https://ada:token@h.co/a/x.git#v1", "https://h.co/a/x.git#v1"),
            ("https://ada:p@ss@h.co/a/x.git", "https://h.co/a/x.git"),
            ("gh:a/x", "github.com/a/x"),
            ("https:/h.co/a/x", "https://h.co/a/x"),
            ("https://gitlab.com/a/x/-/tags/v1.2", "https://gitlab.com/a/x#v1.2"),
            ("x@latest", "x#latest"),
            ("x@^1.2", "x#^1.2"),
            ("redis:17.3.1", "redis#17.3.1"),
            ("ghcr.io/a/web:1.2", "ghcr.io/a/web#1.2"),
            ("left-pad@1.3.0", "left-pad#1.3.0"),
            ("oci://ghcr.io/a/web:1.2.3", "oci://ghcr.io/a/web#1.2.3"),
            ("net/vpc==1.0.0", "net/vpc#1.0.0"),
            ("net/vpc 1.0.0", "net/vpc#1.0.0"),
            ("net/vpc ~> 1.2", "net/vpc#^1.2"),
            ("net/vpc~>1.2.3", "net/vpc#~1.2.3"),
            ("net/vpc~=1.2", "net/vpc#^1.2"),
            ("net/vpc>=1.0,<2.0", "net/vpc#>=1.0 <2.0"),
            ("net/vpc^1.2", "net/vpc#^1.2"),
            ("https://h.co/a/b = 1.0", "https://h.co/a/b#1.0"),
        ] {
            assert_eq!(meant(text).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "",
            "a/b",
            "h.co:8080",
            "aws/ec2,vpc",
            "https://h.co/x#v1",
            "a b",
            "git::",
            "h:80/x y",
            "ada@corp",
        ] {
            assert_eq!(meant(text), None, "{text}");
        }
    }
}
