//! `trust`: the rules about who may vouch for packages, what vouches for a version, and edits of the rules.
//!
//! `trust show` asks the place of a package for all that it has; the other ones ask nobody, but for the digest of what is allowed. What
//! a rule accepts is known in `crate::trust`, and what the rules say of a version that is only shown, in `chosen.rs`.

use std::path::{Path, PathBuf};

use mu_formats::FORMATS;
use mu_provider::{NamedBy, PlaceKind, Release};
use mu_trust::{MOST_KEY_BYTES, Root, Signer, SignerError, text_of_keys};
use schemars::JsonSchema;
use serde::Serialize;

use crate::fs;
use crate::index::{Candidate, Revision, Route};
use crate::manifest::source::New;
use crate::ops::apply::fetch::{is_led_elsewhere, store_release, used_instead};
use crate::ops::explain::unavailable_error;
use crate::ops::lookup::chosen::{
    PublishedPackage, candidate_of, choose, confirmed, deciding, published,
};
use crate::ops::lookup::listing::{Here, Listing};
use crate::ops::session::events::Work;
use crate::ops::session::locked::{PackageName, find_used};
use crate::ops::{Code, CommandError, Session, Warning};
use crate::reference::{PackageId, Version, VersionSpec};
use crate::trust::{self, Judgement, Refused, TrustError};
use crate::workspace::Cutoff;
use crate::workspace::edit::set_trust;
use crate::workspace::trust::{RuleAsks, TrustRule, is_text_of_keys, settings_file};

pub use crate::ops::lookup::chosen::{ShownRule, ShownVerdict};

/// All rules, and what they mean for the lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TrustOverview {
    /// The rules, those of the user first.
    pub rules: Vec<ShownRule>,
    /// The signers that rules can name.
    pub signers: Vec<ShownSigner>,
    /// Whom signatures without keys lead to.
    pub roots: Vec<ShownRoot>,
    /// The locked packages that rules speak of.
    pub packages: Vec<RuledPackage>,
}

/// A signer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ShownSigner {
    /// Its name.
    pub name: String,
    /// The file that has it.
    pub file: String,
    /// Its keys, by their fingerprints, or its identity.
    pub identity: String,
}

/// A root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ShownRoot {
    /// `sigstore`, or a file.
    pub name: String,
    /// When the last of its authorities expires, as RFC 3339 writes it: new signatures verify until then.
    pub until: Option<String>,
    /// The file of settings that names it; none of the one that comes with mu, and that counts if no file names any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

impl ShownRoot {
    fn new(root: &Root, file: Option<&str>) -> Self {
        let until = root.until().map(|until| Cutoff::Moment(until).to_string());
        Self { name: root.name().to_owned(), until, file: file.map(str::to_owned) }
    }
}

/// A locked package that a rule speaks of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuledPackage {
    /// The package.
    pub id: PackageId,
    /// Its version.
    pub version: String,
    /// The pattern of the rule.
    pub rule: String,
    /// Who signed it, as the lock has it.
    pub signed_by: Vec<String>,
}

