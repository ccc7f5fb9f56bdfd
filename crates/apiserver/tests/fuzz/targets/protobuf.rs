//! Bodies in protobuf.

use slipway_apiserver::decode::{self, Media, Target};
use slipway_apiserver::schema::table;

use super::{law, told};
use crate::fuzz::corpus::corpus;
use crate::fuzz::generate::damage;
use crate::fuzz::tape::Tape;
use crate::fuzz::tape::hex;

const MAGIC: &[u8] = b"k8s\0";

/// Fields nobody knows are skipped, messages in other order mean the same, and damage is refused or read as JSON that
/// fits its kind.
pub(super) fn protobuf(bytes: &[u8]) {
    let tape = &mut Tape::new(bytes);
    let good = tape.pick_ref(&corpus().protobuf);
    let wanted = decode::parse(good, Media::Protobuf).unwrap().value;

    let unknown = unknown_field(tape);
    let padded = padded(tape, good, &unknown);
    told(|| format!("{} with {}", hex(&padded), hex(&unknown)));
    assert_eq!(
        decode::parse(&padded, Media::Protobuf).unwrap().value,
        wanted
    );

    let mut body = good.clone();
    damage(
        tape,
        &mut body,
        &[
            "\u{8}", "\n", "\u{12}", "\u{1a}", "\u{0}", "\u{7f}", "\u{b}", "\u{c}",
        ],
        6,
    );
    told(|| hex(&body));
    judge(&body);
    // The same, but for damage in the envelope.
    if !body.starts_with(MAGIC) {
        judge(&[MAGIC, &body].concat());
    }
}

fn judge(body: &[u8]) {
    let Ok(parsed) = decode::parse(body, Media::Protobuf) else {
        return;
    };
    let value = parsed.value;
    let json = value.to_string();
    assert_eq!(
        decode::parse(json.as_bytes(), Media::Json).unwrap().value,
        value
    );
    let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    if !table::knows(group, version, &kind) {
        return;
    }
    let target = Target {
        group,
        version,
        kind: &kind,
    };
    let schema = table::kind(group, version, &kind);
    match decode::builtin(body, Media::Protobuf, &target, &schema) {
        Ok(found) => {
            law();
            let again = decode::builtin(
                found.value.to_string().as_bytes(),
                Media::Json,
                &target,
                &schema,
            );
            assert_eq!(again.unwrap().value, found.value, "read again");
        }
        Err(status) => assert_eq!(status.code, 400, "{}", status.message),
    }
}

/// A field with a number that no message has.
fn unknown_field(tape: &mut Tape<'_>) -> Vec<u8> {
    let number = 2_000 + tape.below(1_000) as u64;
    let mut out = Vec::new();
    match tape.below(5) {
        0 => {
            varint(&mut out, number << 3);
            varint(&mut out, tape.number().unsigned_abs());
        }
        1 => {
            varint(&mut out, number << 3 | 1);
            out.extend([0; 8]);
        }
        2 => {
            let data = tape.bytes(20);
            varint(&mut out, number << 3 | 2);
            varint(&mut out, data.len() as u64);
            out.extend(data);
        }
        3 => {
            varint(&mut out, number << 3 | 5);
            out.extend([1; 4]);
        }
        _ => {
            varint(&mut out, number << 3 | 3);
            varint(&mut out, 8);
            varint(&mut out, 5);
            varint(&mut out, number << 3 | 4);
        }
    }
    out
}

fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

/// The body with an unknown field put in the envelope, or in the object before one of its fields.
fn padded(tape: &mut Tape<'_>, body: &[u8], unknown: &[u8]) -> Vec<u8> {
    let envelope = fields(&body[MAGIC.len()..]).unwrap();
    let mut out = MAGIC.to_vec();
    for (number, whole, inner) in &envelope {
        match inner {
            // The object itself.
            Some(object) if *number == 2 => {
                let parts = fields(object).unwrap();
                let at = tape.below(parts.len() + 1);
                let mut object: Vec<u8> = Vec::new();
                for (i, (_, part, _)) in parts.iter().enumerate() {
                    if i == at {
                        object.extend(unknown);
                    }
                    object.extend(*part);
                }
                if at == parts.len() {
                    object.extend(unknown);
                }
                varint(&mut out, 2 << 3 | 2);
                varint(&mut out, object.len() as u64);
                out.extend(object);
            }
            _ => out.extend(*whole),
        }
    }
    if tape.once_in(2) {
        out.extend(unknown);
    }
    out
}

type Field<'a> = (u64, &'a [u8], Option<&'a [u8]>);

/// The fields of a message: number, all of it, and what is in it if that has a length.
fn fields(mut bytes: &[u8]) -> Option<Vec<Field<'_>>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let start = bytes;
        let tag = take_varint(&mut bytes)?;
        let mut inner = None;
        match tag & 7 {
            0 => drop(take_varint(&mut bytes)?),
            1 => bytes = bytes.get(8..)?,
            2 => {
                let length = usize::try_from(take_varint(&mut bytes)?).ok()?;
                inner = Some(bytes.get(..length)?);
                bytes = bytes.get(length..)?;
            }
            5 => bytes = bytes.get(4..)?,
            _ => return None,
        }
        found.push((tag >> 3, &start[..start.len() - bytes.len()], inner));
    }
    Some(found)
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}
