//! Explains a conflict to the user: one screen, in the user's own words, from the user's own requirement down
//! to the clash.

use std::fmt;

use mu_manifest::reference::{Base, PackageId, Range, VersionSpec};
use mu_manifest::source::nearest;

use crate::clash::{FoldedVersions, VersionRun};
use crate::conflict::{CapabilityClash, Clash, Conflict, Fact, ReplacementClash, Requirer};
use crate::filters::{Passed, Rejection};
use crate::newer::{Newer, Obstacle};

/// If there are more facts than this, the middle ones are left out.
const LINES: usize = 16;
/// The most packages and capabilities without candidates that are described.
const CLASHES: usize = 4;
/// The most reasons why versions are excluded that are listed for one package.
const REASONS: usize = 6;
/// More names than this are counted, not listed.
const LIST: usize = 8;
/// The spec that accepts any version.
const ANY: &str = "latest";
/// The start of a spec that accepts any version, but narrows it by channel or app version.
const ANY_THAT: &str = "latest ";
/// More alternatives than this are counted, not listed.
const ALTERNATIVES: usize = 3;

impl Conflict {
    /// What went wrong, in a few words.
    pub fn conflict_headline(&self) -> String {
        let names = Names { base: &self.base };
        // One clash about which one requirement decides can be said in a line. For everything else the lines below are
        // needed.
        match self.clashes.as_slice() {
            [clash] if clash.tried.is_some() => {
                format!("there is no package {}", names.name(&clash.id))
            }
            [clash] if clash.asked.len() == 1 && clash.needed.is_none() => names.verdict(clash),
            _ => "no versions fit together".to_owned(),
        }
    }
}

/// The explanation, without the headline and a final line break.
impl fmt::Display for Conflict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Names { base: &self.base };
        // The middle of a long chain is left out. Its beginning is what the user wrote and can change, its end is where
        // it clashes.
        let mut lines: Vec<String> = self.facts.iter().map(|fact| names.fact(fact)).collect();
        if lines.len() > LINES {
            let cut = lines.len() - LINES;
            let all = cut + self.untold;
            lines.splice(LINES / 2..LINES / 2 + cut, [format!("… {all} more such lines …")]);
        }
        let clashes = self.clashes.iter().map(|clash| names.clash(clash));
        let capabilities = self.capabilities.iter().map(|clash| names.capability(clash));
        let replacements = self.replacements.iter().map(|clash| vec![names.replacement(clash)]);
        lines.extend(first(clashes.collect()));
        lines.extend(first(capabilities.collect()));
        lines.extend(first(replacements.collect()));
        formatter.write_str(&lines.join("\n"))
    }
}

/// The lines of the first few things, and the number of the rest; a single extra one is shown as well.
fn first(mut described: Vec<Vec<String>>) -> Vec<String> {
    let more = described.len().saturating_sub(CLASHES);
    if more > 1 {
        described.truncate(CLASHES);
        described.push(vec![format!("… {more} more like these …")]);
    }
    described.into_iter().flatten().collect()
}

impl Newer {
    /// Why these versions are not chosen, as lines; names leave out `base` where they can.
    pub fn explain(&self, base: &Base) -> Vec<String> {
        let versions = &self.versions;
        let is = plural(versions.count(), "is", "are");
        match &self.obstacle {
            Obstacle::Rule(rule) => vec![format!("{versions} {}", reason(rule, versions))],
            Obstacle::Passed(Passed::Channel(channel)) => {
                vec![format!("{versions} {is} not in channel {channel}, whose versions come first")]
            }
            Obstacle::Passed(Passed::Deprecated) => vec![format!("{versions} {is} deprecated")],
            Obstacle::Passed(Passed::Prerelease) => {
                let what = plural(versions.count(), "a prerelease", "prereleases");
                vec![format!("{versions} {is} {what}, and releases come first")]
            }
            Obstacle::Asked(asked) => {
                let asked: Vec<String> = asked
                    .iter()
                    .map(|(by, asked)| format!("{asked}, which {by} requires"))
                    .collect();
                vec![format!("{versions} {is} not {}", asked.join(", and not "))]
            }
            Obstacle::Conflict(conflict) => {
                let does = plural(versions.count(), "does", "do");
                let names = Names { base };
                let mut lines = vec![format!("{versions} {does} not fit:")];
                // Many packages may be explained one below the other, so each gets half the lines of a failure.
                let facts = conflict.facts.iter().take(LINES / 2);
                lines.extend(facts.map(|fact| format!("  {}", names.fact(fact))));
                lines
            }
            Obstacle::Nothing => vec![format!("{versions} would fit")],
            Obstacle::Unknown => vec![format!("{versions} may fit")],
            Obstacle::NotAsked => vec![format!("nothing requires {versions}")],
        }
    }

