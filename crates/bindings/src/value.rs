//! What a name comes to.

use std::collections::BTreeSet;
use std::fmt;

use crate::revision::digest;

/// How long a value may be, in bytes: names that mention each other twice could otherwise fill any memory.
pub const MAX_TEXT: usize = 64 * 1024;

/// A text that may be secret. If it is, it can be had only by [`Text::reveal`].
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Text {
    content: String,
    /// The Secrets that it was computed from, as uid and version: none where it is no secret.
    secrets: BTreeSet<Stamp>,
    /// A hash of all that may be told of a secret text: which fields of which Secrets are in it, and what is around them. Empty
    /// where it is no secret.
    told: String,
}

/// A Secret at one time, which tells nothing of what is in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp {
    /// Its uid.
    pub uid: String,
    /// Its resourceVersion.
    pub version: String,
}

impl Text {
    /// A text that anybody may see.
    pub fn public(text: impl Into<String>) -> Self {
        Self {
            content: text.into(),
            secrets: BTreeSet::new(),
            told: String::new(),
        }
    }

    /// A text out of a field of a Secret.
    pub fn secret(text: String, stamp: Stamp, field: &str) -> Self {
        Self {
            content: text,
            told: hash(&[&stamp.uid, &stamp.version, field]),
            secrets: BTreeSet::from([stamp]),
        }
    }

    /// Whether it was computed from a Secret.
    pub fn is_secret(&self) -> bool {
        !self.secrets.is_empty()
    }

    /// The Secrets that it was computed from.
    pub fn secrets(&self) -> &BTreeSet<Stamp> {
        &self.secrets
    }

    /// A hash of what may be told of a secret text: another one where anything in it that is no secret is another, or another field
    /// of a Secret is in it. Nothing secret enters it.
    pub fn told(&self) -> &str {
        &self.told
    }

    /// The text, if anybody may see it.
    pub fn shown(&self) -> Option<&str> {
        (!self.is_secret()).then_some(self.content.as_str())
    }

    /// The text, to be put into a Secret.
    pub fn reveal(&self) -> &str {
        &self.content
    }

    /// Adds a piece that anybody may see. False if it would be too long.
    #[must_use]
    pub(crate) fn push(&mut self, piece: &str) -> bool {
        if self.is_secret() {
            self.told = hash(&[&self.told, "text", piece]);
        }
        self.extend(piece)
    }

    fn extend(&mut self, piece: &str) -> bool {
        if self.content.len() + piece.len() > MAX_TEXT {
            return false;
        }
        self.content.push_str(piece);
        true
    }

    /// Adds another text: the whole is as secret as its parts. False if it would be too long.
    #[must_use]
    pub(crate) fn append(&mut self, other: &Self) -> bool {
        if !other.is_secret() {
            return self.push(&other.content);
        }
        let before = if self.is_secret() {
            hash(&[&self.told, "secret"])
        } else {
            hash(&["text", &self.content])
        };
        self.told = hash(&[&before, &other.told]);
        self.secrets.extend(other.secrets.iter().cloned());
        self.extend(&other.content)
    }
}

/// A hash of parts, each of which is known by its length.
fn hash(parts: &[&str]) -> String {
    let lengths = parts.iter().map(|part| format!("{}:", part.len()));
    let pieces = lengths
        .zip(parts)
        .flat_map(|(length, part)| [length, (*part).to_owned()]);
    digest(&pieces.collect::<String>(), 32)
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shown() {
            Some(text) => write!(f, "{text:?}"),
            None => f.write_str("(secret)"),
        }
    }
}
