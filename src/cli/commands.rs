//! The commands of mu: one row each, from which the command line, what runs, the groups of its help and the descriptions of answers
//! follow.
//!
//! The arguments of a command, and what it does, are in its own file. Commands below a command are declared there, too; their answers
//! are below.

use clap::Subcommand;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::cli::context::{CommandExit, Context, Packages};
#[cfg(feature = "hub")]
use crate::cli::pack;
#[cfg(feature = "exec")]
use crate::cli::plugin;
use crate::cli::schema::Shape;
#[cfg(feature = "git")]
use crate::cli::{affected, edit};
use crate::cli::{
    audit, change, complete, config, diff, get, graph, login, machine, manifest, schema, search,
    status, trust, update, vendor,
};
#[cfg(feature = "publish")]
use crate::cli::{hub, hub_token, publish};
use crate::ops::audit::Audit;
use crate::ops::build::BuildReport;
use crate::ops::cache::Filled;
use crate::ops::diff::Difference;
use crate::ops::graph::Images;
use crate::ops::graph::Licenses;
use crate::ops::info::{Info, PackageReadme, VersionList};
#[cfg(feature = "publish")]
use crate::ops::mirror::Mirrored;
#[cfg(feature = "git")]
use crate::ops::patch::{Patches, WorkingCopy};
use crate::ops::search::SearchResult;
use crate::ops::status::Status;
use crate::ops::trust::{TrustOverview, Vouched, WrittenTrust};
use crate::ops::vendor::Vendored;
use crate::ops::vendor::cluster::{CrossplaneResources, Subscribed};
use crate::ops::vendor::kcl::VendoredModules;
use crate::ops::verify::{Listed, Member};
use crate::ops::why::Why;
use crate::ops::{cache as stored, verify};
use crate::report::{Document, Failure};

