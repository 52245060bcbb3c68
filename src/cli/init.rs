//! `mu init`.

use clap::Args;
use serde_json::json;

use crate::cli::{Context, Ending};
use crate::ops::init::{InitRequest, init};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mu init                              a package named after this folder
  mu init acme/web
  mu init --workspace --namespace acme
  mu init acme/web --workspace         both")]
pub(crate) struct Arguments {
    /// The package's name; left out, this folder's place in the workspace, or its name
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Begin a workspace
    #[arg(long)]
    workspace: bool,
    /// What the workspace's folders leave out of names: NAME, or BASE/NAME
    #[arg(long, value_name = "NS", requires = "workspace")]
    namespace: Option<String>,
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Ending {
    let request = InitRequest {
        name: arguments.name.clone(),
        workspace: arguments.workspace,
        namespace: arguments.namespace.clone(),
    };
    let files = init(&context.environment, &request)?;
    if context.shell.is_json() {
        let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
        context.json(&json!({ "files": files }))?;
        return Ok(0);
    }
    for file in &files {
        let shown = file.strip_prefix(&context.environment.current).unwrap_or(file);
        context.line(&format!("wrote {}", shown.display()))?;
    }
    context.shell.status("next: `mu add REF` depends on a package, `mu get` installs");
    Ok(0)
}
