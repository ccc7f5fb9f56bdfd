//! Reads objects without the parts that are left out: those are checked for syntax, and neither copied nor built.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::{Parts, Place};

/// An object that is read with these parts ([`Parts::bits`]) and no others.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Read<const PARTS: u8>(pub Value);

impl<'de, const PARTS: u8> Deserialize<'de> for Read<PARTS> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(Parts(PARTS), deserializer).map(Self)
    }
}

impl Parts {
    /// Reads an object out of its JSON, with these parts and no others.
    pub fn parse(self, json: &[u8]) -> Result<Value, serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        let value = read(self, &mut deserializer)?;
        deserializer.end()?;
        Ok(value)
    }
}

/// Reads any JSON value; of an object only these parts.
fn read<'de, D: Deserializer<'de>>(parts: Parts, deserializer: D) -> Result<Value, D::Error> {
    let reader = Reader {
        parts,
        place: Place::Object,
    };
    reader.deserialize(deserializer)
}

#[derive(Clone, Copy)]
struct Reader {
    parts: Parts,
    place: Place,
}

impl<'de> DeserializeSeed<'de> for Reader {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element::<Value>()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            if self.parts.skips(self.place, &name) {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let value = match self.place.inner(&name) {
                Some(place) => map.next_value_seed(Self { place, ..self })?,
                None => map.next_value::<Value>()?,
            };
            fields.insert(name, value);
        }
        Ok(Value::Object(fields))
    }
}
