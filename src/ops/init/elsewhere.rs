//! What other tools list in a folder: which of their files are there, and what each of its dependencies would be for mu.
//!
//! The readers are in `mu-formats`; here are the files, the commits of submodules and of modules that Terraform has cloned. Nothing is
//! asked of anybody, and nothing is written.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use mu_formats::elsewhere::{FilesBeside, InUse, List};
#[cfg(feature = "git")]
use mu_formats::elsewhere::{ListedDependency, Meaning};
use mu_formats::elsewhere::{go, helmfile, jsonnet, project, terraform, vendir};
use mu_formats::{FormatError, HelmRepositoryAliases};
use mu_formats::{helm, kcl};
use mu_provider::{Folder, InnerPath};

use crate::env::Environment;
use crate::ops::{Code, CommandError};
use crate::{formats, fs};

/// A file of another tool, and what it lists.
#[derive(Debug, Clone)]
pub(super) struct ForeignList {
    /// The file, relative to its folder.
    pub(super) file: String,
    /// What it lists.
    pub(super) list: List,
    /// Something about the whole file that its reader should know.
    pub(super) note: Option<String>,
}

/// The tools whose files are read, each with the names of its files: the one that lists, then those beside it.
const TOOLS: [(Tool, &[&str]); 7] = [
    (Tool::Submodules, &[SUBMODULES]),
    (Tool::Vendir, &[vendir::VENDIR_FILE, vendir::VENDIR_LOCK]),
    (Tool::Jsonnet, &[jsonnet::JSONNET_FILE, jsonnet::JSONNET_LOCK]),
    (Tool::Terraform, &[]),
    (Tool::Helmfile, &helmfile::HELMFILES),
    (Tool::Project, &project::PROJECTS),
    (Tool::Manifest, &["Chart.lock", "requirements.lock", kcl::LOCK, helm::CHART, kcl::MODULE]),
];

const SUBMODULES: &str = ".gitmodules";

/// What a file belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    Submodules,
    Vendir,
    Jsonnet,
    Terraform,
    Helmfile,
    Project,
    /// Only if it is named: where there is Go code, its list is not about packages of mu.
    Go,
    /// The manifest of a package: it stays, and its lock counts by itself.
    Manifest,
}

/// The names of files in a folder from which `mu import` would take something over, as far as a look at them tells.
pub(super) fn importable_in(folder: &Path) -> Vec<String> {
    let mut names = files_in(folder);
    // This only looks: `mu init` says what `mu import` would read, and a file that cannot be read is left to that.
    names.retain(|name| {
        let uses_modules = |text: String| {
            let list = terraform::list(name, &text).unwrap_or_default();
            list.dependencies.iter().any(|one| one.meaning.is_ok())
        };
        // Most files of Terraform use no module of others.
        lists(name) != Some(Tool::Terraform)
            || text_in(folder, name).ok().flatten().is_some_and(uses_modules)
    });
    names
}

/// The names of files in a folder that `mu import` reads.
fn files_in(folder: &Path) -> Vec<String> {
    let entries = fs::entries_if_there(folder).unwrap_or_default().into_iter();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| lists(name).is_some()).collect();
    names.sort();
    names
}

/// The tool whose list of dependencies a file of this name is, except for manifests.
fn lists(name: &str) -> Option<Tool> {
    if terraform::is_listing(name) {
        return Some(Tool::Terraform);
    }
    let listing = TOOLS.iter().find(|(tool, names)| match tool {
        Tool::Helmfile | Tool::Project => names.contains(&name),
        Tool::Manifest => false,
        _ => names.first() == Some(&name),
    });
    listing.map(|(tool, _)| *tool)
}

/// The tool that a file of this name belongs to, whatever it is for it.
fn owner(name: &str) -> Option<Tool> {
    let named = TOOLS.iter().find(|(_, names)| names.contains(&name)).map(|(tool, _)| *tool);
    named.or_else(|| lists(name)).or(match name {
        helmfile::HELMFILE_LOCK => Some(Tool::Helmfile),
        "modules.json" => Some(Tool::Terraform),
        go::GO_FILE => Some(Tool::Go),
        _ => None,
    })
}

