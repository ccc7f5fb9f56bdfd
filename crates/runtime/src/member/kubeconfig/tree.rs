//! YAML as far as kubeconfigs need it: mappings, lists and texts. JSON is YAML too.
//!
//! No anchors, aliases, tags, directives or merges, nothing twice, one document, few and shallow. Every text is kept as
//! something secret: which one is, is known only when all is read. Errors have a line and nothing of what stands there.

use std::collections::BTreeMap;

use serde_saphyr::granit_parser::{Event, Options, Parser, ScalarStyle};
use slipway_kernel::Sensitive;

use super::error::KubeconfigError;

/// How deep things may be within each other; those of kubeconfigs are at five, extensions somewhat deeper.
const DEEPEST: usize = 24;
/// How many values there may be: hundreds of clusters, no bomb.
const MOST: usize = 20_000;

/// A value, and where it stands.
pub(super) struct Node {
    pub(super) line: usize,
    pub(super) value: Value,
}

pub(super) enum Value {
    Null,
    Text(Sensitive<String>),
    List(Vec<Node>),
    Map(BTreeMap<String, Node>),
}

/// Reads the only document.
pub(super) fn read(bytes: &[u8]) -> Result<Node, KubeconfigError> {
    let text = std::str::from_utf8(bytes).map_err(|_| wrong(1, "it is not UTF-8"))?;
    let mut options = Options::default();
    options.disallow_directives = true;
    let mut reader = Reader::default();
    for event in Parser::new_from_str_with_options(text, options) {
        // The parser's own words may quote what stands there.
        let (event, span) =
            event.map_err(|error| wrong(error.marker().line(), "it is neither YAML nor JSON"))?;
        reader.take(event, span.start.line())?;
    }
    reader.root.ok_or_else(|| wrong(1, "it is empty"))
}

fn wrong(line: usize, what: &'static str) -> KubeconfigError {
    KubeconfigError::Syntax { line, what }
}

/// A mapping or list that is still open.
enum Frame {
    List(Vec<Node>),
    Map(BTreeMap<String, Node>, Option<String>),
}

#[derive(Default)]
struct Reader {
    frames: Vec<(usize, Frame)>,
    values: usize,
    documents: usize,
    root: Option<Node>,
}

impl Reader {
    fn take(&mut self, event: Event<'_>, line: usize) -> Result<(), KubeconfigError> {
        match event {
            Event::Alias(_) | Event::UnresolvedAlias(_) | Event::Anchor(..) => {
                Err(wrong(line, ANCHORS))
            }
            Event::Scalar(_, _, anchor, _)
            | Event::SequenceStart(_, anchor, _)
            | Event::MappingStart(_, anchor, _)
                if anchor != 0 =>
            {
                Err(wrong(line, ANCHORS))
            }
            Event::Scalar(_, _, _, Some(_))
            | Event::SequenceStart(_, _, Some(_))
            | Event::MappingStart(_, _, Some(_)) => {
                Err(wrong(line, "tags (!) are not taken: write it out"))
            }
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(wrong(line, "there is a second document (---)"));
                }
                Ok(())
            }
            Event::Scalar(text, style, _, _) => self.scalar(text.into_owned(), style, line),
            Event::SequenceStart(..) => self.open(Frame::List(Vec::new()), line),
            Event::MappingStart(..) => self.open(Frame::Map(BTreeMap::new(), None), line),
            Event::SequenceEnd | Event::MappingEnd => self.close(line),
            _ => Ok(()),
        }
    }

    fn open(&mut self, frame: Frame, line: usize) -> Result<(), KubeconfigError> {
        if self.frames.len() >= DEEPEST {
            return Err(wrong(line, "it is nested too deeply"));
        }
        if let Some((_, Frame::Map(_, None))) = self.frames.last() {
            return Err(wrong(line, "the name of a field is no text"));
        }
        self.frames.push((line, frame));
        Ok(())
    }

    fn close(&mut self, line: usize) -> Result<(), KubeconfigError> {
        let (began, value) = match self.frames.pop() {
            Some((began, Frame::List(items))) => (began, Value::List(items)),
            Some((began, Frame::Map(map, _))) => (began, Value::Map(map)),
            None => return Err(wrong(line, "it is neither YAML nor JSON")),
        };
        self.place(Node { line: began, value }, line)
    }

    fn scalar(
        &mut self,
        text: String,
        style: ScalarStyle,
        line: usize,
    ) -> Result<(), KubeconfigError> {
        if let Some((_, Frame::Map(map, key @ None))) = self.frames.last_mut() {
            if map.contains_key(&text) {
                return Err(wrong(line, "a field stands twice"));
            }
            *key = Some(text);
            return Ok(());
        }
        let is_plain = style == ScalarStyle::Plain;
        let is_null = is_plain && matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL");
        let text = Sensitive::new(text);
        let value = if is_null {
            Value::Null
        } else {
            Value::Text(text)
        };
        self.place(Node { line, value }, line)
    }

    /// Puts a whole value where it belongs.
    fn place(&mut self, node: Node, line: usize) -> Result<(), KubeconfigError> {
        self.values += 1;
        if self.values > MOST {
            return Err(wrong(line, "it has too many values"));
        }
        match self.frames.last_mut() {
            None => self.root = Some(node),
            Some((_, Frame::List(items))) => items.push(node),
            Some((_, Frame::Map(map, key))) => {
                let key = key.take();
                let key = key.ok_or_else(|| wrong(line, "the name of a field is no text"))?;
                map.insert(key, node);
            }
        }
        Ok(())
    }
}

const ANCHORS: &str = "anchors (&) and aliases (*) are not taken: write it out";
