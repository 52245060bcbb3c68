//! Glob patterns over slash-separated paths: `**`, `*`, `?`, `[a-z]`, `{a,b}`, and `!` before a pattern that
//! excludes.
//!
//! They choose files to pack, folders to search and package ids to trust. A match takes time proportional to
//! the pattern times the path, whatever the pattern is, and does not look at the disk.
//!
//! `globset` would choose other files: it matches bytes, so that `?` does not match `é`, lets `[!a]` match a
//! slash, and does not let `a/**` match `a`. It also compiles each pattern, which costs more than the few
//! matches of a manifest.

use std::ops::Range;

use super::source::TextProblem;

/// The largest number of patterns that the braces of one pattern may expand to.
const MAX_ALTERNATIVES: usize = 256;

/// An ordered list of patterns; the last one that matches decides.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Globs {
    patterns: Vec<Pattern>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern {
    text: String,
    negated: bool,
    /// The patterns that the braces expand to, each split at its slashes.
    alternatives: Vec<Vec<Segment>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    /// `**`: any number of segments, none included.
    Any,
    One(Vec<Token>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Character(char),
    AnyCharacter,
    AnyRun,
    Class { negated: bool, ranges: Vec<(char, char)> },
}

impl Globs {
    /// Reads patterns, such as `["**", "!drafts/*"]`.
    ///
    /// # Errors
    ///
    /// When a pattern is malformed, or leads out of its folder.
    pub fn parse<'p>(patterns: impl IntoIterator<Item = &'p str>) -> Result<Self, TextProblem> {
        let mut globs = Self::default();
        for pattern in patterns {
            globs.add_pattern(pattern)?;
        }
        Ok(globs)
    }

    /// Patterns that match every path.
    pub fn all() -> Self {
        Self::parse(["**"]).expect("`**` is a pattern")
    }

    /// Adds one more pattern.
    ///
    /// # Errors
    ///
    /// When the pattern is malformed, or leads out of its folder.
    pub fn add_pattern(&mut self, text: &str) -> Result<(), TextProblem> {
        let (negated, body) = match text.strip_prefix('!') {
            Some(body) => (true, body),
            None => (false, text),
        };
        let shift = text.len() - body.len();
        let shifted = |mut problem: TextProblem| {
            problem.span = problem.span.map(|span| span.start + shift..span.end + shift);
            problem
        };
        let mut alternatives = Vec::new();
        for alternative in expand(body).map_err(shifted)? {
            alternatives.push(segments(&alternative)?);
        }
        self.patterns.push(Pattern { text: text.to_owned(), negated, alternatives });
        Ok(())
    }

    /// The patterns as they were written.
    pub fn patterns(&self) -> impl ExactSizeIterator<Item = &str> {
        self.patterns.iter().map(|pattern| pattern.text.as_str())
    }

    /// The positions of the patterns that match none of `paths`, although they name some in particular.
    pub fn idle(&self, paths: &[&str]) -> Vec<usize> {
        let paths: Vec<Vec<&str>> = paths.iter().map(|path| split(path)).collect();
        let is_idle = |pattern: &Pattern| {
            let is_particular = !pattern.negated && !pattern.matches(&[]);
            is_particular && !paths.iter().any(|path| pattern.matches(path))
        };
        let patterns = self.patterns.iter().enumerate();
        patterns.filter(|(_, pattern)| is_idle(pattern)).map(|(index, _)| index).collect()
    }

    /// Whether the path itself matches. The empty path is the folder itself.
    pub fn matches(&self, path: &str) -> bool {
        let segments = split(path);
        let decides = |pattern: &&Pattern| pattern.matches(&segments);
        self.patterns.iter().rev().find(decides).is_some_and(|pattern| !pattern.negated)
    }

    /// Whether the path or a folder that contains it matches: `dist` covers `dist/a/b`.
    pub fn covers(&self, path: &str) -> bool {
        let segments = split(path);
        let covers = |pattern: &&Pattern| {
            (1..=segments.len())
                .any(|length| pattern.matches(segments.get(..length).unwrap_or_default()))
        };
        self.patterns.iter().rev().find(covers).is_some_and(|pattern| !pattern.negated)
    }

    /// Whether anything in the folder at `path` could be chosen.
    pub fn may_match_below(&self, path: &str) -> bool {
        let segments = split(path);
        self.patterns.iter().any(|pattern| !pattern.negated && pattern.may_match_below(&segments))
    }
}

impl Pattern {
    fn matches(&self, path: &[&str]) -> bool {
        self.alternatives.iter().any(|segments| reachable(segments, path).last() == Some(&true))
    }

    fn may_match_below(&self, path: &[&str]) -> bool {
        self.alternatives.iter().any(|segments| {
            let reachable = reachable(segments, path);
            reachable.iter().take(segments.len()).any(|is_reachable| *is_reachable)
        })
    }
}

fn split(path: &str) -> Vec<&str> {
    path.split('/').filter(|segment| !segment.is_empty()).collect()
}

