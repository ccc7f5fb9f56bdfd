//! Bodies in protobuf, as typed clients send them for built-in kinds.
//!
//! [`to_json`] gives the JSON that the same object would have been sent as; what it leaves out or writes as zero,
//! [`super::conform`] settles as for JSON. Unknown fields are skipped, as the real server does. Errors carry the texts
//! of Go's generated code, where a field's Go name is taken to be its JSON name with a capital. What differs: messages
//! nest at most [`MAX_MESSAGES`] deep, and JSON inside the message is checked at once.

mod special;
#[cfg(test)]
mod tests;
mod wire;

use serde_json::{Map, Number, Value};

use super::kind::{Target, join};
use super::{Media, ParseError};
use crate::schema::table::wire::{Message, Slot, message};
use crate::schema::{Schema, Shape, View, table};
use wire::{Tag, Type, Wire, Wired};

/// What a body starts with.
const MAGIC: &[u8] = b"k8s\0";

/// How deep messages may lie in one another. Each is at most two levels of JSON.
const MAX_MESSAGES: usize = 128;

/// What a body holds: the object, and what it says of its kind.
#[derive(Default)]
struct Envelope<'a> {
    api_version: String,
    kind: String,
    raw: &'a [u8],
}

/// The JSON of a body. `target` is what it is taken for where it does not say what it is. An object of a kind that
/// the server does not know comes out without contents.
pub(super) fn to_json(body: &[u8], target: &Target<'_>) -> Result<Value, ParseError> {
    let envelope = open(body).map_err(|text| ParseError {
        text,
        media: Some(Media::Protobuf),
        named: None,
    })?;
    let kind = match envelope.kind.as_str() {
        "" => target.kind,
        kind => kind,
    };
    // A version that cannot be read counts as none.
    let (group, version) = match envelope.api_version.split_once('/') {
        None => ("", envelope.api_version.as_str()),
        Some((_, version)) if version.contains('/') => ("", ""),
        Some(parts) => parts,
    };
    let (group, version) = match version {
        "" => (target.group, target.version),
        version => (group, version),
    };
    let mut object = Map::new();
    if let Some(schema) = schema(group, version, kind) {
        let mut reader = Reader { depth: 0 };
        reader
            .structure(schema.view(), envelope.raw, &mut object)
            .map_err(|text| ParseError {
                text,
                media: Some(Media::Protobuf),
                named: Some((version.to_owned(), kind.to_owned())),
            })?;
    }
    let api_version = join(group, version);
    for (name, text) in [("apiVersion", api_version.as_str()), ("kind", kind)] {
        if !text.is_empty() {
            object.insert(name.to_owned(), text.into());
        }
    }
    Ok(Value::Object(object))
}

fn schema(group: &str, version: &str, kind: &str) -> Option<Schema> {
    if kind == "DeleteOptions" {
        return table::named("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions");
    }
    table::knows(group, version, kind).then(|| table::kind(group, version, kind))
}

/// Opens the envelope, `runtime.Unknown`.
fn open(body: &[u8]) -> Wired<Envelope<'_>> {
    let data = match body.strip_prefix(MAGIC) {
        _ if body.is_empty() => return Err("empty data".to_owned()),
        None => {
            return Err(format!(
                "provided data does not appear to be a protobuf message, expected prefix {}",
                "[107 56 115 0]"
            ));
        }
        Some([]) => return Err("empty body".to_owned()),
        Some(data) => data,
    };
    let mut envelope = Envelope::default();
    let mut wire = Wire::new(data);
    while let Some(tag) = wire.tag("Unknown")? {
        match tag.number {
            1 => read_kind(wire.bytes(tag, "TypeMeta")?, &mut envelope)?,
            2 => envelope.raw = wire.bytes(tag, "Raw")?,
            3 => drop(wire.bytes(tag, "ContentEncoding")?),
            4 => drop(wire.bytes(tag, "ContentType")?),
            _ => wire.skip(tag)?,
        }
    }
    Ok(envelope)
}

