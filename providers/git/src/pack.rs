//! Checks a pack while it arrives, before libgit2 builds its objects.
//!
//! A delta of a few bytes can claim that its result has a gigabyte, and libgit2 allocates that memory. So
//! this compares the claimed sizes with the limits first. libgit2 checks that a pack is complete and that its
//! objects match their names.

use std::io::{self, Read};

use flate2::{Decompress, FlushDecompress, Status};

/// Why a pack is not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PackError {
    /// It cannot be read as a pack.
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
    /// It has more objects than are accepted.
    #[error("it holds {0} objects, over the limit of {1}")]
    Objects(u32, u32),
    /// One of its deltas is too large, or the delta's base or result is.
    #[error("an object in it has {0} bytes, over the limit of {1}")]
    Object(u64, u64),
    /// All in all it becomes far more than honest packs do.
    #[error("its objects are more than {RATIO} times as large as it is itself")]
    Ratio,
}

/// The most objects in one pack. The histories of the largest repositories have about ten million.
const MOST: u32 = 20_000_000;

/// How many times larger than its pack the objects may be, once they exceed [`RATIO_MATTERS_ABOVE`].
/// Compression alone reaches 1,032; whole histories of large files that change often reach some hundred.
const RATIO: u64 = 1_100;
const RATIO_MATTERS_ABOVE: u64 = 512 << 20;

/// Looks through one pack, piece by piece.
pub(crate) struct PackScan {
    /// The largest size of a delta, and of its base and result.
    largest: u64,
    place: Place,
    left: u32,
    received: u64,
    /// Bytes of all objects so far.
    total: u64,
    inflate: Decompress,
    buffer: Box<[u8]>,
}

/// The position of the next byte in the pack.
enum Place {
    /// In its first twelve bytes.
    Start(Vec<u8>),
    /// In the first bytes of an object: its kind and size so far, and the position of the next bits.
    Object { kind: u8, size: u64, shift: u32 },
    /// Before a delta: the bytes that are left of its base's name, or those up to one without the highest
    /// bit.
    Base { size: u64, left: Option<usize> },
    /// In the compressed data of an object.
    Data { size: u64, done: u64, delta: Option<Sizes> },
    /// Behind the last object.
    End,
}

/// The beginning of a delta: the sizes of its base and its result.
#[derive(Default)]
struct Sizes {
    /// Which of the two sizes the next bits belong to, and where.
    known: usize,
    shift: u32,
    sizes: [u64; 2],
}

const NEXT: Place = Place::Object { kind: 0, size: 0, shift: 0 };

impl PackScan {
    /// Creates a scan of a pack whose deltas have results of at most `largest` bytes.
    pub(crate) fn new(largest: u64) -> Self {
        Self {
            largest,
            place: Place::Start(Vec::new()),
            left: 0,
            received: 0,
            total: 0,
            inflate: Decompress::new(true),
            buffer: vec![0; 32 << 10].into(),
        }
    }

    /// Looks at the next bytes.
    pub(crate) fn scan_next(&mut self, mut bytes: &[u8]) -> Result<(), PackError> {
        // The bytes of a pack, in whatever portions they come:
        //
        //     "PACK"  version (4 bytes)  number of objects (4 bytes)
        //     for each object:
        //         size   the first byte has a bit for "more follows", three for the kind and four of the size;
        //                each that follows has a bit for "more follows" and seven of the size, lowest first
        //         base   of a delta: 20 or 32 bytes of an id, or a distance, whose last byte has no bit for "more follows"
        //         data   deflated; where it ends, only inflating tells
        //     checksum
        self.received += bytes.len() as u64;
        while let [first, rest @ ..] = bytes {
            if let Place::Data { .. } = self.place {
                bytes = self.data(bytes)?;
                continue;
            }
            match &mut self.place {
                Place::End => return Ok(()),
                Place::Start(start) => {
                    start.push(*first);
                    if let [.., a, b, c, d] = start[..]
                        && start.len() == 12
                    {
                        self.left = u32::from_be_bytes([a, b, c, d]);
                        if self.left > MOST {
                            return Err(PackError::Objects(self.left, MOST));
                        }
                        self.next();
                    }
                }
                Place::Object { kind, size, shift } => {
                    let bits = if *shift == 0 { first & 0x0f } else { first & 0x7f };
                    if *shift == 0 {
                        *kind = (first >> 4) & 7;
                    }
                    *size |= shifted(bits, *shift)?;
                    *shift += if *shift == 0 { 4 } else { 7 };
                    if first & 0x80 == 0 {
                        let (kind, size) = (*kind, *size);
                        self.begin(kind, size)?;
                    }
                }
                Place::Base { size, left } => {
                    let is_last = match left {
                        Some(left) => {
                            *left -= 1;
                            *left == 0
                        }
                        None => first & 0x80 == 0,
                    };
                    if is_last {
                        self.place =
                            Place::Data { size: *size, done: 0, delta: Some(Sizes::default()) };
                    }
                }
                Place::Data { .. } => unreachable!("is taken care of above"),
            }
            bytes = rest;
        }
        Ok(())
    }

