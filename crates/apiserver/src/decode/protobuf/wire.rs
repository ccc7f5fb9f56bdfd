//! The wire format of protobuf: numbered entries, each of one of four shapes.

/// What an entry holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Payload<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes(&'a [u8]),
}

/// One entry of a message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Entry<'a> {
    pub(super) number: u32,
    pub(super) payload: Payload<'a>,
}

/// The entries of a message, in order; it ends with the first that cannot be read.
pub(super) struct Wire<'a> {
    rest: &'a [u8],
}

impl<'a> Wire<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn entry(&mut self) -> Result<Entry<'a>, String> {
        let tag = varint(&mut self.rest)?;
        let number = u32::try_from(tag >> 3).unwrap_or_default();
        if number == 0 {
            return Err(format!("proto: illegal tag {} (wire type {})", tag >> 3, tag & 7));
        }
        let payload = match tag & 7 {
            0 => Payload::Varint(varint(&mut self.rest)?),
            1 => Payload::Fixed64(u64::from_le_bytes(fixed(&mut self.rest)?)),
            2 => {
                let length = usize::try_from(varint(&mut self.rest)?).unwrap_or(usize::MAX);
                let (bytes, rest) = self.rest.split_at_checked(length).ok_or("unexpected EOF")?;
                self.rest = rest;
                Payload::Bytes(bytes)
            }
            5 => Payload::Fixed32(u32::from_le_bytes(fixed(&mut self.rest)?)),
            other => return Err(format!("proto: illegal wireType {other}")),
        };
        Ok(Entry { number, payload })
    }
}

impl<'a> Iterator for Wire<'a> {
    type Item = Result<Entry<'a>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let entry = self.entry();
        if entry.is_err() {
            self.rest = &[];
        }
        Some(entry)
    }
}

/// The numbers in a packed list.
pub(super) fn packed(mut bytes: &[u8]) -> impl Iterator<Item = Result<u64, String>> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let number = varint(&mut bytes);
        if number.is_err() {
            bytes = &[];
        }
        Some(number)
    })
}

fn varint(rest: &mut &[u8]) -> Result<u64, String> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, left) = rest.split_first().ok_or("unexpected EOF")?;
        *rest = left;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err("proto: integer overflow".to_owned())
}

fn fixed<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], String> {
    let (bytes, left) = rest.split_first_chunk().ok_or("unexpected EOF")?;
    *rest = left;
    Ok(*bytes)
}
