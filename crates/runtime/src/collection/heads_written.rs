//! Protobuf, written: what tests of the reader of heads hand to it.

/// A number as protobuf writes it.
pub(crate) fn varint(mut value: usize) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let [low, ..] = value.to_le_bytes();
        value >>= 7;
        if value == 0 {
            all.push(low & 0x7f);
            return all;
        }
        all.push(low | 0x80);
    }
}

/// A field with bytes in it.
pub(crate) fn field(number: usize, bytes: &[u8]) -> Vec<u8> {
    let (key, length) = (varint(number << 3 | 2), varint(bytes.len()));
    [key.as_slice(), &length, bytes].concat()
}

/// An answer with this list, as something of this kind.
pub(crate) fn answer(kind: &str, list: &[u8]) -> Vec<u8> {
    let said = [field(1, b"meta.k8s.io/v1"), field(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), field(1, &said), field(2, list)].concat()
}
