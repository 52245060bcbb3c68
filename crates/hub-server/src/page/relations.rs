//! Which packages depend on which, and which claim to replace which; and where a reference of a package in this hub leads: to
//! another package of the hub, or elsewhere. No file of a hub contains this.
//!
//! It is computed once from the snapshot (or every index file). Then the log keeps it current: a change costs the index files
//! that it concerns. Only a package's newest version is in memory, about a kilobyte. Of a hub that is too large for a catalog, the
//! server's own is read for each page instead, and only what that page shows is kept. Of a reference, only the parts that links
//! need are read; a text that is not a link is shown as it was written.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, TryStreamExt as _};
use memchr::memmem::Finder;
use mu_hub::HubError;
use mu_hub::derived;
use mu_hub::files::{Files, in_its_own_thread};
use mu_hub::lines::{Lines, PublishedLine, Standing};
use mu_hub::log;
use mu_hub::root::Root;
use mu_hub::snapshot;
use mu_hub::tokens::Scope;
use mu_provider::fs::FileError;
use tokio::sync::Mutex;

use crate::own_catalog::{Brief, KnownPackages, OwnCatalog, name_in};

/// How long the relations are cached for a hub that does not count its changes.
const KEPT: Duration = Duration::from_secs(60);

/// Index files that are read at once.
const AT_ONCE: usize = 32;

/// How many dependents of a package are kept of a large hub. The others are only counted.
const MOST_NAMED: usize = 10_000;

/// The relations between the packages of a hub.
pub(crate) struct Relations {
    /// What is read if the hub is too large to be kept in memory.
    own_catalog: Arc<OwnCatalog>,
    known: RwLock<Known>,
    reading: Mutex<()>,
}

/// What a page shows of other packages, so that no more is kept of a large hub.
#[derive(Debug, Clone, Default)]
pub(super) struct Interest {
    /// Packages that it is about, or may lead to.
    names: HashSet<String>,
    /// The package that it is about, by its name, and by that with the hub's base.
    subject: [String; 2],
    /// Whether it shows who depends on that, or claims to replace it.
    has_dependents: bool,
    /// The capability whose users it shows.
    capability: Option<String>,
}

impl Interest {
    /// That of a page with a list of packages.
    pub(super) fn in_packages<'name>(names: impl Iterator<Item = &'name str>) -> Self {
        Self { names: names.map(str::to_owned).collect(), ..Self::default() }
    }

    /// That of a page that shows who requires a capability.
    pub(super) fn in_capability(capability: &str) -> Self {
        Self { capability: Some(capability.to_owned()), ..Self::default() }
    }

    /// That of a page about a version of a package; `base` is the hub's base.
    pub(super) fn in_page(line: &PublishedLine, base: &str) -> Self {
        let name = line.name();
        let moved_to = line.text("movedTo").map(str::to_owned);
        let replaces = line.texts("replaces").map(str::to_owned);
        let references = line.references().chain(replaces).chain(moved_to);
        let keys = references.flat_map(|reference| {
            Target::parse(&reference).map(|target| target.keys(name)).unwrap_or_default()
        });
        let inside = |key: String| match key.strip_prefix(base) {
            Some(rest) if !base.is_empty() => rest.to_owned(),
            _ => key,
        };
        let names = keys.map(inside).chain([name.to_owned()]).collect();
        let subject = [name.to_owned(), format!("{base}{name}")];
        Self { names, subject, ..Self::default() }
    }

    /// The same, also in who depends on the package of the page.
    pub(super) fn and_dependents(self) -> Self {
        Self { has_dependents: true, ..self }
    }

    /// Whether a reference of the package `own` may lead to the package of the page.
    fn is_led_to(&self, own: &str, reference: &str) -> bool {
        let keys = Target::parse(reference).map(|target| target.keys(own));
        keys.into_iter().flatten().any(|key| self.subject.contains(&key))
    }

    /// Reads what the page needs to know.
    fn read(&self, contents: &KnownPackages, scope: &Scope) -> Result<Known, FileError> {
        let (mut known, mut unreadable) = (Known::default(), None);
        // Every reference to the subject has its last segment.
        let leaf = Some(leaf(&self.subject[0])).filter(|_| self.has_dependents);
        let (finder, capability) = (leaf.map(Finder::new), self.capability.as_deref());
        let (by_capability, mut total) = (capability.map(Finder::new), 0);
        contents.each_package(|line, brief| {
            let Some(name) = name_in(line).filter(|name| scope.has(name)) else { return };
            total += 1;
            let has = |finder: &Option<Finder<'_>>| {
                finder.as_ref().is_some_and(|finder| finder.find(brief).is_some())
            };
            let is_named = self.names.contains(&*name);
            // One with that last segment may be meant by those beside it.
            let is_namesake = leaf == Some(self::leaf(&name));
            if !is_named && !is_namesake && !has(&finder) && !has(&by_capability) {
                return;
            }
            let mut brief = match serde_json::from_slice::<Brief>(brief) {
                Ok(brief) => brief,
                Err(error) => {
                    unreadable = Some(error);
                    return;
                }
            };
            if !is_named {
                let retain = |texts: &mut Box<[Box<str>]>, is_it: &dyn Fn(&str) -> bool| {
                    let mut kept = std::mem::take(texts).into_vec();
                    kept.retain(|text| is_it(text));
                    *texts = kept.into();
                    usize::from(!texts.is_empty())
                };
                let leads = |reference: &str| leaf.is_some() && self.is_led_to(&name, reference);
                let used = retain(&mut brief.dependencies, &leads)
                    + retain(&mut brief.requires, &|one| Some(one) == capability);
                let claims = retain(&mut brief.replaces, &leads);
                if claims == 0 && known.packages.len() >= MOST_NAMED {
                    known.unnamed += used;
                    return;
                }
                if used + claims == 0 && !is_namesake {
                    return;
                }
            }
            known.put(&name, Some(brief));
        })?;
        if let Some(error) = unreadable {
            return contents.give_up_reading(io::Error::other(error));
        }
        known.total = Some(total);
        Ok(known)
    }
}

