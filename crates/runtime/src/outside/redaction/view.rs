//! A text as one of the notations has it in which programs write texts into others.

use std::borrow::Cow;

/// How many bytes one byte may become: `&#x000026;`, with few more zeros than anybody writes.
pub(super) const LONGEST_ESCAPE: usize = 10;

/// What a text means in one notation, and from where each byte of it comes.
pub(super) struct View<'a> {
    pub(super) bytes: Cow<'a, [u8]>,
    /// Where in the text each byte begins, and where the text ends; none if it is the text itself.
    from: Option<Vec<usize>>,
}

impl View<'_> {
    /// Where in the text a part of the view is.
    pub(super) fn place(&self, from: usize, to: usize) -> (usize, usize) {
        let Some(places) = &self.from else {
            return (from, to);
        };
        let start = places.get(from).copied().unwrap_or(0);
        let last = places.get(to.saturating_sub(1)).copied().unwrap_or(start);
        // Several bytes may come from one escape, which goes as a whole.
        let later = places.get(to..).unwrap_or_default();
        let end = later.iter().find(|place| **place > last);
        (start, end.copied().unwrap_or(start))
    }
}

/// One escape at the beginning of a text: what it means, and how long it is.
type Escape = fn(&[u8]) -> Option<(Meaning, usize)>;

/// Up to four bytes.
struct Meaning([u8; 4], usize);

impl Meaning {
    fn byte(byte: u8) -> Self {
        Self([byte, 0, 0, 0], 1)
    }

    fn character(c: char) -> Self {
        let mut bytes = [0; 4];
        let length = c.encode_utf8(&mut bytes).len();
        Self(bytes, length)
    }
}

/// The text itself, and what it means in each notation in which it would mean something else.
pub(super) fn views(text: &[u8]) -> Vec<View<'_>> {
    let mut all = vec![View {
        bytes: Cow::Borrowed(text),
        from: None,
    }];
    let notations: [(&[u8], Escape); 4] = [
        (b"%", percent),
        (b"+", form),
        (b"\\", backslash),
        (b"&", entity),
    ];
    for (signs, escape) in notations {
        if text.iter().any(|byte| signs.contains(byte)) {
            all.push(read(text, escape));
        }
    }
    all
}

fn read(text: &[u8], escape: Escape) -> View<'static> {
    let (mut bytes, mut from) = (Vec::with_capacity(text.len()), Vec::new());
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let plain = || {
            let byte = rest.first().copied().unwrap_or(0);
            (Meaning::byte(byte), 1)
        };
        let (Meaning(meant, count), length) = escape(rest).unwrap_or_else(plain);
        bytes.extend(meant.into_iter().take(count));
        from.extend(std::iter::repeat_n(at, count));
        at += length.max(1);
    }
    from.push(text.len());
    View {
        bytes: Cow::Owned(bytes),
        from: Some(from),
    }
}

/// A number in hexadecimal digits, all of them.
fn hexadecimal(digits: Option<&[u8]>) -> Option<u32> {
    let text = std::str::from_utf8(digits?).ok()?;
    let is_digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
    u32::from_str_radix(text, 16).ok().filter(|_| is_digits)
}

/// `%2F` and `%2f`, whatever is escaped and what is not.
fn percent(text: &[u8]) -> Option<(Meaning, usize)> {
    if text.first() != Some(&b'%') {
        return None;
    }
    let byte = hexadecimal(text.get(1..3))?;
    Some((Meaning::byte(u8::try_from(byte).ok()?), 3))
}

/// The same where a space is `+`.
fn form(text: &[u8]) -> Option<(Meaning, usize)> {
    if text.first() == Some(&b'+') {
        return Some((Meaning::byte(b' '), 1));
    }
    percent(text)
}

