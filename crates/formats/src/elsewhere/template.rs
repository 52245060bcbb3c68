//! Files that are templates of Go's, read without the program that fills them in, and so without the values of its user.
//!
//! Its actions (`{{ … }}`) are taken out. One that decides or repeats leaves nothing; in place of one that becomes text stands
//! [`ACTION`]. Of an `if` with an `else`, a file has one branch at a time, and may be no YAML with both. So a text has several ways to
//! be read, which together have each of its branches.

use std::borrow::Cow;
use std::ops::Range;

/// What stands in the place of an action in a text: a character that no text of people has.
pub(super) const ACTION: char = '\u{e000}';

/// In the place of an action that becomes no text.
const SILENT: char = '\u{e001}';

/// Around the text that an action itself says it becomes where nothing else is set.
const DEFAULT: [char; 2] = ['\u{e002}', '\u{e003}'];

/// The most ways in which a text is read.
pub(super) const MOST_WAYS: usize = 64;

/// A text in a form that people can read: what an action makes of it is not known.
pub(super) fn with_gaps(text: &str) -> String {
    default_of(text).0.replace(ACTION, "{{…}}")
}

/// Whether an action becomes a part of a text.
pub(super) fn has_actions(text: &str) -> bool {
    text.contains(ACTION) || text.contains(DEFAULT)
}

/// A text as its actions make it where nothing else is set, and whether that says anything.
pub(super) fn default_of(text: &str) -> (Cow<'_, str>, bool) {
    match text.contains(DEFAULT) {
        true => (text.replace(DEFAULT, "").into(), true),
        false => (text.into(), false),
    }
}

/// A text without its actions. Its lines stay where they are.
#[derive(Debug, Clone, Default)]
pub(super) struct Plain {
    /// The text.
    pub(super) text: String,
    /// Where each of its bytes was.
    origins: Vec<usize>,
    /// The lines that are nothing but text which an action becomes.
    pub(super) filled: Vec<FilledLine>,
}

/// A line that is nothing but text which an action becomes.
#[derive(Debug, Clone, Default)]
pub(super) struct FilledLine {
    /// Its place in the text.
    pub(super) at: usize,
    /// How far that text is indented, as far as the template says.
    pub(super) indentation: usize,
    /// The file whose text it is.
    pub(super) file: Option<String>,
}

impl Plain {
    /// Where in the template a place of the text is.
    pub(super) fn in_template(&self, span: &Range<usize>) -> Range<usize> {
        let end = self.origins.last().map_or(0, |last| last + 1);
        let at = |offset: usize| self.origins.get(offset).copied().unwrap_or(end);
        at(span.start)..at(span.end)
    }

    /// Whether actions become the first text that is below the line of a place.
    pub(super) fn is_filled_below(&self, at: usize) -> bool {
        let line = self.text.get(at..).unwrap_or_default();
        let below = line.split_once('\n').map_or("", |(_, below)| below);
        let at = self.text.len() - below.len();
        let next = self.text.len() - below.trim_start().len();
        self.filled.iter().any(|line| (at..next).contains(&line.at))
    }

    /// Takes over a part of the template, which begins at `start`; of a branch that does not count only the ends of lines.
    fn add(&mut self, part: &str, start: usize, counts: bool) {
        for (at, one) in part.char_indices().filter(|(_, one)| counts || *one == '\n') {
            self.push(one, start + at);
        }
    }

    fn push(&mut self, one: char, origin: usize) {
        self.text.push(one);
        self.origins.extend(std::iter::repeat_n(origin, one.len_utf8()));
    }

