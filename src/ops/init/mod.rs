//! `init`: creates a package, or a workspace; and `import`, which takes over what another tool lists.

mod elsewhere;
pub mod import;

use std::path::{Path, PathBuf};

use crate::env::Environment;
use crate::manifest::{Manifest, YAML_NAME, quoted};
use crate::ops::apply::kinds;
use crate::ops::session::error::quoted_for_shell;
use crate::ops::{Code, CommandError, Warning};
use crate::reference::{Base, Name, Reference};
use crate::workspace::{MU_FOLDER, WORKSPACE_FILE, Workspace, find_root, formats_below};
use crate::{formats, fs};

/// Reads a package's name. One that cannot be a reference is called a wrong name, not a wrong reference.
fn package_name(text: &str) -> Result<Reference, CommandError> {
    let base = text.split_once('/').filter(|(base, _)| base.contains(['.', ':']));
    match Name::parse(base.map_or(text, |(_, name)| name)) {
        Ok(_) => Ok(Reference::parse(text)?),
        // A reference that says too much, and what may have a password in it.
        Err(_) if text.contains(':') || Reference::parse(text).is_ok() => Ok(Reference::parse(text)?),
        Err(error) => Err(CommandError::from(error)
            .hint("a name has letters, digits, `_`, `-` and `.`, and parts between `/`, such as `acme/web`")),
    }
}

/// What to create.
#[derive(Debug, Clone, Default)]
pub struct InitRequest {
    /// The package's name; `None` takes the folder's place in its workspace, or else the folder's name.
    pub name: Option<String>,
    /// Whether to create a workspace, and no package (unless a name is given too).
    pub workspace: bool,
    /// The workspace's namespace.
    pub namespace: Option<String>,
}

/// What was created.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Begun {
    /// The files that were written.
    pub files: Vec<PathBuf>,
    /// Whether a package is among them.
    pub is_package: bool,
    /// A warning about the package's name.
    pub warning: Option<Warning>,
    /// Files of other tools in the folder, whose dependencies `mu import` takes over.
    pub importable: Vec<String>,
    /// The manifest that makes the folder a package already, so that nothing was written.
    pub already: Option<PathBuf>,
    /// What the settings of the workspace lack, so that it counts as one of its packages.
    pub lacks: Option<String>,
}

/// The schemas that editors check the files with, in the folder `.mu` of the workspace.
const MANIFEST_SCHEMA: &str = "manifest.schema.json";
const WORKSPACE_SCHEMA: &str = "workspace.schema.json";

