//! The rules about who may vouch for packages: `signers`, `packages`, `allow` and `roots` below `trust` in the two files.
//!
//! This is data: which rules speak of a package, and whose signers they mean. What the two files say is joined, so that a package must
//! satisfy both. `rules.rs` reads them. Files of keys are named here, and read by whoever verifies with them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use mu_provider::{InnerPath, NamedBy};
use mu_trust::{GithubSigner, OidcSigner};

use crate::manifest::choice;
use crate::reference::{PackageId, Version};

/// The rules of both files.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TrustSettings {
    /// Those of the user.
    pub of_user: TrustRules,
    /// Those of the workspace, which also see the user's signers and roots.
    pub of_workspace: TrustRules,
}

/// The rules of one file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TrustRules {
    /// Who may sign, by the names that rules use.
    pub signers: BTreeMap<String, SignerSetting>,
    /// What packages need, in the order of the file.
    pub rules: Vec<TrustRule>,
    /// Content that the rules of this file accept as it is.
    pub allowed: Vec<AllowedContent>,
    /// Whom keyless signatures lead to; none means those that come with mu.
    pub roots: Vec<RootSetting>,
}

/// Who may sign, and the line that says so.
#[derive(Debug, Clone, PartialEq)]
pub struct SignerSetting {
    /// Its keys, or the identity that somebody else vouches for.
    pub who: SignerText,
    /// The line, counted from 1.
    pub line: usize,
}

/// How a file says who may sign.
#[derive(Debug, Clone, PartialEq)]
pub enum SignerText {
    /// The text of keys.
    Keys(String),
    /// The file that has this text.
    File(TrustFile),
    /// Workflows of a repository at GitHub.
    Github(GithubSigner),
    /// Whom an issuer of identities calls so.
    Oidc(OidcSigner),
}

/// Whom keyless signatures lead to.
#[derive(Debug, Clone, PartialEq)]
pub enum RootSetting {
    /// The public instance, which comes with mu.
    Sigstore,
    /// A file, `trusted_root.json`.
    File(TrustFile),
}

/// A file that rules name.
#[derive(Debug, Clone, PartialEq)]
pub enum TrustFile {
    /// One below the root, which a workspace names.
    InWorkspace(InnerPath),
    /// One that the user names.
    OfUser(PathBuf),
}

impl fmt::Display for TrustFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InWorkspace(path) => path.fmt(formatter),
            Self::OfUser(path) => path.display().fmt(formatter),
        }
    }
}

/// What some packages need.
#[derive(Debug, Clone, PartialEq)]
pub struct TrustRule {
    /// The pattern, as it is written.
    pub pattern: String,
    pub(super) covers: Covered,
    /// The line, counted from 1.
    pub line: usize,
    /// What it asks for.
    pub asks: RuleAsks,
    /// What happens if nobody who signed the locked version has signed another one.
    pub continuity: Continuity,
}

choice! {
    /// What happens if none of those who signed the locked version has signed a new one.
    pub enum Continuity {
        /// Nothing: nobody looks.
        Off = "off",
        /// A warning.
        Warn = "warn",
        /// The new version is not accepted.
        Refuse = "refuse",
    }
}

/// What a rule asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum RuleAsks {
    /// No signature.
    Nothing,
    /// Signatures of so many of these signers.
    SignedBy {
        /// Their names.
        signers: Vec<String>,
        /// How many identities must have signed.
        need: usize,
    },
    /// Nothing is accepted, for this reason.
    Refuse(String),
}

impl TrustRule {
    /// Whether it speaks of a package, even if another one counts.
    pub fn speaks_of(&self, id: &PackageId) -> bool {
        self.covers.exactness(id).is_some()
    }
}

/// The packages that a pattern covers.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Covered {
    /// One.
    Package(PackageId),
    /// Those whose ids begin like this.
    Below(String),
    /// All.
    All,
}

impl Covered {
    /// How exactly it names a package, if it covers it: of several rules, the most exact one counts.
    fn exactness(&self, id: &PackageId) -> Option<usize> {
        match self {
            Self::Package(package) => (package == id).then_some(usize::MAX),
            Self::Below(prefix) => id.as_str().starts_with(&**prefix).then_some(prefix.len()),
            Self::All => Some(0),
        }
    }
}

/// Content that is accepted, signed or not.
#[derive(Debug, Clone, PartialEq)]
pub struct AllowedContent {
    /// The package.
    pub id: PackageId,
    /// Its version.
    pub version: Version,
    /// The digest of its tree (`h1:…`), of its archive, or of what its tag leads to (`sha256:…`).
    pub digest: String,
}