/// The rules of both files, and the locked packages that they speak of.
pub fn trust_overview(session: &Session) -> Result<TrustOverview, CommandError> {
    let settings = session.trust.rules();
    let (mut rules, mut signers, mut roots) = (Vec::new(), Vec::new(), Vec::new());
    // Those of the user come first: a workspace can add to them, and take nothing from them.
    for named_by in [NamedBy::User, NamedBy::Workspace] {
        let (own, file) = (settings.rules_of(named_by), settings_file(named_by));
        rules.extend(own.rules.iter().map(|rule| ShownRule::of(rule, file)));
        for (name, setting) in &own.signers {
            let identity = session.trust.signer_of(named_by, name, setting)?.describe();
            signers.push(ShownSigner { name: name.clone(), file: file.to_owned(), identity });
        }
        if !own.roots.is_empty() {
            let named = session.trust.roots(&own.roots.iter().collect::<Vec<_>>())?;
            roots.extend(named.iter().map(|root| ShownRoot::new(root, Some(file))));
        }
    }
    if roots.is_empty() {
        roots.extend(session.trust.roots(&[])?.iter().map(|root| ShownRoot::new(root, None)));
    }
    // Of a locked package, the rule that counts first is shown; what the lock says of its signers is no proof.
    let lock = session.lockfile()?.unwrap_or_default();
    let (mut packages, mut ids) = (Vec::new(), Vec::new());
    for package in &lock.packages {
        if package.source.is_authored_folder() || package.source.is_pack() {
            continue;
        }
        // A rule speaks of what the content comes from, which an override may have put there.
        let source = used_instead(session, &package.id);
        let stood_for = session.workspace.settings.stood_for(&package.id, &source);
        packages.extend(settings.in_force(&source, &stood_for).first().map(|first| RuledPackage {
            id: package.id.clone(),
            version: package.version.clone(),
            rule: first.rule.pattern.clone(),
            signed_by: package.signed_by.clone(),
        }));
        ids.extend(stood_for);
        ids.push(source);
    }
    // One that is mistyped is in force for nothing, and nothing else would say so.
    for named_by in [NamedBy::User, NamedBy::Workspace] {
        let is_of_none = |rule: &&TrustRule| !ids.iter().any(|id| rule.speaks_of(id));
        let own = settings.rules_of(named_by).rules.iter().filter(is_of_none);
        for rule in own.filter(|_| !ids.is_empty()) {
            let (pattern, file) = (rule.pattern.clone(), settings_file(named_by));
            session.events.warning(&Warning::RuleOfNone { pattern, file });
        }
    }
    Ok(TrustOverview { rules, signers, roots, packages })
}

/// What vouches for a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Vouched {
    /// The package.
    pub id: PackageId,
    /// The version.
    pub version: String,
    /// The digest that evidence must speak of.
    pub subject: String,
    /// The rule that speaks of it, if there is one; of several, the one that does not accept it.
    pub rule: Option<ShownRule>,
    /// Whether all rules accept it.
    pub accepted: bool,
    /// Why they do not, if one does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// All that was found.
    pub evidence: Vec<ShownEvidence>,
    /// What no manifest in the content says, so that nothing compares it, and signatures in registries do not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unbound: Option<Unbound>,
    /// What was looked at.
    #[serde(skip)]
    pub looked_at: Vec<String>,
}

/// A piece of evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ShownEvidence {
    /// Where it is.
    pub place: String,
    /// What it is: `cosign`, `bundle`; none of what cannot be read.
    pub kind: Option<String>,
    /// Who signed, as far as that is known.
    pub identity: Option<String>,
    /// Whether the signature verifies.
    pub verifies: bool,
    /// What it is worth.
    pub why: String,
}

/// What the content of a package does not say of itself. A signer's other package, or an older one, could then stand in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Unbound {
    /// It has no manifest: neither name nor version.
    Name,
    /// Its manifest has no version.
    Version,
}

/// What the content of a version does not say of itself, as far as its place tells.
fn unbound(
    session: &Session,
    id: &PackageId,
    candidate: Candidate<'_>,
    (route, release): (&Route, &Release),
) -> Result<Option<Unbound>, CommandError> {
    let kind = route.provider.facts().kind;
    match release.format.as_deref() {
        // A copy of a commit: only its place says what it is.
        Some(mu_formats::GIT) => return Ok(Some(Unbound::Name)),
        Some(name) => {
            let format = FORMATS.iter().find(|format| format.name == name);
            return Ok(format.filter(|format| !format.is_named).map(|_| Unbound::Version));
        }
        // What is of mu's own format there was published with its manifest.
        None if kind == PlaceKind::OciRegistry => return Ok(None),
        None => {}
    }
    let manifest = session.index().manifest(id, candidate);
    let manifest = manifest.map_err(|error| unavailable_error(session, error))?;
    Ok(match manifest {
        Some(manifest) => {
            // In a repository, the tag or the commit is what is signed.
            let is_unbound = manifest.version.is_none() && kind != PlaceKind::Repository;
            is_unbound.then_some(Unbound::Version)
        }
        None => Some(Unbound::Name),
    })
}

