//! `mu images`, `mu licenses`, `mu sbom` and `mu audit`: what is in use, what has changed about it, and how to mend that, for
//! those who have to answer for it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::cli::context::{CommandExit, Context, Stop};
use crate::ops::audit::{Audit, AuditMove, Audited, AuditedFeed, Finding, Unmended, audit, sarif};
use crate::ops::graph::images;
use crate::ops::graph::licenses;
use crate::ops::sbom::{SbomFormat, sbom};
use crate::ops::session::error::{in_one_line, quoted_for_shell};
use crate::ops::update::{UpdateRequest, update};
use crate::ops::{Code, CommandError, OperationScope, Session, View};
use crate::reference::PackageId;
use crate::report::{BAD, FAINT, GOOD, NOTICE, PLAIN, STRONG, Table, count};

/// The version of this program, as SARIF and a bill of materials have it.
const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(Debug, Args)]
#[command(after_help = "\
Asks the registries whether a locked version was withdrawn, is no longer maintained, has moved or is gone, and looks for advisories about it in the feeds that the settings name: folders and files of OSV. The list of packages is sent nowhere. Public databases have no charts, modules or operators: without a feed of your own, no advisory is found. `mu images` lists the container images, which scanners know.

Fails if something is found, or if a feed cannot be read.

Examples:
  mu audit
  mu audit --fix
  mu audit --sarif > mu.sarif
  # in .mu/workspace.yaml:
  # advisories: [./advisories, https://security.acme.co/osv/all.zip]
  # audit:
  #   ignore: {ACME-2026-7: \"until 2026-12-31, we do not use that part\"}")]
pub(crate) struct AuditArguments {
    /// Move packages to versions that mend what was found, as `mu update PKG` does
    #[arg(long)]
    fix: bool,
    /// Print the findings as SARIF, for code scanning
    #[arg(long)]
    sarif: bool,
}

pub(crate) fn run(context: &Context, arguments: &AuditArguments) -> CommandExit {
    let (mut session, mut audited) = look(context)?;
    if arguments.fix {
        let before = audited;
        let (tried, failed) = mend(context, &before)?;
        if tried.is_empty() {
            audited = before;
        } else {
            (session, audited) = look(context)?;
            note_moves(&session, &before, &tried, failed, &mut audited);
        }
    }
    if arguments.sarif {
        // Its format has no place for the error, so it is not a document of mu.
        context.line(&format!("{:#}", sarif(&session, &audited, VERSION)?))?;
        return Ok(audited.failure.map_or(0, |failure| failure.code.exit_status()));
    }
    let is_fixable = audited.audit.findings.iter().any(|finding| finding.fixed.is_some());
    let failure = audited.failure.map(|failure| match is_fixable && !arguments.fix {
        true => failure.hint("`mu audit --fix` moves packages to versions that mend it"),
        false => failure,
    });
    let packages = audited.lock.packages.iter();
    let packages = packages.filter(|package| !package.source.is_authored_folder()).count();
    context.answer_checks(&audited.audit, failure, |audit| print(context, audit, packages))
}

/// Looks for what is wrong, in a session of its own.
fn look(context: &Context) -> Result<(Session, Audited), CommandError> {
    let session = context.open_in(OperationScope::Workspace, View::Team)?;
    let audited = audit(&session)?;
    Ok((session, audited))
}

/// A package, and why it could not be moved.
type Failed = (PackageId, String);

/// Moves the packages for which a version is known that mends something; returns them, and why some could not be moved.
fn mend(
    context: &Context,
    before: &Audited,
) -> Result<(BTreeSet<PackageId>, Vec<Failed>), CommandError> {
    let fixable = before.audit.findings.iter().filter(|finding| finding.fixed.is_some());
    let fixable: BTreeSet<PackageId> = fixable.map(|finding| finding.package.clone()).collect();
    let moved = |packages: Vec<String>| {
        let session = context.open_changing_session(OperationScope::Workspace)?;
        update(&session, &UpdateRequest { packages, ..UpdateRequest::default() }, false).map(drop)
    };
    if fixable.is_empty() || moved(fixable.iter().map(ToString::to_string).collect()).is_ok() {
        return Ok((fixable, Vec::new()));
    }
    // One that cannot move must not keep the others.
    let failed = fixable.iter().filter_map(|id| {
        let error = moved(vec![id.to_string()]).err()?;
        Some((id.clone(), in_one_line(&*error.error)))
    });
    let failed = failed.collect();
    Ok((fixable, failed))
}

