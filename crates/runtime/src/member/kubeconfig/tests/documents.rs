//! YAML that says more than it shows, or nothing, is refused: a test for each form.

use super::*;

fn document_refused(text: &str, part: &str) {
    let told = read(text).unwrap_err().to_string();
    assert!(told.contains(part), "{part}: {told}");
}

/// Each line is a test: this text is refused, and that is said.
macro_rules! refused {
    ($($test:ident: $text:expr => $part:literal;)*) => {
        $(
            #[test]
            fn $test() {
                document_refused(&$text, $part);
            }
        )*
    };
}

fn bomb() -> String {
    let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (from, to) in [("a", "b"), ("b", "c"), ("c", "d")] {
        bomb = format!("{bomb}{to}: &{to} [*{from}, *{from}, *{from}, *{from}, *{from}]\n");
    }
    bomb
}

refused! {
    a_bomb: bomb() => "anchors";
    an_anchor: "users: &a []\n" => "anchors";
    an_alias_of_nothing: "users: *a\n" => "neither YAML nor JSON";
    an_alias: "users: &a []\nclusters: *a\n" => "anchors";
    a_tag: "kind: !!str Config\n" => "tags";
    a_directive: "%YAML 1.1\n---\nkind: Config\n" => "neither YAML nor JSON";
    a_field_that_stands_twice: "kind: Config\nkind: Config\n" => "line 2: a field stands twice";
    a_second_document: "kind: Config\n---\nkind: Config\n" => "second document";
    what_is_nested_too_deeply: "[".repeat(100) + &"]".repeat(100) => "nested too deeply";
    what_has_too_many_values: format!("extensions: [{}]", "a, ".repeat(30_000)) => "too many values";
    a_field_whose_name_is_no_text: "{[a]: b}\n" => "name of a field";
    what_does_not_end: "kind: [\n" => "neither YAML nor JSON";
    a_mere_text: "just a text\n" => "not a mapping";
}

#[test]
fn nothing_at_all() {
    let empty = KubeconfigError::Syntax {
        line: 1,
        what: "it is empty",
    };
    assert_eq!(read("").unwrap_err(), empty);
}

#[test]
fn what_is_too_large() {
    let large = format!("# {}", "x".repeat(LARGEST));
    assert_eq!(read(&large).unwrap_err(), KubeconfigError::TooLarge);
}

#[test]
fn what_is_no_text() {
    let not_text = Kubeconfig::parse(&[0xff, 0xfe], &AllowedHosts::any()).unwrap_err();
    assert!(not_text.to_string().contains("UTF-8"), "{not_text}");
}
