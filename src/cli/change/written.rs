//! What a command wrote into manifests and the lock, with one line for each requirement.

use crate::cli::context::Context;
use crate::ops::{Outcome, Written};

/// The text for a requirement that accepts any version.
const ANY: &str = "any version";

/// What was written, or would be written.
pub(super) fn lines(context: &Context, outcome: &Outcome) -> Vec<String> {
    let mut lines: Vec<String> =
        outcome.written.iter().map(|written| line(context, outcome.dry_run, written)).collect();
    for path in &outcome.edited {
        // The change is in a comment, or in a line that is there only because other packages need it.
        let is_it = |written: &Written| written.manifest == *path && written.is_change();
        if !outcome.written.iter().any(is_it) {
            let wrote = if outcome.dry_run { "would write" } else { "wrote" };
            lines.push(format!("{wrote} {}", context.shown(path)));
        }
    }
    if !outcome.kept.is_empty() {
        let all = outcome.kept.join(" ");
        let members = outcome.members_manifest.as_ref();
        let members = members.map(|file| format!("; `--save` also writes it into {file}"));
        let members = members.unwrap_or_default();
        lines.push(format!("kept in Mu.lock until `mu remove {all}`{members}"));
    }
    lines
}

/// `added web/tls ^1.1.0 to acme/api (Mu.yaml)`, `aws/ec2 ~1.0.6 → ~2.0.0 in Mu.yaml`,
/// `removed web/tls from acme/api (Mu.yaml)`, `web/tls stays at ^1.1.0 in Mu.yaml; 2.0.0 exists`.
fn line(context: &Context, dry_run: bool, written: &Written) -> String {
    let Written { package, name, from, to, .. } = written;
    let list = if written.dev { ", devDependencies" } else { "" };
    let file = context.shown(&written.manifest);
    let version = |spec: &str| if spec == "latest" { String::new() } else { format!(" {spec}") };
    let any = |spec: &str| if spec == "latest" { ANY.to_owned() } else { spec.to_owned() };
    let mut line = match (from, to) {
        (None, Some(to)) => {
            let added = if dry_run { "would add" } else { "added" };
            format!("{added} {name}{} to {package} ({file}{list})", version(to))
        }
        (Some(from), Some(to)) if from == to => format!("{name} stays at {} in {file}", any(to)),
        (Some(from), Some(to)) => {
            let would = if dry_run { "would write " } else { "" };
            format!("{would}{name} {} → {} in {file}", any(from), any(to))
        }
        (_, None) => {
            let removed = if dry_run { "would remove" } else { "removed" };
            format!("{removed} {name} from {package} ({file}{list})")
        }
    };
    if let Some(newer) = &written.newer {
        match &written.passed_over {
            Some(why) => line.push_str(&format!("; {why}")),
            None => line.push_str(&format!("; {newer} exists")),
        }
        if !written.held_back_by.is_empty() {
            line.push_str(&format!(", held back by {}", written.held_back_by.join(" and ")));
        }
    }
    line
}