/// For each number of leading pattern segments, whether they can match all of `path`.
#[expect(clippy::indexing_slicing, reason = "there is a state more than there are segments")]
fn reachable(segments: &[Segment], path: &[&str]) -> Vec<bool> {
    let close = |states: &mut Vec<bool>| {
        for (index, segment) in segments.iter().enumerate() {
            if states[index] && *segment == Segment::Any {
                states[index + 1] = true;
            }
        }
    };
    let mut states = vec![false; segments.len() + 1];
    states[0] = true;
    close(&mut states);
    for name in path {
        let mut next = vec![false; segments.len() + 1];
        for (index, segment) in segments.iter().enumerate().filter(|(index, _)| states[*index]) {
            match segment {
                Segment::Any => next[index] = true,
                Segment::One(tokens) if segment_matches(tokens, name) => next[index + 1] = true,
                Segment::One(_) => {}
            }
        }
        close(&mut next);
        states = next;
    }
    states
}

/// Matches one segment. On a mismatch, only the last `*` takes one more character.
fn segment_matches(tokens: &[Token], name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    let (mut token, mut at) = (0, 0);
    let mut last_run: Option<(usize, usize)> = None;
    while at < name.len() {
        match tokens.get(token) {
            Some(Token::AnyRun) => {
                last_run = Some((token, at));
                token += 1;
            }
            Some(one) if name.get(at).is_some_and(|character| one.takes(*character)) => {
                token += 1;
                at += 1;
            }
            _ => {
                let Some((run, start)) = last_run else { return false };
                last_run = Some((run, start + 1));
                token = run + 1;
                at = start + 1;
            }
        }
    }
    tokens.iter().skip(token).all(|token| *token == Token::AnyRun)
}

impl Token {
    fn takes(&self, character: char) -> bool {
        match self {
            Self::Character(wanted) => *wanted == character,
            Self::AnyCharacter => true,
            Self::AnyRun => false,
            Self::Class { negated, ranges } => {
                ranges.iter().any(|(first, last)| (*first..=*last).contains(&character)) != *negated
            }
        }
    }
}

/// Writes out the braces: `a{b,c}` is `ab` and `ac`.
fn expand(pattern: &str) -> Result<Vec<String>, TextProblem> {
    let Some(open) = unescaped(pattern, '{', 0) else {
        return match unescaped(pattern, '}', 0) {
            Some(at) => Err(problem("this `}` closes nothing", at..at + 1)),
            None => Ok(vec![pattern.to_owned()]),
        };
    };
    let mut depth = 0;
    let mut cuts = vec![open];
    let mut at = open;
    let close = loop {
        let byte = pattern.as_bytes().get(at);
        match byte {
            None => return Err(problem("this `{` is not closed", open..open + 1)),
            Some(b'\\') => at += 1,
            Some(b'{') => depth += 1,
            Some(b',') if depth == 1 => cuts.push(at),
            Some(b'}') if depth == 1 => break at,
            Some(b'}') => depth -= 1,
            Some(_) => {}
        }
        at += 1;
    };
    cuts.push(close);
    let mut expanded = Vec::new();
    for (before, after) in cuts.iter().zip(cuts.iter().skip(1)) {
        let alternative = &pattern[before + 1..*after];
        let whole = format!("{}{alternative}{}", &pattern[..open], &pattern[close + 1..]);
        expanded.extend(expand(&whole)?);
        if expanded.len() > MAX_ALTERNATIVES {
            return Err(problem("the braces expand to too many patterns", open..close + 1));
        }
    }
    Ok(expanded)
}

/// The first `wanted` from byte `start` on that has no backslash before it.
fn unescaped(pattern: &str, wanted: char, start: usize) -> Option<usize> {
    let mut escaped = false;
    pattern[start..].char_indices().find_map(|(index, character)| {
        if escaped {
            escaped = false;
            return None;
        }
        escaped = character == '\\';
        (character == wanted).then_some(start + index)
    })
}

fn segments(pattern: &str) -> Result<Vec<Segment>, TextProblem> {
    let pattern = pattern.trim_start_matches('/').trim_end_matches('/');
    let mut segments = Vec::new();
    for text in pattern.split('/') {
        match text {
            "" | "." => {}
            ".." => return Err(TextProblem::new("a pattern must not contain `..`")),
            // Two in a row mean the same as one.
            "**" if segments.last() == Some(&Segment::Any) => {}
            "**" => segments.push(Segment::Any),
            text => segments.push(Segment::One(tokens(text)?)),
        }
    }
    Ok(segments)
}

fn tokens(segment: &str) -> Result<Vec<Token>, TextProblem> {
    let mut tokens = Vec::new();
    let mut characters = segment.chars();
    while let Some(character) = characters.next() {
        tokens.push(match character {
            '*' if tokens.last() == Some(&Token::AnyRun) => continue,
            '*' => Token::AnyRun,
            '?' => Token::AnyCharacter,
            '[' => {
                let (class, rest) = class(characters.as_str())?;
                characters = rest.chars();
                class
            }
            '\\' => Token::Character(characters.next().unwrap_or('\\')),
            character => Token::Character(character),
        });
    }
    Ok(tokens)
}