/// A rule that speaks of a package.
#[derive(Debug, Clone, Copy)]
pub struct RuleInForce<'s> {
    /// The rule.
    pub rule: &'s TrustRule,
    /// Whose it is.
    pub named_by: NamedBy,
    settings: &'s TrustSettings,
}

impl<'s> RuleInForce<'s> {
    /// The rules of its file.
    fn own(&self) -> &'s TrustRules {
        self.settings.rules_of(self.named_by)
    }

    /// The file that has it, as messages name it.
    pub fn file(&self) -> &'static str {
        settings_file(self.named_by)
    }

    /// A signer that it names, and whose file has it: its own, or else the user's.
    pub fn signer_named(&self, name: &str) -> Option<(NamedBy, &'s SignerSetting)> {
        let TrustSettings { of_user, .. } = self.settings;
        let own = self.own().signers.get(name).map(|signer| (self.named_by, signer));
        own.or_else(|| of_user.signers.get(name).map(|signer| (NamedBy::User, signer)))
    }

    /// The signers that it sees, whether or not it names them.
    pub fn visible_signers(&self) -> Vec<(NamedBy, &'s str, &'s SignerSetting)> {
        let TrustSettings { of_user, .. } = self.settings;
        let own = self.own().signers.iter();
        let own = own.map(|(name, signer)| (self.named_by, name.as_str(), signer));
        let users = of_user.signers.iter().filter(|_| self.named_by == NamedBy::Workspace);
        own.chain(users.map(|(name, signer)| (NamedBy::User, name.as_str(), signer))).collect()
    }

    /// The roots that it sees.
    pub fn visible_roots(&self) -> Vec<&'s RootSetting> {
        let TrustSettings { of_user, .. } = self.settings;
        let own = self.own().roots.iter();
        let users = of_user.roots.iter().filter(|_| self.named_by == NamedBy::Workspace);
        own.chain(users).collect()
    }

    /// The digests that its file accepts as a version of one of these packages.
    pub fn allowed(&self, ids: &[PackageId], version: &Version) -> Vec<&'s str> {
        let is_it = |one: &&AllowedContent| ids.contains(&one.id) && one.version == *version;
        self.own().allowed.iter().filter(is_it).map(|one| &*one.digest).collect()
    }
}

/// The file of somebody's settings, as messages name it.
pub fn settings_file(named_by: NamedBy) -> &'static str {
    match named_by {
        NamedBy::User => "~/.mu/config.yaml",
        _ => ".mu/workspace.yaml",
    }
}

impl TrustSettings {
    /// Whether no package needs anything.
    pub fn is_empty(&self) -> bool {
        self.of_user.rules.is_empty() && self.of_workspace.rules.is_empty()
    }

    /// The rules of one file.
    pub fn rules_of(&self, named_by: NamedBy) -> &TrustRules {
        match named_by {
            NamedBy::User => &self.of_user,
            _ => &self.of_workspace,
        }
    }

    /// The rules that speak of a package that comes from `source`. Those of the user also speak of the packages in `stood_for`, in
    /// whose place a workspace uses it.
    pub fn in_force(&self, source: &PackageId, stood_for: &[PackageId]) -> Vec<RuleInForce<'_>> {
        let mut found: Vec<RuleInForce<'_>> = Vec::new();
        let of_user = std::iter::once(source).chain(stood_for).map(|id| (NamedBy::User, id));
        for (named_by, id) in of_user.chain([(NamedBy::Workspace, source)]) {
            let rules = self.rules_of(named_by).rules.iter();
            let covering = rules.filter_map(|rule| Some((rule.covers.exactness(id)?, rule)));
            let Some((_, rule)) = covering.max_by_key(|(exactness, _)| *exactness) else {
                continue;
            };
            // One that asks for nothing is there to take the place of one that is less exact.
            if rule.asks == RuleAsks::Nothing && rule.continuity == Continuity::Off {
                continue;
            }
            if !found.iter().any(|known| std::ptr::eq(known.rule, rule)) {
                found.push(RuleInForce { rule, named_by, settings: self });
            }
        }
        found
    }
}

/// Whether a text is that of keys, and no path.
pub fn is_text_of_keys(text: &str) -> bool {
    let kinds = ["ssh-", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-"];
    text.starts_with("-----BEGIN ")
        || text.contains('\n')
        || kinds.iter().any(|kind| text.starts_with(kind))
}
