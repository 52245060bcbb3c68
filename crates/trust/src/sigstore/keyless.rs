//! Signatures by an identity: a certificate that lived for minutes, and what proves that the signature was made meanwhile.
//!
//! All of it is offline and by times that others signed: this machine's clock decides nothing.

use sha2::{Digest as _, Sha256};

use super::{Signature, timestamp};
use crate::der::{self, DerReader, NotDer};
use crate::key::{CODE_SIGNING, Certificate, lower_hex, verify_chain};
use crate::roots::{Authority, Root};
use crate::signer::{SignerKind, matches_pattern};
use crate::verdict::GITHUB_ISSUER;
use crate::{GithubSigner, Identity, Refusal, Roots, Signer};

/// The extension with embedded timestamps of certificate logs.
const SCTS: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0xd6, 0x79, 0x02, 0x04, 0x02];
/// `id-ce-subjectAltName`.
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 0x11];
/// What Fulcio's extensions begin with: 1.3.6.1.4.1.57264.1.
const FULCIO: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0x83, 0xbf, 0x30, 0x01];

/// What is proven of a signature by an identity.
#[derive(Debug)]
pub(super) struct Proven {
    pub(super) claims: Claims,
    /// The earliest time that is proven.
    pub(super) time: i64,
}

/// Whose a certificate says it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claims {
    pub(super) identity: Identity,
    /// The ref that a workflow ran for.
    pub(super) reference: Option<String>,
    issuer: String,
    subject: String,
    /// The number of the repository.
    id: Option<String>,
}

/// Proves whose a signature is, by the root that issued its certificate.
///
/// A newer file of the same root may know what the older one does not, so each that issued it may prove it.
pub(super) fn prove(
    signature: &Signature,
    leaf: &Certificate,
    roots: &Roots,
) -> Result<Proven, Refusal> {
    let mut refusal = None;
    for root in roots.iter().filter(|root| has_issued(root, leaf)) {
        match prove_by(signature, leaf, root) {
            Ok(proven) => return Ok(proven),
            // What a root found wrong says more than what another one does not know.
            Err(Refusal::RootDoesNotKnow { .. }) if refusal.is_some() => {}
            Err(why) => refusal = Some(why),
        }
    }
    Err(refusal.unwrap_or_else(|| Refusal::RootDoesNotKnow {
        what: format!("a certificate of {}", leaf.issuer_name().unwrap_or("nobody".into())),
        root: None,
    }))
}

fn has_issued(root: &Root, leaf: &Certificate) -> bool {
    let mut issuers = root.certificate_authorities.iter().flat_map(|authority| &authority.chain);
    issuers.any(|issuer| leaf.is_issued_by(issuer))
}

/// In the order of what depends on what: times, the chain at those, the logs, the signature, the identity.
fn prove_by(signature: &Signature, leaf: &Certificate, root: &Root) -> Result<Proven, Refusal> {
    let mut times = Vec::new();
    for token in &signature.tokens {
        times.push(timestamp::verify_token(token, &signature.signature, root)?);
    }
    for entry in &signature.entries {
        times.extend(entry.promised_time(entry.log(root)?)?);
    }
    let earliest = times.iter().min().copied();
    let time = earliest.ok_or_else(|| Refusal::wrong("no time is proven"))?;

    let authority = authority_at(root, leaf, &times)?;
    if root.has_certificate_logs {
        verify_sct(leaf, authority, root)?;
    }

    if signature.entries.is_empty() {
        return Err(Refusal::wrong("no entry of a log comes with it"));
    }
    for entry in &signature.entries {
        let log = entry.log(root)?;
        entry.verify_body(signature)?;
        // Before bundles of version 0.2 a promise stood for the proof.
        let is_promised = entry.promise.is_some() && entry.proof.is_none();
        if !(signature.takes_promises && is_promised) {
            entry.verify_inclusion(log)?;
        }
        if !times.iter().any(|time| log.valid.contains(*time)) {
            return Err(Refusal::wrong("the log was not trusted then"));
        }
    }

    let key = leaf.subject_key().map_err(|error| Refusal::cannot_read("certificate", error))?;
    if !key.verifies(&signature.message, &signature.signature) {
        return Err(Refusal::wrong("it is not by the key of its certificate"));
    }
    let claims = claims(leaf).map_err(|error| Refusal::cannot_read("certificate", error))?;
    Ok(Proven { claims, time })
}

