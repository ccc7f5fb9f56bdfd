//! Reads templates.

use super::error::TemplateError;
use super::expression::{Expression, Function, Word};
use super::scan::Scan;
use super::{Piece, Place};

/// The longest template.
const LONGEST: usize = 16 * 1024;
/// How many values it may have.
const MOST: usize = 256;

/// Words of Go's templates that do more than fill in a name.
const UNSUPPORTED: [&str; 20] = [
    "if", "else", "end", "range", "with", "define", "template", "block", "break", "continue",
    "and", "or", "not", "eq", "ne", "lt", "gt", "len", "slice", "call",
];

/// The pieces of a template, each value with what is around it.
pub(super) fn pieces(text: &str, place: Place) -> Result<Vec<Piece>, TemplateError> {
    if text.len() > LONGEST {
        return Err(TemplateError::TooLong(LONGEST));
    }
    let mut scan = Scan::new(place);
    let (mut pieces, mut rest, mut line) = (Vec::new(), text, 1);
    let mut is_trimming = false;
    let literal = |text: &str, pieces: &mut Vec<Piece>, scan: &mut Scan| {
        scan.read(text);
        if !text.is_empty() {
            pieces.push(Piece::Literal(text.to_owned()));
        }
    };
    while let Some((before, after)) = rest.split_once("{{") {
        line += lines(before);
        let end = end_of(after).ok_or(TemplateError::Unclosed { line })?;
        let (inner, after) = (after.get(..end), after.get(end + 2..));
        let (Some(inner), Some(after)) = (inner, after) else {
            return Err(TemplateError::Unclosed { line });
        };
        let (trims_before, inner) = match inner.strip_prefix("- ") {
            Some(inner) => (true, inner),
            None => (false, inner),
        };
        let before = if is_trimming {
            before.trim_start()
        } else {
            before
        };
        literal(
            if trims_before {
                before.trim_end()
            } else {
                before
            },
            &mut pieces,
            &mut scan,
        );
        let (trims_after, body) = match inner.strip_suffix(" -") {
            Some(body) => (true, body),
            None => (false, inner),
        };
        if !is_comment(body) {
            if scan.is_escaped() {
                let what = "there is a backslash right before {{";
                return Err(TemplateError::Syntax { line, what });
            }
            pieces.push(Piece::Value {
                expression: expression(body, line)?,
                within: scan.within(),
                line,
            });
        }
        if pieces.len() > 2 * MOST {
            return Err(TemplateError::TooLong(LONGEST));
        }
        line += lines(inner);
        (rest, is_trimming) = (after, trims_after);
    }
    literal(
        if is_trimming { rest.trim_start() } else { rest },
        &mut pieces,
        &mut scan,
    );
    Ok(pieces)
}

fn lines(text: &str) -> usize {
    text.bytes().filter(|b| *b == b'\n').count()
}

fn is_comment(body: &str) -> bool {
    let body = body.trim();
    body.starts_with("/*") && body.ends_with("*/")
}

/// Where `}}` is, which may also stand in quotes.
fn end_of(text: &str) -> Option<usize> {
    let (mut quote, mut is_escaped) = (None, false);
    for (at, c) in text.char_indices() {
        match quote {
            _ if is_escaped => is_escaped = false,
            Some('"') if c == '\\' => is_escaped = true,
            Some(open) if c == open => quote = None,
            None if matches!(c, '"' | '`') => quote = Some(c),
            None if text.get(at..).is_some_and(|rest| rest.starts_with("}}")) => return Some(at),
            _ => {}
        }
    }
    None
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Pipe,
    Text(String),
    Word(String),
}

fn expression(body: &str, line: usize) -> Result<Expression, TemplateError> {
    let tokens = tokens(body, line)?;
    if tokens.is_empty() {
        return Err(TemplateError::Empty { line });
    }
    let mut piped = None;
    for command in tokens.split(|token| *token == Token::Pipe) {
        piped = Some(self::command(command, piped, line)?);
    }
    piped.ok_or(TemplateError::Empty { line })
}

