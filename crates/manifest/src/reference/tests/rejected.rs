//! What is refused, with the caret that says where.

use crate::reference::{Reference, ReferenceError};

/// Refuses `text` and compares the two lines that show where it goes wrong.
fn check(text: &str, expected: &str) {
    let error = Reference::parse(text).expect_err(text);
    assert_eq!(
        error.render(),
        expected.strip_prefix('\n').expect("begins on its own line"),
        "{text:?}"
    );
}

fn refused(text: &str) -> ReferenceError {
    Reference::parse(text).expect_err(text)
}

#[test]
fn points_at_the_offending_character_of_a_name() {
    check(
        "",
        "\n\n^ expected a reference, such as `aws/ec2` or `https://host/name#^1.2`, found the end",
    );
    check(
        "aws//ec2",
        "\naws//ec2\n    ^ expected a name that begins with a letter, a digit or `_`, found `/`",
    );
    check(
        "aws/",
        "\naws/\n    ^ expected a name that begins with a letter, a digit or `_`, found the end",
    );
    check(
        "aws/-x",
        "\naws/-x\n    ^ expected a name that begins with a letter, a digit or `_`, found `-`",
    );
    check(
        "aws/../x",
        "\naws/../x\n    ^ expected a name that begins with a letter, a digit or `_`, found `.`",
    );
    check(
        "aws ec2",
        "\naws ec2\n   ^ expected a letter, a digit, `_`, `.`, `-`, `/`, `#` or the end, found ` `",
    );
    check(
        "aws/ec2?x=1",
        "\naws/ec2?x=****\n       ^ expected a letter, a digit, `_`, `.`, `-`, `/`, `#` or the end, found `?`",
    );
    check(
        "localhost:8080",
        "\nlocalhost:8080\n         ^ expected a letter, a digit, `_`, `.`, `-`, `/`, `#` or the end, found `:`",
    );
    check(
        "a/.mu/b",
        "\na/.mu/b\n  ^ expected a name that begins with a letter, a digit or `_`, found `.`",
    );
}

#[test]
fn points_at_the_offending_character_of_a_base() {
    check("https://", "\nhttps://\n        ^ expected a host name, found the end");
    check("https:///x", "\nhttps:///x\n        ^ expected a host name, found `/`");
    check(
        "https://host",
        "\nhttps://host\n            ^ expected `/` and a name after the host, found the end",
    );
    check(
        "hub.mu.com/",
        "\nhub.mu.com/\n           ^ expected a name that begins with a letter, a digit or `_`, found the end",
    );
    check(
        "https://ho_st..x/a",
        "\nhttps://ho_st..x/a\n              ^ expected a host name, found `.`",
    );
    check("host:0/a", "\nhost:0/a\n     ^ expected a port from 1 to 65535, found `0`");
    check("host:8o/a", "\nhost:8o/a\n      ^ expected a port from 1 to 65535, found `o`");
    check("host:/a", "\nhost:/a\n     ^ expected a port from 1 to 65535, found `/`");
    check(
        "https://[::g]/a",
        "\nhttps://[::g]/a\n           ^ expected an IPv6 address in `[` and `]`, found `g`",
    );
    check(
        "https://[::1/a",
        "\nhttps://[::1/a\n            ^ expected an IPv6 address in `[` and `]`, found `/`",
    );
    check(".../a", "\n.../a\n^ expected a host name, found `.`");
    check(
        "git@host/a",
        "\ngit@host/a\n   ^ expected a name, or `ssh://` before the user of a host, found `@`",
    );
    check(
        "://a/b",
        "\n://a/b\n^ expected a protocol, such as `https://` or `git+ssh://`, found `:`",
    );
    check(
        "git+htps://a/b",
        "\ngit+htps://a/b\n    ^ expected `https`, `http`, `ssh` or `file` after `git+`, found `h`",
    );
    check(
        "file://host/x",
        "\nfile://host/x\n       ^ expected `/` and a path on this machine, found `h`",
    );
}

