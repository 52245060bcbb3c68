//! Requirements made of a version that was published.
//!
//! The version keeps the text that it was published with: `1.28` stays `1.28`, because other tools take that text for the name of
//! a tag. Only where a requirement must name all numbers, because fewer are a range, does it name them; a [`Pin`] then has the
//! published text as well. This is the only place that adds numbers to a version.

use super::{Pin, Range, Tag, Version, VersionSpec};

impl VersionSpec {
    /// Exactly this version.
    pub fn exactly(version: &Version) -> Self {
        match Pin::of(version) {
            Some(pin) => Self::Pin(pin),
            // The version of the app in it leaves numbers out.
            None => Self::Tag(Tag::of(version)),
        }
    }

    /// This version, and later ones that are compatible with it: `^1.2.0`.
    pub fn compatible_with(version: &Version) -> Self {
        Self::beginning("^", version)
    }

    /// This version, and every later one: `>=1.2.0`.
    pub fn at_least(version: &Version) -> Self {
        Self::beginning(">=", version)
    }

    /// What this says of its own version, of another one: a pin stays one, a range keeps its operator and has as many numbers
    /// as before. Of anything but a pin and a simple range, what is compatible with `version`.
    pub fn moved_to(&self, version: &Version) -> Self {
        match self {
            Self::Pin(pin) => {
                pin.moved_to(version).map(Self::Pin).unwrap_or(Self::exactly(version))
            }
            Self::Range(range) => match range.moved_to(version) {
                Some(range) => Self::Range(range),
                None => Self::compatible_with(version),
            },
            _ => Self::compatible_with(version),
        }
    }

    fn beginning(operator: &str, version: &Version) -> Self {
        match first_range(texts(version).iter().map(|text| format!("{operator}{text}"))) {
            Some(range) => Self::Range(range),
            None => Self::exactly(version),
        }
    }
}

impl Range {
    /// This range with `version` in place of its own; `None` if it is not a simple one.
    fn moved_to(&self, version: &Version) -> Option<Self> {
        let written = self.as_str().trim();
        let end = written.find(|character: char| !"^~>=v ".contains(character))?;
        let (operator, rest) = written.split_at(end);
        if rest.contains([' ', ',', '|', '<', '>']) {
            return None;
        }
        let given: Vec<&str> = rest.split(['-', '+']).next().unwrap_or(rest).split('.').collect();
        let sign = operator.trim_end_matches(['v', ' ']);
        let form = |text: &String| {
            let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            match (sign, is_plain) {
                // A version above `>2` is not in 2.
                (">", _) => format!(">={text}"),
                (_, true) => format!("{operator}{}", in_place(&given, text)),
                // `1.2` and `1.2.x` mean the same as `~1.2`, which can name a prerelease.
                ("" | "=", false) if is_number(given.get(1)) => format!("~{text}"),
                ("" | "=", false) => format!("^{text}"),
                (_, false) => format!("{operator}{text}"),
            }
        };
        first_range(texts(version).iter().map(form))
    }
}

/// The version with as many numbers as `given`, at most; where that has an `x`, there stays one.
fn in_place(given: &[&str], version: &str) -> String {
    let raised = given.iter().zip(version.split('.'));
    let raised = raised.map(|(given, number)| if is_number(Some(given)) { number } else { given });
    raised.collect::<Vec<_>>().join(".")
}

fn is_number(part: Option<&&str>) -> bool {
    part.is_some_and(|part| part.parse::<u64>().is_ok())
}

/// How a version can be written: as it was published, and with all numbers.
pub(super) fn texts(version: &Version) -> Vec<String> {
    let mut texts = vec![version.to_string()];
    if version.is_spelt() {
        texts.push(version.in_full().to_string());
    }
    texts
}

