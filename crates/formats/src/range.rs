//! Converts ranges of the library `Masterminds/semver`, which Helm and Crossplane use, into ranges of mu.
//!
//! Nearly all ranges mean the same to both, and stay as they are written. Ranges that its reader rejects are
//! rejected here too.

use mu_manifest::Requirement;
use mu_manifest::reference::Range;
use mu_manifest::source::TextProblem;

/// How many alternatives a range may become.
const MOST_ALTERNATIVES: usize = 64;

/// Operators, longest first.
const OPERATORS: [&str; 11] = ["=>", "=<", ">=", "<=", "!=", "==", "~>", ">", "<", "=", "~"];

/// A range as mu reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    /// Its text.
    pub text: String,
    /// Whether one of its comparators names a prerelease. If so, all prereleases are candidates.
    pub prerelease: bool,
}

/// Rewrites a range.
///
/// # Errors
///
/// When the text is not a range: the reason, in words that continue "the range `…`".
pub fn rewritten(text: &str) -> Result<Rewritten, String> {
    let text = text.trim();
    let mut prerelease = false;
    let mut is_same = true;
    let mut alternatives = Vec::new();
    for alternative in text.split("||") {
        let terms = terms(alternative)?;
        prerelease |= terms.iter().any(|term| term.version.pre.is_some());
        is_same &= terms.iter().all(|term| term.is_same);
        spell_out(&mut alternatives, terms.iter().map(Term::comparator))?;
    }
    let text = if is_same { text.to_owned() } else { alternatives.join(" || ") };
    match Range::parse(&text) {
        Ok(_) => Ok(Rewritten { text, prerelease }),
        Err(error) => Err(format!("cannot be read: {error}")),
    }
}

/// The range for an entry that can say by its range alone that prereleases are wanted.
///
/// # Errors
///
/// When this range cannot say it.
pub(crate) fn ranged(range: &str, wanted: &Requirement) -> Result<String, TextProblem> {
    if !wanted.prerelease {
        return Ok(range.to_owned());
    }
    with_prereleases(range).ok_or_else(|| {
        TextProblem::new(format!("`{range}` cannot say here that prereleases are wanted"))
            .help("write a range that names one, such as `>=1.2.0-0 <2.0.0-0`")
    })
}

/// The range with the least prerelease of each of its versions, so that prereleases are candidates: `^1.2` is `^1.2.0-0`. A range that
/// names a prerelease stays as it is. `None` if this would be another range.
fn with_prereleases(text: &str) -> Option<String> {
    if rewritten(text).ok()?.prerelease {
        return Some(text.to_owned());
    }
    let mut alternatives = Vec::new();
    for alternative in text.split("||") {
        let terms = terms(alternative).ok()?;
        let terms: Option<Vec<String>> = terms.iter().map(Term::with_prereleases).collect();
        alternatives.push(terms?.join(" "));
    }
    Some(alternatives.join(" || "))
}

/// A comparator.
#[derive(Debug, Clone)]
struct Term<'t> {
    operator: &'t str,
    version: Partial<'t>,
    /// The other end, of a range with a hyphen.
    last: Option<Partial<'t>>,
    /// Whether mu reads it as it is written.
    is_same: bool,
}

impl Term<'_> {
    /// Its operator and version in mu's syntax.
    fn comparator(&self) -> Result<(&str, String), String> {
        let operator = match self.operator {
            "!=" if self.version.numbers.first() == Some(&"x") => {
                return Err("excludes every version".to_owned());
            }
            "=>" => ">=",
            "=<" => "<=",
            "==" => "=",
            other => other,
        };
        let version = match &self.last {
            Some(last) => format!("{} - {}", self.version.written(), last.written()),
            None => self.version.written(),
        };
        Ok((operator, version))
    }

    fn with_prereleases(&self) -> Option<String> {
        let numbers: Vec<&str> =
            self.version.numbers.iter().take_while(|part| **part != "x").copied().collect();
        let operator = match (self.operator, &numbers[..]) {
            _ if self.last.is_some() => return None,
            ("", []) => ">=",
            // The operators see how many numbers there are.
            ("^" | "" | "~" | "~>", [major]) if *major != "0" => "^",
            ("^", [major, minor]) if (*major, *minor) != ("0", "0") => "^",
            ("" | "~" | "~>", [_, _]) => "~",
            ("^", [_, _, _]) => "^",
            ("~" | "~>", [_, _, _]) => "~",
            (">=" | "=>", [_, ..]) => ">=",
            ("<", [_, ..]) => "<",
            _ => return None,
        };
        let numbers: Vec<&str> = numbers.into_iter().chain(["0", "0", "0"]).take(3).collect();
        Some(format!("{operator}{}-0", numbers.join(".")))
    }
}