    /// Without what stands for silent actions, and without all of a line in which there is nothing else: spaces in it would count in
    /// a text of several lines, and so would the comment behind it.
    fn tidied(&self, template: &str) -> Self {
        let is_action = |one: char| [ACTION, SILENT].contains(&one) || DEFAULT.contains(&one);
        let has_only_actions = |line: &str| {
            let (said, _) = line.split_once(" #").unwrap_or((line, ""));
            let mut is_default = false;
            said.contains(is_action)
                && said.chars().all(|one| {
                    is_default = one == DEFAULT[0] || is_default && one != DEFAULT[1];
                    is_default || is_action(one) || one.is_whitespace()
                })
        };
        let mut tidied = Self::default();
        let mut start = 0;
        for line in self.text.split_inclusive('\n') {
            let counts = !has_only_actions(line);
            if !counts && has_actions(line) {
                let first = start + line.find(is_action).unwrap_or_default();
                let origin = self.origins.get(first).copied().unwrap_or_default();
                tidied.filled.push(FilledLine::new(template, tidied.text.len(), origin));
            }
            for (at, one) in line.char_indices().filter(|(_, one)| counts || *one == '\n') {
                if one != SILENT {
                    tidied.push(one, self.origins.get(start + at).copied().unwrap_or_default());
                }
            }
            start += line.len();
        }
        tidied
    }
}

impl FilledLine {
    /// The line at `at` that the action at `origin` of the template fills.
    fn new(template: &str, at: usize, origin: usize) -> Self {
        let (before, behind) = template.split_at(origin);
        let line = before.rfind('\n').map_or(before, |end| &before[end + 1..]);
        let own = line.len() - line.trim_start().len();
        let action = behind.split_once("{{").map_or("", |(_, inside)| inside);
        let action = action.get(..length_of(action).unwrap_or_default()).unwrap_or_default();
        let steps = steps_of(action);
        let indented = steps.iter().find_map(|words| match words.as_slice() {
            ["nindent", count, ..] => count.parse().ok(),
            ["indent", count, ..] => Some(own.saturating_add(count.parse().ok()?)),
            _ => None,
        });
        let file = match steps.first().map(Vec::as_slice) {
            Some(["readFile", name]) => literal(name).map(str::to_owned),
            _ => None,
        };
        Self { at, indentation: indented.unwrap_or(own), file }
    }
}

