//! The tokens of JSON, with the errors that Go's scanner gives.

/// A position in a text.
pub(super) struct Scanner<'a> {
    body: &'a [u8],
    at: usize,
}

type Scan<T> = Result<T, String>;

const END: &str = "unexpected end of JSON input";

impl<'a> Scanner<'a> {
    pub(super) fn new(body: &'a [u8]) -> Self {
        Self { body, at: 0 }
    }

    /// How many bytes have been read.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    fn peek(&self) -> Option<u8> {
        self.body.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
    }

    /// The error for the byte that comes next, or for the end of the text.
    fn wrong<T>(&self, context: &str) -> Scan<T> {
        Err(match self.peek() {
            Some(byte) => format!("invalid character {} {context}", quote(byte)),
            None => END.to_owned(),
        })
    }

    /// The first byte of a value, which is not consumed.
    pub(super) fn first(&mut self) -> Scan<u8> {
        self.skip_space();
        match self.peek() {
            Some(byte @ (b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n')) => Ok(byte),
            _ => self.wrong("looking for beginning of value"),
        }
    }

    /// Consumes the bracket that opens an object or list.
    pub(super) fn open(&mut self, depth: usize, most: usize) -> Scan<()> {
        if depth > most {
            return self.wrong("exceeded max depth");
        }
        self.at += 1;
        Ok(())
    }

    /// Whether the container closes at once; consumes the bracket if so.
    pub(super) fn closes(&mut self, close: u8) -> Scan<bool> {
        self.skip_space();
        match self.peek() {
            Some(byte) if byte == close => {
                self.at += 1;
                Ok(true)
            }
            Some(_) => Ok(false),
            None => Err(END.to_owned()),
        }
    }

    /// After a value in a container: true if another follows a comma, false if `close` was found.
    pub(super) fn more(&mut self, close: u8, context: &str) -> Scan<bool> {
        self.skip_space();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            Some(byte) if byte == close => {
                self.at += 1;
                Ok(false)
            }
            _ => self.wrong(context),
        }
    }

    /// A key and the colon after it.
    pub(super) fn key(&mut self) -> Scan<String> {
        self.skip_space();
        if self.peek() != Some(b'"') {
            return self.wrong("looking for beginning of object key string");
        }
        let key = self.string()?;
        self.skip_space();
        if self.peek() != Some(b':') {
            return self.wrong("after object key");
        }
        self.at += 1;
        Ok(key)
    }

    /// Only space may follow.
    pub(super) fn end(&mut self) -> Scan<()> {
        self.skip_space();
        match self.peek() {
            None => Ok(()),
            Some(_) => self.wrong("after top-level value"),
        }
    }

    /// Consumes `true`, `false` or `null`, whose first letter is known to be there.
    pub(super) fn word(&mut self, word: &[u8]) -> Scan<()> {
        for &expected in word {
            if self.peek() != Some(expected) {
                return self.wrong(&format!(
                    "in literal {} (expecting '{}')",
                    String::from_utf8_lossy(word),
                    char::from(expected)
                ));
            }
            self.at += 1;
        }
        Ok(())
    }

    /// The text of a number.
    pub(super) fn number(&mut self) -> Scan<&'a str> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return self.wrong("in numeric literal"),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if !self.peek().is_some_and(|b| b.is_ascii_digit()) {
                return self.wrong("after decimal point in numeric literal");
            }
            self.digits();
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            if !self.peek().is_some_and(|b| b.is_ascii_digit()) {
                return self.wrong("in exponent of numeric literal");
            }
            self.digits();
        }
        let bytes = self.body.get(start..self.at).unwrap_or_default();
        Ok(std::str::from_utf8(bytes).unwrap_or_default())
    }

    fn digits(&mut self) {
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
    }

    /// A string, with its quotes. Bytes that are no UTF-8 and halves of surrogate pairs become U+FFFD.
    pub(super) fn string(&mut self) -> Scan<String> {
        self.at += 1;
        let mut out = Vec::new();
        loop {
            let start = self.at;
            while self
                .peek()
                .is_some_and(|b| b != b'"' && b != b'\\' && b >= 0x20)
            {
                self.at += 1;
            }
            push_utf8(&mut out, self.body.get(start..self.at).unwrap_or_default());
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(String::from_utf8(out).unwrap_or_default());
                }
                Some(b'\\') => {
                    let mut buffer = [0; 4];
                    let c = self.escape()?;
                    out.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes());
                }
                _ => return self.wrong("in string literal"),
            }
        }
    }

    fn escape(&mut self) -> Scan<char> {
        self.at += 1;
        let c = match self.peek() {
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(byte @ (b'\\' | b'/' | b'"')) => char::from(byte),
            Some(b'u') => {
                self.at += 1;
                return self.unicode();
            }
            _ => return self.wrong("in string escape code"),
        };
        self.at += 1;
        Ok(c)
    }

    fn unicode(&mut self) -> Scan<char> {
        let first = self.hex()?;
        if let Some(c) = char::from_u32(first) {
            return Ok(c);
        }
        let before = self.at;
        if first < 0xdc00 && self.body.get(self.at..self.at + 2) == Some(b"\\u") {
            self.at += 2;
            let second = self.hex()?;
            if (0xdc00..0xe000).contains(&second) {
                let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or('\u{fffd}'));
            }
            self.at = before;
        }
        Ok('\u{fffd}')
    }

    fn hex(&mut self) -> Scan<u32> {
        let mut code = 0;
        for _ in 0..4 {
            let Some(digit) = self.peek().and_then(|b| char::from(b).to_digit(16)) else {
                return self.wrong("in \\u hexadecimal character escape");
            };
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }
}

/// Appends `bytes`; each byte that is not part of a character becomes U+FFFD, as in Go.
fn push_utf8(out: &mut Vec<u8>, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        out.extend_from_slice(chunk.valid().as_bytes());
        for _ in chunk.invalid() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
}

/// A byte as Go's messages quote it.
fn quote(byte: u8) -> String {
    match byte {
        b'\'' => "'\\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        // Go takes the byte for the character of that number.
        _ => {
            let quoted = crate::field::quote(&char::from(byte).to_string());
            let inner = quoted
                .strip_prefix('"')
                .and_then(|q| q.strip_suffix('"'))
                .unwrap_or_default();
            format!("'{inner}'")
        }
    }
}