fn read_kind(data: &[u8], envelope: &mut Envelope<'_>) -> Wired<()> {
    let mut wire = Wire::new(data);
    while let Some(tag) = wire.tag("TypeMeta")? {
        match tag.number {
            1 => envelope.api_version = text(wire.bytes(tag, "APIVersion")?),
            2 => envelope.kind = text(wire.bytes(tag, "Kind")?),
            _ => wire.skip(tag)?,
        }
    }
    Ok(())
}

/// Text, which Go does not check but cannot write as JSON unless it is UTF-8.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The name of a field in Go.
fn go_name(json_name: &str) -> String {
    if json_name == "metadata" {
        return "ObjectMeta".to_owned();
    }
    let mut letters = json_name.chars();
    letters
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .chain(letters)
        .collect()
}

/// A walk through a message along its schema.
struct Reader {
    depth: usize,
}

impl Reader {
    /// Does `step` one message deeper.
    fn deeper<T>(&mut self, step: impl FnOnce(&mut Self) -> Wired<T>) -> Wired<T> {
        if self.depth >= MAX_MESSAGES {
            return Err("proto: exceeded max depth".to_owned());
        }
        self.depth += 1;
        let made = step(self);
        self.depth -= 1;
        made
    }

    /// Reads the message of a type with fields into `object`, which holds what came before.
    fn structure(
        &mut self,
        view: View<'_>,
        data: &[u8],
        object: &mut Map<String, Value>,
    ) -> Wired<()> {
        static NONE: std::sync::LazyLock<Message> = std::sync::LazyLock::new(Message::default);
        let layout = message(&view.node.name).unwrap_or(&NONE);
        self.deeper(|reader| reader.fields(view, layout, data, object))
    }

    fn fields(
        &mut self,
        view: View<'_>,
        layout: &Message,
        data: &[u8],
        object: &mut Map<String, Value>,
    ) -> Wired<()> {
        let mut wire = Wire::new(data);
        while let Some(tag) = wire.tag(&layout.go_name)? {
            match layout.slot(tag.number) {
                None => wire.skip(tag)?,
                Some(Slot::Inline(inner)) => {
                    let data = wire.bytes(tag, &inner.go_name)?;
                    self.fields(view, inner, data, object)?;
                }
                Some(Slot::Field { name, wrapped }) => {
                    let Some((_, inner)) = view.field(name) else {
                        wire.skip(tag)?;
                        continue;
                    };
                    let place = object.entry(&**name).or_insert(Value::Null);
                    let field = Field {
                        view: inner,
                        name,
                        wrapped: *wrapped,
                    };
                    self.field(&field, tag, &mut wire, place)?;
                }
            }
        }
        Ok(())
    }

    fn field(
        &mut self,
        field: &Field<'_>,
        tag: Tag,
        wire: &mut Wire<'_>,
        place: &mut Value,
    ) -> Wired<()> {
        let node = field.view.node;
        if let (Shape::List, false, Some(items)) = (node.shape, field.wrapped, field.view.items()) {
            return self.items(&field.of(items), tag, wire, place);
        }
        if let (Shape::Object, Some(values)) = (node.shape, field.view.values()) {
            let data = wire.bytes(tag, &go_name(field.name))?;
            return self.entry(&field.of(values), data, place);
        }
        self.value(field, tag, wire, place)
    }

    /// An item of a list, or several in one piece.
    fn items(
        &mut self,
        item: &Field<'_>,
        tag: Tag,
        wire: &mut Wire<'_>,
        place: &mut Value,
    ) -> Wired<()> {
        if !place.is_array() {
            *place = Value::Array(Vec::new());
        }
        let Value::Array(list) = place else {
            return Ok(());
        };
        let each = match item.view.node.shape {
            Shape::Integer | Shape::Boolean => Type::Varint,
            Shape::Number => Type::Fixed64,
            _ => Type::Bytes,
        };
        if each == Type::Bytes || tag.wire != Type::Bytes {
            let mut value = Value::Null;
            self.value(item, tag, wire, &mut value)?;
            list.push(value);
            return Ok(());
        }
        let mut packed = Wire::new(wire.bytes(tag, &go_name(item.name))?);
        let tag = Tag { wire: each, ..tag };
        while !packed.is_empty() {
            let mut value = Value::Null;
            self.value(item, tag, &mut packed, &mut value)?;
            list.push(value);
        }
        Ok(())
    }