/// The commands of an action, each in its words. What is in quotes or parentheses is one word.
fn steps_of(action: &str) -> Vec<Vec<&str>> {
    let action = action.strip_prefix('-').unwrap_or(action);
    let action = action.strip_suffix('-').unwrap_or(action);
    let mut steps = vec![Vec::new()];
    let (mut begin, mut depth, mut quote, mut is_escaped) = (None, 0_usize, None, false);
    for (at, one) in action.char_indices() {
        let was_quoted = quote.is_some();
        match (quote, one) {
            _ if std::mem::take(&mut is_escaped) => {}
            (Some('"'), '\\') => is_escaped = true,
            (Some(end), one) if one == end => quote = None,
            (None, '"' | '`') => quote = Some(one),
            (None, '(') => depth += 1,
            (None, ')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        let ends = !was_quoted && depth == 0 && (one == '|' || one.is_whitespace());
        if !ends {
            begin = begin.or(Some(at));
            continue;
        }
        if let (Some(word), Some(step)) = (begin.take(), steps.last_mut()) {
            step.push(&action[word..at]);
        }
        if one == '|' {
            steps.push(Vec::new());
        }
    }
    if let (Some(word), Some(step)) = (begin, steps.last_mut()) {
        step.push(&action[word..]);
    }
    steps
}

/// What a word in quotes says, if nothing is written in another way in it.
fn literal(word: &str) -> Option<&str> {
    let inside = |quote: char| word.strip_prefix(quote)?.strip_suffix(quote);
    inside('"').or_else(|| inside('`')).filter(|text| !text.contains(['"', '`', '\\']))
}

/// The text that an action becomes where nothing else is set, if it says that itself: `env "V" | default "1.0"`. Only one that is a part
/// of a word in YAML, because anything else would be read as more than that.
fn default_said(action: &str) -> Option<&str> {
    let mut said: Option<&str> = None;
    for (at, words) in steps_of(action).iter().enumerate() {
        said = match (at, words.as_slice()) {
            (0, ["default", word, _] | ["get", _, word, _] | ["coalesce", .., word] | [word]) => {
                literal(word)
            }
            (0, _) => None,
            (_, ["default", word]) => said.filter(|text| !text.is_empty()).or(literal(word)),
            (1, ["get", _, word]) => literal(word),
            (_, ["quote" | "squote" | "toString" | "trim"]) => said,
            _ => return None,
        };
    }
    let is_part = |one: char| one.is_ascii_alphanumeric() || " ._+~^<>=*/:@-".contains(one);
    said.filter(|text| text.chars().all(is_part) && !text.contains(": "))
}

/// What an action does for the text around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    /// Begins a part that counts in some cases, or several times.
    Begin,
    /// Begins a part that only counts where another action names it.
    Define,
    /// Begins what counts in the other cases.
    Else,
    End,
    /// Says something to other actions.
    Nothing,
    /// Becomes text.
    Text,
}

fn does(action: &str) -> Does {
    let said = action.strip_prefix('-').unwrap_or(action).trim_start();
    let word = said.split(|one: char| !one.is_ascii_alphanumeric()).next().unwrap_or_default();
    let is_assigned = || {
        let name = said.strip_prefix('$').unwrap_or_default();
        let name = name.trim_start_matches(|one: char| one.is_alphanumeric() || one == '_');
        name.trim_start().starts_with([':', '=', ','])
    };
    match word {
        "if" | "range" | "with" | "block" => Does::Begin,
        "define" => Does::Define,
        "else" => Does::Else,
        "end" => Does::End,
        "break" | "continue" => Does::Nothing,
        "" if said.starts_with("/*") || is_assigned() => Does::Nothing,
        _ => Does::Text,
    }
}

/// The length of an action, which ends in front of the first `}}` that is not in a text or a comment in it.
fn length_of(inside: &str) -> Option<usize> {
    let first = inside.find("}}")?;
    let begins = inside.trim_start_matches(['-', ' ']);
    if begins.starts_with("/*") {
        // Ends of comments are rare: what is looked for is not far, or not there.
        let near = inside.char_indices().map(|(at, _)| at).nth(LONGEST_COMMENT);
        let near = inside.get(..near.unwrap_or(inside.len()))?;
        let end = near.find("*/").and_then(|end| Some(end + near.get(end..)?.find("}}")?));
        return Some(end.unwrap_or(first));
    }
    let mut quote = None;
    let mut is_escaped = false;
    for (at, one) in inside.char_indices() {
        match quote {
            _ if std::mem::take(&mut is_escaped) => {}
            None if one == '}' && inside.get(at..)?.starts_with("}}") => return Some(at),
            None if ['"', '`'].contains(&one) => quote = Some(one),
            Some('"') if one == '\\' => is_escaped = true,
            Some(end) if one == end => quote = None,
            // Only what stands in backquotes goes on in the next line.
            Some('"') if one == '\n' => break,
            _ => {}
        }
    }
    Some(first)
}

/// The most characters of a comment.
const LONGEST_COMMENT: usize = 4096;

/// A template, in pieces.
#[derive(Debug)]
pub(super) struct Template<'t> {
    text: &'t str,
    /// Each action, and what it does; the text between them is plain.
    actions: Vec<(Range<usize>, Does)>,
    /// Of each [`Does::Begin`], in their order: in how many ways each of its branches can be read.
    branches: Vec<Vec<usize>>,
    /// In how many ways the whole can be read.
    ways: usize,
}

