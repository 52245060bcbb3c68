//! The modules that Terraform's and OpenTofu's files use, and `.terraform/modules/modules.json`, which says where each was put.
//!
//! Only modules in Git repositories and archives are packages of mu. One of a registry is at an address that only the registry knows.

mod hcl;

use std::path::Path;

use mu_manifest::reference::pasted;
use mu_manifest::source::line_at_offset;
use percent_encoding::percent_decode_str;

use self::hcl::Value;
use super::{InUse, List, ListedDependency, Meaning, line_of, read, shortest};
use crate::node::{Fault, FormatError, Kind, Node};
use crate::shape::Shape::{self, List as Items, Map, Open, Text, Unused};

/// The endings of the files: of Terraform's, then of those that only OpenTofu reads.
const ENDINGS: [&str; 4] = [".tf", ".tf.json", ".tofu", ".tofu.json"];

/// Whether a file of this name can use modules. Hidden files, and those of editors, are none for Terraform.
pub fn is_listing(name: &str) -> bool {
    !name.starts_with(['.', '#']) && parts_of(name).is_some()
}

/// The name of a file without its ending, and which one that is.
fn parts_of(name: &str) -> Option<(&str, usize)> {
    let mut endings = ENDINGS.iter().enumerate();
    endings.find_map(|(at, ending)| Some((name.strip_suffix(ending)?, at)))
}

/// Whether what a file of this name says counts before what other files say of the same blocks.
pub fn is_override(name: &str) -> bool {
    parts_of(name).is_some_and(|(stem, _)| stem == "override" || stem.ends_with("_override"))
}

/// The file that OpenTofu reads in place of this one, where it is there.
pub fn instead_of(name: &str) -> Option<String> {
    let (stem, ending) = parts_of(name)?;
    Some(format!("{stem}{}", ENDINGS.get(ending + 2)?))
}

/// Lets the blocks of files that count before others take the place of those, as Terraform merges them: `lists` has the names of the files
/// and what each lists, in the order in which it reads them.
pub fn merge(lists: &mut [(&str, &mut List)]) {
    let (mut main, overrides): (Vec<_>, Vec<_>) =
        lists.iter_mut().partition(|(name, _)| !is_override(name));
    for one in overrides {
        let (name, list) = &mut *one;
        // One without a `source` changes something else of its block.
        list.dependencies.retain(|one| one.meaning.as_ref().err().is_none_or(|why| why != WITHOUT));
        for one in &list.dependencies {
            let same = main.iter_mut().flat_map(|(_, list)| &mut list.dependencies);
            for other in same.filter(|other| other.called == one.called) {
                let why = format!("{name}:{} has another `source` for it, which counts", one.line);
                other.meaning = Err(why);
            }
        }
        main.push(one);
    }
}

/// Where Terraform says what it put where.
pub const MODULES: &str = ".terraform/modules/modules.json";

/// Where Terraform puts what it downloads, each into a folder of its own.
const DOWNLOADS: &str = ".terraform/modules/";

/// What is read of `modules.json`.
pub(crate) static MODULES_KEYS: Shape = Map(&[(
    "Modules",
    Items(&Map(&[
        ("Key", Text),
        ("Source", Text),
        ("Version", Text),
        ("Dir", Text),
        ("Root", Unused),
    ])),
)]);

/// A module that Terraform has put into a folder, or has found in one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledModule {
    /// The name of its block, after those of the blocks that lead to it: `cluster.network`.
    pub name: String,
    /// Its source, as Terraform writes it.
    pub source: String,
    /// The folder, relative to that of the files.
    pub folder: String,
    /// Its line.
    pub line: usize,
}

impl InstalledModule {
    /// The module whose block names this one; `None` if the files themselves do.
    pub fn parent(&self) -> Option<&str> {
        self.name.rsplit_once('.').map(|(parent, _)| parent)
    }

    /// The name of the module that was downloaded for this one, and the folder in that download; `None` if the module is a folder of
    /// the user's own repository. Terraform calls each download by the module that it came for.
    pub fn download(&self) -> Option<(&str, &str)> {
        let inner = self.folder.strip_prefix(DOWNLOADS)?;
        Some(inner.split_once('/').unwrap_or((inner, "")))
    }

    /// What Terraform downloads for its source: for two modules with the same, it does so once, and copies the files without `.git`.
    pub fn package(&self) -> (&str, &str) {
        let (place, query) = self.source.split_once('?').unwrap_or((&self.source, ""));
        let authority = place.find("://").map_or(0, |colon| colon + "://".len());
        let folder = place[authority..].find("//").map_or(place.len(), |at| authority + at);
        // Both are left out where Terraform knows the host.
        let place = &place[..folder];
        let place = place.strip_prefix("git::").unwrap_or(place);
        (place.strip_prefix("https://").unwrap_or(place), query)
    }
}

