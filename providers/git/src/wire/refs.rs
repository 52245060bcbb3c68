//! The refs of a remote: requesting, reading, and sorting them.
//!
//! Only HEAD, branches and tags are kept. Names come from the server: they are compared and shown, but never
//! become paths.

use std::io::Read;
use std::sync::OnceLock;

use git2::Oid;
use sha2::{Digest as _, Sha256};

use super::{Capabilities, PacketReader, PacketWriter, WireError};

/// One branch or tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ref {
    /// Its full name, `refs/tags/v1.2.0`.
    pub(crate) name: String,
    /// The object that it points to: an annotated tag's own object, or else the commit.
    pub(crate) target: Oid,
    /// The commit in the end.
    pub(crate) commit: Oid,
}

impl Ref {
    /// The tag's name, if it is one.
    pub(crate) fn tag(&self) -> Option<&str> {
        self.name.strip_prefix("refs/tags/")
    }

    /// The branch's name, if it is one.
    pub(crate) fn branch(&self) -> Option<&str> {
        self.name.strip_prefix("refs/heads/")
    }
}

/// The branches and tags of a remote, sorted by name, and its HEAD.
#[derive(Debug, Clone, Default)]
pub(crate) struct Advertisement {
    /// Branches and tags, sorted by name.
    pub(crate) refs: Vec<Ref>,
    /// The commit that HEAD points to.
    pub(crate) head: Option<Oid>,
    default_branch: Option<String>,
    /// The digest of its text, once that was needed.
    digest: OnceLock<[u8; 32]>,
}

impl PartialEq for Advertisement {
    fn eq(&self, other: &Self) -> bool {
        (self.head, &self.default_branch, &self.refs)
            == (other.head, &other.default_branch, &other.refs)
    }
}

impl Eq for Advertisement {}

impl Advertisement {
    /// The full name of HEAD's branch, from the server or guessed by its commit.
    pub(crate) fn default_branch(&self) -> Option<&str> {
        if let Some(branch) = &self.default_branch {
            return Some(branch);
        }
        let head = self.head?;
        let at_head = |name: &&str| {
            self.refs.iter().any(|other| other.name == **name && other.commit == head)
        };
        ["refs/heads/main", "refs/heads/master"].iter().find(|name| at_head(name)).copied().or_else(
            || {
                let mut branches = self.refs.iter().filter(|other| other.branch().is_some());
                branches.find(|branch| branch.commit == head).map(|branch| branch.name.as_str())
            },
        )
    }

    /// The text that [`Advertisement::parse`] reads.
    pub(crate) fn to_text(&self) -> String {
        let mut text = String::new();
        self.each_line(|line| text.push_str(line));
        text
    }

    /// The digest of [`Self::to_text`], made once for all packages of a repository.
    pub(crate) fn digest(&self) -> [u8; 32] {
        *self.digest.get_or_init(|| {
            let mut hash = Sha256::new();
            self.each_line(|line| hash.update(line));
            hash.finalize().into()
        })
    }

    /// Hands out the lines of its text.
    fn each_line(&self, mut take: impl FnMut(&str)) {
        if let Some(head) = self.head {
            let branch = self.default_branch.as_deref();
            let branch = branch.map(|branch| format!(" symref-target:{branch}"));
            take(&format!("{head} HEAD{}\n", branch.unwrap_or_default()));
        }
        for Ref { name, target, commit } in &self.refs {
            take(&match target == commit {
                true => format!("{target} {name}\n"),
                false => format!("{target} {name} peeled:{commit}\n"),
            });
        }
    }

    /// Whether there is a branch or tag with this full name at this commit (40 digits).
    pub(crate) fn has(&self, name: &str, digits: &str) -> bool {
        self.refs.iter().any(|other| other.name == name && other.commit.to_string() == digits)
    }