/// What is known at a generation.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The generation, and when it was read; `None` before anything was.
    read: Option<(Option<u64>, Instant)>,
    packages: HashMap<Arc<str>, Brief>,
    dependents: ByKey,
    claimants: ByKey,
    /// How many packages there are, if only some are here.
    total: Option<usize>,
    /// How many dependents or users of what was asked for are not here.
    unnamed: usize,
}

/// What is known of the packages that somebody may read: he sees no other one, and learns of none.
#[derive(Clone, Copy)]
pub(super) struct KnownInScope<'known> {
    known: &'known Known,
    scope: &'known Scope,
}

/// The packages whose references may lead to a key.
type ByKey = HashMap<Box<str>, BTreeSet<Arc<str>>>;

impl Relations {
    /// Relations of which nothing was read yet.
    pub(super) fn new(own_catalog: Arc<OwnCatalog>) -> Self {
        Self { own_catalog, known: RwLock::default(), reading: Mutex::default() }
    }

    /// Waits a moment for the changes since the last time; returns whether anything is known. A page that stops waiting shows what was
    /// known before.
    ///
    /// # Errors
    ///
    /// When nothing is known, because the hub cannot be read.
    pub(super) async fn refresh(
        self: &Arc<Self>,
        files: &Files,
        root: &Root,
    ) -> Result<bool, HubError> {
        if root.is_too_large_for_a_catalog() {
            return Ok(self.own_catalog.follow_log(files, root).await?.is_some());
        }
        if !self.is_current(root) {
            let (relations, files, root) = (Arc::clone(self), files.clone(), root.clone());
            let update = async move { relations.read_changes(&files, &root).await };
            self.own_catalog.wait_a_moment(update, || self.read().is_some()).await?;
        }
        Ok(self.read().is_some())
    }

