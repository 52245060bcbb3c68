//! X.509 certificates: the fields that are compared, and chains, which `webpki` verifies at a time that somebody signed.

use pki_types::{CertificateDer, UnixTime};
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};

use crate::der::{self, DerReader, NotDer};
use crate::key::{Hash, KeyError, PublicKey};

/// `id-kp-codeSigning`.
pub(crate) const CODE_SIGNING: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x03];
/// `id-kp-timeStamping`.
pub(crate) const TIME_STAMPING: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x08];

/// `id-at-commonName`.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
/// `id-at-organizationName`.
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];

/// The most certificates in a chain.
pub(crate) const MOST_CERTIFICATES: usize = 10;

/// One certificate, with the parts that are looked at.
#[derive(Debug, Clone)]
pub(crate) struct Certificate {
    /// All of it.
    pub(crate) der: Vec<u8>,
    pub(crate) serial: Vec<u8>,
    /// The name of the issuer, as DER.
    pub(crate) issuer: Vec<u8>,
    /// The name of the subject, as DER.
    pub(crate) subject: Vec<u8>,
    pub(crate) not_before: i64,
    pub(crate) not_after: i64,
    pub(crate) spki: Vec<u8>,
    pub(crate) extensions: Vec<CertificateExtension>,
    /// The part in front of the extensions of what the issuer signed: a certificate log signs it without one of them.
    pub(crate) tbs_before_extensions: Vec<u8>,
    /// All that the issuer signed, and the signature.
    tbs: Vec<u8>,
    signature: Vec<u8>,
}

/// An extension of a certificate.
#[derive(Debug, Clone)]
pub(crate) struct CertificateExtension {
    pub(crate) oid: Vec<u8>,
    pub(crate) value: Vec<u8>,
    /// The whole element.
    pub(crate) whole: Vec<u8>,
}

impl Certificate {
    /// Reads a certificate.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, NotDer> {
        let mut outer = DerReader::single(bytes, der::SEQUENCE)?;
        let tbs = outer.element(der::SEQUENCE)?;
        outer.element(der::SEQUENCE)?;
        let signature = outer.bits()?.to_vec();
        outer.expect_end()?;

        let mut inside = DerReader::new(tbs.content);
        inside.optional(0xa0)?;
        let serial = inside.content_of(der::INTEGER)?.to_vec();
        inside.element(der::SEQUENCE)?;
        let issuer = inside.element(der::SEQUENCE)?.whole.to_vec();
        let mut validity = inside.read(der::SEQUENCE)?;
        let (not_before, not_after) = (validity.any_time()?, validity.any_time()?);
        let subject = inside.element(der::SEQUENCE)?.whole.to_vec();
        let spki = inside.element(der::SEQUENCE)?.whole.to_vec();
        // Unique ids of issuer and subject, which nobody uses.
        inside.optional(0x81)?;
        inside.optional(0x82)?;
        let before = tbs.content.len() - inside.remaining();
        let tbs_before_extensions = tbs.content.get(..before).ok_or(NotDer)?.to_vec();
        let mut extensions = Vec::new();
        if let Some(list) = inside.optional(0xa3)? {
            let mut list = DerReader::single(list.content, der::SEQUENCE)?;
            while !list.is_empty() {
                let element = list.element(der::SEQUENCE)?;
                let mut parts = DerReader::new(element.content);
                let oid = parts.content_of(der::OID)?.to_vec();
                parts.optional(der::BOOLEAN)?;
                let value = parts.content_of(der::OCTET_STRING)?.to_vec();
                parts.expect_end()?;
                extensions.push(CertificateExtension { oid, value, whole: element.whole.to_vec() });
            }
        }
        inside.expect_end()?;
        Ok(Self {
            der: bytes.to_vec(),
            serial,
            issuer,
            subject,
            not_before,
            not_after,
            spki,
            extensions,
            tbs_before_extensions,
            tbs: tbs.whole.to_vec(),
            signature,
        })
    }

    /// The value of an extension; `None` if there is none, or more than one.
    pub(crate) fn extension(&self, oid: &[u8]) -> Option<&[u8]> {
        let mut all = self.extensions.iter().filter(|extension| extension.oid == oid);
        let first = all.next()?;
        all.next().is_none().then_some(first.value.as_slice())
    }

    pub(crate) fn subject_key(&self) -> Result<PublicKey, KeyError> {
        PublicKey::from_spki(&self.spki)
    }

    /// Whether this is by the key of `issuer`, at whatever time.
    pub(crate) fn is_issued_by(&self, issuer: &Self) -> bool {
        let hashes = [Hash::Sha256, Hash::Sha384, Hash::Sha512];
        self.issuer == issuer.subject
            && issuer.subject_key().is_ok_and(|key| {
                hashes.iter().any(|hash| key.verifies_with(*hash, &self.tbs, &self.signature))
            })
    }

    /// The common name of the issuer, or its organization, for people.
    pub(crate) fn issuer_name(&self) -> Option<String> {
        let mut found = None;
        let mut names = DerReader::single(&self.issuer, der::SEQUENCE).ok()?;
        while !names.is_empty() {
            let mut name = names.read(der::SET).ok()?.read(der::SEQUENCE).ok()?;
            let oid = name.content_of(der::OID).ok()?;
            let text = std::str::from_utf8(name.any().ok()?.content).ok()?;
            let is_plain = !text.is_empty() && !text.chars().any(char::is_control);
            if is_plain && (oid == COMMON_NAME || oid == ORGANIZATION && found.is_none()) {
                found = Some(text.to_owned());
            }
        }
        found
    }

    pub(crate) fn is_valid_at(&self, time: i64) -> bool {
        (self.not_before..=self.not_after).contains(&time)
    }
}

fn words(error: webpki::Error) -> String {
    match error {
        webpki::Error::CertExpired { .. } => "it had expired".into(),
        webpki::Error::CertNotValidYet { .. } => "it was not valid yet".into(),
        webpki::Error::UnknownIssuer => "it does not lead to the root".into(),
        webpki::Error::RequiredEkuNotFoundContext(_) => "it is for another purpose".into(),
        // The rest is rare, and one word there says more than a sentence for all of them.
        error => format!("{error:?}"),
    }
}

/// Verifies that `leaf` leads to the last certificate of `chain`, at that time and for that purpose.
///
/// The others of `chain` are what may lie between. `webpki` does not look at the anchor's own dates, so this does.
pub(crate) fn verify_chain(
    leaf: &Certificate,
    chain: &[Certificate],
    time: i64,
    purpose: &'static [u8],
) -> Result<(), String> {
    let Some((anchor, between)) = chain.split_last() else { return Err("no chain".into()) };
    if !anchor.is_valid_at(time) {
        return Err("the root certificate was not valid then".into());
    }
    let seconds = u64::try_from(time).map_err(|_| "the time is before 1970".to_owned())?;
    let time = UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));

    let anchor_der = CertificateDer::from(anchor.der.as_slice());
    let anchors = [anchor_from_trusted_cert(&anchor_der).map_err(words)?];
    let between: Vec<CertificateDer<'_>> = between
        .iter()
        .map(|certificate| CertificateDer::from(certificate.der.as_slice()))
        .collect();
    let leaf_der = CertificateDer::from(leaf.der.as_slice());
    let leaf = EndEntityCert::try_from(&leaf_der).map_err(words)?;
    leaf.verify_for_usage(
        webpki::ALL_VERIFICATION_ALGS,
        &anchors,
        &between,
        time,
        KeyUsage::required(purpose),
        None,
        None,
    )
    .map(|_| ())
    .map_err(words)
}
