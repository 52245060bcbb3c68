//! OpenPGP (RFC 9580), as charts and Git use it: signatures of version 4 over text or bytes, detached or around the text.
//!
//! User ids, bindings, expiry and revocation are not evaluated: the file of keys that a rule names is the trust.
//!
//! The provenance of a chart is such a text: the chart's metadata, a line `...`, and the digests of its files.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest as ring_digest};
use sha2::{Digest as _, Sha256, Sha384, Sha512};

use crate::key::{Algorithm, Hash, PublicKey, lower_hex};
use crate::signer::{Key, SignerKind, signer_names};
use crate::{
    Acceptance, Identity, Refusal, Signed, SignedBy, Signer, SignerError, Subject, Verdict, der,
};

/// The most packets in a block.
const MOST_PACKETS: usize = 4096;
/// The most signatures that one block has.
const MOST_SIGNATURES: usize = 8;

const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const P384: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];
const ED25519_LEGACY: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0xda, 0x47, 0x0f, 0x01];

/// What cannot be read of a block.
type Wrong = &'static str;

/// One key of a certificate, primary or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PgpKey {
    /// The fingerprint of the certificate's primary key, in capitals.
    primary: String,
    fingerprint: String,
    key: PublicKey,
}

impl PgpKey {
    pub(crate) fn identity(&self) -> Identity {
        Identity::Pgp(self.primary.clone())
    }

    /// Reads all keys that can sign, of the blocks of a text; none if it has no block.
    pub(crate) fn read_blocks(text: &str) -> Result<Vec<Self>, SignerError> {
        let refused = |why: Wrong| SignerError::Key { kind: "OpenPGP block", why: why.into() };
        let mut keys = Vec::new();
        let mut primary = None;
        let mut passed_over = None;
        let begin = "-----BEGIN PGP PUBLIC KEY BLOCK-----";
        for (at, _) in text.match_indices(begin) {
            let block = armoured(&text.as_bytes()[at..], "PGP PUBLIC KEY BLOCK");
            let block = block.ok_or(refused("its armour is damaged"))?;
            for packet in packets(&block).map_err(refused)? {
                // 6 is a primary key, 14 one below it.
                if packet.tag != 6 && packet.tag != 14 {
                    continue;
                }
                let fingerprint = fingerprint(packet.body).map_err(refused)?;
                if packet.tag == 6 {
                    primary = Some(fingerprint.clone());
                }
                let primary = primary.clone().ok_or(refused("a subkey has no primary key"))?;
                match public_key(packet.body) {
                    Ok(key) => keys.push(Self { primary, fingerprint, key }),
                    Err(why) => passed_over = Some(why),
                }
            }
        }
        match passed_over {
            Some(why) if keys.is_empty() => Err(refused(why)),
            _ => Ok(keys),
        }
    }
}

/// The bytes of the first block with this label in a text: after headers and an empty line, base64 with a checksum that is not needed.
pub(crate) fn armoured(text: &[u8], label: &str) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text).ok()?;
    let (begin, end) = (format!("-----BEGIN {label}-----"), format!("-----END {label}-----"));
    let mut lines = text.lines().map(str::trim_ascii_end).skip_while(|line| *line != begin).skip(1);
    let mut body = String::new();
    let mut is_body = false;
    loop {
        let line = lines.next()?;
        if line == end {
            return BASE64.decode(body).ok();
        }
        // Headers stand in front of an empty line; OpenSSH writes neither.
        if !is_body && line.contains(':') {
            continue;
        }
        is_body = true;
        if !line.starts_with('=') {
            body.push_str(line);
        }
    }
}

struct Packet<'a> {
    tag: u8,
    body: &'a [u8],
}

/// Splits a block into its packets (RFC 9580, 4.2). Lengths in parts are only for data, which is not in here.
fn packets(mut bytes: &[u8]) -> Result<Vec<Packet<'_>>, Wrong> {
    let mut packets = Vec::new();
    while let [head, rest @ ..] = bytes {
        if head & 0x80 == 0 || packets.len() == MOST_PACKETS {
            return Err("it has no whole packets");
        }
        let (tag, digits, rest, offset) = if head & 0x40 != 0 {
            // The new form: one, two or five bytes of length.
            let [first, after @ ..] = rest else { return Err("it ends early") };
            match first {
                0..=191 => (head & 0x3f, 1, rest, 0),
                192..=223 => (head & 0x3f, 2, rest, 0),
                255 => (head & 0x3f, 4, after, 0),
                _ => return Err("a length is in parts"),
            }
        } else {
            match head & 3 {
                0 => ((head >> 2) & 0xf, 1, rest, 1),
                1 => ((head >> 2) & 0xf, 2, rest, 1),
                2 => ((head >> 2) & 0xf, 4, rest, 1),
                _ => return Err("a length is not given"),
            }
        };
        let (length, rest) = rest.split_at_checked(digits).ok_or("it ends early")?;
        let number = length.iter().fold(0_usize, |number, byte| number << 8 | usize::from(*byte));
        // Two bytes of the new form begin at 192, with 192 in the first of them.
        let number = if digits == 2 && offset == 0 { number - (192 << 8) + 192 } else { number };
        let (body, rest) = rest.split_at_checked(number).ok_or("it ends early")?;
        packets.push(Packet { tag, body });
        bytes = rest;
    }
    Ok(packets)
}

