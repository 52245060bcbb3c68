//! Reads DER (X.690), as far as certificates, keys, timestamps and signatures of others need it.
//!
//! Strict: definite and shortest lengths, tags of one byte, nothing behind the end. What is built is only what `ring` needs.

/// `SEQUENCE`.
pub(crate) const SEQUENCE: u8 = 0x30;
/// `SET`.
pub(crate) const SET: u8 = 0x31;
/// `BOOLEAN`.
pub(crate) const BOOLEAN: u8 = 0x01;
/// `INTEGER`.
pub(crate) const INTEGER: u8 = 0x02;
/// `BIT STRING`.
pub(crate) const BIT_STRING: u8 = 0x03;
/// `OCTET STRING`.
pub(crate) const OCTET_STRING: u8 = 0x04;
/// `OBJECT IDENTIFIER`.
pub(crate) const OID: u8 = 0x06;
/// `UTCTime`.
const UTC_TIME: u8 = 0x17;
/// `GeneralizedTime`.
const GENERALIZED_TIME: u8 = 0x18;

/// The bytes are not the DER that was expected there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is not the DER that belongs there")]
pub(crate) struct NotDer;

/// One element: its tag, its content, and both with the length as they were.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DerElement<'a> {
    pub(crate) tag: u8,
    pub(crate) content: &'a [u8],
    pub(crate) whole: &'a [u8],
}

/// Reads elements one after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DerReader<'a> {
    rest: &'a [u8],
}

impl<'a> DerReader<'a> {
    pub(crate) fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    /// The elements inside of the single element that the bytes are.
    pub(crate) fn single(bytes: &'a [u8], tag: u8) -> Result<Self, NotDer> {
        let mut outer = Self::new(bytes);
        let inside = outer.read(tag)?;
        outer.expect_end()?;
        Ok(inside)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// How many bytes are left.
    pub(crate) fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The next element, whatever it is.
    pub(crate) fn any(&mut self) -> Result<DerElement<'a>, NotDer> {
        let [tag, first, rest @ ..] = self.rest else { return Err(NotDer) };
        // Tags of more than one byte occur in nothing that is read here.
        if tag & 0x1f == 0x1f {
            return Err(NotDer);
        }
        let (length, rest) = match *first {
            short @ 0..=0x7f => (usize::from(short), rest),
            long @ 0x81..=0x84 => {
                let (digits, rest) =
                    rest.split_at_checked(usize::from(long & 0x7f)).ok_or(NotDer)?;
                let length =
                    digits.iter().fold(0_u64, |length, byte| length << 8 | u64::from(*byte));
                // The shortest form, so that two texts never mean the same.
                if length < 0x80 || digits.first() == Some(&0) {
                    return Err(NotDer);
                }
                (usize::try_from(length).map_err(|_| NotDer)?, rest)
            }
            _ => return Err(NotDer),
        };
        let (content, after) = rest.split_at_checked(length).ok_or(NotDer)?;
        let whole = self.rest.get(..self.rest.len() - after.len()).ok_or(NotDer)?;
        self.rest = after;
        Ok(DerElement { tag: *tag, content, whole })
    }

