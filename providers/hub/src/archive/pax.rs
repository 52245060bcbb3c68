//! Extended headers: `key=value` records about the next entry.
//!
//! Times, owners and attributes are not part of a package, and are skipped. Records that would change where
//! an entry begins or ends are refused, because readers disagree about them.

/// The records of extended headers about the next entry.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Extension {
    /// Its path.
    pub(super) path: Option<Vec<u8>>,
    /// The target, if it is a link.
    pub(super) target: Option<Vec<u8>>,
    /// How long it is.
    pub(super) size: Option<u64>,
}

impl Extension {
    /// Whether nothing was said.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds the records of a header for the next entry.
    pub(super) fn read(&mut self, records: &[u8]) -> Result<(), &'static str> {
        for_each(records, |key, value| match key {
            b"path" => set(&mut self.path, value.to_vec()),
            b"linkpath" => set(&mut self.target, value.to_vec()),
            b"size" => {
                let text = std::str::from_utf8(value).ok();
                let size = text.and_then(|text| text.parse().ok());
                set(&mut self.size, size.ok_or("its size is not a number")?)
            }
            _ if is_sparse(key) => Err("it is a sparse file"),
            _ => Ok(()),
        })
    }

    /// Sets the path, for which GNU uses a separate entry.
    pub(super) fn set_path(&mut self, content: &[u8]) -> Result<(), &'static str> {
        set(&mut self.path, without_end(content))
    }

    /// Sets the target, for which GNU uses a separate entry.
    pub(super) fn set_target(&mut self, content: &[u8]) -> Result<(), &'static str> {
        set(&mut self.target, without_end(content))
    }
}

/// Checks a header for all entries. It may contain comments, but must not rename or resize entries.
pub(super) fn check_global(records: &[u8]) -> Result<(), &'static str> {
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

    fn read(records: &[u8]) -> Result<Extension, &'static str> {
        let mut extension = Extension::default();
        extension.read(records).map(|()| extension)
    }

    #[test]
    fn takes_what_matters() {
        let extension =
            read(b"30 mtime=1321711775.972059463\n12 path=a/b\n14 linkpath=c\n10 size=7\n");
        let expected =
            Extension { path: Some(b"a/b".to_vec()), target: Some(b"c".to_vec()), size: Some(7) };
        assert_eq!(extension, Ok(expected));
        assert_eq!(read(b""), Ok(Extension::default()));
    }

    #[test]
    fn refuses_what_could_be_read_in_two_ways() {
        for records in [
            &b"9 path=a\n9 path=b\n"[..],
            b"10 size=-1\n",
            b"22 GNU.sparse.major=1\n",
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
        assert_eq!(check_global(b"13 comment=a\n"), Ok(()));
    }
}