/// Looks up all that vouches for the version that `text` names.
pub fn trust_show(session: &Session, text: &str) -> Result<Vouched, CommandError> {
    let failed = |error| unavailable_error(session, error);
    let PublishedPackage { reference, id, releases } = published(session, text)?;
    let listing = Listing { session, id: &id, releases: &releases, here: Here::default() };
    let chosen = choose(&listing, reference.version())?;
    let candidate = candidate_of(&chosen);
    let (route, release) = confirmed(session, &id, candidate).map_err(failed)?;
    let version = match &chosen {
        Revision::Release(position) => Some(releases.version(*position)),
        Revision::Untagged(untagged) => untagged.version.clone(),
    };
    // First all that there is, by all signers; then what the rules make of it.
    let stood_for = session.workspace.settings.stood_for(&id, &id);
    let rules = session.trust.rules_about(&route, &id, &stood_for);
    let asked = trust::RuledVersion {
        source: &id,
        stood_for: stood_for.clone(),
        version: version.clone(),
        route: &route,
        release: &release,
        before: trust::SignedBefore::of_locked(
            &session.lockfile()?.unwrap_or_default(),
            &id,
            version.as_ref(),
        ),
    };
    let progress = Work::begin(&session.events, id.to_string());
    let (found, weighed) = session.trust.weigh_all(&asked, &progress)?;
    let judgement = match session.trust.judge(&asked, &session.store, &progress) {
        // What one place withholds hides nothing that others have.
        Err(TrustError::Provider(error)) if found.withheld.is_some() => {
            let rule = rules.first().map(trust::rule_in_words).unwrap_or_default();
            Judgement::Refused(Refused { why: error.to_string(), rule })
        }
        judgement => judgement?,
    };
    progress.warn_of_evidence(&session.trust);
    let unbound = unbound(session, &id, candidate, (&route, &release))?;
    session.save_index();
    let why = match &judgement {
        Judgement::Refused(refused) => Some(refused.why.clone()),
        Judgement::Free | Judgement::Accepted(_) => None,
    };
    let evidence = weighed.into_iter().map(|one| ShownEvidence {
        place: one.place,
        kind: one.kind.map(str::to_owned),
        identity: Some(one.identities.join(", ")).filter(|text| !text.is_empty()),
        verifies: one.verifies,
        why: one.why,
    });
    Ok(Vouched {
        version: version.map_or_else(|| release.version.clone(), |version| version.to_string()),
        subject: found.subject,
        rule: deciding(&rules, &judgement),
        accepted: why.is_none(),
        why,
        evidence: evidence.collect(),
        unbound,
        looked_at: found.looked_at,
        id,
    })
}

/// What was written into a file of settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WrittenTrust {
    /// The file.
    #[serde(serialize_with = "crate::ops::session::shown::path")]
    #[schemars(with = "String")]
    pub file: PathBuf,
    /// What is in it now, in words.
    pub now: String,
}