/// Notes what was moved, and why something that could be mended is still there.
fn note_moves(
    session: &Session,
    before: &Audited,
    tried: &BTreeSet<PackageId>,
    failed: Vec<Failed>,
    now: &mut Audited,
) {
    let version = |audited: &Audited, id: &PackageId| {
        audited.lock.find(id).last().map(|package| package.version.clone())
    };
    for id in tried {
        let (from, to) = (version(before, id), version(now, id));
        if let (Some(from), true) = (&from, from != to) {
            now.audit.moves.push(AuditMove { package: id.clone(), from: from.clone(), to });
        }
    }
    let left = now.audit.findings.iter().filter(|finding| tried.contains(&finding.package));
    let left = left.filter_map(|Finding { package, id, fixed, version, .. }| {
        let fixed = fixed.as_ref()?;
        let error = failed.iter().find(|(failed, _)| failed == package).map(|(_, why)| why.clone());
        let why = error.unwrap_or_else(|| {
            let name = quoted_for_shell(&session.short_name(package));
            format!("{version} is the newest that is allowed, and {fixed} would mend it: `mu why {name}` shows what keeps it, `mu upgrade {name}` moves further")
        });
        Some(Unmended { package: package.clone(), id: id.clone(), why })
    });
    now.audit.unmended = left.collect();
}

fn print(context: &Context, audit: &Audit, packages: usize) -> Result<(), Stop> {
    // What was done comes first, then what is wrong, then what is not known or does not count, and the feeds at last.
    for AuditMove { package, from, to } in &audit.moves {
        let to = to.as_deref().unwrap_or("not used any more");
        let name = context.name(package);
        context.line(&format!("{GOOD}moved{GOOD:#} {name} {from} → {to}"))?;
    }
    for Unmended { package, id, why } in &audit.unmended {
        let why = context.short(why);
        let name = context.name(package);
        context.line(&format!("{NOTICE}not mended{NOTICE:#} {id} of {name}: {why}"))?;
    }
    let rows = audit.findings.iter().map(|finding| row(context, finding, BAD));
    let headings = ["finding", "package", "version", "fixed in", "what"];
    let table = Table::with_rows(headings, rows).without_empty_columns();
    if !table.is_empty() {
        context.print_table(&table)?;
    }
    let undecided = audit.undecided.iter().map(|finding| row(context, finding, NOTICE));
    let undecided = Table::with_rows(headings, undecided).without_empty_columns();
    if !undecided.is_empty() {
        context
            .line(&format!("{NOTICE}not known{NOTICE:#} whether this is about what is locked:"))?;
        context.print_table(&undecided)?;
    }
    for ignored in &audit.ignored {
        let (id, name) = (&ignored.finding.id, context.name(&ignored.finding.package));
        let (until, reason) = (&ignored.until, &ignored.reason);
        context
            .line(&format!("{FAINT}ignored until {until}: {id} of {name} ({reason}){FAINT:#}"))?;
    }
    let mut advisories = 0;
    for AuditedFeed { name, advisories: number, cached, error, .. } in &audit.feeds {
        advisories += number.unwrap_or_default();
        match (error, cached) {
            (Some(error), _) => context.line(&format!("{BAD}not read{BAD:#} {name}: {error}"))?,
            (None, true) => context
                .shell
                .status(&format!("`{name}` is as it was when it was last read: mu is offline")),
            (None, false) => {}
        }
    }
    if audit.lacks_feeds() {
        let why = match audit.feeds.is_empty() {
            true => "the settings name none under `advisories`",
            false => "hubs have no advisories of their own yet",
        };
        context.line(&format!(
            "no feed: {why}, so that no advisory was looked for; `mu images` lists what scanners know"
        ))?;
    }
    if audit.findings.is_empty() {
        let packages = count(packages, "package");
        let told = match audit.lacks_feeds() {
            true => format!("{packages}: nothing was withdrawn"),
            false => format!(
                "{packages}: nothing was withdrawn, and none of {} is about them",
                count(advisories, "advisory")
            ),
        };
        context.shell.status(&told);
    }
    Ok(())
}

/// A finding as a row.
fn row(
    context: &Context,
    finding: &Finding,
    style: anstyle::Style,
) -> [(anstyle::Style, String); 5] {
    // What a registry says is called by its kind: the package has its own column.
    let id = match finding.feed {
        Some(_) => &*finding.id,
        None => finding.id.split_once(':').map_or(&*finding.id, |(kind, _)| kind),
    };
    [
        (style, id.to_owned()),
        (STRONG, context.name(&finding.package).into_owned()),
        (PLAIN, finding.version.clone()),
        (GOOD, finding.fixed.clone().unwrap_or_default()),
        (PLAIN, context.short(&finding.why).into_owned()),
    ]
}

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
