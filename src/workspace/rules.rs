//! Reads the rules about who may vouch for packages from one file of settings.
//!
//! What is wrong with a rule is an error at its place. Short names are completed once both files are read, and a workspace may name
//! signers that only the user's file has. What the rules mean for a package, `trust.rs` knows.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use mu_provider::{ArchiveDigest, Digest, InnerPath, NamedBy};
use mu_trust::{GithubSigner, OidcSigner, Signer};

use super::schema::{PackageRule, SignerTable, Trust};
use super::trust::{
    AllowedContent, Continuity, Covered, RootSetting, RuleAsks, SignerSetting, SignerText,
    TrustFile, TrustRule, TrustRules, is_text_of_keys,
};
use crate::manifest::source::{SourceError, Table, Text, TextProblem, Value, nearest};
use crate::manifest::unversioned;
use crate::reference::{Base, Defaults, PackageId, Protocol, Reference, Version, VersionSpec};

/// The file that a text names; the paths of the user are relative to `folder`.
fn file(text: &Text<'_>, named_by: NamedBy, folder: &Path) -> Result<TrustFile, SourceError> {
    let path = text.as_str();
    if named_by == NamedBy::User {
        return Ok(TrustFile::OfUser(crate::env::absolute(folder, Path::new(path))));
    }
    let inner = InnerPath::parse(path.strip_prefix("./").unwrap_or(path)).map_err(|error| {
        let message = format!("this is not a file below the workspace's root: {error}");
        text.error(message).help("write its path, such as `keys/cosign.pub`")
    })?;
    Ok(TrustFile::InWorkspace(inner))
}

/// What one file says; short names are not yet complete.
#[derive(Debug, Default)]
pub(super) struct TrustLayer {
    signers: BTreeMap<String, SignerSetting>,
    rules: Vec<WrittenRule>,
    allowed: Vec<(Reference, Version, String)>,
    roots: Vec<RootSetting>,
    /// The signers that rules name and the file does not have, each with the error if nobody has it.
    unknown: Vec<(String, SourceError)>,
}

#[derive(Debug)]
struct WrittenRule {
    pattern: String,
    covers: WrittenPattern,
    line: usize,
    asks: RuleAsks,
    continuity: Continuity,
}

#[derive(Debug)]
enum WrittenPattern {
    Package(Reference),
    Below(Reference),
    BelowBase(String),
    All,
}

/// Reads the rules of one file, whose paths are relative to `folder`.
pub(super) fn read(
    trust: Option<Table<'_>>,
    named_by: NamedBy,
    folder: &Path,
) -> Result<TrustLayer, SourceError> {
    let mut layer = TrustLayer::default();
    let Some(trust) = trust else { return Ok(layer) };
    // Signers come first, because rules name them.
    if let Some(signers) = trust.get(Trust::signers) {
        for (name, value) in signers.entries()? {
            let setting = signer(value, named_by, folder)?;
            if layer.signers.insert(name.as_str().to_owned(), setting).is_some() {
                return Err(name.error(format!("`{}` appears twice", name.as_str())));
            }
        }
    }
    if let Some(packages) = trust.get(Trust::packages) {
        for (pattern, value) in packages.entries()? {
            let covers = pattern.parse(written_pattern)?;
            let line = value.document().line_of(pattern.span().start);
            let (asks, continuity) = asked(value, named_by, &mut layer)?;
            let pattern = pattern.as_str().to_owned();
            layer.rules.push(WrittenRule { pattern, covers, line, asks, continuity });
        }
    }
    if let Some(allowed) = trust.get(Trust::allow) {
        for (key, value) in allowed.entries()? {
            let (reference, version) = key.parse(exact_version)?;
            let digest = value.text()?.parse(content_digest)?;
            layer.allowed.push((reference, version, digest));
        }
    }
    if let Some(roots) = trust.get(Trust::roots) {
        for root in roots.list()? {
            let text = root.text()?;
            layer.roots.push(match text.as_str() {
                "sigstore" => RootSetting::Sigstore,
                _ => RootSetting::File(file(&text, named_by, folder)?),
            });
        }
    }
    Ok(layer)
}

impl TrustLayer {
    /// Refuses signers that rules name and no file has; `below` is the user's.
    pub(super) fn refuse_unknown(&mut self, below: &Self) -> Result<(), SourceError> {
        let unknown = std::mem::take(&mut self.unknown);
        match unknown.into_iter().find(|(name, _)| !below.signers.contains_key(name)) {
            Some((_, error)) => Err(error),
            None => Ok(()),
        }
    }

