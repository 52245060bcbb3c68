//! Whether an index line agrees with the manifest in its archive, in all that counts for choosing versions.
//!
//! A line that disagrees misleads everyone who chooses by it. `mu hub check` looks for such lines, and `mu get` refuses versions
//! that were chosen by one. Text that is only for people may differ, and so may spelling: a base that is left out, blanks, the
//! long form of a dependency. Nothing here reads files.
//!
//! So may names, where a package was copied into another namespace: its manifest stays as it is, so it still uses
//! the old names of its neighbours. Its index line uses the new names.

use std::collections::HashMap;
use std::fmt;

use mu_provider::{Dependency, Release, Upgrade};
use serde_json::{Map, Value};

use crate::facts::{Statement, are_alike, statements};
use crate::reference::{Base, Defaults, Name, PackageId, Reference};
use crate::{API_VERSION, Manifest, Versioning};

/// How many differences are shown of each side.
const SHOWN: usize = 5;

/// A difference between a line and a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The key, such as `dependencies`.
    pub key: &'static str,
    /// What only the line says.
    pub line: Vec<String>,
    /// What only the manifest says.
    pub manifest: Vec<String>,
}

/// Prints `` `provides`: only the line has `a`, only the manifest has `b` ``.
impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [("line", &self.line), ("manifest", &self.manifest)];
        let parts =
            parts.into_iter().filter(|(_, texts)| !texts.is_empty()).map(|(whose, texts)| {
                let shown: Vec<String> =
                    texts.iter().take(SHOWN).map(|text| format!("`{text}`")).collect();
                let more = match texts.len().saturating_sub(SHOWN) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                format!("only the {whose} has {}{more}", shown.join(", "))
            });
        let parts: Vec<String> = parts.collect();
        write!(formatter, "`{}`: {}", self.key, parts.join(", "))
    }
}

/// The differences between the line `map` and the manifest in its archive, in words.
pub fn differences(manifest: &Manifest, map: &Map<String, Value>) -> Vec<String> {
    let line = match serde_json::from_value::<Release>(Value::Object(map.clone())) {
        Ok(line) => line,
        Err(error) => return vec![format!("its line cannot be read: {error}")],
    };
    // Only the hub's readers know which base leads to it.
    let name = Name::parse(&line.name).unwrap_or_else(|_| manifest.name.name().clone());
    let found = compare(&line, manifest, None, &name);
    let text = "its line and the manifest in its archive differ in";
    found.map(|difference| format!("{text} {difference}")).collect()
}

/// The first difference between `line`, by which a version of `id` was chosen, and the manifest in its
/// archive.
///
/// Names and versions of the two are not compared here.
pub fn first_difference(id: &PackageId, line: &Release, manifest: &Manifest) -> Option<Difference> {
    // As text, nearly all are equal.
    if are_alike(line, &manifest.to_release()) {
        return None;
    }
    compare(line, manifest, Some(&id.base()), &id.name()).next()
}

fn compare(
    line: &Release,
    manifest: &Manifest,
    base: Option<&Base>,
    name: &Name,
) -> impl Iterator<Item = Difference> {
    let here = Reader { base: base.cloned(), namespace: name.namespace(), renamed: None };
    // A package that was copied under another name still uses the old names of its neighbours.
    let there = match &line.origin {
        None => here.clone(),
        Some(_) => {
            let origin = manifest.name.name();
            let namespace = origin.namespace().or(here.namespace.clone());
            Reader { namespace, renamed: Some(Rename::between(origin, name)), ..here.clone() }
        }
    };
    let manifest = there.said(&manifest.to_release());
    let line = here.said(line);
    let pairs = line.into_iter().zip(manifest);
    pairs.filter_map(|((key, line), (_, manifest))| difference(key, &line, &manifest))
}

fn difference(key: &'static str, line: &[Said], manifest: &[Said]) -> Option<Difference> {
    let is_same = |(line, manifest): (&Said, &Said)| line.agrees(manifest);
    if line.len() == manifest.len() && line.iter().zip(manifest).all(is_same) {
        return None;
    }
    let found = Difference {
        key,
        line: only(line, manifest, Said::agrees),
        manifest: only(manifest, line, |manifest, line| line.agrees(manifest)),
    };
    (!found.line.is_empty() || !found.manifest.is_empty()).then_some(found)
}

