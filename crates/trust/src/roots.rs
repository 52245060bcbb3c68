//! Whom keyless signatures lead to: `trusted_root.json` files of sigstore. There is no TUF: a newer file is a newer mu, or named.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::MOST_BYTES;
use crate::der::{day, rfc3339};
use crate::key::{Certificate, MOST_CERTIFICATES, PublicKey};

/// The root of the public instance of sigstore.
const SIGSTORE: &[u8] = include_bytes!("trusted_root.json");

/// The most logs or authorities of a kind in a root.
const MOST_MEMBERS: usize = 128;

/// Roots, of which the one that issued a certificate decides about it.
#[derive(Debug, Clone, Default)]
pub struct Roots {
    roots: Vec<Root>,
}

/// One `trusted_root.json`.
#[derive(Debug, Clone)]
pub struct Root {
    name: String,
    since: Option<i64>,
    until: Option<i64>,
    digest: [u8; 32],
    pub(crate) certificate_authorities: Vec<Authority>,
    pub(crate) timestamp_authorities: Vec<Authority>,
    pub(crate) certificate_logs: Vec<Log>,
    pub(crate) transparency_logs: Vec<Log>,
    pub(crate) has_certificate_logs: bool,
}

/// Who issues certificates or times: a chain that ends in what is trusted.
#[derive(Debug, Clone)]
pub(crate) struct Authority {
    pub(crate) chain: Vec<Certificate>,
    pub(crate) valid: Period,
}

/// A log, by its key and the id that goes with it.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    pub(crate) id: Vec<u8>,
    pub(crate) key: PublicKey,
    pub(crate) valid: Period,
}

/// From when to when something is trusted, both ends included.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Period {
    start: i64,
    end: Option<i64>,
}

impl Period {
    pub(crate) fn contains(&self, time: i64) -> bool {
        self.start <= time && self.end.is_none_or(|end| time <= end)
    }
}

/// A root that cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the trusted root `{name}` cannot be read: {why}")]
pub struct RootError {
    /// Its name.
    pub name: String,
    /// What is wrong with it.
    pub why: String,
}

impl Roots {
    /// No root: nothing keyless is accepted.
    pub fn none() -> Self {
        Self::default()
    }

    /// The public instance's alone, under the name `sigstore`.
    pub fn sigstore() -> Self {
        let mut roots = Self::none();
        roots.add_sigstore();
        roots
    }

    /// Adds the public instance's root, which is compiled in, under the name `sigstore`.
    pub fn add_sigstore(&mut self) {
        self.add("sigstore", SIGSTORE).expect("a test reads what is compiled in");
    }

    /// Adds the `trusted_root.json` with these bytes, under the name that people know it by.
    ///
    /// # Errors
    ///
    /// It is no such file, or one of its parts cannot be read. A key of a kind that is not known is left out: nothing it signs
    /// verifies.
    pub fn add(&mut self, name: &str, json: &[u8]) -> Result<(), RootError> {
        let failed = |why: String| RootError { name: name.to_owned(), why };
        if json.len() > MOST_BYTES {
            return Err(failed(format!("it has more than {MOST_BYTES} bytes")));
        }
        let wire: WireRoot =
            serde_json::from_slice(json).map_err(|error| failed(error.to_string()))?;
        self.roots.push(wire.root(name, json).map_err(failed)?);
        Ok(())
    }

    /// The roots in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &Root> {
        self.roots.iter()
    }
}

impl Root {
    /// The name that it was added under.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// When the newest thing in it began to be valid, in seconds since 1970: how new it is.
    pub fn since(&self) -> Option<i64> {
        self.since
    }

    /// When the last of its certificate authorities expires, in seconds since 1970: how long new signatures can verify.
    pub fn until(&self) -> Option<i64> {
        self.until
    }

    /// It in words: with how new it is.
    pub(crate) fn in_words(&self) -> String {
        let since = self.since.map(|since| format!(" of {}", day(since))).unwrap_or_default();
        if self.digest[..] == Sha256::digest(SIGSTORE)[..] {
            format!("this mu's root{since}")
        } else {
            format!("the root `{}`{since}", self.name)
        }
    }

