//! Pieces of evidence, the file that carries them to hubs, mirrors and vendored trees (JSON lines, each complete in itself), and
//! what they must speak of.
//!
//! Nothing is verified here, and a piece is kept as it came, so that a copy is worth what the first one was. A [`Subject`] is
//! what the lock has, or what a registry just handed out; never what evidence says.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Refusal;

/// The largest piece of evidence in bytes.
pub const MOST_BYTES: usize = 1 << 20;
/// How many pieces of evidence are looked at for a version.
pub const MOST_PIECES: usize = 32;
/// How many manifests lead from the subject to the archive.
pub const MOST_MANIFESTS: usize = 4;

/// One piece of evidence: what somebody wrote to vouch for a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// A signature of cosign 2: a payload and annotations of its layer.
    Cosign(Cosign),
    /// A sigstore bundle: the bytes of its JSON.
    Bundle(Vec<u8>),
    /// The text of a chart's `.prov`.
    Prov(String),
    /// An object of a Git repository, as Git stores it, without its header.
    Git {
        /// What the object is.
        kind: GitKind,
        /// Its bytes.
        object: Vec<u8>,
    },
    /// An SSH signature over `mu-package/v1`: the blob, without armour.
    Sshsig(Vec<u8>),
}

/// Which object of Git it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GitKind {
    /// An annotated tag.
    Tag,
    /// A commit.
    Commit,
}

/// A signature of cosign 2. The texts are those of the annotations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cosign {
    /// The bytes of the layer, which is a simple signing payload.
    pub payload: Vec<u8>,
    /// `dev.cosignproject.cosign/signature`: the signature in base64.
    pub signature: String,
    /// `dev.sigstore.cosign/certificate`: the leaf in PEM.
    pub certificate: Option<String>,
    /// `dev.sigstore.cosign/chain`: the certificates above it in PEM.
    pub chain: Option<String>,
    /// `dev.sigstore.cosign/bundle`: Rekor's signed entry timestamp in JSON.
    pub rekor: Option<String>,
    /// `dev.sigstore.cosign/rfc3161timestamp`: a token in JSON.
    pub timestamp: Option<String>,
}

impl Cosign {
    /// The media type of a layer that is such a payload.
    pub const MEDIA_TYPE: &'static str = "application/vnd.dev.cosign.simplesigning.v1+json";

    /// Takes a layer's bytes and its annotations, which `annotation` looks up; `None` if it has no signature.
    pub fn from_layer<'a>(
        payload: Vec<u8>,
        annotation: impl Fn(&str) -> Option<&'a str>,
    ) -> Option<Self> {
        let optional = |name: &str| annotation(name).map(str::to_owned);
        Some(Self {
            payload,
            signature: optional("dev.cosignproject.cosign/signature")?,
            certificate: optional("dev.sigstore.cosign/certificate"),
            chain: optional("dev.sigstore.cosign/chain"),
            rekor: optional("dev.sigstore.cosign/bundle"),
            timestamp: optional("dev.sigstore.cosign/rfc3161timestamp"),
        })
    }

    fn len(&self) -> usize {
        let optional = [&self.certificate, &self.chain, &self.rekor, &self.timestamp];
        let optional = optional.into_iter().flatten().map(String::len);
        self.payload.len() + self.signature.len() + optional.sum::<usize>()
    }
}

impl Evidence {
    /// The word for its kind, which is also its key in a line: `cosign`, `bundle`, `prov`, `git` or `sshsig`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Cosign(_) => "cosign",
            Self::Bundle(_) => "bundle",
            Self::Prov(_) => "prov",
            Self::Git { .. } => "git",
            Self::Sshsig(_) => "sshsig",
        }
    }

    /// How many bytes it has, which [`MOST_BYTES`] limits.
    pub fn size(&self) -> usize {
        match self {
            Self::Cosign(cosign) => cosign.len(),
            Self::Bundle(json) => json.len(),
            Self::Prov(text) => text.len(),
            Self::Git { object, .. } => object.len(),
            Self::Sshsig(blob) => blob.len(),
        }
    }
}

