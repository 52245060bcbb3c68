//! SSH keys and signatures: OpenSSH's `PROTOCOL.sshsig`, version 1, also by security keys.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use sha2::{Digest as _, Sha256, Sha512};

use crate::key::{Algorithm, Hash, PublicKey};
use crate::pgp::armoured;
use crate::signer::{Key, SignerKind, matches_pattern, signer_names};
use crate::{
    Acceptance, Identity, Refusal, Signed, SignedBy, Signer, SignerError, Subject, Verdict, der,
};

/// The name in front of a signature, and of what is signed.
const MAGIC: &[u8] = b"SSHSIG";
/// The namespace of what Git signs.
pub(crate) const GIT_NAMESPACE: &[u8] = b"git";
/// The namespace of what publishers sign for hubs.
const PACKAGE: &[u8] = b"mu-package@v1";

/// A public key of SSH.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SshKey {
    /// All of it, as OpenSSH encodes it: two keys are the same if these bytes are.
    blob: Vec<u8>,
    kind: String,
    key: PublicKey,
    /// What a security key signs for: its application.
    application: Option<Vec<u8>>,
    /// What the line that names it lets it sign.
    limits: Limits,
}

/// What a line of an `allowed_signers` file lets its key sign; everything, if it has no options.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Limits {
    /// The options, as they are written.
    written: String,
    /// The namespaces, as patterns with commas between them.
    namespaces: Option<String>,
    /// The earliest and the latest date that what is signed may have, in seconds since 1970.
    after: Option<i64>,
    before: Option<i64>,
}

/// What cannot be read of a key or a signature.
type Wrong = &'static str;

/// Reads strings and numbers of RFC 4251.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], Wrong> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or("it ends early")?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u32, Wrong> {
        let bytes = self.take(4)?.try_into().map_err(|_| "it ends early")?;
        Ok(u32::from_be_bytes(bytes))
    }

    fn string(&mut self) -> Result<&'a [u8], Wrong> {
        let length = self.number()?;
        self.take(usize::try_from(length).map_err(|_| "it ends early")?)
    }

    /// A number that is not negative, as big-endian bytes.
    fn unsigned(&mut self) -> Result<&'a [u8], Wrong> {
        let bytes = self.string()?;
        if bytes.first().is_some_and(|first| first & 0x80 != 0) {
            return Err("a number is negative");
        }
        Ok(bytes)
    }

    fn end(&self) -> Result<(), Wrong> {
        if self.0.is_empty() { Ok(()) } else { Err("something follows its end") }
    }
}

/// Writes a string of RFC 4251.
fn string(bytes: &[u8]) -> Vec<u8> {
    // Nothing that is signed here is longer than `MOST_BYTES`.
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes(), bytes].concat()
}

impl SshKey {
    /// Reads a line of a public key file, `TYPE BASE64 COMMENT`, or of an `allowed_signers` file, as Git has it: `PRINCIPALS [OPTIONS] TYPE BASE64
    /// COMMENT`; `None` if it names no key. Who the principals are, the rule that names the file says.
    pub(crate) fn from_key_line(line: &str) -> Option<Result<Self, SignerError>> {
        let line = line.trim_ascii();
        if line.starts_with('#') {
            return None;
        }
        let words: Vec<&str> = outside_quotes(line, |one| one.is_ascii_whitespace()).collect();
        let is_kind =
            |word: &&str| ["ssh-", "ecdsa-", "sk-"].iter().any(|one| word.starts_with(one));
        // The bytes of each key begin with the length of its type's name, which is `AAAA` in base64.
        let is_key = |pair: &[&str]| is_kind(&pair[0]) && pair[1].starts_with("AAAA");
        let at = words.windows(2).take(3).position(is_key);
        let at = at.or_else(|| (words.len() > 1 && is_kind(&words[0])).then_some(0))?;
        let read = || {
            let blob = BASE64.decode(words[at + 1]).map_err(|_| "it is not base64")?;
            let key = Self::from_blob(&blob)?;
            if key.kind != words[at] {
                return Err("its type is another one inside");
            }
            let limits = match &words[..at] {
                [_, options] => Limits::read(options)?,
                // So do lines of `authorized_keys` begin, where all other options are about logins.
                [first] if Limits::is_authority(first) => return Err(AUTHORITY),
                _ => Limits::default(),
            };
            Ok(Self { limits, ..key })
        };
        Some(read().map_err(|why| SignerError::Key { kind: "SSH key", why: why.into() }))
    }

