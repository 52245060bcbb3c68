//! The submodules of a checkout as its index has them: their commits are there whether or not they are checked out.

use std::path::{Path, PathBuf};

use git2::Repository;
use mu_provider::Commit;
use mu_provider::fs::{self, canonicalize};

use crate::config_text::{Setting, settings};
use crate::opened::{LocalGit, root_of};
use crate::ref_name;
use crate::remote_url::{RemoteUrl, without_login};
use crate::stand_in::{Place, StandIn, StandInError, text_of};
use crate::surroundings::SurroundingsError;

/// The file that names them.
pub const SUBMODULES: &str = ".gitmodules";

/// Its keys, in lower case.
const KEYS: [&str; 7] =
    ["path", "url", "branch", "update", "ignore", "shallow", "fetchrecursesubmodules"];

/// A submodule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedSubmodule {
    /// Its path in the checkout.
    pub path: String,
    /// Its line in the file, counted from 1.
    pub line: usize,
    /// The URL of its repository, or why there is none.
    pub url: Result<String, String>,
    /// The branch that updates of it follow.
    pub branch: Option<String>,
    /// The commit in use; `None` if Git does not know the submodule.
    pub commit: Option<Commit>,
}

/// The submodules of a checkout.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsedSubmodules {
    /// In the order of their names.
    pub all: Vec<UsedSubmodule>,
    /// Keys of the file that Git does not know.
    pub unknown: Vec<String>,
}

impl LocalGit {
    /// The submodules of the checkout with this root; `None` if it has none.
    ///
    /// # Errors
    ///
    /// When the file or the repository cannot be read.
    pub fn submodules(&self, root: &Path) -> Result<Option<UsedSubmodules>, SurroundingsError> {
        let file = root.join(SUBMODULES);
        let is_file = fs::symlink_metadata(&file).is_ok_and(|found| found.is_file());
        let Some(text) = text_of(&file)?.filter(|_| is_file) else { return Ok(None) };
        let library = |repository: &Repository| {
            // Before the first commit, it leads to a branch, too.
            let head = repository.find_reference("HEAD")?;
            let branch = head.symbolic_target()?.and_then(|name| name.strip_prefix("refs/heads/"));
            Ok((in_index(repository)?, branch.map(str::to_owned)))
        };
        let program = |stand_in: &StandIn| {
            Ok((listed(stand_in, self)?, stand_in.checked_out_branch(&self.programs)?))
        };
        let (commits, branch) = self.of(root, &library, &program)?;
        let parent = Place::of(root).and_then(|place| place.default_remote(branch.as_deref()));
        Ok(Some(named(&text, &commits, parent.as_deref())))
    }

    /// The submodule that is not checked out and in which `folder` would be: the root of the checkout around it, and its path there.
    ///
    /// # Errors
    ///
    /// When the repository cannot be read.
    pub fn submodule_without_files(
        &self,
        folder: &Path,
    ) -> Result<Option<(PathBuf, String)>, SurroundingsError> {
        let Some(above) = folder.ancestors().find(|above| above.is_dir()) else { return Ok(None) };
        let Ok(rest) = folder.strip_prefix(above) else { return Ok(None) };
        let place = canonicalize(above)?.join(rest);
        let inner = |root: &Path, all: Vec<(String, Commit)>| {
            let around = all.into_iter().map(|(path, _)| path).find(|path| {
                let submodule = root.join(path);
                place.starts_with(&submodule) && !submodule.join(".git").exists()
            });
            around.map(|path| (root.to_owned(), path))
        };
        let library = |repository: &Repository| {
            let root = root_of(repository);
            let Some(root) = root else { return Ok(None) };
            Ok(inner(&root, in_index(repository)?))
        };
        let program = |stand_in: &StandIn| Ok(inner(stand_in.root(), listed(stand_in, self)?));
        Ok(self.around(above, &|_| true, &library, &program)?.flatten())
    }

    /// The commit that is checked out in a folder, if that is the root of a checkout.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn commit_of(&self, root: &Path) -> Result<Option<Commit>, SurroundingsError> {
        if !root.join(".git").exists() {
            return Ok(None);
        }
        let library = |repository: &Repository| {
            let head = repository.head().and_then(|head| head.peel_to_commit());
            Ok(head.ok().map(|head| ref_name::name(head.id())))
        };
        self.of(root, &library, &|stand_in| stand_in.checked_out_commit(&self.programs))
    }
}

/// Whether a folder is not there, or has nothing in it: what `git clone` makes of a submodule.
pub fn is_missing_or_empty(folder: &Path) -> bool {
    fs::entries_if_there(folder).is_ok_and(|entries| entries.is_empty())
}

/// The submodules in the index, and their commits.
fn in_index(repository: &Repository) -> Result<Vec<(String, Commit)>, git2::Error> {
    let index = repository.index()?;
    let all = index.iter().filter(|entry| entry.mode == SUBMODULE);
    let pair = all
        .map(|entry| (String::from_utf8_lossy(&entry.path).into_owned(), ref_name::name(entry.id)));
    Ok(pair.collect())
}

/// The same, as `git` lists them.
fn listed(stand_in: &StandIn, local: &LocalGit) -> Result<Vec<(String, Commit)>, StandInError> {
    let entries = stand_in.entries(&local.programs)?;
    let all = entries.into_iter().filter(|entry| entry.is_submodule());
    Ok(all.filter_map(|entry| Some((entry.path, entry.oid.parse().ok()?))).collect())
}

/// The mode of a submodule in an index.
const SUBMODULE: u32 = 0o160_000;