    /// What prevents these versions, in a few words for a table.
    pub fn in_short(&self, base: &Base) -> String {
        match &self.obstacle {
            Obstacle::Rule(rule) => {
                let one = FoldedVersions { runs: vec![VersionRun::single_version(&self.newest)] };
                format!("{} {}", self.newest, reason(rule, &one))
            }
            Obstacle::Passed(Passed::Channel(channel)) => {
                format!("{} is not in channel {channel}", self.newest)
            }
            Obstacle::Passed(Passed::Deprecated) => format!("{} is deprecated", self.newest),
            Obstacle::Passed(Passed::Prerelease) => format!("{} is a prerelease", self.newest),
            Obstacle::Asked(asked) => {
                let asked: Vec<String> =
                    asked.iter().map(|(by, asked)| format!("{asked} by {by}")).collect();
                asked.join(", ")
            }
            Obstacle::Conflict(conflict) => {
                // What the user wrote comes first, because that can be changed; other facts stand in only if there is
                // none.
                let roots = conflict.facts.iter().filter_map(|fact| match fact {
                    Fact::Requires { by: Requirer::Roots(names), id, asked } => {
                        let name = id.short(base);
                        Some(format!("{name} {} by {}", alternatives(asked), join(names, "and")))
                    }
                    _ => None,
                });
                let roots: Vec<String> = roots.collect();
                if !roots.is_empty() {
                    return roots.join(", ");
                }
                // No root takes part by what it requires of a package.
                let names = Names { base: &conflict.base };
                let facts: Vec<String> =
                    conflict.facts.iter().take(LIST).map(|fact| names.fact(fact)).collect();
                match facts.is_empty() {
                    true => format!("{} does not fit with the rest", self.newest),
                    false => facts.join(", "),
                }
            }
            Obstacle::Nothing | Obstacle::NotAsked | Obstacle::Unknown => String::new(),
        }
    }
}

/// The names of packages.
struct Names<'b> {
    /// The base that names leave out where they can.
    base: &'b Base,
}