    /// Whether a text that [`Self::parse`] reads has a branch or tag with this full name at this commit (40
    /// digits).
    pub(crate) fn text_has(text: &str, name: &str, digits: &str) -> bool {
        let (plain, peeled) = (format!("{digits} {name}"), format!(" {name} peeled:{digits}"));
        text.lines().any(|line| line == plain || line.ends_with(&peeled))
    }

    /// Reads the stored refs of an earlier conversation.
    pub(crate) fn parse(text: &str) -> Result<Self, WireError> {
        let mut refs = Self::default();
        text.lines().try_for_each(|line| refs.add_listed(line.as_bytes()))?;
        Ok(refs.sorted())
    }
}

/// Asks a server of version 2 for its branches and tags, or for those whose full names begin with `prefix`.
pub(crate) fn write_listing_request(capabilities: &Capabilities, prefix: Option<&str>) -> Vec<u8> {
    let mut request = PacketWriter::default();
    request.line("command=ls-refs");
    super::fetch::write_common(&mut request, capabilities);
    request.delimiter();
    let all = ["HEAD", "refs/heads/", "refs/tags/"];
    let prefixes = prefix.as_ref().map_or(&all[..], std::slice::from_ref);
    request.line("peel");
    request.line("symrefs");
    for prefix in prefixes {
        request.line(&format!("ref-prefix {prefix}"));
    }
    request.flush();
    request.into_bytes()
}

/// Reads the answer to [`write_listing_request`].
pub(crate) fn read_listing(
    reader: &mut PacketReader<impl Read>,
) -> Result<Advertisement, WireError> {
    let mut refs = Advertisement::default();
    while let Some(line) = reader.read()?.line() {
        refs.add_listed(line)?;
    }
    Ok(refs.sorted())
}

/// How a list grows while its lines arrive.
impl Advertisement {
    /// Branches and tags. The largest repositories have some hundred thousand.
    const MOST: usize = 500_000;

    pub(super) fn head_is(&mut self, branch: &[u8]) {
        self.default_branch = text(branch).filter(|name| name.starts_with("refs/heads/"));
    }

    /// Reads a line of version 0: `OID NAME`. The commit of an annotated tag is in a later line.
    pub(super) fn add_line(&mut self, line: &[u8]) -> Result<(), WireError> {
        let (oid, name) = split(line)?;
        if let Some(tag) = name.strip_suffix(b"^{}") {
            if let Some(last) = self.refs.last_mut()
                && last.name.as_bytes() == tag
            {
                last.commit = oid;
            }
            return Ok(());
        }
        self.add(oid, name, None)
    }

    /// A line of version 2: `OID NAME`, then attributes.
    fn add_listed(&mut self, line: &[u8]) -> Result<(), WireError> {
        let mut words = line.split(|byte| *byte == b' ');
        let (Some(oid), Some(name)) = (words.next(), words.next()) else {
            return Err(WireError::Malformed("a ref without a name"));
        };
        if oid == b"unborn" {
            return Ok(());
        }
        let mut peeled = None;
        for attribute in words {
            if let Some(commit) = attribute.strip_prefix(b"peeled:") {
                peeled = Some(parse_oid(commit)?);
            } else if let Some(branch) = attribute.strip_prefix(b"symref-target:")
                && name == b"HEAD"
            {
                self.head_is(branch);
            }
        }
        self.add(parse_oid(oid)?, name, peeled)
    }

    fn add(&mut self, target: Oid, name: &[u8], peeled: Option<Oid>) -> Result<(), WireError> {
        if name == b"HEAD" {
            self.head = Some(target);
            return Ok(());
        }
        let kept = name.starts_with(b"refs/heads/") || name.starts_with(b"refs/tags/");
        // A name that is not UTF-8 cannot be in a reference either.
        if kept && let Some(name) = text(name) {
            if self.refs.len() == Self::MOST {
                return Err(WireError::TooMuch(Self::MOST as u64, "branches and tags"));
            }
            self.refs.push(Ref { name, target, commit: peeled.unwrap_or(target) });
        }
        Ok(())
    }

