//! The metadata of a list, as far as it takes to see whether anything has changed. Of JSON, or of protobuf, which costs
//! kube-apiserver a fraction of that: of a pod most of it is `managedFields`, which nobody reads here.

use std::borrow::Cow;

use serde::Deserialize;
use slipway_kernel::store::Meta;

/// Metadata where the server can give it alone; it is in the same place of whole objects.
pub(super) const HEADS: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,\
    application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// What the type of an answer in protobuf begins with.
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// What such an answer begins with.
const MAGIC: &[u8] = b"k8s\0";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListMeta {
    pub(super) resource_version: String,
    #[serde(default)]
    pub(super) r#continue: String,
}

#[derive(Deserialize)]
pub(super) struct Heads<'a> {
    pub(super) metadata: ListMeta,
    #[serde(borrow, default)]
    pub(super) items: Option<Vec<Head<'a>>>,
}

#[derive(Deserialize)]
pub(super) struct Head<'a> {
    #[serde(borrow)]
    pub(super) metadata: HeadMeta<'a>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HeadMeta<'a> {
    #[serde(borrow)]
    pub(super) name: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) uid: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) resource_version: Cow<'a, str>,
}

impl From<Meta> for Head<'static> {
    fn from(meta: Meta) -> Self {
        Self {
            metadata: HeadMeta {
                name: Cow::Owned(meta.name),
                uid: Cow::Owned(meta.uid),
                resource_version: Cow::Owned(meta.version),
            },
        }
    }
}

impl<'a> Heads<'a> {
    /// Reads an answer of this type.
    pub(super) fn read(content_type: &str, answer: &'a [u8]) -> Result<Self, String> {
        if content_type.starts_with(PROTOBUF) {
            return Self::of_protobuf(answer).ok_or_else(|| "its protobuf is torn".to_owned());
        }
        serde_json::from_slice(answer).map_err(|error| error.to_string())
    }

    /// `PartialObjectMetadataList` in the envelope that Kubernetes puts around messages. Numbers of fields are those of its
    /// published definitions.
    fn of_protobuf(answer: &'a [u8]) -> Option<Self> {
        let raw = last(answer.strip_prefix(MAGIC)?, 2)??;
        let (mut metadata, mut items) = (&[][..], Vec::new());
        for field in Fields(raw) {
            match field? {
                (1, message) => metadata = message,
                (2, item) => items.push(Head {
                    metadata: HeadMeta::of_protobuf(last(item, 1)?.unwrap_or_default())?,
                }),
                _ => {}
            }
        }
        let text = |number| Some(text(last(metadata, number)?.unwrap_or_default())?.to_owned());
        let metadata = ListMeta {
            resource_version: text(2)?,
            r#continue: text(3)?,
        };
        Some(Self {
            metadata,
            items: Some(items),
        })
    }
}

impl<'a> HeadMeta<'a> {
    fn of_protobuf(message: &'a [u8]) -> Option<Self> {
        let mut meta = Self::default();
        for field in Fields(message) {
            match field? {
                (1, name) => meta.name = Cow::Borrowed(text(name)?),
                (5, uid) => meta.uid = Cow::Borrowed(text(uid)?),
                (6, version) => meta.resource_version = Cow::Borrowed(text(version)?),
                _ => {}
            }
        }
        (!meta.name.is_empty()).then_some(meta)
    }
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// The last field of this number, as protobuf has it; the outer none is that the message is torn.
#[expect(clippy::option_option, reason = "torn, and not there")]
fn last(message: &[u8], wanted: u64) -> Option<Option<&[u8]>> {
    let mut found = None;
    for field in Fields(message) {
        let (number, bytes) = field?;
        if number == wanted {
            found = Some(bytes);
        }
    }
    Some(found)
}

/// The fields of a message that have a length, with their numbers; all others are passed over. A none is the end of a
/// message that is torn.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn number(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    /// The next field, if it has a length.
    #[expect(clippy::option_option, reason = "torn, and of another type")]
    fn field(&mut self) -> Option<Option<(u64, &'a [u8])>> {
        let key = self.number()?;
        match key & 7 {
            0 => self.number().map(|_| None),
            1 => self.bytes(8).map(|_| None),
            2 => {
                let length = usize::try_from(self.number()?).ok()?;
                Some(Some((key >> 3, self.bytes(length)?)))
            }
            5 => self.bytes(4).map(|_| None),
            _ => None,
        }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Option<(u64, &'a [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.0.is_empty() {
            match self.field() {
                Some(None) => {}
                Some(found) => return Some(found),
                None => {
                    self.0 = &[];
                    return Some(None);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

    use super::*;

    fn number(mut value: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while value > 0x7f {
            all.push(u8::try_from(value & 0x7f).unwrap() | 0x80);
            value >>= 7;
        }
        all.push(u8::try_from(value).unwrap());
        all
    }

    fn field(key: usize, bytes: &[u8]) -> Vec<u8> {
        [&number(key << 3 | 2), &number(bytes.len()), bytes].concat()
    }

    fn answer() -> Vec<u8> {
        let pod = |name: &str, version: &str| {
            let mut meta = field(1, name.as_bytes());
            meta.extend(field(3, b"mimir"));
            meta.extend(field(5, b"7a"));
            meta.extend(field(6, version.as_bytes()));
            // A generation, which has no length, and managedFields.
            meta.extend([7 << 3, 0x96, 0x01]);
            meta.extend(field(17, &[b'x'; 200]));
            field(2, &field(1, &meta))
        };
        let mut list = field(1, &[field(2, b"4711"), field(3, b"")].concat());
        list.extend(pod("zone-a-0", "12"));
        list.extend(pod("zone-a-1", "13"));
        let mut all = MAGIC.to_vec();
        all.extend(field(1, b"type"));
        all.extend(field(2, &list));
        all
    }

    #[test]
    fn names_uids_and_versions_are_read_of_protobuf() {
        let answer = answer();
        let heads = Heads::read(PROTOBUF, &answer).unwrap();
        assert_eq!(heads.metadata.resource_version, "4711");
        let read = heads.items.unwrap().into_iter().map(|head| {
            let meta = head.metadata;
            format!("{} {} {}", meta.name, meta.uid, meta.resource_version)
        });
        let read: Vec<String> = read.collect();
        assert_eq!(read, ["zone-a-0 7a 12", "zone-a-1 7a 13"]);
    }

    /// What is torn is no shorter list.
    #[test]
    fn an_answer_that_is_cut_off_anywhere_is_none() {
        let answer = answer();
        for end in 0..answer.len() {
            assert!(Heads::read(PROTOBUF, &answer[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn an_object_without_a_name_is_none() {
        let list = field(2, &field(1, &field(5, b"7a")));
        let mut answer = MAGIC.to_vec();
        answer.extend(field(2, &list));
        assert!(Heads::read(PROTOBUF, &answer).is_err());
    }
}
