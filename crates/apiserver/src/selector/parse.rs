//! The grammar of label selectors, with the real parser's complaints.

use super::{Operator, Requirement, key_error};

const BINARY: &str = "in, notin, =, ==, !=, gt, lt";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Error,
    End,
    Close,
    Comma,
    Not,
    DoubleEquals,
    Equals,
    Greater,
    Word,
    In,
    Less,
    NotEquals,
    NotIn,
    Open,
}

/// The requirements in the order in which they stand.
pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>, String> {
    let mut parser = Parser {
        items: lex(text),
        at: 0,
    };
    parser.parse()
}

fn keyword(text: &str) -> Option<Token> {
    Some(match text {
        ")" => Token::Close,
        "," => Token::Comma,
        "!" => Token::Not,
        "==" => Token::DoubleEquals,
        "=" => Token::Equals,
        ">" => Token::Greater,
        "in" => Token::In,
        "<" => Token::Less,
        "!=" => Token::NotEquals,
        "notin" => Token::NotIn,
        "(" => Token::Open,
        _ => return None,
    })
}

fn is_symbol(c: char) -> bool {
    matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

/// A NUL ends the text, as in the real lexer.
fn lex(text: &str) -> Vec<(Token, String)> {
    let mut items = Vec::new();
    let mut rest = text.split('\0').next().unwrap_or_default();
    loop {
        rest = rest.trim_start_matches(is_space);
        let Some(first) = rest.chars().next() else {
            items.push((Token::End, String::new()));
            return items;
        };
        let (item, used) = if is_symbol(first) {
            symbol(rest)
        } else {
            let end = rest
                .find(|c| is_symbol(c) || is_space(c))
                .unwrap_or(rest.len());
            let word = rest.get(..end).unwrap_or_default();
            ((keyword(word).unwrap_or(Token::Word), word.to_owned()), end)
        };
        items.push(item);
        rest = rest.get(used..).unwrap_or_default();
    }
}

/// The longest operator that `rest` begins with. All symbols are one byte, and each is an operator by itself.
fn symbol(rest: &str) -> ((Token, String), usize) {
    for length in [2, 1] {
        let candidate = rest.get(..length).unwrap_or_default();
        if let Some(token) = keyword(candidate).filter(|_| candidate.chars().all(is_symbol)) {
            return ((token, candidate.to_owned()), length);
        }
    }
    ((Token::Error, rest.to_owned()), rest.len())
}

struct Parser {
    items: Vec<(Token, String)>,
    at: usize,
}

impl Parser {
    /// The token here; where values are expected, `in` and `notin` are words.
    fn peek(&self, values: bool) -> (Token, String) {
        match self.items.get(self.at) {
            Some((Token::In | Token::NotIn, text)) if values => (Token::Word, text.clone()),
            Some(item) => item.clone(),
            None => (Token::End, String::new()),
        }
    }

    fn next(&mut self, values: bool) -> (Token, String) {
        let item = self.peek(values);
        self.at += 1;
        item
    }

    fn parse(&mut self) -> Result<Vec<Requirement>, String> {
        let mut found = Vec::new();
        loop {
            match self.peek(true) {
                (Token::Word | Token::Not, _) => {
                    let requirement = self
                        .requirement()
                        .map_err(|why| format!("unable to parse requirement: {why}"))?;
                    found.push(requirement);
                    match self.next(true) {
                        (Token::End, _) => return Ok(found),
                        (Token::Comma, _) => {
                            let (token, text) = self.peek(true);
                            if token != Token::Word && token != Token::Not {
                                return Err(format!(
                                    "found '{text}', expected: identifier after ','"
                                ));
                            }
                        }
                        (_, text) => {
                            return Err(format!(
                                "found '{text}', expected: ',' or 'end of string'"
                            ));
                        }
                    }
                }
                (Token::End, _) => return Ok(found),
                (_, text) => {
                    return Err(format!(
                        "found '{text}', expected: !, identifier, or 'end of string'"
                    ));
                }
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let (mut token, mut key) = self.next(true);
        let negated = token == Token::Not;
        if negated {
            (token, key) = self.next(true);
        }
        if token != Token::Word {
            return Err(format!("found '{key}', expected: identifier"));
        }
        if let Some(error) = key_error("<nil>", &key) {
            return Err(error.to_string());
        }
        if negated {
            return Requirement::new(&key, Operator::DoesNotExist, Vec::new());
        }
        if matches!(self.peek(true).0, Token::End | Token::Comma) {
            return Requirement::new(&key, Operator::Exists, Vec::new());
        }
        let operator = self.operator()?;
        let mut values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => vec![self.exact_value()?],
        };
        values.sort();
        values.dedup();
        Requirement::new(&key, operator, values)
    }

    fn operator(&mut self) -> Result<Operator, String> {
        Ok(match self.next(false) {
            (Token::In, _) => Operator::In,
            (Token::Equals, _) => Operator::Equals,
            (Token::DoubleEquals, _) => Operator::DoubleEquals,
            (Token::Greater, _) => Operator::GreaterThan,
            (Token::Less, _) => Operator::LessThan,
            (Token::NotIn, _) => Operator::NotIn,
            (Token::NotEquals, _) => Operator::NotEquals,
            (_, text) => return Err(format!("found '{text}', expected: {BINARY}")),
        })
    }

    fn values(&mut self) -> Result<Vec<String>, String> {
        let (token, text) = self.next(true);
        if token != Token::Open {
            return Err(format!("found '{text}' expected: '('"));
        }
        match self.peek(true) {
            (Token::Word | Token::Comma, first) => {
                let values = self.value_list()?;
                match self.next(true) {
                    (Token::Close, _) => Ok(values),
                    _ => Err(format!("found '{first}', expected: ')'")),
                }
            }
            (Token::Close, _) => {
                self.next(true);
                Ok(vec![String::new()])
            }
            (_, text) => Err(format!("found '{text}', expected: ',', ')' or identifier")),
        }
    }

    /// Values between commas; nothing between two commas is the empty value.
    fn value_list(&mut self) -> Result<Vec<String>, String> {
        let mut values = Vec::new();
        loop {
            match self.next(true) {
                (Token::Word, value) => {
                    values.push(value);
                    match self.peek(true) {
                        (Token::Comma, _) => {}
                        (Token::Close, _) => return Ok(values),
                        (_, text) => return Err(format!("found '{text}', expected: ',' or ')'")),
                    }
                }
                (Token::Comma, _) => {
                    if values.is_empty() {
                        values.push(String::new());
                    }
                    match self.peek(true).0 {
                        Token::Close => {
                            values.push(String::new());
                            return Ok(values);
                        }
                        Token::Comma => values.push(String::new()),
                        _ => {}
                    }
                }
                (_, text) => return Err(format!("found '{text}', expected: ',', or identifier")),
            }
        }
    }

    fn exact_value(&mut self) -> Result<String, String> {
        if matches!(self.peek(true).0, Token::End | Token::Comma) {
            return Ok(String::new());
        }
        match self.next(true) {
            (Token::Word, value) => Ok(value),
            (_, text) => Err(format!("found '{text}', expected: identifier")),
        }
    }
}
