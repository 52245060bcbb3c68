//! What is before each entry of a tar: 512 bytes with fields, checksum, and the kind of entry; and extended headers, which are `key=value`
//! records about the next entry.
//!
//! Times, owners and attributes are not part of a package, and are skipped. Records that would change where
//! an entry begins or ends are refused, because readers disagree about them.

use std::borrow::Cow;

/// The size of a header, to which everything in a tar is padded.
pub(crate) const BLOCK: usize = 512;

/// A header with a valid checksum.
pub(crate) struct TarHeader<'block> {
    block: &'block [u8; BLOCK],
}

impl<'block> TarHeader<'block> {
    /// The header in `block`, if its checksum is right.
    pub(crate) fn new(block: &'block [u8; BLOCK]) -> Result<Self, &'static str> {
        // The checksum covers the header with spaces in place of the checksum.
        let sum = |bytes: &[u8]| bytes.iter().copied().map(u32::from).sum::<u32>();
        let actual = sum(block) - sum(&block[148..156]) + 8 * u32::from(b' ');
        match number(&block[148..156]) {
            Some(expected) if expected == u64::from(actual) => Ok(Self { block }),
            _ => Err("the checksum of its header is wrong"),
        }
    }

    /// The letter for the kind of entry.
    pub(crate) fn kind(&self) -> u8 {
        self.block[156]
    }

    /// Bytes of content.
    pub(crate) fn size(&self) -> Result<u64, &'static str> {
        number(&self.block[124..136]).ok_or("its size is not a number")
    }

    /// Permission bits.
    pub(crate) fn mode(&self) -> Result<u64, &'static str> {
        number(&self.block[100..108]).ok_or("its mode is not a number")
    }

    /// The path.
    pub(crate) fn path(&self) -> Cow<'block, [u8]> {
        let name = text(&self.block[..100]);
        // In old GNU headers, the field for the beginning of a long path has other content.
        let is_posix = &self.block[257..263] == b"ustar\0";
        let prefix = if is_posix { text(&self.block[345..500]) } else { b"" };
        if prefix.is_empty() { name.into() } else { [prefix, name].join(&b'/').into() }
    }

    /// Where a link leads.
    pub(crate) fn target(&self) -> &'block [u8] {
        text(&self.block[157..257])
    }
}

/// A field up to its first NUL.
fn text(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// A number: octal digits among spaces, or GNU's binary form if the first bit is set.
fn number(field: &[u8]) -> Option<u64> {
    if let [0x80, rest @ ..] = field {
        let (high, low) = rest.split_at(rest.len().saturating_sub(8));
        let number = low.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        return high.iter().all(|byte| *byte == 0).then_some(number);
    }
    let digits = text(field).trim_ascii();
    digits.iter().try_fold(0_u64, |number, digit| match digit {
        b'0'..=b'7' => number.checked_mul(8)?.checked_add(u64::from(digit - b'0')),
        _ => None,
    })
}

/// The records of extended headers about the next entry.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Extension {
    /// Its path.
    pub(crate) path: Option<Vec<u8>>,
    /// The target, if it is a link.
    pub(crate) target: Option<Vec<u8>>,
    /// How long it is.
    pub(crate) size: Option<u64>,
    /// Its name if it is a sparse file; empty if it is at its usual place.
    pub(crate) sparse: Option<Vec<u8>>,
}

impl Extension {
    /// Whether nothing was said.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds the records of a header for the next entry.
    pub(crate) fn read(&mut self, records: &[u8]) -> Result<(), &'static str> {
        for_each(records, |key, value| match key {
            b"path" => set(&mut self.path, value.to_vec()),
            b"linkpath" => set(&mut self.target, value.to_vec()),
            b"size" => {
                let text = std::str::from_utf8(value).ok();
                let size = text.and_then(|text| text.parse().ok());
                set(&mut self.size, size.ok_or("its size is not a number")?)
            }
            _ if is_sparse(key) => {
                let name = self.sparse.get_or_insert_default();
                if key == b"GNU.sparse.name" {
                    value.clone_into(name);
                }
                Ok(())
            }
            _ => Ok(()),
        })
    }

    /// Sets the path, for which GNU uses a separate entry.
    pub(crate) fn set_path(&mut self, content: &[u8]) -> Result<(), &'static str> {
        set(&mut self.path, without_end(content))
    }

    /// Sets the target, for which GNU uses a separate entry.
    pub(crate) fn set_target(&mut self, content: &[u8]) -> Result<(), &'static str> {
        set(&mut self.target, without_end(content))
    }
}

