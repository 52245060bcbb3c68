//! The charts that Helm uses from inside of others, where these are other versions than those in Mu.lock.
//!
//! Helm knows only what a chart itself depends on: everything else is in the archives of that. They are looked for in `charts/` of the
//! workspace's charts, where `mu vendor` or Helm has put them, and otherwise among what is installed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use mu_formats::{Texts, helm};
use schemars::JsonSchema;
use serde::Serialize;

use crate::lock::{LockedPackage, Lockfile};
use crate::ops::Session;
use crate::ops::requirements::names::id_in;
use crate::ops::session::installed::needed_packs;
use crate::reference::{PackageId, Version};
use crate::{formats, fs};

/// How many charts may be inside each other.
const MOST_DEEP: usize = 8;

/// How many bytes of an archive are looked into.
const MOST_BYTES: u64 = 64 << 20;

/// A version of a chart inside another one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Inside {
    /// The version.
    pub version: String,
    /// The chart that carries it: `web`, or `mariadb inside web`.
    pub inside: String,
}

impl fmt::Display for Inside {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} inside {}, for Helm", self.version, self.inside)
    }
}

/// Versions inside of charts by the packages in Mu.lock that they are of.
pub(crate) type CarriedVersions = BTreeMap<PackageId, BTreeSet<Inside>>;

/// What Helm uses for the charts of the workspace otherwise than Mu.lock says.
pub(crate) fn carried(session: &Session, lock: &Lockfile) -> CarriedVersions {
    let mut carried = CarriedVersions::new();
    let charts = session.workspace.members.iter().filter(|member| {
        let format = formats::format_of_manifest(&member.manifest_path);
        format.is_some_and(|format| format.name == helm::FORMAT.name)
    });
    let packs = session.packs();
    let places: BTreeMap<usize, _> = needed_packs(lock).collect();
    for member in charts {
        for needed in &member.manifest.dependencies {
            let id = lock.used_for(&id_in(session, member, &needed.reference)).clone();
            let mut found = lock.packages.iter().enumerate();
            let Some((index, package)) = found.find(|(_, one)| one.id == id) else { continue };
            let name = id.name().leaf().to_owned();
            let archive = member.folder.join(format!(
                "{}/{name}-{}.tgz",
                helm::CHARTS_FOLDER,
                package.version
            ));
            let mut copies = Copies::default();
            match fs::read_if_there(&archive) {
                Ok(Some(bytes)) => copies.add_archive(&bytes, &[], false, MOST_DEEP),
                _ => {
                    let Some(pack) = places.get(&index) else { continue };
                    copies.add_folder(&packs.pack_path(&pack.place), &[name], MOST_DEEP);
                }
            }
            for (id, inside) in copies.differing(lock, package) {
                carried.entry(id).or_default().insert(inside);
            }
        }
    }
    carried
}

/// What the unpacked chart of a locked package carries otherwise than Mu.lock says.
pub(crate) fn carried_in(
    lock: &Lockfile,
    package: &LockedPackage,
    folder: &Path,
) -> Vec<(PackageId, Inside)> {
    let mut copies = Copies::default();
    copies.add_folder(folder, &[package.id.name().leaf().to_owned()], MOST_DEEP);
    copies.differing(lock, package)
}

/// Charts inside a chart.
#[derive(Default)]
struct Copies(Vec<Copied>);

struct Copied {
    name: String,
    version: String,
    /// The charts around it, the nearest first.
    around: Vec<String>,
}

impl Copies {
    /// Those in the folder of a chart that is in `around`, itself included.
    fn add_folder(&mut self, folder: &Path, around: &[String], depth: usize) {
        if depth == 0 {
            return;
        }
        for entry in fs::entries_if_there(&folder.join(helm::CHARTS_FOLDER)).unwrap_or_default() {
            let path = entry.path();
            let is_folder = fs::metadata(&path).is_ok_and(|found| found.is_dir());
            if is_folder && let Ok(Some(head)) = formats::helms_head(&path) {
                // In a folder, charts are in `charts/NAME/` or packed beside it, and each may have charts of its own.
                // `depth` ends this where somebody nests them on purpose.
                let within = [std::slice::from_ref(&head.name), around].concat();
                let around = around.to_vec();
                self.0.push(Copied { name: head.name, version: head.version, around });
                self.add_folder(&path, &within, depth - 1);
            } else if entry.file_name().to_str().is_some_and(is_archive)
                && let Ok(bytes) = fs::read(&path)
            {
                self.add_archive(&bytes, around, true, depth - 1);
            }
        }
    }

