//! The one declaration of the settings' keys: for the reader, for edits, and for the JSON schema for editors.
//!
//! The types have the shape of the file. The reader knows what the values mean.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::Value;

use super::settings::Link;
use super::trust::Continuity;
use crate::manifest::{choice, in_lines, keys};
use crate::select::{Majors, Resolution};

/// The JSON schema of `.mu/workspace.yaml`; `~/.mu/config.yaml` has the same keys except `namespace`,
/// `members` and `patches`.
pub fn schema() -> Value {
    in_lines(schemars::schema_for!(File).to_value())
}

/// Text, or a number or boolean that is used as it is written.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Word {
    Text(String),
    Number(f64),
    Flag(bool),
}

keys! {
    /// The settings of a workspace.
    #[schemars(rename = "Workspace")]
    pub(crate) struct File {
        // The first three are only for a workspace's file.
        /// A name, or base and name, that the workspace's own folders leave out.
        "namespace" namespace: Option<String>,
        /// Globs of folders searched for packages; `!` before one excludes.
        "members" members: Option<Vec<String>>,
        /// What is changed in packages before they are installed: `ID#RANGE`, and a file of Git's format below the root.
        "patches" patches: Option<BTreeMap<String, String>>,
        /// The base of references without one, such as `hub.mu.com/`.
        "base" base: Option<String>,
        /// How versions are chosen.
        "resolution" resolution: Option<Resolution>,
        /// Where a base (or a base and the start of names) really is, and which provider serves it.
        "registries" registries: Option<BTreeMap<String, Registry>>,
        /// Facts that packages' constraints are checked against, and in `provides` the capabilities that the runtime has.
        "runtime" runtime: Option<BTreeMap<String, Fact>>,
        /// What packages do not say of themselves.
        "packages" packages: Option<BTreeMap<String, PackageTable>>,
        /// What to use instead of a package, everywhere: a reference, or another version of it.
        "overrides" overrides: Option<BTreeMap<String, Word>>,
        /// Packages that are known under two ids: the start of those that do not count, and what they have instead; with a
        /// protocol (`oci://…`), if ids alone do not lead there.
        "aliases" aliases: Option<BTreeMap<String, String>>,
        /// Versions that are never chosen.
        "exclude" exclude: Option<Vec<String>>,
        /// Charts that use the copies of their dependencies that they carry inside: `ID`, or `ID>ID` for one of these.
        "bundled" bundled: Option<Vec<String>>,
        /// Formats of other ecosystems (`helm`) whose packages in the workspace are its own.
        "formats" formats: Option<Vec<String>>,
        /// Whether a package may be chosen once per major version.
        "majors" majors: Option<Majors>,
        /// How old a version must be to be chosen, such as `3 days`.
        "minimumReleaseAge" minimum_release_age: Option<Word>,
        /// How long what a registry said is used without asking again, where the registry itself does not say: `10 minutes`
        /// is the default, `0` means to ask every time.
        "freshFor" fresh_for: Option<Word>,
        /// Which packages may replace which, old to new.
        "allowReplaces" allow_replaces: Option<BTreeMap<String, String>>,
        /// How packs are created from the store.
        "link" link: Option<Link>,
        /// Which licences packages may have: `mu licenses` fails for others.
        "licenses" licenses: Option<LicensesTable>,
        /// Where advisories come from: `hub`, a folder with files of OSV, or the URL of a file with them.
        "advisories" advisories: Option<Vec<String>>,
        /// What `mu audit` does not count.
        "audit" audit: Option<AuditTable>,
        /// Packages and workspaces that are trusted.
        "trust" trust: Option<Trust>,
        /// In `~/.mu/config.yaml` alone: programs of provider plugins, by the plugin's name.
        "plugins" plugins: Option<BTreeMap<String, String>>,
    }
}

/// A fact of the runtime, or capabilities that it has.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Fact {
    Word(Word),
    Capabilities(Vec<String>),
}

keys! {
    pub(super) struct PackageTable {
        /// Capabilities (`GROUP/VERSION/KIND`) that each version of the package provides, besides those that it declares.
        "provides" provides: Option<Vec<String>>,
        /// Packages that each version of the package takes the place of, besides those that it declares.
        "replaces" replaces: Option<Vec<String>>,
    }
}

keys! {
    pub(super) struct LicensesTable {
        /// Licences as SPDX names them, such as `Apache-2.0`.
        "allow" allow: Option<Vec<String>>,
        /// Packages that are allowed all the same, and why.
        "except" except: Option<BTreeMap<String, String>>,
    }
}

