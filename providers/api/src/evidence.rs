//! What vouches for a release, as lines of a file of evidence: what a place says becomes lines, and lines become what a place would say.
//!
//! The lines are those of `mu-trust`. Hubs, mirrors, vendored packs and the cache all read and write them here. Nothing is verified:
//! what a file says goes through the same hands as what a registry says.

use std::fmt;

use mu_trust::{Evidence, EvidenceLine, GitKind, MOST_PIECES, Refusal, read_lines};

use crate::{ProviderError, Release};

/// The largest file of evidence about one version, in bytes.
pub const LARGEST_EVIDENCE: u64 = 64 << 20;

/// The largest archive that is read as a whole because a signature is over its bytes.
pub const LARGEST_CONTENT: u64 = 512 << 20;

/// How many lines of evidence a version has.
pub const MOST_EVIDENCE: usize = MOST_PIECES;

/// The media type of a file of evidence.
pub const EVIDENCE_TYPE: &str = "application/vnd.mu.evidence.v1+jsonl";

/// The path of the file with the evidence about a version in a hub; `name` is the package's.
pub fn evidence_path(name: &str, version: &str) -> String {
    let leaf = name.rsplit('/').next().unwrap_or_default();
    format!("signatures/{name}/{leaf}-{version}.jsonl")
}

/// The lines of a file about one version, written as mu writes them.
///
/// # Errors
///
/// Which line is none of evidence, and why.
pub fn checked_evidence(bytes: &[u8]) -> Result<Vec<String>, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not text".to_owned())?;
    let written = evidence_lines(text).map(|NumberedLine { number, line }| {
        let line = line.and_then(|line| EvidenceLine { package: None, ..line }.write());
        line.map_err(|why| format!("line {number}: {why}"))
    });
    written.collect()
}

/// A line of a file of evidence, or why it cannot be read, with its number, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberedLine {
    /// Its number.
    pub number: usize,
    /// The line.
    pub line: Result<EvidenceLine, Refusal>,
}

/// The lines of a file of evidence, each for itself.
pub fn evidence_lines(text: &str) -> impl Iterator<Item = NumberedLine> {
    let numbers = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    numbers.zip(read_lines(text)).map(|((at, _), line)| NumberedLine { number: at + 1, line })
}

/// What a place has that vouches for a release.
#[derive(Debug, Clone, Default)]
pub struct FoundEvidence {
    /// What it must speak of: the digest of what the tag of the version leads to, or in a Git repository the commit.
    pub subject: String,
    /// The annotated tag in a Git repository that leads to the commit. Then only that counts, and not the commit's own signature.
    pub tag: Option<String>,
    /// The manifests that lead from the subject to the archive, the subject first; none if the subject is the archive.
    pub manifests: Vec<Vec<u8>>,
    /// The bytes of the archive, if a piece is a signature over them.
    pub content: Option<Vec<u8>>,
    /// What was found.
    pub pieces: Vec<FoundPiece>,
    /// What was looked at, in words.
    pub looked_at: Vec<String>,
    /// Why a place does not say whether it has a piece, although it hands out the archive: there may be one.
    pub withheld: Option<ProviderError>,
}

/// A piece of evidence, and where it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundPiece {
    /// Where it was.
    pub place: String,
    /// The piece, or why it cannot be read.
    pub evidence: Result<Evidence, String>,
    /// The manifests that lead from what it speaks of to the archive, if it brings them itself, as a line of a file does; none if they
    /// are those of the place.
    pub manifests: Vec<Vec<u8>>,
    /// The name of the archive that it vouches for, if it speaks of the archive and not of the subject: `web-1.4.0.tgz`.
    pub archive: Option<String>,
}

/// A package as lines speak of it.
#[derive(Debug, Clone, Copy)]
pub struct EvidenceAbout<'a> {
    /// The path of the package where it comes from: its last part is the name in its archive, and the tags of a repository may
    /// have its folder in front.
    pub name: &'a str,
    /// The version.
    pub release: &'a Release,
}