/// What modules themselves use, as far as somebody has to know of it once packages take the place of downloads. `listed` is what the
/// files' own blocks are, by their names, and `commits` what is checked out for each module.
///
/// Terraform downloads a whole repository for each module, and a package is one folder of it. So where a module names a folder beside
/// its own, such as `../labels`, that becomes a package, too, and lies beside it again. What the user's own modules name is like what
/// the files name. What others name in the end, Terraform downloads for them as before, wherever they lie.
pub fn inner_modules(
    installed: &[InstalledModule],
    commits: &[Option<String>],
    listed: &[(String, Meaning)],
) -> Vec<ListedDependency> {
    let named = |name: &str| installed.iter().find(|module| module.name == name);
    let mut all: Vec<(&InstalledModule, Option<&String>)> =
        installed.iter().zip(commits.iter().map(Option::as_ref)).collect();
    // Those that name others come before what they name.
    all.sort_by_key(|(module, _)| (module.name.matches('.').count(), &module.name));
    let mut found = Vec::new();
    // The downloads that are packages: the module that each came for, what it is for mu, and the folders of it that are there.
    let mut packages: Vec<(&InstalledModule, Meaning, Vec<&str>)> = Vec::new();
    for (module, commit) in all {
        let Some((download, folder)) = module.download() else { continue };
        let in_use = commit.cloned().map(InUse::Commit);
        let meaning = match module.parent() {
            None => match listed.iter().find(|(name, _)| *name == module.name) {
                Some((_, meaning)) if download == module.name => {
                    packages.push((module, meaning.clone(), vec![folder]));
                    continue;
                }
                _ => continue,
            },
            Some(parent) if download == module.name => {
                let is_own = named(parent).is_none_or(|parent| parent.download().is_none());
                let meaning = match is_own {
                    true => of_source(&module.source).map(|meaning| meaning.at(in_use)),
                    false => {
                        Err(format!("`{parent}` uses it, and Terraform downloads it for that"))
                    }
                };
                if let Ok(meaning) = &meaning {
                    packages.push((module, meaning.clone(), vec![folder]));
                }
                meaning
            }
            // It lies in what was downloaded for another one. If that is no package, it lies there as before.
            Some(_) => {
                let package = packages.iter_mut().find(|(owner, ..)| owner.name == download);
                let Some((owner, meaning, folders)) = package else { continue };
                let is_there = |at: &&str| Path::new(folder).starts_with(at);
                if folders.iter().any(is_there) {
                    continue;
                }
                folders.push(folder);
                let own = owner.download().map_or("", |(_, folder)| folder);
                let in_use = in_use.or_else(|| meaning.in_use.clone());
                // Without a `ref`, it is the tip. One in which the folder stands is of that folder alone.
                let written = meaning.reference.version_text().unwrap_or_default();
                let mut settings = owner.package().1.split('&');
                let name = written.strip_prefix("refs/tags/").unwrap_or(written);
                let is_of_folder = Path::new(name).starts_with(own) && !own.is_empty();
                let is_of_repository = written == "tip"
                    || !is_of_folder
                        && settings.any(|setting| setting.strip_prefix("ref=") == Some(name));
                meaning.beside(own, folder, in_use, is_of_repository)
            }
        };
        found.push(ListedDependency { called: module.name.clone(), line: module.line, meaning });
    }
    found
}

/// The modules in `text`, that of `modules.json`.
///
/// # Errors
///
/// When it is not JSON.
pub fn installed(text: &str) -> Result<(Vec<InstalledModule>, Vec<String>), FormatError> {
    read(MODULES, text, &MODULES_KEYS, |root| {
        let mut all = Vec::new();
        for module in root.list("Modules")? {
            let word = |key: &str| -> Result<String, Fault> {
                Ok(module.text(key)?.map_or_else(String::new, |(text, _)| text.to_owned()))
            };
            let (name, source, folder) = (word("Key")?, word("Source")?, word("Dir")?);
            let line = line_of(text, module);
            // The first one is the folder itself.
            if !name.is_empty() && !folder.is_empty() {
                all.push(InstalledModule { name, source, folder, line });
            }
        }
        Ok(all)
    })
}

/// What is read of a file whose blocks are JSON.
pub(crate) static JSON_KEYS: Shape = Open(&[("module", Shape::All)]);

