//! Objects as YAML that kubectl takes.

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::Value;

/// Objects as a stream of documents, in this order. Strings that some YAML reader could take for something else are
/// quoted.
pub(crate) fn documents<T: Serialize>(objects: &[T]) -> Result<String> {
    let mut text = String::new();
    for object in objects {
        // By way of JSON, so that fields come in one order whatever type they are of.
        let value = serde_json::to_value(object).context("writing an object as JSON")?;
        text.push_str("---\n");
        text.push_str(&document(&value)?);
    }
    Ok(text)
}

/// One document, without its separator.
pub(crate) fn document(value: &Value) -> Result<String> {
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    let text = serde_saphyr::to_string_with_options(value, options)
        .context("writing an object as YAML")?;
    Ok(if text.ends_with('\n') {
        text
    } else {
        text + "\n"
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_reads_back_as_the_same() {
        let long = "a: b # c ".repeat(40);
        let value = json!({
            "yes": "no", "on": "off", "number": "12", "float": "1e3", "null": "null", "empty": "",
            "date": "2026-01-01", "time": "12:30:00", "octal": "0o17", "old": "017", "tilde": "~",
            "pattern": "^(0|([0-9]+(\\.[0-9]+)?(ns|us|µs|μs|ms|s|m|h))+|[0-9]+ ?(d|w))$",
            "path": ".status.conditions[?(@.type==\"Ready\")].status", "colon": "a: b", "hash": "a #b",
            "star": "*", "at": "@daily", "cron": "0 3 * * 1-5", "percent": "25%", "quote": "it's \"so\"",
            "lines": "one\ntwo\n", "long": long, "list": [1, true, null, [], {}], "y": true,
        });
        let text = document(&value).unwrap();
        assert_eq!(
            serde_saphyr::from_str::<Value>(&text).unwrap(),
            value,
            "{text}"
        );
        for line in ["'yes': 'no'", "number: '12'"] {
            let plain = line.replace('\'', "\"");
            assert!(
                text.contains(line) || text.contains(&plain),
                "{line}: {text}"
            );
        }
    }
}