/// Adds a signer to the settings of the user, or of the workspace, and a rule `for_pattern` that names it. Its keys are those of
/// `keys`, a text or a file.
pub fn trust_add(
    session: &Session,
    name: &str,
    keys: &str,
    for_pattern: Option<&str>,
    in_workspace: bool,
) -> Result<WrittenTrust, CommandError> {
    let text = match is_text_of_keys(keys.trim()) || keys.starts_with("github:") {
        true => keys.trim().to_owned(),
        false => read_keys(session, keys)?,
    };
    let (value, identity) = match text.strip_prefix("github:") {
        Some(workflow) => github(workflow)?,
        None => {
            let signer =
                Signer::from_keys(name, &text).map_err(|error| not_signer(keys, &error))?;
            (New::Text(text.clone()), signer.describe())
        }
    };
    // The fingerprint is shown before anything is written, with the one that it replaces.
    let named_by = if in_workspace { NamedBy::Workspace } else { NamedBy::User };
    let own = session.trust.rules().rules_of(named_by);
    let mut now = format!("`{name}` is {identity}");
    if let Some(before) = own.signers.get(name) {
        let before = session.trust.signer_of(named_by, name, before)?.describe();
        if before != identity {
            now.push_str(&format!(", and was {before}"));
        }
    }
    if let Some(pattern) = for_pattern {
        now.push_str(&format!("; packages `{pattern}` must be signed by it"));
    }
    agreed(session, &now)?;
    let path = session.settings_file(!in_workspace);
    let mut edited = fs::read_text_if_there(&path)?.unwrap_or_default();
    edited = set_trust(&path, &edited, "signers", name, value)?;
    if let Some(pattern) = for_pattern {
        // A signer more makes a rule weaker only for those who may already sign, so it joins the ones that are there. Whoever asks for
        // two of them, or refuses all, has thought about it: that is for a person to change.
        let rule = own.rules.iter().find(|rule| rule.pattern == pattern);
        let mut signers = match rule.map(|rule| &rule.asks) {
            Some(RuleAsks::SignedBy { signers, need: 1 }) => signers.clone(),
            Some(_) => {
                let message = format!("`{}` has another rule for `{pattern}`", path.display());
                return Err(CommandError::new(Code::Usage, message)
                    .hint("edit it there: its rule is not one that a signer can be added to"));
            }
            None => Vec::new(),
        };
        if !signers.iter().any(|signer| signer == name) {
            signers.push(name.to_owned());
        }
        let rule = New::Table(vec![("signedBy", New::List(signers))]);
        edited = set_trust(&path, &edited, "packages", pattern, rule)?;
    }
    write(session, &path, &edited, in_workspace)?;
    Ok(WrittenTrust { file: path, now })
}

/// Accepts exactly the content of a version, signed or not, in the settings of the user, or of the workspace.
pub fn trust_allow(
    session: &Session,
    text: &str,
    in_workspace: bool,
) -> Result<WrittenTrust, CommandError> {
    // What is locked is what the user has looked at; only without it is its place asked.
    let (id, version, digest) = match locked_content(session, text)? {
        Some(locked) => locked,
        None => published_content(session, text)?,
    };
    // Nothing but this content: a version that is published again under the same number has another digest.
    let now = format!("`{id}` {version} is accepted as it is: {digest}");
    agreed(session, &now)?;
    let path = session.settings_file(!in_workspace);
    let before = fs::read_text_if_there(&path)?.unwrap_or_default();
    let key = format!("{id}#{version}");
    let edited = set_trust(&path, &before, "allow", &key, New::Text(digest))?;
    write(session, &path, &edited, in_workspace)?;
    Ok(WrittenTrust { file: path, now })
}

/// The package, version and digest that a lock has for a reference.
fn locked_content(
    session: &Session,
    text: &str,
) -> Result<Option<(PackageId, Version, String)>, CommandError> {
    let lock = session.lockfile()?.unwrap_or_default();
    let Ok((name, wanted)) = PackageName::with_version(text) else { return Ok(None) };
    let Ok(id) = find_used(session, &lock, &name) else { return Ok(None) };
    let mut packages = lock.find(&id).filter(|package| {
        let version = package.parsed_version();
        let accepts = |spec: &VersionSpec| {
            version.as_ref().is_some_and(|version| spec.accepts(version, true))
        };
        wanted.as_ref().is_none_or(accepts)
    });
    let found = packages.next().and_then(|package| {
        // The archive is known before it is fetched, so the version can be chosen anew. A mirror may have packed it otherwise.
        let archive = package.archive.filter(|_| !is_led_elsewhere(session, package));
        let archive = archive.map(|digest| digest.to_string());
        let digest = archive.or_else(|| Some(package.digest?.to_string()))?;
        Some((id.clone(), package.parsed_version()?, digest))
    });
    Ok(found)
}

