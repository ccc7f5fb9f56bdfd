//! Reads an object under review without the parts that no webhook looks at, which are most of it: what is skipped is
//! checked for syntax, and neither copied nor built.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Where in an object something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Object,
    Metadata,
    Spec,
    Template,
}

impl Place {
    fn skips(self, key: &str) -> bool {
        matches!(
            (self, key),
            (Self::Object, "status")
                | (Self::Metadata, "managedFields")
                | (Self::Spec, "volumeClaimTemplates")
                | (Self::Template, "spec")
        )
    }

    fn inner(self, key: &str) -> Option<Self> {
        match (self, key) {
            (Self::Object, "metadata") => Some(Self::Metadata),
            (Self::Object, "spec") => Some(Self::Spec),
            (Self::Spec, "template") => Some(Self::Template),
            _ => None,
        }
    }
}

/// Reads an object; null stays null.
pub(super) fn lean<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    Place::Object.deserialize(deserializer)
}

impl<'de> DeserializeSeed<'de> for Place {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place {
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
        while let Some(key) = map.next_key::<String>()? {
            if self.skips(&key) {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let value = match self.inner(&key) {
                Some(place) => map.next_value_seed(place)?,
                None => map.next_value::<Value>()?,
            };
            fields.insert(key, value);
        }
        Ok(Value::Object(fields))
    }
}
