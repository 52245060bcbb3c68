//! The 512 bytes before each entry of a tar: fields, checksum, and the kind of entry.

use std::borrow::Cow;

/// The size of a header, to which everything in a tar is padded.
pub(super) const BLOCK: usize = 512;

/// A header with a valid checksum.
pub(super) struct Header<'block> {
    block: &'block [u8; BLOCK],
}

impl<'block> Header<'block> {
    /// The header in `block`, if its checksum is right.
    pub(super) fn new(block: &'block [u8; BLOCK]) -> Result<Self, &'static str> {
        // The checksum covers the header with spaces in place of the checksum.
        let sum = |bytes: &[u8]| bytes.iter().copied().map(u32::from).sum::<u32>();
        let actual = sum(block) - sum(&block[148..156]) + 8 * u32::from(b' ');
        match number(&block[148..156]) {
            Some(expected) if expected == u64::from(actual) => Ok(Self { block }),
            _ => Err("the checksum of its header is wrong"),
        }
    }

    /// The letter for the kind of entry.
    pub(super) fn kind(&self) -> u8 {
        self.block[156]
    }

    /// Bytes of content.
    pub(super) fn size(&self) -> Result<u64, &'static str> {
        number(&self.block[124..136]).ok_or("its size is not a number")
    }

    /// Permission bits.
    pub(super) fn mode(&self) -> Result<u64, &'static str> {
        number(&self.block[100..108]).ok_or("its mode is not a number")
    }

    /// The path.
    pub(super) fn path(&self) -> Cow<'block, [u8]> {
        let name = text(&self.block[..100]);
        // In old GNU headers, the field for the beginning of a long path has other content.
        let is_posix = &self.block[257..263] == b"ustar\0";
        let prefix = if is_posix { text(&self.block[345..500]) } else { b"" };
        if prefix.is_empty() { name.into() } else { [prefix, name].join(&b'/').into() }
    }

    /// Where a link leads.
    pub(super) fn target(&self) -> &'block [u8] {
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
}
