//! `list`: the packages of the lock and whether they are installed, or those of the workspace itself.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use crate::lock::{LockedPackage, Source};
use crate::ops::apply::fetch::placed_folder;
use crate::ops::explain::carried::{Inside, carried};
use crate::ops::session::installed_packs::{folder_of, named, needed_packs};
use crate::ops::session::locked::version_of;
use crate::ops::session::words;
use crate::ops::{CommandError, Session};
use crate::packs::WantedPack;
use crate::reference::PackageId;

/// A package of the lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    /// The package.
    pub id: PackageId,
    /// Its version; for a replaced package, that of the pack that is still there.
    pub version: Option<String>,
    /// The channel that it was chosen from, if it is in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Where it comes from.
    pub source: Option<Source>,
    /// Its commit (Git).
    pub commit: Option<String>,
    /// Whether it is installed as the lock says.
    pub installed: bool,
    /// The folder of its pack; none for a package of the workspace.
    #[serde(serialize_with = "words::optional_path")]
    #[schemars(with = "Option<String>")]
    pub path: Option<PathBuf>,
    /// The package that is used in its place.
    pub replaced_by: Option<PackageId>,
    /// Other versions of a chart that Helm uses, because other charts carry them inside.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub helm: Vec<Inside>,
    /// Its version for people, with the commit if the version alone says nothing.
    #[serde(skip)]
    pub label: Option<String>,
}

/// A package of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Member {
    /// The package.
    pub id: PackageId,
    /// The name in its manifest.
    pub name: String,
    /// Its version, if it has one.
    pub version: Option<String>,
    /// Its folder.
    #[serde(serialize_with = "words::path")]
    #[schemars(with = "String")]
    pub path: PathBuf,
    /// Its folder relative to the root; `.` for the root itself.
    #[serde(skip)]
    pub place: String,
}

/// Lists the packages of the lock, followed by replaced packages.
///
/// # Errors
///
/// When lock or state cannot be read.
pub fn list(session: &Session) -> Result<Vec<Listed>, CommandError> {
    let lock = session.lockfile()?.unwrap_or_default();
    let packs = session.packs();
    let (indices, wanted): (Vec<usize>, Vec<WantedPack>) = needed_packs(&lock).unzip();
    let state = packs.recognized(|| named(&lock))?;
    let missing: BTreeSet<&str> =
        packs.missing(&state, &wanted).into_iter().map(|wanted| &*wanted.place).collect();
    let wanted: BTreeMap<usize, &WantedPack> = indices.into_iter().zip(&wanted).collect();
    let packages = lock.packages.iter().enumerate().map(|(index, package)| {
        let pack = wanted.get(&index);
        let is_installed = |pack: &&WantedPack| !missing.contains(&*pack.place);
        let placed = package.source.is_placed_pack().then(|| placed_folder(session, package).ok());
        let placed = placed.flatten().filter(|folder| folder.is_dir());
        let is_here = package.source.is_workspace_folder() || placed.is_some();
        Listed {
            installed: pack.map_or(is_here, is_installed),
            path: pack.map(|pack| packs.pack_path(&pack.place)).or(placed),
            ..Listed::new(&package.id, Some(package))
        }
    });
    // Its version is that of the pack, so without the pack it has none.
    let replaced = lock.replaced.iter().map(|replaced| {
        let kept = replaced.kept.as_deref();
        let path = kept.map(|kept| packs.pack_path(&folder_of(&kept.id)));
        let path = path.filter(|path| path.exists());
        let kept = kept.filter(|_| path.is_some());
        Listed {
            installed: path.is_some(),
            path,
            replaced_by: Some(replaced.by.clone()),
            ..Listed::new(&replaced.id, kept)
        }
    });
    let mut carried = carried(session, &lock);
    let with_carried = |listed: Listed| {
        let helm = carried.remove(&listed.id).into_iter().flatten().collect();
        Listed { helm, ..listed }
    };
    Ok(packages.chain(replaced).map(with_carried).collect())
}

impl Listed {
    fn new(id: &PackageId, package: Option<&LockedPackage>) -> Self {
        Self {
            id: id.clone(),
            version: package.map(|package| package.version.clone()),
            channel: package.and_then(|package| package.channel.clone()),
            source: package.map(|package| package.source.clone()),
            commit: package.and_then(|package| Some(package.commit.as_ref()?.to_string())),
            installed: false,
            path: None,
            replaced_by: None,
            helm: Vec::new(),
            label: package.map(version_of),
        }
    }
}

/// Lists the packages of the workspace itself.
pub fn members(session: &Session) -> Vec<Member> {
    let members = session.workspace.members.iter().map(|member| Member {
        id: member.id.clone(),
        name: member.manifest.name.to_string(),
        version: member.manifest.version.as_ref().map(ToString::to_string),
        path: member.folder.clone(),
        place: if member.place.is_empty() { ".".to_owned() } else { member.place.clone() },
    });
    members.collect()
}