/// The fingerprint of a key of version 4, in capitals.
fn fingerprint(body: &[u8]) -> Result<String, Wrong> {
    if body.first() != Some(&4) {
        return Err("a key is not of version 4");
    }
    let length = u16::try_from(body.len()).map_err(|_| "a key is too long")?;
    let hashed = [&[0x99], &length.to_be_bytes()[..], body].concat();
    // It only names the key: what is signed is never hashed with it.
    Ok(capitals(ring_digest(&SHA1_FOR_LEGACY_USE_ONLY, &hashed).as_ref()))
}

fn capitals(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// Takes a number of OpenPGP: its bits in two bytes, then its bytes.
fn number<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], Wrong> {
    let [high, low, rest @ ..] = *bytes else { return Err("it ends early") };
    let bits = usize::from(u16::from_be_bytes([*high, *low]));
    let (number, rest) = rest.split_at_checked(bits.div_ceil(8)).ok_or("it ends early")?;
    *bytes = rest;
    Ok(number)
}

/// The key in a packet that is a key of version 4.
fn public_key(body: &[u8]) -> Result<PublicKey, Wrong> {
    let [4, _, _, _, _, algorithm, rest @ ..] = body else { return Err("it ends early") };
    let mut rest = rest;
    let other_curve = "its curve is neither P-256, P-384 nor Ed25519";
    match algorithm {
        1 | 3 => {
            let (modulus, exponent) = (number(&mut rest)?, number(&mut rest)?);
            PublicKey::from_rsa(modulus, exponent).map_err(|_| "RSA keys have 2048 to 8192 bits")
        }
        19 | 22 => {
            let [length, after @ ..] = rest else { return Err("it ends early") };
            let (curve, after) =
                after.split_at_checked(usize::from(*length)).ok_or("it ends early")?;
            rest = after;
            let point = number(&mut rest)?;
            match (algorithm, curve, point) {
                (19, P256, _) => Ok(PublicKey::from_point(Algorithm::P256, point)),
                (19, P384, _) => Ok(PublicKey::from_point(Algorithm::P384, point)),
                (22, ED25519_LEGACY, [0x40, point @ ..]) => {
                    Ok(PublicKey::from_point(Algorithm::Ed25519, point))
                }
                _ => Err(other_curve),
            }
        }
        27 => {
            let point = rest.get(..32).ok_or("it ends early")?;
            Ok(PublicKey::from_point(Algorithm::Ed25519, point))
        }
        _ => Err("its keys are neither RSA, ECDSA nor Ed25519"),
    }
}

/// A signature packet, read.
#[derive(Debug)]
struct Signature {
    is_text: bool,
    algorithm: u8,
    hash: Hash,
    /// What is hashed behind the message.
    trailer: Vec<u8>,
    /// Of whom it says it is: a fingerprint, or the 16 last digits of one.
    issuer: Option<String>,
    /// The parts of the signature.
    parts: Vec<u8>,
}

/// Reads the signatures of a block.
fn signatures(block: &[u8]) -> Result<Vec<Result<Signature, Refusal>>, Refusal> {
    let unreadable = |why: Wrong| Refusal::cannot_read("PGP signature", why);
    let packets = packets(block).map_err(unreadable)?;
    let signatures = packets.iter().filter(|packet| packet.tag == 2);
    let signatures = signatures.take(MOST_SIGNATURES).map(|packet| signature(packet.body));
    Ok(signatures.collect())
}

