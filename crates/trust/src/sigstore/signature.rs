//! A signature of sigstore as it was read, whichever form it came in; nothing here is verified.

use super::log::LogEntry;
use crate::certificate::Certificate;
use crate::key;
use crate::{Refusal, Subject};

/// A signature with what proves whose it is, read but not verified.
pub(crate) struct Signature {
    /// The bytes that are signed, which are the subject or name it.
    pub(super) message: Vec<u8>,
    /// The signature itself.
    pub(super) signature: Vec<u8>,
    /// What a bundle says of the key.
    pub(super) hint: Option<String>,
    /// What an envelope holds: some logs hash it, and not what is signed.
    pub(super) payload: Option<Vec<u8>>,
    /// The certificate of an identity.
    pub(super) certificate: Option<Certificate>,
    /// Tokens of RFC 3161.
    pub(super) tokens: Vec<Vec<u8>>,
    /// Entries of transparency logs.
    pub(super) entries: Vec<LogEntry>,
    /// Whether a log's promise is enough: the form is older than proofs.
    pub(super) takes_promises: bool,
}

/// The digest of the content that a subject is.
pub(super) fn content(subject: &Subject<'_>) -> Result<[u8; 32], Refusal> {
    match subject {
        Subject::Content { sha256, .. } => Ok(*sha256),
        Subject::Commit { .. } | Subject::Package { .. } => Err(Refusal::OtherSubject {
            why: "it is over a manifest or an archive, and neither was asked for".into(),
        }),
    }
}

pub(super) fn other_digest(found: &str, wanted: [u8; 32]) -> Refusal {
    let why = format!("it is over `{found}`, not over sha256:{}", key::lower_hex(&wanted));
    Refusal::OtherSubject { why }
}
