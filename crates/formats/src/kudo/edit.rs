//! The tasks of operators, which are not edited: a dependency of an operator is a step of its plans, too.

use std::path::Path;

use mu_manifest::Requirement;
use mu_manifest::edit::{Dialect, Placed};
use mu_manifest::source::{New, Problem, SourceError};

use super::OPERATOR;

/// The dependencies of operators.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tasks;

fn refused() -> Problem {
    Problem::new(format!("mu does not edit the tasks in `{OPERATOR}`"))
}

impl Dialect for Tasks {
    fn requirements(&self, _path: &Path, _text: &str) -> Result<Vec<Placed>, SourceError> {
        Ok(Vec::new())
    }

    fn check(&self, _path: &Path, _text: &str, new: Option<&Requirement>) -> Result<(), Problem> {
        Err(refused().help(match new {
            Some(new) => format!(
                "write a task `{{name: NAME, kind: KudoOperator, spec: {{package: {}, appVersion: V, operatorVersion: V}}}}`, and use it in a plan",
                new.reference.name().leaf()
            ),
            None => "change it there".to_owned(),
        }))
    }

    fn entry(&self, new: &Requirement) -> Result<(New, Requirement), Problem> {
        self.check(Path::new(""), "", Some(new))?;
        Err(refused())
    }

    fn version(&self, _wanted: &Requirement) -> Result<String, Problem> {
        Err(refused())
    }
}