/// The authority whose chain the leaf leads to at each of the times.
fn authority_at<'r>(
    root: &'r Root,
    leaf: &Certificate,
    times: &[i64],
) -> Result<&'r Authority, Refusal> {
    let mut why = "its issuer was not trusted then".to_owned();
    let is_issuer =
        |authority: &&Authority| authority.chain.iter().any(|issuer| leaf.is_issued_by(issuer));
    for authority in root.certificate_authorities.iter().filter(is_issuer) {
        if !times.iter().all(|time| authority.valid.contains(*time)) {
            continue;
        }
        let verified = times
            .iter()
            .try_for_each(|time| verify_chain(leaf, &authority.chain, *time, CODE_SIGNING));
        match verified {
            Ok(()) => return Ok(authority),
            Err(reason) => why = reason,
        }
    }
    Err(Refusal::wrong(format!("the certificate, at the proven time: {why}")))
}

/// A timestamp of a certificate log (RFC 6962, 3.2).
struct Sct<'a> {
    log_id: &'a [u8],
    /// In milliseconds.
    time: u64,
    extensions: &'a [u8],
    signature: &'a [u8],
}

/// Takes a list of TLS: its length in two bytes, then that many.
fn list<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    let (list, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    *bytes = rest;
    Some(list)
}

/// Reads the timestamps in a certificate; those of a later version are left out.
fn scts(extension: &[u8]) -> Option<Vec<Sct<'_>>> {
    let mut bytes = DerReader::new(extension).content_of(der::OCTET_STRING).ok()?;
    let mut all = list(&mut bytes)?;
    let mut scts = Vec::new();
    while !all.is_empty() {
        let [version, sct @ ..] = list(&mut all)? else { return None };
        if *version != 0 {
            continue;
        }
        let (log_id, rest) = sct.split_at_checked(32)?;
        let (time, mut rest) = rest.split_first_chunk::<8>()?;
        let extensions = list(&mut rest)?;
        // Hash and kind of the signature, which the key decides.
        let [_, _, rest @ ..] = rest else { return None };
        let mut rest = rest;
        let signature = list(&mut rest)?;
        scts.push(Sct { log_id, time: u64::from_be_bytes(*time), extensions, signature });
    }
    Some(scts)
}

/// Verifies that a log of the root has the certificate.
fn verify_sct(leaf: &Certificate, authority: &Authority, root: &Root) -> Result<(), Refusal> {
    let extension = leaf.extension(SCTS);
    let extension =
        extension.ok_or_else(|| Refusal::wrong("no certificate log has its certificate"))?;
    let scts = scts(extension)
        .ok_or_else(|| Refusal::cannot_read("certificate", "its log's timestamp is damaged"))?;
    let mut unknown = None;
    for sct in &scts {
        let Some(log) = root.certificate_logs.iter().find(|log| log.id == sct.log_id) else {
            unknown = Some(sct.log_id);
            continue;
        };
        let seconds = i64::try_from(sct.time / 1000).unwrap_or(i64::MAX);
        let issuers = authority.chain.iter().filter(|issuer| issuer.subject == leaf.issuer);
        for issuer in issuers.filter(|_| log.valid.contains(seconds)) {
            let signed = signed_by_log(sct, leaf, issuer);
            if signed.is_some_and(|signed| log.key.verifies(&signed, sct.signature)) {
                return Ok(());
            }
        }
        return Err(Refusal::wrong("the certificate log's timestamp is not by the log"));
    }
    Err(match unknown {
        Some(id) => Refusal::RootDoesNotKnow {
            what: format!("the certificate log {}", lower_hex(id)),
            root: Some(root.in_words()),
        },
        None => Refusal::wrong("no certificate log has its certificate"),
    })
}

/// What a log signs of a certificate: all of it but the log's own extension, which came later.
fn signed_by_log(sct: &Sct<'_>, leaf: &Certificate, issuer: &Certificate) -> Option<Vec<u8>> {
    let kept = leaf.extensions.iter().filter(|extension| extension.oid != SCTS);
    let kept: Vec<u8> = kept.flat_map(|extension| extension.whole.clone()).collect();
    let extensions = der::write_element(0xa3, &der::write_element(der::SEQUENCE, &kept));
    let certificate = [leaf.tbs_before_extensions.as_slice(), &extensions].concat();
    let certificate = der::write_element(der::SEQUENCE, &certificate);
    let length = u32::try_from(certificate.len()).ok().filter(|length| *length < 1 << 24)?;

    // Version 1, a certificate's timestamp.
    let mut signed = vec![0, 0];
    signed.extend(sct.time.to_be_bytes());
    // Of one that was not whole yet, and of which issuer.
    signed.extend([0, 1]);
    signed.extend(Sha256::digest(&issuer.spki));
    signed.extend(&length.to_be_bytes()[1..]);
    signed.extend(certificate);
    signed.extend(u16::try_from(sct.extensions.len()).ok()?.to_be_bytes());
    signed.extend(sct.extensions);
    Some(signed)
}

