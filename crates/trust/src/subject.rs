//! What evidence must speak of. It is what the lock has, or what a registry just handed out; never what evidence says.

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