impl Names<'_> {
    fn name<'i>(&self, id: &'i PackageId) -> &'i str {
        id.short(self.base)
    }

    fn fact(&self, fact: &Fact) -> String {
        match fact {
            Fact::Requires { by, id, asked } => {
                let is_root = matches!(by, Requirer::Roots(_));
                let requires = self.doing(by, "require");
                let name = self.name(id);
                match (asked.as_slice(), is_root) {
                    // Nobody has to write `latest`, so no message says it: `app requires a`, and `app requires a in
                    // channel fast`.
                    ([one], _) if one == ANY => format!("{requires} {name}"),
                    ([one], _) if let Some(narrowed) = one.strip_prefix(ANY_THAT) => {
                        format!("{requires} {name} {narrowed}")
                    }
                    // A version requires one of these, a root requires all of them.
                    (asked, true) => format!("{requires} {name} {}", join(&telling(asked), "and")),
                    (asked, false) => format!("{requires} {name} {}", alternatives(asked)),
                }
            }
            Fact::Overridden { id, by } => {
                let id = self.name(id);
                match by.spec {
                    // Its place follows, after `looked at`.
                    VersionSpec::Latest if by.id.as_str().starts_with("localhost/") => {
                        format!("the settings override {id} with a folder")
                    }
                    _ => {
                        format!("the settings override {id} with {} {}", self.name(&by.id), by.spec)
                    }
                }
            }
            Fact::OnlyWhereNamed { id, revision } => {
                format!("{} {revision} is chosen only if it is named exactly", self.name(id))
            }
            Fact::RequiresCapability { by, capability } => {
                format!("{} the capability {capability}", self.doing(by, "require"))
            }
            Fact::Provides { by, capability } => {
                format!("{} {capability}", self.doing(by, "provide"))
            }
            Fact::Replaces { by, id } => {
                format!("{} {}", self.doing(by, "replace"), self.name(id))
            }
            Fact::Conflicts { by, with } => {
                format!("{} with {}", self.doing(by, "conflict"), self.name(with))
            }
            Fact::ConflictsWithProvider { by, capability } => {
                format!("{} with whatever provides {capability}", self.doing(by, "conflict"))
            }
            Fact::ReplacesWhereAsked { id } => {
                format!("{} replaces other packages only if it is itself required", self.name(id))
            }
            Fact::OnlyWhereAsked { id } => {
                let name = self.name(id);
                format!(
                    "{name} is not listed as a provider, so it is used only if it is itself required"
                )
            }
        }
    }

    /// The packages that do something, and the verb for it, which is given in the plural.
    fn doing(&self, by: &Requirer, verb: &str) -> String {
        // English: one package `requires`, several `require`. So the verb comes without an end, which all of these
        // verbs form alike.
        let (by, count) = match by {
            Requirer::Roots(names) => (join(names, "and"), names.len()),
            Requirer::Package(id, versions) => {
                (format!("{} {versions}", self.name(id)), versions.count())
            }
        };
        format!("{by} {verb}{}", plural(count, "s", ""))
    }

    fn replacement(&self, clash: &ReplacementClash) -> String {
        match clash {
            ReplacementClash::Several { id } => {
                format!("only one package at a time can replace {}", self.name(id))
            }
            ReplacementClash::Circle { ids } => {
                let names: Vec<String> = ids.iter().map(|id| self.name(id).to_owned()).collect();
                format!("{} replace each other, so none of them is left", join(&names, "and"))
            }
            ReplacementClash::Ended { id, by, needed } => {
                let (id, by) = (self.name(id), self.name(by));
                format!("at least {by} {needed} is needed, which does not replace {id}")
            }
        }
    }

    fn capability(&self, clash: &CapabilityClash) -> Vec<String> {
        let capability = &clash.capability;
        // Several would have to provide it. That some versions are excluded is no reason for that.
        if clash.is_provided {
            return vec![format!("only one package at a time can provide {capability}")];
        }
        let mut lines = vec![format!("nothing provides the capability {capability}")];
        let rejected = clash.rejected.iter().map(|(id, rejection, versions)| {
            let reason = reason(rejection, versions);
            format!("  {} {versions} would, but {reason}", self.name(id))
        });
        lines.extend(few(rejected.collect()));
        lines
    }

    /// Says that no version of a package is left.
    fn verdict(&self, clash: &Clash) -> String {
        let name = self.name(&clash.id);
        let several = clash.asked.len() > 1;
        // A spec that accepts any version adds nothing here.
        let telling = clash.asked.iter().filter(|words| !several || *words != &[ANY]);
        let asked: Vec<String> = telling
            .map(|words| match words.as_slice() {
                // `no version of b is both (^1 or ^2) and ^3`: without the parentheses, this could be read in two ways.
                [_, _, ..] if several => format!("({})", alternatives(words)),
                words => alternatives(words),
            })
            .collect();
        // With the minimal strategy, one version decides, not what all accept.
        if let Some(needed) = &clash.needed {
            if asked.is_empty() {
                return format!("at least {name} {needed} is needed");
            }
            return format!(
                "at least {name} {needed} is needed, which is not {}",
                join(&asked, "and")
            );
        }
        // The first form that fits. What is special comes before `no version of b is ^2`, which fits any single word.
        match asked.as_slice() {
            [one, two] => format!("no version of {name} is both {one} and {two}"),
            [one] if one == ANY && clash.rejected.is_empty() => format!("{name} has no release"),
            [one] if one == ANY => format!("no version of {name} can be used"),
            [one] if let Some(what) = revision(one, clash) => match clash.is_there {
                true => format!("the {what} {one} of {name} cannot be used"),
                false => format!("{name} has no {what} {one}"),
            },
            [] => format!("no version of {name} meets all of these"),
            [one] if let Some(narrowed) = one.strip_prefix(ANY_THAT) => {
                format!("{name} has no version {narrowed}")
            }
            [one] if Range::parse(one).is_ok_and(|range| range.is_empty()) => {
                format!("no version can be {one}: that range is empty")
            }
            [one] => format!("no version of {name} is {one}"),
            several => format!("no version of {name} is {} at once", join(several, "and")),
        }
    }

    fn clash(&self, clash: &Clash) -> Vec<String> {
        let name = self.name(&clash.id);
        // There is no such package: where it was looked for, and what it may be called.
        if let Some(tried) = &clash.tried {
            let mut lines = vec![format!("there is no package {name}")];
            lines.extend(few(tried.iter().map(|place| format!("  looked at {place}")).collect()));
            if !clash.similar.is_empty() {
                let similar: Vec<String> =
                    clash.similar.iter().map(|id| self.name(id).to_owned()).collect();
                let is_case = |id: &PackageId| {
                    id.as_str() != clash.id.as_str()
                        && id.as_str().eq_ignore_ascii_case(clash.id.as_str())
                };
                let case = if clash.similar.iter().any(is_case) {
                    "names are case-sensitive: "
                } else {
                    ""
                };
                lines.push(format!("  {case}did you mean {}?", join(&similar, "or")));
            }
            return lines;
        }
        // There is one. First what is missing, then what was probably meant, then what rules exclude, and at last what
        // there is to choose from.
        let mut lines = vec![self.verdict(clash)];
        if let [one] = clash.asked.as_slice()
            && let [one] = one.as_slice()
            && let Some(meant) = misspelt(one)
        {
            lines.push(format!("  did you mean `{meant}`?"));
        }
        let rejected = clash.rejected.iter();
        let rejected = rejected.map(|(rejection, versions)| {
            format!("  {name} {versions} {}", reason(rejection, versions))
        });
        lines.extend(few(rejected.collect()));
        lines.extend(clash.notes.iter().map(|note| format!("  {note}")));
        // The version that others need decides, so the versions there are say nothing.
        if clash.needed.is_some() {
            return lines;
        }
        let mut asked = clash.asked.iter();
        if asked.any(|words| matches!(words.as_slice(), [one] if is_digest(one))) {
            // Other versions would not help.
        } else if clash.available.is_empty() && clash.rejected.is_empty() {
            lines.push(format!("  {name} has no version that can be used"));
        // If several disagree, a list of versions says nothing: each of them may be there.
        } else if clash.asked.len() == 1 && !clash.available.is_empty() {
            if !clash.narrowed.is_empty() {
                let groups = clash.narrowed.iter();
                let groups = groups.map(|(what, versions)| format!("{versions} {what}"));
                lines.push(format!("  {name} has {}", join(&groups.collect::<Vec<_>>(), "and")));
            } else {
                let note = if clash.only_prereleases { ", all prereleases" } else { "" };
                // Two versions are near enough to each other.
                let nearest = match &clash.nearest[..] {
                    nearest if clash.available.count() > 2 && !nearest.is_empty() => {
                        format!("; nearest: {}", join(nearest, "and"))
                    }
                    _ => String::new(),
                };
                lines.push(format!("  {name} has {}{note}{nearest}", clash.available));
            }
        }
        lines.extend(clash.source.iter().map(|source| format!("  looked at {source}")));
        lines
    }
}