/// The text of one of Fulcio's extensions. The first six are bare, later ones a `UTF8String`.
fn fulcio(leaf: &Certificate, number: u8) -> Option<String> {
    let value = leaf.extension(&[FULCIO, &[number]].concat())?;
    let bytes = match number {
        0..=6 => value,
        _ => {
            let mut reader = DerReader::new(value);
            let bytes = reader.content_of(0x0c).ok()?;
            reader.expect_end().ok()?;
            bytes
        }
    };
    String::from_utf8(bytes.to_vec()).ok()
}

/// The one name of a certificate: a mail address, a URI, or Fulcio's own kind for names of users.
fn alternative_name(leaf: &Certificate) -> Result<String, NotDer> {
    let extension = leaf.extension(SUBJECT_ALT_NAME).ok_or(NotDer)?;
    let mut names = DerReader::single(extension, der::SEQUENCE)?;
    let name = names.any()?;
    names.expect_end()?;
    let bytes = match name.tag {
        0x81 | 0x86 => name.content,
        0xa0 => {
            let mut other = DerReader::new(name.content);
            if other.content_of(der::OID)? != [FULCIO, &[7]].concat() {
                return Err(NotDer);
            }
            other.read(0xa0)?.content_of(0x0c)?
        }
        _ => return Err(NotDer),
    };
    String::from_utf8(bytes.to_vec()).map_err(|_| NotDer)
}

/// Reads whose a certificate says it is.
pub(super) fn claims(leaf: &Certificate) -> Result<Claims, NotDer> {
    let subject = alternative_name(leaf)?;
    let issuer = fulcio(leaf, 8).or_else(|| fulcio(leaf, 1)).ok_or(NotDer)?;
    let is_printable = |text: &str| !text.is_empty() && !text.chars().any(char::is_control);
    // A blank parts both in the text of an identity.
    if !is_printable(&issuer) || issuer.contains(' ') || !is_printable(&subject) {
        return Err(NotDer);
    }
    let github = (issuer == GITHUB_ISSUER).then(|| github(leaf, &subject)).flatten();
    let identity = github
        .unwrap_or_else(|| Identity::Oidc { issuer: issuer.clone(), subject: subject.clone() });
    Ok(Claims {
        identity,
        reference: fulcio(leaf, 14).or_else(|| fulcio(leaf, 6)),
        issuer,
        subject,
        id: fulcio(leaf, 15),
    })
}

/// The workflow that a certificate of GitHub's issuer is for, and the repository that ran it.
fn github(leaf: &Certificate, subject: &str) -> Option<Identity> {
    let stated =
        fulcio(leaf, 12).and_then(|uri| Some(uri.strip_prefix("https://github.com/")?.to_owned()));
    let repository = stated.or_else(|| fulcio(leaf, 5))?;
    let (other, file) = workflow_file(subject)?;
    let workflow = if other.eq_ignore_ascii_case(&repository) {
        format!(".github/workflows/{file}")
    } else {
        format!("{other}/.github/workflows/{file}")
    };
    // Only what can be read again is an identity.
    format!("github:{repository}/{workflow}").parse().ok()
}

/// The repository and the file of a workflow, of `https://github.com/OWNER/REPO/.github/workflows/FILE@REF`.
///
/// Both FILE and REF may have an `@`, but FILE has no slash: the last `@` in front of the next slash parts them. Otherwise
/// `release.yml@x.yml` could pose as `release.yml`.
fn workflow_file(subject: &str) -> Option<(&str, &str)> {
    let path = subject.strip_prefix("https://github.com/")?;
    let (repository, rest) = path.split_once("/.github/workflows/")?;
    let (file, _) = rest.split('/').next()?.rsplit_once('@')?;
    Some((repository, file))
}

impl Claims {
    /// Whether it is the one whom a signer names.
    pub(super) fn is(&self, signer: &Signer) -> bool {
        match &signer.kind {
            SignerKind::Keys(_) => false,
            SignerKind::Github(github) => self.is_github(github),
            SignerKind::Oidc(oidc) => {
                self.issuer == oidc.issuer && matches_pattern(&self.subject, &oidc.subject)
            }
        }
    }

    /// Whose it is in words; with what else a signer of the same repository asks for.
    pub(super) fn claimed_by(&self, signers: &[Signer]) -> String {
        let mut words = self.identity.to_string();
        let Identity::Github { repository, .. } = &self.identity else { return words };
        let asked = signers.iter().filter_map(|signer| match &signer.kind {
            SignerKind::Github(github) => Some(github),
            SignerKind::Keys(_) | SignerKind::Oidc(_) => None,
        });
        let mut asked = asked.filter(|asked| asked.repository.eq_ignore_ascii_case(repository));
        if let Some(reference) = &self.reference
            && asked.clone().any(|asked| asked.reference.is_some())
        {
            words.push_str(&format!(" for {reference}"));
        }
        if let Some(id) = &self.id
            && asked.any(|asked| asked.id.is_some())
        {
            words.push_str(&format!(" of repository {id}"));
        }
        words
    }

