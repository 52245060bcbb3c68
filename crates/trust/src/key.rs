//! Public keys as PEM files, certificates and roots have them (SubjectPublicKeyInfo), and signatures by them.
//!
//! Of X.509 certificates, these are the fields that are compared, and chains, which `webpki` verifies at a time that somebody
//! signed.

use base64::Engine as _;
use base64::alphabet::STANDARD as STANDARD_ALPHABET;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use pki_types::{CertificateDer, UnixTime};
use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use sha2::{Digest as _, Sha256};
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};

use crate::Identity;
use crate::der::{self, DerReader, NotDer};

/// Takes also what has bits behind its end, as OpenSSL does: keys and certificates are compared by what is decoded.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD_ALPHABET,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// `id-ecPublicKey`.
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
/// `prime256v1`.
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
/// `secp384r1`.
const P384: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];
/// `id-Ed25519`.
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
/// `rsaEncryption`.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];

/// A hash under a signature. There is nothing older.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hash {
    Sha256,
    Sha384,
    Sha512,
}

/// What kind of key it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Algorithm {
    P256,
    P384,
    Ed25519,
    /// PKCS #1, version 1.5, from 2048 bits.
    Rsa,
}

/// A public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PublicKey {
    algorithm: Algorithm,
    /// As `ring` takes it: a point, 32 bytes, or an `RSAPublicKey`.
    raw: Vec<u8>,
    /// The whole SubjectPublicKeyInfo, whose hash names the key.
    spki: Vec<u8>,
}

/// Why a public key is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyError {
    #[error(transparent)]
    NotDer(#[from] NotDer),
    #[error("it is neither P-256, P-384, Ed25519 nor RSA")]
    OtherAlgorithm,
    #[error(
        "its point is compressed or damaged: write it with `openssl pkey -pubin -pubout -ec_conv_form uncompressed`"
    )]
    Point,
    #[error("it is an RSA key with {0} bits, and they have 2048 to 8192")]
    Bits(usize),
}

impl PublicKey {
    /// Reads a SubjectPublicKeyInfo.
    pub(crate) fn from_spki(spki: &[u8]) -> Result<Self, KeyError> {
        let mut inside = DerReader::single(spki, der::SEQUENCE)?;
        let mut kind = inside.read(der::SEQUENCE)?;
        let raw = inside.bits()?;
        inside.expect_end()?;
        let algorithm = match kind.content_of(der::OID)? {
            EC => match kind.content_of(der::OID)? {
                P256 => Algorithm::P256,
                P384 => Algorithm::P384,
                _ => return Err(KeyError::OtherAlgorithm),
            },
            ED25519 => Algorithm::Ed25519,
            RSA => {
                let mut parts = DerReader::single(raw, der::SEQUENCE)?;
                check_modulus(parts.content_of(der::INTEGER)?)?;
                Algorithm::Rsa
            }
            _ => return Err(KeyError::OtherAlgorithm),
        };
        let length = match algorithm {
            Algorithm::P256 => 65,
            Algorithm::P384 => 97,
            Algorithm::Ed25519 => 32,
            Algorithm::Rsa => raw.len(),
        };
        // A compressed point is shorter; it would verify nothing, and nobody would know why.
        if raw.len() != length {
            return Err(KeyError::Point);
        }
        Ok(Self { algorithm, raw: raw.to_vec(), spki: spki.to_vec() })
    }

    /// A key from its bare parts, as OpenPGP and SSH have them: a point, or the 32 bytes of Ed25519.
    pub(crate) fn from_point(algorithm: Algorithm, point: &[u8]) -> Self {
        let oids = match algorithm {
            Algorithm::P256 => {
                [der::write_element(der::OID, EC), der::write_element(der::OID, P256)].concat()
            }
            Algorithm::P384 => {
                [der::write_element(der::OID, EC), der::write_element(der::OID, P384)].concat()
            }
            Algorithm::Ed25519 => der::write_element(der::OID, ED25519),
            // A modulus is no point; `from_rsa` reads one.
            Algorithm::Rsa => Vec::new(),
        };
        Self::from_parts(algorithm, &oids, point)
    }

    /// An RSA key from modulus and exponent, which stand there without a sign.
    pub(crate) fn from_rsa(modulus: &[u8], exponent: &[u8]) -> Result<Self, KeyError> {
        check_modulus(modulus)?;
        let parts = [der::unsigned(modulus), der::unsigned(exponent)].concat();
        let raw = der::write_element(der::SEQUENCE, &parts);
        let kind = [der::write_element(der::OID, RSA), vec![0x05, 0x00]].concat();
        Ok(Self::from_parts(Algorithm::Rsa, &kind, &raw))
    }

