//! What is known of the lines of a listing, as a table: rows of equal length, of which only the needed ones
//! are read; then their dependencies, which of them have details, and the rare values for which a row has no
//! room.
//!
//! ```text
//! row 0   row 1   …   row n-1   18 bytes each, numbers with the lowest byte first:
//!     0  major, minor, patch    3 × u16   0.0.0 if the version is among the odd ones
//!     6  published              u32       seconds since 1970, or 0
//!    10  far_end                u32       where its line ends in the far part; it begins where the one before ends
//!    14  needs_end              u32       where its dependencies end below, likewise; the highest bit is set if only
//!                                         the line has them
//! needs                         for each dependency: place and version, as texts (a length, and a start among the texts)
//! detailed                      how many, then for each: its position, and the length of its line in the near part
//! odd                           how many, then for each: its position, flags, and what these say: a version, a commit, a time
//! ```
//!
//! The numbers of the last three take seven bits a byte. The near lines of the detailed ones follow, in their order.

use std::ops::Range;

use super::{BytesReader, BytesWriter};
use crate::index::cache::lines::{Fetched, Label, LineHead, LineSpan, ListingLines};

/// Among the values for which a row has no room: the version is a text.
const TEXT: u8 = 1;
const COMPOSITE: u8 = 2;
const COMMIT: u8 = 4;
const PUBLISHED: u8 = 8;

/// What is known of the lines of a listing; except for the versions, it stays in the form of the cache.
#[derive(Debug, Clone, Default)]
pub(in crate::index) struct LineTable {
    /// Whether the dependencies of all lines are known without the lines.
    pub(in crate::index) has_all_needs: bool,
    /// The three numbers of each version; zeros if it is not a version, or more than that.
    pub(in crate::index) numbers: Vec<[u32; 3]>,
    /// The lines that hold more than a version, its time and its dependencies, by position, ascending.
    pub(in crate::index) detailed: Vec<(u32, LineSpan)>,
    /// Values for which rows have no room, ascending by position.
    odd: Vec<Odd>,
    count: usize,
    /// Where the rows begin.
    rows: usize,
    /// Where the dependencies begin.
    needs: usize,
    /// Where the texts of the dependencies are.
    texts: Range<usize>,
}

/// Values for which a row has no room.
#[derive(Debug, Clone)]
struct Odd {
    position: u32,
    /// The version, if the row does not have it.
    version: Option<Box<str>>,
    composite: bool,
    commit: Option<Box<str>>,
    /// When the version was published, if the row does not have that.
    published: Option<i64>,
}

impl LineTable {
    /// The number of lines.
    pub(in crate::index) fn len(&self) -> usize {
        self.count
    }

    /// Whether every line is a version of three numbers, and no commit; then they are ascending.
    pub(in crate::index) fn has_plain_versions(&self) -> bool {
        self.odd.is_empty()
    }

    /// Where a line is; `None` for a position that does not exist.
    pub(in crate::index) fn line(&self, lines: &ListingLines, position: usize) -> Option<LineSpan> {
        let detailed = self.detailed.binary_search_by_key(&position, |(at, _)| *at as usize);
        if let Some((_, line)) = detailed.ok().and_then(|found| self.detailed.get(found)) {
            return Some(*line);
        }
        let start = self.before(lines, position).map_or(0, |row| row.far_end);
        let length = self.row(lines, position)?.far_end - start;
        Some(LineSpan { start, length, is_far: true })
    }

