//! `.netrc`: users and passwords by host, as `ftp` began it and curl, Git, pip and others read it.
//!
//! The entry `default` is not used: it would give a password to every host that somebody else names.

/// A user and a password.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) login: String,
    pub(super) password: String,
}

/// The first entry for a host, and for `user` if there is one.
pub(super) fn find(text: &str, host: &str, user: Option<&str>) -> Option<Entry> {
    let words = words(text);
    let mut words = words.iter().map(String::as_str).peekable();
    let mut is_host = false;
    let (mut login, mut password) = (None, None);
    let done = |is_host: bool, login: &mut Option<String>, password: &mut Option<String>| {
        let entry = Entry {
            login: login.take().unwrap_or_default(),
            password: password.take().unwrap_or_default(),
        };
        let fits = user.is_none_or(|user| user == entry.login);
        (is_host && fits && !entry.password.is_empty()).then_some(entry)
    };
    while let Some(word) = words.next() {
        match word {
            "machine" | "default" => {
                if let Some(entry) = done(is_host, &mut login, &mut password) {
                    return Some(entry);
                }
                is_host = word == "machine"
                    && words.next().is_some_and(|name| name.eq_ignore_ascii_case(host));
            }
            "login" => login = words.next().map(str::to_owned),
            "password" => password = words.next().map(str::to_owned),
            "account" => drop(words.next()),
            _ => {}
        }
    }
    done(is_host, &mut login, &mut password)
}

/// The words of the file, without comments and macros. A word in quotes may have spaces.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut is_macro = false;
    for line in text.lines() {
        if is_macro && !line.trim().is_empty() {
            continue;
        }
        is_macro = false;
        let mut characters = line.chars().peekable();
        while let Some(first) = characters.next() {
            let mut word = String::new();
            match first {
                '#' => break,
                '"' => {
                    while let Some(character) = characters.next() {
                        match character {
                            '"' => break,
                            '\\' => word.extend(characters.next()),
                            other => word.push(other),
                        }
                    }
                }
                space if space.is_whitespace() => continue,
                other => {
                    word.push(other);
                    while let Some(next) = characters.next_if(|next| !next.is_whitespace()) {
                        word.push(next);
                    }
                }
            }
            if word == "macdef" {
                is_macro = true;
                break;
            }
            words.push(word);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_and_programs_write() {
        let text = "# machines\nmachine a.example login ada password one\n\
            machine b.example\n  password \"two words\\\"\"\n  login bob\n\
            macdef init\nmachine c.example login x password y\n\n\
            machine a.example login eve password three\n\
            machine d.example login dan account x\n\
            default login anonymous password mail\n";
        let found = |host: &str, user: Option<&str>| {
            find(text, host, user).map(|entry| format!("{}:{}", entry.login, entry.password))
        };
        for (host, user, expected) in [
            ("a.example", None, Some("ada:one")),
            ("A.example", Some("eve"), Some("eve:three")),
            ("a.example", Some("bob"), None),
            ("b.example", None, Some("bob:two words\"")),
            ("c.example", None, None),
            ("d.example", None, None),
            ("other.example", None, None),
        ] {
            assert_eq!(found(host, user).as_deref(), expected, "{host} {user:?}");
        }
    }
}