/// The statements in `these` that agree with none of `those`. A hostile list is long, so each is compared
/// only with those of the same key.
fn only(these: &[Said], those: &[Said], agree: impl Fn(&Said, &Said) -> bool) -> Vec<String> {
    let mut by_key: HashMap<&str, Vec<&Said>> = HashMap::new();
    for that in those {
        that.keys().for_each(|key| by_key.entry(key).or_default().push(that));
    }
    let is_missing = |this: &&Said| {
        let mut like = this.keys().flat_map(|key| by_key.get(key).into_iter().flatten());
        !like.any(|that| agree(this, that))
    };
    these.iter().filter(is_missing).map(|this| this.shown.clone()).collect()
}

/// A statement in a line or a manifest.
struct Said {
    /// The key that identifies it.
    key: String,
    /// The key with the old name of the package, if it was copied under another name.
    former: Option<String>,
    /// The base of the package that it is about, if known.
    base: Option<Base>,
    /// The package to fall back to, if the namespace is left out.
    fallback: Option<String>,
    /// The text as it is written.
    shown: String,
}

impl Said {
    fn text(text: &str) -> Self {
        let key = text.chars().filter(|character| !character.is_whitespace()).collect();
        Self { key, former: None, base: None, fallback: None, shown: text.to_owned() }
    }

    fn keys(&self) -> impl Iterator<Item = &str> {
        [Some(&self.key), self.former.as_ref()].into_iter().flatten().map(String::as_str)
    }

    /// Whether this reference, of a line, can lead only where `other`, of a manifest, leads. A base that one
    /// of them leaves out is the hub's, which nobody knows here.
    fn agrees(&self, other: &Self) -> bool {
        let same_base = match (&self.base, &other.base) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        let same_fallback = self.fallback.is_none() || self.fallback == other.fallback;
        other.keys().any(|key| key == self.key) && same_base && same_fallback
    }
}

/// The channel of an `upgrade` entry applies to each of its versions.
fn said_upgrades(upgrades: &[Upgrade]) -> Vec<(&'static str, Vec<Said>)> {
    let all = |texts: fn(&Upgrade) -> Vec<&String>| -> Vec<Said> {
        let in_channel = |upgrade: &Upgrade| match &upgrade.channel {
            Some(channel) => format!(" in channel {channel}"),
            None => String::new(),
        };
        let all = upgrades.iter().flat_map(|upgrade| {
            let place = in_channel(upgrade);
            texts(upgrade).into_iter().map(move |text| Said::text(&format!("{text}{place}")))
        });
        all.collect()
    };
    vec![
        ("upgrade.replaces", all(|upgrade| upgrade.replaces.iter().collect())),
        ("upgrade.skips", all(|upgrade| upgrade.skips.iter().collect())),
        ("upgrade.skipRange", all(|upgrade| upgrade.skip_range.iter().collect())),
    ]
}

/// Reads a line or a manifest, and fills in the missing parts of its references.
#[derive(Clone)]
struct Reader {
    base: Option<Base>,
    namespace: Option<Name>,
    /// What was renamed when the package was copied; its namespace is then the old one.
    renamed: Option<Rename>,
}

impl Reader {
    /// All statements that count, by key, in the same order for every release.
    fn said(&self, release: &Release) -> Vec<(&'static str, Vec<Said>)> {
        let all = statements(release).into_iter();
        all.flat_map(|(key, statement)| self.statement(key, statement)).collect()
    }

    fn statement(
        &self,
        key: &'static str,
        statement: Statement<'_>,
    ) -> Vec<(&'static str, Vec<Said>)> {
        let usual = match key {
            "apiVersion" => Some(API_VERSION),
            "versioning" => Some(Versioning::Semver.as_str()),
            _ => None,
        };
        let said = match (key, statement) {
            (_, Statement::Text(text)) => {
                text.filter(|text| Some(*text) != usual).map(Said::text).into_iter().collect()
            }
            // Their order counts.
            ("channels", Statement::Texts([])) => Vec::new(),
            ("channels", Statement::Texts(channels)) => vec![Said::text(&channels.join(", "))],
            ("replaces" | "conflicts", Statement::Texts(texts)) => {
                texts.iter().map(|text| self.reference(text).0).collect()
            }
            (_, Statement::Texts(texts)) => texts.iter().map(|text| Said::text(text)).collect(),
            (_, Statement::Named(named)) => {
                named.iter().map(|(name, text)| Said::text(&format!("{name}: {text}"))).collect()
            }
            (_, Statement::Dependencies(dependencies)) => {
                dependencies.iter().map(|dependency| self.dependency(dependency)).collect()
            }
            (_, Statement::Upgrades(upgrades)) => return said_upgrades(upgrades),
        };
        vec![(key, said)]
    }

