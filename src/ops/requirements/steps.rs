//! What one command of a way out would change: it is tried on the text of the files, in memory, before anybody is told to paste it.
//!
//! The functions of the command itself make the change, so what it refuses is refused here, and what it overlooks is overlooked.

use crate::manifest;
use crate::manifest::edit::Section;
use crate::ops::requirements::editing::{Editing, refuse_several};
use crate::ops::requirements::{print_extra, references_without};
use crate::ops::session::member;
use crate::ops::{CommandError, Session};
use crate::reference::PackageId;

/// One change of one command.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CommandChange {
    /// `mu add` of one reference: the package as the command names it and the list of its manifest, the entry, and the channel and app
    /// version as flags, where an empty one removes a key.
    Add((Option<String>, Section), manifest::Requirement, [Option<String>; 2]),
    /// `mu get` of one reference.
    Get(PackageId, manifest::Requirement),
    /// `mu remove` of one package, from this manifest, or from wherever the command finds it.
    Remove(Option<usize>, PackageId),
}

impl CommandChange {
    /// Makes the change in memory.
    ///
    /// # Errors
    ///
    /// When the command would refuse it, or cannot make it in the text of the file.
    pub(crate) fn make_change(
        &self,
        session: &Session,
        editing: &mut Editing,
        extra: &mut Vec<String>,
    ) -> Result<(), CommandError> {
        match self {
            Self::Add((package, section), dependency, [channel, app_version]) => {
                let member = member::target(session, package.as_deref(), "mu add REF -p PACKAGE")?;
                let narrowing = [channel.as_ref(), app_version.as_ref()];
                let is_narrowed = narrowing.iter().any(Option::is_some) || dependency.prerelease;
                if is_narrowed {
                    editing.narrow(session, (member, *section), dependency, narrowing)?;
                }
                editing.write_dependency(session, member, *section, dependency.clone())
            }
            Self::Get(id, dependency) => {
                *extra = references_without(session, extra, id);
                extra.push(print_extra(dependency));
                Ok(())
            }
            Self::Remove(member, id) => {
                let everywhere = || (0..session.workspace.members.len()).collect();
                let targets: Vec<usize> = match member {
                    Some(member) => vec![*member],
                    None => member::around(session)?.map_or_else(everywhere, |index| vec![index]),
                };
                let text = session.short_name(id);
                refuse_several(session, &editing.changed, &targets, &text, id)?;
                editing.leave(session, &targets, &text, id)?;
                *extra = references_without(session, extra, id);
                Ok(())
            }
        }
    }
}