/// Whether exactly one artifact is required.
fn is_digest(asked: &str) -> bool {
    matches!(VersionSpec::parse(asked), Ok(VersionSpec::Digest(_)))
}

/// The word that a tag was probably meant to be.
fn misspelt(asked: &str) -> Option<&'static str> {
    matches!(VersionSpec::parse(asked), Ok(VersionSpec::Tag(_)))
        .then(|| nearest(asked, ["latest", "tip"]))?
}

/// The kind of a spec that is neither a version nor a range.
fn revision(asked: &str, clash: &Clash) -> Option<&'static str> {
    let is_git = clash.source.as_deref().is_some_and(|source| source.starts_with("git+"));
    match VersionSpec::parse(asked).ok()? {
        VersionSpec::Commit(_) if is_git => Some("commit"),
        VersionSpec::Tag(_) if is_git => Some("tag or branch"),
        // In an OCI registry, `1234567` is a tag, although it reads like a commit.
        VersionSpec::Commit(_) | VersionSpec::Tag(_) => Some("tag"),
        VersionSpec::Digest(_) => Some("content with the digest"),
        _ => None,
    }
}

/// Why versions are not candidates, as the end of a sentence that starts with them.
fn reason(rejection: &Rejection, versions: &FoldedVersions) -> String {
    let is = plural(versions.count(), "is", "are");
    let needs = plural(versions.count(), "needs", "need");
    match rejection {
        Rejection::Excluded => format!("{is} excluded"),
        Rejection::Yanked(reason) if reason.is_empty() => format!("{is} yanked"),
        Rejection::Yanked(reason) => format!("{is} yanked: {reason}"),
        Rejection::TooNew => format!("{is} too new"),
        Rejection::Undated => {
            let (was, it) =
                (plural(versions.count(), "was", "were"), plural(versions.count(), "it", "they"));
            format!("may be too new: the registry does not say when {it} {was} published")
        }
        Rejection::ApiVersion(wanted) => format!("{needs} the manifest format {wanted}"),
        Rejection::MuVersion(wanted) => format!("{needs} mu {wanted}"),
        Rejection::Runtime { fact, wanted, actual } => {
            format!("{needs} {fact} {wanted}, but it is {actual}")
        }
        Rejection::NoUpgrade { from, follows, .. } if follows.is_empty() => {
            format!("cannot be reached from {from}, or from any other version")
        }
        // `can be reached only from 1.4.0, not from 1.2.0; the step 1.4.0 is yanked`: without the last part, nobody
        // would see why the way over 1.4.0 does not count.
        Rejection::NoUpgrade { from, follows, missing } => {
            let missing = missing.as_ref().map(|(step, rejection)| {
                let one = FoldedVersions { runs: vec![VersionRun::single_version(step)] };
                format!("; the step {step} {}", reason(rejection, &one))
            });
            let missing = missing.unwrap_or_default();
            format!("can be reached only from {follows}, not from {from}{missing}")
        }
        Rejection::Broken(reason) => format!("cannot be used: {reason}"),
    }
}