/// `Variant(Arguments) "name" in Group`, the Cargo feature that has it, whether it `asks` what registries have now, so that no answer
/// is recent enough, what runs, and what it `answers` with `--json`, where that is described.
macro_rules! commands {
    (|$context:ident, $arguments:ident, $program:ident| $(
        $(#[$about:meta])*
        $variant:ident($kind:ty) $name:literal in $group:ident
            $(if ($condition:meta))? $(asks ($asks:expr))?
            => $run:expr $(, answers [$($answer:ty),+])?;
    )*) => {
        // Each command is described only when its help is needed.
        #[derive(Debug, Subcommand)]
        #[command(defer = true)]
        pub(super) enum Command {
            $($(#[cfg($condition)])? $(#[$about])* $variant($kind),)*
        }

        impl Command {
            /// Whether it is about what registries have now, so that no answer is recent enough.
            pub(super) fn asks_registries(&self) -> bool {
                match self {
                    $($(#[cfg($condition)])? Self::$variant($arguments) => {
                        let _ = $arguments;
                        false $(|| $asks)?
                    })*
                }
            }

            /// Runs it; `program` describes all commands.
            pub(super) fn run(
                self,
                $context: &Context,
                $program: fn() -> clap::Command,
            ) -> CommandExit {
                match self {
                    $($(#[cfg($condition)])? Self::$variant($arguments) => $run,)*
                }
            }
        }

        /// The groups of commands in help, with the names of their commands.
        pub(super) const GROUPED: &[(&str, &str)] = &[
            $($(#[cfg($condition)])? (stringify!($group), $name),)*
        ];

        /// The answers of commands; some have several, depending on flags.
        const ANSWERS: &[(&str, &[Shape])] = &[
            $($(#[cfg($condition)])? ($name, &[$($(answer_shape::<$answer>),+)?]),)*
        ];
    };
}

commands! { |context, arguments, program|
    /// Start a package (Mu.yaml) or a workspace (.mu/workspace.yaml)
    Init(manifest::InitArguments) "init" in Start
        => manifest::run_init(context, arguments),
        answers [manifest::Created];
    /// Take over what another tool lists, at the versions in use
    Import(manifest::ImportArguments) "import" in Start
        => manifest::run_import(context, arguments),
        answers [manifest::Takeover<'_>];
    /// Install the workspace's dependencies, or other packages
    #[command(visible_aliases = ["install", "i"])]
    Get(get::GetArguments) "get" in Start asks (arguments.update)
        => get::run(context, arguments),
        answers [change::Answer<'_>];
    /// Add dependencies to Mu.yaml, and install them
    Add(get::AddArguments) "add" in Start
        => get::run_add(context, arguments),
        answers [change::Answer<'_>];
    /// Remove dependencies from Mu.yaml, Mu.lock and the packs
    #[command(visible_alias = "rm")]
    Remove(get::RemoveArguments) "remove" in Start
        => get::run_remove(context, arguments),
        answers [change::Answer<'_>];
    /// Move to newer versions that Mu.yaml allows
    #[command(visible_alias = "up")]
    Update(update::UpdateArguments) "update" in Versions asks (true)
        => update::run(context, arguments),
        answers [change::Answer<'_>];
    /// Move to the newest releases, and raise the requirements in Mu.yaml
    Upgrade(update::UpgradeArguments) "upgrade" in Versions asks (true)
        => update::run_upgrade(context, arguments),
        answers [change::Answer<'_>];
    /// Move a package to an older version
    Downgrade(update::DowngradeArguments) "downgrade" in Versions asks (true)
        => update::run_downgrade(context, &arguments),
        answers [change::Answer<'_>];
    /// Write the locked versions into Mu.yaml as pins
    Pin(manifest::PinArguments) "pin" in Versions
        => manifest::run_pin(context, arguments),
        answers [change::Answer<'_>];
    /// Remove pins
    Unpin(manifest::UnpinArguments) "unpin" in Versions
        => manifest::run_unpin(context, arguments),
        answers [change::Answer<'_>];
    /// Change files of a package before it is installed
    Patch(edit::PatchArguments) "patch" in Versions if (feature = "git")
        => edit::run_patch(context, &arguments),
        answers [WorkingCopy, Patches, change::Answer<'_>];
    /// Work on a package that the workspace uses, in a clone of its repository
    Edit(edit::EditArguments) "edit" in Start if (feature = "git")
        => edit::run(context, arguments),
        answers [edit::Edits, edit::Done];
    /// Show which versions would be chosen, and change nothing
    Resolve(update::ResolveArguments) "resolve" in Versions
        => update::run_resolve(context, arguments),
        answers [change::Answer<'_>, update::Compared<'_>];
    /// Show which versions would be chosen, and what requires them: `mu resolve --explain`
    #[command(name = "what-if")]
    WhatIf(update::ResolveArguments) "what-if" in Versions
        => update::run_what_if(context, arguments),
        answers [change::Answer<'_>, update::Compared<'_>];
    /// Show the folder that a reference points to
    Which(status::WhichArguments) "which" in Inspect
        => status::run_which(context, &arguments),
        answers [status::Place, status::Places];
    /// List what is installed
    #[command(visible_alias = "ls")]
    List(status::ListArguments) "list" in Inspect
        => status::run_list(context, &arguments),
        answers [Packages<Listed>, Packages<Member>];
    /// Show the dependency tree
    Tree(graph::TreeArguments) "tree" in Inspect
        => graph::run_tree(context, &arguments),
        answers [graph::TreeAnswer];
    /// Draw the dependency graph
    Graph(graph::GraphArguments) "graph" in Inspect
        => graph::run(context, &arguments),
        answers [graph::Answer<'_>];
    /// Show why a package is installed, and why this version
    Why(graph::WhyArguments) "why" in Inspect
        => graph::run_why(context, &arguments),
        answers [Why];
    /// Show which packages have newer versions
    Outdated(update::OutdatedArguments) "outdated" in Inspect asks (true)
        => update::run_outdated(context, &arguments),
        answers [update::OutdatedPackages];
    /// Show what changed between two versions of a package
    Diff(diff::DiffArguments) "diff" in Inspect asks (true)
        => diff::run(context, &arguments),
        answers [Difference];
    /// Show the state of the workspace: its packages, lock and packs
    Status(status::StatusArguments) "status" in Inspect
        => status::run(context, &arguments),
        answers [Status];
    /// List the packages of the workspace that a branch affects
    Affected(affected::AffectedArguments) "affected" in Inspect if (feature = "git")
        => affected::run(context, &arguments),
        answers [crate::ops::affected::Affected];
    /// Search all registries for packages
    Search(search::SearchArguments) "search" in Inspect
        => search::run(context, arguments),
        answers [SearchResult, search::Capabilities];
    /// Show what a package is and how to install it
    Info(search::InfoArguments) "info" in Inspect asks (true)
        => search::run_info(context, &arguments),
        answers [Info, PackageReadme];
    /// List the versions of a package
    Versions(search::VersionsArguments) "versions" in Inspect asks (true)
        => search::run_versions(context, arguments),
        answers [VersionList];
    /// List the container images that packages run
    Images(audit::ImagesArguments) "images" in Inspect
        => audit::run_images(context, &arguments),
        answers [Images];
    /// List the licences of packages, and check them
    Licenses(audit::LicensesArguments) "licenses" in Inspect
        => audit::run_licenses(context, &arguments),
        answers [Licenses];
    /// Write a bill of materials (CycloneDX or SPDX)
    Sbom(audit::SbomArguments) "sbom" in Inspect
        => audit::run_sbom(context, &arguments);
    /// Look for withdrawn versions and for advisories
    Audit(audit::AuditArguments) "audit" in Inspect asks (true)
        => audit::run(context, &arguments),
        answers [Audit];
    /// Hash the installed packages again, and compare them with Mu.lock
    Verify(status::VerifyArguments) "verify" in Inspect
        => status::run_verify(context, &arguments),
        answers [verify::Report, verify::TrustReport];
    /// Show who must have signed which packages, and who has
    Trust(trust::TrustArguments) "trust" in Inspect
        => trust::run(context, &arguments),
        answers [TrustOverview];
    /// Fill the store with what Mu.lock names, and install nothing
    Fetch(machine::FetchArguments) "fetch" in Versions
        => machine::run_fetch(context, &arguments),
        answers [Filled];
    /// Run the builds of trusted packages, and install the results
    Build(get::BuildArguments) "build" in Versions
        => get::run_build(context, arguments),
        answers [BuildReport];
    /// Keep packs in the workspace as files to commit
    Vendor(vendor::VendorArguments) "vendor" in Versions
        => vendor::run(context, &arguments),
        answers [change::Answer<'_>, vendor::Undone, Vendored, VendoredModules, CrossplaneResources, Subscribed];
    /// Show or raise the version in Mu.yaml
    Version(manifest::VersionArguments) "version" in Publish
        => manifest::run(context, arguments),
        answers [manifest::Answer];
    /// Create the archive of a package
    Pack(pack::PackArguments) "pack" in Publish if (feature = "hub")
        => pack::run(context, arguments),
        answers [pack::Answer<'_>];
    /// Pack a package and publish it
    Publish(publish::PublishArguments) "publish" in Publish if (feature = "publish") asks (true)
        => publish::run(context, arguments),
        answers [Packages<publish::Package<'_>>];
    /// Withdraw a published version
    Yank(publish::YankArguments) "yank" in Publish if (feature = "publish")
        => publish::run_yank(context, arguments),
        answers [publish::NoticeAnswer];
    /// Say that nobody looks after a published version any more
    Deprecate(publish::DeprecateArguments) "deprecate" in Publish if (feature = "publish")
        => publish::run_deprecate(context, arguments),
        answers [publish::NoticeAnswer];
    /// Tag a published version
    Tag(publish::TagArguments) "tag" in Publish if (feature = "publish")
        => publish::run_tag(context, arguments),
        answers [publish::TagAnswer];
    /// Copy packages into another hub or registry
    Mirror(publish::MirrorArguments) "mirror" in Publish if (feature = "publish") asks (true)
        => publish::run_mirror(context, arguments),
        answers [Mirrored];
    /// Store a token for a registry's host
    Login(login::LoginArguments) "login" in Publish
        => login::run(context, &arguments),
        answers [login::Login];
    /// Remove the token for a registry's host
    Logout(login::LogoutArguments) "logout" in Publish
        => login::run_logout(context, &arguments),
        answers [login::Logout];
    /// Show whose the token for a registry's host is, and what it allows
    #[command(name = "whoami")]
    WhoAmI(login::WhoAmIArguments) "whoami" in Publish
        => login::run_whoami(context, &arguments),
        answers [login::WhoAmI];
    #[command(subcommand)]
    Registry(config::RegistryCommand) "registry" in Maintain
        => config::run_registry(context, arguments);
    #[command(subcommand)]
    Hub(hub::HubCommand) "hub" in Publish if (feature = "publish")
        => hub::run(context, arguments);
    #[command(subcommand)]
    Cache(machine::CacheCommand) "cache" in Maintain
        => machine::run(context, &arguments);
    #[command(subcommand)]
    Config(config::ConfigCommand) "config" in Maintain
        => config::run(context, &arguments);
    /// Show folders and variables, and where each comes from
    Env(config::EnvironmentArguments) "env" in Maintain
        => config::run_environment(context, &arguments),
        answers [config::Settings];
    #[command(subcommand)]
    Plugin(plugin::PluginCommand) "plugin" in Maintain if (feature = "exec")
        => plugin::run(context, &arguments);
    /// Check the setup of this machine, and contact each registry
    Doctor(machine::DoctorArguments) "doctor" in Maintain
        => machine::run_doctor(context, &arguments),
        answers [machine::Answer];
    /// Print the names that can follow what was typed
    #[command(name = "__complete", hide = true)]
    Complete(complete::CompleteArguments) "__complete" in Maintain
        => complete::run(context, &arguments, program);
    /// Print completions for a shell
    Completions(complete::CompletionsArguments) "completions" in Maintain
        => complete::run_completions(context, &arguments, &mut program()),
        answers [complete::Completions];
    /// Print the manual page, or write a page for each command
    Man(complete::ManArguments) "man" in Maintain
        => complete::man(context, &arguments, program()),
        answers [complete::Page, complete::Folder];
    /// Print the JSON schema of a file, or of a command's answer
    Schema(schema::SchemaArguments) "schema" in Maintain
        => schema::run(context, &arguments, &answers());
}

/// The answers of commands below other commands, and of a command that failed.
const OTHER_ANSWERS: &[(&str, &[Shape])] = &[
    ("cache clean", &[answer_shape::<machine::Cleaned>]),
    ("cache dir", &[answer_shape::<machine::Folder>]),
    ("cache prune", &[answer_shape::<stored::Pruned>]),
    ("cache size", &[answer_shape::<stored::CacheSize>]),
    ("config get", &[answer_shape::<config::Settings>]),
    ("config list", &[answer_shape::<config::Settings>]),
    ("config set", &[answer_shape::<config::Wrote>]),
    ("config unset", &[answer_shape::<config::Wrote>]),
    ("error", &[Failure::json_schema]),
    #[cfg(feature = "publish")]
    ("hub check", &[answer_shape::<hub::Check<'_>>]),
    #[cfg(feature = "publish")]
    ("hub init", &[answer_shape::<hub::Init<'_>>]),
    #[cfg(feature = "publish")]
    ("hub token add", &[answer_shape::<hub_token::Added<'_>>]),
    #[cfg(feature = "publish")]
    ("hub token list", &[answer_shape::<hub_token::Tokens>]),
    #[cfg(feature = "publish")]
    ("hub token revoke", &[answer_shape::<hub_token::Revoked<'_>>]),
    #[cfg(feature = "publish")]
    ("hub tidy", &[answer_shape::<hub::Tidy<'_>>]),
    #[cfg(feature = "exec")]
    ("plugin check", &[answer_shape::<plugin::Checked>]),
    #[cfg(feature = "exec")]
    ("plugin list", &[answer_shape::<plugin::Listed>]),
    #[cfg(feature = "exec")]
    ("plugin run", &[answer_shape::<plugin::Said>]),
    ("registry add", &[answer_shape::<config::WroteRegistry>]),
    ("registry list", &[answer_shape::<config::Registries<'_>>]),
    ("registry remove", &[answer_shape::<config::WroteRegistry>]),
    ("trust add", &[answer_shape::<WrittenTrust>]),
    ("trust allow", &[answer_shape::<WrittenTrust>]),
    ("trust show", &[answer_shape::<Vouched>]),
];

/// All answers that are described, by the names of their commands.
pub(super) fn answers() -> Vec<(&'static str, &'static [Shape])> {
    let all = ANSWERS.iter().chain(OTHER_ANSWERS).copied();
    let mut described: Vec<_> = all.filter(|(_, shapes)| !shapes.is_empty()).collect();
    described.sort_unstable_by_key(|(name, _)| *name);
    described
}

fn answer_shape<A: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let description = A::json_schema(generator).remove("description");
    let mut schema = Document::<A>::json_schema(generator);
    schema.insert("description".to_owned(), description.unwrap_or_default());
    schema
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    /// Help shows commands by these names, and leaves out a command of another one.
    #[test]
    fn every_row_has_the_name_of_its_command() {
        let program = Cli::command();
        let names: Vec<&str> = program.get_subcommands().map(clap::Command::get_name).collect();
        let rows: Vec<&str> = GROUPED.iter().map(|(_, name)| *name).collect();
        assert_eq!(rows, names);
    }
}
