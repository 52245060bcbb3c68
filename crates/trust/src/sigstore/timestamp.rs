//! Times that an authority signed: tokens of RFC 3161, in CMS (RFC 5652), over the bytes of a signature.

use sha2::{Digest as _, Sha256, Sha384, Sha512};

use crate::Refusal;
use crate::der::{self, DerReader, NotDer};
use crate::key::{Certificate, Hash, MOST_CERTIFICATES, TIME_STAMPING, verify_chain};
use crate::roots::{Authority, Root};

/// `id-signedData`.
const SIGNED_DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x02];
/// `id-ct-TSTInfo`.
const TST_INFO: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x10, 0x01, 0x04];
/// `id-contentType`.
const CONTENT_TYPE: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x03];
/// `id-messageDigest`.
const MESSAGE_DIGEST: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x04];
/// `id-aa-signingCertificateV2`.
const SIGNING_CERTIFICATE: &[u8] =
    &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x10, 0x02, 0x2f];

/// A token, read.
struct Token<'a> {
    /// The TSTInfo.
    info: &'a [u8],
    /// Certificates that came with it.
    certificates: Vec<Certificate>,
    /// The issuer of the certificate that signed, as DER, and its number.
    issuer: &'a [u8],
    serial: &'a [u8],
    digest_hash: Hash,
    signature_hash: Hash,
    /// The signed attributes as they are signed: a `SET`.
    attributes: Vec<u8>,
    message_digest: &'a [u8],
    /// The hash of the signer's certificate, if it is stated.
    certificate_hash: Option<(Hash, &'a [u8])>,
    signature: &'a [u8],
}

/// What a TSTInfo says.
struct Info<'a> {
    hash: Hash,
    imprint: &'a [u8],
    time: i64,
}

/// The time at which an authority of the root saw `signed`.
pub(super) fn verify_token(token: &[u8], signed: &[u8], root: &Root) -> Result<i64, Refusal> {
    let unreadable = |error: NotDer| Refusal::cannot_read("timestamp", error);
    let token = read(token).map_err(unreadable)?;
    let info = read_info(token.info).map_err(unreadable)?;
    if info.imprint != digest(info.hash, signed) {
        return Err(Refusal::wrong("the timestamp is over something else"));
    }
    if token.message_digest != digest(token.digest_hash, token.info) {
        return Err(Refusal::wrong("the timestamp does not say what was signed"));
    }
    let mut why = None;
    for authority in &root.timestamp_authorities {
        match token.verify(authority, info.time) {
            Ok(true) => return Ok(info.time),
            Ok(false) => {}
            Err(reason) => why = Some(reason),
        }
    }
    Err(match why {
        Some(why) => Refusal::wrong(format!("the timestamp: {why}")),
        None => Refusal::RootDoesNotKnow {
            what: "the authority of its timestamp".into(),
            root: Some(root.in_words()),
        },
    })
}

impl Token<'_> {
    /// Whether it is by this authority: `false` if by another one, an error if it is and may not be.
    fn verify(&self, authority: &Authority, time: i64) -> Result<bool, String> {
        let candidates = authority.chain.iter().chain(&self.certificates);
        let mut candidates = candidates.filter(|certificate| {
            certificate.issuer == self.issuer && certificate.serial == self.serial
        });
        let Some(leaf) = candidates.next() else { return Ok(false) };
        let above: Vec<Certificate> =
            authority.chain.iter().filter(|other| other.der != leaf.der).cloned().collect();
        // One that came with the token is of this authority only if it leads there.
        let is_own = authority.chain.iter().any(|certificate| certificate.der == leaf.der);
        if !is_own && !above.iter().any(|certificate| certificate.subject == leaf.issuer) {
            return Ok(false);
        }
        if !authority.valid.contains(time) {
            return Err("its authority was not trusted then".into());
        }
        verify_chain(leaf, &above, time, TIME_STAMPING)
            .map_err(|why| format!("its certificate: {why}"))?;
        if let Some((hash, stated)) = self.certificate_hash
            && stated != digest(hash, &leaf.der)
        {
            return Err("it is for another certificate".into());
        }
        let key = leaf.subject_key().map_err(|why| why.to_string())?;
        if key.verifies_with(self.signature_hash, &self.attributes, self.signature) {
            Ok(true)
        } else {
            Err("its signature is wrong".into())
        }
    }
}

fn digest(hash: Hash, bytes: &[u8]) -> Vec<u8> {
    match hash {
        Hash::Sha256 => Sha256::digest(bytes).to_vec(),
        Hash::Sha384 => Sha384::digest(bytes).to_vec(),
        Hash::Sha512 => Sha512::digest(bytes).to_vec(),
    }
}

/// The hash that an AlgorithmIdentifier names, by itself or inside of a signature's.
fn hash(mut identifier: DerReader<'_>) -> Result<Option<Hash>, NotDer> {
    // SHA-2 of NIST, ECDSA with it, and RSA with it, which end in a number for each of the three.
    const SHA2: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02];
    const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    let (last, start) = identifier.content_of(der::OID)?.split_last().ok_or(NotDer)?;
    Ok(match (start, last) {
        (SHA2, 1) | (ECDSA, 2) | (RSA, 11) => Some(Hash::Sha256),
        (SHA2, 2) | (ECDSA, 3) | (RSA, 12) => Some(Hash::Sha384),
        (SHA2, 3) | (ECDSA, 4) | (RSA, 13) => Some(Hash::Sha512),
        _ => None,
    })
}

