//! A newcomer who knows one capability knows where to look in each: they all have the same files.

use crate::{listed, root};

/// What every capability has: `src/NAME.rs`, or a folder beside it.
const ROOMS: &[&str] = &[
    "lib", "settings", "access", "reasons", "observe", "plan", "render", "gauges",
];

/// What only some have; where they have it, it is called so.
const OPTIONAL: &[&str] = &["admit", "fence", "show"];

/// The crates that observe: each is a capability.
fn capabilities() -> Vec<String> {
    let files = listed(&["crates/*/src/observe.rs"]);
    let names = files
        .iter()
        .filter_map(|file| file.strip_suffix("/src/observe.rs"));
    names.map(str::to_owned).collect()
}

#[test]
fn capabilities_have_the_same_files() {
    let capabilities = capabilities();
    assert!(capabilities.len() >= 2, "{capabilities:?}");
    let missing: Vec<String> = capabilities
        .iter()
        .flat_map(|krate| {
            ROOMS
                .iter()
                .map(move |room| format!("{krate}/src/{room}.rs"))
        })
        .filter(|file| !root().join(file).is_file())
        .collect();
    assert!(
        missing.is_empty(),
        "each capability has these files, so that nobody has to look for them: {missing:#?}"
    );
}

/// The table in the map is where people read of them.
#[test]
fn the_map_tells_of_the_files_of_a_capability() {
    let map = std::fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let table = map.split_once("## The files of a capability").unwrap().1;
    let table = table.split("\n## ").next().unwrap();
    for room in ROOMS
        .iter()
        .chain(OPTIONAL.iter().filter(|room| is_used(room)))
    {
        let row = format!("| `{room}`");
        assert!(
            table.contains(&row),
            "docs/architecture.md has no row {row}"
        );
    }
}

fn is_used(room: &str) -> bool {
    let file = |krate: &String| root().join(format!("{krate}/src/{room}.rs"));
    capabilities().iter().any(|krate| file(krate).is_file())
}
