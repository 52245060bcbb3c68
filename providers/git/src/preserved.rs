//! The objects that the files of a package are made of, in one pack: what a machine without a network makes the package of again.
//!
//! Which objects these are is found out by reading the package, so a pack has no more than that, those of submodules included. Reading
//! such a pack is not done here: it may come from a checkout, so the provider takes it into a repository of its own.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Mutex;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use git2::{ObjectType, Oid};
use mu_provider::threads::{into_inner, lock};
use sha1::{Digest as _, Sha1};

/// The objects that were read.
#[derive(Debug, Default)]
pub(crate) struct ReadObjects(Mutex<BTreeMap<Oid, (ObjectType, Vec<u8>)>>);

impl ReadObjects {
    /// Adds one.
    pub(crate) fn add_object(&self, oid: Oid, kind: ObjectType, content: &[u8]) {
        lock(&self.0).entry(oid).or_insert_with(|| (kind, content.to_vec()));
    }

    /// All of them as a pack, in the order of their names: the same objects are always the same bytes.
    pub(crate) fn into_pack(self) -> std::io::Result<Vec<u8>> {
        let objects = into_inner(self.0);
        let mut pack = b"PACK\0\0\0\x02".to_vec();
        pack.extend(u32::try_from(objects.len()).unwrap_or(u32::MAX).to_be_bytes());
        for (kind, content) in objects.into_values() {
            let kind = match kind {
                ObjectType::Commit => 1,
                ObjectType::Tree => 2,
                ObjectType::Tag => 4,
                _ => 3,
            };
            // Kind and size: four bits of the size in the first byte, seven in each that follows; the highest bit says that one does.
            let mut left = content.len() >> 4;
            let mut byte = (kind << 4) | u8::try_from(content.len() & 0x0f).unwrap_or_default();
            while left > 0 {
                pack.push(byte | 0x80);
                byte = u8::try_from(left & 0x7f).unwrap_or_default();
                left >>= 7;
            }
            pack.push(byte);
            let mut deflate = ZlibEncoder::new(pack, Compression::default());
            deflate.write_all(&content)?;
            pack = deflate.finish()?;
        }
        let sum = Sha1::digest(&pack);
        pack.extend(sum);
        Ok(pack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_objects_are_the_same_pack_and_libgit2_reads_it() {
        let pack = |names: &[&str]| {
            let objects = ReadObjects::default();
            for name in names {
                let content = name.repeat(40).into_bytes();
                let oid = Oid::hash_object(ObjectType::Blob, &content).expect("is hashed");
                objects.add_object(oid, ObjectType::Blob, &content);
            }
            objects.into_pack().expect("is written")
        };
        let one = pack(&["a", "bb", ""]);
        assert_eq!(one, pack(&["", "bb", "a", "a"]));
        let folder = tempfile::tempdir().expect("can be made");
        let repository = git2::Repository::init_bare(folder.path()).expect("can be made");
        let odb = repository.odb().expect("is there");
        let mut writer = odb.packwriter().expect("can be written");
        writer.write_all(&one).expect("is taken");
        writer.commit().expect("is whole");
        odb.refresh().expect("is read");
        let oid =
            Oid::hash_object(ObjectType::Blob, "bb".repeat(40).as_bytes()).expect("is hashed");
        assert_eq!(odb.read(oid).expect("is there").data(), "bb".repeat(40).as_bytes());
    }
}
