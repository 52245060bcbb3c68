//! Requirements made of a version that was published, and ranges with another lower bound, as close as possible to what was
//! written.
//!
//! The version keeps the text that it was published with: `1.28` stays `1.28`, because other tools take that text for the name of
//! a tag. Only where a requirement must name all numbers, because fewer are a range, does it name them; a [`Pin`] then has the
//! published text as well. This is the only place that adds numbers to a version.

use super::range::{Alternative, Comparator, Side};
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
fn first_range(texts: impl IntoIterator<Item = String>) -> Option<Range> {
    texts.into_iter().find_map(|text| Range::parse(&text).ok())
}

impl Range {
    /// A range that begins at `version` and ends where this one ends, in the same form if that form can
    /// express it.
    ///
    /// Alternatives that end before `version` are left out. If the whole range ends before `version`, only
    /// the form is kept.
    pub fn beginning_at(&self, published: &Version) -> Self {
        let Some(version) = published.leading() else { return self.clone() };
        let parts: Vec<&str> = self.as_str().split("||").map(str::trim).collect();
        let mut written: Vec<String> = Vec::new();
        for (alternative, text) in self.alternatives().iter().zip(parts) {
            if alternative.is_above(version) {
                if !written.is_empty() {
                    written.push(text.to_owned());
                }
            } else if !alternative.ends_before(version) && written.is_empty() {
                written.push(alternative.beginning_at(text, published));
            }
        }
        let text = if written.is_empty() {
            let first = self.as_str().split("||").next().unwrap_or_default();
            let texts = texts(published);
            let forms = texts.iter().filter_map(|text| same_form(first.trim(), text));
            let form = first_range(forms)
                .filter(|range| !range.alternatives().iter().any(|one| one.ends_before(version)));
            let plain = || first_range(texts.iter().map(|text| format!("^{text}")));
            return form.or_else(plain).unwrap_or_else(|| self.clone());
        } else {
            written.join(" || ")
        };
        Self::parse(&text).unwrap_or_else(|_| self.clone())
    }
}

impl Alternative {
    fn is_above(&self, version: &semver::Version) -> bool {
        self.0.iter().any(|comparator| comparator.side.is_lower() && comparator.version > *version)
    }

    fn ends_before(&self, version: &semver::Version) -> bool {
        self.0.iter().any(|comparator| match comparator.side {
            Side::Below => *version >= comparator.version,
            Side::AtMost => *version > comparator.version,
            Side::Above | Side::AtLeast => false,
        })
    }

    /// The lowest of the upper bounds.
    fn end(&self) -> Option<&Comparator> {
        let ends = self.0.iter().filter(|comparator| !comparator.side.is_lower());
        ends.min_by(|one, two| {
            let key = |comparator: &Comparator| comparator.side == Side::AtMost;
            one.version.cmp(&two.version).then(key(one).cmp(&key(two)))
        })
    }

    /// What `text`, which this was read from, must become.
    fn beginning_at(&self, text: &str, version: &Version) -> String {
        let end = self.end();
        let texts = texts(version);
        let same = texts.iter().filter_map(|version| same_form(text, version));
        let signs = ["^", "~", ">="].iter();
        let simple = signs.flat_map(|sign| texts.iter().map(move |text| format!("{sign}{text}")));
        for form in same.chain(simple) {
            let Ok(range) = Range::parse(&form) else { continue };
            if range.alternatives().first().is_some_and(|alternative| alternative.end() == end) {
                return form;
            }
        }
        let end = end.map(Comparator::written).unwrap_or_default();
        let bounded = first_range(texts.iter().map(|text| format!(">={text} {end}")));
        bounded.map_or_else(|| text.to_owned(), |range| range.as_str().to_owned())
    }
}

impl Comparator {
    /// An upper bound as a person would write it.
    fn written(&self) -> String {
        let operator = if self.side == Side::AtMost { "<=" } else { "<" };
        let version = &self.version;
        let text = match (self.is_completed, version.minor, version.patch) {
            (true, 0, 0) => version.major.to_string(),
            (true, minor, 0) => format!("{}.{minor}", version.major),
            _ => version.to_string(),
        };
        format!("{operator}{text}")
    }
}

/// A range of one term with the same operator as `text`.
fn same_form(text: &str, version: &str) -> Option<String> {
    let sign = ["~>", "^", "~"].into_iter().find(|sign| text.starts_with(sign));
    match sign {
        Some(sign) => Some(format!("{sign}{version}")),
        None if text.starts_with(">=") => {
            let rest = text[2..].trim_start();
            let upper =
                rest.split_once([' ', ',']).map(|(_, upper)| upper.trim_start_matches([' ', ',']));
            Some(match upper {
                Some(upper) => format!(">={version} {upper}"),
                None => format!(">={version}"),
            })
        }
        // `1.2` and `1.2.x` mean the same as `~1.2`.
        None if text.split('.').count() > 1 && !text.contains([' ', ',', '<', '>']) => {
            let has_minor = text.split('.').nth(1).is_some_and(|part| part.parse::<u64>().is_ok());
            Some(if has_minor { format!("~{version}") } else { format!("^{version}") })
        }
        None => None,
    }
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

    #[test]
    fn the_form_and_the_end_stay() {
        let check = |before: &str, version: &str, expected: &str| {
            let range = Range::parse(before).expect("is a range");
            let version = Version::parse_lenient(version).expect("is a version");
            assert_eq!(range.beginning_at(&version).as_str(), expected, "{before} at {version}");
        };
        check("^1.2", "1.5.0", "^1.5.0");
        check("~1.2", "1.2.7", "~1.2.7");
        check("~> 1.2", "1.2.7", "~>1.2.7");
        check("1.2", "1.2.7", "~1.2.7");
        check("1.x", "1.2.7", "^1.2.7");
        check("1", "1.2.7", "^1.2.7");
        check(">=1.2", "1.5.0", ">=1.5.0");
        check(">1.2", "1.5.0", ">=1.5.0");
        check(">=1.2 <2", "1.5.0", ">=1.5.0 <2");
        check(">1.2, <=1.8", "1.5.0", ">=1.5.0 <1.9");
        check("1.2 - 1.8.3", "1.5.0", ">=1.5.0 <=1.8.3");
        check("^0", "0.3.1", ">=0.3.1 <1");
        check("^0.3", "0.3.1", "^0.3.1");
        check("^1 || ^3", "1.5.0", "^1.5.0 || ^3");
        check("^1 || ^3", "3.2.0", "^3.2.0");
        check("<2", "1.5.0", "^1.5.0");
        check("^1.2", "1.5.0-rc.1", "^1.5.0-rc.1");
        // A version stays as it was published, where that means the same.
        check("^1.27", "1.29", "^1.29");
        check("^1.27.0", "1.29", "^1.29");
        check(">=1.27 <2", "1.29", ">=1.29 <2");
        check("1.x", "1.29", "^1.29");
        // Beyond the range, only the form can stay.
        check("^1.5", "1.2.0", "^1.2.0");
        check("~1.5", "2.1.3", "~2.1.3");
        check(">=1.5 <2", "1.2.0", ">=1.2.0 <2");
        check("^1.5", "2.1.3", "^2.1.3");
        // An upper bound that `version` exceeds is dropped.
        check(">=1.5 <2", "2.1.3", "^2.1.3");
        check(">=1, <=1.2", "2.1.3", "^2.1.3");
    }
}