fn signature(body: &[u8]) -> Result<Signature, Refusal> {
    let unreadable = |why: Wrong| Refusal::cannot_read("PGP signature", why);
    let early = || unreadable("it ends early");
    let unknown = |kind: String| Refusal::UnknownKind { kind };
    let [version, kind, algorithm, hash, high, low, rest @ ..] = body else { return Err(early()) };
    if *version != 4 {
        return Err(unknown(format!("PGP signature of version {version}")));
    }
    let is_text = match kind {
        0 => false,
        1 => true,
        _ => return Err(unknown(format!("PGP signature of type {kind}"))),
    };
    let hash = match hash {
        8 => Hash::Sha256,
        9 => Hash::Sha384,
        10 => Hash::Sha512,
        1..=3 => return Err(unknown("PGP signature with MD5, SHA-1 or RIPEMD-160".into())),
        _ => return Err(unknown(format!("PGP signature with hash {hash}"))),
    };
    let hashed_length = usize::from(u16::from_be_bytes([*high, *low]));
    let (hashed, rest) = rest.split_at_checked(hashed_length).ok_or_else(early)?;
    let [high, low, rest @ ..] = rest else { return Err(early()) };
    let length = usize::from(u16::from_be_bytes([*high, *low]));
    let (unhashed, rest) = rest.split_at_checked(length).ok_or_else(early)?;
    // Two bytes of the hash, which only save work.
    let parts = rest.get(2..).ok_or_else(early)?.to_vec();
    let mut issuer = None;
    read_subpackets(hashed, true, &mut issuer).map_err(unreadable)?;
    read_subpackets(unhashed, false, &mut issuer).map_err(unreadable)?;

    let head = body.get(..6 + hashed_length).ok_or_else(early)?;
    // It has at most 64 KiB.
    let length = u32::try_from(head.len()).unwrap_or(u32::MAX).to_be_bytes();
    let trailer = [head, &[4, 0xff], &length].concat();
    Ok(Signature { is_text, algorithm: *algorithm, hash, trailer, issuer, parts })
}

/// Reads who issued a signature, and refuses what is critical and not known.
fn read_subpackets(
    mut bytes: &[u8],
    is_hashed: bool,
    issuer: &mut Option<String>,
) -> Result<(), Wrong> {
    while let [first, rest @ ..] = bytes {
        let (length, rest) = match (first, rest) {
            (0..=191, _) => (usize::from(*first), rest),
            (192..=254, [second, rest @ ..]) => {
                ((usize::from(*first) - 192) * 256 + usize::from(*second) + 192, rest)
            }
            (255, [a, b, c, d, rest @ ..]) => (u32::from_be_bytes([*a, *b, *c, *d]) as usize, rest),
            _ => return Err("it ends early"),
        };
        let (body, rest) = rest.split_at_checked(length).ok_or("it ends early")?;
        bytes = rest;
        let [kind, body @ ..] = body else { return Err("a part of it is empty") };
        match (kind & 0x7f, body) {
            // The fingerprint says more than the key id.
            (33, [4, fingerprint @ ..]) => *issuer = Some(capitals(fingerprint)),
            (16, id) if issuer.is_none() => *issuer = Some(capitals(id)),
            // Its time, its end, policy, signer's name and recipients change nothing here.
            (2 | 3 | 16 | 26 | 28 | 33 | 35, _) => {}
            _ if kind & 0x80 != 0 && is_hashed => return Err("a critical part is not known"),
            _ => {}
        }
    }
    Ok(())
}

impl Signature {
    fn claims(&self, key: &PgpKey) -> bool {
        self.issuer.as_ref().is_none_or(|issuer| key.fingerprint.ends_with(issuer.as_str()))
    }

    fn verifies(&self, key: &PublicKey, message: &[u8]) -> Result<bool, Wrong> {
        let hashed = [message, &self.trailer].concat();
        let mut parts = self.parts.as_slice();
        match (self.algorithm, key.algorithm()) {
            (1 | 3, Algorithm::Rsa) => {
                let signature = key.padded(number(&mut parts)?);
                Ok(key.verifies_with(self.hash, &hashed, &signature))
            }
            (19, Algorithm::P256 | Algorithm::P384) => {
                if self.hash == Hash::Sha512 {
                    return Err("ECDSA signs with SHA-256 or SHA-384");
                }
                let numbers = [number(&mut parts)?, number(&mut parts)?].map(der::unsigned);
                let signature = der::write_element(der::SEQUENCE, &numbers.concat());
                Ok(key.verifies_with(self.hash, &hashed, &signature))
            }
            (22 | 27, Algorithm::Ed25519) => {
                let signature = if self.algorithm == 27 {
                    parts.to_vec()
                } else {
                    let halves = [number(&mut parts)?, number(&mut parts)?];
                    let zeros =
                        |half: &[u8]| 32_usize.checked_sub(half.len()).ok_or("a part is too long");
                    let [first, second] = halves;
                    let (before, between) = (vec![0; zeros(first)?], vec![0; zeros(second)?]);
                    [&before, first, &between, second].concat()
                };
                let digest = match self.hash {
                    Hash::Sha256 => Sha256::digest(&hashed).to_vec(),
                    Hash::Sha384 => Sha384::digest(&hashed).to_vec(),
                    Hash::Sha512 => Sha512::digest(&hashed).to_vec(),
                };
                Ok(key.verifies_with(self.hash, &digest, &signature))
            }
            _ => Ok(false),
        }
    }
}

