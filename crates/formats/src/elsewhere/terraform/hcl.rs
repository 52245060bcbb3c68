//! Reads HCL only as far as modules need it: the blocks of a file, and those of their own attributes that are plain texts.
//!
//! Nothing is evaluated: a value that is more than one quoted text without a template is [`Value::Expression`]. The crates for HCL read
//! whole expressions, which nothing here needs, and are many times as long. It takes each character once, and nothing of it calls
//! itself, so a hostile file is only long.

use std::ops::Range;

use crate::node::Fault;

/// A block: `module "vpc" { … }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    /// Its first word.
    pub(super) kind: String,
    /// What follows it before the brace.
    pub(super) labels: Vec<String>,
    /// Where it begins.
    pub(super) start: usize,
    /// Its attributes, without those of blocks in it.
    pub(super) attributes: Vec<(String, Value)>,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// A text without templates.
    Text(String),
    /// Anything else.
    Expression,
}

impl Block {
    /// The value of an attribute; the last one, if it is there twice, which no tool takes.
    pub(super) fn attribute(&self, name: &str) -> Option<&Value> {
        self.attributes.iter().rfind(|(key, _)| key == name).map(|(_, value)| value)
    }
}

/// The blocks of a file.
pub(super) fn blocks(text: &str) -> Result<Vec<Block>, Fault> {
    let mut words = Words { text, at: 0 };
    let mut found = Vec::new();
    while let Some((word, span)) = words.next()? {
        let Word::Name(kind) = word else {
            if word == Word::Line {
                continue;
            }
            return Err(Fault::new(span, "expected the name of a block or an attribute"));
        };
        let mut block = Block {
            kind: kind.to_owned(),
            labels: Vec::new(),
            start: span.start,
            attributes: Vec::new(),
        };
        loop {
            match words.next()? {
                Some((Word::Name(label), _)) => block.labels.push(label.to_owned()),
                Some((Word::Text(Value::Text(label)), _)) => block.labels.push(label),
                Some((Word::Open('{'), _)) => {
                    block.attributes = words.attributes()?;
                    found.push(block);
                    break;
                }
                Some((Word::Equals, _)) if block.labels.is_empty() => {
                    words.value()?;
                    break;
                }
                Some((_, span)) => return Err(Fault::new(span, "expected a label or `{`")),
                None => return Err(words.ends_early()),
            }
        }
    }
    Ok(found)
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Word<'t> {
    Name(&'t str),
    Text(Value),
    Open(char),
    Close,
    Equals,
    Line,
    Other,
}

/// The words of a file, one after the other.
struct Words<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Words<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn ends_early(&self) -> Fault {
        Fault::new(self.text.len()..self.text.len(), "the file ends too early")
    }

    /// The next word; spaces and comments are passed over.
    fn next(&mut self) -> Result<Option<(Word<'t>, Range<usize>)>, Fault> {
        loop {
            let rest = self.rest();
            let Some(first) = rest.chars().next() else { return Ok(None) };
            let start = self.at;
            if first == '\n' {
                self.at += 1;
                return Ok(Some((Word::Line, start..self.at)));
            }
            if first.is_whitespace() || first == '\u{feff}' {
                self.at += first.len_utf8();
                continue;
            }
            if first == '#' || rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
                continue;
            }
            if rest.starts_with("/*") {
                let end = rest.find("*/").ok_or_else(|| {
                    Fault::new(start..start + 2, "the comment that begins here has no end")
                })?;
                self.at += end + 2;
                continue;
            }
            let word = match first {
                '"' => {
                    self.at += 1;
                    Word::Text(self.quoted(start)?)
                }
                '<' if rest.starts_with("<<") => self.heredoc(start)?,
                '{' | '[' | '(' => {
                    self.at += 1;
                    Word::Open(first)
                }
                '}' | ']' | ')' => {
                    self.at += 1;
                    Word::Close
                }
                '=' if !rest.starts_with("==") && !rest.starts_with("=>") => {
                    self.at += 1;
                    Word::Equals
                }
                _ if first.is_alphabetic() || first == '_' => {
                    let is_part = |letter: char| letter.is_alphanumeric() || "_-".contains(letter);
                    let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
                    self.at += end;
                    Word::Name(rest.get(..end).unwrap_or_default())
                }
                _ => {
                    // Of `==` and `=>`, the second half is no `=` of an attribute.
                    let long = ["==", "=>", "!=", "<=", ">="];
                    self.at += match long.iter().any(|one| rest.starts_with(one)) {
                        true => 2,
                        false => first.len_utf8(),
                    };
                    Word::Other
                }
            };
            return Ok(Some((word, start..self.at)));
        }
    }

    /// The text behind a quote. Templates in it may have quotes and braces of their own.
    fn quoted(&mut self, start: usize) -> Result<Value, Fault> {
        let open = |what: &str| {
            Fault::new(start..start + 1, format!("the {what} that begins here has no end"))
        };
        let (mut text, mut is_plain) = (String::new(), true);
        // The open texts (`None`) and templates, with the number of braces in each.
        let mut nested: Vec<Option<usize>> = vec![None];
        while let Some(inner) = nested.last_mut() {
            let rest = self.rest();
            let Some(first) = rest.chars().next() else { return Err(open("text")) };
            self.at += first.len_utf8();
            match (inner, first) {
                (None, '"') => drop(nested.pop()),
                (None, '\n') => return Err(open("text")),
                (None, '\\') => {
                    let Some(escaped) = self.rest().chars().next() else {
                        return Err(open("text"));
                    };
                    self.at += escaped.len_utf8();
                    match escaped {
                        '"' | '\\' => text.push(escaped),
                        // What else is written so is in no source.
                        _ => is_plain = false,
                    }
                }
                (None, '$' | '%') if rest.starts_with("${") || rest.starts_with("%{") => {
                    self.at += 1;
                    is_plain = false;
                    nested.push(Some(0));
                }
                (None, '$' | '%') if rest.starts_with("$${") || rest.starts_with("%%{") => {
                    self.at += 2;
                    is_plain = false;
                }
                (None, other) => text.push(other),
                (Some(_), '"') => nested.push(None),
                (Some(braces), '{') => *braces += 1,
                (Some(0), '}') => drop(nested.pop()),
                (Some(braces), '}') => *braces -= 1,
                (Some(_), _) => {}
            }
        }
        Ok(if is_plain { Value::Text(text) } else { Value::Expression })
    }

    /// A text of several lines: `<<END`, up to a line with that word alone. Without one, it is an operator.
    fn heredoc(&mut self, start: usize) -> Result<Word<'t>, Fault> {
        let rest = self.rest();
        let marker = rest.trim_start_matches('<').trim_start_matches('-');
        let name = marker.lines().next().unwrap_or_default().trim_end();
        let is_name = name.starts_with(|first: char| first.is_alphabetic() || first == '_')
            && name.chars().all(|letter| letter.is_alphanumeric() || "_-".contains(letter));
        if !is_name {
            self.at += 2;
            return Ok(Word::Other);
        }
        let mut length = rest.len() - marker.len();
        for (number, line) in marker.split_inclusive('\n').enumerate() {
            if number > 0 && line.trim() == name {
                // The line's end still ends the attribute.
                self.at += length + line.trim_end_matches(['\n', '\r']).len();
                return Ok(Word::Text(Value::Expression));
            }
            length += line.len();
        }
        Err(Fault::new(start..start + 2, "the text that begins here has no end"))
    }

    /// The attributes of a block, up to its end.
    fn attributes(&mut self) -> Result<Vec<(String, Value)>, Fault> {
        let mut found = Vec::new();
        loop {
            let Some((word, span)) = self.next()? else { return Err(self.ends_early()) };
            let name = match word {
                Word::Line => continue,
                Word::Close => return Ok(found),
                Word::Name(name) => name.to_owned(),
                Word::Text(Value::Text(name)) => name,
                _ => return Err(Fault::new(span, "expected an attribute or a block")),
            };
            loop {
                match self.next()? {
                    Some((Word::Equals, _)) => {
                        found.push((name, self.value()?));
                        break;
                    }
                    Some((Word::Name(_) | Word::Text(_), _)) => {}
                    Some((Word::Open('{'), _)) => {
                        self.pass_over()?;
                        break;
                    }
                    Some((_, span)) => return Err(Fault::new(span, "expected `=` or `{`")),
                    None => return Err(self.ends_early()),
                }
            }
        }
    }

    /// The value behind an `=`, up to the end of its line, or of the block, which is left.
    fn value(&mut self) -> Result<Value, Fault> {
        let mut only = None;
        let (mut count, mut depth) = (0_usize, 0_usize);
        loop {
            let before = self.at;
            let word = self.next()?.map(|(word, _)| word);
            match &word {
                None | Some(Word::Line) if depth == 0 => break,
                Some(Word::Close) if depth == 0 => {
                    self.at = before;
                    break;
                }
                None => return Err(self.ends_early()),
                Some(Word::Open(_)) => depth += 1,
                Some(Word::Close) => depth -= 1,
                Some(_) => {}
            }
            count += 1;
            only = match word {
                Some(Word::Text(value)) if count == 1 => Some(value),
                _ => None,
            };
        }
        Ok(only.unwrap_or(Value::Expression))
    }

    /// Passes over a block whose brace was read.
    fn pass_over(&mut self) -> Result<(), Fault> {
        let mut depth = 1_usize;
        while depth > 0 {
            match self.next()? {
                Some((Word::Open(_), _)) => depth += 1,
                Some((Word::Close, _)) => depth -= 1,
                Some(_) => {}
                None => return Err(self.ends_early()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(text: &str) -> Vec<(String, Option<Value>)> {
        let found = blocks(text).expect("is read");
        let modules = found.iter().filter(|block| block.kind == "module");
        modules.map(|block| (block.labels.join(" "), block.attribute("source").cloned())).collect()
    }

    #[test]
    fn the_attributes_of_blocks_are_read_and_nothing_in_them() {
        let text = r#"
            # module "no" { source = "./x" }
            /* module "no" {
               source = "./x" } */
            variable "a" { default = { source = "no" } } // }
            locals {
              text = "}\" ${ join("}", ["a", "${"b"}"]) } %{ if true }x%{ endif }"
              more = a == b ? { for k, v in c : k => v } : null
              lines = <<-END
                module "no" { source = "./y" }
                END
            }
            module "vpc" {
              source  = "git::https://h.example/x.git//vpc?ref=v1" # in use
              version = "~> 1.0"
              tags = {
                source = "no"
              }
              providers { source = "no" }
              provider "x" "y" {
                source = "no"
              }
            }
            module one { source = "./one" }
            module "computed" {
              source = "${path.module}/x"
            }
            module "joined" {
              source = join("/", ["a", "b"])
            }
            module "none" {}
        "#;
        let plain = |text: &str| Some(Value::Text(text.to_owned()));
        assert_eq!(
            sources(text),
            [
                ("vpc".to_owned(), plain("git::https://h.example/x.git//vpc?ref=v1")),
                ("one".to_owned(), plain("./one")),
                ("computed".to_owned(), Some(Value::Expression)),
                ("joined".to_owned(), Some(Value::Expression)),
                ("none".to_owned(), None),
            ]
        );
    }

    #[test]
    fn what_is_no_hcl_is_an_error_with_its_place() {
        for (text, at, reason) in [
            ("module \"a\" {\n  source = \"x\n}", 24, "the text that begins here has no end"),
            ("module \"a\" {", 12, "the file ends too early"),
            ("/* x", 0, "the comment that begins here has no end"),
            ("module \"a\" = 1", 11, "expected a label or `{`"),
            ("{}", 0, "expected the name of a block or an attribute"),
            ("a {\n 1 = 2 }", 5, "expected an attribute or a block"),
            ("a {\n b ] }", 7, "expected `=` or `{`"),
            ("a = <<END\nx\n", 4, "the text that begins here has no end"),
            ("a = (", 5, "the file ends too early"),
            ("a = \"${", 4, "the text that begins here has no end"),
        ] {
            let fault = blocks(text).expect_err(text);
            assert_eq!((fault.span.start, fault.reason.as_str()), (at, reason), "{text}");
        }
    }

    #[test]
    fn hostile_texts_end() {
        for text in [
            "{".repeat(100_000),
            format!("a {{ b = {}", "(".repeat(100_000)),
            format!("a = \"{}", "${\"".repeat(100_000)),
            format!("a = <<{}", "END\n".repeat(100_000)),
            "a = <<".to_owned(),
            "a = <<-\n".to_owned(),
            "\u{0}\"\\".to_owned(),
            "é = ü\n".repeat(1_000),
        ] {
            let _ = blocks(&text);
        }
        assert_eq!(blocks("a = <<E\nx\nE\nmodule \"b\" {}\n").expect("is read").len(), 1);
        assert_eq!(blocks("a = 1 << 2\nmodule \"b\" {}\n").expect("is read").len(), 1);
    }
}