/// Reads what is listed in a folder of the workspace at `root`, or in the one file of it called `only`.
pub(super) fn read(
    environment: &Environment,
    root: &Path,
    folder: &Path,
    only: Option<&str>,
) -> Result<Vec<ForeignList>, CommandError> {
    let mut lists = Vec::new();
    // A file that somebody names is read alone, also one that is passed over otherwise, such as a `go.mod`.
    let wanted = match only {
        Some(name) => vec![named(folder, name)?],
        None => TOOLS.iter().map(|(tool, _)| (*tool, None)).collect(),
    };
    for (tool, file) in wanted {
        match tool {
            Tool::Submodules => lists.extend(submodules(environment, folder)?),
            Tool::Vendir => {
                let name = file.as_deref().filter(|name| *name != vendir::VENDIR_LOCK);
                let name = name.unwrap_or(vendir::VENDIR_FILE);
                let list = |text: &str, lock: Option<&str>| vendir::list(name, text, lock);
                lists.extend(with_lock(folder, name, vendir::VENDIR_LOCK, list)?);
            }
            Tool::Jsonnet => {
                lists.extend(with_lock(
                    folder,
                    jsonnet::JSONNET_FILE,
                    jsonnet::JSONNET_LOCK,
                    jsonnet::list,
                )?);
            }
            Tool::Terraform => lists.extend(modules(environment, folder, file.as_deref())?),
            Tool::Helmfile => lists.extend(releases(environment, root, folder, file.as_deref())?),
            Tool::Project => {
                let names = file.map_or_else(
                    || project::PROJECTS.map(str::to_owned).to_vec(),
                    |file| vec![file],
                );
                for file in names {
                    let Some(text) = text_in(folder, &file)? else { continue };
                    let list = project::list(&file, &text).map_err(|error| {
                        pointed_at(folder, &error, [(&*file, Some(&*text)), ("", None)])
                    })?;
                    lists.push(ForeignList { file, list, note: None });
                }
            }
            Tool::Go => {
                let Some(text) = text_in(folder, go::GO_FILE)? else { continue };
                let file = go::GO_FILE.to_owned();
                let list = go::list(&text).map_err(|error| {
                    pointed_at(folder, &error, [(&*file, Some(&*text)), ("", None)])
                })?;
                lists.push(ForeignList { file, list, note: None });
            }
            Tool::Manifest => {}
        }
    }
    Ok(lists)
}

/// What the file of a folder that the user named is, and which of several it is.
fn named(folder: &Path, name: &str) -> Result<(Tool, Option<String>), CommandError> {
    let file = Some(name.to_owned());
    match owner(name) {
        Some(Tool::Terraform) if !terraform::is_listing(name) => Ok((Tool::Terraform, None)),
        Some(Tool::Helmfile) if name == helmfile::HELMFILE_LOCK => Ok((Tool::Helmfile, None)),
        Some(tool) => Ok((tool, file)),
        // These files may have any name, and a helmfile names others.
        None => {
            let is_yaml = [".yaml", ".yml", ".gotmpl"].iter().any(|ending| name.ends_with(ending));
            let text = if is_yaml { text_in(folder, name)? } else { None };
            match text {
                Some(text) if vendir::looks_like_vendir(&text) => Ok((Tool::Vendir, file)),
                Some(text) if helmfile::looks_like_helmfile(&text) => Ok((Tool::Helmfile, file)),
                _ => {
                    let path = folder.join(name);
                    let message =
                        format!("`{}` is not a file that mu imports from", path.display());
                    Err(CommandError::new(Code::Usage, message).hint(KNOWN))
                }
            }
        }
    }
}

/// What a helmfile may name beside itself: files of its workspace, and repositories of the user's own Helm.
struct Beside<'p> {
    root: &'p Path,
    folder: &'p Path,
    aliases: HelmRepositoryAliases,
}

impl Beside<'_> {
    /// The folder of the workspace that a path leads to with its first steps, and the rest of the path.
    fn place<'t>(&self, mut path: &'t str) -> Option<(&Path, &'t str)> {
        let mut at = self.folder;
        while let Some((step @ ("." | ".."), inner)) = path.split_once('/') {
            at = if step == ".." { at.parent()? } else { at };
            path = inner;
        }
        (at == self.folder || at.starts_with(self.root)).then_some((at, path))
    }
}

impl FilesBeside for Beside<'_> {
    fn text(&self, path: &str) -> Option<String> {
        let (folder, inner) = self.place(path)?;
        text_in(folder, inner).ok().flatten()
    }

    fn has_folder(&self, path: &str) -> bool {
        InnerPath::parse(path).is_ok() && self.folder.join(path).is_dir()
    }

    fn repository(&self, name: &str, chart: &str) -> Option<String> {
        self.aliases.repository_url(name, chart).map(Cow::into_owned)
    }
}

/// What is read, for hints.
pub(super) const KNOWN: &str = "it reads .gitmodules, vendir.yml, jsonnetfile.json, the modules of *.tf and *.tofu, helmfile.yaml, crossplane-project.yaml, upbound.yaml, and the locks beside Chart.yaml and kcl.mod; and go.mod, if it is named";

/// The text of a file of a folder, if it is there. A link is not followed: errors show lines of what is read, and a checkout could
/// have one to what is nobody else's business.
fn text_in(folder: &Path, name: &str) -> Result<Option<String>, CommandError> {
    let inner = InnerPath::parse(name).map_err(|_| {
        CommandError::new(
            Code::Usage,
            format!("`{name}` is not the name of a file that mu can read"),
        )
    })?;
    Ok(Folder::at(folder)?.read_text(&inner)?)
}

