//! The one declaration of a manifest's keys: those that the reader knows, and the JSON schema for editors.
//!
//! The types have the shape of the file. What the values mean is for the reader to say.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::Value;

use crate::source::keys;
use crate::types::{ExportKind, Versioning, Versions};

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

keys! {
    /// A package's manifest: Mu.yaml or Mu.json.
    #[schemars(rename = "Manifest")]
    pub(super) struct File {
        /// The package's name, such as `acmecorp/elk`, or base and name.
        "name" name: String,
        /// The version (semver); where `versioning` is `composite`, the revision.
        "version" version: Option<Word>,
        /// Which texts are versions: with `lenient`, also those that leave numbers out, such as `1.28`.
        "versions" versions: Option<Versions>,
        /// The version of what the package packages.
        "appVersion" app_version: Option<Word>,
        /// How versions of the package are made.
        "versioning" versioning: Option<Versioning>,
        /// The format of this manifest.
        #[schemars(extend("const" = "mu/v1"))]
        "apiVersion" api_version: Option<String>,
        /// The range of mu versions that can use this package.
        "muVersion" mu_version: Option<Word>,
        /// What the package is, in a sentence.
        "description" description: Option<String>,
        /// Its author; the same as `authors`.
        "author" author: Option<OneOrMore<Person>>,
        /// Its authors.
        "authors" authors: Option<OneOrMore<Person>>,
        /// Its maintainers.
        "maintainers" maintainers: Option<OneOrMore<Person>>,
        /// Where to read more.
        "website" website: Option<String>,
        /// Where its source is: the URL of a repository, and behind `#` the folder in it.
        "repository" repository: Option<String>,
        /// The licence, usually an SPDX expression.
        "license" license: Option<String>,
        /// Words to find it by.
        "keywords" keywords: Option<Vec<String>>,
        /// The file to show about it, relative to the package.
        "readme" readme: Option<String>,
        /// Globs of what is packed; everything if left out.
        "files" files: Option<Vec<String>>,
        /// What it depends on.
        "dependencies" dependencies: Option<Dependencies>,
        /// What it depends on while it is in the workspace.
        "devDependencies" dev_dependencies: Option<Dependencies>,
        /// Packages that it supersedes.
        "replaces" replaces: Option<Vec<String>>,
        /// Capabilities that it provides, such as `compute.mu.com/v1/VM`.
        "provides" provides: Option<Vec<String>>,
        /// Capabilities that some package must provide.
        "requires" requires: Option<Vec<String>>,
        /// Ranges (or an exact word) over facts of the runtime.
        "constraints" constraints: Option<BTreeMap<String, Word>>,
        /// Packages and capabilities that may not be chosen beside it.
        "conflicts" conflicts: Option<Vec<String>>,
        /// Channels that it is published to, the best first.
        "channels" channels: Option<Vec<String>>,
        /// The channel that counts where none is asked for; the first of the newest version's, if none is named.
        "defaultChannel" default_channel: Option<String>,
        /// From which versions it can be upgraded to.
        "upgrade" upgrade: Option<OneOrMore<Upgrade>>,
        /// Elements that can be referred to below the package.
        "exports" exports: Option<BTreeMap<String, Option<Export>>>,
        /// How it is built; never run by what installs it.
        "build" build: Option<Build>,
        /// Anything; mu does not look at it.
        "metadata" metadata: Option<BTreeMap<String, Value>>,
    }
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

keys! {
    pub(super) struct PersonTable {
        /// The name.
        "name" name: String,
        /// The mail address.
        "email" email: Option<String>,
        /// A page.
        "url" url: Option<String>,
    }
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

keys! {
    pub(super) struct LongDependency {
        /// The reference.
        "ref" r#ref: Option<String>,
        /// The version, where the map's key is the name or `ref` has none.
        "version" version: Option<Word>,
        /// Only versions in this channel.
        "channel" channel: Option<String>,
        /// Only versions of this app version.
        "appVersion" app_version: Option<Word>,
        /// Whether prereleases will do too.
        "prerelease" prerelease: Option<bool>,
    }
}

keys! {
    pub(super) struct Upgrade {
        /// The channel in which it can; in every one, if none is named.
        "channel" channel: Option<String>,
        /// The version right before it.
        "replaces" replaces: Option<String>,
        /// Versions that it can also follow.
        "skips" skips: Option<Vec<String>>,
        /// A range of versions that it can also follow.
        "skipRange" skip_range: Option<Word>,
    }
}

keys! {
    pub(super) struct Export {
        /// What it is.
        "kind" kind: Option<ExportKind>,
        /// The file it is in, relative to the package.
        "path" path: Option<String>,
    }
}

keys! {
    pub(super) struct Build {
        /// The program and its arguments.
        "command" command: Vec<String>,
        /// What it makes, relative to the package.
        "outputs" outputs: Option<Vec<String>>,
    }
}