keys! {
    pub(super) struct AuditTable {
        /// Findings that do not count, by their ids: `until DATE, why`. On that day, they do not count for the last time.
        "ignore" ignore: Option<BTreeMap<String, String>>,
    }
}

/// A URL, or a folder relative to the workspace's root, or a map.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Registry {
    Place(String),
    Table(RegistryTable),
}

keys! {
    pub(super) struct RegistryTable {
        /// `hub`, `git`, `helm`, `kudo`, `oci`, `olm`, `path`, or the name of a plugin.
        "provider" provider: Option<String>,
        /// A URL, or a folder relative to the workspace's root.
        "url" url: Option<String>,
        /// Whether plain http to another machine is allowed.
        "insecure" insecure: Option<bool>,
        /// Whether tags such as `v1` and `1.28` count as versions.
        "versions" versions: Option<Versions>,
        /// Whether names there leave out the segments of the key, which is the default; `false`: they stay
        /// whole.
        "strip" strip: Option<bool>,
        /// In `~/.mu/config.yaml` only: the host that the registry may name for its tokens, and that then gets the password for
        /// the registry, such as `auth.acme.co`. Hosts of the same domain need no such line.
        "tokensAt" tokens_at: Option<String>,
    }
}

keys! {
    pub(super) struct Trust {
        /// Patterns of packages whose `build` may be run after you have agreed to it, such as `hub.mu.com/acmecorp/*`.
        "build" build: Option<Builds>,
        /// In `~/.mu/config.yaml` only: folders whose workspaces are used although they belong to another
        /// user, such as `/srv/shared/web`, or `/srv/*` for all below.
        "workspaces" workspaces: Option<Vec<String>>,
        /// In `~/.mu/config.yaml` only: folders outside of workspaces, and of the repositories around them, that packages may
        /// come from, such as `/home/ada/libs`, or `/home/ada/libs/*` for all below.
        "folders" folders: Option<Vec<String>>,
        /// Who may sign: by a name, a file of public keys, their text, or a map.
        "signers" signers: Option<BTreeMap<String, Signer>>,
        /// What packages need: by an id, `PREFIX/*` for everything below, or `*`. The longest one counts.
        "packages" packages: Option<BTreeMap<String, PackageRule>>,
        /// Content that the rules of this file accept, signed or not: `ID#VERSION`, and its digest.
        "allow" allow: Option<BTreeMap<String, String>>,
        /// Whom signatures without keys lead to: `sigstore`, which is the default, or a file such as `./trusted_root.json`.
        "roots" roots: Option<Vec<String>>,
    }
}

/// A file of public keys (PEM, SSH, OpenPGP), or their text, or a map.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Signer {
    Keys(String),
    Table(SignerTable),
}

keys! {
    pub(super) struct SignerTable {
        /// A repository at GitHub whose workflows may sign, `OWNER/REPO`.
        "github" github: Option<String>,
        /// The file of the only workflow that may, such as `release.yml`, or `OWNER/REPO/.github/workflows/FILE` of another repository.
        "workflow" workflow: Option<String>,
        /// The branch or tag that it runs for, such as `refs/heads/main`; `*` stands for any text.
        "ref" reference: Option<String>,
        /// The number of the repository, which stays the same as long as it is the same repository.
        "id" id: Option<Word>,
        /// The URL of an issuer of identities.
        "issuer" issuer: Option<String>,
        /// Whom the issuer vouches for; `*` stands for any text.
        "subject" subject: Option<String>,
    }
}

keys! {
    pub(super) struct PackageRule {
        /// The names of signers, one of which must have signed.
        "signedBy" signed_by: Option<Vec<String>>,
        /// How many of them must have signed.
        "need" need: Option<usize>,
        /// Why these packages are never used.
        "refuse" refuse: Option<String>,
        /// What happens if none of those who signed the locked version has signed a new one; `off` is the default.
        "continuity" continuity: Option<Continuity>,
    }
}

/// Patterns, or a map from patterns to how the builds are agreed to.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Builds {
    Ask(Vec<String>),
    By(BTreeMap<String, Consent>),
}

choice! {
    /// How a build is agreed to.
    pub(super) enum Consent {
        /// Whoever runs it is asked, once for each content.
        Ask = "ask",
        /// Signed versions are built without a question; others as with `ask`.
        Auto = "auto",
    }
}

choice! {
    /// What counts as a version.
    pub(super) enum Versions {
        Strict = "strict",
        Lenient = "lenient",
    }
}
