//! Ranges with another lower bound, as close as possible to what was written.

use super::range::{Alternative, Comparator, Side};
use super::stating::{first_range, texts};
use super::{Range, Version};

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
