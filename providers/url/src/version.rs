//! The version in the name of an archive, where no manifest says one.

/// The version that an archive's name contains, in full: `1.2.0` of `tools-1.2.tgz` or `v1.2.0.zip`.
pub(crate) fn of_name(name: &str) -> Option<String> {
    let ends = [".tgz", ".tar.gz", ".tar", ".zip"];
    let stem = ends.iter().find_map(|end| name.strip_suffix(end))?;
    let after = stem.match_indices(['-', '_']).map(|(at, mark)| at + mark.len());
    let mut begins = std::iter::once(0).chain(after);
    begins.find_map(|at| version(stem.get(at..)?))
}

/// A version of two or three numbers, in full.
fn version(text: &str) -> Option<String> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let (numbers, rest) = match text.split_once('-') {
        Some((numbers, rest)) => (numbers, Some(rest)),
        None => (text, None),
    };
    let parts: Vec<&str> = numbers.split('.').collect();
    let is_number = |part: &&str| {
        let is_short = (1..=9).contains(&part.len());
        is_short
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && (part.len() == 1 || !part.starts_with('0'))
    };
    if !(2..=3).contains(&parts.len()) || !parts.iter().all(is_number) {
        return None;
    }
    let mut version = parts.join(".");
    if parts.len() == 2 {
        version.push_str(".0");
    }
    let Some(rest) = rest else { return Some(version) };
    // What follows is a prerelease only if it can be one.
    let is_word = |part: &str| {
        let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
        let fits = part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        !part.is_empty() && fits && !(is_number && part.len() > 1 && part.starts_with('0'))
    };
    rest.split('.').all(is_word).then(|| format!("{version}-{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_contain_a_version() {
        for (name, expected) in [
            ("x-1.2.tgz", Some("1.2.0")),
            ("x-1.2.3.tar.gz", Some("1.2.3")),
            ("v1.2.0.zip", Some("1.2.0")),
            ("terraform-aws-vpc-5.1.0-rc.1.tar", Some("5.1.0-rc.1")),
            ("x_v2.0.1.tgz", Some("2.0.1")),
            ("x2-utils-3.4.5.tgz", Some("3.4.5")),
            ("x-1.2.3-linux-amd64.tgz", Some("1.2.3-linux-amd64")),
            ("x.tgz", None),
            ("x-1.tgz", None),
            ("x-2024.01.tgz", None),
            ("main.zip", None),
            ("x-1.2.3.4.tgz", None),
        ] {
            assert_eq!(of_name(name).as_deref(), expected, "{name}");
        }
    }
}
