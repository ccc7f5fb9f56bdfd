//! What Go's `regexp` says of a pattern that it cannot compile.

use crate::crd::pattern::Pattern;

/// The error for a pattern, if it is none; the common mistakes have Go's text.
pub(super) fn error(pattern: &str) -> Option<String> {
    // Most schemas have none, and compiling is slow.
    if pattern.is_empty() {
        return None;
    }
    let pattern = Pattern::new(pattern);
    let why = pattern.machine().err()?;
    Some(format!(
        "error parsing regexp: {}",
        go_text(pattern.text(), why)
    ))
}

fn go_text(pattern: &str, why: &str) -> String {
    let says = |text: &str| why.contains(text);
    let quoted = |what: &str, fragment: &str| format!("{what}: `{fragment}`");
    if says("unclosed group") {
        return quoted("missing closing )", pattern);
    }
    if says("unclosed character class") {
        let from = pattern
            .rfind('[')
            .and_then(|at| pattern.get(at..))
            .unwrap_or(pattern);
        return quoted("missing closing ]", from);
    }
    if says("unopened group") {
        return quoted("unexpected )", pattern);
    }
    if says("repetition operator missing expression") {
        let operator: String = pattern
            .chars()
            .find(|c| "*+?".contains(*c))
            .into_iter()
            .collect();
        return quoted("missing argument to repetition operator", &operator);
    }
    if says("look-around") {
        let found = ["(?=", "(?!", "(?<=", "(?<!"]
            .into_iter()
            .find(|l| pattern.contains(l));
        let shown = found.map_or(pattern, |l| if l.starts_with("(?<") { "(?<" } else { l });
        return quoted("invalid or unsupported Perl syntax", shown);
    }
    if says("backreferences are not supported") || says("unrecognized escape sequence") {
        return quoted("invalid escape sequence", &bad_escape(pattern));
    }
    if says("invalid character class range") {
        return quoted("invalid character class range", &bad_range(pattern));
    }
    if says("repetition quantifier") || says("repetition count") || says("compiled regex exceeds") {
        let from = pattern
            .rfind('{')
            .and_then(|at| pattern.get(at..))
            .unwrap_or(pattern);
        let end = from.find('}').map_or(from.len(), |at| at + 1);
        return quoted("invalid repeat count", from.get(..end).unwrap_or(from));
    }
    quoted("invalid or unsupported Perl syntax", pattern)
}

fn bad_escape(pattern: &str) -> String {
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if c == '\\' {
            let Some(next) = chars.next() else { break };
            let known = next.is_ascii_punctuation() || "abfnrtvdDsSwWbBAzpPxQECU0".contains(next);
            if !known {
                return format!("\\{next}");
            }
        }
    }
    pattern.to_owned()
}

fn bad_range(pattern: &str) -> String {
    let chars: Vec<char> = pattern.chars().collect();
    let found = chars.windows(3).find(|w| matches!(w, [a, '-', b] if a > b));
    found.map_or_else(|| pattern.to_owned(), |w| w.iter().collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::error;

    #[test]
    fn common_mistakes_have_gos_text() {
        let text = |p: &str| error(p).unwrap();
        assert_eq!(text("("), "error parsing regexp: missing closing ): `(`");
        assert_eq!(text("[a"), "error parsing regexp: missing closing ]: `[a`");
        assert_eq!(
            text("*a"),
            "error parsing regexp: missing argument to repetition operator: `*`"
        );
        assert_eq!(text("a)"), "error parsing regexp: unexpected ): `a)`");
        assert_eq!(
            text("(?=a)"),
            "error parsing regexp: invalid or unsupported Perl syntax: `(?=`"
        );
        assert_eq!(
            text(r"\1"),
            r"error parsing regexp: invalid escape sequence: `\1`"
        );
        assert_eq!(
            text(r"\q"),
            r"error parsing regexp: invalid escape sequence: `\q`"
        );
        assert_eq!(
            text("[z-a]"),
            "error parsing regexp: invalid character class range: `z-a`"
        );
        assert_eq!(
            text("x{2,1}"),
            "error parsing regexp: invalid repeat count: `{2,1}`"
        );
        assert_eq!(error("^a+$"), None);
    }
}
