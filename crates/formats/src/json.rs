//! Reads JSON that others wrote into the values that `reader` makes of YAML. It does not tell numbers and truth values from texts:
//! nobody here needs to.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

use crate::error::Fault;
use crate::node::{Entry, Kind, MapEntries, Node};
use crate::shape::{Shape, Under, Unknown, Values};

/// A value of JSON.
pub(crate) struct JsonValue<'t> {
    pub(crate) node: Node<'t>,
    /// How many bytes it has.
    pub(crate) length: usize,
    /// The keys that the format does not have.
    pub(crate) unknown: Unknown,
}

/// Reads what `shape` declares of the JSON that a text begins with.
pub(crate) fn read<'t>(
    text: &'t str,
    shape: &'static Shape,
    values: &mut Values,
) -> Result<JsonValue<'t>, Fault> {
    let mut from = serde_json::Deserializer::from_str(text);
    let (mut excess, mut unknown) = (None, Unknown::default());
    let value = Value { shape, values, excess: &mut excess, unknown: &mut unknown };
    match value.deserialize(&mut from) {
        Ok(kind) => {
            let length = from.into_iter::<IgnoredAny>().byte_offset();
            unknown.find_places(text);
            Ok(JsonValue { node: Node { span: 0..0, kind }, length, unknown })
        }
        Err(error) => {
            let before = text.split_inclusive('\n').take(error.line().saturating_sub(1));
            let line: usize = before.map(str::len).sum();
            let at = (line + error.column().saturating_sub(1)).min(text.len());
            Err(match excess {
                Some(fault) => Fault { span: at..at, ..fault },
                None => Fault::new(at..at, format!("this is not JSON: {error}")),
            })
        }
    }
}

/// A value that is read.
struct Value<'v> {
    shape: &'static Shape,
    values: &'v mut Values,
    /// Set if there are too many.
    excess: &'v mut Option<Fault>,
    unknown: &'v mut Unknown,
}

impl Value<'_> {
    fn count<E: Error>(&mut self) -> Result<(), E> {
        self.values.count(&(0..0)).map_err(|fault| {
            let error = E::custom(&fault.reason);
            *self.excess = Some(fault);
            error
        })
    }

    /// What is read inside of it.
    fn inner(&mut self, shape: &'static Shape) -> Value<'_> {
        Value { shape, values: self.values, excess: self.excess, unknown: self.unknown }
    }
}

impl<'t> DeserializeSeed<'t> for Value<'_> {
    type Value = Kind<'t>;

    fn deserialize<D: Deserializer<'t>>(mut self, from: D) -> Result<Kind<'t>, D::Error> {
        self.count()?;
        from.deserialize_any(self)
    }
}

impl<'t> Visitor<'t> for Value<'_> {
    type Value = Kind<'t>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Kind<'t>, E> {
        Ok(Kind::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Kind<'t>, E> {
        Ok(Kind::Scalar(Cow::Borrowed(if value { "true" } else { "false" })))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Kind<'t>, E> {
        Ok(Kind::Scalar(value.to_string().into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Kind<'t>, E> {
        Ok(Kind::Scalar(value.to_string().into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Kind<'t>, E> {
        let number = Number::from_f64(value);
        Ok(number.map_or(Kind::Null, |number| Kind::Scalar(number.to_string().into())))
    }

    fn visit_borrowed_str<E: Error>(self, value: &'t str) -> Result<Kind<'t>, E> {
        Ok(Kind::Scalar(Cow::Borrowed(value)))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Kind<'t>, E> {
        Ok(Kind::Scalar(Cow::Owned(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'t>>(mut self, mut from: A) -> Result<Kind<'t>, A::Error> {
        let mut items = Vec::new();
        let Some(inside) = self.shape.inside() else {
            while from.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(Kind::List(items.into()));
        };
        while let Some(kind) = from.next_element_seed(self.inner(inside))? {
            items.push(Node { span: 0..0, kind });
        }
        Ok(Kind::List(items.into()))
    }

    fn visit_map<A: MapAccess<'t>>(mut self, mut from: A) -> Result<Kind<'t>, A::Error> {
        let shape = self.shape;
        let mut entries = MapEntries::new(shape);
        let known = self.unknown.len();
        while let Some(key) = from.next_key_seed(KeyText)? {
            let (key, under) = match shape.under(key) {
                Under::Read(key, under) => (key, under),
                passed => {
                    if let Under::Unknown(key, keys) = passed {
                        self.unknown.add(&key, 0..0, keys);
                    }
                    from.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            self.count()?;
            let value = Node { span: 0..0, kind: from.next_value_seed(self.inner(under))? };
            entries.add(Entry { key, span: 0..0, value }, false);
        }
        let map = entries.finish();
        if !map.is_of_known_type() {
            self.unknown.forget_after(known);
        }
        Ok(map)
    }
}

/// The text of a key, which is copied only if it has escapes.
struct KeyText;

impl<'t> DeserializeSeed<'t> for KeyText {
    type Value = Cow<'t, str>;

    fn deserialize<D: Deserializer<'t>>(self, from: D) -> Result<Cow<'t, str>, D::Error> {
        from.deserialize_str(self)
    }
}

impl<'t> Visitor<'t> for KeyText {
    type Value = Cow<'t, str>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_borrowed_str<E: Error>(self, key: &'t str) -> Result<Cow<'t, str>, E> {
        Ok(Cow::Borrowed(key))
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Cow<'t, str>, E> {
        Ok(Cow::Owned(key.to_owned()))
    }
}