/// The submodules in `text`, at these commits; `parent` is the URL of the repository around them.
fn named(text: &str, commits: &[(String, Commit)], parent: Option<&str>) -> UsedSubmodules {
    let mut found = UsedSubmodules::default();
    let all = settings(text);
    let mut names: Vec<&str> = Vec::new();
    for Setting { section, name, key, .. } in &all {
        let Some(name) = name.as_deref().filter(|_| section == "submodule") else { continue };
        if !names.contains(&name) {
            names.push(name);
        }
        if !KEYS.contains(&key.as_str()) && !found.unknown.contains(key) {
            found.unknown.push(key.clone());
        }
    }
    names.sort_unstable();
    for name in names {
        // Of a key that is there twice, the last counts.
        let value = |wanted: &str| {
            let mut own = all.iter().filter(|one| one.name.as_deref() == Some(name));
            own.rfind(|one| one.section == "submodule" && one.key == wanted).map(|one| &*one.value)
        };
        let Some(path) = value("path").map(|path| path.trim_end_matches('/')) else { continue };
        let header = format!("\"{name}\"");
        let line = text.lines().position(|line| line.contains('[') && line.contains(&header));
        let commit = commits.iter().find(|(at, _)| at == path);
        found.all.push(UsedSubmodule {
            path: path.to_owned(),
            line: line.map_or(0, |line| line + 1),
            url: value("url").map_or_else(
                || Err("`.gitmodules` does not say where it comes from".to_owned()),
                |url| url_of(url, parent).map(|url| without_login(&url)),
            ),
            // A dot is the branch that is checked out around it.
            branch: value("branch").filter(|branch| *branch != ".").map(str::to_owned),
            commit: commit.map(|(_, commit)| commit.clone()),
        });
    }
    found
}

/// The URL of a submodule. A relative one counts from that of the repository around it.
fn url_of(url: &str, parent: Option<&str>) -> Result<String, String> {
    if !url.starts_with("./") && !url.starts_with("../") {
        return Ok(url.to_owned());
    }
    let parent = parent.ok_or_else(|| {
        "its URL is relative, and this repository has no remote that its branch follows, and no `origin`".to_owned()
    })?;
    // Here it is only made, and asked by nobody: that is checked where it is asked.
    let around = RemoteUrl::parse(&without_login(parent), |_| true).ok().flatten();
    let around = around.ok_or_else(|| {
        "its URL is relative, and mu cannot read the URL of the remote that it counts from"
            .to_owned()
    })?;
    let remote = RemoteUrl::submodule(&around, url).map_err(|error| error.to_string())?;
    Ok(remote.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_are_those_of_the_table() {
        let table = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/keys/gitmodules.tsv");
        let table = std::fs::read_to_string(table).expect("is there");
        let rows = table.lines().skip(1).map(|row| row.split('\t').next().unwrap_or_default());
        let mut rows: Vec<String> = rows
            .filter_map(|row| row.strip_prefix("submodule.NAME."))
            .map(str::to_ascii_lowercase)
            .collect();
        let mut keys = KEYS.to_vec();
        rows.sort();
        keys.sort_unstable();
        assert_eq!(rows, keys);
    }

    #[test]
    fn submodules_with_and_without_branches() {
        let file =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/elsewhere/kernel.gitmodules");
        let text = std::fs::read_to_string(file).expect("is there");
        let found = named(&text, &[], None);
        assert!(found.unknown.is_empty(), "{:?}", found.unknown);
        let all: Vec<_> = found
            .all
            .iter()
            .map(|one| (&*one.path, one.line, one.url.as_deref().ok(), one.branch.as_deref()))
            .collect();
        assert_eq!(
            all,
            [
                ("deps/base", 13, Some("https://git.example/core/base.git"), Some("lts_2026_01")),
                (
                    "deps/dns/resolver",
                    9,
                    Some("https://git.example/net/resolver.git"),
                    Some("stable-2_4")
                ),
                ("deps/tls", 1, Some("https://git.example/net/tls"), None),
                ("deps/wire", 6, Some("https://git.example/net/wire.git"), None),
            ]
        );
    }

    #[test]
    fn submodules_have_their_commits_and_whole_urls() {
        let text = "[submodule \"b\"]\n\tpath = libs/b/\n\turl = ../b.git\n\tbranch = main\n\
                    [submodule \"a\"]\n\tpath = a\n\turl = git@h.example:o/a.git\n\tbranch = .\n\tsparse = x\n\
                    [submodule \"c\"]\n\turl = nowhere\n[submodule \"d\"]\npath = d\n";
        let commit: Commit = "1895753f53a63c055e7cae81ebe4ea5d5805584f".parse().expect("is one");
        let commits = [("libs/b".to_owned(), commit.clone())];
        let found = named(text, &commits, Some("https://h.example/o/x.git"));
        assert_eq!(found.unknown, ["sparse"]);
        let all: Vec<_> = found
            .all
            .iter()
            .map(|one| {
                (
                    &*one.path,
                    one.line,
                    one.url.as_deref().ok(),
                    one.branch.as_deref(),
                    one.commit.clone(),
                )
            })
            .collect();
        assert_eq!(
            all,
            [
                ("a", 5, Some("git@h.example:o/a.git"), None, None),
                ("libs/b", 1, Some("https://h.example/o/b.git"), Some("main"), Some(commit)),
                ("d", 12, None, None, None),
            ]
        );
        let alone = named(text, &[], None);
        let relative = alone.all.iter().find(|one| one.path == "libs/b").expect("is there");
        assert!(relative.url.as_ref().is_err_and(|why| why.contains("no `origin`")));
        let upwards = named(
            "[submodule \"e\"]\npath=e\nurl=../../../../e\n",
            &[],
            Some("https://h.example/x"),
        );
        assert!(upwards.all[0].url.is_err());
    }
}
