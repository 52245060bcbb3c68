//! The only declaration of a manifest's keys, for the reader, for edits, and for the JSON schema that editors use.
//!
//! The types have the shape of the file. The reader decides what the values mean.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::Value;

use crate::source::keys;
use crate::types::{ExportKind, Versioning, Versions};

/// The JSON schema of `Mu.yaml` and `Mu.json`.
pub fn schema() -> Value {
    in_lines(schemars::schema_for!(File).to_value())
}

/// A schema whose descriptions have one line for each paragraph, wherever the source breaks it.
pub fn in_lines(mut schema: Value) -> Value {
    unwrap(&mut schema);
    schema
}

fn unwrap(value: &mut Value) {
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                match value {
                    Value::String(text) if key == "description" => {
                        let paragraphs = text.split("\n\n").map(|text| text.replace('\n', " "));
                        *text = paragraphs.collect::<Vec<_>>().join("\n\n");
                    }
                    value => unwrap(value),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(unwrap),
        _ => {}
    }
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
        /// The version (semver). With `versioning: composite`, only the revision.
        "version" version: Option<Word>,
        /// Which texts are versions. With `lenient`, also those that leave numbers out, such as `1.28`.
        "versions" versions: Option<Versions>,
        /// The version of the software that the package contains.
        "appVersion" app_version: Option<Word>,
        /// How the package's versions are formed.
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
        /// Where its source is: the URL of a repository and, after a `#`, the folder in it.
        "repository" repository: Option<String>,
        /// Why nobody should begin to use it, if nobody looks after it any more.
        "deprecated" deprecated: Option<String>,
        /// The licence, usually an SPDX expression.
        "license" license: Option<String>,
        /// Words to find it with.
        "keywords" keywords: Option<Vec<String>>,
        /// The file to show about it, relative to the package.
        "readme" readme: Option<String>,
        /// Globs of the files to pack; all files if left out.
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
        /// Packages and capabilities that must not be used together with it.
        "conflicts" conflicts: Option<Vec<String>>,
        /// Channels that it is published to, the best first.
        "channels" channels: Option<Vec<String>>,
        /// The channel to use if none is requested; by default, the first channel of the newest version.
        "defaultChannel" default_channel: Option<String>,
        /// The versions that can be upgraded to this one.
        "upgrade" upgrade: Option<OneOrMore<Upgrade>>,
        /// Elements that can be referred to below the package.
        "exports" exports: Option<BTreeMap<String, Option<Export>>>,
        /// How it is built; installing the package never runs this.
        "build" build: Option<Build>,
        /// Anything; mu ignores it.
        "metadata" _metadata: Option<BTreeMap<String, Value>>,
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
    /// A reference, such as `aws#^1.0.6`; in the map form, this can also be a version.
    Short(Word),
    Long(LongDependency),
}

keys! {
    pub(super) struct LongDependency {
        /// The reference.
        "ref" r#ref: Option<String>,
        /// The version, if the map's key is the name, or if `ref` has no version.
        "version" version: Option<Word>,
        /// Only versions in this channel.
        "channel" channel: Option<String>,
        /// Only versions of this app version.
        "appVersion" app_version: Option<Word>,
        /// Whether prereleases are accepted too.
        "prerelease" prerelease: Option<bool>,
    }
}

keys! {
    pub(super) struct Upgrade {
        /// The channel of this upgrade; without it, the upgrade is possible in every channel.
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
        /// The files that the build creates, relative to the package.
        "outputs" outputs: Option<Vec<String>>,
        /// Environment variables that the program gets, besides `PATH` and a few fixed ones.
        "env" env: Option<Vec<String>>,
        /// Programs that it runs: if one of them changes, the package is built again.
        "tools" tools: Option<Vec<String>>,
    }
}
