//! How new a version may be, according to the command line or the settings, and how to say it.
//!
//! Selection applies the rule; commands that ask use it to predict what would be passed over.

use mu_provider::Dates;

use crate::ops::Session;
use crate::workspace::{Cutoff, Key};

/// What is known about the age of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Age {
    /// It does not matter: the version is locked, or nobody publishes it.
    Exempt,
    /// It is not known.
    Unknown,
    /// The version was published then, in seconds since 1970.
    Since(i64),
}

/// The rule.
#[derive(Debug, Clone, Default)]
pub(crate) struct AgeRule {
    /// The latest moment that the command line allows, in seconds since 1970.
    excluded_newer: Option<i64>,
    /// What the settings say.
    cutoff: Option<Cutoff>,
    /// Now, in seconds since 1970.
    now: i64,
}

impl Session {
    /// The rule of the command line, or else that of the settings.
    pub(crate) fn age_rule(&self) -> AgeRule {
        AgeRule {
            excluded_newer: self.options.published_before,
            cutoff: self.workspace.settings.release_age(self.environment.now).map(|age| age.cutoff),
            now: self.environment.now,
        }
    }
}

impl AgeRule {
    /// The latest time of publication that it allows, in seconds since 1970; `None` if it allows all.
    pub(crate) fn latest_publication(&self) -> Option<i64> {
        let latest = self.excluded_newer.or_else(|| Some(self.cutoff?.cutoff_time(self.now)));
        // `--exclude-newer` can lift the rule of the settings: then its moment is beyond all times.
        latest.filter(|moment| *moment < i64::MAX)
    }

    /// Why publication times are needed; `is_shown` says that the answer shows them.
    pub(crate) fn needed_dates(&self, is_shown: bool) -> Dates {
        match self.latest_publication() {
            _ if is_shown => Dates::Shown,
            Some(_) => Dates::Needed,
            None => Dates::Ignored,
        }
    }

    /// Why a version is passed over; `None` if it is not.
    pub(crate) fn passed_over_reason(&self, age: Age) -> Option<String> {
        let latest = self.latest_publication()?;
        let rule = Key::minimum_release_age;
        let key = if self.excluded_newer.is_some() { "--exclude-newer" } else { rule };
        match age {
            Age::Exempt => None,
            Age::Unknown => Some(format!("may be too new: its age is not known ({key})")),
            Age::Since(published) if published <= latest => None,
            Age::Since(published) => Some(match (self.excluded_newer, self.cutoff) {
                // With an age, a version becomes old enough one day. A fixed moment stays.
                (None, Some(Cutoff::Age(age))) => {
                    format!("too new until {} ({key})", date_text(published.saturating_add(age)))
                }
                _ => format!("newer than {} ({key})", date_text(latest)),
            }),
        }
    }
}

/// The date of a time, with the hour if it is not midnight.
pub(crate) fn date_text(moment: i64) -> String {
    let text = Cutoff::Moment(moment).to_string();
    text.strip_suffix("T00:00:00Z")
        .map_or_else(|| text.replace('T', " ").replace('Z', " UTC"), str::to_owned)
}