    /// Continues after the kind and size of an object.
    fn begin(&mut self, kind: u8, size: u64) -> Result<(), PackError> {
        const NAME: usize = 20;
        self.inflate.reset(true);
        self.place = match kind {
            1..=4 => Place::Data { size, done: 0, delta: None },
            6 => Place::Base { size, left: None },
            7 => Place::Base { size, left: Some(NAME) },
            _ => return Err(PackError::Damaged("an object of an unknown kind")),
        };
        if kind > 4 { self.check_size(size) } else { Ok(()) }
    }

    /// Decompresses the available bytes of an object; returns the bytes after it.
    fn data<'bytes>(&mut self, bytes: &'bytes [u8]) -> Result<&'bytes [u8], PackError> {
        let Place::Data { size, done, delta } = &mut self.place else { return Ok(bytes) };
        let (before, made) = (self.inflate.total_in(), self.inflate.total_out());
        let status = self.inflate.decompress(bytes, &mut self.buffer, FlushDecompress::None);
        let status = status.map_err(|_| PackError::Damaged("what is compressed is not"))?;
        let used = usize::try_from(self.inflate.total_in() - before).expect("is part of a slice");
        let made = usize::try_from(self.inflate.total_out() - made).expect("fits the buffer");
        *done += made as u64;
        if *done > *size || (status == Status::StreamEnd && *done != *size) {
            return Err(PackError::Damaged("an object of another size than it says"));
        }
        let mut grown = made as u64;
        let mut found = None;
        if let Some(sizes) = delta {
            let were_known = sizes.known == 2;
            sizes.read(self.buffer.get(..made).unwrap_or_default())?;
            if sizes.known == 2 && !were_known {
                found = Some(sizes.sizes);
                grown += sizes.sizes[1];
            }
        }
        if status == Status::StreamEnd {
            self.left -= 1;
            self.next();
        } else if used == 0 && made == 0 {
            return Err(PackError::Damaged("an object that ends early"));
        }
        for size in found.into_iter().flatten() {
            self.check_size(size)?;
        }
        self.total = self.total.saturating_add(grown);
        if self.total > RATIO_MATTERS_ABOVE && self.total / self.received > RATIO {
            return Err(PackError::Ratio);
        }
        Ok(bytes.get(used..).unwrap_or_default())
    }

    fn next(&mut self) {
        self.place = if self.left == 0 { Place::End } else { NEXT };
    }

    fn check_size(&self, size: u64) -> Result<(), PackError> {
        if size > self.largest { Err(PackError::Object(size, self.largest)) } else { Ok(()) }
    }
}

impl Sizes {
    fn read(&mut self, bytes: &[u8]) -> Result<(), PackError> {
        for byte in bytes {
            let Some(size) = self.sizes.get_mut(self.known) else { break };
            *size |= shifted(byte & 0x7f, self.shift)?;
            self.shift += 7;
            if byte & 0x80 == 0 {
                self.known += 1;
                self.shift = 0;
            }
        }
        Ok(())
    }
}

/// Seven bits of a size at their place.
fn shifted(bits: u8, shift: u32) -> Result<u64, PackError> {
    let fits = shift < 64 && u64::from(bits) <= u64::MAX >> shift;
    fits.then(|| u64::from(bits) << shift).ok_or(PackError::Damaged("a size beyond all limits"))
}

/// Reads a pack while looking through it.
pub(crate) struct Scanned<R> {
    inner: R,
    scan: PackScan,
}

impl<R> Scanned<R> {
    pub(crate) fn new(inner: R, largest: u64) -> Self {
        Self { inner, scan: PackScan::new(largest) }
    }
}