    /// The references that a version depends on, each split where its version starts; `None` if only its line
    /// has them, or the cache is damaged there.
    pub(in crate::index) fn needs<'lines>(
        &self,
        lines: &'lines ListingLines,
        position: usize,
    ) -> Option<Vec<(&'lines str, Option<&'lines str>)>> {
        let row = self.row(lines, position).filter(|row| row.has_needs)?;
        let start = self.before(lines, position).map_or(0, |row| row.needs_end);
        let texts = lines.near.get(self.texts.clone())?;
        let place = self.needs + start as usize..self.needs + row.needs_end as usize;
        // Each takes at least four bytes.
        let mut needs = Vec::with_capacity(place.len() / 4);
        let mut reader = BytesReader::new(&lines.near, place)?;
        while !reader.is_exhausted() {
            needs.push((reader.text(texts)?, reader.optional_text(texts)?));
        }
        Some(needs)
    }

    /// When a version was published, in seconds since 1970, if its row has that.
    pub(in crate::index) fn published(&self, lines: &ListingLines, position: usize) -> Option<i64> {
        Some(i64::from(self.row(lines, position)?.published)).filter(|&published| published != 0)
    }

    /// Everything that is known of a line.
    pub(in crate::index) fn head(&self, lines: &ListingLines, position: usize) -> Option<LineHead> {
        let odd = self.odd.binary_search_by_key(&position, |odd| odd.position as usize);
        let odd = odd.ok().and_then(|found| self.odd.get(found));
        let line = self.line(lines, position)?;
        let numbers = Label::Plain(self.row(lines, position)?.version);
        Some(LineHead {
            version: odd.and_then(|odd| odd.version.clone()).map_or(numbers, Label::Text),
            composite: odd.is_some_and(|odd| odd.composite),
            detailed: !line.is_far,
            published: odd
                .and_then(|odd| odd.published)
                .or_else(|| self.published(lines, position)),
            commit: odd.and_then(|odd| odd.commit.clone()),
            line,
        })
    }

    fn before(&self, lines: &ListingLines, position: usize) -> Option<Row> {
        self.row(lines, position.checked_sub(1)?)
    }

    fn row(&self, lines: &ListingLines, position: usize) -> Option<Row> {
        let start = self.rows + position * Row::LENGTH;
        let row = lines.near.get(start..start + Row::LENGTH)?;
        (position < self.count).then(|| Row::read(row)).flatten()
    }
}

impl BytesWriter {
    /// What is known of lines.
    pub(super) fn write_table(&mut self, fetched: &[Fetched]) {
        let (mut needs, mut far_end) = (Vec::new(), 0);
        for Fetched { head, needs: own } in fetched {
            if let Some(own) = own {
                needs.extend_from_slice(&self.needs(own));
            }
            far_end += if head.detailed { 0 } else { head.line.length };
            let row = Row {
                version: numbers(head).unwrap_or_default(),
                published: short_time(head).unwrap_or_default(),
                far_end,
                needs_end: i32::try_from(needs.len())
                    .expect("a listing is under 2 GiB")
                    .unsigned_abs(),
                has_needs: own.is_some(),
            };
            row.write(&mut self.rest);
        }
        self.rest.extend_from_slice(&needs);
        let heads = || (0..).zip(fetched.iter().map(|fetched| &fetched.head));
        let detailed = || heads().filter(|(_, head)| head.detailed);
        self.write_number(detailed().count() as u64);
        for (position, head) in detailed() {
            self.write_number(position);
            self.write_number(u64::from(head.line.length));
        }
        let odd = || heads().filter(|(_, head)| oddity(head) != 0);
        self.write_number(odd().count() as u64);
        for (position, head) in odd() {
            self.odd(position, head);
        }
    }

    fn odd(&mut self, position: u64, head: &LineHead) {
        self.write_number(position);
        self.rest.push(oddity(head));
        if numbers(head).is_none() {
            self.text(&head.version.to_string());
        }
        if let Some(commit) = &head.commit {
            self.text(commit);
        }
        if let Some(published) = head.published.filter(|_| short_time(head).is_none()) {
            self.rest.extend_from_slice(&published.to_le_bytes());
        }
    }

    /// The written form of a version's dependencies.
    fn needs(&mut self, references: &[String]) -> Vec<u8> {
        let before = std::mem::take(&mut self.rest);
        for reference in references {
            match reference.split_once('#') {
                None => {
                    self.text(reference);
                    self.write_optional_text(None);
                }
                Some((place, version)) => {
                    self.text(place);
                    self.write_optional_text(Some(version));
                }
            }
        }
        std::mem::replace(&mut self.rest, before)
    }
}

/// The version of a head, if a row has room for it.
fn numbers(head: &LineHead) -> Option<[u32; 3]> {
    match head.version {
        Label::Plain(numbers) => {
            numbers.iter().all(|&number| number <= u32::from(u16::MAX)).then_some(numbers)
        }
        Label::Text(_) => None,
    }
}

/// When a head was published, if a row has room for it.
fn short_time(head: &LineHead) -> Option<u32> {
    u32::try_from(head.published?).ok().filter(|&at| at != 0)
}

/// The values of a head for which a row has no room.
fn oddity(head: &LineHead) -> u8 {
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    flag(numbers(head).is_none(), TEXT)
        | flag(head.composite, COMPOSITE)
        | flag(head.commit.is_some(), COMMIT)
        | flag(head.published.is_some() && short_time(head).is_none(), PUBLISHED)
}