#[test]
fn points_at_the_offending_character_of_a_version() {
    check("a#", "\na#\n  ^ expected a version, a range, a commit or a tag, found the end");
    check(
        "a#^1 foo",
        "\na#^1 foo\n     ^ expected a version or a comparator, such as `1.x`, `^1.2` or `>=1.2`, found `f`",
    );
    check("a#>=", "\na#>=\n    ^ expected a version, such as `1.2`, found the end");
    check(
        "a#>=1,",
        "\na#>=1,\n      ^ expected a version or a comparator, such as `1.x`, `^1.2` or `>=1.2`, found the end",
    );
    check(
        "a#^1 ||",
        "\na#^1 ||\n       ^ expected a version or a comparator, such as `1.x`, `^1.2` or `>=1.2`, found the end",
    );
    check(
        "a#^1.2-beta",
        "\na#^1.2-beta\n      ^ expected a space, `,`, `||` or the end, found `-`",
    );
    check("a#^01.2", "\na#^01.2\n   ^ expected a number without leading zeros, found `0`");
    check("a#my tag", "\na#my tag\n    ^ expected a character that a tag may contain, found ` `");
    check("a#x..y", "\na#x..y\n    ^ expected a character that a tag may contain, found `.`");
    check("a#-x", "\na#-x\n  ^ expected a version, a range or a tag, found `-`");
    check(
        "a#^99999999999999999999",
        "\na#^99999999999999999999\n   ^ expected a number below 18446744073709551615, found `9`",
    );
}

#[test]
fn counts_columns_as_a_terminal_does() {
    check(
        "日本/x",
        "\n日本/x\n^ expected a name that begins with a letter, a digit or `_`, found `日`",
    );
    check(
        "./日本\u{7}",
        "\n./日本\\u{7}\n      ^ expected a folder's path, without control characters, found `\\u{7}`",
    );
    check("a#日本:x", "\na#日本:x\n      ^ expected a character that a tag may contain, found `:`");
    check(
        "a\u{1b}[31m",
        "\na\\u{1b}[31m\n ^ expected a letter, a digit, `_`, `.`, `-`, `/`, `#` or the end, found `\\u{1b}`",
    );
    check(
        "a\nb",
        "\na\\nb\n ^ expected a letter, a digit, `_`, `.`, `-`, `/`, `#` or the end, found `\\n`",
    );
    check(
        "a#x\u{202e}y",
        "\na#x\\u{202e}y\n   ^ expected a character that a tag may contain, found `\\u{202e}`",
    );
}

#[test]
fn shows_a_screenful_of_a_long_text() {
    let long = format!("{}!{}", "a/".repeat(100), "b".repeat(100));
    let rendered = refused(&long).render();
    let expected = format!("…{}!{}…\n{:61}^", "a/".repeat(30), "b".repeat(59), "");
    assert!(rendered.starts_with(&expected), "{rendered}");
    assert_eq!(refused(&"a".repeat(129)).span(), 128..129);
    assert_eq!(refused(&"a/".repeat(3000)).expected(), "a reference of at most 4096 bytes");
}

#[test]
fn never_shows_a_password() {
    check(
        "ssh://git:hunter2@host/x",
        "\nssh://git:****@host/x\n         ^ expected no password, because references end up in lock files: use `MU_TOKEN_<HOST>`, found `:`",
    );
    check(
        "https://hunter2@host/x",
        "\nhttps://****@host/x\n            ^ expected no user except `git` over http, because it may be a token: use `mu login` or `MU_TOKEN_<HOST>`, found `@`",
    );
    check(
        "oci://host:5901/x@sha256:12",
        "\noci://host:5901/x@sha256:12\n                 ^ expected `#` before a version, found `@`",
    );
    assert!(Reference::parse("https://git@host/x").is_ok());
    for text in [
        "https://ada:hunter2@host/x",
        "https://ada:hun/ter2@host/x",
        "oci://ada:hunter2@host:5901/x@sha256:12",
        "oci://ada:hunter2@sha256:12",
        "https://ada:hun#ter2@host/x",
        "https://ada:hun@ter2@host/x",
        "https://a da:hunter2@host/x",
        "ada:hunter2@host/x",
        "ada:hunter2@host:x",
        "https://:hunter2@host/x",
        "https://hunter2@host/x",
        "git+https://hunter2@host/x#^1",
        "HTTPS://hunter2@host/x",
        "http://hunter2:x-oauth-basic@host/x",
    ] {
        let error = refused(text);
        let shown = format!("{error} {error:?} {} {}", error.render(), error.text());
        assert!(!shown.contains("ter2") && !shown.contains("hun"), "{text}: {shown}");
    }
}