/// What Git should ignore.
const IGNORED: &str = "\
# Archives that `mu pack` creates. Installed packages are left out by .mu/packs/.gitignore.
/*.tgz
";

/// Creates a package or a workspace in the current folder.
pub fn init(environment: &Environment, request: &InitRequest) -> Result<Begun, CommandError> {
    let Environment { current: folder, home, mu_home, users, .. } = environment;
    let mut begun = Begun::default();
    let (mut files, mut schemas) = (Vec::new(), Vec::new());
    // Inside of a workspace, the schemas and `.gitignore` of its root are enough.
    let around = find_root(folder, home, mu_home);
    let is_inside = !request.workspace && around.join(MU_FOLDER).is_dir();
    let root = if is_inside { &around } else { folder };
    // Nothing is written through the links of a workspace that mu refuses.
    Workspace::check_root(root, mu_home, users)?;
    if request.workspace || request.namespace.is_some() {
        let path = folder.join(MU_FOLDER).join(WORKSPACE_FILE);
        if path.exists() {
            return Err(exists(&path));
        }
        let mut text = format!(
            "# yaml-language-server: $schema=./{WORKSPACE_SCHEMA}\n\
             # A mu workspace. Every key is optional; `mu schema workspace` lists them all.\n"
        );
        schemas.push((WORKSPACE_SCHEMA, crate::workspace::schema()));
        if let Some(namespace) = &request.namespace {
            check_namespace(namespace)?;
            text.push_str(&format!("namespace: {}\n", plain(namespace)));
        }
        let formats = formats_below(folder, [mu_home, &environment.cache]);
        if !formats.is_empty() {
            text.push_str(&format!(
                "# What other tools have below this folder is the workspace's own.\nformats: [{}]\n",
                formats.join(", ")
            ));
        }
        files.push((path, text));
    }
    if !request.workspace || request.name.is_some() {
        if let Some(path) = Manifest::locate(folder)? {
            return Err(exists(&path));
        }
        let theirs = formats::locate_manifest(folder)?.filter(|_| request.name.is_none());
        if let Some(path) = theirs {
            return is_package(environment, (root, is_inside), path);
        }
        let name = match &request.name {
            Some(name) => name.clone(),
            None => match place_name(environment) {
                Some(name) => name,
                None => folder_name(environment)?,
            },
        };
        let reference = package_name(&name)?;
        if reference.version().is_some()
            || reference.local().is_some()
            || reference.protocol().is_some()
        {
            return Err(CommandError::new(
                Code::Usage,
                format!(
                    "`{name}` is not a valid package name: a name has no protocol and no version"
                ),
            )
            .hint("names are like `acme/web`, or `hub.acme.example/web`"));
        }
        begun.is_package = true;
        begun.warning = misplaced(environment, &name);
        schemas.push((MANIFEST_SCHEMA, crate::manifest::schema()));
        let above = folder.strip_prefix(root).map_or(0, |place| place.components().count());
        let text = format!(
            "# yaml-language-server: $schema={}{MU_FOLDER}/{MANIFEST_SCHEMA}\n\
             name: {}\nversion: 0.1.0\n# description: What this package is, in a sentence\ndependencies: []\n",
            if above == 0 { "./".to_owned() } else { "../".repeat(above) },
            plain(&name)
        );
        files.push((folder.join(YAML_NAME), text));
    }
    for (name, schema) in schemas {
        let path = root.join(MU_FOLDER).join(name);
        if !path.exists() {
            files.push((path, format!("{schema:#}\n")));
        }
    }
    // Also a link that leads nowhere is somebody's, and stays.
    let ignored = root.join(".gitignore");
    if !is_inside && fs::symlink_metadata(&ignored).is_err() {
        files.push((ignored, IGNORED.to_owned()));
    }
    // Nothing was written so far, so an error above leaves the folder as it was.
    for (path, text) in &files {
        fs::write_atomic(path, text.as_bytes())?;
    }
    begun.files = files.into_iter().map(|(path, _)| path).collect();
    begun.files.extend(kinds::add(root)?);
    begun.importable = elsewhere::importable_in(folder);
    Ok(begun)
}

/// A warning if references to a package do not point to the current folder.
fn misplaced(environment: &Environment, name: &str) -> Option<Warning> {
    let called = place_name(environment).filter(|called| called != name)?;
    let (namespace, place) = place(environment)?;
    let parent = name.strip_suffix(&place).and_then(|parent| parent.strip_suffix('/'));
    let parent = parent.filter(|_| namespace.is_none()).map(str::to_owned);
    Some(Warning::OtherNameByPlace { name: name.to_owned(), called, parent })
}

fn exists(path: &std::path::Path) -> CommandError {
    CommandError::new(Code::Conflict, format!("`{}` is already there", path.display()))
        .hint("nothing was changed; edit the file, or use another folder")
}

/// The manifest of another ecosystem makes the folder a package, and a `Mu.yaml` would take its place: there is nothing to write.
fn is_package(
    environment: &Environment,
    (root, is_inside): (&Path, bool),
    path: PathBuf,
) -> Result<Begun, CommandError> {
    let Environment { current: folder, mu_home, .. } = environment;
    // One that cannot be read is none, and its own error says why.
    formats::load_package_head(folder)?;
    let format = formats::format_of_manifest(&path);
    // The package in the root counts always, and those below it if the settings say so.
    let lacks = match format.filter(|_| is_inside && root != folder) {
        Some(format) => {
            let mut all = Workspace::open_without_members(root, mu_home)?.settings.formats;
            let is_counted = all.contains(&format.name);
            all.push(format.name);
            let list = quoted_for_shell(&format!("[{}]", all.join(", ")));
            (!is_counted).then(|| format!("mu config set formats {list}"))
        }
        None => None,
    };
    let importable = elsewhere::importable_in(folder);
    Ok(Begun { already: Some(path), lacks, importable, ..Begun::default() })
}

/// A namespace is a name, or base and name.
fn check_namespace(text: &str) -> Result<(), CommandError> {
    let (base, name) = match text.split_once('/') {
        Some((host, name)) if host.contains(['.', ':']) => (Some(host), name),
        _ => (None, text),
    };
    if let Some(host) = base {
        Base::parse(&format!("{host}/"))?;
    }
    Name::parse(name.trim_end_matches('/'))?;
    Ok(())
}

/// The name of references that point to the current folder, if it is in a workspace.
fn place_name(environment: &Environment) -> Option<String> {
    let (namespace, place) = place(environment)?;
    Some(namespace.map_or_else(|| place.clone(), |namespace| format!("{namespace}/{place}")))
}

/// The current folder's path in its workspace, and the namespace that names there start with.
fn place(environment: &Environment) -> Option<(Option<String>, String)> {
    let Environment { current, home, mu_home, users, .. } = environment;
    let root = find_root(current, home, mu_home);
    let place = current.strip_prefix(&root).ok().filter(|place| !place.as_os_str().is_empty())?;
    if !root.join(MU_FOLDER).is_dir() {
        return None;
    }
    let place = place.to_str()?.replace(std::path::MAIN_SEPARATOR, "/");
    // A workspace that mu refuses has no names.
    Workspace::check_root(&root, mu_home, users).ok()?;
    let has_base = Reference::parse(&place).ok()?.base().is_some();
    let namespace = Workspace::open_without_members(&root, mu_home).ok()?.namespace;
    Some((namespace.filter(|_| !has_base).map(|namespace| namespace.name.to_string()), place))
}

fn folder_name(environment: &Environment) -> Result<String, CommandError> {
    name_of(&environment.current)
}

/// A package's name by its folder.
fn name_of(folder: &Path) -> Result<String, CommandError> {
    let called = folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy();
    let name = called.to_lowercase().replace(' ', "-");
    Name::parse(&name).map_err(|error| {
        let message = format!("the folder `{called}` has no name that a package can have: {error}");
        CommandError::new(Code::Usage, message).hint("give one: `mu init acme/web`")
    })?;
    Ok(name)
}

/// The name of a new package in a folder: the one that references in its workspace have for it, or else the folder's.
fn new_name(environment: &Environment, folder: &Path) -> Result<String, CommandError> {
    let there = Environment { current: folder.to_owned(), ..environment.clone() };
    place_name(&there).map_or_else(|| name_of(folder), Ok)
}

/// A name as YAML writes it.
fn plain(name: &str) -> String {
    let is_safe = name.starts_with(|first: char| first.is_ascii_alphabetic())
        && !matches!(
            name.to_ascii_lowercase().as_str(),
            "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n"
        )
        && name
            .chars()
            .all(|character| character.is_ascii_alphanumeric() || "/._-:".contains(character))
        && !name.ends_with(':');
    if is_safe { name.to_owned() } else { quoted(name) }
}