    /// The rules, with the ids that short names mean.
    pub(super) fn with_ids(self, defaults: &Defaults) -> TrustRules {
        let below = |id: PackageId| Covered::Below(format!("{id}/"));
        let rules = self.rules.into_iter().map(|rule| {
            let WrittenRule { pattern, covers, line, asks, continuity } = rule;
            let covers = match covers {
                WrittenPattern::Package(reference) => Covered::Package(reference.id(defaults)),
                WrittenPattern::Below(reference) => below(reference.id(defaults)),
                WrittenPattern::BelowBase(base) => Covered::Below(base),
                WrittenPattern::All => Covered::All,
            };
            TrustRule { pattern, covers, line, asks, continuity }
        });
        let allowed = self.allowed.into_iter().map(|(reference, version, digest)| AllowedContent {
            id: reference.id(defaults),
            version,
            digest,
        });
        TrustRules {
            rules: rules.collect(),
            allowed: allowed.collect(),
            signers: self.signers,
            roots: self.roots,
        }
    }
}

/// Who may sign: keys, or a map that says whom somebody else vouches for.
fn signer(
    value: Value<'_>,
    named_by: NamedBy,
    folder: &Path,
) -> Result<SignerSetting, SourceError> {
    let line = value.document().line_of(value.span().start);
    if !value.is_table() {
        let text = value.text()?;
        let who = match text.as_str().trim() {
            "" => return Err(text.error("a signer is a key, or the file that has it")),
            keys if is_text_of_keys(keys) => SignerText::Keys(keys.to_owned()),
            _ => SignerText::File(file(&text, named_by, folder)?),
        };
        return Ok(SignerSetting { who, line });
    }
    // An identity: of a workflow at GitHub, or as any issuer writes it.
    let table = value.table(SignerTable::KEYS)?;
    let word = |key: &str| -> Result<Option<String>, SourceError> {
        Ok(table.word(key)?.map(|text| text.as_str().to_owned()))
    };
    let who = match (word(SignerTable::github)?, word(SignerTable::issuer)?) {
        (Some(repository), None) => {
            if let Some(subject) = table.get(SignerTable::subject) {
                return Err(subject.error("the subject of a repository is its workflow"));
            }
            let github = GithubSigner {
                workflow: word(SignerTable::workflow)?,
                reference: word(SignerTable::reference)?,
                id: word(SignerTable::id)?,
                repository,
            };
            Signer::github("", github.clone()).map_err(|error| value.error(error.to_string()))?;
            SignerText::Github(github)
        }
        (None, Some(issuer)) => {
            let Some(subject) = word(SignerTable::subject)? else {
                return Err(
                    value.error("an issuer alone vouches for everybody: name the `subject`")
                );
            };
            for key in [SignerTable::workflow, SignerTable::reference, SignerTable::id] {
                if let Some(other) = table.get(key) {
                    return Err(other.error(format!("`{key}` is for repositories of GitHub")));
                }
            }
            let oidc = OidcSigner { issuer, subject };
            Signer::oidc("", oidc.clone()).map_err(|error| value.error(error.to_string()))?;
            SignerText::Oidc(oidc)
        }
        _ => {
            let message = "a signer has `github`, or `issuer` and `subject`";
            return Err(value.error(message));
        }
    };
    Ok(SignerSetting { who, line })
}

fn asked(
    value: Value<'_>,
    named_by: NamedBy,
    layer: &mut TrustLayer,
) -> Result<(RuleAsks, Continuity), SourceError> {
    let table = value.table(PackageRule::KEYS)?;
    let refuse = table.text(PackageRule::refuse)?;
    let stated = table.text(PackageRule::continuity)?;
    let continuity = match &stated {
        Some(text) => text.choice::<Continuity>()?,
        None => Continuity::Off,
    };
    let Some(names) = table.get(PackageRule::signed_by) else {
        if let Some(need) = table.get(PackageRule::need) {
            return Err(need.error("only a rule with `signedBy` needs so many signatures"));
        }
        return match (refuse, stated) {
            (Some(why), None) => Ok((RuleAsks::Refuse(why.as_str().to_owned()), continuity)),
            (None, Some(_)) => Ok((RuleAsks::Nothing, continuity)),
            (Some(_), Some(text)) => Err(text.error("what is refused has no next version")),
            (None, None) => Err(value.error("a rule has `signedBy`, `continuity` or `refuse`")),
        };
    };
    if let Some(why) = refuse {
        return Err(why.error("a rule has either `signedBy` or `refuse`"));
    }
    let mut signers = Vec::new();
    for name in names.list()? {
        let name = name.text()?;
        let text = name.as_str().to_owned();
        if signers.contains(&text) {
            return Err(name.error(format!("`{text}` appears twice")));
        }
        if !layer.signers.contains_key(&text) {
            let known = layer.signers.keys().map(String::as_str);
            let error = name.error(format!("there is no signer `{text}`"));
            let error = error.help(match nearest(&text, known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    format!("name its key: `trust: {{signers: {{{text}: ./keys/{text}.pub}}}}`")
                }
            });
            match named_by {
                // The user's file may have what a workspace names.
                NamedBy::User => return Err(error),
                _ => layer.unknown.push((text.clone(), error)),
            }
        }
        signers.push(text);
    }
    if signers.is_empty() {
        let message = "nobody is named, so nothing could be accepted";
        return Err(names.error(message).help("`refuse: WHY` refuses packages"));
    }
    let need = match table.word(PackageRule::need)? {
        None => 1,
        Some(word) => {
            let number: Option<usize> = word.as_str().parse().ok();
            number.filter(|number| (1..=signers.len()).contains(number)).ok_or_else(|| {
                word.error(format!("a number from 1 to {} is needed here", signers.len()))
            })?
        }
    };
    Ok((RuleAsks::SignedBy { signers, need }, continuity))
}

