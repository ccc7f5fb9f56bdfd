//! The shape of a line: `I` for each name, `L` for each value, keywords and signs as they are.

const NAME: &str = "I";
const VALUE: &str = "L";

const KEYWORDS: &[&str] = &[
    "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum", "extern",
    "false", "fn", "for", "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub",
    "ref", "return", "Self", "static", "struct", "super", "trait", "true", "type", "unsafe", "use",
    "where", "while",
];

/// What declarations begin with.
const HEADS: &[&str] = &[
    "fn", "async", "struct", "enum", "trait", "impl", "const", "type", "static",
];

pub(super) fn is_word(token: &str) -> bool {
    token == NAME || token == VALUE || KEYWORDS.contains(&token)
}

/// The tokens of a line. A path (`a::b::c`) is one name.
pub(super) fn tokens(line: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let (token, length) = match first {
            '"' => (VALUE, string(rest)),
            '\'' => character(rest).map_or(("'", 1), |length| (VALUE, length)),
            c if c.is_ascii_digit() => (VALUE, word(rest)),
            c if c.is_alphabetic() || c == '_' => {
                let length = word(rest);
                let text = &rest[..length];
                let keyword = KEYWORDS.iter().find(|keyword| **keyword == text);
                (keyword.copied().unwrap_or(NAME), length)
            }
            c => (&rest[..c.len_utf8()], c.len_utf8()),
        };
        let is_path = token == NAME && all.ends_with(&[NAME, ":", ":"].map(str::to_owned));
        if is_path {
            all.truncate(all.len() - 2);
        } else if !token.trim().is_empty() {
            all.push(token.to_owned());
        }
        rest = &rest[length..];
    }
    all
}

/// How long the word is that a text begins with.
fn word(text: &str) -> usize {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    end.unwrap_or(text.len())
}

/// How long the string is that a text begins with; to the end of the line, if it goes on there.
fn string(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !is_escaped => return at + 1,
            '\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    text.len()
}

/// How long the character is that a text begins with; none if it is a lifetime.
fn character(text: &str) -> Option<usize> {
    let mut inside = text.char_indices().skip(1);
    let (_, first) = inside.next()?;
    let mut inside = inside.skip(usize::from(first == '\\'));
    if first == '\\' {
        return inside.find(|(_, c)| *c == '\'').map(|(at, _)| at + 1);
    }
    let (at, closing) = inside.next()?;
    (closing == '\'').then_some(at + 1)
}

/// Whether a line is a field, an argument, a variant, a signature or the head of a type.
pub(super) fn is_declaration(tokens: &[String]) -> bool {
    let mut line: Vec<&str> = tokens.iter().map(String::as_str).collect();
    if line.first() == Some(&"pub") {
        line.remove(0);
        if line.first() == Some(&"(") {
            line.drain(..line.len().min(3));
        }
    }
    let is_head = line
        .first()
        .is_some_and(|first| HEADS.contains(first) || *first == ")");
    let is_argument = matches!(
        line.as_slice(),
        [NAME, ","] | ["&", NAME, ","] | ["&", "mut", NAME, ","]
    );
    let is_field = line.starts_with(&[NAME, ":"]) && line.ends_with(&[","]) && !line.contains(&"(");
    is_head || is_argument || is_field
}

#[test]
fn lines_of_one_shape_have_the_same_tokens() {
    let shape = |line: &str| tokens(line).join(" ");
    assert_eq!(
        shape("let a = b::c(\"x\\\"y\", 'z', 1_000);"),
        "let I = I ( L , L , L ) ;"
    );
    assert_eq!(
        shape("let a = b::c(\"\", '\\n', 2);"),
        "let I = I ( L , L , L ) ;"
    );
    assert_eq!(shape("fn a<'b>(&self)"), "fn I < ' I > ( & I )");
    for (line, is_it) in [
        ("pub(crate) name: Option<String>,", true),
        ("name,", true),
        ("fn of(&self) -> Self {", true),
        (") -> Result<(), Error> {", true),
        ("name: name.clone(),", false),
        ("let name = other.name();", false),
    ] {
        assert_eq!(is_declaration(&tokens(line)), is_it, "{line}");
    }
}
