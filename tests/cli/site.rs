//! The documentation as a site: `packaging/site/build.sh` makes it, every link in it leads somewhere, and a browser finds pages by their
//! words. It asks no other server.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Browser, Nginx};

/// The values of an attribute in a page.
fn values<'a>(page: &'a str, attribute: &str) -> Vec<&'a str> {
    let begin = format!(" {attribute}=\"");
    page.split(&begin).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// The page that a link in `from` leads to, and the place in it.
fn target(from: &Path, link: &str) -> (PathBuf, Option<String>) {
    let (path, fragment) = link.split_once('#').map_or((link, None), |(path, at)| (path, Some(at)));
    let path = path.split('?').next().unwrap_or_default();
    let page = match path {
        "" => from.to_owned(),
        path => from.parent().expect("is in a folder").join(path),
    };
    (page, fragment.filter(|at| !at.is_empty()).map(str::to_owned))
}

#[test]
fn every_link_of_the_site_leads_somewhere_and_its_words_are_found() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let site = tempfile::tempdir().expect("can be made");
    let made = Command::new(root.join("packaging/site/build.sh")).arg(site.path()).output();
    let made = made.expect("can be run");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));

    let mut pages = BTreeMap::new();
    for entry in fs::read_dir(site.path()).expect("is a folder") {
        let path = entry.expect("is there").path();
        if path.extension().is_some_and(|ending| ending == "html") {
            pages.insert(path.clone(), fs::read_to_string(path).expect("is text"));
        }
    }
    for entry in fs::read_dir(root.join("docs")).expect("is a folder") {
        let path = entry.expect("is there").path();
        if path.extension().is_some_and(|ending| ending == "md") {
            let stem = path.file_stem().expect("has a name").to_str().expect("is text");
            assert!(pages.contains_key(&site.path().join(format!("{stem}.html"))), "{stem}");
        }
    }
    let places: BTreeMap<&PathBuf, BTreeSet<&str>> =
        pages.iter().map(|(path, page)| (path, values(page, "id").into_iter().collect())).collect();
    let mut wrong = Vec::new();
    for (from, page) in &pages {
        let own = ["src", "href"].map(|attribute| values(page, attribute)).concat();
        for link in own {
            if link.contains("://") {
                // Links of people lead out; what a page loads does not.
                if values(page, "src").contains(&link) {
                    wrong.push(format!("{}: loads {link}", from.display()));
                }
                continue;
            }
            let (to, fragment) = target(from, link);
            let is_there = to.exists();
            let has_place = fragment
                .zip(places.get(&to))
                .is_none_or(|(fragment, places)| places.contains(&*fragment));
            if !is_there || !has_place {
                wrong.push(format!("{}: {link}", from.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");

    let nginx = Nginx::serve(site.path(), "");
    let mut browser = Browser::start();
    browser.open(&nginx.url("index.html"));
    let first = "document.querySelector('.sidebar-tree a').textContent == 'Tutorial'";
    assert_eq!(browser.value(first), true);
    browser.open(&nginx.url("search.html?q=symlink"));
    browser.wait_until(
        "document.querySelector('#search-results a[href^=\"workspaces.html\"]') != null",
    );
    assert_eq!(browser.complaints(), [""; 0]);
}
