//! The version in a body in protobuf: the sixth field of the metadata, which is the first field of the object, which is
//! the second field of the envelope.

const MAGIC: &[u8] = b"k8s\0";
const OBJECT: u64 = 2;
const METADATA: u64 = 1;
const VERSION: u64 = 6;

/// The version that a body names.
pub(crate) fn version(body: &[u8]) -> Option<String> {
    let mut found = None;
    with_version(body, |version| {
        found = Some(version.to_owned());
        version.to_owned()
    });
    found
}

/// The body with another version; one that is not understood stays as it is.
pub(crate) fn with_version(body: &[u8], mut exchange: impl FnMut(&str) -> String) -> Vec<u8> {
    let Some(envelope) = body.strip_prefix(MAGIC) else {
        return body.to_vec();
    };
    let changed = within(envelope, OBJECT, &mut |object| {
        within(object, METADATA, &mut |metadata| {
            within(metadata, VERSION, &mut |version| {
                Some(exchange(std::str::from_utf8(version).ok()?).into_bytes())
            })
        })
    });
    changed.map_or_else(|| body.to_vec(), |changed| [MAGIC, &changed].concat())
}

/// A message with one of its fields changed.
fn within(
    message: &[u8],
    field: u64,
    change: &mut dyn FnMut(&[u8]) -> Option<Vec<u8>>,
) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(message.len());
    let mut rest = message;
    while !rest.is_empty() {
        let (tag, after) = number(rest)?;
        put(&mut out, tag);
        match tag & 7 {
            0 => {
                let (value, after) = number(after)?;
                put(&mut out, value);
                rest = after;
            }
            2 => {
                let (length, after) = number(after)?;
                let (bytes, after) = after.split_at_checked(usize::try_from(length).ok()?)?;
                let bytes = if tag >> 3 == field {
                    change(bytes)?
                } else {
                    bytes.to_vec()
                };
                put(&mut out, u64::try_from(bytes.len()).ok()?);
                out.extend(bytes);
                rest = after;
            }
            kind => {
                let (bytes, after) = after.split_at_checked(if kind == 1 { 8 } else { 4 })?;
                out.extend_from_slice(bytes);
                rest = after;
            }
        }
    }
    Some(out)
}

fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0_u64;
    for (index, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((value, bytes.get(index + 1..)?));
        }
    }
    None
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let byte = u8::try_from(value & 0x7f).unwrap_or_default();
        value >>= 7;
        if value == 0 {
            out.push(byte);
            return;
        }
        out.push(byte | 0x80);
    }
}