/// A version whose numbers may be missing.
#[derive(Debug, Clone)]
struct Partial<'t> {
    /// Up to three numbers, without leading zeros; `x` stands for any number.
    numbers: Vec<&'t str>,
    pre: Option<&'t str>,
}

/// The comparators of an alternative, which must all hold.
fn terms(alternative: &str) -> Result<Vec<Term<'_>>, String> {
    let mut rest = alternative.trim();
    if rest.is_empty() {
        return Err("is empty, or has an empty part at a `||`".to_owned());
    }
    let mut terms = Vec::new();
    while !rest.is_empty() {
        let operator = OPERATORS.iter().chain(&["^"]).find(|operator| rest.starts_with(**operator));
        let operator = operator.copied().unwrap_or_default();
        let after = rest.strip_prefix(operator).unwrap_or(rest).trim_start();
        let (version, after, mut is_same) = partial(after)?;
        is_same &= !matches!(operator, "=>" | "=<" | "!=" | "==");
        let mut term = Term { operator, version, last: None, is_same };
        let blank = after.len() - after.trim_start().len();
        rest = after.trim_start();
        if let Some(last) = rest.strip_prefix('-').filter(|_| operator.is_empty() && blank > 0) {
            let (last, after, is_same) = partial(last.trim_start())?;
            term.last = Some(last);
            term.is_same &= is_same;
            rest = after.trim_start();
        }
        terms.push(term);
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
    }
    Ok(terms)
}

/// A version at the beginning of a text, the rest of the text, and whether mu reads the version as it is
/// written.
fn partial(text: &str) -> Result<(Partial<'_>, &str, bool), String> {
    let end = text.find([' ', '\t', '\n', ',']).unwrap_or(text.len());
    let (whole, after) = text.split_at(end);
    let wrong = || format!("is not a range: `{whole}` is not a version");
    let bare = whole.strip_prefix('v').unwrap_or(whole);
    let (bare, build) =
        bare.split_once('+').map_or((bare, None), |(bare, build)| (bare, Some(build)));
    let (numbers, pre) = bare.split_once('-').map_or((bare, None), |(bare, pre)| (bare, Some(pre)));
    let is_suffix = |text: &str| {
        !text.is_empty()
            && text.split('.').all(|part| {
                !part.is_empty()
                    && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            })
    };
    if !pre.is_none_or(is_suffix) || !build.is_none_or(is_suffix) {
        return Err(wrong());
    }
    let mut is_same = true;
    let mut parts = Vec::new();
    for part in numbers.split('.') {
        let plain = part.trim_start_matches('0');
        let plain = if plain.is_empty() && !part.is_empty() { "0" } else { plain };
        match part {
            "x" | "X" | "*" => parts.push("x"),
            _ if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) => {
                is_same &= plain == part;
                parts.push(plain);
            }
            _ => return Err(wrong()),
        }
    }
    if parts.len() > 3 {
        return Err(wrong());
    }
    let is_full = parts.len() == 3 && !parts.contains(&"x");
    is_same &= is_full || (pre.is_none() && build.is_none());
    Ok((Partial { numbers: parts, pre }, after, is_same))
}

/// Adds an alternative to others, by the comparators that must all hold; several where it leaves out versions in the middle.
pub(crate) fn spell_out<'t>(
    alternatives: &mut Vec<String>,
    comparators: impl IntoIterator<Item = Result<(&'t str, String), String>>,
) -> Result<(), String> {
    let few_enough = |count: usize| match count > MOST_ALTERNATIVES {
        true => Err("excludes too many versions".to_owned()),
        false => Ok(()),
    };
    let mut own = vec![Vec::new()];
    for comparator in comparators {
        let (mut operator, version) = comparator?;
        let mut others = Vec::new();
        if operator == "!=" {
            others.clone_from(&own);
            others.iter_mut().for_each(|other| other.push(format!(">{version}")));
            operator = "<";
        }
        own.iter_mut().for_each(|one| one.push(format!("{operator}{version}")));
        own.append(&mut others);
        few_enough(own.len())?;
    }
    alternatives.extend(own.into_iter().map(|comparators| comparators.join(" ")));
    few_enough(alternatives.len())
}