/// The first text that is a range: those of versions whose numbers begin with zeros are not.
pub(super) fn first_range(texts: impl IntoIterator<Item = String>) -> Option<Range> {
    texts.into_iter().find_map(|text| Range::parse(&text).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> VersionSpec {
        VersionSpec::parse(text).expect("is a version")
    }

    #[test]
    fn a_moved_requirement_keeps_its_form() {
        for (written, version, expected) in [
            ("^1.0.6", "2.1.3", "^2.1.3"),
            ("~1.5", "2.1.3", "~2.1"),
            ("^1", "2.1.3", "^2"),
            ("1.x", "2.1.3", "2.x"),
            ("1.2.*", "2.1.3", "2.1.*"),
            (">=1.2", "2.1.3", ">=2.1"),
            ("1.2.3", "2.1.3", "2.1.3"),
            (">1", "2.1.3", ">=2.1.3"),
            ("> v1.2", "2.1.3", ">=2.1.3"),
            (">=1 <2", "2.1.3", "^2.1.3"),
            ("^1 || ^3", "4.0.0", "^4.0.0"),
            ("latest", "2.1.3", "^2.1.3"),
            // Prereleases.
            ("1.0.0-rc.1", "2.0.0-rc.1", "2.0.0-rc.1"),
            ("=1.0.0-rc.1", "2.0.0-rc.1", "=2.0.0-rc.1"),
            ("v1.0.0", "2.0.0-rc.1", "v2.0.0-rc.1"),
            ("~1.0.0-rc.1", "2.0.0-rc.1", "~2.0.0-rc.1"),
            ("~1.0.0-rc.1", "2.0.1", "~2.0.1"),
            ("~1.5", "2.0.0-rc.1", "~2.0.0-rc.1"),
            ("1.5", "2.0.0-rc.1", "~2.0.0-rc.1"),
            ("1.x", "2.0.0-rc.1", "^2.0.0-rc.1"),
            (">=1.5", "2.0.0-rc.1", ">=2.0.0-rc.1"),
            // Versions that were published with fewer numbers.
            ("^1.27", "1.29", "^1.29"),
            ("^1.27.0", "1.29", "^1.29"),
            ("~1", "1.29", "~1"),
            ("1.27.0", "1.29", "1.29.0"),
            ("^2024.1", "2024.02", "^2024.2"),
        ] {
            let version = Version::parse_lenient(version).expect("is a version");
            let moved = spec(written).moved_to(&version);
            assert_eq!(moved.as_str(), expected, "{written}");
            assert!(moved.accepts(&version, true), "{moved} accepts {version}");
        }
    }

    #[test]
    fn requirements_have_versions_as_they_were_published() {
        for (version, exact, compatible, least) in [
            ("1.2.0", "1.2.0", "^1.2.0", ">=1.2.0"),
            ("v1.2.0-rc.1", "1.2.0-rc.1", "^1.2.0-rc.1", ">=1.2.0-rc.1"),
            ("1.28", "1.28.0", "^1.28", ">=1.28"),
            ("2", "2.0.0", "^2", ">=2"),
            ("2024.01", "2024.1.0", "^2024.1.0", ">=2024.1.0"),
            ("1.29-rc1", "1.29.0-rc1", "^1.29.0-rc1", ">=1.29.0-rc1"),
        ] {
            let version = Version::parse_lenient(version).expect("is a version");
            let all = [
                (VersionSpec::exactly(&version), exact),
                (VersionSpec::compatible_with(&version), compatible),
                (VersionSpec::at_least(&version), least),
            ];
            for (made, expected) in all {
                assert_eq!(made.as_str(), expected);
                assert_eq!(made, spec(expected), "means the same when it is read again");
                assert!(made.has_lower_bound_at(&version), "{made} begins at {version}");
            }
        }
        let version = Version::parse_lenient("1.28").expect("is a version");
        let VersionSpec::Pin(pin) = VersionSpec::exactly(&version) else { panic!("is a pin") };
        assert_eq!(pin.published(), "1.28");
        let app = Version::composite("8.11", "1.0.0").expect("is a version");
        assert!(VersionSpec::exactly(&app).accepts(&app, false));
    }
}