    fn from_blob(blob: &[u8]) -> Result<Self, Wrong> {
        let mut reader = Reader(blob);
        let kind = std::str::from_utf8(reader.string()?).map_err(|_| "its type is not text")?;
        let point = |reader: &mut Reader<'_>, algorithm, curve: &[u8]| {
            if reader.string()? != curve {
                return Err("its curve is another one");
            }
            Ok(PublicKey::from_point(algorithm, reader.string()?))
        };
        let key = match kind {
            "ssh-ed25519" | "sk-ssh-ed25519@openssh.com" => {
                PublicKey::from_point(Algorithm::Ed25519, reader.string()?)
            }
            "ecdsa-sha2-nistp256" | "sk-ecdsa-sha2-nistp256@openssh.com" => {
                point(&mut reader, Algorithm::P256, b"nistp256")?
            }
            "ecdsa-sha2-nistp384" => point(&mut reader, Algorithm::P384, b"nistp384")?,
            "ssh-rsa" => {
                let (exponent, modulus) = (reader.unsigned()?, reader.unsigned()?);
                PublicKey::from_rsa(modulus, exponent)
                    .map_err(|_| "RSA keys have 2048 to 8192 bits")?
            }
            _ => return Err("its type is not known"),
        };
        let application = match kind.starts_with("sk-") {
            true => Some(reader.string()?.to_vec()),
            false => None,
        };
        reader.end()?;
        let limits = Limits::default();
        Ok(Self { blob: blob.to_vec(), kind: kind.to_owned(), key, application, limits })
    }

    pub(crate) fn identity(&self) -> Identity {
        Identity::Ssh(STANDARD_NO_PAD.encode(Sha256::digest(&self.blob)))
    }

    /// Its identity, and what limits it.
    pub(crate) fn describe(&self) -> String {
        match self.limits.written.is_empty() {
            true => self.identity().to_string(),
            false => format!("{} ({})", self.identity(), self.limits.written),
        }
    }

    /// Whether a signature, with its algorithm in front, is by this key over these bytes.
    fn verifies(&self, message: &[u8], signature: &[u8]) -> Result<bool, Wrong> {
        let mut reader = Reader(signature);
        let algorithm = reader.string()?;
        let hash = match (algorithm, self.kind.as_str()) {
            (b"rsa-sha2-256", "ssh-rsa") => Hash::Sha256,
            (b"rsa-sha2-512", "ssh-rsa") => Hash::Sha512,
            (b"ecdsa-sha2-nistp384", "ecdsa-sha2-nistp384") => Hash::Sha384,
            (_, "ssh-rsa") => return Err("RSA signs with SHA-256 or SHA-512"),
            (algorithm, kind) if algorithm == kind.as_bytes() => Hash::Sha256,
            _ => return Err("its algorithm is not that of the key"),
        };
        let raw = reader.string()?;
        let raw = if matches!(self.key.algorithm(), Algorithm::P256 | Algorithm::P384) {
            let mut parts = Reader(raw);
            let numbers = [der::unsigned(parts.unsigned()?), der::unsigned(parts.unsigned()?)];
            parts.end()?;
            der::write_element(der::SEQUENCE, &numbers.concat())
        } else {
            raw.to_vec()
        };
        let message = match &self.application {
            None => message.to_vec(),
            Some(application) => {
                let presence = reader.take(5)?;
                // The first bit: somebody touched the key.
                if presence[0] & 1 == 0 {
                    return Err("nobody was present at the security key");
                }
                let application = Sha256::digest(application);
                [&application[..], presence, &Sha256::digest(message)[..]].concat()
            }
        };
        reader.end()?;
        Ok(self.key.verifies_with(hash, &message, &raw))
    }
}

