//! Why versions are too new, in dates: when they were published, which rule excludes them, and until when.

use crate::index::Universe as _;
use crate::ops::Session;
use crate::ops::explain::ways_out::line_in;
use crate::ops::session::age::date;
use crate::reference::Version;
use crate::select::{Clash, Rejection};
use crate::workspace::{Cutoff, Key, ReleaseAge};
use mu_provider::NamedBy;

/// Describes the versions of a package that are too new: a line, if there are any.
pub(super) fn notes(session: &Session, clash: &Clash) -> Vec<String> {
    let young = clash.rejected.iter().filter(|(rejection, _)| *rejection == Rejection::TooNew);
    young.filter_map(|(_, versions)| note(session, clash, &versions.runs.first()?.first)).collect()
}

/// Describes `oldest`, the first too new version that the rule will allow.
fn note(session: &Session, clash: &Clash, oldest: &str) -> Option<String> {
    let releases = session.index().releases(&clash.id).ok()?;
    let published = releases.published(releases.position(&Version::parse(oldest).ok()?)?)?;
    let now = session.environment.now;
    let age = session.workspace.settings.release_age(now);
    let rule = match (session.options.published_before, age) {
        (Some(moment), _) => {
            format!("; `--exclude-newer` excludes versions newer than {}", date(moment))
        }
        (None, Some(ReleaseAge { cutoff, named_by })) => {
            let effect = match cutoff {
                Cutoff::Age(age) => format!("allows it from {} on", date(published + age)),
                Cutoff::Moment(_) => "excludes newer versions".to_owned(),
            };
            format!("; `minimumReleaseAge: {cutoff}` ({}) {effect}", file(session, named_by))
        }
        (None, None) => String::new(),
    };
    let mut text = format!("{oldest} was published {} ago{rule}", rounded(now - published));
    if let Some(newest) = clash.available.runs.last() {
        text.push_str(&format!("; the newest that is old enough is {}", newest.last));
    }
    Some(text)
}

/// The file of settings that has the rule, with the line.
fn file(session: &Session, named_by: NamedBy) -> String {
    let key = Key::minimum_release_age;
    let own = ".mu/workspace.yaml";
    if named_by == NamedBy::Workspace {
        return match line_in(&session.workspace.root.join(own), key, key) {
            Some(line) => format!("{own}:{line}"),
            None => own.to_owned(),
        };
    }
    let user = session.environment.mu_home.join("config.yaml");
    match line_in(&user, key, key) {
        Some(line) => format!("{}:{line}", user.display()),
        None => user.display().to_string(),
    }
}

/// `12 minutes`: an age in the largest unit that fits.
fn rounded(seconds: i64) -> String {
    let seconds = seconds.max(1);
    let unit = [86_400, 3_600, 60].into_iter().find(|unit| seconds >= *unit).unwrap_or(1);
    Cutoff::Age(seconds / unit * unit).to_string()
}
