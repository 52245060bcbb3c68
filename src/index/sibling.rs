//! Local folders in the manifests of a repository: `../b` is a neighbouring package in the same repository.

use crate::reference::PackageId;

/// The package that the manifest of `id`, in `folder` of its repository, means by the relative path
/// `written`; `None` if that is not in the repository.
pub(crate) fn sibling(id: &PackageId, folder: &str, written: &str) -> Option<PackageId> {
    if written.starts_with('/') {
        return None;
    }
    let own = if folder.is_empty() { 0 } else { folder.split('/').count() };
    let segments: Vec<&str> = id.name_str().split('/').collect();
    let (repository, inside) = segments.split_at(segments.len().checked_sub(own)?);
    if inside.join("/") != folder {
        return None;
    }
    let mut inside = inside.to_vec();
    for segment in written.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(inside.pop()?),
            name => inside.push(name),
        }
    }
    let name = [repository, &inside].concat().join("/");
    PackageId::parse(&format!("{}{name}", id.base().as_str())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_inside_the_repository_is_a_package_of_it() {
        for (id, folder, written, expected) in [
            ("h.co/g/mono/libs/a", "libs/a", "../b", Some("h.co/g/mono/libs/b")),
            ("h.co/g/mono/libs/a", "libs/a", "./in/", Some("h.co/g/mono/libs/a/in")),
            ("h.co/g/mono/libs/a", "libs/a", "../..", Some("h.co/g/mono")),
            ("h.co/g/mono", "", "./libs/a", Some("h.co/g/mono/libs/a")),
            ("h.co/g/mono", "", "../other", None),
            ("h.co/g/mono/libs/a", "libs/a", "../../../other", None),
            ("h.co/g/mono/libs/a", "libs/a", "../../x/../../other", None),
            ("h.co/g/mono/libs/a", "libs/a", "/srv/b", None),
            // A registry may serve the repository as the whole base.
            ("h.co/libs/a", "libs/a", "../b", Some("h.co/libs/b")),
            ("h.co/libs/a", "libs/a", "../..", None),
            ("h.co/other", "libs/a", "../b", None),
        ] {
            let id = PackageId::parse(id).expect("is an id");
            let found = sibling(&id, folder, written).map(|id| id.to_string());
            assert_eq!(found.as_deref(), expected, "{id} {written}");
        }
    }
}