/// A package, `PREFIX/*` for everything below, or `*`.
fn written_pattern(text: &str) -> Result<WrittenPattern, TextProblem> {
    if text == "*" {
        return Ok(WrittenPattern::All);
    }
    let (prefix, is_below) = match text.strip_suffix("/*") {
        Some(prefix) => (prefix, true),
        None => (text, false),
    };
    let is_host = |text: &str| text.contains(['.', ':']) || text == "localhost";
    if let Some((problem, meant)) = pasted_pattern(prefix) {
        let is_base = !meant.contains('/') && is_host(&meant);
        let end = if is_below || text.ends_with('/') || is_base { "/*" } else { "" };
        return Err(problem.help(format!("write `{meant}{end}`")));
    }
    if let Some(star) = prefix.find('*') {
        return Err(TextProblem::new("`*` is only at the end, behind a slash")
            .at(star..star + 1)
            .help("write a package, `PREFIX/*` for all below, or `*` for all"));
    }
    if is_below && !prefix.contains('/') && is_host(prefix) {
        return Ok(WrittenPattern::BelowBase(Base::parse(&format!("{prefix}/"))?.to_string()));
    }
    let reference = unversioned(&on_this_machine(prefix))?;
    Ok(match is_below {
        true => WrittenPattern::Below(reference),
        false => WrittenPattern::Package(reference),
    })
}

/// What is wrong with a pattern that begins as the URL of a repository or ends in a slash, and how a pattern names what is meant.
fn pasted_pattern(prefix: &str) -> Option<(TextProblem, String)> {
    let whole = prefix.trim_end_matches('/');
    let (scheme, rest) = whole.split_once("://").unwrap_or(("", whole));
    let is_scp = scheme.is_empty() && Reference::parse(whole).is_ok_and(|one| one.is_scp());
    let problem = if is_scp {
        TextProblem::new("no user belongs here").at(0..whole.find('@').map_or(0, |at| at + 1))
    } else if !scheme.is_empty() && !scheme.ends_with("file") {
        TextProblem::new("no protocol belongs here").at(0..scheme.len() + "://".len())
    } else if scheme.is_empty() && whole.len() < prefix.len() {
        TextProblem::new("a slash at the end names no packages").at(whole.len()..prefix.len())
    } else {
        return None;
    };
    let end = rest.find('/').unwrap_or(rest.len());
    let meant = &rest[rest[..end].rfind('@').map_or(0, |at| at + 1)..];
    let meant = if is_scp { meant.replacen(':', "/", 1) } else { meant.to_owned() };
    let meant = meant.strip_suffix(".git").unwrap_or(&meant).to_owned();
    // What names nothing, whatever is taken off, has its own error.
    let is_name = unversioned(&meant).is_ok() || Base::parse(&format!("{meant}/")).is_ok();
    is_name.then_some((problem, meant))
}

/// The id of a package on this machine, `localhost/PATH` as `Mu.lock` has it, as a reference: a reference without a protocol would mean a
/// package below the default base, and a rule would then speak of none.
fn on_this_machine(text: &str) -> Cow<'_, str> {
    let path = text.strip_prefix(Base::localhost().as_str());
    path.map_or(text.into(), |path| format!("{}:///{path}", Protocol::GitFile).into())
}

/// A package with one version.
fn exact_version(text: &str) -> Result<(Reference, Version), TextProblem> {
    let reference = Reference::parse(&on_this_machine(text))?;
    let version = match reference.version() {
        Some(spec @ VersionSpec::Pin(_)) => Version::parse_lenient(&spec.to_string()).ok(),
        Some(spec) => Version::parse(&spec.to_string()).ok(),
        None => None,
    };
    let version = version.ok_or_else(|| {
        TextProblem::new("one version is allowed at a time").help("write `ID#VERSION`")
    })?;
    Ok((reference.with_version(None), version))
}

fn content_digest(text: &str) -> Result<String, TextProblem> {
    let is_digest = text.parse::<Digest>().is_ok() || text.parse::<ArchiveDigest>().is_ok();
    is_digest.then(|| text.to_owned()).ok_or_else(|| {
        TextProblem::new("this is not a digest")
            .help("`h1:…` is that of the content, `sha256:…` that of the archive or its manifest")
    })
}