    /// A reference, and the name to fall back to if it leaves out its namespace.
    fn reference(&self, text: &str) -> (Said, Option<String>) {
        let Ok(reference) = Reference::parse(text) else { return (Said::text(text), None) };
        if reference.local().is_some() {
            return (Said::text(text), None);
        }
        let defaults = Defaults { namespace: self.namespace.clone(), ..Defaults::default() };
        let written = reference.id(&Defaults::default());
        let name = reference.id(&defaults);
        let fallback = (name != written).then(|| written.name_str().to_owned());
        let spec = Said::text(&reference.spec().to_string()).key;
        let base = reference.base().or(self.base.as_ref()).cloned();
        let key = |name: &Name| match &base {
            // If several differ only in this, each then has its own key.
            Some(base) if self.base.is_some() => format!("{base}{name}#{spec}"),
            _ => format!("{name}#{spec}"),
        };
        let former = name.name();
        let (key, former) = match self.renamed.as_ref().and_then(|renamed| renamed.now(&former)) {
            Some(now) => (key(&now), Some(key(&former))),
            None => (key(&former), None),
        };
        (Said { key, former, base, fallback: None, shown: text.to_owned() }, fallback)
    }

    fn dependency(&self, dependency: &Dependency) -> Said {
        let (mut said, fallback) = self.reference(dependency.reference());
        said.fallback = fallback;
        if let Dependency::Detailed(detailed) = dependency {
            for (what, value) in [
                ("channel", detailed.channel.as_deref()),
                ("appVersion", detailed.app_version.as_deref()),
                ("prerelease", detailed.prerelease.then_some("true")),
            ] {
                let value = value.map(|value| format!(" {what}: {value}")).unwrap_or_default();
                said.key.push_str(&value);
                if let Some(former) = &mut said.former {
                    former.push_str(&value);
                }
                said.shown.push_str(&value);
            }
        }
        said
    }
}

/// The namespace of a package before it was copied, and the new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rename {
    /// The old namespace; `None` for no namespace at all.
    pub from: Option<Name>,
    /// The new one.
    pub to: Option<Name>,
}

impl Rename {
    /// The shortest rename that turns the name `from` into `to`: both without the segments at the end that
    /// they have in common.
    pub fn between(from: &Name, to: &Name) -> Self {
        let (from, to): (Vec<_>, Vec<_>) = (from.segments().collect(), to.segments().collect());
        let common = from.iter().rev().zip(to.iter().rev()).take_while(|(a, b)| a == b).count();
        let begin = |segments: &[&str]| {
            let kept = segments.get(..segments.len() - common).unwrap_or_default();
            Name::parse(&kept.join("/")).ok()
        };
        Self { from: begin(&from), to: begin(&to) }
    }

    /// The new name of a package, if it was in the namespace.
    pub fn now(&self, name: &Name) -> Option<Name> {
        let rest = name.strip_prefix(self.from.as_ref()?)?;
        Some(self.to.as_ref().map_or_else(|| rest.clone(), |to| to.join(&rest)))
    }

    /// Replaces old names of packages in an index line by their new names. A name with a base always means a
    /// package there.
    pub fn apply(&self, line: &mut Map<String, Value>) {
        let dependencies = line.get_mut("dependencies").and_then(Value::as_array_mut);
        for dependency in dependencies.into_iter().flatten() {
            let text = match dependency {
                Value::Object(detailed) => detailed.get_mut("ref"),
                text => Some(text),
            };
            if let Some(text) = text
                && let Some(renamed) = text.as_str().and_then(|text| self.reference(text))
            {
                *text = renamed.into();
            }
        }
    }