    /// Calls `look` with what is known of the packages in `scope`, at least as far as `interest` says.
    ///
    /// # Errors
    ///
    /// When the server's own catalog cannot be read.
    pub(super) async fn look<T>(
        &self,
        root: &Root,
        scope: &Scope,
        interest: Interest,
        look: impl FnOnce(&KnownInScope<'_>) -> T,
    ) -> Result<T, HubError> {
        if root.is_too_large_for_a_catalog() {
            let known = self.read_own_catalog(scope.clone(), interest).await?;
            return Ok(look(&known.seen_in(scope)));
        }
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        Ok(look(&known.seen_in(scope)))
    }

    /// What the server's own catalog says of what a page is interested in; nothing while it is being made.
    async fn read_own_catalog(&self, scope: Scope, interest: Interest) -> Result<Known, HubError> {
        let Some(contents) = self.own_catalog.known_packages() else {
            return Ok(Known::default());
        };
        if scope.is_whole() && interest.names.is_empty() && interest.capability.is_none() {
            let total = usize::try_from(contents.package_count()).ok();
            return Ok(Known { total, ..Known::default() });
        }
        // It takes a fraction of a second, during which other requests continue.
        Ok(in_its_own_thread(move || interest.read(&contents, &scope)).await??)
    }

    /// The generation that is known, and when it was read; `None` before anything was.
    fn read(&self) -> Option<(Option<u64>, Instant)> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).read
    }

    fn is_current(&self, root: &Root) -> bool {
        match self.read() {
            Some((Some(generation), _)) => root.counts() && generation >= root.generation(),
            Some((None, moment)) => !root.counts() && moment.elapsed() < KEPT,
            None => false,
        }
    }

    async fn read_changes(&self, files: &Files, root: &Root) -> Result<(), HubError> {
        let _turn = self.reading.lock().await;
        if self.is_current(root) {
            return Ok(());
        }
        let before = self.read().and_then(|(generation, _)| generation);
        // A repaired hub may count from a lower number again.
        let before = before.filter(|before| root.counts() && *before <= root.generation());
        let changed = match before {
            Some(before) => log::names(files, root, before, root.generation()).await?,
            None => None,
        };
        let read = Some((root.counts().then(|| root.generation()), Instant::now()));
        if let Some(changed) = changed {
            let changed = self.indexes(files, root, changed).await?;
            let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
            for (name, lines) in changed {
                known.put(&name, lines.latest().map(Brief::of));
            }
            known.read = read;
        } else {
            let mut known = self.whole(files, root).await?;
            known.read = read;
            *self.known.write().unwrap_or_else(PoisonError::into_inner) = known;
        }
        Ok(())
    }

    /// Reads the whole hub: the snapshot, and what has changed since.
    async fn whole(&self, files: &Files, root: &Root) -> Result<Known, HubError> {
        let mut known = Known::default();
        let mut names = None;
        if root.snapshot_progress().is_some()
            && let Some((generation, latest)) =
                snapshot::visit(files, Latest::new(), keep_latest).await?
        {
            names = log::names(files, root, generation, root.generation()).await?;
            for (name, (_, brief)) in latest {
                known.put(&name, Some(brief));
            }
        }
        let names = match names {
            Some(names) => names,
            None => {
                known = Known::default();
                derived::all_package_names(files, root).await?
            }
        };
        for (name, lines) in self.indexes(files, root, names).await? {
            known.put(&name, lines.latest().map(Brief::of));
        }
        Ok(known)
    }

    /// The index files of some packages, without those that are broken.
    async fn indexes(
        &self,
        files: &Files,
        root: &Root,
        names: Vec<String>,
    ) -> Result<Vec<(String, Lines)>, HubError> {
        let reading = futures_util::stream::iter(names)
            .map(|name| async move {
                let lines = self.own_catalog.index_unless_broken(files, root, &name).await?;
                Ok::<_, HubError>(lines.map(|lines| (name, lines)))
            })
            .buffer_unordered(AT_ONCE);
        reading.try_filter_map(|read| std::future::ready(Ok(read))).try_collect().await
    }
}

/// The newest version of each package so far.
type Latest = HashMap<String, (Standing, Brief)>;

fn keep_latest(latest: &mut Latest, line: PublishedLine) {
    let standing = line.standing();
    match latest.get_mut(line.name()) {
        Some((best, _)) if *best > standing => {}
        Some(known) => *known = (standing, Brief::of(&line)),
        None => {
            latest.insert(line.name().to_owned(), (standing, Brief::of(&line)));
        }
    }
}