/// Reads a TimeStampResp that grants, down to its one signer.
fn read(bytes: &[u8]) -> Result<Token<'_>, NotDer> {
    let mut response = DerReader::single(bytes, der::SEQUENCE)?;
    // 0 is granted, 1 granted with changes.
    if response.read(der::SEQUENCE)?.small()? > 1 {
        return Err(NotDer);
    }
    let mut content = response.read(der::SEQUENCE)?;
    response.expect_end()?;
    if content.content_of(der::OID)? != SIGNED_DATA {
        return Err(NotDer);
    }
    let mut data = DerReader::single(content.content_of(0xa0)?, der::SEQUENCE)?;
    data.element(der::INTEGER)?;
    data.element(der::SET)?;
    let mut inner = data.read(der::SEQUENCE)?;
    if inner.content_of(der::OID)? != TST_INFO {
        return Err(NotDer);
    }
    let mut info = inner.read(0xa0)?;
    let info = info.content_of(der::OCTET_STRING)?;

    let mut certificates = Vec::new();
    if let Some(list) = data.optional(0xa0)? {
        let mut list = DerReader::new(list.content);
        while !list.is_empty() {
            certificates.push(Certificate::read(list.element(der::SEQUENCE)?.whole)?);
            if certificates.len() > MOST_CERTIFICATES {
                return Err(NotDer);
            }
        }
    }
    data.optional(0xa1)?;
    let mut signers = data.read(der::SET)?;
    data.expect_end()?;
    let mut signer = signers.read(der::SEQUENCE)?;
    // One signer alone, by issuer and number.
    signers.expect_end()?;
    signer.element(der::INTEGER)?;
    let mut id = signer.read(der::SEQUENCE)?;
    let (issuer, serial) = (id.element(der::SEQUENCE)?.whole, id.content_of(der::INTEGER)?);
    let digest_hash = hash(signer.read(der::SEQUENCE)?)?.ok_or(NotDer)?;
    let attributes = signer.content_of(0xa0)?;
    // A bare `rsaEncryption` or Ed25519 leaves the hash to the digest's.
    let signature_hash = hash(signer.read(der::SEQUENCE)?)?.unwrap_or(digest_hash);
    let signature = signer.content_of(der::OCTET_STRING)?;

    let stated = read_attributes(attributes)?;
    Ok(Token {
        info,
        certificates,
        issuer,
        serial,
        digest_hash,
        signature_hash,
        attributes: der::write_element(der::SET, attributes),
        message_digest: stated.message_digest.ok_or(NotDer)?,
        certificate_hash: stated.certificate_hash,
        signature,
    })
}

#[derive(Default)]
struct Attributes<'a> {
    message_digest: Option<&'a [u8]>,
    certificate_hash: Option<(Hash, &'a [u8])>,
}

fn read_attributes(bytes: &[u8]) -> Result<Attributes<'_>, NotDer> {
    let mut attributes = DerReader::new(bytes);
    let (mut found, mut is_time) = (Attributes::default(), false);
    while !attributes.is_empty() {
        let mut attribute = attributes.read(der::SEQUENCE)?;
        let oid = attribute.content_of(der::OID)?;
        let mut values = attribute.read(der::SET)?;
        match oid {
            CONTENT_TYPE => is_time = values.content_of(der::OID)? == TST_INFO,
            MESSAGE_DIGEST => {
                let first = found.message_digest.replace(values.content_of(der::OCTET_STRING)?);
                // Two would let each reader choose.
                if first.is_some() {
                    return Err(NotDer);
                }
            }
            SIGNING_CERTIFICATE => {
                let mut certificate = values.read(der::SEQUENCE)?.read(der::SEQUENCE)?;
                let mut first = certificate.read(der::SEQUENCE)?;
                let named = match first.optional(der::SEQUENCE)? {
                    Some(identifier) => hash(DerReader::new(identifier.content))?.ok_or(NotDer)?,
                    None => Hash::Sha256,
                };
                found.certificate_hash = Some((named, first.content_of(der::OCTET_STRING)?));
            }
            _ => {}
        }
    }
    if is_time { Ok(found) } else { Err(NotDer) }
}

fn read_info(bytes: &[u8]) -> Result<Info<'_>, NotDer> {
    let mut info = DerReader::single(bytes, der::SEQUENCE)?;
    if info.small()? != 1 {
        return Err(NotDer);
    }
    info.element(der::OID)?;
    let mut imprint = info.read(der::SEQUENCE)?;
    let hash = hash(imprint.read(der::SEQUENCE)?)?.ok_or(NotDer)?;
    let imprint = imprint.content_of(der::OCTET_STRING)?;
    info.element(der::INTEGER)?;
    Ok(Info { hash, imprint, time: info.generalized_time()? })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(read(&bytes).is_err());
            let _ = read_info(&der::write_element(der::SEQUENCE, &bytes));
            let attribute = [der::write_element(der::OID, MESSAGE_DIGEST), der::write_element(der::SET, &bytes)];
            let _ = read_attributes(&der::write_element(der::SEQUENCE, &attribute.concat()));
        }
    }
}