/// Reads a class after its `[`; returns it and what follows its `]`.
fn class(text: &str) -> Result<(Token, &str), TextProblem> {
    let unclosed =
        || TextProblem::new("a `[` is not closed").help("write `\\[` for the character itself");
    let body = text.strip_prefix(['!', '^']);
    let negated = body.is_some();
    let mut characters = body.unwrap_or(text).chars();
    let mut ranges = Vec::new();
    loop {
        let first = match characters.next().ok_or_else(unclosed)? {
            // A `]` right after the opening bracket is an ordinary character.
            ']' if !ranges.is_empty() => break,
            '\\' => characters.next().ok_or_else(unclosed)?,
            character => character,
        };
        let mut ahead = characters.clone();
        let last = match (ahead.next(), ahead.next()) {
            (Some('-'), Some(last)) if last != ']' => {
                characters = ahead;
                last
            }
            _ => first,
        };
        ranges.push((first, last));
    }
    Ok((Token::Class { negated, ranges }, characters.as_str()))
}

fn problem(message: &str, span: Range<usize>) -> TextProblem {
    TextProblem::new(message).at(span)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(patterns: &[&str], matching: &[&str], others: &[&str]) {
        let globs = Globs::parse(patterns.iter().copied()).expect("are patterns");
        for path in matching {
            assert!(globs.matches(path), "{patterns:?} should match {path:?}");
            let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
            assert!(
                path.is_empty() || globs.may_match_below(parent),
                "{patterns:?} below {parent:?}"
            );
        }
        for path in others {
            assert!(!globs.matches(path), "{patterns:?} should not match {path:?}");
        }
    }

    #[test]
    fn patterns_match_what_they_say() {
        check(&["**"], &["", "a", "a/b/c"], &[]);
        check(&["*"], &["a", "a.b"], &["", "a/b"]);
        check(&["a/**/b"], &["a/b", "a/x/b", "a/x/y/b"], &["a", "b", "a/b/c", "xa/b"]);
        check(&["a/**"], &["a", "a/b", "a/b/c"], &["b"]);
        check(&["**/*.rs"], &["x.rs", "a/b/x.rs"], &["x.r", "x.rs/y"]);
        check(&["*a*b*"], &["ab", "xaybz", "aab"], &["ba", "a"]);
        check(&["file.?"], &["file.c", "file.é"], &["file.", "file.cc"]);
        check(
            &["[a-c]x", "[!0-9]y", "[]-]z"],
            &["ax", "cx", "ay", "]z", "-z"],
            &["dx", "1y", "az"],
        );
        check(&["{a,b/{c,d}}/e"], &["a/e", "b/c/e", "b/d/e"], &["b/e", "c/e"]);
        check(&["./packages/", "/top"], &["packages", "top"], &["packages/a"]);
        check(&["**", "!drafts/**", "drafts/good"], &["a", "drafts/good"], &["drafts", "drafts/a"]);
        check(&[r"\*\{"], &["*{"], &["a{"]);
        check(&[], &[], &["", "a"]);
    }

    #[test]
    fn folders_cover_what_is_in_them() {
        let globs = Globs::parse(["dist", "docs/*.md", "!dist/secret"]).expect("are patterns");
        let covered = ["dist", "dist/a/b", "docs/a.md"];
        assert!(covered.iter().all(|path| globs.covers(path)));
        let others = ["src/dist", "dist/secret/key", "docs/a.txt", ""];
        assert!(others.iter().all(|path| !globs.covers(path)));
    }

    #[test]
    fn folders_that_cannot_match_are_passed_over() {
        let globs = Globs::parse(["packages/*", "a/**/b", "!c/**"]).expect("are patterns");
        let below = |path: &str| globs.may_match_below(path);
        assert!(below("") && below("packages") && below("a") && below("a/x/y"));
        assert!(!below("packages/x") && !below("b") && !below("c"));
    }

    #[test]
    fn malformed_patterns_are_refused() {
        let check = |pattern: &str, expected: &str| {
            let problem = Globs::parse([pattern]).expect_err("is malformed");
            assert_eq!(problem.message, expected, "{pattern}");
        };
        check("a{b", "this `{` is not closed");
        check("a}", "this `}` closes nothing");
        check("[a", "a `[` is not closed");
        check("../a", "a pattern must not contain `..`");
        check(
            "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}",
            "the braces expand to too many patterns",
        );
    }

    #[test]
    fn hostile_patterns_take_no_time() {
        let stars = "*a".repeat(200);
        let anys = "**/x/".repeat(200);
        let globs = Globs::parse([stars.as_str(), anys.as_str()]).expect("are patterns");
        assert!(!globs.matches(&"a/".repeat(500)) && !globs.matches(&"a".repeat(150)));
    }
}
