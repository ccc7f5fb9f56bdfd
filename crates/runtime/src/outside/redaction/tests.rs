#![allow(clippy::unwrap_used, reason = "tests")]

use slipway_kernel::address::escaped;

use super::*;

/// One with a character for each way in which programs escape.
const SECRET: &str = "M&k\"/<é+ B=";

/// As programs write it into texts of theirs.
fn forms() -> Vec<String> {
    let upper = escaped(SECRET);
    let lower: String = {
        let mut parts = upper.split('%');
        let first = parts.next().unwrap().to_owned();
        parts.fold(first, |text, part| {
            let (digits, rest) = part.split_at(2);
            format!("{text}%{}{rest}", digits.to_ascii_lowercase())
        })
    };
    vec![
        SECRET.to_owned(),
        format!("{SECRET}{SECRET}"),
        upper.clone(),
        upper.replace("%20", "+"),
        lower.clone(),
        lower.replace("%20", "+"),
        // As in a path, where few characters are escaped.
        "M&k%22/%3C%C3%A9+%20B=".to_owned(),
        serde_json::Value::from(SECRET).to_string(),
        // Go, PHP, Python, Ruby.
        r#"M\u0026k\"/\u003cé+ B="#.to_owned(),
        r#"M&k\"\/<\u00e9+ B="#.to_owned(),
        r"M\u0026k\u0022\u002F\u003C\u00E9\u002B\u0020B\u003D".to_owned(),
        "M&amp;k&quot;/&lt;é+ B=".to_owned(),
        "M&#38;k&#34;/&#x3C;&#233;+ B=".to_owned(),
        "M&#x26;k&#x22;&#x2F;&lt;&#xe9;&#43; B&#x3D;".to_owned(),
        STANDARD.encode(SECRET),
        STANDARD_NO_PAD.encode(SECRET),
        URL_SAFE_NO_PAD.encode(SECRET),
        escaped(&STANDARD.encode(SECRET)),
    ]
}

fn redaction() -> Redaction {
    let mut redaction = Redaction::default();
    redaction.add(SECRET);
    redaction
}

#[test]
fn a_secret_is_taken_out_in_every_form() {
    let redaction = redaction();
    for form in forms() {
        for around in ["", "\\", "%", "&", "+ \\n"] {
            let text = format!("before {around} {form} {around} after");
            let clean = redaction.of_text(text.clone());
            let rest = clean.replace(INSTEAD, "").replace(['=', '"'], "");
            let rest = rest
                .trim_start_matches("before ")
                .trim_end_matches(" after");
            assert!(clean.contains(INSTEAD), "{text} becomes {clean}");
            let kept: String = rest
                .chars()
                .filter(|c| !around.contains(*c) && *c != ' ')
                .collect();
            assert_eq!(kept, "", "{text} becomes {clean}");
        }
    }
}

#[test]
fn what_is_no_secret_stays() {
    let mut redaction = redaction();
    redaction.add("abc");
    assert_eq!(
        redaction.of_text("abc 100% & more\\".to_owned()),
        "abc 100% & more\\"
    );
    assert_eq!(redaction.of_bytes(&[0xff, 1]), [0xff, 1]);
    assert_eq!(Redaction::default().of_bytes(b"%41"), b"%41".to_vec());
    let failure = Failure::Unreachable(SECRET.to_owned());
    let failure = redaction.of_answer(Err(failure)).unwrap_err();
    assert_eq!(failure, Failure::Unreachable(INSTEAD.to_owned()));
}

#[test]
fn two_that_overlap_are_both_taken_out() {
    let mut redaction = Redaction::default();
    redaction.add("abcabc");
    redaction.add("bcab!!");
    assert_eq!(redaction.of_text("xabcabcabcy".to_owned()), "x[secret]y");
    assert_eq!(redaction.of_text("abcabcab!!".to_owned()), "[secret]");
}

#[test]
fn a_secret_in_an_address_is_seen_in_any_case_and_spelling() {
    let mut redaction = Redaction::default();
    redaction.add("Tok/en1");
    for text in [
        "http://tok%2Fen1.test/",
        "http://a/TOK%2fEN1",
        "http://a/?b=tok/en1",
    ] {
        assert!(redaction.is_in(text), "{text}");
    }
    assert!(!redaction.is_in("http://a/token1"));
}

/// Wherever a text is cut, no part of a secret is left at its end.
#[test]
fn no_part_of_a_secret_is_left_where_a_text_is_cut() {
    let redaction = redaction();
    for form in forms() {
        let text = format!("{}{form}{}", "x".repeat(500), "y".repeat(500));
        for end in 1..text.len() {
            let clean = redaction.of_beginning(&text.as_bytes()[..end]);
            let clean = String::from_utf8_lossy(&clean).replace(INSTEAD, "");
            let kept = clean.trim_start_matches('x').trim_end_matches('y');
            let kept = kept.replace(['=', '"'], "").replace("%3D", "");
            assert_eq!(kept, "", "{form} cut at {end}");
        }
    }
}