    /// This list with its refs sorted by name and each of them once, when all lines are there.
    pub(super) fn sorted(mut self) -> Self {
        self.refs.sort_by(|left, right| left.name.cmp(&right.name));
        self.refs.dedup_by(|left, right| left.name == right.name);
        self
    }
}

fn split(line: &[u8]) -> Result<(Oid, &[u8]), WireError> {
    let mut parts = line.splitn(2, |byte| *byte == b' ');
    let (Some(oid), Some(name)) = (parts.next(), parts.next()) else {
        return Err(WireError::Malformed("a ref without a name"));
    };
    Ok((parse_oid(oid)?, name))
}

pub(super) fn parse_oid(hex: &[u8]) -> Result<Oid, WireError> {
    std::str::from_utf8(hex)
        .ok()
        .filter(|hex| hex.len() == 40)
        .and_then(|hex| Oid::from_str(hex).ok())
        .ok_or(WireError::Malformed("an object name that is not 40 hex digits"))
}

fn text(name: &[u8]) -> Option<String> {
    String::from_utf8(name.to_vec()).ok().filter(|name| !name.chars().any(char::is_control))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_branches_and_tags_and_knows_the_default_branch() {
        let (one, two) = ("1".repeat(40), "2".repeat(40));
        let text = format!(
            "{one} HEAD symref-target:refs/heads/dev\n{two} refs/pull/1/head\n\
             {two} refs/tags/v1 peeled:{one}\n{one} refs/heads/dev\n"
        );
        let refs = Advertisement::parse(&text).expect("is a listing");
        let names: Vec<&str> = refs.refs.iter().map(|other| other.name.as_str()).collect();
        assert_eq!(names, ["refs/heads/dev", "refs/tags/v1"]);
        assert_eq!(refs.refs[1].commit.to_string(), one);
        assert_eq!(refs.refs[1].target.to_string(), two);
        assert_eq!(refs.default_branch(), Some("refs/heads/dev"));
        assert_eq!(Advertisement::parse(&refs.to_text()).expect("is a listing"), refs);
        for (name, commit, is_there) in [
            ("refs/tags/v1", &one, true),
            ("refs/tags/v1", &two, false),
            ("refs/tags/1", &one, false),
            ("refs/heads/dev", &one, true),
            ("refs/heads/de", &one, false),
        ] {
            assert_eq!(refs.has(name, commit), is_there, "{name} {commit}");
            assert_eq!(Advertisement::text_has(&text, name, commit), is_there, "{name} {commit}");
        }
    }

    #[test]
    fn guesses_the_default_branch_by_its_commit() {
        let (one, two) = ("1".repeat(40), "2".repeat(40));
        let text = format!("{one} HEAD\n{one} refs/heads/a\n{one} refs/heads/master\n");
        let refs = Advertisement::parse(&text).expect("is a listing");
        assert_eq!(refs.default_branch(), Some("refs/heads/master"));
        let text = format!("{one} HEAD\n{one} refs/heads/a\n{two} refs/heads/main\n");
        let refs = Advertisement::parse(&text).expect("is a listing");
        assert_eq!(refs.default_branch(), Some("refs/heads/a"));
    }

    #[test]
    fn refs_without_end_are_refused() {
        let one = "1".repeat(40);
        let mut refs = Advertisement::default();
        let mut add = |number: usize, folder: &str| {
            refs.add_line(format!("{one} refs/{folder}/{number}").as_bytes())
        };
        // A ref that is not kept costs only its bytes.
        for number in 0..9 {
            add(number, "pull").expect("is passed over");
        }
        for number in 0..Advertisement::MOST {
            add(number, "tags").expect("is kept");
        }
        assert!(matches!(add(Advertisement::MOST, "tags"), Err(WireError::TooMuch(..))));
    }
}