/// The parts of a text between separators that are not in quotes; none is empty.
fn outside_quotes(text: &str, is_separator: fn(char) -> bool) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    let parts = text.split(move |one| {
        is_quoted ^= one == '"';
        !is_quoted && is_separator(one)
    });
    parts.filter(|part| !part.is_empty())
}

/// Why the key of an authority is none of a signer: it signs certificates, which mu does not read.
const AUTHORITY: Wrong = "it is the key of an authority (`cert-authority`), and mu reads no certificates of SSH; name the keys themselves";

impl Limits {
    fn is_authority(option: &str) -> bool {
        option.eq_ignore_ascii_case("cert-authority")
    }

    /// Reads options as `ssh-keygen` does.
    fn read(written: &str) -> Result<Self, Wrong> {
        let mut limits = Self { written: written.to_owned(), ..Self::default() };
        for option in outside_quotes(written, |one| one == ',') {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
            let time = || value.and_then(time).ok_or("a time in its options is none");
            match &*name.to_ascii_lowercase() {
                _ if Self::is_authority(option) => return Err(AUTHORITY),
                "namespaces" => {
                    let value = value.ok_or("its namespaces are not in quotes")?;
                    limits.namespaces = Some(value.to_owned());
                }
                "valid-after" => limits.after = Some(time()?),
                "valid-before" => limits.before = Some(time()?),
                _ => return Err("it has an option that `allowed_signers` files do not have"),
            }
        }
        Ok(limits)
    }

    /// Whether its key may sign in this namespace what has this date. What has none is signed at no time that could be compared.
    fn allow(&self, namespace: &[u8], date: Option<i64>) -> bool {
        let namespace = String::from_utf8_lossy(namespace);
        let is_named = self.namespaces.as_ref().is_none_or(|names| {
            let is_it = |pattern: &str| matches_pattern(&namespace, pattern.trim());
            let is_excluded = |name: &str| name.trim().strip_prefix('!').is_some_and(is_it);
            names.split(',').any(is_it) && !names.split(',').any(is_excluded)
        });
        let is_in_time = |limit: Option<i64>, fits: fn(i64, i64) -> bool| match (limit, date) {
            (None, _) => true,
            (Some(limit), Some(date)) => fits(date, limit),
            (Some(_), None) => false,
        };
        is_named
            && is_in_time(self.after, |date, first| date >= first)
            && is_in_time(self.before, |date, last| date <= last)
    }
}

/// A time of an option, `YYYYMMDD[HHMM[SS]][Z]`, in seconds since 1970. Without the `Z`, OpenSSH takes the time zone of the machine, and mu takes UTC, so
/// that the answer is the same everywhere.
fn time(text: &str) -> Option<i64> {
    let digits = text.strip_suffix(['Z', 'z']).unwrap_or(text);
    let is_time =
        matches!(digits.len(), 8 | 12 | 14) && digits.bytes().all(|one| one.is_ascii_digit());
    let part = |from: usize, to| digits.get(from..to).map_or(Some(0), |part| part.parse().ok());
    let parts = [part(0, 4)?, part(4, 6)?, part(6, 8)?, part(8, 10)?, part(10, 12)?, part(12, 14)?];
    der::seconds(parts).filter(|_| is_time)
}

/// Judges the signature that a publisher made of a package.
pub(crate) fn judge_package(blob: &[u8], subject: &Subject<'_>, signers: &[Signer]) -> Verdict {
    let Subject::Package { name, version, h1 } = subject else {
        let why = "it is over a package in a hub, and none was asked for".into();
        return Verdict::refused_for(Refusal::OtherSubject { why });
    };
    // An end of line inside would let one package pose as another.
    if [name, version, h1].iter().any(|part| part.contains('\n')) {
        return Verdict::refused_for(Refusal::cannot_read("subject", "it has more than one line"));
    }
    let message = format!("mu-package/v1\n{name}\n{version}\n{h1}\n");
    judge(blob, PACKAGE, message.as_bytes(), None, signers)
}

/// Judges a signature in its armour, over something of Git with this date.
pub(crate) fn judge_armoured(
    text: &[u8],
    message: &[u8],
    date: Option<i64>,
    signers: &[Signer],
) -> Verdict {
    match armoured(text, "SSH SIGNATURE") {
        Some(blob) => judge(&blob, GIT_NAMESPACE, message, date, signers),
        None => {
            Verdict::refused_for(Refusal::cannot_read("SSH signature", "its armour is damaged"))
        }
    }
}

