//! Objects of Git: which commit they are or lead to, and what in them is signed by whom.

use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use sha2::{Digest as _, Sha256};

use crate::evidence::GitKind;
use crate::key::lower_hex;
use crate::{Refusal, Signer, Subject, Verdict, pgp, ssh};

/// How the armours begin that Git knows, which end a tag's message.
const ARMOURS: [&[u8]; 4] = [
    b"-----BEGIN PGP SIGNATURE-----",
    b"-----BEGIN PGP MESSAGE-----",
    b"-----BEGIN SIGNED MESSAGE-----",
    b"-----BEGIN SSH SIGNATURE-----",
];

/// Judges an object, which must be the commit, or the tag of it that was asked for.
pub(crate) fn judge_object(
    kind: GitKind,
    object: &[u8],
    subject: &Subject<'_>,
    signers: &[Signer],
) -> Verdict {
    let parts = match kind {
        GitKind::Commit => commit(object, subject),
        GitKind::Tag => tag(object, subject),
    };
    match parts {
        Ok((payload, signature)) if signature.starts_with(ARMOURS[3]) => {
            ssh::judge_armoured(&signature, &payload, date(kind, &payload), signers)
        }
        Ok((payload, signature)) if signature.starts_with(ARMOURS[0]) => {
            pgp::judge_detached(&signature, &payload, signers)
        }
        Ok(_) => Verdict::refused_for(Refusal::UnknownKind {
            kind: "a signature that is neither SSH's nor OpenPGP's".into(),
        }),
        Err(refusal) => Verdict::refused_for(refusal),
    }
}

/// When a commit or a tag says that it was made, in seconds since 1970: what Git compares with the times of keys.
fn date(kind: GitKind, payload: &[u8]) -> Option<i64> {
    let start: &[u8] = match kind {
        GitKind::Commit => b"committer ",
        GitKind::Tag => b"tagger ",
    };
    let mut head = payload.split(|byte| *byte == b'\n').take_while(|line| !line.is_empty());
    let line = head.find(|line| line.starts_with(start))?;
    // The seconds stand in front of the time zone.
    let seconds = line.rsplit(|byte| *byte == b' ').nth(1)?;
    std::str::from_utf8(seconds).ok()?.parse().ok()
}

type Parts = (Vec<u8>, Vec<u8>);

fn other<T>(why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::OtherSubject { why: why.into() })
}

/// What is signed of a commit, and the signature: all but the header that holds it.
fn commit(object: &[u8], subject: &Subject<'_>) -> Result<Parts, Refusal> {
    let Subject::Commit { id, tag } = subject else {
        return other("it is over a commit, and none was asked for");
    };
    if let Some(tag) = tag {
        return other(format!("it is a commit, and the tag `{tag}` was asked for"));
    }
    let head = format!("commit {}\0", object.len());
    let whole = [head.as_bytes(), object].concat();
    let found = match id.len() {
        64 => lower_hex(&Sha256::digest(&whole)),
        _ => lower_hex(digest(&SHA1_FOR_LEGACY_USE_ONLY, &whole).as_ref()),
    };
    if found != *id {
        return other(format!("it is the commit {found}, not {id}"));
    }
    let own: &[u8] = if id.len() == 64 { b"gpgsig-sha256 " } else { b"gpgsig " };
    let (mut payload, mut signature, mut seen) = (Vec::new(), Vec::new(), 0);
    let (mut is_header, mut is_signature, mut is_own) = (true, false, false);
    for line in object.split_inclusive(|byte| *byte == b'\n') {
        is_header &= line != b"\n";
        if is_header && !line.starts_with(b" ") {
            // Git leaves out the headers of both hashes.
            is_signature = line.starts_with(b"gpgsig ") || line.starts_with(b"gpgsig-sha256 ");
            is_own = line.starts_with(own);
            seen += usize::from(is_own);
        }
        if is_header && is_signature {
            // The first line stands behind the name of the header, the others behind one space.
            let start = if line.starts_with(b" ") { 1 } else { own.len() };
            if is_own {
                signature.extend(line.get(start..).unwrap_or_default());
            }
        } else {
            payload.extend(line);
        }
    }
    match seen {
        0 => Err(Refusal::NoSignature),
        1 => Ok((payload, signature)),
        _ => Err(Refusal::cannot_read("commit", "it has more than one signature header")),
    }
}

/// What is signed of a tag, and the signature at its end.
fn tag(object: &[u8], subject: &Subject<'_>) -> Result<Parts, Refusal> {
    let Subject::Commit { id, tag: Some(wanted) } = subject else {
        return other("it is a tag, and none was asked for");
    };
    let mut lines = object.split(|byte| *byte == b'\n');
    let mut header = |name: &str| {
        let line = lines.next().and_then(|line| std::str::from_utf8(line).ok());
        let value = line.and_then(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.ok_or_else(|| Refusal::cannot_read("tag", format!("its `{name}` is missing")))
    };
    let (leads_to, kind, name) = (header("object")?, header("type")?, header("tag")?);
    if kind != "commit" {
        return other(format!("the tag `{name}` leads to a {kind}, not to a commit"));
    }
    if leads_to != *id {
        return other(format!("the tag `{name}` is of the commit {leads_to}, not of {id}"));
    }
    if name != *wanted {
        return other(format!("it is the tag `{name}`, not `{wanted}`"));
    }
    // The last line that begins an armour, as Git reads it.
    let mut start = None;
    let mut at = 0;
    for line in object.split_inclusive(|byte| *byte == b'\n') {
        if ARMOURS.iter().any(|armour| line.starts_with(armour)) {
            start = Some(at);
        }
        at += line.len();
    }
    let (payload, signature) = object.split_at(start.ok_or(Refusal::NoSignature)?);
    Ok((payload.to_vec(), signature.to_vec()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_object_is_read_or_refused(text in "[ a\n-]*(gpgsig [a\n ]*)*", name in "[a\n]*") {
            let id = lower_hex(digest(
                &SHA1_FOR_LEGACY_USE_ONLY,
                format!("commit {}\0{text}", text.len()).as_bytes(),
            ).as_ref());
            let subject = Subject::Commit { id: &id, tag: None };
            let parts = commit(text.as_bytes(), &subject);
            let is_other = matches!(parts, Err(Refusal::OtherSubject { .. }));
            prop_assert!(!is_other);
            let subject = Subject::Commit { id: &id, tag: Some("a") };
            let _ = tag(format!("object {id}\ntype commit\ntag {name}{text}").as_bytes(), &subject);
        }
    }
}
