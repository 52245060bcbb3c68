//! Providers are given places that somebody may name, and make none of foreign texts, except where these are checked.

use crate::tidy::without_tests;
use crate::{files, read, root};

/// The files of providers that make URLs of texts, how often, and why that names no place unchecked.
const MAKE_URLS: [(&str, usize, &str); 11] = [
    ("providers/exec/src/plugin.rs", 1, "finds the token for a URL; nothing is asked"),
    (
        "providers/git/src/remote_url.rs",
        5,
        "is that check for Git: of submodules, and of the user's Git settings; the last two take a password off a text",
    ),
    (
        "providers/git/src/submodules.rs",
        1,
        "is the `origin` of a checkout; nothing is asked, and what comes of it is read as a reference",
    ),
    ("providers/git/src/transport/http.rs", 2, "is on the server of a checked URL"),
    (
        "providers/git/src/working_copy/mod.rs",
        1,
        "is what the user names; `Lead::leads_to` follows for what a package names",
    ),
    ("providers/helm/src/lib.rs", 1, "`Lead::leads_to` follows"),
    (
        "providers/oci/src/auth/mod.rs",
        2,
        "`check_lead` follows; the others are for tokens and messages",
    ),
    ("providers/oci/src/image.rs", 1, "`Lead::leads_to` follows"),
    ("providers/oci/src/lib.rs", 1, "says where an archive is; nothing is asked"),
    ("providers/oci/src/registry.rs", 1, "is on the server of the location"),
    ("providers/olm/src/catalogs.rs", 1, "is the location itself, without a slash"),
];

#[test]
fn a_provider_makes_a_place_of_a_text_only_where_it_is_checked() {
    let mut found = Vec::new();
    for path in files("providers") {
        let path = path.strip_prefix(root()).unwrap_or(&path).to_string_lossy().into_owned();
        let is_code = path.ends_with(".rs") && path.contains("/src/") && !path.contains("tests");
        if !is_code || path.starts_with("providers/api/") {
            continue;
        }
        let text = read(&path);
        let count = without_tests(&text).matches("Url::parse(").count();
        if count > 0 {
            found.push((path, count));
        }
    }
    found.sort();
    let expected: Vec<(String, usize)> =
        MAKE_URLS.iter().map(|(path, count, _)| ((*path).to_owned(), *count)).collect();
    assert_eq!(
        found, expected,
        "make the URL a `Lead` of the place that names it, and say here why it is safe"
    );
}

#[test]
fn a_location_has_a_lead() {
    let location = read("providers/api/src/provider.rs");
    assert!(
        location.contains("pub root: Lead,"),
        "what a provider is asked for has a checked place"
    );
    // Nothing but its own file makes one.
    let lead = read("providers/api/src/lead.rs");
    assert!(lead.contains("    url: SafeUrl,\n    named_by: NamedBy,"), "its parts are private");
}
