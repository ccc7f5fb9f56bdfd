//! What stands between `{{` and `}}`.

use std::collections::BTreeSet;
use std::fmt;

use super::Names;
use super::error::TemplateError;
use super::escape::quoted;
use crate::address;

/// A name that has a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Name,
    Namespace,
    Target,
    Service,
    Ingress,
    Route,
    Interval,
}

const WORDS: [(&str, Word); 7] = [
    ("name", Word::Name),
    ("namespace", Word::Namespace),
    ("target", Word::Target),
    ("service", Word::Service),
    ("ingress", Word::Ingress),
    ("route", Word::Route),
    ("interval", Word::Interval),
];

impl Word {
    pub(super) fn find(text: &str) -> Option<Self> {
        let found = WORDS.iter().find(|(name, _)| *name == text);
        found.map(|(_, word)| *word)
    }

    fn as_str(self) -> &'static str {
        let found = WORDS.iter().find(|(_, word)| *word == self);
        found.map_or("", |(name, _)| name)
    }

    fn value(self, names: &Names) -> &str {
        match self {
            Self::Name => &names.name,
            Self::Namespace => &names.namespace,
            Self::Target => &names.target,
            Self::Service => &names.service,
            Self::Ingress => &names.ingress,
            Self::Route => &names.route,
            Self::Interval => &names.interval,
        }
    }
}

/// What is done with values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Print,
    Printf,
    UrlQuery,
    Html,
    Js,
}

const FUNCTIONS: [(&str, Function); 5] = [
    ("print", Function::Print),
    ("printf", Function::Printf),
    ("urlquery", Function::UrlQuery),
    ("html", Function::Html),
    ("js", Function::Js),
];

impl Function {
    pub(super) fn find(text: &str) -> Option<Self> {
        let found = FUNCTIONS.iter().find(|(name, _)| *name == text);
        found.map(|(_, function)| *function)
    }

    /// What is wrong with what it is given, if anything is.
    pub(super) fn complaint(self, given: &[Expression]) -> Option<&'static str> {
        match (self, given) {
            (_, []) => Some("a function is given nothing"),
            (Self::Printf, [Expression::Text(format), rest @ ..]) => match verbs(format) {
                None => Some("printf takes the verbs %s, %v, %q and %% only"),
                Some(count) if count != rest.len() => {
                    Some("printf is given more or fewer values than its format has verbs")
                }
                Some(_) => None,
            },
            (Self::Printf, _) => Some("printf needs a format in quotes first"),
            _ => None,
        }
    }
}

/// How many values a format takes; none if it has other verbs than ours.
fn verbs(format: &str) -> Option<usize> {
    let mut count = 0;
    let mut rest = format.chars();
    while let Some(c) = rest.next() {
        match (c, if c == '%' { rest.next() } else { None }) {
            ('%', Some('s' | 'v' | 'q')) => count += 1,
            ('%', Some('%')) => {}
            ('%', _) => return None,
            _ => {}
        }
    }
    Some(count)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expression {
    Word(Word),
    Variable(String),
    Text(String),
    Call(Function, Vec<Self>),
}

/// As it was written, more or less.
impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => f.write_str(word.as_str()),
            Self::Variable(name) => write!(f, "variables.{name}"),
            Self::Text(_) => f.write_str("a text"),
            Self::Call(_, given) => match given.last() {
                Some(last) => write!(f, "{last}"),
                None => Ok(()),
            },
        }
    }
}

/// What a value looks like already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Like itself.
    Plain,
    /// It is to stand in quotes of its own.
    Quoted,
    /// It is escaped for an address.
    Escaped,
}

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rendered {
    /// Without quotes, if it is to have some.
    pub(super) text: String,
    pub(super) form: Form,
}

impl Rendered {
    fn plain(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            form: Form::Plain,
        }
    }

    /// As it is written, with its quotes.
    pub(super) fn shown(&self) -> String {
        match self.form {
            Form::Plain | Form::Escaped => self.text.clone(),
            Form::Quoted => format!("\"{}\"", quoted(&self.text, '"')),
        }
    }
}

impl Expression {
    pub(super) fn variables<'a>(&'a self, all: &mut BTreeSet<&'a str>) {
        match self {
            Self::Variable(name) => {
                all.insert(name);
            }
            Self::Call(_, given) => given.iter().for_each(|one| one.variables(all)),
            Self::Word(_) | Self::Text(_) => {}
        }
    }

    pub(super) fn evaluate(&self, names: &Names, line: usize) -> Result<Rendered, TemplateError> {
        match self {
            Self::Word(word) => Ok(Rendered::plain(word.value(names))),
            Self::Text(text) => Ok(Rendered::plain(text.as_str())),
            Self::Variable(name) => match names.variables.get(name) {
                Some(value) => Ok(Rendered::plain(value.as_str())),
                None => Err(TemplateError::Unset {
                    line,
                    name: name.clone(),
                }),
            },
            Self::Call(function, given) => {
                let given: Result<Vec<Rendered>, TemplateError> =
                    given.iter().map(|one| one.evaluate(names, line)).collect();
                Ok(apply(*function, &given?))
            }
        }
    }
}

fn apply(function: Function, given: &[Rendered]) -> Rendered {
    let joined = || -> String { given.iter().map(Rendered::shown).collect() };
    match function {
        Function::Print => Rendered::plain(joined()),
        Function::UrlQuery => Rendered {
            text: address::escaped(&joined()),
            form: Form::Escaped,
        },
        Function::Html => Rendered::plain(replaced(&joined(), &HTML)),
        Function::Js => Rendered::plain(replaced(&joined(), &JS)),
        Function::Printf => match given {
            [format, value] if format.text == "%q" => Rendered {
                text: value.shown(),
                form: Form::Quoted,
            },
            [format, values @ ..] => Rendered::plain(formatted(&format.text, values)),
            [] => Rendered::plain(""),
        },
    }
}

fn formatted(format: &str, values: &[Rendered]) -> String {
    let (mut out, mut rest, mut values) = (String::new(), format.chars(), values.iter());
    while let Some(c) = rest.next() {
        let verb = if c == '%' { rest.next() } else { None };
        match (verb, &mut values) {
            (None, _) => out.push(c),
            (Some('%'), _) => out.push('%'),
            (Some('q'), values) => {
                let text = values.next().map(Rendered::shown).unwrap_or_default();
                out = format!("{out}\"{}\"", quoted(&text, '"'));
            }
            (Some(_), values) => out.extend(values.next().map(Rendered::shown)),
        }
    }
    out
}

type Replacements = [(char, &'static str)];

const HTML: [(char, &str); 5] = [
    ('&', "&amp;"),
    ('<', "&lt;"),
    ('>', "&gt;"),
    ('"', "&#34;"),
    ('\'', "&#39;"),
];

const JS: [(char, &str); 7] = [
    ('\\', "\\\\"),
    ('"', "\\\""),
    ('\'', "\\'"),
    ('<', "\\u003C"),
    ('>', "\\u003E"),
    ('&', "\\u0026"),
    ('=', "\\u003D"),
];

fn replaced(text: &str, by: &Replacements) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match by.iter().find(|(from, _)| *from == c) {
            Some((_, to)) => out.push_str(to),
            None => out.push(c),
        }
    }
    out
}