#[test]
fn never_shows_what_a_query_or_fragment_holds() {
    for (text, expected) in [
        ("https://h.co/a?token=hunter2", "https://h.co/a?token=****"),
        ("https://h.co/a?hunter2", "https://h.co/a?****"),
        ("https://h.co/a?ref=v1&sig=hunter2#^1", "https://h.co/a?ref=v1&sig=****"),
        ("https://h.co/a?sig=hun#ter2&ref=v1", "https://h.co/a?sig=****&ref=v1"),
        (
            "https://h.co/a.tgz?X-Amz-Signature=hunter2&X-Amz-Date=ter2",
            "https://h.co/a.tgz?X-Amz-Signature=****&X-Amz-Date=****",
        ),
        ("https://h.co/a#^1?token=hunter2", "https://h.co/a#^1?token=****"),
        ("https://h.co/a#^1&sig=hunter2", "https://h.co/a#^1&sig=****"),
        ("a b?token=hunter2", "a b?token=****"),
        ("https://h.co:80/a?t=hunter2@ter2", "https://h.co:****"),
        ("https://ada:hunter2@h.co/a?t=ter2", "https://****@h.co/a?t=****"),
        ("git::https://h.co/x.git//a?ref=v1.2.0", "git::https://h.co/x.git//a?ref=v1.2.0"),
        ("h.co/a b#>=1.0 <2", "h.co/a b#>=1.0 <2"),
        ("a?b", "a?b"),
    ] {
        let error = refused(text);
        assert_eq!(error.text(), expected, "{text}");
        let shown = format!("{error} {error:?} {}", error.render());
        assert!(!shown.contains("ter2") && !shown.contains("hun"), "{text}: {shown}");
    }
    let error = refused("https://h.co/a?token=hunter2");
    assert_eq!(error.text().as_bytes()[error.span()], *b"?");
    assert_eq!(crate::reference::pasted::help(&error).as_deref(), Some("write `https://h.co/a`"));
}

#[test]
fn says_in_one_line_what_is_wrong() {
    assert_eq!(
        refused("aws//ec2").to_string(),
        "`aws//ec2` is not a valid reference: expected a name that begins with a letter, a digit or `_`, found `/`"
    );
}

#[test]
fn points_at_what_is_wrong_in_a_digest() {
    let digits = "0123456789abcdef".repeat(4);
    let whole = format!("oci://a.example/b#sha256:{digits}");
    assert_eq!(Reference::parse(&whole).expect("is a digest").to_string(), whole);
    let at = |text: &str, column: usize, expected: &str| {
        let error = refused(text);
        assert_eq!((error.span().start, error.message()), (column, expected.to_owned()), "{text}");
    };
    let cut = whole.strip_suffix('f').expect("ends so");
    at(cut, cut.len(), "expected 64 hexadecimal digits after `sha256:`, found the end");
    let long = format!("{whole}0");
    at(&long, whole.len(), "expected the end after 64 hexadecimal digits, found `0`");
    let wrong = whole.replace("9a", "9g");
    let letter = wrong.find('g').expect("is there");
    at(&wrong, letter, "expected 64 lower-case hexadecimal digits after `sha256:`, found `g`");
    let upper = whole.replace("9a", "9A");
    at(&upper, letter, "expected 64 lower-case hexadecimal digits after `sha256:`, found `A`");
    let other = whole.replace("sha256", "sha512");
    let expected = "expected `sha256:` and 64 hexadecimal digits, the only digest that pins a package, found `s`";
    at(&other, "oci://a.example/b#".len(), expected);
    at("a/b#h1:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU", 4, &expected.replace("`s`", "`h`"));
}
