//! What a `.helmignore` leaves out of a chart, as Helm reads it. Its rules are not those of Git: the first one that leaves something out
//! decides, and `!name` leaves out all that is not `name`. No file is read here.
//!
//! Sources: `pkg/ignore` of Helm 3, and the patterns of Go's `path/filepath`.

use std::iter::Peekable;
use std::str::Chars;

/// The rules of a `.helmignore`.
#[derive(Debug, Clone, Default)]
pub struct IgnoreRules(Vec<IgnoreRule>);

/// A line because of which Helm refuses the whole chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedLine<'t> {
    /// Its number, from 1 on.
    pub number: usize,
    /// What stands there.
    pub text: &'t str,
    /// What Helm does not know.
    pub why: &'static str,
}

#[derive(Debug, Clone)]
struct IgnoreRule {
    pattern: Vec<Token>,
    is_negated: bool,
    is_for_folders: bool,
    /// Whether the pattern is about the whole path, and not about the name alone.
    is_for_paths: bool,
}

/// What a pattern has in the place of some characters of a path.
#[derive(Debug, Clone)]
enum Token {
    /// Any of them, but no `/`.
    Star,
    /// One, but no `/`.
    One,
    /// This one.
    Character(char),
    /// One in these ranges, or, if it is negated, in none of them.
    Class { is_negated: bool, ranges: Vec<(char, char)> },
}

impl IgnoreRules {
    /// Reads a `.helmignore`. Lines that Helm does not take are returned, and leave nothing out here.
    pub fn parse(text: &str) -> (Self, Vec<RefusedLine<'_>>) {
        let (mut rules, mut refused) = (Vec::new(), Vec::new());
        for (at, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let text = line.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            match IgnoreRule::parse(text) {
                Ok(rule) => rules.push(rule),
                Err(why) => refused.push(RefusedLine { number: at + 1, text, why }),
            }
        }
        (Self(rules), refused)
    }

    /// Whether the file or folder at `path` in the chart is left out.
    pub fn ignores(&self, path: &str, is_folder: bool) -> bool {
        self.0.iter().any(|rule| rule.leaves_out(path, is_folder))
    }
}

impl IgnoreRule {
    fn parse(line: &str) -> Result<Self, &'static str> {
        if line.contains("**") {
            return Err("Helm knows no `**`");
        }
        let (is_negated, rule) = match line.strip_prefix('!') {
            Some(rule) => (true, rule),
            None => (false, line),
        };
        let (is_for_folders, rule) = match rule.strip_suffix('/') {
            Some(rule) => (true, rule),
            None => (false, rule),
        };
        let pattern = tokens(rule.strip_prefix('/').unwrap_or(rule))
            .ok_or("a `[` that nothing closes, or a `\\` before nothing")?;
        Ok(Self { pattern, is_negated, is_for_folders, is_for_paths: rule.contains('/') })
    }

    fn leaves_out(&self, path: &str, is_folder: bool) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        let is_named = (is_folder || !self.is_for_folders)
            && matches(&self.pattern, if self.is_for_paths { path } else { name });
        is_named != self.is_negated
    }
}

/// The parts of a pattern; `None` if Go takes it for none.
fn tokens(pattern: &str) -> Option<Vec<Token>> {
    let mut rest = pattern.chars().peekable();
    let mut tokens = Vec::new();
    while let Some(next) = rest.next() {
        tokens.push(match next {
            '*' => Token::Star,
            '?' => Token::One,
            '\\' => Token::Character(rest.next()?),
            '[' => {
                let is_negated = rest.next_if_eq(&'^').is_some();
                let mut ranges = Vec::new();
                while ranges.is_empty() || rest.next_if_eq(&']').is_none() {
                    let first = class_character(&mut rest)?;
                    let last = match rest.next_if_eq(&'-') {
                        Some(_) => class_character(&mut rest)?,
                        None => first,
                    };
                    ranges.push((first, last));
                }
                Token::Class { is_negated, ranges }
            }
            other => Token::Character(other),
        });
    }
    Some(tokens)
}

/// A character between `[` and `]`.
fn class_character(rest: &mut Peekable<Chars<'_>>) -> Option<char> {
    match rest.next()? {
        '-' | ']' => None,
        '\\' => rest.next(),
        other => Some(other),
    }
}