impl<R: Read> Read for Scanned<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.scan.scan_next(buffer.get(..count).unwrap_or_default()).map_err(io::Error::other)?;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;

    use super::*;

    const LARGEST: u64 = 1 << 30;

    /// A number, seven bits a byte, the lowest first.
    fn number(mut number: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while number > 0x7f {
            bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
        bytes
    }

    /// An object as it is in a pack, which claims to have `size` bytes.
    fn object(kind: u8, size: u64, base: &[u8], data: &[u8]) -> Vec<u8> {
        let mut bytes = vec![kind << 4 | (size & 0x0f) as u8];
        if size > 0x0f {
            bytes[0] |= 0x80;
            bytes.extend(number(size >> 4));
        }
        bytes.extend_from_slice(base);
        let mut encoder = ZlibEncoder::new(bytes, Compression::fast());
        encoder.write_all(data).expect("goes to memory");
        encoder.finish().expect("goes to memory")
    }

    /// A delta that claims to turn `from` bytes into `to` bytes.
    fn delta(from: u64, to: u64) -> Vec<u8> {
        let data = [number(from), number(to), vec![0x90, 1]].concat();
        object(6, data.len() as u64, &[0x81, 0x02], &data)
    }

    fn pack(objects: &[Vec<u8>]) -> Vec<u8> {
        let count = (objects.len() as u32).to_be_bytes();
        [&b"PACK\0\0\0\x02"[..], &count, &objects.concat(), &[0; 20]].concat()
    }

    /// Looks through a pack, in pieces of several sizes.
    fn scan(pack: &[u8], largest: u64) -> Result<(), PackError> {
        for size in [1, 7, pack.len().max(1)] {
            let mut scan = PackScan::new(largest);
            pack.chunks(size).try_for_each(|piece| scan.scan_next(piece))?;
            assert!(matches!(scan.place, Place::End), "{size}");
            assert_eq!(scan.received, pack.len() as u64);
        }
        Ok(())
    }

    #[test]
    fn honest_packs_are_passed() {
        let text = vec![b'x'; 100_000];
        let data = [number(100_000), number(50), vec![0x90, 50]].concat();
        let objects = [
            object(3, 100_000, b"", &text),
            object(1, 3, b"", b"abc"),
            object(7, data.len() as u64, &[7; 20], &data),
            delta(100_000, 100_000),
            object(2, 0, b"", b""),
        ];
        scan(&pack(&objects), LARGEST).expect("is honest");
        scan(&pack(&[]), LARGEST).expect("is empty");
        // A larger object is not a delta, and takes no memory.
        scan(&pack(&objects[..2]), 1_000).expect("is honest");
    }

    #[test]
    fn a_small_delta_does_not_become_a_gigabyte() {
        for (from, to) in [(10, LARGEST + 1), (LARGEST + 1, 10), (10, 1 << 60)] {
            let error = scan(&pack(&[delta(from, to)]), LARGEST).expect_err("is too large");
            assert!(matches!(error, PackError::Object(_, LARGEST)), "{error}");
        }
        let error = scan(&pack(&[delta(10, LARGEST)]), LARGEST).expect_err("is a bomb");
        assert!(matches!(error, PackError::Ratio), "{error}");
        let many: Vec<_> = (0..400).map(|_| delta(8 << 20, 8 << 20)).collect();
        let error = scan(&pack(&many), LARGEST).expect_err("is a bomb");
        assert!(matches!(error, PackError::Ratio), "{error}");
    }

    #[test]
    fn objects_are_as_large_as_they_say() {
        for (said, data) in [(3, &b"abcd"[..]), (5, b"abcd"), (3, &[0; 200_000])] {
            let error = scan(&pack(&[object(3, said, b"", data)]), LARGEST).expect_err("lies");
            assert!(matches!(error, PackError::Damaged(_)), "{error}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let many = [&b"PACK\0\0\0\x02"[..], &u32::MAX.to_be_bytes()].concat();
        assert!(matches!(scan(&many, LARGEST), Err(PackError::Objects(u32::MAX, MOST))));
        for object in [&[0x50][..], &[0x00], &[0x31, 0, 0, 0], &[0xb1; 12]] {
            let result = scan(&pack(&[object.to_vec()]), LARGEST);
            assert!(matches!(result, Err(PackError::Damaged(_))), "{object:x?}");
        }
    }

    #[test]
    fn whatever_comes_is_looked_through_within_bounds() {
        let data = [number(40), number(50), vec![0x90, 50]].concat();
        let objects = [
            object(3, 40, b"", &[b'x'; 40]),
            delta(40, 40),
            object(7, data.len() as u64, &[7; 20], &data),
            object(1, 3, b"", b"abc"),
        ];
        let honest = pack(&objects);
        for end in 0..honest.len() {
            PackScan::new(LARGEST).scan_next(&honest[..end]).expect("has only not come to its end");
            for change in [0x01, 0x10, 0x80, 0xff] {
                let mut changed = honest.clone();
                changed[end] ^= change;
                let mut scan = PackScan::new(LARGEST);
                let result = changed.chunks(7).try_for_each(|piece| scan.scan_next(piece));
                let most = RATIO_MATTERS_ABOVE.max(scan.received * (RATIO + 1));
                assert!(result.is_err() || scan.total <= most, "{end} {change}");
            }
        }
    }
}