impl<'known> KnownInScope<'known> {
    /// How many packages there are.
    pub(super) fn len(&self) -> usize {
        let in_scope = || match self.scope.is_whole() {
            true => self.known.packages.len(),
            false => self.known.packages.keys().filter(|name| self.scope.has(name)).count(),
        };
        self.known.total.unwrap_or_else(in_scope)
    }

    /// How many dependents of the package that was asked for are not named by [`Self::dependents`].
    pub(super) fn unnamed(&self) -> usize {
        self.known.unnamed
    }

    /// The brief of a package's newest version.
    pub(super) fn find(&self, name: &str) -> Option<&'known Brief> {
        self.known.packages.get(name).filter(|_| self.scope.has(name))
    }

    /// The package of this hub that a reference of `own` leads to; `base` is the hub's base.
    pub(super) fn resolve(&self, own: &str, reference: &str, base: &str) -> Option<&'known str> {
        let keys = Target::parse(reference)?.keys(own);
        keys.iter().find_map(|key| {
            let name = key.strip_prefix(base).filter(|_| !base.is_empty()).unwrap_or(key);
            let (name, _) = self.known.packages.get_key_value(name)?;
            self.scope.has(name).then_some(&**name)
        })
    }

    /// The packages whose newest version depends on `name`, by name, each with its requirement.
    pub(super) fn dependents(&self, name: &str, base: &str) -> Vec<(&'known str, &'known str)> {
        let found = self.leading_to(&self.known.dependents, name, base);
        let spec = |own: &&str| {
            let references = self.find(own)?.dependencies.iter();
            let mut leading = references
                .filter(|reference| self.resolve(own, reference, base) == Some(name))
                .filter_map(|reference| Target::parse(reference));
            leading.next().map(|target| target.spec)
        };
        found.into_iter().filter_map(|own| Some((own, spec(&own)?))).collect()
    }

    /// The packages whose newest version claims to replace `name`, by name.
    pub(super) fn claimants(&self, name: &str, base: &str) -> Vec<&'known str> {
        let found = self.leading_to(&self.known.claimants, name, base);
        let claims = |own: &&str| {
            let mut replaces = self.find(own).into_iter().flat_map(|brief| &brief.replaces);
            replaces.any(|reference| self.resolve(own, reference, base) == Some(name))
        };
        found.into_iter().filter(claims).collect()
    }

    /// The packages whose newest version requires a capability, by name, at most `most`; and their number.
    pub(super) fn requiring(&self, capability: &str, most: usize) -> (Vec<String>, usize) {
        let requires = |brief: &Brief| brief.requires.iter().any(|one| &**one == capability);
        let found = self.known.packages.iter().filter(|(_, brief)| requires(brief));
        let names = found.map(|(name, _)| &**name).filter(|name| self.scope.has(name));
        let names: BTreeSet<&str> = names.collect();
        let total = names.len() + self.known.unnamed;
        (names.iter().take(most).map(|name| (*name).to_owned()).collect(), total)
    }

    fn leading_to(&self, by_key: &'known ByKey, name: &str, base: &str) -> BTreeSet<&'known str> {
        let id = format!("{base}{name}");
        let sets = [by_key.get(name), by_key.get(id.as_str())];
        let found = sets.into_iter().flatten().flatten().map(|own| &**own);
        found.filter(|own| *own != name && self.scope.has(own)).collect()
    }
}

impl Known {
    /// What somebody with this scope may see of it.
    fn seen_in<'known>(&'known self, scope: &'known Scope) -> KnownInScope<'known> {
        KnownInScope { known: self, scope }
    }

    /// Replaces the brief of a package; with `None`, removes a package that no longer exists.
    pub(super) fn put(&mut self, name: &str, brief: Option<Brief>) {
        if let Some((name, old)) = self.packages.remove_entry(name) {
            remove(&mut self.dependents, &name, &old.dependencies);
            remove(&mut self.claimants, &name, &old.replaces);
        }
        let Some(brief) = brief else { return };
        let name: Arc<str> = name.into();
        insert(&mut self.dependents, &name, &brief.dependencies);
        insert(&mut self.claimants, &name, &brief.replaces);
        self.packages.insert(name, brief);
    }
}

