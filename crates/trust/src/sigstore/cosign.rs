//! Reads signatures of cosign 2: a simple signing payload as a layer, and its annotations.

use serde::Deserialize;

use super::{Signature, content, other_digest};
use crate::evidence::decode;
use crate::key::hex;
use crate::{Cosign, Refusal, Subject};

/// What `critical.type` may be: cosign's own, and what cosign 3 signs in the old form.
const TYPES: [&str; 2] =
    ["cosign container image signature", "https://sigstore.dev/cosign/sign/v1"];

#[derive(Deserialize)]
struct Payload {
    critical: Critical,
}

/// The identity that it also has is where the image was, which a mirror changes.
#[derive(Deserialize)]
struct Critical {
    image: Image,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Image {
    docker_manifest_digest: String,
}

/// Reads the signature, whose payload must be about the subject.
pub(crate) fn read(cosign: &Cosign, subject: &Subject<'_>) -> Result<Signature, Refusal> {
    let signature = decode("signature", &cosign.signature)?;
    let sha256 = content(subject)?;
    let payload: Payload = serde_json::from_slice(&cosign.payload)
        .map_err(|error| Refusal::unreadable("payload", error))?;
    let Critical { image, kind } = payload.critical;
    if !TYPES.contains(&kind.as_str()) {
        return Err(Refusal::UnknownKind { kind });
    }
    if image.docker_manifest_digest != format!("sha256:{}", hex(&sha256)) {
        return Err(other_digest(&image.docker_manifest_digest, sha256));
    }
    Ok(Signature { message: cosign.payload.clone(), signature, hint: None })
}