/// A line of a file of evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvidenceLine {
    /// The piece.
    pub evidence: Evidence,
    /// The manifests that lead from the subject to the archive, the subject first; none if the subject is the archive.
    pub manifests: Vec<Vec<u8>>,
    /// The id and the version that it is about, in a file for more than one package.
    pub package: Option<(String, String)>,
}

impl EvidenceLine {
    /// Writes it as one line of JSON, without the end of line.
    ///
    /// # Errors
    ///
    /// A bundle is no JSON object, so that no reader could take it.
    pub fn write(&self) -> Result<String, Refusal> {
        let value = |text: &str| Value::from(text);
        let encoded = |bytes: &[u8]| Value::from(BASE64.encode(bytes));
        let mut line = Map::new();
        if let Some((id, version)) = &self.package {
            line.insert("id".into(), value(id));
            line.insert("version".into(), value(version));
        }
        // Under the word for its kind.
        let content = match &self.evidence {
            Evidence::Sshsig(blob) => encoded(blob),
            Evidence::Prov(text) => value(text),
            Evidence::Git { object, .. } => encoded(object),
            Evidence::Bundle(json) => serde_json::from_slice::<Map<String, Value>>(json)
                .map_err(|error| Refusal::cannot_read("bundle", error))?
                .into(),
            Evidence::Cosign(cosign) => {
                let mut fields = Map::new();
                fields.insert("payload".into(), encoded(&cosign.payload));
                fields.insert("signature".into(), value(&cosign.signature));
                for (key, text) in [
                    ("certificate", &cosign.certificate),
                    ("chain", &cosign.chain),
                    ("rekor", &cosign.rekor),
                    ("timestamp", &cosign.timestamp),
                ] {
                    fields.extend(text.as_deref().map(|text| (key.to_owned(), value(text))));
                }
                fields.into()
            }
        };
        line.insert(self.evidence.kind().into(), content);
        if let Evidence::Git { kind, .. } = &self.evidence {
            let kind = if *kind == GitKind::Tag { "tag" } else { "commit" };
            line.insert("kind".into(), value(kind));
        }
        if !self.manifests.is_empty() {
            let manifests = self.manifests.iter().map(|manifest| encoded(manifest));
            line.insert("manifests".into(), manifests.collect::<Vec<_>>().into());
        }
        Ok(Value::from(line).to_string())
    }

    /// Reads one line.
    ///
    /// # Errors
    ///
    /// [`Refusal::Unreadable`], [`Refusal::UnknownKind`] or [`Refusal::TooLarge`].
    pub fn read(line: &str) -> Result<Self, Refusal> {
        // Base64 is a third longer than what it encodes.
        if line.len() > 2 * MOST_BYTES * (1 + MOST_MANIFESTS) {
            return Err(Refusal::TooLarge { what: "line of evidence", limit: MOST_BYTES });
        }
        let wire: WireLine =
            serde_json::from_str(line).map_err(|error| Refusal::cannot_read("line", error))?;
        let evidence = wire.evidence()?;
        if evidence.size() > MOST_BYTES {
            return Err(Refusal::TooLarge { what: evidence.kind(), limit: MOST_BYTES });
        }
        if wire.manifests.len() > MOST_MANIFESTS {
            return Err(Refusal::cannot_read("line", "it has more than 4 manifests"));
        }
        let manifests = wire.manifests.iter().map(|text| decode_base64("manifests", text));
        Ok(Self {
            evidence,
            manifests: manifests.collect::<Result<_, _>>()?,
            package: wire.id.zip(wire.version),
        })
    }
}

/// Reads the lines of a file, each for itself: one that cannot be read hides no other one.
pub fn read_lines(text: &str) -> impl Iterator<Item = Result<EvidenceLine, Refusal>> {
    text.lines().filter(|line| !line.trim().is_empty()).map(EvidenceLine::read)
}

