//! Encoded JSON in pieces, the long ones of which are kept once in a process.
//!
//! Many clusters hold the same definitions, and many objects the same template; and each write of an object leaves most
//! of it as it was. So the long members of an object (`spec`, `status`, `managedFields`) are pieces of their own, and
//! the same text in another object, version or cluster is the same memory.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::io;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::shelf::{Kept, Shelf};

/// From how many bytes on a member is a piece of its own. Shorter ones are not worth the look-up.
const LONG: usize = 1024;

/// All long pieces that are in use.
static LONG_PIECES: Shelf<Box<[u8]>, ()> = Shelf::new();

/// A part of an encoded object.
#[derive(Debug, Clone)]
pub(crate) enum Piece {
    /// Of this object alone.
    Own(Arc<[u8]>),
    /// A long one: the only copy of this text.
    Shared(Arc<Kept<Box<[u8]>, ()>>),
}

impl Piece {
    fn long(text: &[u8]) -> Self {
        Self::Shared(LONG_PIECES.get(text, || (text.into(), ())))
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Shared(kept) => kept.content(),
        }
    }
}

impl PartialEq for Piece {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Shared(one), Self::Shared(other)) if Arc::ptr_eq(one, other) => true,
            _ => self.bytes() == other.bytes(),
        }
    }
}

impl Eq for Piece {}

impl Hash for Piece {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Own(bytes) => bytes.hash(state),
            // Only long ones are shared, and all of them: no other piece has the same text.
            Self::Shared(kept) => kept.digest().hash(state),
        }
    }
}

/// Encoded JSON: every second piece is the value of a member that is cut out.
#[derive(Debug, Clone)]
pub struct Text(Box<[Piece]>);

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        // Mostly they are cut at the same places.
        self.0 == other.0 || (self.len() == other.len() && self.every_byte().eq(other.every_byte()))
    }
}

impl Eq for Text {}

/// How an object begins.
const METADATA: &[u8] = b"{\"metadata\":";

/// The member that differs between clusters where nothing else does, as it stands in an object.
const CREATED: &str = "creationTimestamp";

impl Text {
    /// The stored form of an object: without `apiVersion` and `kind`, with the resource version.
    pub(super) fn of(object: &Value, version: u64) -> Self {
        Self::cut(object, version, "")
    }

    /// The same, with the moment of the object's creation in a piece of its own.
    pub(super) fn dated(object: &Value, version: u64) -> Self {
        Self::cut(object, version, CREATED)
    }

    /// The same text with another moment of creation; all else is shared. It must be a [`Text::dated`].
    pub(super) fn created(&self, moment: &str) -> Self {
        let name = format!("\"{CREATED}\":");
        let mut pieces = self.0.clone();
        let before = pieces
            .iter()
            .position(|piece| piece.bytes().ends_with(name.as_bytes()));
        if let Some(piece) = before.and_then(|at| pieces.get_mut(at + 1)) {
            *piece = Piece::Own(Value::from(moment).to_string().into_bytes().into());
        }
        Self(pieces)
    }

    /// Long members are cut out, and that of this name among the metadata.
    fn cut(object: &Value, version: u64, member: &str) -> Self {
        let mut writer = Writer::default();
        // Writing into memory cannot fail.
        let _ = spell(&mut writer, object, version, member);
        writer.finish()
    }

    /// Whether this is the stored form of an object at a version.
    pub(super) fn is_of(&self, object: &Value, version: u64) -> bool {
        let mut reader = Reader {
            pieces: self.0.iter(),
            left: &[],
        };
        spell(&mut reader, object, version, "").is_ok() && reader.is_through()
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.0.iter().map(|piece| piece.bytes().len()).sum()
    }

    fn every_byte(&self) -> impl Iterator<Item = &u8> {
        self.0.iter().flat_map(Piece::bytes)
    }