/// Judges a signature, which holds the key that it is by.
fn judge(
    blob: &[u8],
    namespace: &[u8],
    message: &[u8],
    date: Option<i64>,
    signers: &[Signer],
) -> Verdict {
    let (key, verifies) = match check(blob, namespace, message) {
        Ok(checked) => checked,
        Err(why) => return Verdict::refused_for(Refusal::cannot_read("SSH signature", why)),
    };
    let identity = key.identity();
    let signed = Signed::by_whom(SignedBy::Identity(identity.clone()), verifies);
    if !verifies {
        let refusal =
            Refusal::wrong(format!("it is not by {identity} over this, in this namespace"));
        return Verdict::refused_of(signed, refusal);
    }
    // A file may name a key in several lines, each with its own limits.
    let lines = |signer: &Signer| -> Vec<Limits> {
        let SignerKind::Keys(keys) = &signer.kind else { return Vec::new() };
        let own = keys.iter().filter_map(|one| match one {
            Key::Ssh(one) => Some(one).filter(|one| one.blob == key.blob),
            Key::Public(_) | Key::Pgp(_) => None,
        });
        own.map(|one| one.limits.clone()).collect()
    };
    let may_sign = |signer: &&Signer| lines(signer).iter().any(|one| one.allow(namespace, date));
    let accepted = signers.iter().filter(may_sign).map(|signer| Acceptance {
        signer: signer.name().to_owned(),
        identity: identity.clone(),
        time: None,
    });
    let accepted: Vec<Acceptance> = accepted.collect();
    if !accepted.is_empty() {
        return Verdict::accepted_by(accepted, signed);
    }
    let limited = signers.iter().find_map(|one| Some((one.name(), lines(one).into_iter().next()?)));
    let refusal = match limited {
        Some((name, limits)) => {
            let written = limits.written;
            Refusal::wrong(format!("it is by {identity}, which is `{name}` only with `{written}`"))
        }
        None => Refusal::SomeoneElse { by: identity.to_string(), signers: signer_names(signers) },
    };
    Verdict::refused_of(signed, refusal)
}

/// Reads a signature: its key, and whether it is by that key over the message in this namespace.
fn check(blob: &[u8], namespace: &[u8], message: &[u8]) -> Result<(SshKey, bool), Wrong> {
    let mut reader = Reader(blob);
    if reader.take(MAGIC.len())? != MAGIC || reader.number()? != 1 {
        return Err("it is no SSHSIG of version 1");
    }
    let key = SshKey::from_blob(reader.string()?)?;
    let (signed_for, reserved, hash) = (reader.string()?, reader.string()?, reader.string()?);
    let signature = reader.string()?;
    reader.end()?;
    let digest = match hash {
        b"sha256" => Sha256::digest(message).to_vec(),
        b"sha512" => Sha512::digest(message).to_vec(),
        _ => return Err("its hash is neither SHA-256 nor SHA-512"),
    };
    let parts = [namespace, reserved, hash, &digest].map(string).concat();
    let verifies = key.verifies(&[MAGIC, &parts].concat(), signature)?;
    Ok((key, verifies && signed_for == namespace))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            lengths in proptest::collection::vec(0_usize..40, 0..8),
        ) {
            let _ = SshKey::from_blob(&bytes);
            let _ = check(&bytes, GIT_NAMESPACE, b"");
            // Also those that get further: whole strings of any content.
            let kinds = ["ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256", "sk-ssh-ed25519@openssh.com"];
            for kind in kinds {
                let mut blob = string(kind.as_bytes());
                for length in &lengths {
                    blob.extend(string(&bytes[..bytes.len().min(*length)]));
                }
                let _ = SshKey::from_blob(&blob);
                let mut signature = [MAGIC, &1_u32.to_be_bytes(), &string(&blob)].concat();
                for part in [GIT_NAMESPACE, b"", b"sha256", &blob] {
                    signature.extend(string(part));
                }
                let _ = check(&signature, GIT_NAMESPACE, b"");
            }
        }
    }
}
