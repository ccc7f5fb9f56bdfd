//! Templates: whatever a value is, the text around it means what it meant.

use slipway_kernel::address::Url;
use slipway_kernel::question::template::{Names, Place, Template};

use super::{law, told};
use crate::fuzz::generate::damage;
use crate::fuzz::tape::Tape;

const QUERIES: &[&str] = &[
    "sum(rate(a{ns=\"{{ namespace }}\",pod=~'{{ target }}-.*'}[{{ interval }}])) > {{ variables.x }}",
    "a{b=`{{ variables.x }}`} # it's {{ name }}\n + b{c={{ variables.x | printf \"%q\" }}}",
    "{{- name -}} {{ index variables \"x\" }} \"{{ print name \"-\" variables.x }}\"",
];
const DOCUMENTS: &[&str] = &[
    "{\"a\":\"{{ variables.x }}\",\"b\":[{{ variables.x | printf \"%q\" }}],\"c\":{{ variables.x }}}",
    "{\"{{ name }}\":\"{{ variables.x | js }}\"}",
];
const URLS: &[&str] = &["https://a.example/{{ variables.x }}?b={{ variables.x | urlquery }}"];

const TOKENS: &[&str] = &[
    "{{",
    "}}",
    "{{ name }}",
    "{{ variables.x }}",
    "-",
    "|",
    "\"",
    "'",
    "`",
    "\\",
    "#",
    "\n",
    "printf",
    "%q",
    "%s",
    "html",
    "js",
    "urlquery",
    "index",
    "(",
    ")",
    " ",
    "/*",
    "*/",
    "if",
];
const VALUES: &[&str] = &[
    "plain",
    "1",
    "\"",
    "'",
    "`",
    "\\",
    "\"} or vector(1) #",
    "\n",
    "\r\n",
    "\",\"z\":\"",
    "{{ name }}",
    "#",
    "../..",
    "@evil",
    "null",
    "é\u{0}",
    "\u{2028}",
    "%s",
    "\\\"",
];

pub(super) fn templates(bytes: &[u8]) {
    let tape = &mut Tape::new(bytes);
    let (place, wholes) = match tape.below(3) {
        0 => (Place::Query, QUERIES),
        1 => (Place::Json, DOCUMENTS),
        _ => (Place::Url, URLS),
    };
    let mut text = tape.pick(wholes).as_bytes().to_vec();
    damage(tape, &mut text, TOKENS, 4);
    let text = String::from_utf8_lossy(&text).into_owned();
    let value: String = (0..=tape.below(3)).map(|_| tape.pick(VALUES)).collect();
    told(|| format!("{text:?} with {value:?}"));
    let Ok(template) = Template::parse(&text, place) else {
        return;
    };
    let names = |x: &str| Names {
        name: "n".to_owned(),
        namespace: "n".to_owned(),
        target: "n".to_owned(),
        interval: "n".to_owned(),
        variables: [("x".to_owned(), x.to_owned())].into(),
        ..Names::default()
    };
    let (Ok(plain), Ok(hostile)) = (
        template.render(&names("zz")),
        template.render(&names(&value)),
    ) else {
        return;
    };
    law();
    match place {
        Place::Query => assert_eq!(bones(&plain), bones(&hostile), "{plain:?} {hostile:?}"),
        Place::Json => {
            let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
            assert_eq!(
                read(&plain).map(|json| shape(&json)),
                read(&hostile).map(|json| shape(&json)),
                "{plain:?} {hostile:?}"
            );
        }
        Place::Url | Place::Header => {
            if let (Ok(plain), Ok(hostile)) = (Url::parse(&plain), Url::parse(&hostile)) {
                // A value may be one part of a name, and no more.
                let whom = |url: &Url| (url.scheme, url.port, url.host.bare().split('.').count());
                assert_eq!(whom(&plain), whom(&hostile), "{plain} {hostile}");
            }
        }
    }
}

/// What a query means without the texts in quotes and which words there are: a scanner of its own.
fn bones(query: &str) -> String {
    let (mut out, mut rest) = (String::new(), query.chars());
    while let Some(c) = rest.next() {
        match c {
            '"' | '\'' | '`' => {
                out.push_str("text");
                while let Some(inner) = rest.next() {
                    if inner == '\\' && c != '`' {
                        rest.next();
                    } else if inner == c {
                        out.push_str(" end");
                        break;
                    }
                }
            }
            '#' => {
                let _ = rest.by_ref().find(|c| *c == '\n');
                out.push_str("comment");
            }
            c if c.is_ascii_alphanumeric() || "_:.+-".contains(c) => {
                if !out.ends_with('w') {
                    out.push('w');
                }
            }
            c => out.push(c),
        }
    }
    out
}

/// A document without what stands in it.
fn shape(json: &serde_json::Value) -> String {
    use serde_json::Value;
    match json {
        Value::Array(items) => format!(
            "[{}]",
            items.iter().map(shape).collect::<Vec<_>>().join(",")
        ),
        Value::Object(fields) => {
            // Which one comes first depends on what they are called.
            let mut inner: Vec<String> = fields.values().map(shape).collect();
            inner.sort();
            format!("{{{}}}", inner.join(","))
        }
        Value::String(_) => "text".to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) => "word".to_owned(),
    }
}
