//! Where advisories come from, and which of them do not count for a while: `advisories` and `audit` in the two files of settings.
//!
//! What the two files say is joined. Whose file says it is kept, because a workspace's ignores are no reason to use what a feed of the
//! user's calls malicious. Feeds are read elsewhere.

use std::path::Path;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use mu_provider::{InnerPath, NamedBy, SafeUrl};

use super::schema::{AuditTable, File};
use super::trust::TrustFile;
use crate::manifest::source::{SourceError, Table, Text, TextProblem};

/// The feeds and the ignores of both files, the user's first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AdvisorySettings {
    /// Where advisories come from.
    pub feeds: Vec<Feed>,
    /// Which of them do not count.
    pub ignores: Vec<Ignore>,
}

/// Where advisories come from.
#[derive(Debug, Clone, PartialEq)]
pub struct Feed {
    /// The place.
    pub place: FeedPlace,
    /// Whose file names it.
    pub named_by: NamedBy,
}

/// The place of advisories.
#[derive(Debug, Clone, PartialEq)]
pub enum FeedPlace {
    /// The hub of each package.
    Hub,
    /// A folder with files of OSV.
    Folder(TrustFile),
    /// A file on a web server.
    Url(SafeUrl),
}

/// An advisory that does not count until a day is over.
#[derive(Debug, Clone, PartialEq)]
pub struct Ignore {
    /// The id of the finding.
    pub id: String,
    /// The last day.
    pub until: Date,
    /// Why.
    pub why: String,
    /// Whose file says so.
    pub named_by: NamedBy,
}

impl Ignore {
    /// Whether its last day is over, in UTC, if it is now `now`.
    pub fn is_over(&self, now: i64) -> bool {
        let now = Timestamp::from_second(now).unwrap_or(Timestamp::MAX);
        now.to_zoned(TimeZone::UTC).date() > self.until
    }
}

impl AdvisorySettings {
    /// Whether a feed is named that may have advisories.
    pub fn has_any(&self) -> bool {
        self.feeds.iter().any(|feed| feed.place != FeedPlace::Hub)
    }

    /// Both files joined: this one, the workspace's, and the user's.
    pub(super) fn over(self, below: Self) -> Self {
        let mut joined = below;
        for feed in self.feeds {
            // What both name is the user's.
            if !joined.feeds.iter().any(|known| known.place == feed.place) {
                joined.feeds.push(feed);
            }
        }
        joined.ignores.extend(self.ignores);
        joined
    }
}

/// Reads what one file says, whose paths are relative to `folder`.
pub(super) fn read(
    table: Table<'_>,
    named_by: NamedBy,
    folder: &Path,
) -> Result<AdvisorySettings, SourceError> {
    let mut feeds = Vec::new();
    if let Some(list) = table.get(File::advisories) {
        for value in list.list()? {
            feeds.push(Feed { place: place(&value.text()?, named_by, folder)?, named_by });
        }
    }
    let mut ignores = Vec::new();
    if let Some(audit) = table.get(File::audit) {
        ignores = audit.table(AuditTable::KEYS)?.entries(AuditTable::ignore, |(id, value)| {
            let (until, why) = value.text()?.parse(until)?;
            Ok(Ignore { id: id.as_str().to_owned(), until, why, named_by })
        })?;
    }
    Ok(AdvisorySettings { feeds, ignores })
}

fn place(text: &Text<'_>, named_by: NamedBy, folder: &Path) -> Result<FeedPlace, SourceError> {
    let written = text.as_str();
    if written == "hub" {
        return Ok(FeedPlace::Hub);
    }
    if written.contains("://") {
        return text.parse(web_place).map(FeedPlace::Url);
    }
    if named_by == NamedBy::User {
        let path = crate::env::absolute(folder, Path::new(written));
        return Ok(FeedPlace::Folder(TrustFile::OfUser(path)));
    }
    let path = written.strip_prefix("./").unwrap_or(written).trim_end_matches('/');
    let inner = InnerPath::parse(path).map_err(|error| {
        let message = format!("this is not a folder below the workspace's root: {error}");
        text.error(message).help("write `hub`, a folder such as `./advisories`, or a URL")
    })?;
    Ok(FeedPlace::Folder(TrustFile::InWorkspace(inner)))
}

/// A file on a web server, of a kind that can be read.
fn web_place(text: &str) -> Result<SafeUrl, TextProblem> {
    let help = "feeds are at https://, and end with `.jsonl`, `.jsonl.gz` or `.zip`";
    let problem = |message: &str| TextProblem::new(message).help(help);
    let url = SafeUrl::parse(text).map_err(|error| problem(&error.to_string()))?;
    match url.scheme() {
        "https" => {}
        "http" if url.is_loopback() => {}
        _ => return Err(problem("advisories come by https")),
    }
    let path = url.as_url().path();
    match [".jsonl", ".jsonl.gz", ".zip"].iter().any(|ending| path.ends_with(ending)) {
        true => Ok(url),
        false => Err(problem("the ending of this URL does not say how its advisories are written")),
    }
}

/// The last day of an ignore, and its reason: `until 2026-12-31, we do not use that part`.
fn until(text: &str) -> Result<(Date, String), TextProblem> {
    let help = "write a day and a reason, such as `until 2026-12-31, we do not use that part`";
    let problem = |message: &str| TextProblem::new(message).help(help);
    let rest = text.trim().strip_prefix("until ");
    let rest = rest.ok_or_else(|| problem("this does not say until when it counts"))?;
    let (day, why) = rest.split_once(',').unwrap_or((rest, ""));
    let day = day.trim();
    let date = day.parse().map_err(|_| problem(&format!("`{day}` is not a day")))?;
    match why.trim() {
        "" => Err(problem("this gives no reason")),
        why => Ok((date, why.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignore_has_a_last_day_and_a_reason() {
        let read = |text: &str| until(text).map_err(|problem| problem.message);
        let day: Date = "2026-12-31".parse().expect("is a day");
        assert_eq!(
            read("until 2026-12-31, not used, here"),
            Ok((day, "not used, here".to_owned()))
        );
        for (text, message) in [
            ("2026-12-31, not used", "this does not say until when it counts"),
            ("until soon, not used", "`soon` is not a day"),
            ("until 2026-12-31", "this gives no reason"),
            ("until 2026-12-31, ", "this gives no reason"),
        ] {
            assert_eq!(read(text), Err(message.to_owned()), "{text}");
        }
        let ignore =
            |named_by| Ignore { id: "A".to_owned(), until: day, why: String::new(), named_by };
        let ignore = ignore(NamedBy::User);
        let last: Timestamp = "2026-12-31T23:59:59Z".parse().expect("is a time");
        assert!(!ignore.is_over(last.as_second()) && ignore.is_over(last.as_second() + 1));
    }

    #[test]
    fn feeds_on_web_servers_come_by_https_and_say_what_they_are() {
        for url in [
            "https://a.example/x/all.zip",
            "https://a.example/x.jsonl.gz?v=1",
            "http://127.0.0.1:80/x.jsonl",
        ] {
            assert!(web_place(url).is_ok(), "{url}");
        }
        for url in
            ["http://a.example/all.zip", "file:///srv/all.zip", "https://a.example/", "https://"]
        {
            assert!(web_place(url).is_err(), "{url}");
        }
    }
}