impl FoundEvidence {
    /// What lines at `place` have about a version. One that cannot be read is a piece that says why.
    pub fn from_lines(
        place: &dyn fmt::Display,
        lines: impl IntoIterator<Item = NumberedLine>,
        about: EvidenceAbout<'_>,
    ) -> Self {
        let Release { commit, archive, .. } = about.release;
        let subject = commit.as_deref().or(archive.as_deref()).unwrap_or_default().to_owned();
        let mut found = Self { subject, looked_at: vec![place.to_string()], ..Self::default() };
        // However many lines cannot be read, they take no room from the others.
        let mut room = [MOST_PIECES; 2];
        for NumberedLine { number, line } in lines {
            let room = &mut room[usize::from(line.is_err())];
            if *room == 0 {
                continue;
            }
            *room -= 1;
            let place = format!("line {number} of {place}");
            let piece = match line {
                Ok(EvidenceLine { evidence, manifests, .. }) => {
                    if let Evidence::Git { kind: GitKind::Tag, object } = &evidence {
                        found.tag = Some(about.tag(object));
                    }
                    // A line that leads from a manifest to the archive has it.
                    let archive = match &evidence {
                        Evidence::Prov(text) => Some(about.archive_name(text)),
                        Evidence::Bundle(_) | Evidence::Cosign(_) if manifests.is_empty() => {
                            Some(about.archive_name(""))
                        }
                        _ => None,
                    };
                    FoundPiece { place, evidence: Ok(evidence), manifests, archive }
                }
                Err(why) => FoundPiece::unreadable_piece(place, why.to_string()),
            };
            found.pieces.push(piece);
        }
        found
    }

    /// Adds the statement of a chart's author that lies beside its archive, unless it is among the pieces.
    pub fn add_statement(&mut self, statement: Option<Vec<u8>>, about: EvidenceAbout<'_>) {
        let Some(text) = statement.and_then(|bytes| String::from_utf8(bytes).ok()) else { return };
        let archive = Some(about.archive_name(&text));
        let evidence = Ok(Evidence::Prov(text));
        if !self.pieces.iter().any(|piece| piece.evidence == evidence) {
            let place = format!("{}.prov", archive.as_deref().unwrap_or_default());
            self.pieces.push(FoundPiece { place, evidence, manifests: Vec::new(), archive });
        }
    }

    /// Whether a piece is a signature over the bytes of the archive, which are then needed as [`Self::content`].
    pub fn needs_content(&self) -> bool {
        self.content.is_none() && self.pieces.iter().any(|piece| self.is_over_bytes(piece))
    }

    /// Leaves out what only the bytes of the archive could prove, where nobody has them.
    pub fn leave_out_content(&mut self) {
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.retain(|piece| !self.is_over_bytes(piece));
        self.pieces = pieces;
    }

    fn is_over_bytes(&self, piece: &FoundPiece) -> bool {
        let has_no_manifest = piece.manifests.is_empty() && self.manifests.is_empty();
        let Ok(Evidence::Bundle(json)) = &piece.evidence else { return false };
        // A statement names a digest, any other signature is over all of it.
        (piece.archive.is_some() || has_no_manifest)
            && String::from_utf8_lossy(json).contains("\"messageSignature\"")
    }

    /// Its pieces as lines, each complete in itself; what cannot be read, or what nothing ties to an archive, is none.
    pub fn to_lines(&self) -> Vec<EvidenceLine> {
        let pieces = self.pieces.iter().filter_map(|piece| {
            let evidence = piece.evidence.as_ref().ok()?.clone();
            let needs_none = piece.archive.is_some() || matches!(evidence, Evidence::Git { .. });
            let manifests = match (needs_none, piece.manifests.is_empty()) {
                (true, _) => Vec::new(),
                (false, false) => piece.manifests.clone(),
                (false, true) => self.manifests.clone(),
            };
            Some(EvidenceLine { evidence, manifests, package: None })
        });
        pieces.collect()
    }

    /// Its pieces as the text of a file of evidence; empty if there is nothing.
    pub fn to_evidence_text(&self) -> String {
        lines_to_text(self.to_lines())
    }
}

/// Lines as the text of a file. A bundle that is no JSON object is left out, because no reader could take it.
pub fn lines_to_text(lines: impl IntoIterator<Item = EvidenceLine>) -> String {
    let written = lines.into_iter().filter_map(|line| line.write().ok());
    let mut all: Vec<String> = Vec::new();
    for line in written {
        if !all.contains(&line) {
            all.push(line);
        }
    }
    all.into_iter().map(|line| line + "\n").collect()
}

impl FoundPiece {
    /// What cannot be read at a place, and why.
    pub fn unreadable_piece(place: impl Into<String>, why: String) -> Self {
        Self { place: place.into(), evidence: Err(why), manifests: Vec::new(), archive: None }
    }
}