    /// Whether there is nothing; an object never is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        for piece in &self.0 {
            out.extend_from_slice(piece.bytes());
        }
    }

    /// The text of a top-level member, and the value without it. Long members besides are left out too: they are cheap
    /// to tell apart, and dear to decode.
    pub(super) fn split(&self, member: &str) -> (Piece, Value) {
        // The number of a member that is cut out stands in for it.
        let mut outline = Vec::new();
        for (i, piece) in self.0.iter().enumerate() {
            if i % 2 == 0 {
                outline.extend_from_slice(piece.bytes());
            } else {
                outline.extend_from_slice(i.to_string().as_bytes());
            }
        }
        let mut rest: Value = serde_json::from_slice(&outline).unwrap_or_default();
        let taken = rest.as_object_mut().and_then(|map| map.remove(member));
        let long = taken.as_ref().and_then(Value::as_u64);
        let piece = long.and_then(|i| self.0.get(usize::try_from(i).ok()?));
        let text = piece.cloned().unwrap_or_else(|| {
            let short = taken.map(|value| value.to_string()).unwrap_or_default();
            Piece::Own(short.into_bytes().into())
        });
        (text, rest)
    }

    /// Appends the text of the metadata.
    pub(super) fn write_metadata(&self, out: &mut Vec<u8>) {
        let text: Option<Box<RawValue>> = self.metadata();
        // It is our own encoding; an empty object stands in for what cannot happen.
        let text = text.as_deref().map_or("{}", RawValue::get);
        out.extend_from_slice(text.as_bytes());
    }

    /// The metadata, which come first: nothing behind them is looked at.
    pub(super) fn metadata<T: DeserializeOwned>(&self) -> Option<T> {
        let whole = self.whole();
        let rest = whole.strip_prefix(METADATA)?;
        T::deserialize(&mut serde_json::Deserializer::from_slice(rest)).ok()
    }

    /// All of it in one piece.
    fn whole(&self) -> Cow<'_, [u8]> {
        if let [piece] = &*self.0 {
            return Cow::Borrowed(piece.bytes());
        }
        let mut whole = Vec::with_capacity(self.len());
        self.write(&mut whole);
        Cow::Owned(whole)
    }

    /// The value.
    pub(super) fn decode(&self) -> Value {
        // It is our own encoding; an empty object stands in for what cannot happen.
        serde_json::from_slice(&self.whole()).unwrap_or_else(|_| Value::Object(Map::new()))
    }
}

/// What takes in the stored form of an object.
trait Pen: io::Write + Sized {
    /// Takes a member in, which may be cut out.
    fn member(&mut self, key: &str, value: &Value, _is_cut: bool) -> io::Result<()> {
        serde_json::to_writer(&mut *self, key)?;
        self.write_all(b":")?;
        Ok(serde_json::to_writer(self, value)?)
    }
}

/// The stored form of an object: without `apiVersion` and `kind`, with the resource version. The member of this name among
/// the metadata is cut out.
fn spell(pen: &mut impl Pen, object: &Value, version: u64, cut: &str) -> io::Result<()> {
    let map = object.as_object();
    let meta = map.and_then(|map| map.get("metadata")?.as_object());
    pen.write_all(METADATA)?;
    pen.write_all(b"{")?;
    for (key, value) in meta.into_iter().flatten() {
        if key != "resourceVersion" {
            pen.member(key, value, key == cut)?;
            pen.write_all(b",")?;
        }
    }
    write!(pen, "\"resourceVersion\":\"{version}\"}}")?;
    for (key, value) in map.into_iter().flatten() {
        if !matches!(key.as_str(), "apiVersion" | "kind" | "metadata") {
            pen.write_all(b",")?;
            pen.member(key, value, false)?;
        }
    }
    pen.write_all(b"}")
}

/// Compares with a text, as far as they are equal.
struct Reader<'a> {
    pieces: std::slice::Iter<'a, Piece>,
    /// What is left of the piece before these.
    left: &'a [u8],
}

impl Reader<'_> {
    fn is_through(&mut self) -> bool {
        self.left.is_empty() && self.pieces.all(|piece| piece.bytes().is_empty())
    }
}

impl io::Write for Reader<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        while self.left.is_empty() && !bytes.is_empty() {
            let Some(piece) = self.pieces.next() else {
                return Err(io::ErrorKind::WriteZero.into());
            };
            self.left = piece.bytes();
        }
        let count = bytes.len().min(self.left.len());
        let (here, left) = self.left.split_at(count);
        if !bytes.starts_with(here) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.left = left;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Pen for Reader<'_> {}

#[derive(Default)]
struct Writer {
    pieces: Vec<Piece>,
    tail: Vec<u8>,
}

impl io::Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.tail.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Pen for Writer {
    /// Writes a member; a long one is cut out, and one that is to be.
    fn member(&mut self, key: &str, value: &Value, is_cut: bool) -> io::Result<()> {
        serde_json::to_writer(&mut self.tail, key)?;
        self.tail.push(b':');
        let start = self.tail.len();
        serde_json::to_writer(&mut self.tail, value)?;
        let is_long = self.tail.len() - start >= LONG;
        if is_long || is_cut {
            let own = self.tail.split_off(start);
            self.cut();
            self.pieces.push(if is_long {
                Piece::long(&own)
            } else {
                Piece::Own(own.into())
            });
        }
        Ok(())
    }
}

impl Writer {
    fn cut(&mut self) {
        let tail = std::mem::take(&mut self.tail);
        self.pieces.push(Piece::Own(tail.into()));
    }