/// An error of a reader, in the file that it read.
fn pointed_at(
    folder: &Path,
    error: &FormatError,
    texts: [(&str, Option<&str>); 2],
) -> CommandError {
    let text = texts.iter().find(|(name, _)| *name == error.file).and_then(|(_, text)| *text);
    let error =
        CommandError::from(error.in_text(&folder.join(&error.file), text.unwrap_or_default()));
    error.hint("nothing was changed: mend the file, or name another one")
}

fn with_lock(
    folder: &Path,
    file: &str,
    lock: &str,
    list: impl Fn(&str, Option<&str>) -> Result<List, FormatError>,
) -> Result<Option<ForeignList>, CommandError> {
    let Some(text) = text_in(folder, file)? else { return Ok(None) };
    let locked = text_in(folder, lock)?;
    let found = list(&text, locked.as_deref()).map_err(|error| {
        pointed_at(folder, &error, [(file, Some(text.as_str())), (lock, locked.as_deref())])
    })?;
    let note = locked.is_none().then(|| {
        format!("there is no {lock}, so that nothing says which versions are in use: the newest that fit are taken")
    });
    Ok(Some(ForeignList { file: file.to_owned(), list: found, note }))
}

fn releases(
    environment: &Environment,
    root: &Path,
    folder: &Path,
    file: Option<&str>,
) -> Result<Option<ForeignList>, CommandError> {
    // helmfile takes the first of its names that is there, and so does this.
    let names = file.map_or_else(|| helmfile::HELMFILES.to_vec(), |file| vec![file]);
    for name in names {
        let Some(text) = text_in(folder, name)? else { continue };
        let lock = helmfile::lock_of(name);
        let locked = text_in(folder, &lock)?;
        let beside = Beside { root, folder, aliases: formats::helms_aliases(environment) };
        let (list, is_template) =
            helmfile::list(name, &text, locked.as_deref(), &beside).map_err(|error| {
                let texts = [(name, Some(text.as_str())), (lock.as_str(), locked.as_deref())];
                pointed_at(folder, &error, texts).hint("helmfile itself prints it without templates, and what it prints can be imported as a file")
            })?;
        let note = is_template.then(|| {
            "it is a template, so every release in it counts, whatever its conditions say"
                .to_owned()
        });
        return Ok(Some(ForeignList { file: name.to_owned(), list, note }));
    }
    Ok(None)
}

fn modules(
    environment: &Environment,
    folder: &Path,
    file: Option<&str>,
) -> Result<Vec<ForeignList>, CommandError> {
    let mut names = files_in(folder);
    names.retain(|name| {
        lists(name) == Some(Tool::Terraform) && file.is_none_or(|file| file == name)
    });
    let mut lists = Vec::new();
    for name in names.clone() {
        let Some(text) = text_in(folder, &name)? else { continue };
        let list = terraform::list(&name, &text)
            .map_err(|error| pointed_at(folder, &error, [(&*name, Some(&*text)), ("", None)]))?;
        let instead = terraform::instead_of(&name).filter(|_| file.is_none());
        if let Some(instead) = instead.filter(|instead| names.contains(instead)) {
            // Which of the two is in use, nothing says here.
            let uses_modules = !list.dependencies.is_empty();
            let note = format!(
                "OpenTofu reads {instead} in its place, and so does mu: `mu import {name}` reads it"
            );
            let list = List::default();
            lists.extend(uses_modules.then_some(ForeignList {
                file: name,
                list,
                note: Some(note),
            }));
            continue;
        }
        if !list.dependencies.is_empty() {
            lists.push(ForeignList { file: name, list, note: None });
        }
    }
    let mut all: Vec<_> = lists.iter_mut().map(|one| (&*one.file, &mut one.list)).collect();
    terraform::merge(&mut all);
    if lists.is_empty() {
        return Ok(lists);
    }
    let Some(text) = text_in(folder, terraform::MODULES)? else {
        // It is the same for all of them, and said once.
        let note = "there is no .terraform/modules/modules.json, so that nothing says which commits are in use: `terraform init` writes it";
        let first = lists.iter_mut().find(|one| one.note.is_none());
        first.into_iter().for_each(|one| one.note = Some(note.to_owned()));
        return Ok(lists);
    };
    let (installed, _) = terraform::installed(&text).map_err(|error| {
        pointed_at(folder, &error, [(terraform::MODULES, Some(&*text)), ("", None)])
    })?;
    // One block is one module, and its checkout says the commit, whatever its `source` says. A block that was added since the last
    // `terraform init` has none.
    let commits = commits_of(environment, folder, &installed)?;
    for (module, commit) in installed.iter().zip(&commits) {
        let all = lists.iter_mut().flat_map(|one| &mut one.list.dependencies);
        for dependency in all.filter(|dependency| dependency.called == module.name) {
            if let (Ok(meaning), Some(commit)) = (&mut dependency.meaning, commit) {
                meaning.in_use = Some(InUse::Commit(commit.clone()));
            }
        }
    }
    let listed = lists.iter().flat_map(|one| &one.list.dependencies);
    let listed: Vec<_> = listed
        .filter_map(|one| Some((one.called.clone(), one.meaning.as_ref().ok()?.clone())))
        .collect();
    let dependencies = terraform::inner_modules(&installed, &commits, &listed);
    if !dependencies.is_empty() {
        let list = List { dependencies, unknown: Vec::new() };
        lists.push(ForeignList { file: terraform::MODULES.to_owned(), list, note: None });
    }
    Ok(lists)
}

