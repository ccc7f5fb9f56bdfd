//! How built-in types are written in protobuf: the numbers of their fields, from the same table. It is read when the
//! first such body comes.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::TABLE;
use super::read::Package;

static MESSAGES: LazyLock<BTreeMap<String, Message>> = LazyLock::new(|| read(TABLE));

/// The message that stands for a type, by the type's `OpenAPI` name; none for types with a form of their own.
pub fn message(openapi_name: &str) -> Option<&'static Message> {
    MESSAGES.get(openapi_name)
}

/// What the fields of a message are.
#[derive(Debug, Default)]
pub struct Message {
    /// The Go struct's name, for messages.
    pub go_name: Box<str>,
    slots: BTreeMap<u32, Slot>,
}

/// What a number stands for.
#[derive(Debug)]
pub enum Slot {
    /// A field of the type.
    Field {
        /// Its JSON name.
        name: Box<str>,
        /// The list is a message of its own, with the items as field 1.
        wrapped: bool,
    },
    /// A struct whose fields stand among those of the type in JSON, but not in protobuf.
    Inline(Message),
}

impl Message {
    /// What `number` stands for, if anything.
    pub fn slot(&self, number: u32) -> Option<&Slot> {
        self.slots.get(&number)
    }

    /// Adds a field at the end of `numbers`, which lead through the structs in `through`.
    fn add(&mut self, numbers: &[u32], through: &[&str], name: &str, wrapped: bool) {
        match numbers {
            [] => {}
            [number] => {
                let name = name.into();
                self.slots.insert(*number, Slot::Field { name, wrapped });
            }
            [number, rest @ ..] => {
                let slot = self.slots.entry(*number).or_insert_with(|| {
                    Slot::Inline(Self {
                        go_name: (*through.first().unwrap_or(&"")).into(),
                        ..Self::default()
                    })
                });
                if let Slot::Inline(inner) = slot {
                    inner.add(rest, through.get(1..).unwrap_or_default(), name, wrapped);
                }
            }
        }
    }
}

fn read(text: &str) -> BTreeMap<String, Message> {
    let mut all: BTreeMap<String, Message> = BTreeMap::new();
    let mut package = Package::default();
    let mut open = (String::new(), Message::default());
    for line in text.lines() {
        if let Some(found) = Package::read(line) {
            package = found;
        } else if let Some(rest) = line.strip_prefix("type ") {
            let short = rest.split(' ').next().unwrap_or_default();
            let message = Message {
                go_name: short.into(),
                ..Message::default()
            };
            let name = format!("{}.{short}", package.name);
            let (name, message) = std::mem::replace(&mut open, (name, message));
            all.insert(name, message);
        } else if let Some(field) = line.strip_prefix(' ') {
            let name = field.split(' ').next().unwrap_or_default();
            let find = |mark| field.split(' ').find_map(|word| word.strip_prefix(mark));
            let Some(place) = find("#") else { continue };
            let numbers: Vec<u32> = place
                .trim_end_matches('w')
                .split('.')
                .filter_map(|number| number.parse().ok())
                .collect();
            let through: Vec<&str> = find("in=").unwrap_or_default().split('.').collect();
            let wrapped = place.ends_with('w');
            open.1.add(&numbers, &through, name, wrapped);
        }
    }
    all.insert(open.0, open.1);
    all
}