impl Rejection {
    /// This reason for one version, as the end of a sentence that the version begins.
    pub fn of_one(&self) -> String {
        reason(self, &FoldedVersions { runs: vec![VersionRun::single_version("")] })
    }
}

fn plural(count: usize, one: &'static str, several: &'static str) -> &'static str {
    if count == 1 { one } else { several }
}

/// The specs that say something: those that accept any version are left out.
fn telling(words: &[String]) -> Vec<String> {
    let is_telling = |word: &&String| words.len() == 1 || *word != ANY;
    words.iter().filter(is_telling).cloned().collect()
}

/// `a`, `a or b`, `a, b, c or 4 others`; of several, `in channel fast` says enough.
fn alternatives(words: &[String]) -> String {
    let plain = |word: &String| match words.len() {
        1 => word.clone(),
        _ => word.strip_prefix(ANY_THAT).unwrap_or(word).to_owned(),
    };
    let words: Vec<String> = words.iter().map(plain).collect();
    if words.len() <= ALTERNATIVES + 1 {
        return join(&words, "or");
    }
    let (named, rest) = words.split_at(ALTERNATIVES);
    format!("{} or {} others", named.join(", "), rest.len())
}

/// The first lines of many, and how many more there are.
fn few(mut lines: Vec<String>) -> Vec<String> {
    // One line more is shown, because a line that counts it takes as much room.
    let more = lines.len().saturating_sub(REASONS);
    if more > 1 {
        lines.truncate(REASONS);
        lines.push(format!("  … {more} more …"));
    }
    lines
}

/// `a`, `a and b`, `a, b and c`, `a, b, c and 97 others`.
fn join(words: &[String], last: &str) -> String {
    // As above: `and 1 others` is never said.
    if words.len() > LIST + 1 {
        let (named, rest) = words.split_at(LIST);
        return format!("{} {last} {} others", named.join(", "), rest.len());
    }
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}
