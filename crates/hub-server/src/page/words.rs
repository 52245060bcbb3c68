//! Formats times, sizes and commands for people.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use mu_hub::lines::PublishedLine;

/// A moment: exactly, and how long ago that was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Moment {
    /// As in RFC 3339, in seconds.
    pub(super) stamp: String,
    /// Such as `2025-02-10`.
    pub(super) day: String,
    /// Such as `10 February 2025, 12:00 UTC`.
    pub(super) exact: String,
    /// Such as `3 days ago`.
    pub(super) ago: String,
}

impl Moment {
    pub(super) fn new(moment: Timestamp) -> Self {
        Self::seen_from(moment, Timestamp::now())
    }

    fn seen_from(moment: Timestamp, now: Timestamp) -> Self {
        Self {
            stamp: moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            day: moment.strftime("%Y-%m-%d").to_string(),
            exact: moment.to_zoned(TimeZone::UTC).strftime("%-d %B %Y, %H:%M UTC").to_string(),
            ago: ago(now.duration_since(moment)),
        }
    }

    /// The publication time of a version, if its line has one.
    pub(super) fn published(line: &PublishedLine) -> Option<Self> {
        published(line).map(Self::new)
    }
}

/// The publication time of a version, if its line has one.
pub(super) fn published(line: &PublishedLine) -> Option<Timestamp> {
    line.text("published")?.parse().ok()
}

/// How long ago something was, in the largest unit that fits.
fn ago(passed: SignedDuration) -> String {
    const DAY: i64 = 24;
    let (minutes, hours) = (passed.as_mins(), passed.as_hours());
    let days = hours / DAY;
    let (count, unit) = match () {
        // Clocks differ, but nothing is published in the future.
        () if minutes < 1 => return "just now".to_owned(),
        () if hours < 1 => (minutes, "minute"),
        () if hours < DAY => (hours, "hour"),
        () if days == 1 => return "yesterday".to_owned(),
        () if days < 31 => (days, "day"),
        () if days < 365 => (days * 100 / 3_044, "month"),
        () => (days * 100 / 36_525, "year"),
    };
    let count = count.max(1);
    format!("{count} {unit}{} ago", if count == 1 { "" } else { "s" })
}

/// Bytes, such as `3.4 KiB`.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1_024 {
        return format!("{bytes} B");
    }
    let mut size = bytes as f64 / 1_024.0;
    let mut unit = 0;
    while size >= 1_023.95 && unit + 1 < UNITS.len() {
        size /= 1_024.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS[unit])
}

/// A word of a command, split where a line may break: after slashes, and before a version.
pub(super) fn parts(word: &str) -> Vec<&str> {
    let (name, spec) = word.split_at(word.find('#').unwrap_or(word.len()));
    let (mut parts, mut begin) = (Vec::new(), 0);
    for (at, _) in name.match_indices('/') {
        // The part before `//` belongs to it.
        if !name[at + 1..].starts_with('/') {
            parts.push(&name[begin..=at]);
            begin = at + 1;
        }
    }
    parts.extend([&name[begin..], spec].into_iter().filter(|part| !part.is_empty()));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_broken_where_names_are() {
        for (word, expected) in [
            ("'acme/shop-platform#^1.0'", &["'acme/", "shop-platform", "#^1.0'"][..]),
            ("https://hub.acme.co/", &["https://", "hub.acme.co/"]),
            ("add", &["add"]),
            ("", &[]),
        ] {
            assert_eq!(parts(word), expected);
        }
    }

    #[test]
    fn moments_are_told_exactly_and_roughly() {
        let moment: Timestamp = "2025-02-10T12:00:30.5Z".parse().expect("is one");
        let seen = |now: &str| Moment::seen_from(moment, now.parse().expect("is one"));
        let first = seen("2025-02-10T12:10:00Z");
        assert_eq!(
            (first.stamp.as_str(), first.day.as_str(), first.exact.as_str()),
            ("2025-02-10T12:00:30Z", "2025-02-10", "10 February 2025, 12:00 UTC")
        );
        for (now, expected) in [
            ("2024-01-01T00:00:00Z", "just now"),
            ("2025-02-10T12:01:00Z", "just now"),
            ("2025-02-10T12:02:00Z", "1 minute ago"),
            ("2025-02-10T12:10:00Z", "9 minutes ago"),
            ("2025-02-10T13:10:00Z", "1 hour ago"),
            ("2025-02-11T11:00:00Z", "22 hours ago"),
            ("2025-02-11T13:00:00Z", "yesterday"),
            ("2025-02-13T13:00:00Z", "3 days ago"),
            ("2025-03-20T13:00:00Z", "1 month ago"),
            ("2026-01-20T13:00:00Z", "11 months ago"),
            ("2026-02-10T13:00:00Z", "1 year ago"),
            ("2031-02-20T13:00:00Z", "6 years ago"),
        ] {
            assert_eq!(seen(now).ago, expected, "{now}");
        }
    }

    #[test]
    fn sizes_have_one_digit_behind_the_point() {
        for (bytes, expected) in [
            (0, "0 B"),
            (1_023, "1023 B"),
            (1_536, "1.5 KiB"),
            (1_048_575, "1.0 MiB"),
            (5 << 30, "5.0 GiB"),
            (u64::MAX, "16777216.0 TiB"),
        ] {
            assert_eq!(size(bytes), expected);
        }
    }
}
