//! Files that contain secrets, recognized by their names: a publication can never be undone.
//!
//! Contents are not read. If a name only looks like a secret, its author needs `--force`.

/// Names of files.
const NAMES: &[&str] = &[
    ".dockercfg",
    ".env",
    ".envrc",
    ".git-credentials",
    ".htpasswd",
    ".my.cnf",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    ".terraformrc",
    ".vault-token",
    ".yarnrc",
    ".yarnrc.yml",
    "credentials.json",
    "id_dsa",
    "id_ecdsa",
    "id_ecdsa_sk",
    "id_ed25519",
    "id_ed25519_sk",
    "id_rsa",
    "kubeconfig",
    "terraform.tfstate",
    "terraform.tfstate.backup",
];

/// Endings of names.
const ENDINGS: &[&str] =
    &[".jks", ".kdb", ".kdbx", ".key", ".keystore", ".p12", ".pem", ".pfx", ".pkcs12", ".ppk"];

/// The last parts of paths.
const PATHS: &[&str] = &[
    ".aws/config",
    ".aws/credentials",
    ".azure/accesstokens.json",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/gcloud/application_default_credentials.json",
    ".docker/config.json",
    ".gem/credentials",
    ".kube/config",
    ".m2/settings.xml",
];

/// Folders whose whole content counts.
const FOLDERS: &[&str] = &[".ssh", ".gnupg"];

/// Endings of `.env.…` files that contain examples.
const EXAMPLES: &[&str] = &["example", "sample", "template", "dist", "defaults", "schema"];

/// Whether a file with this path probably contains a secret; `path` has slashes.
pub(super) fn looks_secret(path: &str) -> bool {
    let path = path.to_lowercase();
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", &path));
    // `.env.production` has secrets; `.env.example` and `.env.local.sample` show how to write one.
    let is_environment = name
        .strip_prefix(".env.")
        .is_some_and(|rest| !EXAMPLES.contains(&rest.rsplit('.').next().unwrap_or(rest)));
    let is_path = |known: &&str| {
        path.strip_suffix(*known).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    };
    NAMES.contains(&name)
        || is_environment
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
        || PATHS.iter().any(is_path)
        || folders.split('/').any(|folder| FOLDERS.contains(&folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_told_by_their_names() {
        for (path, expected) in [
            (".env", true),
            ("a/.ENV", true),
            (".env.production", true),
            (".env.example", false),
            (".env.local.sample", false),
            (".environment", false),
            ("keys/server.pem", true),
            ("keys/id_rsa", true),
            ("keys/id_rsa.pub", false),
            ("home/.aws/credentials", true),
            ("x.aws/credentials", false),
            ("credentials", false),
            (".ssh/anything", true),
            (".npmrc", true),
            ("docs/keys.md", false),
            ("monkey", false),
        ] {
            assert_eq!(looks_secret(path), expected, "{path}");
        }
    }
}