/// The package, version and digest of its archive, or of its content, as its place has it.
fn published_content(
    session: &Session,
    text: &str,
) -> Result<(PackageId, Version, String), CommandError> {
    // The version that a command would take, and the digest that its place gives it now.
    let failed = |error| unavailable_error(session, error);
    let PublishedPackage { reference, id, releases } = published(session, text)?;
    let listing = Listing { session, id: &id, releases: &releases, here: Here::default() };
    let Revision::Release(position) = choose(&listing, reference.version())? else {
        let message = format!("`{text}` names a commit, and only a version is allowed as it is");
        return Err(CommandError::new(Code::NotFound, message)
            .hint(format!("`mu versions {}` lists its versions", session.short_name(&id))));
    };
    let (route, release) = confirmed(session, &id, Candidate::Release(position)).map_err(failed)?;
    let digest = match release.archive.clone().or_else(|| release.digest.clone()) {
        Some(digest) => digest,
        // Nothing names the content, so it is fetched.
        None => {
            let _store = session.use_store()?;
            store_release(session, &id, &route, &release)?.digest.to_string()
        }
    };
    Ok((id, releases.version(position), digest))
}

/// Asks whether something is to be written into the settings.
fn agreed(session: &Session, what: &str) -> Result<(), CommandError> {
    if session.options.yes || session.events.confirm(&format!("{what}\nWrite it?")) {
        return Ok(());
    }
    Err(CommandError::new(
        Code::Untrusted,
        format!("nobody has agreed, so nothing was written: {what}"),
    )
    .hint(
        "run it on a terminal to be asked, or with `--yes` once you have compared the fingerprint",
    ))
}

fn write(
    session: &Session,
    path: &Path,
    text: &str,
    in_workspace: bool,
) -> Result<(), CommandError> {
    if !in_workspace {
        fs::create_private_folder(&session.environment.mu_home, crate::env::IN_HOME)?;
    }
    Ok(fs::write_through_links(path, text.as_bytes())?)
}

fn not_signer(keys: &str, error: &SignerError) -> CommandError {
    CommandError::new(Code::Usage, format!("`{keys}` is not a signer: {error}"))
}

/// The text of a file of keys that somebody names on a command line.
fn read_keys(session: &Session, path: &str) -> Result<String, CommandError> {
    let file = crate::env::absolute(&session.environment.current, Path::new(path));
    let content = fs::read_if_there(&file)?.ok_or_else(|| {
        CommandError::new(Code::NotFound, format!("there is no file `{}`", file.display()))
            .hint("name a file of public keys, write the text of one, or github:OWNER/REPO")
    })?;
    if content.len() > MOST_KEY_BYTES {
        let message = format!("`{}` has more than {MOST_KEY_BYTES} bytes", file.display());
        return Err(CommandError::new(Code::Usage, message));
    }
    let text = text_of_keys(&content).map_err(|error| not_signer(path, &error))?;
    Ok(text.trim().to_owned())
}

/// The value for a workflow at GitHub, `OWNER/REPO` or `OWNER/REPO/FILE`, and how it is called.
fn github(text: &str) -> Result<(New, String), CommandError> {
    let parts: Vec<&str> = text.splitn(3, '/').collect();
    let (repository, workflow) = match parts[..] {
        [owner, name] => (format!("{owner}/{name}"), None),
        // Identities, as `mu trust show` prints them, have the whole path.
        [owner, name, workflow] => {
            let file = workflow.strip_prefix(".github/workflows/").unwrap_or(workflow);
            (format!("{owner}/{name}"), Some(file.to_owned()))
        }
        _ => {
            let message = format!("`github:{text}` is not a repository");
            return Err(CommandError::new(Code::Usage, message)
                .hint("write github:OWNER/REPO, or github:OWNER/REPO/WORKFLOW"));
        }
    };
    let signer = mu_trust::GithubSigner {
        repository: repository.clone(),
        workflow: workflow.clone(),
        ..mu_trust::GithubSigner::default()
    };
    let signer = Signer::github("signer", signer)
        .map_err(|error| CommandError::new(Code::Usage, error.to_string()))?;
    let mut pairs = vec![("github", New::Text(repository))];
    pairs.extend(workflow.map(|workflow| ("workflow", New::Text(workflow))));
    Ok((New::Table(pairs), signer.describe()))
}