impl BytesReader<'_> {
    /// Reads a table, except for the start of its near lines.
    pub(super) fn read_table(
        &mut self,
        count: usize,
        texts_at: Range<usize>,
        texts: &[u8],
    ) -> Option<LineTable> {
        let rows = self.at;
        let mut numbers = Vec::new();
        let (mut far_end, mut needs_end, mut has_all_needs) = (0, 0, true);
        let all = self.take_bytes(count.checked_mul(Row::LENGTH)?)?;
        numbers.reserve_exact(count);
        // A row has only where its far line and its dependencies end: they begin where those before end.
        for row in all.chunks_exact(Row::LENGTH) {
            let row = Row::read(row)?;
            if row.far_end < far_end || row.needs_end < needs_end {
                return None;
            }
            (far_end, needs_end) = (row.far_end, row.needs_end);
            has_all_needs &= row.has_needs;
            numbers.push(row.version);
        }
        let needs = self.at;
        self.take_bytes(needs_end as usize)?;
        let mut detailed: Vec<(u32, LineSpan)> = Vec::new();
        for _ in 0..self.read_number()? {
            let position = self.small()?;
            let is_behind = detailed.last().is_none_or(|(last, _)| *last < position);
            if !is_behind || position as usize >= count {
                return None;
            }
            detailed.push((position, LineSpan { start: 0, length: self.small()?, is_far: false }));
        }
        let mut odd: Vec<Odd> = Vec::new();
        for _ in 0..self.read_number()? {
            let one = self.odd(texts)?;
            let is_behind = odd.last().is_none_or(|last| last.position < one.position);
            if !is_behind || one.position as usize >= count {
                return None;
            }
            odd.push(one);
        }
        // Plain versions are found by binary search.
        let is_fine = !odd.is_empty() || numbers.is_sorted_by(|one, other| one < other);
        is_fine.then_some(LineTable {
            has_all_needs,
            numbers,
            detailed,
            odd,
            count,
            rows,
            needs,
            texts: texts_at,
        })
    }

    fn odd(&mut self, texts: &[u8]) -> Option<Odd> {
        let position = self.small()?;
        let flags = self.byte()?;
        let has = |flag: u8| flags & flag != 0;
        Some(Odd {
            position,
            version: if has(TEXT) { Some(self.text(texts)?.into()) } else { None },
            composite: has(COMPOSITE),
            commit: if has(COMMIT) { Some(self.text(texts)?.into()) } else { None },
            published: if has(PUBLISHED) { Some(self.long()?) } else { None },
        })
    }
}

/// A row of a table.
#[derive(Debug, Clone, Copy)]
struct Row {
    version: [u32; 3],
    /// In seconds since 1970; 0 if unknown.
    published: u32,
    /// Where the line ends in the far part, or would if it were there.
    far_end: u32,
    /// Where its dependencies end among all dependencies.
    needs_end: u32,
    /// Whether the dependencies are known without the line.
    has_needs: bool,
}

impl Row {
    /// The number of bytes of a row.
    const LENGTH: usize = 3 * 2 + 3 * 4;
    /// A flag in the end of the dependencies: only the line has them.
    const UNREAD: u32 = 1 << 31;

    fn write(&self, out: &mut Vec<u8>) {
        for number in self.version {
            out.extend_from_slice(&(number as u16).to_le_bytes());
        }
        let unread = if self.has_needs { 0 } else { Self::UNREAD };
        for number in [self.published, self.far_end, self.needs_end | unread] {
            out.extend_from_slice(&number.to_le_bytes());
        }
    }

    /// Reads the row at the start of `bytes`; `None` if there are too few.
    fn read(bytes: &[u8]) -> Option<Self> {
        let (&[a, b, c, d, e, f], rest) = bytes.split_first_chunk()?;
        let (&published, rest) = rest.split_first_chunk()?;
        let (&far_end, rest) = rest.split_first_chunk()?;
        let needs_end = u32::from_le_bytes(*rest.first_chunk()?);
        Some(Self {
            version: [[a, b], [c, d], [e, f]].map(|part| u32::from(u16::from_le_bytes(part))),
            published: u32::from_le_bytes(published),
            far_end: u32::from_le_bytes(far_end),
            needs_end: needs_end & !Self::UNREAD,
            has_needs: needs_end & Self::UNREAD == 0,
        })
    }
}