    fn finish(mut self) -> Text {
        self.cut();
        Text(self.pieces.into_boxed_slice())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn long_members_are_kept_once() {
        let long = json!({"metadata": {"name": "a", "resourceVersion": "1"}, "kind": "X",
            "spec": {"text": "x".repeat(LONG)}, "status": {"phase": "new"}});
        let (one, two) = (Text::of(&long, 7), Text::of(&long, 8));
        let pointers = |text: &Text| {
            text.0
                .iter()
                .map(|p| p.bytes().as_ptr())
                .collect::<Vec<_>>()
        };
        assert_eq!(one.0.len(), 3);
        assert_eq!(pointers(&one).get(1), pointers(&two).get(1));
        let mut expected = long;
        expected.as_object_mut().map(|o| o.remove("kind"));
        crate::value::put(&mut expected, "metadata.resourceVersion", "7");
        assert_eq!(one.decode(), expected);
        assert_eq!(one.len(), expected.to_string().len());
        let place = LONG_PIECES.get(one.0[1].bytes(), || panic!("it is there"));
        assert_eq!(Arc::strong_count(&place), 3, "two objects and this test");
    }

    #[test]
    fn only_the_moment_of_creation_differs() {
        let object = |moment: &str| json!({"metadata": {"name": "a", CREATED: moment, "uid": "u"}, "spec": {"text": "x".repeat(LONG)}});
        let (one, other) = (
            object("2024-01-01T00:00:00Z"),
            object("2024-01-01T00:00:01Z"),
        );
        let dated = Text::dated(&one, 7);
        assert_eq!(dated, Text::of(&one, 7), "it is the same text");
        assert_ne!(dated, Text::of(&other, 7));
        let later = dated.created("2024-01-01T00:00:01Z");
        assert_eq!(later, Text::of(&other, 7));
        assert_eq!(later.decode(), Text::of(&other, 7).decode());
        let own = |text: &Text, other: &Text| {
            let pieces = text.0.iter().zip(&other.0);
            pieces
                .filter(|(a, b)| a.bytes().as_ptr() != b.bytes().as_ptr())
                .count()
        };
        assert_eq!(own(&dated, &later), 1);
        let (spec, rest) = later.split("spec");
        assert_eq!(spec.bytes(), other["spec"].to_string().as_bytes());
        assert_eq!(rest["metadata"]["name"], "a");
    }

    #[test]
    fn a_member_is_told_from_the_rest() {
        let spec = json!({"text": "x".repeat(LONG)});
        let object =
            |spec: Value| json!({"metadata": {"name": "a"}, "spec": spec, "status": {"n": 1}});
        for spec in [spec, json!({"short": 1})] {
            let (text, rest) = Text::of(&object(spec.clone()), 7).split("spec");
            assert_eq!(text.bytes(), spec.to_string().as_bytes());
            assert_eq!(
                rest,
                json!({"metadata": {"name": "a", "resourceVersion": "7"}, "status": {"n": 1}})
            );
        }
        let (text, _) = Text::of(&json!({"metadata": {}}), 7).split("spec");
        assert!(text.bytes().is_empty());
    }

    #[test]
    fn metadata_are_told_without_the_rest() {
        let meta = json!({"name": "a", "annotations": {"b": "}\"{"}, "managedFields": [{"manager": "x".repeat(LONG)}]});
        let object = json!({"metadata": meta, "spec": {"metadata": {"name": "other"}}});
        let text = Text::of(&object, 7);
        let mut expected = meta;
        crate::value::put(&mut expected, "resourceVersion", "7");
        assert_eq!(text.metadata(), Some(expected.clone()));
        let mut written = Vec::new();
        text.write_metadata(&mut written);
        assert_eq!(serde_json::from_slice(&written).ok(), Some(expected));
        assert_eq!(
            Text::of(&json!({}), 1).metadata(),
            Some(json!({"resourceVersion": "1"}))
        );
    }

    #[test]
    fn an_object_is_told_from_any_other() {
        let long = "x".repeat(LONG);
        let object = json!({"metadata": {"name": "a", "resourceVersion": "1"}, "kind": "X",
            "spec": {"text": long}, "status": {"phase": "new", "n": 1}});
        for text in [Text::of(&object, 7), Text::dated(&object, 7)] {
            assert!(text.is_of(&object, 7));
            assert!(!text.is_of(&object, 8));
            for (path, value) in [
                ("metadata.name", json!("b")),
                ("metadata.uid", json!("u")),
                ("spec.text", json!("y")),
                ("spec.more", json!(long)),
                ("status.n", json!(1.5)),
                ("status.z", json!(null)),
                ("zest", json!({})),
            ] {
                let mut other = object.clone();
                crate::value::put(&mut other, path, value);
                assert!(!text.is_of(&other, 7), "{path}");
            }
            let mut less = object.clone();
            crate::value::take(&mut less, "status");
            assert!(!text.is_of(&less, 7));
        }
        assert!(Text::of(&json!(3), 1).is_of(&json!({}), 1));
    }

    #[test]
    fn what_is_no_object_is_stored_as_an_empty_one() {
        let text = Text::of(&json!(3), 1);
        assert_eq!(text.decode(), json!({"metadata": {"resourceVersion": "1"}}));
    }
}