/// The modules that `text`, that of `file`, uses.
///
/// # Errors
///
/// When it is not HCL, or JSON where the file is called so.
pub fn list(file: &str, text: &str) -> Result<List, FormatError> {
    if file.ends_with(".json") {
        let (dependencies, unknown) = read(file, text, &JSON_KEYS, |root| {
            let mut found = Vec::new();
            for (name, body) in root.written("module").into_iter().flat_map(entries) {
                // Each body is a block; something else than a body is a comment.
                let bodies = match &body.kind {
                    Kind::List(bodies) => bodies,
                    _ => std::slice::from_ref(body),
                };
                for body in bodies.iter().filter(|body| body.is_map()) {
                    let source = body.text("source")?.map(|(text, _)| match text.contains("${") {
                        true => Value::Expression,
                        false => Value::Text(text.to_owned()),
                    });
                    found.push(ListedDependency {
                        called: name.to_owned(),
                        line: line_of(text, body),
                        meaning: meaning(source.as_ref()),
                    });
                }
            }
            Ok(found)
        })?;
        return Ok(List { dependencies, unknown });
    }
    let found = hcl::blocks(text).map_err(|fault| FormatError::new(file, text, fault))?;
    let modules = found.iter().filter(|block| block.kind == "module");
    let dependencies = modules.map(|block| ListedDependency {
        called: block.labels.join(" "),
        line: line_at_offset(text, block.start),
        meaning: meaning(block.attribute("source")),
    });
    Ok(List { dependencies: dependencies.collect(), unknown: Vec::new() })
}

/// Beginnings of sources that mu has no provider for.
const UNSERVED: [&str; 4] = ["s3::", "gcs::", "hg::", "file::"];

/// The endings of archives that are packages.
const ARCHIVES: [&str; 4] = [".tgz", ".tar.gz", ".tar", ".zip"];

/// The endings of archives that Terraform unpacks, and mu does not.
const OTHER_ARCHIVES: [&str; 4] = [".tar.bz2", ".tbz2", ".tar.xz", ".txz"];

/// Hosts whose repositories Terraform knows without `git::`.
const REPOSITORY_HOSTS: [&str; 2] = ["github.com/", "bitbucket.org/"];

/// The entries of a map, or of the maps in a list, which are one.
fn entries<'n, 't>(node: &'n Node<'t>) -> Vec<(&'n str, &'n Node<'t>)> {
    let maps = match &node.kind {
        Kind::List(maps) => maps,
        _ => std::slice::from_ref(node),
    };
    let entries = maps.iter().filter_map(|map| match &map.kind {
        Kind::Map(entries, _) => Some(entries.iter()),
        _ => None,
    });
    entries.flatten().map(|entry| (&*entry.key, &entry.value)).collect()
}

fn meaning(source: Option<&Value>) -> Result<Meaning, String> {
    match source {
        Some(Value::Text(source)) => of_source(source),
        Some(Value::Expression) => Err("its `source` is an expression".to_owned()),
        None => Err(WITHOUT.to_owned()),
    }
}

/// Why a block without a source is nothing.
const WITHOUT: &str = "it has no `source`";

/// What a `source` is for mu.
///
/// # Errors
///
/// When it is no package: the reason.
pub fn of_source(source: &str) -> Result<Meaning, String> {
    let source = source.trim();
    // People write so to download a repository once for many of its folders.
    if let Some(inner) = source.strip_prefix("./").and_then(|path| path.strip_prefix(DOWNLOADS)) {
        let module = inner.split('/').next().unwrap_or_default();
        return Err(format!(
            "it is a folder of what Terraform downloads for the module `{module}`: name that of its package, below `.mu/packs`, in its `source`"
        ));
    }
    if ["./", "../", ".\\", "..\\"].iter().any(|start| source.starts_with(start)) {
        return Err("it is a folder of this repository, so there is nothing to fetch".to_owned());
    }
    if Path::new(source).is_absolute() {
        return Err("it is a folder of this machine, so there is nothing to fetch".to_owned());
    }
    if let Some(scheme) = UNSERVED.iter().find(|scheme| source.starts_with(**scheme)) {
        return Err(format!("mu has no provider for `{scheme}`"));
    }
    let plain = source.strip_prefix("git::").unwrap_or(source);
    let is_repository = plain.len() < source.len()
        || plain.starts_with("git@")
        || plain.starts_with("ssh://")
        || plain.starts_with("git://")
        || REPOSITORY_HOSTS.iter().any(|host| plain.starts_with(host));
    if is_repository {
        return of_repository(plain);
    }
    if let Some((scheme, path)) = plain.split_once("://") {
        return of_address(plain, scheme, path);
    }
    let host = plain.split('/').next().unwrap_or_default();
    let store = STORES.iter().find(|(ending, _)| host.ends_with(ending));
    Err(match store {
        Some((_, scheme)) => format!("mu has no provider for `{scheme}`"),
        None => of_registry(plain),
    })
}