/// The commit that is in use of each module.
fn commits_of(
    environment: &Environment,
    folder: &Path,
    installed: &[terraform::InstalledModule],
) -> Result<Vec<Option<String>>, CommandError> {
    let mut commits = Vec::new();
    // Of several modules with the same source, Terraform downloads one, and copies its files without `.git`. So their commit is the one
    // that a checkout of the same has, unless two such checkouts differ, which come from different days.
    let mut checkouts: BTreeMap<(&str, &str), BTreeSet<String>> = BTreeMap::new();
    let is_download = |module: &terraform::InstalledModule| {
        module.download().is_some_and(|(download, _)| download == module.name)
    };
    for module in installed {
        let commit = commit_in(environment, folder, &module.folder)?;
        if let Some(commit) = commit.clone().filter(|_| is_download(module)) {
            checkouts.entry(module.package()).or_default().insert(commit);
        }
        commits.push(commit);
    }
    for (module, commit) in installed.iter().zip(&mut commits) {
        let same = checkouts.get(&module.package()).filter(|same| same.len() == 1);
        if commit.is_none() && is_download(module) {
            *commit = same.and_then(|same| same.first().cloned());
        }
    }
    Ok(commits)
}

/// Where Terraform puts modules, each into a folder of its own.
#[cfg(feature = "git")]
const PUT_INTO: &str = ".terraform/modules";

/// The commit that is checked out around a folder in which Terraform finds a module.
fn commit_in(
    environment: &Environment,
    folder: &Path,
    inner: &str,
) -> Result<Option<String>, CommandError> {
    #[cfg(feature = "git")]
    if InnerPath::parse(inner).is_ok() {
        let git = crate::workspace::root::local_git(environment);
        // The module may be a folder of its repository. What is around all of them is no checkout of a module.
        let above = Path::new(inner).ancestors();
        let inside = above.take_while(|at| at.starts_with(PUT_INTO) && *at != Path::new(PUT_INTO));
        for at in inside {
            let commit = git.commit_of(&folder.join(at));
            if let Some(commit) = commit.map_err(crate::ops::session::edits::unreadable)? {
                return Ok(Some(commit.to_string()));
            }
        }
    }
    let _ = (environment, folder, inner);
    Ok(None)
}

#[cfg(feature = "git")]
fn submodules(
    environment: &Environment,
    folder: &Path,
) -> Result<Option<ForeignList>, CommandError> {
    let git = crate::workspace::root::local_git(environment);
    let found = git.submodules(folder).map_err(crate::ops::session::edits::unreadable)?;
    let Some(found) = found else { return Ok(None) };
    let dependencies = found.all.into_iter().map(|one| {
        let meaning = one.url.and_then(|url| {
            let commit = one.commit.map(|commit| commit.to_string());
            // Git itself never looks for another commit, unless a branch says where.
            // With a branch, the commit is what is in use of it, and `mu update` follows the branch as `git submodule update --remote` does.
            let meaning = match &one.branch {
                Some(branch) => Meaning::of_git_name(&url, "", branch)?.at_branch(),
                None => Meaning::of_git(&url, "", commit.as_deref())?,
            };
            match commit {
                Some(commit) => Ok(Meaning { in_use: Some(InUse::Commit(commit)), ..meaning }),
                None => Err("Git's index has no commit for it: it was never added".to_owned()),
            }
        });
        ListedDependency { called: one.path, line: one.line, meaning }
    });
    let list = List { dependencies: dependencies.collect(), unknown: found.unknown };
    Ok(Some(ForeignList { file: SUBMODULES.to_owned(), list, note: None }))
}

#[cfg(not(feature = "git"))]
fn submodules(
    _environment: &Environment,
    _folder: &Path,
) -> Result<Option<ForeignList>, CommandError> {
    Ok(None)
}
