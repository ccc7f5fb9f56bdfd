//! The wire format: tags, numbers and pieces with a length. It never reads past the end and never panics; the errors
//! are the texts of Go's generated code.

/// What could be read, or the text of why not.
pub(super) type Wired<T> = Result<T, String>;

const OVERFLOW: &str = "proto: integer overflow";
const ENDS: &str = "unexpected EOF";
const NEGATIVE: &str = "proto: negative length found during unmarshaling";

/// How a field is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Varint,
    Fixed64,
    Bytes,
    StartGroup,
    EndGroup,
    Fixed32,
    /// None that exists.
    Other(u8),
}

impl Type {
    fn of(tag: u64) -> Self {
        match tag & 7 {
            0 => Self::Varint,
            1 => Self::Fixed64,
            2 => Self::Bytes,
            3 => Self::StartGroup,
            4 => Self::EndGroup,
            5 => Self::Fixed32,
            6 => Self::Other(6),
            _ => Self::Other(7),
        }
    }

    fn number(self) -> u8 {
        match self {
            Self::Varint => 0,
            Self::Fixed64 => 1,
            Self::Bytes => 2,
            Self::StartGroup => 3,
            Self::EndGroup => 4,
            Self::Fixed32 => 5,
            Self::Other(number) => number,
        }
    }
}

/// What stands before each value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) number: u32,
    pub(super) wire: Type,
}

impl Tag {
    fn expect(self, wire: Type, field: &str) -> Wired<()> {
        if self.wire == wire {
            return Ok(());
        }
        let found = self.wire.number();
        Err(format!("proto: wrong wireType = {found} for field {field}"))
    }
}

/// The rest of a message.
#[derive(Debug)]
pub(super) struct Wire<'a> {
    rest: &'a [u8],
}

impl<'a> Wire<'a> {
    pub(super) fn new(data: &'a [u8]) -> Self {
        Self { rest: data }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next tag; none at the end. `message` is the Go name of what is being read.
    pub(super) fn tag(&mut self, message: &str) -> Wired<Option<Tag>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.number()?;
        let wire = Type::of(tag);
        if wire == Type::EndGroup {
            return Err(format!(
                "proto: {message}: wiretype end group for non-group"
            ));
        }
        match field_number(tag) {
            number @ 1.. => Ok(Some(Tag {
                number: number.unsigned_abs(),
                wire,
            })),
            number => Err(format!(
                "proto: {message}: illegal tag {number} (wire type {tag})"
            )),
        }
    }

    /// The next tag in an entry of a map, where Go does not look at more than the number.
    pub(super) fn entry_tag(&mut self) -> Wired<Option<Tag>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.number()?;
        let wire = Type::of(tag);
        let number = u32::try_from(field_number(tag)).unwrap_or_default();
        Ok(Some(Tag { number, wire }))
    }

    /// A number of variable length.
    pub(super) fn varint(&mut self, tag: Tag, field: &str) -> Wired<u64> {
        tag.expect(Type::Varint, field)?;
        self.number()
    }

    /// A number of eight bytes.
    pub(super) fn fixed64(&mut self, tag: Tag, field: &str) -> Wired<u64> {
        tag.expect(Type::Fixed64, field)?;
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(ENDS)?;
        self.rest = rest;
        Ok(u64::from_le_bytes(*bytes))
    }

    /// A piece with its length before it.
    pub(super) fn bytes(&mut self, tag: Tag, field: &str) -> Wired<&'a [u8]> {
        tag.expect(Type::Bytes, field)?;
        self.piece()
    }

    /// Passes over the value of a field that is not known, groups and all.
    pub(super) fn skip(&mut self, tag: Tag) -> Wired<()> {
        let mut groups = 0_usize;
        let mut wire = tag.wire;
        loop {
            match wire {
                Type::Varint => drop(self.number()?),
                Type::Fixed64 => drop(self.take(8)?),
                Type::Bytes => drop(self.piece()?),
                Type::Fixed32 => drop(self.take(4)?),
                Type::StartGroup => groups += 1,
                Type::EndGroup => match groups.checked_sub(1) {
                    Some(left) => groups = left,
                    None => return Err("proto: unexpected end of group".to_owned()),
                },
                Type::Other(number) => return Err(format!("proto: illegal wireType {number}")),
            }
            if groups == 0 {
                return Ok(());
            }
            wire = Type::of(self.number()?);
        }
    }

    /// As [`Self::bytes`], whatever the tag said.
    pub(super) fn piece(&mut self) -> Wired<&'a [u8]> {
        let length = self.number()?;
        if length.cast_signed() < 0 {
            return Err(NEGATIVE.to_owned());
        }
        self.take(usize::try_from(length).unwrap_or(usize::MAX))
    }

    fn take(&mut self, length: usize) -> Wired<&'a [u8]> {
        let (piece, rest) = self.rest.split_at_checked(length).ok_or(ENDS)?;
        self.rest = rest;
        Ok(piece)
    }

    fn number(&mut self) -> Wired<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first().ok_or(ENDS)?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if *byte < 0x80 {
                return Ok(value);
            }
        }
        Err(OVERFLOW.to_owned())
    }
}

#[allow(clippy::cast_possible_truncation, reason = "as Go does")]
fn field_number(tag: u64) -> i32 {
    (tag >> 3) as i32
}
