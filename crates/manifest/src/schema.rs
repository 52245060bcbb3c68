//! The JSON schema of manifests, for editors.
//!
//! The types here only have the shape of the file; nothing is ever read into them. A test compares
//! their keys with those that the reader knows.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::Value;

/// The JSON schema of `Mu.yaml` and `Mu.json`.
pub fn schema() -> Value {
    schemars::schema_for!(File).to_value()
}

/// Text, or a number that is taken as it is written.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Word {
    Text(String),
    Number(f64),
}

/// A package's manifest: Mu.yaml or Mu.json.
#[derive(JsonSchema)]
#[schemars(rename = "Manifest", rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("patternProperties" = {"^x-": {}}))]
struct File {
    /// The package's name, such as `acmecorp/elk`, or base and name.
    name: String,
    /// The version (semver); where `versioning` is `composite`, the revision.
    version: Option<String>,
    /// The version of what the package packages.
    app_version: Option<Word>,
    /// How versions of the package are made.
    versioning: Option<Versioning>,
    /// The format of this manifest.
    #[schemars(extend("const" = "mu/v1"))]
    api_version: Option<String>,
    /// The range of mu versions that can use this package.
    mu_version: Option<Word>,
    /// What the package is, in a sentence.
    description: Option<String>,
    /// Who wrote it; the same as `authors`.
    author: Option<OneOrMore<Person>>,
    /// Who wrote it.
    authors: Option<OneOrMore<Person>>,
    /// Who looks after it.
    maintainers: Option<OneOrMore<Person>>,
    /// Where to read more.
    website: Option<String>,
    /// The licence, usually an SPDX expression.
    license: Option<String>,
    /// Words to find it by.
    keywords: Option<Vec<String>>,
    /// The file to show about it, relative to the package.
    readme: Option<String>,
    /// Globs of what is packed; everything if left out.
    files: Option<Vec<String>>,
    /// What it depends on.
    dependencies: Option<Dependencies>,
    /// What it depends on while it is in the workspace.
    dev_dependencies: Option<Dependencies>,
    /// Packages that it supersedes.
    replaces: Option<Vec<String>>,
    /// Capabilities that it provides, such as `compute.mu.com/v1/VM`.
    provides: Option<Vec<String>>,
    /// Capabilities that some package must provide.
    requires: Option<Vec<String>>,
    /// Ranges (or an exact word) over facts of the runtime.
    constraints: Option<BTreeMap<String, Word>>,
    /// Channels that it is published to.
    channels: Option<Vec<String>>,
    /// From which versions it can be upgraded to.
    upgrade: Option<Upgrade>,
    /// Elements that can be referred to below the package.
    exports: Option<BTreeMap<String, Option<Export>>>,
    /// How it is built; never run by what installs it.
    build: Option<Build>,
    /// Anything; mu does not look at it.
    metadata: Option<BTreeMap<String, Value>>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
enum Versioning {
    Semver,
    Composite,
}

#[derive(JsonSchema)]
#[schemars(untagged)]
enum OneOrMore<T> {
    One(T),
    More(Vec<T>),
}

/// `Name <email> (url)`, or a map of these.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Person {
    Text(String),
    Table(PersonTable),
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("patternProperties" = {"^x-": {}}))]
struct PersonTable {
    /// The name.
    name: String,
    /// The mail address.
    email: Option<String>,
    /// A page.
    url: Option<String>,
}

/// A list of references, or a map from a local name to a reference or to a version alone (the key is then the name).
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Dependencies {
    List(Vec<Dependency>),
    Map(BTreeMap<String, Dependency>),
}

#[derive(JsonSchema)]
#[schemars(untagged)]
enum Dependency {
    /// A reference, such as `aws#^1.0.6`; in the map form also a version alone.
    Short(Word),
    Long(LongDependency),
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("patternProperties" = {"^x-": {}}))]
struct LongDependency {
    /// The reference.
    r#ref: Option<String>,
    /// The version, where the map's key is the name or `ref` has none.
    version: Option<Word>,
    /// Only versions in this channel.
    channel: Option<String>,
    /// Only versions of this app version.
    app_version: Option<Word>,
    /// Whether prereleases will do too.
    prerelease: Option<bool>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("patternProperties" = {"^x-": {}}))]
struct Upgrade {
    /// The version right before it.
    replaces: Option<String>,
    /// Versions that it can also follow.
    skips: Option<Vec<String>>,
    /// A range of versions that it can also follow.
    skip_range: Option<Word>,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("patternProperties" = {"^x-": {}}))]
struct Export {
    /// What it is.
    kind: Option<ExportKind>,
    /// The file it is in, relative to the package.
    path: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
enum ExportKind {
    Module,
    Class,
    Function,
    Variable,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("patternProperties" = {"^x-": {}}))]
struct Build {
    /// The program and its arguments.
    command: Vec<String>,
    /// What it makes, relative to the package.
    outputs: Option<Vec<String>>,
}

#[cfg(test)]
mod tests {
    use super::super::{read, requirement};
    use super::*;

    /// Checks that a schema has, at `pointer`, the keys that are read, and no others.
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
        check(&schema, "/properties", read::KEYS);
        check(&schema, "/$defs/PersonTable/properties", read::PERSON_KEYS);
        check(&schema, "/$defs/LongDependency/properties", requirement::KEYS);
        check(&schema, "/$defs/Upgrade/properties", read::UPGRADE_KEYS);
        check(&schema, "/$defs/Export/properties", read::EXPORT_KEYS);
        check(&schema, "/$defs/Build/properties", read::BUILD_KEYS);
        assert_eq!(schema["required"], serde_json::json!(["name"]));
        assert_eq!(schema["additionalProperties"], false);
        assert_eq!(schema["patternProperties"], serde_json::json!({"^x-": {}}));
    }
}
