//! Paths to fields of a schema (`.spec.replicas`, `.spec.labels['a.b']`), as `fieldPath` and `selectableFields` use
//! them.

use super::structural::Structural;

/// Where a path leads.
#[derive(Debug)]
pub struct Resolved<'a> {
    /// The path as errors show it, without a leading dot.
    pub path: String,
    /// The first field of the path.
    pub first: String,
    /// The schema there.
    pub schema: &'a Structural,
}

/// Follows a path through a schema; the error is the API's text. `brackets` allows `['key']`.
pub fn resolve<'a>(
    path: &str,
    schema: &'a Structural,
    brackets: bool,
) -> Result<Resolved<'a>, String> {
    let mut found = Resolved {
        path: String::new(),
        first: String::new(),
        schema,
    };
    let mut tokens = tokens(path).into_iter();
    let end = || "unexpected end of JSON path".to_owned();
    while let Some(token) = tokens.next() {
        match token {
            "[" => {
                if !brackets {
                    return Err("array notation is not allowed".to_owned());
                }
                let quoted = tokens.next().ok_or_else(end)?;
                let inner = quoted
                    .strip_prefix('\'')
                    .and_then(|t| t.strip_suffix('\''))
                    .ok_or_else(|| format!("expected single quoted string but got {quoted}"))?;
                step(&mut found, &unescape(inner)?)?;
                match tokens.next().ok_or_else(end)? {
                    "]" => {}
                    other => return Err(format!("expected ] but got {other}")),
                }
            }
            "." => {
                let name = tokens.next().ok_or_else(end)?;
                step(&mut found, name)?;
            }
            other => return Err(format!("expected [ or . but got: {other}")),
        }
    }
    Ok(found)
}

fn step(found: &mut Resolved<'_>, name: &str) -> Result<(), String> {
    let unknown = || "does not refer to a valid field".to_owned();
    if found.first.is_empty() {
        name.clone_into(&mut found.first);
    }
    if found.schema.properties.is_empty() {
        found.schema = found.schema.values().ok_or_else(unknown)?;
        found.path.extend(["[", name, "]"]);
    } else {
        found.schema = found.schema.property(name).ok_or_else(unknown)?;
        if !found.path.is_empty() {
            found.path.push('.');
        }
        found.path.push_str(name);
    }
    Ok(())
}

/// Splits at `.`, `[` and `]`, which are tokens themselves, but not inside quotes.
fn tokens(path: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let end = if rest.starts_with('\'') {
            let bytes = rest.as_bytes();
            (1..bytes.len())
                .find(|&i| bytes.get(i) == Some(&b'\'') && bytes.get(i - 1) != Some(&b'\\'))
                .map_or(rest.len(), |i| i + 1)
        } else {
            match rest.find(['.', '[', ']']) {
                Some(0) => 1,
                Some(at) => at,
                None => rest.len(),
            }
        };
        let (token, tail) = rest.split_at(end);
        found.push(token);
        rest = tail;
    }
    found
}

fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('a') => out.push('\u{7}'),
            Some('b') => out.push('\u{8}'),
            Some('f') => out.push('\u{c}'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('v') => out.push('\u{b}'),
            Some(same @ ('\'' | '\\')) => out.push(same),
            Some(other) => {
                return Err(format!(
                    "invalid string literal: invalid escape char \\{other}"
                ));
            }
            None => out.push('\\'),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_are_followed_or_refused_in_the_words_of_the_server() {
        let schema = Structural::read(
            &json!({"type":"object","properties":{"spec":{"type":"object","properties":{
            "a":{"type":"string"},"m":{"type":"object","additionalProperties":{"type":"string"}}}}}}),
        );
        let found = |p: &str, brackets| resolve(p, &schema, brackets).map(|r| r.path);
        assert_eq!(found(".spec.a", false).unwrap(), "spec.a");
        assert_eq!(found(".spec.m['x.y']", true).unwrap(), "spec.m[x.y]");
        assert_eq!(
            found(".spec.zz", false).unwrap_err(),
            "does not refer to a valid field"
        );
        assert_eq!(
            found("spec.a", false).unwrap_err(),
            "expected [ or . but got: spec"
        );
        assert_eq!(
            found(".spec[0]", false).unwrap_err(),
            "array notation is not allowed"
        );
        assert_eq!(
            found(".spec.", true).unwrap_err(),
            "unexpected end of JSON path"
        );
    }
}