#[derive(Deserialize)]
struct WireLine {
    id: Option<String>,
    version: Option<String>,
    sshsig: Option<String>,
    prov: Option<String>,
    git: Option<String>,
    kind: Option<GitKind>,
    bundle: Option<Map<String, Value>>,
    cosign: Option<WireCosign>,
    log: Option<String>,
    #[serde(default)]
    manifests: Vec<String>,
}

#[derive(Deserialize)]
struct WireCosign {
    payload: String,
    signature: String,
    certificate: Option<String>,
    chain: Option<String>,
    rekor: Option<String>,
    timestamp: Option<String>,
}

impl WireLine {
    fn evidence(&self) -> Result<Evidence, Refusal> {
        let kinds = [
            self.sshsig.is_some(),
            self.prov.is_some(),
            self.git.is_some(),
            self.bundle.is_some(),
            self.cosign.is_some(),
        ];
        match kinds.iter().filter(|is_there| **is_there).count() {
            0 if self.log.is_some() => return Err(Refusal::UnknownKind { kind: "log".into() }),
            0 => return Err(Refusal::UnknownKind { kind: "line without evidence".into() }),
            1 => {}
            _ => return Err(Refusal::cannot_read("line", "it has more than one piece")),
        }
        if let Some(text) = &self.sshsig {
            Ok(Evidence::Sshsig(decode_base64("sshsig", text)?))
        } else if let Some(text) = &self.prov {
            Ok(Evidence::Prov(text.clone()))
        } else if let Some(text) = &self.git {
            let kind = self.kind.ok_or_else(|| Refusal::cannot_read("line", "it has no `kind`"))?;
            Ok(Evidence::Git { kind, object: decode_base64("git", text)? })
        } else if let Some(cosign) = &self.cosign {
            Ok(Evidence::Cosign(Cosign {
                payload: decode_base64("payload", &cosign.payload)?,
                signature: cosign.signature.clone(),
                certificate: cosign.certificate.clone(),
                chain: cosign.chain.clone(),
                rekor: cosign.rekor.clone(),
                timestamp: cosign.timestamp.clone(),
            }))
        } else {
            let bundle = self.bundle.clone().unwrap_or_default();
            Ok(Evidence::Bundle(Value::from(bundle).to_string().into_bytes()))
        }
    }
}

/// Decodes base64, also if it is broken into lines.
pub(crate) fn decode_base64(what: &'static str, text: &str) -> Result<Vec<u8>, Refusal> {
    let text: String = text.split(['\r', '\n']).collect();
    BASE64.decode(text).map_err(|error| Refusal::cannot_read(what, error))
}

/// What a piece of evidence must speak of.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    /// A manifest or an archive.
    Content {
        /// Its SHA-256.
        sha256: [u8; 32],
        /// Its bytes, if they are here: a bundle with a `messageSignature` is a signature over them, and is refused with
        /// [`Refusal::BytesNeeded`](crate::Refusal::BytesNeeded) without. They are hashed before they count.
        bytes: Option<&'a [u8]>,
        /// The name of an archive as the `files` of a `.prov` has it: `web-1.4.0.tgz`.
        file: Option<&'a str>,
    },
    /// A commit of Git.
    Commit {
        /// Its id: 40 hexadecimal digits, or 64 in a repository with SHA-256.
        id: &'a str,
        /// The annotated tag that was asked for, if one was: then only that tag's object counts, else only the commit's.
        tag: Option<&'a str>,
    },
    /// A package as a publisher signs it for hubs (`mu-package/v1`).
    Package {
        /// Its name without the base; of a renamed copy that of its origin.
        name: &'a str,
        /// The version.
        version: &'a str,
        /// The digest of its tree: `h1:…`.
        h1: &'a str,
    },
}