impl EvidenceAbout<'_> {
    /// The name of the archive that a chart's statement must speak of. Charts may write their version with a `v`.
    fn archive_name(&self, statement: &str) -> String {
        let leaf = self.name.rsplit('/').next().unwrap_or_default();
        let [plain, with_v] = ["", "v"].map(|v| format!("{leaf}-{v}{}.tgz", self.release.version));
        match statement.contains(&with_v) && !statement.contains(&plain) {
            true => with_v,
            false => plain,
        }
    }

    /// The tag that a tag's object must be: the one that was asked for, or one that says the version of this package. Otherwise it is
    /// the version, which the object then is not.
    fn tag(&self, object: &[u8]) -> String {
        if let Some(asked) = &self.release.reference {
            return asked.strip_prefix("refs/tags/").unwrap_or(asked).to_owned();
        }
        let version = &self.release.version;
        let named = object.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"tag "));
        let named = named.and_then(|name| std::str::from_utf8(name).ok());
        let says_version = |name: &&str| {
            let (folder, own) = name.rsplit_once('/').unwrap_or(("", name));
            let below = self.name.strip_suffix(folder);
            let is_own = folder.is_empty()
                || below.is_some_and(|before| before.is_empty() || before.ends_with('/'));
            is_own && own.strip_prefix('v').unwrap_or(own) == version
        };
        named.filter(says_version).map_or_else(|| version.clone(), str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use mu_trust::Cosign;

    use super::*;

    fn about<'a>(name: &'a str, release: &'a Release) -> EvidenceAbout<'a> {
        EvidenceAbout { name, release }
    }

    #[test]
    fn lines_say_what_the_place_said() {
        let cosign = Cosign { payload: b"{}".to_vec(), signature: "s".into(), ..Cosign::default() };
        let piece = |evidence, archive: Option<&str>| FoundPiece {
            place: "there".into(),
            evidence: Ok(evidence),
            manifests: Vec::new(),
            archive: archive.map(str::to_owned),
        };
        let found = FoundEvidence {
            subject: "sha256:d".into(),
            manifests: vec![b"index".to_vec(), b"manifest".to_vec()],
            pieces: vec![
                piece(Evidence::Cosign(cosign.clone()), None),
                piece(Evidence::Prov("statement".into()), Some("web-1.0.0.tgz")),
                FoundPiece::unreadable_piece("there", "it is not text".into()),
            ],
            ..FoundEvidence::default()
        };
        let text = found.to_evidence_text();
        assert_eq!(text.lines().count(), 2);
        let release = Release {
            version: "1.0.0".into(),
            archive: Some("sha256:a".into()),
            ..Release::default()
        };
        // What cannot be read is told, and hides nothing.
        let text = format!("{{\"prov\": 1}}\n\n{text}");
        let back = FoundEvidence::from_lines(
            &"evidence.jsonl",
            evidence_lines(&text),
            about("charts/web", &release),
        );
        assert_eq!(back.subject, "sha256:a");
        let places: Vec<&str> = back.pieces.iter().map(|piece| &*piece.place).collect();
        assert_eq!(
            places,
            ["line 1 of evidence.jsonl", "line 3 of evidence.jsonl", "line 4 of evidence.jsonl"]
        );
        assert!(back.pieces[0].evidence.is_err());
        assert_eq!(back.pieces[1].evidence, Ok(Evidence::Cosign(cosign)));
        assert_eq!(back.pieces[1].manifests, found.manifests);
        assert_eq!(back.pieces[2].archive.as_deref(), Some("web-1.0.0.tgz"));
        assert_eq!(back.to_evidence_text(), found.to_evidence_text());
    }

    #[test]
    fn a_tag_must_say_the_version_of_the_package() {
        let tag = |name: &str, package: &str, reference: Option<&str>| {
            let release = Release {
                version: "1.2.0".into(),
                commit: "1895753f53a6189ca1ad30ba2a37a4f1c5ff7ce1".parse().ok(),
                reference: reference.map(str::to_owned),
                ..Release::default()
            };
            let object = format!("object 1895\ntype commit\ntag {name}\n");
            let line = EvidenceLine {
                evidence: Evidence::Git { kind: GitKind::Tag, object: object.into_bytes() },
                manifests: Vec::new(),
                package: None,
            };
            let line = NumberedLine { number: 1, line: Ok(line) };
            FoundEvidence::from_lines(&"here", [line], about(package, &release)).tag
        };
        let is = |name: &str| Some(name.to_owned());
        assert_eq!(tag("v1.2.0", "acme/mono", None), is("v1.2.0"));
        assert_eq!(
            tag("modules/vpc/v1.2.0", "acme/mono/modules/vpc", None),
            is("modules/vpc/v1.2.0")
        );
        assert_eq!(tag("vpc/1.2.0", "acme/mono/modules/vpc", None), is("vpc/1.2.0"));
        assert_eq!(tag("pc/1.2.0", "acme/mono/modules/vpc", None), is("1.2.0"));
        assert_eq!(tag("v1.1.0", "acme/mono", None), is("1.2.0"));
        assert_eq!(tag("v1.2.0", "acme/mono", Some("refs/tags/beta1")), is("beta1"));
    }
}