impl<'t> Template<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let mut found = Self { text, actions: Vec::new(), branches: Vec::new(), ways: 1 };
        let mut rest = text;
        while let Some((_, inside)) = rest.split_once("{{") {
            // Without an end, it is none.
            let Some(length) = length_of(inside) else { break };
            let (action, behind) = inside.split_at(length);
            rest = behind.get("}}".len()..).unwrap_or_default();
            let start = text.len() - inside.len() - "{{".len();
            found.actions.push((start..text.len() - rest.len(), does(action)));
        }
        found.count();
        found
    }

    /// Whether there is anything to fill in.
    pub(super) fn has_actions(&self) -> bool {
        !self.actions.is_empty()
    }

    /// In how many ways it has to be read so that each branch counts once: what stands beside each other needs no ways of its own.
    pub(super) fn count_of_ways(&self) -> usize {
        self.ways
    }

    fn count(&mut self) {
        // What is open: its number, and how many ways its last branch has.
        let mut open: Vec<(usize, usize)> = Vec::new();
        for at in 0..self.actions.len() {
            let does = self.actions.get(at).map_or(Does::Nothing, |(_, does)| *does);
            match (does, open.last_mut()) {
                (Does::Begin | Does::Define, _) => {
                    open.push((self.branches.len(), 1));
                    self.branches.push(Vec::new());
                }
                (Does::Else, Some((block, ways))) => {
                    self.branches.get_mut(*block).into_iter().for_each(|all| all.push(*ways));
                    *ways = 1;
                }
                (Does::End, Some(_)) => self.close(&mut open),
                _ => {}
            }
        }
        while !open.is_empty() {
            self.close(&mut open);
        }
    }

    fn close(&mut self, open: &mut Vec<(usize, usize)>) {
        let Some((block, last)) = open.pop() else { return };
        let Some(branches) = self.branches.get_mut(block) else { return };
        branches.push(last);
        let all = branches.iter().fold(0_usize, |all, one| all.saturating_add(*one));
        let around = open.last_mut().map_or(&mut self.ways, |(_, ways)| ways);
        *around = (*around).max(all);
    }

    /// The text in one of its ways.
    pub(super) fn in_way(&self, way: usize) -> Plain {
        let mut plain = Plain::default();
        // Of what is open: the ways of its branches that are left to be seen, and which way is taken of that; `None` of a branch that
        // does not count.
        let mut open: Vec<(&[usize], usize, Option<usize>)> = Vec::new();
        let mut blocks = self.branches.iter();
        let mut at = 0;
        for (place, does) in &self.actions {
            let counts = |open: &[(&[usize], usize, Option<usize>)]| {
                open.last().map_or(Some(way), |(_, _, inner)| *inner)
            };
            plain.add(&self.text[at..place.start], at, counts(&open).is_some());
            match does {
                Does::Begin => {
                    let all: &[usize] = blocks.next().map_or(&[], Vec::as_slice);
                    let most = all.iter().fold(0_usize, |all, one| all.saturating_add(*one));
                    // Where there are more ways around it, it stays at its last one.
                    let wanted = counts(&open).map(|way| way.min(most.saturating_sub(1)));
                    let mut new = (all, wanted.unwrap_or(usize::MAX), None);
                    enter(&mut new);
                    open.push(new);
                }
                Does::Define => {
                    blocks.next();
                    open.push((&[], usize::MAX, None));
                }
                Does::Else => open.iter_mut().last().into_iter().for_each(enter),
                Does::End => drop(open.pop()),
                Does::Nothing | Does::Text => {}
            }
            let is_text = *does == Does::Text && counts(&open).is_some();
            let action = &self.text[place.clone()];
            let action = action.get("{{".len()..action.len() - "}}".len()).unwrap_or_default();
            match default_said(action).filter(|_| is_text) {
                Some(said) => {
                    plain.push(DEFAULT[0], place.start);
                    said.chars().for_each(|one| plain.push(one, place.start));
                    plain.push(DEFAULT[1], place.start);
                }
                None => plain.push(if is_text { ACTION } else { SILENT }, place.start),
            }
            plain.add(&self.text[place.clone()], place.start, false);
            at = place.end;
        }
        let counts = open.last().is_none_or(|(_, _, inner)| inner.is_some());
        plain.add(&self.text[at..], at, counts);
        plain.tidied(self.text)
    }
}

/// Goes on to the next branch of what is open.
fn enter(open: &mut (&[usize], usize, Option<usize>)) {
    let (left, wanted, inner) = open;
    let Some((ways, rest)) = left.split_first() else { return };
    *left = rest;
    *inner = (*wanted < *ways).then_some(*wanted);
    // A branch that was taken is the only one.
    *wanted = wanted.checked_sub(*ways).unwrap_or(usize::MAX);
}
