//! The JSON schema of `.mu/workspace.yaml`, for editors.
//!
//! The types here only have the shape of the file; nothing is ever read into them. A test compares
//! their keys with those that the reader knows.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::Value;

/// The JSON schema of `.mu/workspace.yaml`; `~/.mu/config.yaml` has the same keys but `namespace` and `members`.
pub fn schema() -> Value {
    schemars::schema_for!(File).to_value()
}

/// Text, or a number or truth value that is taken as it is written.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Word {
    Text(String),
    Number(f64),
    Flag(bool),
}

/// The settings of a workspace.
#[derive(JsonSchema)]
#[schemars(rename = "Workspace", rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("patternProperties" = {"^x-": {}}))]
struct File {
    /// A name, or base and name, that the workspace's own folders leave out.
    namespace: Option<String>,
    /// The base of references without one, such as `hub.mu.com/`.
    base: Option<String>,
    /// How versions are chosen.
    resolution: Option<Resolution>,
    /// Where a base (or a base and the beginning of names) really is, and which provider serves it.
    registries: Option<BTreeMap<String, Registry>>,
    /// Facts that packages' constraints are checked against.
    runtime: Option<BTreeMap<String, Word>>,
    /// What is used instead of a package, everywhere: a reference, or another version of it.
    overrides: Option<BTreeMap<String, Word>>,
    /// Versions never to pick.
    exclude: Option<Vec<String>>,
    /// Whether a package may be chosen once per major version.
    majors: Option<Majors>,
    /// How old a version must be to be picked, such as `3 days`.
    minimum_release_age: Option<Word>,
    /// Which packages may take the place of which, old to new.
    allow_replaces: Option<BTreeMap<String, String>>,
    /// How packs come out of the store.
    link: Option<Link>,
    /// What is trusted to do more than lie there.
    trust: Option<Trust>,
    /// Globs of folders searched for packages; `!` before one takes away.
    members: Option<Vec<String>>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
enum Resolution {
    Highest,
    Minimal,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
enum Majors {
    One,
    Many,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
enum Link {
    Auto,
    Clone,
    Hardlink,
    Copy,
    Symlink,
}

/// A URL, or a folder relative to the workspace's root, or a map.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Registry {
    Place(String),
    Table(RegistryTable),
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("patternProperties" = {"^x-": {}}))]
struct RegistryTable {
    /// `hub`, `git` or `path`.
    provider: Option<String>,
    /// A URL, or a folder relative to the workspace's root.
    url: Option<String>,
    /// Whether plain http to another machine is allowed.
    insecure: Option<bool>,
    /// Whether tags such as `v1` and `1.28` count as versions.
    versions: Option<Versions>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
enum Versions {
    Strict,
    Lenient,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("patternProperties" = {"^x-": {}}))]
struct Trust {
    /// Patterns of packages whose `build` may be run, such as `hub.mu.com/acmecorp/*`.
    build: Option<Vec<String>>,
    /// In `~/.mu/config.yaml` alone: folders whose workspaces are used though they belong to another user, such as
    /// `/srv/shared/web`, or `/srv/*` for all that are below.
    workspaces: Option<Vec<String>>,
}

#[cfg(test)]
mod tests {
    use super::super::{read, registry};
    use super::*;

    fn check(schema: &Value, pointer: &str, keys: &[&str]) {
        let properties = schema.pointer(pointer).and_then(Value::as_object);
        let mut found: Vec<&str> =
            properties.expect("is in the schema").keys().map(String::as_str).collect();
        let mut keys = keys.to_vec();
        found.sort_unstable();
        keys.sort_unstable();
        assert_eq!(found, keys, "{pointer}");
    }

    #[test]
    fn the_schema_has_the_keys_that_are_read() {
        let schema = schema();
        check(&schema, "/properties", read::WORKSPACE_KEYS);
        check(&schema, "/$defs/RegistryTable/properties", registry::KEYS);
        check(&schema, "/$defs/Trust/properties", read::TRUST_KEYS);
    }
}