    /// Those in the archive of a chart inside of `around`; `counts` says whether the chart itself is one.
    fn add_archive(&mut self, bytes: &[u8], around: &[String], counts: bool, depth: usize) {
        if depth == 0 {
            return;
        }
        let files = mu_archive::pick(bytes, &is_of_chart, MOST_BYTES).unwrap_or_default();
        // The charts at their places, each with those around it.
        let mut charts: BTreeMap<String, Vec<String>> = BTreeMap::new();
        // The manifest of a chart comes before what is inside.
        for (path, content) in &files {
            let Some((place, file)) = path.rsplit_once('/') else { continue };
            // A file is either a manifest `web/charts/db/Chart.yaml`, which makes `web/charts/db` a place where charts
            // are inside, or an archive `web/charts/db/charts/deep-3.0.0.tgz`. Either way `outer` is the place of the
            // chart around it.
            let is_packed = file != helm::CHART;
            let outer = match is_packed {
                true => place.strip_suffix("/charts"),
                false => place.rsplit_once("/charts/").map(|(outer, _)| outer),
            };
            let within = outer.and_then(|outer| charts.get(outer));
            let within = within.map_or(around, Vec::as_slice).to_vec();
            if is_packed {
                self.add_archive(content, &within, true, depth - 1);
                continue;
            }
            let text = String::from_utf8_lossy(content).into_owned();
            let texts = Texts([(helm::CHART.to_owned(), text)].into());
            let Ok(head) = helm::head(&texts) else { continue };
            charts.insert(
                place.to_owned(),
                [std::slice::from_ref(&head.name), within.as_slice()].concat(),
            );
            if counts || outer.is_some() {
                self.0.push(Copied { name: head.name, version: head.version, around: within });
            }
        }
    }

    /// Those of the packages which `package` needs that have another version in `lock`.
    fn differing(self, lock: &Lockfile, package: &LockedPackage) -> Vec<(PackageId, Inside)> {
        // Only charts that the package needs can be the ones in the lock. Another chart of the same name may be carried
        // by chance.
        let mut below: BTreeSet<&PackageId> = BTreeSet::new();
        let mut next: Vec<&PackageId> = package.dependencies.iter().collect();
        while let Some(id) = next.pop() {
            let id = lock.used_for(id);
            if below.insert(id) {
                next.extend(lock.find(id).flat_map(|package| &package.dependencies));
            }
        }
        let read = |text: &str| Version::parse_lenient(text).ok();
        let differing = |copy: Copied| {
            let id = below.iter().find(|id| id.name().leaf() == copy.name)?;
            let own = read(&copy.version);
            let mut locked = lock.find(id);
            // As text first, since a chart may have a version that is none; `v1.0` and `1.0.0` are one version.
            let is_it = |one: &LockedPackage| {
                one.version == copy.version || (own.is_some() && read(&one.version) == own)
            };
            let inside = copy.around.join(" inside ");
            (!locked.any(is_it)).then(|| ((*id).clone(), Inside { version: copy.version, inside }))
        };
        let mut all: Vec<_> = self.0.into_iter().filter_map(differing).collect();
        all.sort();
        all.dedup();
        all
    }
}

/// Whether a path in the archive of a chart is that of its manifest, of the manifest of one inside, or of an archive inside.
fn is_of_chart(path: &str) -> bool {
    let mut folders: Vec<&str> = path.split('/').skip(1).collect();
    let file = folders.pop().unwrap_or_default();
    // Below the root's folder, only `charts/NAME/charts/NAME/…`, as Helm looks for them: a `Chart.yaml` among the
    // templates is none.
    let is_place =
        file == helm::CHART || (is_archive(file) && folders.pop() == Some(helm::CHARTS_FOLDER));
    is_place && folders.chunks(2).all(|pair| matches!(pair, [helm::CHARTS_FOLDER, _]))
}

fn is_archive(name: &str) -> bool {
    name.ends_with(".tgz")
}

#[cfg(test)]
mod tests {
    use mu_testing::tar_gz;

    use super::*;

    fn chart(name: &str, version: &str) -> (char, Vec<u8>) {
        ('f', format!("apiVersion: v2\nname: {name}\nversion: {version}\n").into_bytes())
    }

    #[test]
    fn charts_are_found_in_folders_and_archives_inside_of_each_other() {
        let inner = tar_gz([
            ("deep/Chart.yaml".to_owned(), chart("deep", "3.0.0")),
            ("deep/charts/deepest/Chart.yaml".to_owned(), chart("deepest", "4.0.0")),
        ]);
        let outer = tar_gz([
            ("web/Chart.yaml".to_owned(), chart("web", "1.0.0")),
            ("web/charts/db/Chart.yaml".to_owned(), chart("db", "2.0.0")),
            ("web/charts/db/charts/deep-3.0.0.tgz".to_owned(), ('f', inner)),
            ("web/charts/db/templates/Chart.yaml".to_owned(), chart("no", "0.0.0")),
            ("web/templates/Chart.yaml".to_owned(), chart("no", "0.0.0")),
        ]);
        let expected =
            ["db 2.0.0 web", "deep 3.0.0 db web", "deepest 4.0.0 deep db web"].map(str::to_owned);
        let shown = |copies: Copies| {
            let one =
                |copy: &Copied| format!("{} {} {}", copy.name, copy.version, copy.around.join(" "));
            let mut all: Vec<String> = copies.0.iter().map(one).collect();
            all.sort();
            all
        };
        let mut copies = Copies::default();
        copies.add_archive(&outer, &[], false, MOST_DEEP);
        assert_eq!(shown(copies), expected);
        // The same in a folder, where the outer one lies unpacked or packed.
        let folder = tempfile::tempdir().expect("can be made");
        mu_testing::write(folder.path(), "charts/web-1.0.0.tgz", &outer);
        let mut copies = Copies::default();
        copies.add_folder(folder.path(), &[], MOST_DEEP);
        assert_eq!(shown(copies), [&expected[..], &["web 1.0.0 ".to_owned()]].concat());
    }
}
