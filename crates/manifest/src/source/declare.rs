//! Declarations of the content of files: the keys of a map, and the words that a value can be.
//!
//! Each is declared once. Readers, editors, the suggestions for misspelt words, and the JSON schema all use the
//! declaration.

use super::value::{Text, Value};
use super::{SourceError, Table, nearest};

/// A value that is one of a few words; declare it with [`choice!`](crate::choice).
pub trait Choice: Copy + 'static {
    /// All values, in order.
    const ALL: &'static [Self];

    /// The word for it in files, flags and answers.
    fn word(self) -> &'static str;

    /// The value of a word.
    fn of_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.word() == word)
    }
}

/// Declares an enumeration whose values are words in a file: its variants with their words, a [`Choice`], and its JSON
/// schema.
#[macro_export]
macro_rules! choice {
    (
        $(#[$meta:meta])*
        $visibility:vis enum $name:ident { $($(#[$about:meta])* $variant:ident = $word:literal,)* }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        $visibility enum $name {
            $($(#[$about])* $variant,)*
        }

        impl $name {
            /// The word for it in files, flags and answers.
            $visibility const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }

        impl $crate::source::Choice for $name {
            const ALL: &'static [Self] = &[$(Self::$variant),*];

            fn word(self) -> &'static str {
                self.as_str()
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "enum": [$($word),*] })
            }
        }
    };
}

/// Declares the keys of a map in a file, with the types of their values in its JSON schema. Other keys are
/// unknown, except those that begin with `x-`. Code names a key by the constant with its field's name. The compiler
/// reports one that this crate does not use, unless its name begins with `_`; it is silent in other crates.
#[macro_export]
macro_rules! keys {
    (
        $(#[$meta:meta])*
        $visibility:vis struct $name:ident { $($(#[$about:meta])* $key:literal $field:ident: $shape:ty,)* }
    ) => {
        #[derive(schemars::JsonSchema)]
        $(#[$meta])*
        #[schemars(deny_unknown_fields, extend("patternProperties" = {"^x-": {}}))]
        $visibility struct $name {
            $($(#[$about])* #[schemars(rename = $key)] $field: $shape,)*
        }

        #[warn(dead_code)]
        #[allow(non_upper_case_globals, reason = "they are named as the fields are")]
        impl $name {
            /// The keys, in the order in which they are declared.
            $visibility const KEYS: &'static [&'static str] = &[$($key),*];

            $(
                /// The key itself.
                $visibility const $field: &'static str = $key;
            )*
        }
    };
}

impl Text<'_> {
    /// The one of a few words that the text is.
    ///
    /// # Errors
    ///
    /// When it is none of them.
    pub fn choice<T: Choice>(&self) -> Result<T, SourceError> {
        T::of_word(self.as_str()).ok_or_else(|| {
            let words: Vec<&str> = T::ALL.iter().map(|one| one.word()).collect();
            let error = self.error(format!("expected one of `{}`", words.join("`, `")));
            match nearest(self.as_str(), words) {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None => error,
            }
        })
    }
}

impl Table<'_> {
    /// The word of `key`, one of a few.
    ///
    /// # Errors
    ///
    /// When something else is there.
    pub fn choice<T: Choice>(self, key: &str) -> Result<Option<T>, SourceError> {
        self.get(key).map(|value: Value<'_>| value.text()?.choice()).transpose()
    }
}

pub(crate) use {choice, keys};