/// What JSON, JavaScript and Go put behind a backslash: `\"`, `\/`, `\n`, `\u0026`, `\x26`.
fn backslash(text: &[u8]) -> Option<(Meaning, usize)> {
    let [b'\\', kind, ..] = text else {
        return None;
    };
    let byte = |byte: u8| Some((Meaning::byte(byte), 2));
    match kind {
        b'n' => byte(b'\n'),
        b'r' => byte(b'\r'),
        b't' => byte(b'\t'),
        b'b' => byte(8),
        b'f' => byte(12),
        b'"' | b'\\' | b'/' | b'\'' | b'`' => byte(*kind),
        b'x' => {
            let code = hexadecimal(text.get(2..4))?;
            Some((Meaning::character(char::from_u32(code)?), 4))
        }
        b'u' => unicode(text),
        _ => None,
    }
}

/// `\u00e9`, and pairs of these for what is further away.
fn unicode(text: &[u8]) -> Option<(Meaning, usize)> {
    let unit = |at: usize| hexadecimal(text.get(at + 2..at + 6));
    let first = unit(0)?;
    if let Some(c) = char::from_u32(first) {
        return Some((Meaning::character(c), 6));
    }
    let is_pair = text.get(6..8) == Some(b"\\u");
    let second = unit(6).filter(|_| is_pair)?;
    let high = first.checked_sub(0xd800)?;
    let low = second.checked_sub(0xdc00)?;
    let c = char::from_u32(0x1_0000 + (high << 10) + low)?;
    Some((Meaning::character(c), 12))
}

/// `&amp;` and the few like it, `&#38;` and `&#x26;`.
fn entity(text: &[u8]) -> Option<(Meaning, usize)> {
    if text.first() != Some(&b'&') {
        return None;
    }
    let near = text.get(..LONGEST_ESCAPE).unwrap_or(text);
    let end = near.iter().position(|byte| *byte == b';')?;
    let name = near.get(1..end)?;
    let c = match name {
        b"amp" => '&',
        b"lt" => '<',
        b"gt" => '>',
        b"quot" => '"',
        b"apos" => '\'',
        [b'#', b'x' | b'X', digits @ ..] => char::from_u32(hexadecimal(Some(digits))?)?,
        [b'#', digits @ ..] => {
            let text = std::str::from_utf8(digits).ok()?;
            char::from_u32(text.parse().ok()?)?
        }
        _ => return None,
    };
    Some((Meaning::character(c), end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_view_is_a_part_of_the_text() {
        for (text, meant, part, whole) in [
            ("ab%26cd", "ab&cd", "b&c", "b%26c"),
            ("ab%2e", "ab.", ".", "%2e"),
            ("a+b%3D", "a b=", " b=", "+b%3D"),
            (r"x\u0026\/y", "x&/y", "&/", r"\u0026\/"),
            (r"x\ud83d\ude00y", "x😀y", "😀", r"\ud83d\ude00"),
            (r"x\x26y", "x&y", "&y", r"\x26y"),
            // Half of a pair is nothing, and what follows is itself.
            (r"\ud800\u0026", r"\ud800&", "&", r"\u0026"),
            ("x&amp;&#60;&#x3E;y", "x&<>y", "&<>", "&amp;&#60;&#x3E;"),
            ("%zz %2", "%zz %2", "z %", "z %"),
        ] {
            let all = views(text.as_bytes());
            let view = all.iter().find(|view| *view.bytes == *meant.as_bytes());
            let view = view.unwrap_or_else(|| panic!("{text} never means {meant}"));
            let from = meant.find(part).unwrap();
            let (start, end) = view.place(from, from + part.len());
            assert_eq!(&text[start..end], whole, "{text}");
        }
    }

    #[test]
    fn what_is_no_escape_is_itself() {
        for text in [
            r"\",
            r"\u12",
            r"\ud800",
            "&",
            "&;",
            "&nothing;",
            "%",
            "&#99999999;",
        ] {
            for view in views(text.as_bytes()) {
                assert_eq!(*view.bytes, *text.as_bytes(), "{text}");
            }
        }
    }
}
