//! Provenance of charts: a signed text with the chart's metadata, a line `...`, and the digests of its files.

use crate::key::lower_hex;
use crate::{Refusal, Signer, Subject, Verdict, pgp};

/// The most files that one names.
const MOST_FILES: usize = 64;

/// Judges a `.prov`, which must name the archive and its digest inside of what is signed.
pub(crate) fn judge_provenance(text: &str, subject: &Subject<'_>, signers: &[Signer]) -> Verdict {
    let signed = cleartext(text)
        .and_then(|(signed, armour)| names_archive(&signed, subject).map(|()| (signed, armour)));
    match signed {
        Ok((signed, armour)) => pgp::judge_detached(armour.as_bytes(), signed.as_bytes(), signers),
        Err(refusal) => Verdict::refused_for(refusal),
    }
}

/// The text of the first signed block (RFC 9580, 7), as it is hashed, and the armour of its signature behind it.
///
/// Whatever stands around the block counts for nothing.
fn cleartext(text: &str) -> Result<(String, &str), Refusal> {
    let unreadable = |why: &str| Refusal::cannot_read("signed text", why);
    let begin = "-----BEGIN PGP SIGNED MESSAGE-----";
    let mut at = 0;
    // The lines, each with where the next one begins.
    let mut lines = text.split_inclusive('\n').map(|line| {
        at += line.len();
        (line.trim_end_matches([' ', '\t', '\r', '\n']), at - line.len())
    });
    if !lines.by_ref().any(|(line, _)| line == begin) {
        return Err(Refusal::NoSignature);
    }
    for (line, _) in lines.by_ref() {
        if line.is_empty() {
            break;
        }
        // Another header could be shown as if it were signed.
        if !line.starts_with("Hash: ") {
            return Err(unreadable("it has a header that is not `Hash`"));
        }
    }
    let mut signed = Vec::new();
    for (line, start) in lines {
        if line == "-----BEGIN PGP SIGNATURE-----" {
            return Ok((signed.join("\r\n"), text.get(start..).unwrap_or_default()));
        }
        match line.strip_prefix('-') {
            Some(escaped) => signed.push(
                // A blank at the end of an escaped line is no blank of the escape.
                escaped
                    .strip_prefix(' ')
                    .or((escaped.is_empty()).then_some(""))
                    .ok_or_else(|| unreadable("a line begins with a dash that is not escaped"))?,
            ),
            None => signed.push(line),
        }
    }
    Err(unreadable("its signature is missing"))
}

fn names_archive(signed: &str, subject: &Subject<'_>) -> Result<(), Refusal> {
    let other = |why: String| Err(Refusal::OtherSubject { why });
    let Subject::Content { sha256, file: Some(file), .. } = subject else {
        return other("it is over a chart's archive, and none was asked for".into());
    };
    let wanted = format!("sha256:{}", lower_hex(sha256));
    let files = files(signed)?;
    match files.iter().find(|(name, _)| name == file) {
        Some((_, digest)) if *digest == wanted => Ok(()),
        Some((_, digest)) => other(format!("it is over `{digest}`, not over {wanted}")),
        None => {
            let found = files.first().map_or("nothing", |(name, _)| *name);
            other(format!("it is over `{found}`, not over `{file}`"))
        }
    }
}

/// The names and digests of the map `files` behind the first line `...`, as Helm writes it: one entry a line.
fn files(signed: &str) -> Result<Vec<(&str, &str)>, Refusal> {
    let unreadable = |why: &str| Refusal::cannot_read("provenance", why);
    let mut lines = signed.lines().skip_while(|line| *line != "...").skip(1);
    if !lines.any(|line| line == "files:") {
        return Err(unreadable("it has no `files` behind `...`"));
    }
    let mut files: Vec<(&str, &str)> = Vec::new();
    for line in lines.take_while(|line| line.is_empty() || line.starts_with(' ')) {
        if line.is_empty() {
            continue;
        }
        let (name, digest) = line
            .trim_start()
            .rsplit_once(": ")
            .ok_or_else(|| unreadable("an entry of `files` is not a name with a digest"))?;
        let (name, digest) = (unquoted(name), unquoted(digest.trim()));
        if files.iter().any(|(other, _)| *other == name) || files.len() == MOST_FILES {
            return Err(unreadable("`files` has a name twice, or too many of them"));
        }
        files.push((name, digest));
    }
    Ok(files)
}

fn unquoted(text: &str) -> &str {
    let inside = |quote| text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    inside('"').or_else(|| inside('\'')).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_signed_block_is_what_is_hashed() {
        let text = "before\n-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\na  \r\n- -dash\n\nend\n\
                    -----BEGIN PGP SIGNATURE-----\nx";
        let (signed, armour) = cleartext(text).expect("it is whole");
        assert_eq!(signed, "a\r\n-dash\r\n\r\nend");
        assert_eq!(armour, "-----BEGIN PGP SIGNATURE-----\nx");
        for (text, why) in [
            ("", "no signature"),
            ("-----BEGIN PGP SIGNED MESSAGE-----\nComment: x\n\n", "not `Hash`"),
            ("-----BEGIN PGP SIGNED MESSAGE-----\n\n-x\n", "dash"),
            ("-----BEGIN PGP SIGNED MESSAGE-----\n\nx\n", "missing"),
        ] {
            let refusal = cleartext(text).expect_err(text).to_string();
            assert!(refusal.contains(why), "{refusal}");
        }
    }

    #[test]
    fn files_stand_behind_the_first_line_of_dots() {
        let digest = format!("sha256:{}", "0".repeat(64));
        let text = format!(
            "name: web\r\nfiles:\r\n  forged.tgz: x\r\n...\r\nfiles:\r\n  web-1.4.0+b.tgz: {digest}\r\n  \"b: c\": '{digest}'\r\nx: y"
        );
        let expected = vec![("web-1.4.0+b.tgz", digest.as_str()), ("b: c", digest.as_str())];
        assert_eq!(files(&text), Ok(expected));
        for text in
            ["", "...\n", "files:\n  a: b\n", "...\nfiles:\n  a\n", "...\nfiles:\n  a: b\n  a: c\n"]
        {
            assert!(files(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*", rest in "[ \"':a\n]*") {
            let _ = files(&text);
            let _ = cleartext(&format!("-----BEGIN PGP SIGNED MESSAGE-----\n\n{text}\n{rest}"));
            let _ = files(&format!("...\nfiles:\n{rest}"));
        }
    }
}
