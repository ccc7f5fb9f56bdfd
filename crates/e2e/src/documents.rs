//! Several documents as one text for kubectl.
//!
//! This file is a module of `slipway-e2e`, and of `xtask` for its test: nobody builds the former for tests of its own.

use std::fmt::Write as _;

use serde_json::Value;

/// These documents as one text, each with its mark before it. To some kubectls (1.32) a text that begins with a brace is JSON to
/// its end, and JSON knows no mark.
pub fn documents<'a>(all: impl IntoIterator<Item = &'a Value>) -> String {
    let mut text = String::new();
    for document in all {
        // A text takes whatever it is given.
        let _ = writeln!(text, "---\n{document}");
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use serde_json::json;

    use super::documents;

    #[test]
    fn no_text_of_documents_begins_as_json() {
        let all = [json!({"kind": "A", "data": "a\n---\nb"}), json!([])];
        let text = documents(&all);
        assert!(text.starts_with("---\n"), "{text}");
        let lines: Vec<&str> = text.lines().collect();
        let [_, first, mark, second] = lines.as_slice() else {
            unreachable!("not a line for each mark and each document: {text}")
        };
        assert_eq!(*mark, "---");
        for (line, document) in [first, second].into_iter().zip(&all) {
            assert_eq!(
                serde_json::from_str::<serde_json::Value>(line).unwrap(),
                *document
            );
        }
        assert_eq!(documents([]), "");
    }
}
