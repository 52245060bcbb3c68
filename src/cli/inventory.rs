//! `mu images`, `mu licenses` and `mu sbom`: what is in use, for those who have to answer for it.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::cli::context::{CommandExit, Context};
use crate::ops::images::images;
use crate::ops::licenses::licenses;
use crate::ops::sbom::{SbomFormat, sbom};
use crate::ops::{Code, CommandError, OperationScope, View};
use crate::report::{BAD, FAINT, GOOD, NOTICE, PLAIN, STRONG, Table, count};

/// The version of this program, as a bill of materials has it.
const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(Debug, Args)]
#[command(after_help = "\
Reads what packages say of themselves: the annotations `helm.sh/images`, `artifacthub.io/images` and `images` of charts, the images of operators, and Crossplane's packages, which are images. Packages that declare none are named, because their templates may have some: `helm template` shows all.

Contacts no registry; `mu fetch` brings what is not on this machine yet.

Examples:
  mu images
  helm template . > /tmp/rendered.yaml && mu images --rendered /tmp/rendered.yaml
  mu images --json | jq -r '.images[].image'")]
pub(crate) struct ImagesArguments {
    /// Read images from what `helm template` wrote, too
    #[arg(long, value_name = "FILE", num_args = 1..)]
    rendered: Vec<PathBuf>,
}

pub(crate) fn run_images(context: &Context, arguments: &ImagesArguments) -> CommandExit {
    let session = context.open_in(OperationScope::Workspace, View::Team)?;
    let current = &context.environment.current;
    let rendered: Vec<PathBuf> = arguments.rendered.iter().map(|path| current.join(path)).collect();
    context.answer(&images(&session, &rendered)?, |answer| {
        let rows = answer.images.iter().map(|used| {
            let packages = used.packages.iter().map(|package| context.name(&package.id));
            let packages = packages.collect::<Vec<_>>().join(", ");
            let by = used.declared_by.iter().map(|by| context.path_for_people(by.as_ref()));
            let by = by.collect::<Vec<_>>().join(", ");
            [(STRONG, used.image.clone()), (PLAIN, packages), (FAINT, by)]
        });
        let table = Table::with_rows(["image", "package", "declared by"], rows);
        context.table(&table, "no package declares an image")?;
        if answer.undeclared.is_empty() {
            return Ok(());
        }
        let packages = count(answer.undeclared.len(), "package");
        context.line(&format!("{NOTICE}images are not known{NOTICE:#} of {packages}:"))?;
        for silent in &answer.undeclared {
            let version = silent.package.version.as_deref().unwrap_or_default();
            let name = context.name(&silent.package.id);
            context.line(&format!("  {name} {version}: {}", silent.reason))?;
        }
        Ok(())
    })
}

#[derive(Debug, Args)]
#[command(after_help = "\
Shows what packages say. With `licenses` in the settings, a package with another licence, or with none, is an error; the workspace's own packages are only shown. Of `MIT OR Apache-2.0`, one is enough.

Contacts no registry; `mu fetch` brings what is not on this machine yet.

Examples:
  mu licenses
  # in .mu/workspace.yaml:
  # licenses:
  #   allow: [Apache-2.0, MIT]
  #   except: {aws/legacy: agreed with the authors}")]
pub(crate) struct LicensesArguments {}

pub(crate) fn run_licenses(context: &Context, _arguments: &LicensesArguments) -> CommandExit {
    let session = context.open_in(OperationScope::Workspace, View::Team)?;
    let answer = licenses(&session)?;
    let failure = (answer.refused > 0).then(|| {
        let refused = answer.packages.iter().filter(|one| one.allowed == Some(false));
        let lines = refused.map(|one| {
            let version = one.package.version.as_deref().unwrap_or_default();
            let license = one.license.as_deref().unwrap_or("no licence");
            format!("\n  {} {version}: {license}", one.package.id)
        });
        let what = count(answer.refused, "package");
        let message = format!("the settings do not allow the licence of {what}:");
        CommandError::new(Code::Untrusted, message + &lines.collect::<String>())
            .hint("write the licence under `licenses: allow` in `.mu/workspace.yaml`, or the package and the reason under `except`")
    });
    context.answer_checks(&answer, failure, |answer| {
        let rows = answer.packages.iter().map(|one| {
            let license = one.license.clone().unwrap_or_else(|| "none".to_owned());
            let style = match one.allowed {
                Some(true) => GOOD,
                Some(false) => BAD,
                None => PLAIN,
            };
            [
                (STRONG, context.name(&one.package.id).into_owned()),
                (PLAIN, one.package.version.clone().unwrap_or_else(|| "-".to_owned())),
                (style, license),
                (FAINT, one.reason.clone().unwrap_or_default()),
            ]
        });
        let table = Table::with_rows(["package", "version", "licence", "note"], rows);
        context.table(&table.without_empty_columns(), "there are no packages here")
    })
}

#[derive(Debug, Args)]
#[command(after_help = "\
Made of Mu.lock and of what is on this machine: the packages, what they need of each other, their licences, digests and places, and the container images that they declare. A package that declares no images is marked as incomplete. The same lock gives the same bytes; the date in SPDX is that of $SOURCE_DATE_EPOCH.

Contacts no registry; `mu fetch` brings what is not on this machine yet.

Examples:
  mu sbom > bom.cdx.json
  mu sbom --format spdx > bom.spdx.json")]
pub(crate) struct SbomArguments {
    /// The format of the bill
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    format: Format,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum Format {
    /// CycloneDX 1.6, as JSON
    #[default]
    #[value(name = "cyclonedx")]
    CycloneDx,
    /// SPDX 2.3, as JSON
    Spdx,
}

pub(crate) fn run_sbom(context: &Context, arguments: &SbomArguments) -> CommandExit {
    let session = context.open_in(OperationScope::Workspace, View::Team)?;
    let format = match arguments.format {
        Format::CycloneDx => SbomFormat::CycloneDx,
        Format::Spdx => SbomFormat::Spdx,
    };
    // Its format has no place for warnings, so it is not a document of mu.
    context.line(&format!("{:#}", sbom(&session, format, VERSION)?))?;
    Ok(0)
}
