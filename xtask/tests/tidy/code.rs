//! Sources without their tests.

use std::path::Path;

/// Whether a file is of tests as a whole.
pub(crate) fn is_test(file: &Path) -> bool {
    let name = file.file_name().unwrap().to_string_lossy();
    name == "tests.rs" || file.components().any(|part| part.as_os_str() == "tests")
}

/// The lines of a source with their numbers, without items marked `#[cfg(test)]`. Such an item ends where rustfmt puts
/// its end: at the first line indented like its beginning that closes something.
pub(crate) fn production(text: &str) -> Vec<(usize, &str)> {
    let mut kept = Vec::new();
    let mut test = None;
    for (number, line) in (1..).zip(text.lines()) {
        let indent = line.len() - line.trim_start().len();
        if line.trim() == "#[cfg(test)]" {
            test = Some(indent);
            continue;
        }
        let Some(begun) = test else {
            kept.push((number, line));
            continue;
        };
        if indent == begun && line.ends_with([';', '}', ',']) {
            test = None;
        }
    }
    kept
}

#[test]
fn tests_are_told_from_sources() {
    let text = "mod item;\n#[cfg(test)]\nmod tests;\n\nfn a() {}\n\nimpl A {\n    #[cfg(test)]\n    fn b() {\n        \
                c();\n    }\n\n    fn d() {}\n}\n\n#[cfg(test)]\nmod more {\n    #![allow(\n        x,\n    )]\n    \
                fn e() {}\n}\nfn f() {}\n";
    let kept: Vec<&str> = production(text).into_iter().map(|(_, line)| line).collect();
    let expected = [
        "mod item;",
        "",
        "fn a() {}",
        "",
        "impl A {",
        "",
        "    fn d() {}",
        "}",
        "",
        "fn f() {}",
    ];
    assert_eq!(kept, expected);
    assert_eq!(production(text).last().unwrap().0, text.lines().count());
}
