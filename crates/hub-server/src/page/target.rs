//! Where a reference of a package in this hub leads: to another package of the hub, or elsewhere.
//!
//! This reads only the parts of a reference that links need. A text that is not a link is shown as it was
//! written.

/// A reference to a package of a hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Target<'text> {
    /// The base, with its slash; `None` if it is that of the package with the reference.
    pub(super) base: Option<&'text str>,
    pub(super) name: &'text str,
    /// The required version; empty if any.
    pub(super) spec: &'text str,
}

impl<'text> Target<'text> {
    /// Reads a reference; `None` if it cannot lead to a hub.
    pub(super) fn parse(reference: &'text str) -> Option<Self> {
        let (place, spec) = reference.split_once('#').unwrap_or((reference, ""));
        let (base, name) = match place.split_once("://") {
            Some(("https" | "http", rest)) => split_base(rest)?,
            Some(_) => return None,
            None => match place.split_once('/') {
                Some((first, _)) if first.contains(['.', ':']) => split_base(place)?,
                _ => (None, place),
            },
        };
        let is_name = mu_hub::names::check_name(name).is_ok();
        is_name.then_some(Self { base, name, spec })
    }

    /// The names that the target can have in the hub for its package `own`, likeliest first: with its base if
    /// one was written, or else as a name of this hub. A single segment means a package beside `own` if there
    /// is one.
    pub(super) fn keys(&self, own: &str) -> Vec<String> {
        match (self.base, own.rsplit_once('/')) {
            (Some(base), _) => vec![format!("{base}{}", self.name)],
            (None, Some((namespace, _))) if !self.name.contains('/') => {
                vec![format!("{namespace}/{}", self.name), self.name.to_owned()]
            }
            (None, _) => vec![self.name.to_owned()],
        }
    }
}

/// The host with its slash, and the rest.
fn split_base(text: &str) -> Option<(Option<&str>, &str)> {
    let end = text.find('/')? + 1;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-:[]/".contains(&byte);
    let is_host = text[..end].bytes().all(fits) && !text.starts_with(['.', '-', '/']);
    is_host.then_some((Some(&text[..end]), &text[end..]))
}

/// All of a name except its last segment; empty if there is only one.
pub(super) fn namespace(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(namespace, _)| namespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_lead_beside_or_elsewhere() {
        for (reference, expected) in [
            ("web/tls#^1.0", Some((None, "web/tls", "^1.0"))),
            ("tls", Some((None, "tls", ""))),
            ("hub.mu.com/web/tls#1", Some((Some("hub.mu.com/"), "web/tls", "1"))),
            ("http://localhost:80/a#x", Some((Some("localhost:80/"), "a", "x"))),
            ("https://localhost/a", Some((Some("localhost/"), "a", ""))),
            ("localhost:80/a", Some((Some("localhost:80/"), "a", ""))),
            ("my_hub.acme.co/a", Some((Some("my_hub.acme.co/"), "a", ""))),
            ("https://_hub/a", Some((Some("_hub/"), "a", ""))),
            ("git+https://host/a", None),
            ("oci://host/a", None),
            ("../a", None),
            ("https://host/a.git", None),
            ("javascript:alert(1)", None),
            ("a b", None),
            ("a.b;rm/x", None),
            ("$(x):/y", None),
            ("", None),
        ] {
            let found = Target::parse(reference);
            let found = found.map(|target| (target.base, target.name, target.spec));
            assert_eq!(found, expected, "{reference}");
        }
    }

    #[test]
    fn one_segment_leads_beside_its_dependent_first() {
        let keys = |reference, own| Target::parse(reference).expect("is one").keys(own);
        assert_eq!(keys("tls", "acme/web"), ["acme/tls", "tls"]);
        assert_eq!(keys("tls", "web"), ["tls"]);
        assert_eq!(keys("x/tls", "acme/web"), ["x/tls"]);
        assert_eq!(keys("h.co/tls", "acme/web"), ["h.co/tls"]);
    }
}