    /// The reference with the name of now, if it has another one.
    fn reference(&self, text: &str) -> Option<String> {
        let reference = Reference::parse(text).ok()?;
        if reference.base().is_some() || reference.local().is_some() {
            return None;
        }
        let name = reference.name();
        let rest = text.strip_prefix(name.as_str())?;
        Some(format!("{}{rest}", self.now(name)?.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;

    const MANIFEST: &str = "
name: acme/web
version: 1.0.0
appVersion: 8.11.1
versioning: composite
apiVersion: mu/v1
muVersion: '>=0.1'
dependencies: [utils, 'aws/vpc#^1.2', {ref: 'ops/kafka#3.x', channel: stable, appVersion: '2.3', prerelease: true}]
devDependencies: [test/kit]
provides: [net.mu.com/v1/Network]
requires: [net.mu.com/v1/Dns]
replaces: [acme/old]
conflicts: [acme/other, logs.mu.com/v1/Sink]
constraints: {kubernetes: '>=1.25'}
channels: [stable, fast]
upgrade: {replaces: 8.10.0-1.0.0, skips: [8.9.0-1.0.0], skipRange: '>=8 <9'}
";

    fn manifest(text: &str) -> Manifest {
        Manifest::parse(Path::new("Mu.yaml"), text).expect("is a manifest").0
    }

    /// The first difference from the manifest if the line has `value` for `key`, or no such key.
    fn found(key: &str, value: Option<Value>) -> Option<String> {
        let manifest = manifest(MANIFEST);
        let mut line = serde_json::to_value(manifest.to_release()).expect("can be printed");
        let map = line.as_object_mut().expect("is an object");
        match value {
            Some(value) => drop(map.insert(key.to_owned(), value)),
            None => drop(map.remove(key).expect("the line has all")),
        }
        let line: Release = serde_json::from_value(line).expect("is a line");
        let id = PackageId::parse("hub.mu.com/acme/web").expect("is an id");
        first_difference(&id, &line, &manifest).map(|difference| difference.to_string())
    }

    #[test]
    fn a_line_that_lacks_what_selection_uses_differs() {
        for (key, shown) in [
            (
                "dependencies",
                "only the manifest has `utils`, `aws/vpc#^1.2`, `ops/kafka#3.x channel",
            ),
            ("provides", "only the manifest has `net.mu.com/v1/Network`"),
            ("requires", "only the manifest has `net.mu.com/v1/Dns`"),
            ("replaces", "only the manifest has `acme/old`"),
            ("conflicts", "only the manifest has `acme/other`"),
            ("constraints", "only the manifest has `kubernetes: >=1.25`"),
            ("channels", "only the manifest has `stable, fast`"),
            ("upgrade", "only the manifest has `8.10.0-1.0.0`"),
            ("muVersion", "only the manifest has `>=0.1`"),
            ("appVersion", "only the manifest has `8.11.1`"),
            ("versioning", "only the manifest has `composite`"),
        ] {
            let text = found(key, None).expect(key);
            assert!(text.starts_with(&format!("`{key}")) && text.contains(shown), "{text}");
        }
    }

    #[test]
    fn a_line_that_says_something_else_differs() {
        for (key, value) in [
            ("dependencies", json!(["utils", "aws/vpc#^1.2"])),
            ("dependencies", json!(["utils", "aws/vpc#^1.2", "ops/kafka#3.x"])),
            ("provides", json!(["net.mu.com/v1/Network", "net.mu.com/v1/Vm"])),
            ("requires", json!(["net.mu.com/v2/Dns"])),
            ("replaces", json!(["evil.example/acme/old"])),
            ("conflicts", json!(["acme/other"])),
            ("constraints", json!({"kubernetes": ">=1.2"})),
            // The first is the default.
            ("channels", json!(["fast", "stable"])),
            ("upgrade", json!({"replaces": "8.10.0-1.0.0", "skipRange": ">=8 <9"})),
            ("upgrade", json!({"replaces": "8.10.0-1.0.0", "skips": ["8.9.0-1.0.0"]})),
            ("apiVersion", json!("mu/v2")),
            ("muVersion", json!(">=0.2")),
            ("appVersion", json!("8.11.2")),
            ("versioning", json!("semver")),
        ] {
            let text = found(key, Some(value.clone())).expect(key);
            assert!(text.starts_with(&format!("`{key}")), "{value}: {text}");
        }
    }

    #[test]
    fn what_means_the_same_may_be_written_otherwise() {
        let kafka = json!({"ref": "https://hub.mu.com/ops/kafka#3.x", "channel": "stable", "appVersion": "2.3", "prerelease": true});
        for (key, value) in [
            ("dependencies", Some(json!([kafka, {"ref": "aws/vpc#^1.2"}, "acme/utils"]))),
            ("dependencies", Some(json!(["hub.mu.com/aws/vpc#^1.2", "utils#latest", kafka]))),
            ("replaces", Some(json!(["hub.mu.com/acme/old"]))),
            ("conflicts", Some(json!(["logs.mu.com/v1/Sink", "hub.mu.com/acme/other"]))),
            ("constraints", Some(json!({"kubernetes": ">= 1.25"}))),
            ("apiVersion", None),
            ("description", Some(json!("is for people"))),
            ("digest", Some(json!("h1:x"))),
        ] {
            assert_eq!(found(key, value.clone()), None, "{key} {value:?}");
        }
    }

    /// A line may say more precisely where a name without a namespace leads. One that says it less precisely
    /// could lead elsewhere.
    #[test]
    fn a_line_does_not_fall_back_where_its_manifest_does_not() {
        let id = PackageId::parse("hub.mu.com/acme/web").expect("is an id");
        let line = |needs: &str| Release {
            dependencies: Some(vec![Dependency::Reference(needs.to_owned())]),
            ..Release::default()
        };
        for (in_line, in_manifest, agrees) in [
            ("utils", "utils", true),
            ("acme/utils", "utils", true),
            ("hub.mu.com/acme/utils", "utils", true),
            ("utils", "acme/utils", false),
            ("hub.mu.com/utils", "utils", false),
            ("evil.example/acme/utils", "utils", false),
            ("evil.example/acme/utils", "acme/utils", false),
            ("./utils", "utils", false),
        ] {
            let manifest = manifest(&format!("name: acme/web\ndependencies: [{in_manifest}]\n"));
            let found = first_difference(&id, &line(in_line), &manifest);
            assert_eq!(found.is_none(), agrees, "{in_line} {in_manifest}: {found:?}");
        }
    }

    #[test]
    fn a_copy_calls_its_neighbours_by_their_old_names_or_their_new_ones() {
        let id = PackageId::parse("hub.mu.com/internal/web").expect("is an id");
        let manifest = manifest("name: acme/web\ndependencies: [acme/utils#^1, vpc, aws/log]\n");
        let line = |origin: Option<&str>, needs: [&str; 3]| Release {
            origin: origin.map(str::to_owned),
            dependencies: Some(needs.map(|text| Dependency::Reference(text.to_owned())).into()),
            ..Release::default()
        };
        for (needs, agrees) in [
            (["internal/utils#^1", "internal/vpc", "aws/log"], true),
            (["acme/utils#^1", "acme/vpc", "aws/log"], true),
            (["acme/utils#^1", "vpc", "aws/log"], true),
            (["internal/utils#^1", "vpc", "internal/log"], false),
            (["internal/utils#^2", "vpc", "aws/log"], false),
        ] {
            let found = first_difference(&id, &line(Some("acme/web"), needs), &manifest);
            assert_eq!(found.is_none(), agrees, "{needs:?}: {found:?}");
        }
        let renamed = line(None, ["internal/utils#^1", "vpc", "aws/log"]);
        assert!(first_difference(&id, &renamed, &manifest).is_some());
    }

    #[test]
    fn long_lists_take_no_long_time_and_are_not_shown_whole() {
        let provides = |first: u32| -> Vec<String> {
            (first..first + 50_000).map(|number| format!("a.co/v1/C{number}")).collect()
        };
        let said = |texts: &[String]| texts.iter().map(|text| Said::text(text)).collect::<Vec<_>>();
        let (line, mut manifest) = (said(&provides(0)), said(&provides(10)));
        manifest.reverse();
        let text = difference("provides", &line, &manifest).expect("differ").to_string();
        assert!(text.contains("`a.co/v1/C0`") && text.contains(" and 5 more"), "{text}");
        assert!(text.len() < 400, "{text}");
    }

    fn name(text: &str) -> Name {
        Name::parse(text).expect("is a name")
    }

    #[test]
    fn what_was_renamed_is_what_differs() {
        for (from, to, old, new) in [
            ("contrib/conf", "internal/conf", Some("contrib"), Some("internal")),
            ("a/b/c", "x/b/c", Some("a"), Some("x")),
            ("conf", "internal/conf", None, Some("internal")),
            ("a/conf", "conf", Some("a"), None),
        ] {
            let rename = Rename::between(&name(from), &name(to));
            assert_eq!((rename.from, rename.to), (old.map(name), new.map(name)), "{from} {to}");
        }
    }

    #[test]
    fn dependencies_are_called_by_their_new_names() {
        let rename = Rename::between(&name("contrib/sub/conf"), &name("internal/sub/conf"));
        let line = json!({ "dependencies": [
            "contrib/a#^1", "b#^1", "contribute/c", "x.example/contrib/d", "contrib/sub/e",
            {"ref": "contrib/f#2.x", "channel": "stable"},
        ]});
        let mut line = line.as_object().expect("is an object").clone();
        rename.apply(&mut line);
        let expected = json!([
            "internal/a#^1", "b#^1", "contribute/c", "x.example/contrib/d", "internal/sub/e",
            {"ref": "internal/f#2.x", "channel": "stable"},
        ]);
        assert_eq!(line["dependencies"], expected);
    }
}
