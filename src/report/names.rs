//! The names of packages in text for people: without the default base.
//!
//! Answers and messages contain whole ids, which files and `--json` keep. The base is removed when they are
//! printed, so that a package always has the same name. It stays if the rest would mean something else:
//! before a name of one segment, which would mean a package's own namespace first, before a name that looks
//! as if it began with a host, and in URLs, folders and prefixes.

use std::borrow::Cow;

use crate::reference::{Base, Name, needs_base};

/// A text with the short names of packages.
pub(super) fn short<'t>(text: &'t str, base: &Base) -> Cow<'t, str> {
    let base = base.as_str();
    if text.len() < base.len() {
        return Cow::Borrowed(text);
    }
    let mut shown = String::new();
    let mut kept = 0;
    for (at, _) in text.match_indices(base) {
        let name = at + base.len();
        let before = &text[..at];
        if is_beginning(before) && !is_in_settings(before) && is_plain_name(&text[name..]) {
            shown.push_str(&text[kept..at]);
            kept = name;
        }
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    shown.push_str(&text[kept..]);
    Cow::Owned(shown)
}

/// Whether a word begins after this text, which may end with a style.
fn is_beginning(text: &str) -> bool {
    let is_style = |codes: &str| codes.bytes().all(|byte| byte.is_ascii_digit() || byte == b';');
    let mut text = text;
    while let Some((before, codes)) =
        text.strip_suffix('m').and_then(|text| text.rsplit_once("\u{1b}["))
        && is_style(codes)
    {
        text = before;
    }
    let goes_on = |last: char| {
        let is_part = matches!(last, '_' | '.' | '-' | '/' | ':' | '@' | '+' | '%' | '~' | '\\');
        is_part || last.is_alphanumeric()
    };
    !text.ends_with(goes_on)
}

/// Whether what follows is to be written into settings under a key that knows no base: of `trust` in the user's own file, whose base
/// may be another one, and of `aliases`.
fn is_in_settings(text: &str) -> bool {
    let is_inside =
        |key: &str| text.rsplit_once(key).is_some_and(|(_, inside)| !inside.contains('}'));
    is_inside("trust: {") || is_inside("aliases: {")
}

/// Whether a text begins with a name that means the same without a base.
fn is_plain_name(text: &str) -> bool {
    let is_part =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | b'/');
    let end = text.bytes().position(|byte| !is_part(byte)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let is_file = name.ends_with("/Mu.yaml") || name.ends_with("/Mu.json");
    // After a name, `=` and `*` mean that it is a prefix.
    let is_prefix = rest.starts_with(['=', '*']);
    !needs_base(name) && !is_file && !is_prefix && Name::is_valid(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(short(text, &Base::default()), expected, "{text}");
    }

    #[test]
    fn the_default_base_is_left_out() {
        check("hub.mu.com/aws/ec2", "aws/ec2");
        check("`hub.mu.com/aws/ec2#^1` and hub.mu.com/aws/vpc.", "`aws/ec2#^1` and aws/vpc.");
        check("mu add 'hub.mu.com/aws/ec2#^1'", "mu add 'aws/ec2#^1'");
        check("\u{1b}[1mhub.mu.com/aws/ec2\u{1b}[0m 1.0.0", "\u{1b}[1maws/ec2\u{1b}[0m 1.0.0");
        let other = Base::parse("acme.co").expect("is a base");
        assert_eq!(short("acme.co/a/b hub.mu.com/a/b", &other), "a/b hub.mu.com/a/b");
    }

    #[test]
    fn it_stays_where_the_rest_would_mean_something_else() {
        for text in [
            "hub.mu.com/aws",
            "hub.mu.com/git.acme.co/aws",
            "hub.mu.com/",
            "hub.mu.com/acme/: ../hub",
            "hub.mu.com/acme/*",
            "--registry hub.mu.com/acme/x=../hub",
            "https://hub.mu.com/aws/ec2",
            ".mu/packs/hub.mu.com/aws/ec2",
            "hub+https://hub.mu.com/",
            "wrote hub.mu.com/aws/ec2/Mu.yaml",
            "my.hub.mu.com/aws/ec2",
            "hub.mu.com/aws/../x",
            "trust: {build: [hub.mu.com/aws/ec2, hub.mu.com/aws/vpc]}",
        ] {
            check(text, text);
        }
    }
}