    /// The SHA-256 of its bytes, for a key of a cache.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireRoot {
    media_type: String,
    #[serde(default)]
    tlogs: Vec<WireLog>,
    #[serde(default)]
    certificate_authorities: Vec<WireAuthority>,
    #[serde(default)]
    ctlogs: Vec<WireLog>,
    #[serde(default)]
    timestamp_authorities: Vec<WireAuthority>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireLog {
    public_key: WireKey,
    log_id: WireLogId,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireKey {
    raw_bytes: String,
    valid_for: WirePeriod,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireLogId {
    key_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireAuthority {
    cert_chain: WireChain,
    #[serde(default)]
    valid_for: WirePeriod,
}

#[derive(Deserialize)]
struct WireChain {
    certificates: Vec<WireCertificate>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireCertificate {
    raw_bytes: String,
}

#[derive(Default, Deserialize)]
struct WirePeriod {
    start: Option<String>,
    end: Option<String>,
}

impl WireRoot {
    fn root(&self, name: &str, json: &[u8]) -> Result<Root, String> {
        if !self.media_type.starts_with("application/vnd.dev.sigstore.trustedroot") {
            return Err(format!("its media type is `{}`", self.media_type));
        }
        let certificate_authorities = authorities(&self.certificate_authorities)?;
        let timestamp_authorities = authorities(&self.timestamp_authorities)?;
        let certificate_logs = logs(&self.ctlogs)?;
        let transparency_logs = logs(&self.tlogs)?;

        let of_logs = certificate_logs.iter().chain(&transparency_logs).map(|log| log.valid.start);
        let of_authorities = certificate_authorities.iter().chain(&timestamp_authorities);
        let starts = of_logs.chain(of_authorities.map(|authority| authority.valid.start));
        let until = certificate_authorities.iter().filter_map(|authority| {
            let of_chain = authority.chain.iter().map(|certificate| certificate.not_after);
            of_chain.chain(authority.valid.end).min()
        });
        Ok(Root {
            name: name.to_owned(),
            since: starts.max(),
            until: until.max(),
            digest: Sha256::digest(json).into(),
            has_certificate_logs: !self.ctlogs.is_empty(),
            certificate_authorities,
            timestamp_authorities,
            certificate_logs,
            transparency_logs,
        })
    }
}

fn decode(what: &str, text: &str) -> Result<Vec<u8>, String> {
    BASE64.decode(text).map_err(|error| format!("{what}: {error}"))
}

impl WirePeriod {
    fn period(&self) -> Result<Period, String> {
        let time = |text: &String| rfc3339(text).ok_or_else(|| format!("`{text}` is not a time"));
        let start = self.start.as_ref().ok_or("a `validFor` has no `start`")?;
        let end = self.end.as_ref().map(time).transpose()?;
        Ok(Period { start: time(start)?, end })
    }
}

fn logs(wire: &[WireLog]) -> Result<Vec<Log>, String> {
    if wire.len() > MOST_MEMBERS {
        return Err(format!("it has more than {MOST_MEMBERS} logs"));
    }
    let mut logs = Vec::new();
    for log in wire {
        let valid = log.public_key.valid_for.period()?;
        let id = decode("keyId", &log.log_id.key_id)?;
        let spki = decode("rawBytes", &log.public_key.raw_bytes)?;
        let Ok(key) = PublicKey::from_spki(&spki) else { continue };
        logs.push(Log { id, key, valid });
    }
    Ok(logs)
}

fn authorities(wire: &[WireAuthority]) -> Result<Vec<Authority>, String> {
    if wire.len() > MOST_MEMBERS {
        return Err(format!("it has more than {MOST_MEMBERS} authorities"));
    }
    let mut authorities = Vec::new();
    for authority in wire {
        let certificates = &authority.cert_chain.certificates;
        if certificates.is_empty() || certificates.len() > MOST_CERTIFICATES {
            return Err(format!("a chain has {} certificates", certificates.len()));
        }
        let chain = certificates.iter().map(|certificate| {
            let der = decode("rawBytes", &certificate.raw_bytes)?;
            Certificate::read(&der).map_err(|error| format!("a certificate: {error}"))
        });
        let chain = chain.collect::<Result<_, _>>()?;
        authorities.push(Authority { chain, valid: authority.valid_for.period()? });
    }
    Ok(authorities)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_that_is_compiled_in_is_read() {
        let roots = Roots::sigstore();
        let root = roots.iter().next().expect("it is there");
        assert_eq!(root.name(), "sigstore");
        assert_eq!(root.since(), rfc3339("2025-09-23T00:00:00Z"));
        assert_eq!(root.until(), rfc3339("2031-10-05T13:56:58Z"));
        assert_eq!(root.transparency_logs.len(), 2);
        assert_eq!(root.in_words(), "this mu's root of 2025-09-23");
    }

    #[test]
    fn other_files_are_refused() {
        for (json, why) in [
            ("{", "EOF"),
            (r#"{"mediaType": "text/plain"}"#, "media type"),
            (
                r#"{"mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1", "tlogs": [{"publicKey":
                {"rawBytes": "", "validFor": {}}, "logId": {"keyId": ""}}]}"#,
                "no `start`",
            ),
        ] {
            let error = Roots::none().add("acme", json.as_bytes()).expect_err(json);
            assert!(error.to_string().contains(why), "{error}");
        }
    }
}