    /// An entry of a map: key and value, either of which may be missing. No map has numbers as values.
    fn entry(&mut self, field: &Field<'_>, data: &[u8], place: &mut Value) -> Wired<()> {
        let mut wire = Wire::new(data);
        let (mut key, mut value) = (String::new(), Value::Null);
        while let Some(tag) = wire.entry_tag()? {
            match tag.number {
                // Go takes both for what they should be, whatever the tag says.
                1 => key = text(wire.piece()?),
                2 => {
                    let data = wire.piece()?;
                    self.delimited(field, data, &mut value)?;
                }
                _ => wire.skip(tag)?,
            }
        }
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        if let Value::Object(map) = place {
            map.insert(key, value);
        }
        Ok(())
    }

    /// A value that is no list and no map, into `place`, which holds what came before.
    fn value(
        &mut self,
        field: &Field<'_>,
        tag: Tag,
        wire: &mut Wire<'_>,
        place: &mut Value,
    ) -> Wired<()> {
        let node = field.view.node;
        let name = || go_name(field.name);
        *place = match (node.shape, &*node.format) {
            (Shape::Boolean, _) => Value::from(wire.varint(tag, &name())? != 0),
            // Go takes as many bits as the type has.
            #[allow(clippy::cast_possible_truncation, reason = "as the real server does")]
            (Shape::Integer, "int32") => Value::from(wire.varint(tag, &name())? as i32),
            (Shape::Integer, _) => Value::from(wire.varint(tag, &name())?.cast_signed()),
            (Shape::Number, _) => {
                let bits = wire.fixed64(tag, &name())?;
                Number::from_f64(f64::from_bits(bits)).map_or(Value::Null, Value::Number)
            }
            _ => {
                let data = wire.bytes(tag, &name())?;
                return self.delimited(field, data, place);
            }
        };
        Ok(())
    }

    /// A value that has a length: text, bytes or a message.
    fn delimited(&mut self, field: &Field<'_>, data: &[u8], place: &mut Value) -> Wired<()> {
        let view = field.view;
        let node = view.node;
        *place = match (node.shape, &*node.format) {
            (Shape::String, "date-time") => special::time(data, &node.go_type)?,
            (Shape::String, "byte") => special::bytes(data),
            (Shape::String, _) => text(data).into(),
            (Shape::Quantity, _) => special::quantity(data)?,
            (Shape::IntOrString, _) => special::int_or_string(data)?,
            (Shape::List, _) => special::wrapped(data, node.go_type.as_ref())?,
            (Shape::Any, _) => match view.items() {
                Some(inner) => {
                    self.deeper(|reader| special::either(reader, &node.name, inner, data))?
                }
                None => special::raw(data, node.go_name(), self.depth)?,
            },
            (Shape::Object, _) if node.fields.is_empty() && node.preserve_unknown => {
                special::raw(data, node.go_name(), self.depth)?
            }
            _ => {
                if !place.is_object() {
                    *place = Value::Object(Map::new());
                }
                return match place {
                    Value::Object(object) => self.structure(view, data, object),
                    _ => Ok(()),
                };
            }
        };
        Ok(())
    }
}

/// A field being read: what it holds, under which name.
struct Field<'a> {
    view: View<'a>,
    name: &'a str,
    wrapped: bool,
}

impl<'a> Field<'a> {
    /// The same field, seen as one of its items or values.
    fn of(&self, view: View<'a>) -> Self {
        Self { view, ..*self }
    }
}
