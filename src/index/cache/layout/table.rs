//! The heads of plain versions as a table: rows of one length, of which nobody need read but what is wanted; then their
//! dependencies, and which of them have details.
//!
//! Anything else than three small numbers, a time and a line is a head of its own, and none of this table's business.

use std::ops::Range;

use super::{Reader, Writer};
use crate::index::cache::listing::{Head, Label, Line, Lines, Needs};

/// The heads of plain versions, ascending, which but for the versions stay as they lie in the cache.
#[derive(Debug, Clone)]
pub(in crate::index) struct Table {
    /// How many there are.
    pub(in crate::index) count: usize,
    /// Whether it is told of all without their lines what they depend on.
    pub(in crate::index) is_told: bool,
    /// The three numbers of each, for whoever takes them first.
    pub(in crate::index) versions: Vec<[u32; 3]>,
    /// The lines that hold more than a version, its time and its dependencies, by position, ascending.
    pub(in crate::index) detailed: Vec<(u32, Line)>,
    /// Where the rows begin.
    rows: usize,
    /// Where the dependencies begin.
    needs: u32,
}

impl Table {
    /// Where the line of a version is; nothing of a position that there is not.
    pub(in crate::index) fn line(&self, lines: &Lines, position: usize) -> Option<Line> {
        let detailed = self.detailed.binary_search_by_key(&position, |(at, _)| *at as usize);
        if let Some((_, line)) = detailed.ok().and_then(|found| self.detailed.get(found)) {
            return Some(*line);
        }
        let start = self.before(lines, position).map_or(0, |row| row.far_end);
        let length = self.row(lines, position)?.far_end - start;
        Some(Line { start, length, is_far: true })
    }

    /// Where the dependencies of a version are, for [`Lines::needs`]; `None` if only its line can tell.
    pub(in crate::index) fn needs(&self, lines: &Lines, position: usize) -> Option<Range<u32>> {
        let row = self.row(lines, position)?;
        let start = self.before(lines, position).map_or(0, |row| row.needs_end);
        row.has_needs.then(|| self.needs + start..self.needs + row.needs_end)
    }

    /// When a version was published, in seconds since 1970.
    pub(in crate::index) fn published(&self, lines: &Lines, position: usize) -> Option<i64> {
        Some(i64::from(self.row(lines, position)?.published)).filter(|&published| published != 0)
    }

    fn before(&self, lines: &Lines, position: usize) -> Option<Row> {
        self.row(lines, position.checked_sub(1)?)
    }

    fn row(&self, lines: &Lines, position: usize) -> Option<Row> {
        let start = self.rows + position * Row::LENGTH;
        let row = lines.near.get(start..start + Row::LENGTH)?;
        (position < self.count).then(|| Row::read(row)).flatten()
    }

    pub(in crate::index::cache) fn head(&self, lines: &Lines, position: usize) -> Option<Head> {
        let line = self.line(lines, position)?;
        Some(Head {
            version: Label::Plain(self.row(lines, position)?.version),
            composite: false,
            detailed: !line.is_far,
            published: self.published(lines, position),
            commit: None,
            line,
            needs: self.needs(lines, position).map_or(Needs::Unread, Needs::At),
        })
    }
}

impl Writer {
    /// The heads of plain versions.
    pub(super) fn table(&mut self, heads: &[Head], lines: &Lines) {
        let (mut needs, mut far_end) = (Vec::new(), 0);
        for head in heads {
            let known = self.needs(head, lines);
            needs.extend_from_slice(known.as_deref().unwrap_or_default());
            far_end += if head.detailed { 0 } else { head.line.length };
            let row = Row {
                version: head.version.plain().unwrap_or_default(),
                published: head.published.and_then(|at| u32::try_from(at).ok()).unwrap_or_default(),
                far_end,
                needs_end: i32::try_from(needs.len())
                    .expect("a listing is under 2 GiB")
                    .unsigned_abs(),
                has_needs: known.is_some(),
            };
            row.write(&mut self.rest);
        }
        self.rest.extend_from_slice(&needs);
        let detailed = || heads.iter().enumerate().filter(|(_, head)| head.detailed);
        self.number(detailed().count() as u64);
        for (position, head) in detailed() {
            self.number(position as u64);
            self.number(u64::from(head.line.length));
        }
    }
}

impl Reader<'_> {
    /// Reads a table, but for where its near lines begin.
    pub(super) fn table(&mut self, count: usize) -> Option<Table> {
        let rows = self.at;
        let mut versions: Vec<[u32; 3]> = Vec::new();
        let (mut far_end, mut needs_end, mut is_told) = (0, 0, true);
        let all = self.take(count.checked_mul(Row::LENGTH)?)?;
        versions.reserve_exact(count);
        for row in all.chunks_exact(Row::LENGTH) {
            let row = Row::read(row)?;
            let is_behind = versions.last().is_none_or(|last| *last < row.version);
            if !is_behind || row.far_end < far_end || row.needs_end < needs_end {
                return None;
            }
            (far_end, needs_end) = (row.far_end, row.needs_end);
            is_told &= row.has_needs;
            versions.push(row.version);
        }
        let needs = u32::try_from(self.at).ok()?;
        self.take(needs_end as usize)?;
        // Where they end is a place that is told in the same way.
        u32::try_from(self.at).ok()?;
        let mut detailed: Vec<(u32, Line)> = Vec::new();
        for _ in 0..self.number()? {
            let position = self.small()?;
            let is_behind = detailed.last().is_none_or(|(last, _)| *last < position);
            if !is_behind || position as usize >= count {
                return None;
            }
            detailed.push((position, Line { start: 0, length: self.small()?, is_far: false }));
        }
        Some(Table { count, is_told, versions, detailed, rows, needs })
    }
}

/// Whether heads can be written as a table.
pub(super) fn is_plain(heads: &[Head]) -> bool {
    let fits = |head: &Head| {
        let numbers = head.version.plain();
        numbers.is_some_and(|numbers| numbers.iter().all(|&number| number <= u32::from(u16::MAX)))
            && !head.composite
            && head.commit.is_none()
            && head.published.is_none_or(|at| u32::try_from(at).is_ok_and(|at| at != 0))
    };
    let numbers = |head: &Head| head.version.plain();
    !heads.is_empty()
        && heads.iter().all(fits)
        && heads.is_sorted_by(|one, two| numbers(one) < numbers(two))
}

/// A row of a table.
#[derive(Debug, Clone, Copy)]
struct Row {
    version: [u32; 3],
    /// In seconds since 1970; 0 if that is not known.
    published: u32,
    /// Where the line ends in the far part, or would if it were there.
    far_end: u32,
    /// Where the dependencies end among all dependencies.
    needs_end: u32,
    /// Whether the dependencies are told without the line.
    has_needs: bool,
}

impl Row {
    /// How many bytes a row has.
    const LENGTH: usize = 3 * 2 + 3 * 4;
    /// In the end of the dependencies, that only the line tells them.
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

    /// Reads the row that `bytes` begin with; `None` if they are too few.
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
