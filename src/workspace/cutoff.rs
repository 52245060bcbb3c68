//! How new is too new: an age such as `3 days`, or a date.
//!
//! The caller gives the current time; this file has no clock.

use std::fmt;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, SpanRelativeTo, Timestamp};

use crate::manifest::source::TextProblem;

/// The latest allowed time of publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cutoff {
    /// This many seconds ago.
    Age(i64),
    /// At a moment, in seconds since 1970.
    Moment(i64),
}

impl Cutoff {
    /// Reads an age (`3 days`, `2 weeks`, `12h`) or a date (`2026-11-01`, `2026-11-01T12:00:00Z`; a
    /// date alone is its beginning in UTC).
    ///
    /// # Errors
    ///
    /// When the text is neither.
    pub fn parse(text: &str) -> Result<Self, TextProblem> {
        let help = "write an age such as `3 days`, or a date such as `2026-11-01`";
        let text = text.trim();
        if text == "0" {
            return Ok(Self::Age(0));
        }
        if let Ok(moment) = text.parse::<Timestamp>() {
            return Ok(Self::Moment(moment.as_second()));
        }
        if let Ok(date) = text.parse::<Date>() {
            let start = date.to_zoned(TimeZone::UTC);
            let start = start.map_err(|_| TextProblem::new(format!("`{text}` is out of range")))?;
            return Ok(Self::Moment(start.timestamp().as_second()));
        }
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty();
        if is_number {
            return Err(TextProblem::new(format!("`{text}` has no unit"))
                .help(format!("write `{text} days`")));
        }
        let span: Span = text.parse().map_err(|_| {
            TextProblem::new(format!("`{text}` is neither an age nor a date")).help(help)
        })?;
        let duration = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| {
            TextProblem::new("months and years differ in length").help("write it in days")
        })?;
        if duration.is_negative() {
            return Err(TextProblem::new("an age cannot be negative").help(help));
        }
        Ok(Self::Age(duration.as_secs()))
    }

    /// Reads an age alone, such as `10 minutes` or `0`, in seconds.
    ///
    /// # Errors
    ///
    /// When the text is not an age.
    pub fn parse_age(text: &str) -> Result<i64, TextProblem> {
        let help = "write an age such as `10 minutes`";
        match Self::parse(text) {
            Ok(Self::Age(seconds)) => Ok(seconds),
            Ok(Self::Moment(_)) => {
                Err(TextProblem::new(format!("`{text}` is a date, not an age")).help(help))
            }
            Err(_) => Err(TextProblem::new(format!("`{text}` is not an age")).help(help)),
        }
    }

    /// The time, in seconds since 1970, if it is now `now`.
    pub fn cutoff_time(self, now: i64) -> i64 {
        match self {
            Self::Age(seconds) => now.saturating_sub(seconds),
            Self::Moment(moment) => moment,
        }
    }
}

/// Prints an age in its largest whole units, and a moment as RFC 3339.
impl fmt::Display for Cutoff {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Moment(moment) => match Timestamp::from_second(moment) {
                Ok(moment) => fmt::Display::fmt(&moment, formatter),
                Err(_) => write!(formatter, "{moment}"),
            },
            Self::Age(seconds) => {
                let units = [("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1)];
                let (unit, length) = units
                    .into_iter()
                    .find(|(_, length)| seconds % length == 0 && seconds >= *length)
                    .unwrap_or(("second", 1));
                let count = seconds / length;
                write!(formatter, "{count} {unit}{}", if count == 1 { "" } else { "s" })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<Cutoff, &str>) {
        let parsed = Cutoff::parse(text).map_err(|problem| problem.message);
        assert_eq!(
            parsed.as_ref().map_err(String::as_str),
            expected.as_ref().map_err(|e| *e),
            "{text}"
        );
    }

    #[test]
    fn ages_and_dates_are_read() {
        check("0", Ok(Cutoff::Age(0)));
        check("3 days", Ok(Cutoff::Age(259_200)));
        check("1 day", Ok(Cutoff::Age(86_400)));
        check("2 weeks", Ok(Cutoff::Age(1_209_600)));
        check("36h", Ok(Cutoff::Age(129_600)));
        check("1d 12h", Ok(Cutoff::Age(129_600)));
        check("90 minutes", Ok(Cutoff::Age(5_400)));
        check("P3D", Ok(Cutoff::Age(259_200)));
        check("2026-11-01", Ok(Cutoff::Moment(1_793_491_200)));
        check("2026-11-01T00:00:01Z", Ok(Cutoff::Moment(1_793_491_201)));
        check("2026-11-01T02:00:00+02:00", Ok(Cutoff::Moment(1_793_491_200)));
        check("3", Err("`3` has no unit"));
        check("soon", Err("`soon` is neither an age nor a date"));
        check("", Err("`` is neither an age nor a date"));
        check("1 month", Err("months and years differ in length"));
        check("-3 days", Err("an age cannot be negative"));
    }

    #[test]
    fn moments_are_measured_from_now() {
        assert_eq!(Cutoff::Age(60).cutoff_time(100), 40);
        assert_eq!(Cutoff::Moment(60).cutoff_time(100), 60);
        assert_eq!(Cutoff::Age(259_200).to_string(), "3 days");
        assert_eq!(Cutoff::Age(5_400).to_string(), "90 minutes");
        assert_eq!(Cutoff::Moment(0).to_string(), "1970-01-01T00:00:00Z");
    }
}