/// Hosts whose addresses Terraform knows without a scheme, and which it means.
const STORES: [(&str, &str); 2] = [(".amazonaws.com", "s3::"), ("www.googleapis.com", "gcs::")];

/// What a source with a scheme is.
fn of_address(source: &str, scheme: &str, path: &str) -> Result<Meaning, String> {
    let (place, query) = source.split_once('?').unwrap_or((source, ""));
    if scheme == "oci" {
        return Err("it is a module that OpenTofu has in an OCI registry, which mu does not read"
            .to_owned());
    }
    let is_archive = |place: &str| ARCHIVES.iter().any(|ending| place.ends_with(ending));
    let whole = path.split('?').next().unwrap_or_default().split("//").next().unwrap_or_default();
    if let Some(ending) = OTHER_ARCHIVES.iter().find(|ending| whole.ends_with(**ending)) {
        return Err(format!("mu does not unpack archives of the kind `{ending}`"));
    }
    if !["https", "http"].contains(&scheme) || !is_archive(whole) {
        return Err("an address that leads on to another one is only known to Terraform".to_owned());
    }
    if path.contains("//") && !is_archive(place) {
        return Err("it is a folder of an archive, and an archive is one package".to_owned());
    }
    let is_checked = query.split('&').any(|setting| setting.starts_with("checksum="));
    Ok(Meaning::parse(place)?.without(is_checked.then_some("checksum")))
}

/// A source in a Git repository, as a reference.
fn of_repository(source: &str) -> Result<Meaning, String> {
    // The hosts that Terraform knows need no scheme.
    let is_short = REPOSITORY_HOSTS.iter().any(|host| source.starts_with(host));
    let source = if is_short { format!("https://{source}") } else { source.to_owned() };
    let (source, name) = plain_address(&source)?;
    let path = source.split_once("://").map_or(&*source, |(_, path)| path);
    let text = match path.contains("//") || path.contains('?') {
        true => match pasted::meant(&source) {
            Some(text) => text,
            None => {
                let place = source.split('?').next().unwrap_or_default();
                // What is wrong with it is most often wrong without the rest, too.
                Meaning::parse(&shortest(place))?;
                return Err("mu has no reference for its `source`".to_owned());
            }
        },
        false => source,
    };
    // Without a version, it is the tip of the default branch, and not the newest version.
    let (place, version) = text.split_once('#').unwrap_or((&text, "tip"));
    let meaning = Meaning::parse(&format!("{}#{version}", shortest(place)))?;
    Ok(match name {
        Some(name) => meaning.at_name(&name),
        None => meaning,
    })
}

/// A source with the folder in its repository, and the `ref` behind it, also alone, as Terraform takes them: a path can be written in
/// several ways, and a query is encoded.
fn plain_address(source: &str) -> Result<(String, Option<String>), String> {
    let (place, query) = source.split_once('?').unwrap_or((source, ""));
    let authority = place.find("://").map_or(0, |colon| colon + "://".len());
    let mut plain = place.to_owned();
    if let Some(at) = place[authority..].find("//").map(|at| authority + at) {
        let mut folder = Vec::new();
        for segment in place[at..].split('/') {
            match segment {
                "" | "." => {}
                ".." if folder.pop().is_none() => {
                    return Err("its folder is outside of its repository".to_owned());
                }
                ".." => {}
                other => folder.push(other),
            }
        }
        plain.truncate(at);
        plain.extend(folder.first().map(|_| "//"));
        plain.push_str(&folder.join("/"));
    }
    let query = query.split('#').next().unwrap_or_default();
    let reference = query.split('&').find_map(|setting| setting.strip_prefix("ref="));
    let reference = reference.map(|text| percent_decode_str(text).decode_utf8_lossy().into_owned());
    let reference = reference.filter(|reference| !reference.is_empty());
    if let Some(reference) = &reference {
        if reference.contains(['#', '?', '&']) {
            return Err("mu has no reference for its `source`".to_owned());
        }
        plain.push_str("?ref=");
        plain.push_str(reference);
    }
    Ok((plain, reference))
}

/// Why a module of a registry is no package, and where its repository probably is.
fn of_registry(source: &str) -> String {
    let place = source.split("//").next().unwrap_or_default();
    let place = place.strip_prefix("registry.terraform.io/").unwrap_or(place);
    let segments: Vec<&str> = place.split('/').collect();
    let reason = "only its registry knows where it is";
    match segments[..] {
        // The public registry takes only repositories with such names.
        [namespace, name, provider] if !namespace.contains('.') => format!(
            "{reason}; its repository is probably `https://github.com/{namespace}/terraform-{provider}-{name}`"
        ),
        _ => reason.to_owned(),
    }
}