    /// The next element, which must have this tag.
    pub(crate) fn element(&mut self, tag: u8) -> Result<DerElement<'a>, NotDer> {
        let element = self.any()?;
        if element.tag == tag { Ok(element) } else { Err(NotDer) }
    }

    /// What is inside of the next element, which must have this tag.
    pub(crate) fn read(&mut self, tag: u8) -> Result<Self, NotDer> {
        Ok(Self::new(self.element(tag)?.content))
    }

    /// The content of the next element, which must have this tag.
    pub(crate) fn content_of(&mut self, tag: u8) -> Result<&'a [u8], NotDer> {
        Ok(self.element(tag)?.content)
    }

    /// The next element if it has this tag.
    pub(crate) fn optional(&mut self, tag: u8) -> Result<Option<DerElement<'a>>, NotDer> {
        if self.rest.first() == Some(&tag) { self.any().map(Some) } else { Ok(None) }
    }

    /// The bytes of a `BIT STRING` that has whole bytes.
    pub(crate) fn bits(&mut self) -> Result<&'a [u8], NotDer> {
        match self.content_of(BIT_STRING)? {
            [0, bytes @ ..] => Ok(bytes),
            _ => Err(NotDer),
        }
    }

    /// A number that is not negative and fits.
    pub(crate) fn small(&mut self) -> Result<u32, NotDer> {
        let bytes = self.content_of(INTEGER)?;
        if bytes.is_empty() || bytes.len() > 4 || bytes[0] & 0x80 != 0 {
            return Err(NotDer);
        }
        Ok(bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
    }

    /// A `GeneralizedTime`, in seconds since 1970; parts of seconds are dropped.
    pub(crate) fn generalized_time(&mut self) -> Result<i64, NotDer> {
        Self::new(self.element(GENERALIZED_TIME)?.whole).any_time()
    }

    /// A `UTCTime` or `GeneralizedTime`, in seconds since 1970; parts of seconds are dropped.
    pub(crate) fn any_time(&mut self) -> Result<i64, NotDer> {
        let element = self.any()?;
        let text = std::str::from_utf8(element.content).map_err(|_| NotDer)?;
        let (year, rest) = match element.tag {
            // RFC 5280, 4.1.2.5.1.
            UTC_TIME => {
                let year = number(text, 0, 2)?;
                (if year < 50 { 2000 + year } else { 1900 + year }, text.get(2..))
            }
            GENERALIZED_TIME => (number(text, 0, 4)?, text.get(4..)),
            _ => return Err(NotDer),
        };
        let rest = rest.and_then(|rest| rest.strip_suffix('Z')).ok_or(NotDer)?;
        let (rest, fraction) = rest.split_once('.').unwrap_or((rest, "0"));
        let is_fraction =
            !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
        if rest.len() != 10 || !is_fraction {
            return Err(NotDer);
        }
        let part = |at| number(rest, at, at + 2);
        seconds([year, part(0)?, part(2)?, part(4)?, part(6)?, part(8)?]).ok_or(NotDer)
    }

    /// Nothing may follow.
    pub(crate) fn expect_end(&self) -> Result<(), NotDer> {
        if self.is_empty() { Ok(()) } else { Err(NotDer) }
    }
}

fn number(text: &str, from: usize, to: usize) -> Result<i64, NotDer> {
    let digits = text.get(from..to).ok_or(NotDer)?;
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        digits.parse().map_err(|_| NotDer)
    } else {
        Err(NotDer)
    }
}

/// Seconds since 1970 of year, month, day, hour, minute and second; `None` if there is no such time.
pub(crate) fn seconds([year, month, day, hour, minute, second]: [i64; 6]) -> Option<i64> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    let is_time = (1..=days).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..60).contains(&second);
    if !(0..=9999).contains(&year) || !is_time {
        return None;
    }
    // Years that begin in March have their leap day at the end; 719,468 days lie between year 0 and 1970.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * month + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    Some(days * 86_400 + hour * 3600 + minute * 60 + second)
}

/// The day of a time in seconds since 1970, as `2026-10-14`.
pub(crate) fn day(seconds: i64) -> String {
    let days = seconds.div_euclid(86_400) + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = (era * 400 + year, if month < 10 { month + 3 } else { month - 9 });
    format!("{:04}-{month:02}-{day:02}", year + i64::from(month <= 2))
}