    fn from_parts(algorithm: Algorithm, kind: &[u8], raw: &[u8]) -> Self {
        let bits = [&[0], raw].concat();
        let parts =
            [der::write_element(der::SEQUENCE, kind), der::write_element(der::BIT_STRING, &bits)];
        let spki = der::write_element(der::SEQUENCE, &parts.concat());
        Self { algorithm, raw: raw.to_vec(), spki }
    }

    pub(crate) fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// A signature of RSA with the zeros in front that some formats drop.
    pub(crate) fn padded(&self, signature: &[u8]) -> Vec<u8> {
        let modulus = DerReader::single(&self.raw, der::SEQUENCE)
            .and_then(|mut parts| parts.content_of(der::INTEGER))
            .unwrap_or_default();
        let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
        let missing = (modulus.len() - zeros).saturating_sub(signature.len());
        [&vec![0; missing], signature].concat()
    }

    /// The SHA-256 of the SubjectPublicKeyInfo.
    pub(crate) fn spki_digest(&self) -> [u8; 32] {
        Sha256::digest(&self.spki).into()
    }

    pub(crate) fn identity(&self) -> Identity {
        Identity::Key(lower_hex(&self.spki_digest()))
    }

    /// Whether the signature is by this key, with a hash that fits it.
    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let hashes: &[Hash] = match self.algorithm {
            Algorithm::P384 => &[Hash::Sha384, Hash::Sha256],
            _ => &[Hash::Sha256],
        };
        hashes.iter().any(|hash| self.verifies_with(*hash, message, signature))
    }

    /// Whether the signature is by this key with this hash. Ed25519 has its own; ECDSA signatures are DER.
    pub(crate) fn verifies_with(&self, hash: Hash, message: &[u8], signature: &[u8]) -> bool {
        let algorithm: &'static dyn VerificationAlgorithm = match (self.algorithm, hash) {
            (Algorithm::P256, Hash::Sha256) => &signature::ECDSA_P256_SHA256_ASN1,
            (Algorithm::P256, Hash::Sha384) => &signature::ECDSA_P256_SHA384_ASN1,
            (Algorithm::P384, Hash::Sha256) => &signature::ECDSA_P384_SHA256_ASN1,
            (Algorithm::P384, Hash::Sha384) => &signature::ECDSA_P384_SHA384_ASN1,
            (Algorithm::P256 | Algorithm::P384, Hash::Sha512) => return false,
            (Algorithm::Ed25519, _) => &signature::ED25519,
            (Algorithm::Rsa, Hash::Sha256) => &signature::RSA_PKCS1_2048_8192_SHA256,
            (Algorithm::Rsa, Hash::Sha384) => &signature::RSA_PKCS1_2048_8192_SHA384,
            (Algorithm::Rsa, Hash::Sha512) => &signature::RSA_PKCS1_2048_8192_SHA512,
        };
        UnparsedPublicKey::new(algorithm, &self.raw).verify(message, signature).is_ok()
    }
}

fn check_modulus(modulus: &[u8]) -> Result<(), KeyError> {
    let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
    let significant = &modulus[zeros..];
    let leading = significant.first().map_or(0, |first| first.leading_zeros() as usize);
    let bits = significant.len() * 8 - leading;
    if (2048..=8192).contains(&bits) { Ok(()) } else { Err(KeyError::Bits(bits)) }
}

/// The lower-case hexadecimal digits of bytes.
pub(crate) fn lower_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The blocks with this label in a text of PEM (RFC 7468).
///
/// `None` if one cannot be read, or if there are more than 16.
pub(crate) fn pem(text: &str, label: &str) -> Option<Vec<Vec<u8>>> {
    let (begin, end) = (format!("-----BEGIN {label}-----"), format!("-----END {label}-----"));
    let mut blocks = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once(&begin) {
        let (body, after) = after.split_once(&end)?;
        let body: String = body.split_ascii_whitespace().collect();
        blocks.push(LENIENT.decode(body).ok()?);
        if blocks.len() > 16 {
            return None;
        }
        rest = after;
    }
    Some(blocks)
}

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
    value: Vec<u8>,
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

    fn is_valid_at(&self, time: i64) -> bool {
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
