//! Heads of lists, against what a real kube-apiserver answered (`testdata`): the same list in protobuf and in JSON. The reader of
//! JSON knows nothing of protobuf, so that a wrong number of a field cannot be in both.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use super::heads::{Heads, NoList};
use super::heads_written::{answer, field};

const PROTOBUF: &str =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const JSON: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// What was recorded: its name, in protobuf, in JSON, and how many objects it has.
macro_rules! recorded {
    ($name:literal, $objects:literal) => {
        (
            $name,
            include_bytes!(concat!("testdata/", $name, ".pb")).as_slice(),
            include_bytes!(concat!("testdata/", $name, ".json")).as_slice(),
            $objects,
        )
    };
}

const RECORDED: [(&str, &[u8], &[u8], usize); 4] = [
    recorded!("pods", 3),
    recorded!("page", 2),
    recorded!("none", 0),
    recorded!("custom", 2),
];

fn told(heads: &Heads<'_>) -> Vec<String> {
    let list = &heads.metadata;
    let mut all = vec![format!(
        "{} {:?}",
        list.resource_version,
        !list.r#continue.is_empty()
    )];
    for head in heads.items.iter().flatten() {
        let meta = &head.metadata;
        let (name, uid, version) = (&meta.name, &meta.uid, &meta.resource_version);
        all.push(format!("{name} {uid} {version}"));
    }
    all
}

#[test]
fn protobuf_says_what_json_says() {
    for (name, protobuf, json, objects) in RECORDED {
        let read = Heads::read(PROTOBUF, protobuf).unwrap();
        let wanted = Heads::read(JSON, json).unwrap();
        assert_eq!(told(&read), told(&wanted), "{name}");
        assert_eq!(told(&read).len(), 1 + objects, "{name}");
    }
    let (_, page, _, _) = RECORDED[1];
    let page = Heads::read(PROTOBUF, page).unwrap();
    assert!(!page.metadata.r#continue.is_empty(), "there is a next page");
}

/// What is torn is no shorter list.
#[test]
fn an_answer_that_is_cut_off_anywhere_is_none() {
    for (name, protobuf, _, _) in RECORDED {
        let whole = told(&Heads::read(PROTOBUF, protobuf).unwrap());
        for end in 0..protobuf.len() {
            if let Ok(heads) = Heads::read(PROTOBUF, &protobuf[..end]) {
                // What follows the list in the envelope is empty, and nothing of the list.
                assert_eq!(told(&heads), whole, "{name}, {end}");
                assert!(end + 4 >= protobuf.len(), "{name}, {end}");
            }
        }
    }
}

const KIND: &str = "PartialObjectMetadataList";

/// Both forms alike: what JSON may not leave out, protobuf may not.
#[test]
fn what_a_list_must_have_is_asked_of_both_forms() {
    let versioned = field(1, &field(2, b"4711"));
    let object = |fields: &[(usize, &[u8])]| {
        let fields = fields.iter().flat_map(|(key, text)| field(*key, text));
        field(2, &field(1, &fields.collect::<Vec<u8>>()))
    };
    let whole: [(usize, &[u8]); 3] = [(1, b"a"), (5, b"7a"), (6, b"12")];
    let good = [versioned.clone(), object(&whole)].concat();
    assert!(Heads::read(PROTOBUF, &answer(KIND, &good)).is_ok());
    let good = br#"{"metadata":{"resourceVersion":"4711"},"items":[{"metadata":{"name":"a","uid":"7a","resourceVersion":"12"}}]}"#;
    assert!(Heads::read(JSON, good).is_ok());

    for list in [&[][..], &field(1, &[]), &field(1, &field(2, b""))] {
        let refused = Heads::read(PROTOBUF, &answer(KIND, list)).err();
        assert_eq!(refused, Some(NoList::NoVersion));
    }
    let empty = br#"{"metadata":{"resourceVersion":""}}"#;
    assert_eq!(Heads::read(JSON, empty).err(), Some(NoList::NoVersion));
    for bad in [r#"{"metadata":{}}"#, "{}", "[]", ""] {
        let refused = Heads::read(JSON, bad.as_bytes()).err();
        assert!(matches!(refused, Some(NoList::Json(_))), "{bad}");
    }

    for missing in 0..whole.len() {
        let mut fields = whole.to_vec();
        fields.remove(missing);
        let list = [versioned.clone(), object(&fields)].concat();
        let refused = Heads::read(PROTOBUF, &answer(KIND, &list)).err();
        assert_eq!(refused, Some(NoList::Nameless), "{missing}");
    }
    let nameless = br#"{"metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"","uid":"7a","resourceVersion":"12"}}]}"#;
    assert_eq!(Heads::read(JSON, nameless).err(), Some(NoList::Nameless));
}

#[test]
fn something_else_in_protobuf_is_no_list() {
    let list = field(1, &field(2, b"4711"));
    let refused = Heads::read(PROTOBUF, &answer("Status", &list)).err();
    assert_eq!(refused, Some(NoList::Other("Status".to_owned())));
    assert_eq!(
        Heads::read(PROTOBUF, b"k8s\0").err(),
        Some(NoList::Other(String::new()))
    );
    assert_eq!(Heads::read(PROTOBUF, b"{}").err(), Some(NoList::Torn));
}