/// Whether a pattern names all of `text`.
fn matches(pattern: &[Token], text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut read) = (0, 0);
    // The last star, and up to where it reaches. To let an earlier one reach further would only leave less to this one.
    let mut star: Option<(usize, usize)> = None;
    while read < text.len() || at < pattern.len() {
        let next = text.get(read).copied();
        let fits = match (pattern.get(at), next) {
            (Some(Token::Star), _) => {
                star = Some((at, read));
                at += 1;
                continue;
            }
            (Some(Token::One), Some(next)) => next != '/',
            (Some(Token::Character(wanted)), Some(next)) => *wanted == next,
            (Some(Token::Class { is_negated, ranges }), Some(next)) => {
                let is_inside = ranges.iter().any(|(first, last)| (*first..=*last).contains(&next));
                is_inside != *is_negated
            }
            _ => false,
        };
        if fits {
            (at, read) = (at + 1, read + 1);
            continue;
        }
        match star {
            Some((place, reaches)) if text.get(reaches).is_some_and(|taken| *taken != '/') => {
                star = Some((place, reaches + 1));
                (at, read) = (place + 1, reaches + 1);
            }
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_leave_out_what_helm_leaves_out() {
        for (rules, path, is_folder, expected) in [
            ("helm.txt", "helm.txt", false, true),
            ("helm.txt", "sub/helm.txt", false, true),
            ("helm.*", "helm.txt", false, true),
            ("helm.*", "rudder.txt", false, false),
            ("*.txt", "sub/tiller.txt", false, true),
            ("cargo", "cargo", true, true),
            ("cargo/", "cargo", true, true),
            ("cargo/", "cargo", false, false),
            ("cargo/", "mast/cargo", true, true),
            ("cargo/*", "cargo/a.txt", false, true),
            ("cargo/*.*", "cargo/a/b.txt", false, false),
            ("/helm.txt", "helm.txt", false, true),
            ("/helm.txt", "sub/helm.txt", false, false),
            ("mast/cargo", "sub/mast/cargo", true, false),
            ("ru[c-e]der.txt", "rudder.txt", false, true),
            ("ru[^c-e]der.txt", "rudder.txt", false, false),
            ("ru[!c]der.txt", "ru!der.txt", false, true),
            ("a?c", "a/c", false, false),
            ("a[/]c", "a/c", false, true),
            ("a[^/]c", "a/c", false, false),
            ("\\*.md", "*.md", false, true),
            ("\\*.md", "a.md", false, false),
            ("{a,b}", "a", false, false),
            ("{a,b}", "{a,b}", false, true),
            ("*a*b", "xaab", false, true),
            ("*a*b", "xaabc", false, false),
            // Nothing comes back: the first rule that leaves something out decides.
            ("*.txt\n!keep.txt", "keep.txt", false, true),
            // All but what a negated rule names is left out.
            ("!*.yaml", "values.yaml", false, false),
            ("!*.yaml", "notes.txt", false, true),
            ("!templates/", "templates", true, false),
            ("!templates/", "values.yaml", false, true),
            ("\u{feff}# a comment\n\n  *.md \r\n", "a.md", false, true),
            ("", "a.md", false, false),
        ] {
            let (parsed, refused) = IgnoreRules::parse(rules);
            assert_eq!(refused, [], "{rules}");
            assert_eq!(parsed.ignores(path, is_folder), expected, "{rules:?}: {path}");
        }
    }

    #[test]
    fn lines_that_helm_refuses_are_named_and_leave_nothing_out() {
        let text = "*.md\n**/secret\na[b\n[]a]\n[a-]\ntail\\\n[^]\n";
        let (rules, refused) = IgnoreRules::parse(text);
        let numbers: Vec<usize> = refused.iter().map(|line| line.number).collect();
        assert_eq!(numbers, [2, 3, 4, 5, 6, 7]);
        assert_eq!(refused[0].text, "**/secret");
        assert!(rules.ignores("a.md", false) && !rules.ignores("x/secret", false));
    }

    #[test]
    fn many_stars_take_little_time() {
        let rules = IgnoreRules::parse(&"*a".repeat(2_000)).0;
        assert!(!rules.ignores(&"a".repeat(1_999), false));
    }
}