/// All that a package's references may be called.
fn keys(own: &str, references: &[Box<str>]) -> impl Iterator<Item = String> {
    let targets = references.iter().filter_map(|reference| Target::parse(reference));
    targets.flat_map(move |target| target.keys(own))
}

fn insert(by_key: &mut ByKey, own: &Arc<str>, references: &[Box<str>]) {
    for key in keys(own, references) {
        by_key.entry(key.into()).or_default().insert(Arc::clone(own));
    }
}

fn remove(by_key: &mut ByKey, own: &str, references: &[Box<str>]) {
    for key in keys(own, references) {
        if let Some(set) = by_key.get_mut(key.as_str()) {
            set.remove(own);
            if set.is_empty() {
                by_key.remove(key.as_str());
            }
        }
    }
}

impl Brief {
    /// Whether the package says that it moved to `id`.
    pub(super) fn has_moved_to(&self, own: &str, name: &str, base: &str) -> bool {
        let target = self.moved_to.as_deref().and_then(Target::parse);
        target.is_some_and(|target| {
            let keys = target.keys(own);
            keys.iter().any(|key| key == name || *key == format!("{base}{name}"))
        })
    }
}

/// Whether two packages of one hub are in the same namespace, and so have the same owner. Names of one
/// segment have no namespace.
pub(super) fn are_neighbours(left: &str, right: &str) -> bool {
    !namespace(left).is_empty() && namespace(left) == namespace(right)
}

/// A reference to a package of a hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Target<'text> {
    /// The base, with its slash; `None` if it is that of the package with the reference.
    pub(super) base: Option<&'text str>,
    pub(super) name: &'text str,
    /// The required version; empty if any.
    pub(super) spec: &'text str,
}

impl<'text> Target<'text> {
    /// Reads a reference; `None` if it cannot lead to a hub.
    pub(super) fn parse(reference: &'text str) -> Option<Self> {
        let (place, spec) = reference.split_once('#').unwrap_or((reference, ""));
        let (base, name) = match place.split_once("://") {
            Some(("https" | "http", rest)) => split_base(rest)?,
            Some(_) => return None,
            None => match place.split_once('/') {
                Some((first, _)) if first.contains(['.', ':']) => split_base(place)?,
                _ => (None, place),
            },
        };
        let is_name = mu_hub::names::check_name(name).is_ok();
        is_name.then_some(Self { base, name, spec })
    }

    /// The names that the target can have in the hub for its package `own`, likeliest first: with its base if
    /// one was written, or else as a name of this hub. A single segment means a package beside `own` if there
    /// is one.
    pub(super) fn keys(&self, own: &str) -> Vec<String> {
        match (self.base, own.rsplit_once('/')) {
            (Some(base), _) => vec![format!("{base}{}", self.name)],
            (None, Some((namespace, _))) if !self.name.contains('/') => {
                vec![format!("{namespace}/{}", self.name), self.name.to_owned()]
            }
            (None, _) => vec![self.name.to_owned()],
        }
    }
}

/// The host with its slash, and the rest.
fn split_base(text: &str) -> Option<(Option<&str>, &str)> {
    let end = text.find('/')? + 1;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-:[]/".contains(&byte);
    let is_host = text[..end].bytes().all(fits) && !text.starts_with(['.', '-', '/']);
    is_host.then_some((Some(&text[..end]), &text[end..]))
}

/// The last segment of a name.
fn leaf(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or_default()
}