/// Checks a header for all entries. It may contain comments, but must not rename or resize entries.
pub(crate) fn check_global(records: &[u8]) -> Result<(), &'static str> {
    for_each(records, |key, _| match key {
        b"path" | b"linkpath" | b"size" => Err("a global header names a path or a size"),
        _ if is_sparse(key) => Err("it is a sparse file"),
        _ => Ok(()),
    })
}

fn set<T>(slot: &mut Option<T>, value: T) -> Result<(), &'static str> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err("its path, target or size is given twice"),
    }
}

/// The content of GNU's long name, which ends with a NUL. A NUL in the middle stays, and is refused later.
fn without_end(content: &[u8]) -> Vec<u8> {
    content.strip_suffix(b"\0").unwrap_or(content).to_vec()
}

fn is_sparse(key: &[u8]) -> bool {
    key.starts_with(b"GNU.sparse.") || key == b"SCHILY.realsize"
}

/// Calls `take` for each record, `LENGTH KEY=VALUE\n`, where the length is that of the record.
fn for_each(
    mut records: &[u8],
    mut take: impl FnMut(&[u8], &[u8]) -> Result<(), &'static str>,
) -> Result<(), &'static str> {
    const MALFORMED: &str = "its extended header is malformed";
    while !records.is_empty() {
        let space = records.iter().position(|byte| *byte == b' ').ok_or(MALFORMED)?;
        let digits = records.get(..space).and_then(|digits| std::str::from_utf8(digits).ok());
        let length: usize = digits.ok_or(MALFORMED)?.parse().map_err(|_| MALFORMED)?;
        let (record, others) = records.split_at_checked(length).ok_or(MALFORMED)?;
        let record = record.get(space + 1..).ok_or(MALFORMED)?;
        let record = record.strip_suffix(b"\n").ok_or(MALFORMED)?;
        let mut parts = record.splitn(2, |byte| *byte == b'=');
        let (key, value) = parts.next().zip(parts.next()).ok_or(MALFORMED)?;
        take(key, value)?;
        records = others;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_two_forms() {
        for (field, expected) in [
            (&b"0000644\0"[..], Some(0o644)),
            (b"   644 \0", Some(0o644)),
            (b"00000000012 ", Some(10)),
            (b"\x80\0\0\0\0\0\0\0\0\0\x01\0", Some(256)),
            (b"\x80\0\0\x01\0\0\0\0\0\0\0\0", None),
            (b"\xff\xff\xff\xff\xff\xff\xff\xff", None),
            (b"\0\0\0\0\0\0\0\0", Some(0)),
            (b"12x\0", None),
            (b"-1\0", None),
            (b"77777777777777777777777777", None),
        ] {
            assert_eq!(number(field), expected, "{field:?}");
        }
    }

    fn read(records: &[u8]) -> Result<Extension, &'static str> {
        let mut extension = Extension::default();
        extension.read(records).map(|()| extension)
    }

    #[test]
    fn takes_what_matters() {
        let extension =
            read(b"30 mtime=1321711775.972059463\n12 path=a/b\n14 linkpath=c\n10 size=7\n");
        let expected = Extension {
            path: Some(b"a/b".to_vec()),
            target: Some(b"c".to_vec()),
            size: Some(7),
            sparse: None,
        };
        assert_eq!(extension, Ok(expected));
        let sparse = read(b"22 GNU.sparse.major=1\n21 GNU.sparse.name=a\n").expect("is read");
        assert_eq!(sparse.sparse.as_deref(), Some(&b"a"[..]));
        assert_eq!(read(b""), Ok(Extension::default()));
    }

    #[test]
    fn refuses_what_could_be_read_in_two_ways() {
        for records in [
            &b"9 path=a\n9 path=b\n"[..],
            b"10 size=-1\n",
            b"9 path=a",
            b"8 path=a\n",
            b"99 path=a\n",
            b"0 path=a\n",
            b"6 path\n",
            b"x path=a\n",
            b" path=a\n",
            b"\xff\n",
        ] {
            assert!(read(records).is_err(), "{}", String::from_utf8_lossy(records));
        }
        assert!(check_global(b"9 path=a\n").is_err());
        assert!(check_global(b"22 GNU.sparse.major=1\n").is_err());
        assert_eq!(check_global(b"13 comment=a\n"), Ok(()));
    }
}
