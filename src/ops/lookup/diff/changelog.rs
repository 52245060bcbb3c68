//! What has changed between two versions of a package, in the words of its authors: what its changelog says that it did not say before,
//! or else the titles of the commits in between.
//!
//! Changelogs have no form that all keep to, so what is new in one is found by comparison, whatever its headings are. What comes from
//! here is foreign text. Nothing fails where nobody can tell.

use mu_provider::{MOST_LOGGED, is_changelog};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Difference, Side, diff};
use crate::ops::{CommandError, Session};
use crate::reference::{PackageId, Version};

/// What has changed from one version of a package to another one, as its authors say it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Changelog {
    /// The package.
    pub id: PackageId,
    /// The version before.
    pub from: String,
    /// The version after.
    pub to: String,
    /// The file of the package that says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What that file says more than before.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Without such a file, the commits of its whole repository in between, the newest first: 200 at most.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commits: Vec<CommitTitle>,
}

/// A commit between two versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CommitTitle {
    /// Its name.
    pub commit: String,
    /// The first line of its message.
    pub title: String,
}

impl Changelog {
    /// Whether nobody says anything.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.commits.is_empty()
    }

    /// Whether there may be more commits than those in the list.
    pub fn is_cut(&self) -> bool {
        self.commits.len() == MOST_LOGGED
    }
}

/// What the authors of a package say about a difference; `None` if the package is new, or no longer used.
pub fn changelog(session: &Session, difference: &Difference) -> Option<Changelog> {
    let (from, to) = (difference.from.as_ref()?, difference.to.as_ref()?);
    // A file that only lost lines, or was only renamed, says nothing new. Then the commits may.
    let texts = difference.files.iter().filter(|file| is_changelog(&file.path));
    let mut told =
        texts.filter_map(|file| Some((file.path.clone(), added(file.hunks.as_deref()?))));
    let (file, text) = told.find(|(_, text)| !text.is_empty()).unzip();
    let commits = if file.is_some() { Vec::new() } else { commits(session, from, to) };
    Some(Changelog {
        id: to.id.clone(),
        from: from.version.clone(),
        to: to.version.clone(),
        file,
        text: text.unwrap_or_default(),
        commits,
    })
}

/// What the authors of a locked package say has changed up to the version `newest`, as `mu outdated` calls it.
pub fn up_to(
    session: &Session,
    id: &PackageId,
    newest: &str,
) -> Result<Option<Changelog>, CommandError> {
    // The id alone does not lead to what is in a folder of this machine.
    let written = session.index().written(id).unwrap_or_else(|| id.to_string());
    let package = written.split('#').next().unwrap_or_default();
    // A branch, or an archive by URL, has no version that names what is newest.
    let to = match Version::parse(newest) {
        Ok(_) => format!("{package}#{newest}"),
        Err(_) => package.to_owned(),
    };
    Ok(changelog(session, &diff(session, &to, None)?))
}

/// The lines that are new in the hunks of a unified diff.
fn added(hunks: &str) -> String {
    let lines: Vec<&str> = hunks.lines().filter_map(|line| line.strip_prefix('+')).collect();
    lines.join("\n").trim().to_owned()
}

/// The commits between two versions of a package in a repository; none where they are not known.
fn commits(session: &Session, from: &Side, to: &Side) -> Vec<CommitTitle> {
    let (Some(before), Some(after)) = (&from.commit, &to.commit) else { return Vec::new() };
    // What was moved to another repository has no history in common.
    if from.id != to.id || before == after {
        return Vec::new();
    }
    // Both versions were fetched a moment ago, so the route is known, and no request is made for it.
    let Ok(route) = session.index().route(&to.id) else { return Vec::new() };
    let progress = crate::ops::session::events::Work::begin(&session.events, to.id.as_str());
    match route.provider.log(&route.location, before, after, &progress) {
        Ok(found) => {
            let found = found.into_iter().flatten();
            found
                .map(|one| CommitTitle { commit: one.commit.to_string(), title: one.title })
                .collect()
        }
        Err(error) => {
            let id = session.short_name(&to.id);
            session.events.warning(&format!("the commits of `{id}` are not known: {error}"));
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_in_a_file_is_what_it_has_more() {
        let hunks = "@@ -1,3 +1,6 @@\n # Changes\n+\n+## 1.1.0\n+- more\n \n-## 1.0\n+## 1.0.0\n\\ No newline at end of file\n";
        assert_eq!(added(hunks), "## 1.1.0\n- more\n## 1.0.0");
    }
}
