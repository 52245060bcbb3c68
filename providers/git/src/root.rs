//! Where the repository ends in a location, and the folder inside it begins.
//!
//! This looks only at text; other modules ask the places.

use mu_provider::{ErrorKind, Location, ProviderError, SafeUrl};
use percent_encoding::percent_decode_str;

use crate::remote_url::{KNOWN_HOSTS, RemoteUrl, Scheme};

/// A repository that may be there, and the package's folder inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) remote: RemoteUrl,
    pub(crate) folder: String,
}

/// The repositories that a location can mean, in the order in which to try them.
///
/// There is one if the location says where the repository ends: it is settled, a segment ends in `.git`, or
/// the host is one whose repositories all have two segments. Otherwise the longest comes first. Forms that
/// few servers need (`.git` added, a path below the home folder) come last.
pub(crate) fn candidates(location: &Location) -> Result<Vec<Candidate>, ProviderError> {
    let candidate = |url: &SafeUrl, folder: &str| -> Result<Candidate, ProviderError> {
        Ok(Candidate { remote: RemoteUrl::new(url, location.insecure)?, folder: folder.to_owned() })
    };
    if let Some(folder) = &location.folder {
        check_folder(location, folder)?;
        return Ok(vec![candidate(&location.root, folder)?]);
    }
    check_folder(location, &location.path)?;
    let root = location.root.as_url().path().trim_matches('/');
    let segments: Vec<&str> =
        root.split('/').chain(location.path.split('/')).filter(|part| !part.is_empty()).collect();
    let split = |length: usize, ending: &str| {
        let (repository, folder) = segments.split_at(length);
        let mut url = location.root.as_url().clone();
        url.set_path(&format!("/{}{ending}", repository.join("/")));
        // Folders in a repository have names as they are.
        let folder = folder.join("/");
        let decoded = percent_decode_str(&folder).decode_utf8_lossy();
        candidate(&url.into(), &decoded)
    };
    let marked = segments.iter().position(|part| part.len() > 4 && part.ends_with(".git"));
    if let Some(last) = marked {
        return Ok(vec![split(last + 1, "")?]);
    }
    let shortest = root.split('/').filter(|part| !part.is_empty()).count().max(1);
    if segments.len() < shortest {
        return Err(not_a_repository(location, "it names no repository"));
    }
    if KNOWN_HOSTS.contains(&location.root.as_url().host_str().unwrap_or_default()) {
        if segments.len() < 2 {
            return Err(not_a_repository(location, "repositories there have two segments"));
        }
        return Ok(vec![split(2, "")?]);
    }
    let lengths = (shortest..=segments.len()).rev();
    let mut found: Vec<Candidate> =
        lengths.clone().map(|length| split(length, "")).collect::<Result<_, _>>()?;
    let is_below_home = segments.first() == Some(&"~");
    let is_ssh = found.first().is_some_and(|longest| longest.remote.scheme == Scheme::Ssh);
    if is_ssh && !is_below_home {
        for length in lengths.clone() {
            let (repository, folder) = segments.split_at(length);
            let mut url = location.root.as_url().clone();
            url.set_path(&format!("/~/{}", repository.join("/")));
            found.push(candidate(&url.into(), &folder.join("/"))?);
        }
    }
    for length in lengths {
        found.push(split(length, ".git")?);
    }
    Ok(found)
}

fn check_folder(location: &Location, folder: &str) -> Result<(), ProviderError> {
    let fine = |part: &str| !matches!(part, "" | "." | "..") && !part.chars().any(char::is_control);
    if folder.is_empty() || folder.split('/').all(fine) {
        Ok(())
    } else {
        Err(not_a_repository(location, "its path has empty, `.` or `..` segments"))
    }
}

fn not_a_repository(location: &Location, why: &str) -> ProviderError {
    let place = location.describe();
    ProviderError::new(ErrorKind::NotFound, format!("`{place}` is not a Git repository: {why}"))
}

#[cfg(test)]
mod tests {
    use mu_provider::Lead;

    use super::*;

    fn check(root: &str, path: &str, expected: &[(&str, &str)]) {
        let root = Lead::of_user(SafeUrl::parse(root).expect("is a URL"));
        let location = Location::new(root.clone(), path);
        let found = candidates(&location).expect("names repositories");
        let found: Vec<(String, &str)> =
            found.iter().map(|one| (one.remote.to_string(), one.folder.as_str())).collect();
        let found: Vec<(&str, &str)> =
            found.iter().map(|(url, folder)| (&**url, *folder)).collect();
        assert_eq!(found, expected, "{root} {path}");
    }

    #[test]
    fn a_mark_or_a_known_host_leaves_one() {
        check("https://example.com/", "g/r.git/s/d", &[("https://example.com/g/r.git", "s/d")]);
        check("https://github.com/", "a/b/c/d", &[("https://github.com/a/b", "c/d")]);
        check("https://github.com/", "a/b.git", &[("https://github.com/a/b.git", "")]);
        check("https://gitlab.com/", "a/b/c.git/d", &[("https://gitlab.com/a/b/c.git", "d")]);
        check("git+https://me.org/mono.git", "x/y", &[("https://me.org/mono.git", "x/y")]);
        check("file:///", "srv/ec2.git/x", &[("file:///srv/ec2.git", "x")]);
    }

    #[test]
    fn elsewhere_the_longest_comes_first() {
        check(
            "https://example.com/",
            "a/b/c",
            &[
                ("https://example.com/a/b/c", ""),
                ("https://example.com/a/b", "c"),
                ("https://example.com/a", "b/c"),
                ("https://example.com/a/b/c.git", ""),
                ("https://example.com/a/b.git", "c"),
                ("https://example.com/a.git", "b/c"),
            ],
        );
        check(
            "ssh://git@example.com/",
            "a",
            &[
                ("ssh://git@example.com/a", ""),
                ("git@example.com:a", ""),
                ("ssh://git@example.com/a.git", ""),
            ],
        );
        check(
            "https://example.com/scm",
            "a",
            &[
                ("https://example.com/scm/a", ""),
                ("https://example.com/scm", "a"),
                ("https://example.com/scm/a.git", ""),
                ("https://example.com/scm.git", "a"),
            ],
        );
    }

    #[test]
    fn a_settled_location_is_taken_at_its_word() {
        let root = Lead::of_user(SafeUrl::parse("https://example.com/a").expect("is a URL"));
        let mut location = Location::new(root, "");
        location.folder = Some("b/c".to_owned());
        let found = candidates(&location).expect("names a repository");
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].remote.to_string().as_str(), &*found[0].folder),
            ("https://example.com/a", "b/c")
        );
        location.folder = Some("../x".to_owned());
        assert_eq!(candidates(&location).expect_err("is refused").kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_known_host_needs_two_segments() {
        let root = Lead::of_user(SafeUrl::parse("https://github.com/").expect("is a URL"));
        let error = candidates(&Location::new(root, "a")).expect_err("names no repository");
        assert!(error.to_string().contains("two segments"), "{error}");
    }
}
