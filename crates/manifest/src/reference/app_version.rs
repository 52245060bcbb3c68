//! App versions: comparing the requested one with those of packages.
//!
//! An app version is free text. Only if all app versions of a package can be read as versions, a part of one
//! means all versions that start with it.

use super::version_text;

/// How the app versions of one package are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppVersioning {
    /// All of them parse as versions: a filter of `2.3` accepts `2.3.1`.
    Semver,
    /// At least one is other text: they are compared for equality.
    FreeForm,
}

impl AppVersioning {
    /// How these app versions are compared with each other.
    pub fn of<'text>(app_versions: impl IntoIterator<Item = &'text str>) -> Self {
        let mut texts = app_versions.into_iter();
        if texts.all(|text| version_text::lenient(text).is_ok()) {
            Self::Semver
        } else {
            Self::FreeForm
        }
    }

    /// Whether `wanted` accepts the app version `actual`: the same version, or one that starts with its
    /// components.
    ///
    /// Components are whole, so `2.3` does not accept `2.30`. A release does not accept its prereleases.
    pub fn accepts(self, wanted: &str, actual: &str) -> bool {
        if self == Self::FreeForm {
            return wanted == actual;
        }
        let without_v = |text: &str| text.strip_prefix('v').unwrap_or(text).to_owned();
        let (wanted, actual) = (without_v(wanted), without_v(actual));
        actual
            .strip_prefix(&wanted)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '+']))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_whole() {
        let app_versions = AppVersioning::of(["2.3", "2.30.1", "v3.0.0-rc.1+b5"]);
        assert_eq!(app_versions, AppVersioning::Semver);
        for (wanted, actual, expected) in [
            ("2.3", "2.3", true),
            ("2.3", "2.3.1", true),
            ("v2.3", "2.3.1", true),
            ("2", "v2.3.1", true),
            ("2.3", "2.30", false),
            ("2.3.0", "2.3", false),
            ("3", "3.0.0-rc.1", true),
            ("3.0.0", "3.0.0-rc.1", false),
            ("3.0.0-rc", "3.0.0-rc.1", true),
            ("3.0.0", "3.0.0+b5", true),
            ("", "2.3", false),
        ] {
            assert_eq!(app_versions.accepts(wanted, actual), expected, "{wanted} {actual}");
        }
    }

    #[test]
    fn one_free_form_makes_all_of_them_words() {
        let app_versions = AppVersioning::of(["2.3.0", "Bookworm 12"]);
        assert_eq!(app_versions, AppVersioning::FreeForm);
        assert!(app_versions.accepts("Bookworm 12", "Bookworm 12"));
        assert!(!app_versions.accepts("Bookworm", "Bookworm 12"));
        assert!(!app_versions.accepts("2.3", "2.3.0"));
    }
}