/// All of a name except its last segment; empty if there is only one.
pub(super) fn namespace(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(namespace, _)| namespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Brief {
        Brief::of(&PublishedLine::parse(text).expect("is a line"))
    }

    fn known(lines: &[&str]) -> Known {
        let mut known = Known::default();
        for text in lines {
            let name = PublishedLine::parse(text).expect("is a line").name().to_owned();
            known.put(&name, Some(line(text)));
        }
        known
    }

    #[test]
    fn dependents_are_found_however_they_write_it() {
        let mut known = known(&[
            r#"{"name":"web/tls","version":"1.0.0"}"#,
            r#"{"name":"tls","version":"1.0.0"}"#,
            r#"{"name":"web/proxy","version":"1.0.0","dependencies":["tls#^1"]}"#,
            r#"{"name":"ops/a","version":"1.0.0","dependencies":["tls"]}"#,
            r#"{"name":"ops/b","version":"1.0.0","dependencies":[{"ref":"hub.co/web/tls#~1"}, 7]}"#,
            r#"{"name":"ops/c","version":"1.0.0","dependencies":["other.co/web/tls"]}"#,
        ]);
        let web = known.seen_in(&Scope::Everything).dependents("web/tls", "hub.co/");
        assert_eq!(web, [("ops/b", "~1"), ("web/proxy", "^1")]);
        assert_eq!(known.seen_in(&Scope::Everything).dependents("tls", "hub.co/"), [("ops/a", "")]);
        assert_eq!(
            known.seen_in(&Scope::Everything).dependents("web/tls", ""),
            [("web/proxy", "^1")]
        );

        known.put("ops/b", Some(line(r#"{"name":"ops/b","version":"2.0.0"}"#)));
        known.put("web/proxy", None);
        assert_eq!(known.seen_in(&Scope::Everything).dependents("web/tls", "hub.co/"), []);
        known.put("web/tls", None);
        assert_eq!((known.packages.len(), known.dependents.len()), (4, 3));
    }

    #[test]
    fn claims_and_moves_find_each_other() {
        let known = known(&[
            r#"{"name":"a/old","version":"1.0.0","movedTo":"hub.co/b/new"}"#,
            r#"{"name":"b/new","version":"1.0.0","replaces":["hub.co/a/old"]}"#,
            r#"{"name":"c/thief","version":"1.0.0","replaces":["a/old"]}"#,
        ]);
        let all = known.seen_in(&Scope::Everything);
        assert_eq!(all.claimants("a/old", "hub.co/"), ["b/new", "c/thief"]);
        let scope = Scope::Only(["a".to_owned(), "c".to_owned()].into());
        assert_eq!(known.seen_in(&scope).claimants("a/old", "hub.co/"), ["c/thief"]);
        let old = all.find("a/old").expect("is there");
        assert!(old.has_moved_to("a/old", "b/new", "hub.co/"));
        assert!(!old.has_moved_to("a/old", "c/thief", "hub.co/"));
        assert!(!old.has_moved_to("a/old", "b/new", "other.co/"));
        assert!(are_neighbours("a/old", "a/new") && !are_neighbours("a/old", "b/new"));
    }

    #[test]
    fn references_lead_beside_or_elsewhere() {
        for (reference, expected) in [
            ("web/tls#^1.0", Some((None, "web/tls", "^1.0"))),
            ("tls", Some((None, "tls", ""))),
            ("hub.mu.com/web/tls#1", Some((Some("hub.mu.com/"), "web/tls", "1"))),
            ("http://localhost:80/a#x", Some((Some("localhost:80/"), "a", "x"))),
            ("https://localhost/a", Some((Some("localhost/"), "a", ""))),
            ("localhost:80/a", Some((Some("localhost:80/"), "a", ""))),
            ("my_hub.acme.co/a", Some((Some("my_hub.acme.co/"), "a", ""))),
            ("https://_hub/a", Some((Some("_hub/"), "a", ""))),
            ("git+https://host/a", None),
            ("oci://host/a", None),
            ("../a", None),
            ("https://host/a.git", None),
            ("javascript:alert(1)", None),
            ("a b", None),
            ("a.b;rm/x", None),
            ("$(x):/y", None),
            ("", None),
        ] {
            let found = Target::parse(reference);
            let found = found.map(|target| (target.base, target.name, target.spec));
            assert_eq!(found, expected, "{reference}");
        }
    }

    #[test]
    fn one_segment_leads_beside_its_dependent_first() {
        let keys = |reference, own| Target::parse(reference).expect("is one").keys(own);
        assert_eq!(keys("tls", "acme/web"), ["acme/tls", "tls"]);
        assert_eq!(keys("tls", "web"), ["tls"]);
        assert_eq!(keys("x/tls", "acme/web"), ["x/tls"]);
        assert_eq!(keys("h.co/tls", "acme/web"), ["h.co/tls"]);
    }
}
