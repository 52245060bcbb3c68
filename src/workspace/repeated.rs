//! Two packages of a workspace never have one name. Where manifests say none, folders of one name are told apart by their paths.

use std::collections::{HashMap, HashSet};

use super::{Workspace, WorkspaceError};
use crate::formats;
use crate::reference::{PackageId, Reference};

impl Workspace {
    /// Refuses packages of one name, after those that say no name have got one that nothing else here has.
    pub(super) fn refuse_repeated(&mut self) -> Result<(), WorkspaceError> {
        self.name_by_path();
        let mut seen = HashMap::with_capacity(self.members.len());
        for member in &self.members {
            if let Some(first) = seen.insert(&member.id, &member.manifest_path) {
                return Err(WorkspaceError::Repeated {
                    id: member.id.clone(),
                    first: first.clone(),
                    second: member.manifest_path.clone(),
                });
            }
        }
        Ok(())
    }

    /// Names those that say no name by their whole paths in the workspace, if others have the names of their folders, too.
    fn name_by_path(&mut self) {
        let mut seen = HashSet::with_capacity(self.members.len());
        let ids = self.members.iter().map(|member| &member.id);
        let repeated: HashSet<PackageId> = ids.filter(|id| !seen.insert(*id)).cloned().collect();
        if repeated.is_empty() {
            return;
        }
        let defaults = self.defaults();
        let members = self.members.iter_mut().filter(|member| repeated.contains(&member.id));
        for member in members.filter(|member| formats::says_no_name(&member.manifest_path)) {
            let by_path = Reference::parse(&member.place).ok();
            if let Some(name) =
                by_path.filter(|name| name.base().is_none() && name.local().is_none())
            {
                member.id = name.id(&defaults);
                member.manifest.name = name;
            }
        }
    }
}
