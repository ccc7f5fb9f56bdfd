//! `Warning` headers: each text once, and not too much of them.

use std::collections::BTreeSet;

use http::HeaderValue;

/// How many characters all texts may have together before they are cut.
const MAX_IN_ALL: usize = 4 * 1024;
/// How many characters of each text are left then.
const MAX_OF_ONE: usize = 256;

/// The headers for these texts. Texts with control characters are left out, as in the real server.
pub(super) fn headers(texts: &[String]) -> Vec<HeaderValue> {
    let mut seen = BTreeSet::new();
    let texts: Vec<&str> = texts
        .iter()
        .map(String::as_str)
        .filter(|text| !text.is_empty() && seen.insert(*text))
        .collect();
    let sendable = |text: &str| !text.contains(char::is_control);
    let length = |text: &str| text.chars().count();
    let mut all = 0;
    let over = texts.iter().position(|text| {
        all += if sendable(text) { length(text) } else { 0 };
        all > MAX_IN_ALL
    });
    // Those up to the one that is too much are cut, and so are those behind it, while there is room.
    let mut written = 0;
    let mut out = Vec::new();
    for (at, text) in texts.into_iter().enumerate() {
        let text = match over {
            None => text,
            Some(over) if at > over && written >= MAX_IN_ALL => break,
            Some(_) => {
                let end = text.char_indices().nth(MAX_OF_ONE).map(|(at, _)| at);
                end.and_then(|end| text.get(..end)).unwrap_or(text)
            }
        };
        if let Some(value) = Some(text).filter(|t| sendable(t)).and_then(header) {
            written += length(text);
            out.push(value);
        }
    }
    out
}

fn header(text: &str) -> Option<HeaderValue> {
    let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
    HeaderValue::from_bytes(format!("299 - \"{quoted}\"").as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;

    #[test]
    fn each_text_once_and_quoted() {
        let texts = [
            "a \"b\\".to_owned(),
            "a \"b\\".to_owned(),
            String::new(),
            "x\ny".to_owned(),
        ];
        assert_eq!(headers(&texts), [r#"299 - "a \"b\\""#]);
    }

    #[test]
    fn long_texts_are_cut_when_they_are_too_long_together() {
        let one = vec!["é".repeat(MAX_IN_ALL)];
        assert_eq!(headers(&one)[0].as_bytes().len(), 2 * MAX_IN_ALL + 8);
        let more: Vec<String> = (0..40)
            .map(|i| format!("{i:02}{}", "é".repeat(300)))
            .collect();
        let cut = headers(&more);
        assert_eq!(cut.len(), 16);
        assert_eq!(cut[0].as_bytes().len(), 2 + 2 * 254 + 8);
    }
}
