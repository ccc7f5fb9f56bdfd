//! The metadata of a list, as far as it takes to see whether anything has changed. Of JSON, or of protobuf, which costs
//! kube-apiserver a fraction of that: of a pod most of it is `managedFields`, which nobody reads here.
//!
//! Both are read alike: what is no list, has no version, or has an object in it without a name, a uid or a version, is none.
//! What a real kube-apiserver writes is in `testdata`, in both forms.

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
/// What the envelope of such an answer says that it is.
const KIND: &str = "PartialObjectMetadataList";

/// Why an answer is no list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoList {
    /// It is not JSON, or other JSON.
    #[error("{0}")]
    Json(String),
    /// It ends in the middle of something, or is no protobuf.
    #[error("its protobuf is torn")]
    Torn,
    /// It is something else.
    #[error("it is a {0:?}")]
    Other(String),
    /// It does not say of which moment it is.
    #[error("it has no resourceVersion")]
    NoVersion,
    /// It is not known of what.
    #[error("an object in it has no name, uid or resourceVersion")]
    Nameless,
}

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
    pub(super) fn read(content_type: &str, answer: &'a [u8]) -> Result<Self, NoList> {
        let heads = if content_type.starts_with(PROTOBUF) {
            Self::of_protobuf(answer)?
        } else {
            let read = serde_json::from_slice(answer);
            read.map_err(|error: serde_json::Error| NoList::Json(error.to_string()))?
        };
        heads.whole()
    }

    /// `PartialObjectMetadataList` in the envelope that Kubernetes puts around messages. Numbers of fields are those of its
    /// published definitions.
    fn of_protobuf(answer: &'a [u8]) -> Result<Self, NoList> {
        let envelope = answer.strip_prefix(MAGIC).ok_or(NoList::Torn)?;
        let said = last(envelope, 1)?.unwrap_or_default();
        let kind = text(last(said, 2)?.unwrap_or_default())?;
        if kind != KIND {
            return Err(NoList::Other(kind.to_owned()));
        }
        let list = last(envelope, 2)?.ok_or(NoList::Torn)?;
        let (mut metadata, mut items) = (&[][..], Vec::new());
        for field in Fields(list) {
            match field? {
                (1, message) => metadata = message,
                (2, item) => items.push(Head {
                    metadata: HeadMeta::of_protobuf(last(item, 1)?.unwrap_or_default())?,
                }),
                _ => {}
            }
        }
        let text = |number| Ok(text(last(metadata, number)?.unwrap_or_default())?.to_owned());
        let metadata = ListMeta {
            resource_version: text(2)?,
            r#continue: text(3)?,
        };
        Ok(Self {
            metadata,
            items: Some(items),
        })
    }

    /// The same, if it says what a list says. Protobuf has no way to be without a field: one that was left out is empty.
    fn whole(self) -> Result<Self, NoList> {
        if self.metadata.resource_version.is_empty() {
            return Err(NoList::NoVersion);
        }
        let is_nameless = |head: &Head<'_>| {
            let meta = &head.metadata;
            meta.name.is_empty() || meta.uid.is_empty() || meta.resource_version.is_empty()
        };
        if self.items.iter().flatten().any(is_nameless) {
            return Err(NoList::Nameless);
        }
        Ok(self)
    }
}

impl<'a> HeadMeta<'a> {
    fn of_protobuf(message: &'a [u8]) -> Result<Self, NoList> {
        let mut meta = Self::default();
        for field in Fields(message) {
            match field? {
                (1, name) => meta.name = Cow::Borrowed(text(name)?),
                (5, uid) => meta.uid = Cow::Borrowed(text(uid)?),
                (6, version) => meta.resource_version = Cow::Borrowed(text(version)?),
                _ => {}
            }
        }
        Ok(meta)
    }
}

fn text(bytes: &[u8]) -> Result<&str, NoList> {
    std::str::from_utf8(bytes).map_err(|_| NoList::Torn)
}

/// The last field of this number, as protobuf has it.
fn last(message: &[u8], wanted: u64) -> Result<Option<&[u8]>, NoList> {
    let mut found = None;
    for field in Fields(message) {
        let (number, bytes) = field?;
        if number == wanted {
            found = Some(bytes);
        }
    }
    Ok(found)
}

/// The fields of a message that have a length, with their numbers; all others are passed over. One that is torn is the last.
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
    type Item = Result<(u64, &'a [u8]), NoList>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.0.is_empty() {
            match self.field() {
                Some(None) => {}
                Some(Some(field)) => return Some(Ok(field)),
                None => {
                    self.0 = &[];
                    return Some(Err(NoList::Torn));
                }
            }
        }
        None
    }
}
