//! `mu cache`.

use clap::Subcommand;
use serde_json::json;

use crate::cli::{Context, Ending};
use crate::ops::cache;
use crate::report::{FAINT, count, size};
use crate::store::Store;

/// Care for what mu keeps on this machine
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Everything in the cache can be deleted at any time: it is fetched again when it is needed. Packs of \
workspaces with `link: symlink` are links to it, though, which `prune` leaves alone: after `clean`, run \
`mu get` there.

Examples:
  mu cache dir
  mu cache size
  mu cache prune")]
pub(crate) enum Command {
    /// Show the cache folder
    Dir,
    /// Show how large it is
    Size,
    /// Remove stored packages that no pack on this machine is linked to
    Prune,
    /// Remove everything
    Clean,
}

pub(crate) fn run(context: &Context, command: &Command) -> Ending {
    let cache = &context.environment.cache;
    let store = Store::new(cache);
    let is_json = context.shell.is_json();
    match command {
        Command::Dir if is_json => context.json(&json!({ "path": cache.display().to_string() }))?,
        Command::Dir => context.line(&cache.display().to_string())?,
        Command::Size => {
            let parts = cache::cache_size(cache)?.parts;
            let total: u64 = parts.iter().map(|(_, bytes)| bytes).sum();
            if is_json {
                let parts: serde_json::Map<_, _> =
                    parts.into_iter().map(|(part, bytes)| (part, json!(bytes))).collect();
                context.json(&json!({ "total": total, "parts": parts }))?;
                return Ok(0);
            }
            for (part, bytes) in &parts {
                context.line(&format!("{part:<10} {}", size(*bytes)))?;
            }
            context.line(&format!("{:<10} {}", "total", size(total)))?;
        }
        Command::Prune => {
            let pruned = cache::prune(&store, cache, &*context.shell)?;
            if is_json {
                context.json(&json!({ "removed": pruned.trees, "bytes": pruned.bytes }))?;
                return Ok(0);
            }
            context.line(&format!(
                "removed {} {FAINT}({}){FAINT:#}",
                count(pruned.trees, "package"),
                size(pruned.bytes)
            ))?;
        }
        Command::Clean => {
            cache::clean(&store, cache, &*context.shell)?;
            if is_json {
                context.json(&json!({ "path": cache.display().to_string() }))?;
                return Ok(0);
            }
            context.line(&format!("emptied {}", cache.display()))?;
        }
    }
    Ok(0)
}