    fn is_github(&self, signer: &GithubSigner) -> bool {
        let Identity::Github { repository, workflow } = &self.identity else { return false };
        let is_workflow = match &signer.workflow {
            None => workflow.starts_with(".github/"),
            Some(wanted) => match wanted.split_once("/.github/workflows/") {
                None => workflow.strip_prefix(".github/workflows/") == Some(wanted),
                Some((wanted_repository, wanted_file)) => {
                    let (of, file) = match workflow.split_once("/.github/workflows/") {
                        Some(parts) => parts,
                        None => {
                            (repository.as_str(), workflow.trim_start_matches(".github/workflows/"))
                        }
                    };
                    of.eq_ignore_ascii_case(wanted_repository) && file == wanted_file
                }
            },
        };
        let is_reference = signer.reference.as_ref().is_none_or(|wanted| {
            self.reference.as_ref().is_some_and(|found| matches_pattern(found, wanted))
        });
        let is_id = signer.id.is_none() || self.id == signer.id;
        repository.eq_ignore_ascii_case(&signer.repository) && is_workflow && is_reference && is_id
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn claimed(identity: &str, reference: &str) -> Claims {
        Claims {
            identity: identity.parse().expect("it is an identity"),
            reference: Some(reference.to_owned()),
            issuer: GITHUB_ISSUER.to_owned(),
            subject: String::new(),
            id: Some("7".into()),
        }
    }

    #[test]
    fn the_file_of_a_workflow_ends_where_its_ref_begins() {
        for (path, expected) in [
            ("acme/charts/.github/workflows/a.yml@refs/heads/main", Some(("acme/charts", "a.yml"))),
            (
                "acme/charts/.github/workflows/a.yml@refs/tags/web@1.0",
                Some(("acme/charts", "a.yml")),
            ),
            (
                "acme/charts/.github/workflows/a.yml@0123456789abcdef",
                Some(("acme/charts", "a.yml")),
            ),
            (
                "acme/charts/.github/workflows/a.yml@b.yml@refs/heads/x",
                Some(("acme/charts", "a.yml@b.yml")),
            ),
            ("acme/.github/.github/workflows/a.yml@refs/heads/x", Some(("acme/.github", "a.yml"))),
            ("acme/charts/.github/workflows/a.yml", None),
            ("acme/charts@refs/heads/main", None),
        ] {
            assert_eq!(workflow_file(&format!("https://github.com/{path}")), expected, "{path}");
        }
        assert_eq!(workflow_file("https://github.com.evil.com/a/b/.github/workflows/a@b"), None);
    }

    #[test]
    fn a_workflow_is_the_one_that_a_signer_names() {
        let own = "github:acme/charts/.github/workflows/release.yml";
        let reusable = "github:acme/charts/acme/shared/.github/workflows/release.yml";
        let shared = "acme/shared/.github/workflows/release.yml";
        for (identity, reference, workflow, wanted, id, expected) in [
            (own, "refs/heads/main", None, None, None, true),
            (own, "refs/heads/main", Some("release.yml"), Some("refs/heads/main"), Some("7"), true),
            (
                own,
                "refs/heads/main",
                Some("Acme/Charts/.github/workflows/release.yml"),
                None,
                None,
                true,
            ),
            (own, "refs/heads/main", Some("test.yml"), None, None, false),
            (own, "refs/heads/dev", None, Some("refs/heads/main"), None, false),
            (own, "refs/heads/main2", None, Some("refs/heads/main"), None, false),
            (own, "refs/tags/v1", None, Some("refs/tags/v*"), None, true),
            // The name changed hands.
            (own, "refs/tags/v1", None, None, Some("8"), false),
            // Another repository's workflow is named, or does not count.
            (reusable, "refs/tags/v1", Some(shared), None, None, true),
            (reusable, "refs/tags/v1", None, None, None, false),
            (reusable, "refs/tags/v1", Some("release.yml"), None, None, false),
            (own, "refs/tags/v1", Some(shared), None, None, false),
            (
                "github:eve/charts/.github/workflows/release.yml",
                "refs/tags/v1",
                None,
                None,
                None,
                false,
            ),
        ] {
            let signer = GithubSigner {
                repository: "ACME/charts".into(),
                workflow: workflow.map(str::to_owned),
                reference: wanted.map(str::to_owned),
                id: id.map(str::to_owned),
            };
            let signer = Signer::github("acme-ci", signer).expect("it is a workflow");
            assert_eq!(
                claimed(identity, reference).is(&signer),
                expected,
                "{identity} {workflow:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_timestamps_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = scts(&bytes);
            let length = u16::try_from(bytes.len()).expect("it is short").to_be_bytes();
            let whole = [&length[..], &bytes].concat();
            let _ = scts(&der::write_element(der::OCTET_STRING, &whole));
        }
    }
}