/// Judges a detached signature in its armour.
pub(crate) fn judge_detached(armour: &[u8], message: &[u8], signers: &[Signer]) -> Verdict {
    let block = armoured(armour, "PGP SIGNATURE")
        .ok_or_else(|| Refusal::cannot_read("PGP signature", "its armour is damaged"));
    let signatures = match block.and_then(|block| signatures(&block)) {
        Ok(signatures) if signatures.is_empty() => {
            return Verdict::refused_for(Refusal::NoSignature);
        }
        Ok(signatures) => signatures,
        Err(refusal) => return Verdict::refused_for(refusal),
    };
    let text = with_crlf(message);
    let mut verdict = Verdict { accepted: Vec::new(), signed: Vec::new(), refusal: None };
    for signature in signatures {
        let one = match signature {
            Ok(signature) if signature.is_text => judge_one(&signature, &text, signers),
            Ok(signature) => judge_one(&signature, message, signers),
            Err(refusal) => Verdict::refused_for(refusal),
        };
        verdict.accepted.extend(one.accepted);
        verdict.signed.extend(one.signed);
        verdict.refusal = one.refusal.or(verdict.refusal);
    }
    if verdict.is_accepted() {
        verdict.refusal = None;
    }
    verdict
}

fn judge_one(signature: &Signature, message: &[u8], signers: &[Signer]) -> Verdict {
    let mut accepted = Vec::new();
    let mut claimed = None;
    for signer in signers {
        let SignerKind::Keys(keys) = &signer.kind else { continue };
        for key in keys {
            let Key::Pgp(key) = key else { continue };
            // Of a foreign signature it is known that nobody here made it, not that it is wrong.
            if !signature.claims(key) {
                continue;
            }
            match signature.verifies(&key.key, message) {
                Ok(true) => {
                    let (signer, identity) = (signer.name().to_owned(), key.identity());
                    accepted.push(Acceptance { signer, identity, time: None });
                    break;
                }
                Ok(false) => claimed = Some(key.identity()),
                Err(why) => {
                    let kind = format!("PGP signature: {why}");
                    return Verdict::refused_for(Refusal::UnknownKind { kind });
                }
            }
        }
    }
    if let Some(Acceptance { identity, .. }) = accepted.first() {
        let by = SignedBy::Identity(identity.clone());
        return Verdict::accepted_by(accepted, Signed::by_whom(by, true));
    }
    let signers = signer_names(signers);
    let (by, refusal) = match (&signature.issuer, claimed) {
        (Some(_), Some(identity)) => {
            let why = format!("it is not by {identity} over this");
            (SignedBy::Identity(identity), Refusal::wrong(why))
        }
        (Some(issuer), None) => {
            let by = SignedBy::PgpKey(issuer.clone());
            let words = by.to_string();
            (by, Refusal::SomeoneElse { by: words, signers })
        }
        (None, _) => (SignedBy::UnknownKey, Refusal::NoneOfThese { signers }),
    };
    Verdict::refused_of(Signed::by_whom(by, false), refusal)
}

/// The text with the ends of line that are hashed.
fn with_crlf(message: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(message.len());
    for (at, byte) in message.iter().enumerate() {
        if *byte == b'\n' && (at == 0 || message[at - 1] != b'\r') {
            text.push(b'\r');
        }
        text.push(*byte);
    }
    text
}

/// The most files that one names.
const MOST_FILES: usize = 64;

/// Judges a `.prov`, which must name the archive and its digest inside of what is signed.
pub(crate) fn judge_provenance(text: &str, subject: &Subject<'_>, signers: &[Signer]) -> Verdict {
    let signed = cleartext(text)
        .and_then(|(signed, armour)| names_archive(&signed, subject).map(|()| (signed, armour)));
    match signed {
        Ok((signed, armour)) => judge_detached(armour.as_bytes(), signed.as_bytes(), signers),
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

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = packets(&bytes);
            let _ = signatures(&bytes);
            let _ = signature(&bytes);
            let _ = signature(&[&[4, 0, 22, 8], &bytes[..]].concat());
            for algorithm in [1, 19, 22, 27] {
                let body = [&[4, 0, 0, 0, 0, algorithm], &bytes[..]].concat();
                let _ = fingerprint(&body).map(|_| public_key(&body));
            }
            let text = String::from_utf8_lossy(&bytes);
            let _ = armoured(text.as_bytes(), "PGP SIGNATURE");
        }
    }

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