/// One command of a pipe; what comes out of the one before is its last value.
fn command(
    tokens: &[Token],
    piped: Option<Expression>,
    line: usize,
) -> Result<Expression, TemplateError> {
    let syntax = |what| TemplateError::Syntax { line, what };
    let Some((first, rest)) = tokens.split_first() else {
        return Err(syntax("there is nothing before or after a pipe (|)"));
    };
    if let Token::Word(word) = first {
        if let Some(function) = Function::find(word) {
            let given: Result<Vec<_>, _> = rest.iter().map(|one| operand(one, line)).collect();
            let mut given = given?;
            given.extend(piped);
            return match function.complaint(&given) {
                Some(what) => Err(syntax(what)),
                None => Ok(Expression::Call(function, given)),
            };
        }
        if word == "index" {
            return match (rest, piped) {
                ([Token::Word(of), Token::Text(name)], None) if of == "variables" => {
                    Ok(Expression::Variable(name.clone()))
                }
                _ => Err(syntax("index is written as index variables \"NAME\"")),
            };
        }
    }
    match (rest, piped) {
        ([], None) => operand(first, line),
        ([], Some(_)) => {
            operand(first, line)?;
            Err(syntax("there is no function after a pipe (|)"))
        }
        _ => {
            operand(first, line)?;
            Err(syntax("there are two values without a function"))
        }
    }
}

fn operand(token: &Token, line: usize) -> Result<Expression, TemplateError> {
    match token {
        Token::Text(text) => Ok(Expression::Text(text.clone())),
        Token::Pipe => Err(TemplateError::Empty { line }),
        Token::Word(word) => {
            if let Some(word) = Word::find(word) {
                return Ok(Expression::Word(word));
            }
            let variable = word.strip_prefix("variables.");
            if let Some(name) = variable.filter(|name| is_identifier(name)) {
                return Ok(Expression::Variable(name.to_owned()));
            }
            let word = word.clone();
            if UNSUPPORTED.contains(&word.as_str()) || word.starts_with('$') {
                return Err(TemplateError::Unsupported { line, word });
            }
            Err(TemplateError::Unknown { line, word })
        }
    }
}

fn is_identifier(name: &str) -> bool {
    !name.is_empty()
        && name.chars().all(|c| c.is_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_numeric())
}

fn tokens(body: &str, line: usize) -> Result<Vec<Token>, TemplateError> {
    let syntax = |what| TemplateError::Syntax { line, what };
    let (mut tokens, mut rest) = (Vec::new(), body.trim());
    while let Some(first) = rest.chars().next() {
        let (token, length) = match first {
            '|' => (Token::Pipe, 1),
            '"' => {
                let (text, length) =
                    interpreted(rest).ok_or_else(|| syntax("a text in quotes is not right"))?;
                (Token::Text(text), length)
            }
            '`' => {
                let inner = rest.get(1..).unwrap_or_default();
                let end = inner
                    .find('`')
                    .ok_or_else(|| syntax("a text in backticks has no end"))?;
                let text = inner.get(..end).unwrap_or_default().to_owned();
                (Token::Text(text), end + 2)
            }
            '(' | ')' | '{' | '}' | ',' | '\'' => {
                return Err(syntax(
                    "there may be names, texts in quotes and pipes (|), nothing else",
                ));
            }
            _ => {
                let is_end = |c: char| c.is_whitespace() || "|\"`(){},'".contains(c);
                let end = rest.find(is_end).unwrap_or(rest.len());
                (
                    Token::Word(rest.get(..end).unwrap_or_default().to_owned()),
                    end,
                )
            }
        };
        tokens.push(token);
        rest = rest.get(length..).unwrap_or_default().trim_start();
    }
    Ok(tokens)
}

/// A text in quotes as Go reads it, with the few escapes that people use, and how long it is.
fn interpreted(text: &str) -> Option<(String, usize)> {
    let mut out = String::new();
    let mut characters = text.char_indices().skip(1);
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return Some((out, at + 1)),
            '\\' => out.push(match characters.next()?.1 {
                'n' => '\n',
                't' => '\t',
                same @ ('\\' | '"') => same,
                _ => return None,
            }),
            '\n' => return None,
            c => out.push(c),
        }
    }
    None
}