/// Reads a time of RFC 3339, in seconds since 1970; parts of seconds are dropped.
pub(crate) fn rfc3339(text: &str) -> Option<i64> {
    let part = |from, to| number(text, from, to).ok();
    let is_at = |at: usize, wanted: u8| text.as_bytes().get(at) == Some(&wanted);
    let is_shaped = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
    if !is_shaped.into_iter().all(|(at, wanted)| is_at(at, wanted))
        || !(is_at(10, b'T') || is_at(10, b't'))
    {
        return None;
    }
    let time = seconds([
        part(0, 4)?,
        part(5, 7)?,
        part(8, 10)?,
        part(11, 13)?,
        part(14, 16)?,
        part(17, 19)?,
    ])?;
    let rest = text.get(19..)?;
    let rest = match rest.strip_prefix('.') {
        Some(fraction) => {
            let zone = fraction.trim_start_matches(|digit: char| digit.is_ascii_digit());
            (zone.len() < fraction.len()).then_some(zone)?
        }
        None => rest,
    };
    if rest == "Z" || rest == "z" {
        return Some(time);
    }
    let sign = match rest.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    if rest.len() != 6 || rest.as_bytes()[3] != b':' {
        return None;
    }
    let (hours, minutes) = (number(rest, 1, 3).ok()?, number(rest, 4, 6).ok()?);
    (hours < 24 && minutes < 60).then_some(time - sign * (hours * 3600 + minutes * 60))
}

/// Writes an element.
pub(crate) fn write_element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut element = vec![tag];
    let length = content.len().to_be_bytes();
    let digits: Vec<u8> = length.into_iter().skip_while(|byte| *byte == 0).collect();
    if content.len() >= 0x80 {
        // A length has at most 8 bytes.
        element.push(0x80 | u8::try_from(digits.len()).unwrap_or_default());
        element.extend(digits);
    } else {
        element.push(digits.first().copied().unwrap_or_default());
    }
    element.extend(content);
    element
}

/// Writes a number that is not negative, given in big-endian bytes.
pub(crate) fn unsigned(bytes: &[u8]) -> Vec<u8> {
    let significant: Vec<u8> = bytes.iter().copied().skip_while(|byte| *byte == 0).collect();
    let needs_zero = significant.first().is_none_or(|first| first & 0x80 != 0);
    let zero = needs_zero.then_some(0);
    write_element(INTEGER, &zero.into_iter().chain(significant).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_seconds_since_1970() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T12:30:45Z", Some(951_827_445)),
            ("2022-12-31T23:59:59.999Z", Some(1_672_531_199)),
            ("2026-10-14T02:00:00+02:00", Some(1_791_936_000)),
            ("2001-02-29T00:00:00Z", None),
            ("2001-02-28", None),
            ("2001-02-28T00:00:00.Z", None),
            ("2001-02-28T00:00:00+2:00", None),
        ] {
            assert_eq!(rfc3339(text), expected, "{text}");
        }
        for text in
            ["1970-01-01", "2000-02-29", "2000-03-01", "2026-10-14", "2100-12-31", "1969-12-31"]
        {
            assert_eq!(rfc3339(&format!("{text}T23:59:59Z")).map(day), Some(text.to_owned()));
        }
        let mut utc = DerReader::new(b"\x17\x0d491231235959Z");
        assert_eq!(utc.any_time(), Ok(2_524_607_999));
        let mut generalized = DerReader::new(b"\x18\x1320230102030405.250Z");
        assert_eq!(generalized.any_time(), Ok(1_672_628_645));
    }

    #[test]
    fn lengths_are_the_shortest() {
        assert_eq!(DerReader::new(b"\x04\x81\x01a").any().map(|_| ()), Err(NotDer));
        assert_eq!(DerReader::new(b"\x04\x80a\0\0").any().map(|_| ()), Err(NotDer));
        assert_eq!(DerReader::new(b"\x04\x02a").any().map(|_| ()), Err(NotDer));
        let long = write_element(OCTET_STRING, &[7; 300]);
        assert_eq!(DerReader::new(&long).content_of(OCTET_STRING), Ok(&[7; 300][..]));
        assert_eq!(unsigned(&[0, 0, 0x80]), b"\x02\x02\x00\x80");
        assert_eq!(unsigned(&[]), b"\x02\x01\x00");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let mut reader = DerReader::new(&bytes);
            while let Ok(element) = reader.any() {
                let _ = DerReader::new(element.whole).any_time();
            }
            let _ = rfc3339(&String::from_utf8_lossy(&bytes));
        }
    }
}
