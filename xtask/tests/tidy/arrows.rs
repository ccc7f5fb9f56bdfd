//! `docs/architecture.md` is about this tree: its arrows are those of the Cargo.toml files, and its files are there.

use std::collections::{BTreeMap, BTreeSet};

use crate::{listed, metadata, root};

type Arrows = BTreeMap<String, BTreeSet<String>>;

fn map() -> String {
    std::fs::read_to_string(root().join("docs/architecture.md")).unwrap()
}

/// What is quoted in a text.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// The table whose head is `crate | may use`.
fn drawn(map: &str) -> Arrows {
    let table = map
        .lines()
        .skip_while(|line| *line != "| crate | may use |");
    let rows = table.skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let mut names = quoted(row).map(str::to_owned);
        let from = names
            .next()
            .unwrap_or_else(|| panic!("{row}: which crate?"));
        (from, names.collect())
    })
    .collect()
}

/// What the Cargo.toml files say. Dev-dependencies are free, except in apiserver.
fn found() -> Arrows {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    let name = |of: &serde_json::Value| of["name"].as_str().unwrap().to_owned();
    let ours: BTreeSet<String> = packages.iter().map(name).collect();
    packages
        .iter()
        .map(|package| {
            let from = name(package);
            let used = package["dependencies"].as_array().unwrap().iter();
            let used = used.filter(|to| to["kind"] != "dev" || from == "slipway-apiserver");
            let used = used.map(name).filter(|to| ours.contains(to)).collect();
            (from, used)
        })
        .collect()
}

#[test]
fn arrows_are_as_in_the_map() {
    let (drawn, found) = (drawn(&map()), found());
    let names: BTreeSet<&String> = drawn.keys().chain(found.keys()).collect();
    let wrong: Vec<String> = names
        .into_iter()
        .filter(|name| drawn.get(*name) != found.get(*name))
        .map(|name| {
            let (map, tree) = (drawn.get(name), found.get(name));
            format!("{name}: the map has {map:?}, its Cargo.toml {tree:?}")
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "change the Cargo.toml, or the table in docs/architecture.md: {wrong:#?}"
    );
}

/// `a/{b,c}.rs` is two files.
fn spread(path: &str) -> Vec<String> {
    let parts = path
        .split_once('{')
        .and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    let Some((before, (names, after))) = parts else {
        return vec![path.to_owned()];
    };
    let names = names.split(',');
    names.map(|name| format!("{before}{name}{after}")).collect()
}

#[test]
fn files_on_the_map_exist() {
    let files: Vec<String> = listed(&[]).iter().map(|file| format!("/{file}")).collect();
    let map = map();
    let named = quoted(&map).filter(|text| text.contains(".rs") || text.starts_with("docs/"));
    let paths = named.flat_map(|text| spread(text.split("::").next().unwrap_or(text)));
    let missing: Vec<String> = paths
        .filter(|path| {
            let inside = format!("/{}/", path.trim_end_matches('/'));
            let is_there =
                |file: &String| file.ends_with(&format!("/{path}")) || file.contains(&inside);
            !files.iter().any(is_there)
        })
        .collect();
    assert!(
        missing.is_empty(),
        "docs/architecture.md names files that are not there: {missing:#?}"
    );
}