impl Partial<'_> {
    /// The version in mu's syntax: without build metadata, and with three numbers if it names a prerelease.
    fn written(&self) -> String {
        match self.pre {
            None => self.numbers.join("."),
            Some(pre) => {
                let zeros = self.numbers.iter().map(|part| if *part == "x" { "0" } else { part });
                let numbers: Vec<&str> = zeros.chain(["0", "0"]).take(3).collect();
                format!("{}-{pre}", numbers.join("."))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use mu_manifest::reference::Version;

    use super::*;

    #[test]
    fn most_ranges_stay_as_they_are() {
        for text in [
            "1.2.3",
            "v1.2.3",
            "=1.2",
            "^1.2.0",
            "~1.2",
            "~> 1.2",
            "1.x",
            "*",
            "x",
            "1.2.*",
            ">=1.2 <2",
            ">= 1.2.0, < 2.0.0",
            ">1,<3",
            "1.2 - 1.4.5",
            "^1 || ^3.0.0",
            "1.2.3+build",
            "<= 2",
            "0.x.x",
        ] {
            let expected = Rewritten { text: text.to_owned(), prerelease: false };
            assert_eq!(rewritten(text), Ok(expected), "{text}");
        }
        assert_eq!(rewritten(" ^1 ").map(|range| range.text), Ok("^1".to_owned()));
    }

    #[test]
    fn what_mu_writes_otherwise_is_rewritten() {
        for (text, expected, prerelease) in [
            ("=> 1.2", ">=1.2", false),
            ("=< 1.2", "<=1.2", false),
            ("==1.2.3", "=1.2.3", false),
            (">=1 !=1.2.3", ">=1 <1.2.3 || >=1 >1.2.3", false),
            ("!=1.2", "<1.2 || >1.2", false),
            (">=1.19.0-0", ">=1.19.0-0", true),
            (">=1.19-0", ">=1.19.0-0", true),
            (">= 1.19-0 < 1.30.0", ">=1.19.0-0 <1.30.0", true),
            ("^1.x.x-0", "^1.0.0-0", true),
            ("^01.02", "^1.2", false),
            ("1.2+b", "1.2", false),
        ] {
            let expected = Rewritten { text: expected.to_owned(), prerelease };
            assert_eq!(rewritten(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_range_can_let_prereleases_in() {
        for (text, expected) in [
            ("^1.2.3", Some("^1.2.3-0")),
            ("^1.2", Some("^1.2.0-0")),
            ("^1", Some("^1.0.0-0")),
            ("~1.2", Some("~1.2.0-0")),
            ("~1", Some("^1.0.0-0")),
            ("1.x", Some("^1.0.0-0")),
            ("1.2", Some("~1.2.0-0")),
            ("^0.2", Some("^0.2.0-0")),
            ("*", Some(">=0.0.0-0")),
            (">=1.2 <2", Some(">=1.2.0-0 <2.0.0-0")),
            ("^1 || ^3.1", Some("^1.0.0-0 || ^3.1.0-0")),
            (">=1.0.0-rc.1 <2", Some(">=1.0.0-rc.1 <2")),
            ("^0", None),
            ("^0.0", None),
            (">1.2.0", None),
            ("<=1.2.0", None),
            ("!=1.2.0", None),
            ("1.2 - 1.4", None),
            ("1.2.3", None),
        ] {
            assert_eq!(with_prereleases(text).as_deref(), expected, "{text}");
            let Some(found) = expected else { continue };
            let [before, now] = [text, found].map(|text| {
                Range::parse(&rewritten(text).expect("is a range").text).expect("is one")
            });
            for version in
                ["0.1.9", "0.2.0", "0.2.7", "1.0.0", "1.2.3", "1.2.9", "1.3.0", "2.0.0", "3.1.0"]
            {
                let version = Version::parse(version).expect("is one");
                let matches = |range: &Range| range.matches(&version, true);
                assert_eq!(matches(&before), matches(&now), "{text}: {version}");
            }
        }
    }

    #[test]
    fn leaving_out_a_part_leaves_out_all_that_begin_so() {
        let holds = |text: &str, version: &str| {
            let range = Range::parse(&rewritten(text).expect("is a range").text).expect("is one");
            range.matches(&Version::parse(version).expect("is one"), false)
        };
        for (version, expected) in
            [("1.1.9", true), ("1.2.0", false), ("1.2.7", false), ("1.3.0", true)]
        {
            assert_eq!(holds("!=1.2", version), expected, "{version}");
        }
        for (version, expected) in
            [("1.2.2", true), ("1.2.3", false), ("1.2.4", true), ("2.0.0", false)]
        {
            assert_eq!(holds("!=1.2.3 <2", version), expected, "{version}");
        }
    }

    #[test]
    fn what_its_reader_refuses_is_refused() {
        for text in [
            "", "latest", "^", ">=a", "1.2.3.4", "1 ||", "|| 1", "1.2.3-", "!=*", "$1", "1..2",
            "!1",
        ] {
            assert!(rewritten(text).is_err(), "{text}");
        }
        let many = "!=1.0.1 ".repeat(40);
        assert!(rewritten(&many).is_err());
    }
}
