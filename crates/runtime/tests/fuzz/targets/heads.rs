//! Heads of lists in protobuf, from what a real kube-apiserver answered: fields that nobody knows change nothing, what is cut off is
//! no shorter list, and of what is damaged only whole heads are read.

#[path = "../../../src/collection/heads.rs"]
mod reader;
#[path = "../../../src/collection/heads_written.rs"]
mod written;

use reader::Heads;
use written::{answer, field, varint};

use super::{law, told};
use crate::fuzz::generate::damage;
use crate::fuzz::tape::{Tape, hex};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

const RECORDED: [&[u8]; 4] = [
    include_bytes!("../../../src/collection/testdata/pods.pb"),
    include_bytes!("../../../src/collection/testdata/page.pb"),
    include_bytes!("../../../src/collection/testdata/none.pb"),
    include_bytes!("../../../src/collection/testdata/custom.pb"),
];

pub(super) fn heads(bytes: &[u8]) {
    let tape = &mut Tape::new(bytes);
    let good = *tape.pick_ref(&RECORDED);
    let wanted = read(good).unwrap();
    match tape.below(3) {
        0 => {
            let mut padded = good.to_vec();
            padded.extend(unknown(tape));
            told(|| format!("padded: {}", hex(&padded)));
            law();
            assert_eq!(read(&padded), Some(wanted));
        }
        1 => {
            let end = tape.below(good.len());
            told(|| format!("cut off at {end}"));
            law();
            let found = read(&good[..end]);
            assert!(found.is_none() || found == Some(wanted));
        }
        _ => {
            let mut body = good.to_vec();
            damage(
                tape,
                &mut body,
                &["\u{8}", "\n", "\u{12}", "\u{1a}", "*", "2", "\0", "\u{7f}"],
                6,
            );
            told(|| format!("damaged: {}", hex(&body)));
            judge(&body);
        }
    }
}

/// What is read of damaged bytes is made of them, whole, and is read again when it is written.
fn judge(body: &[u8]) {
    let Some(found) = read(body) else {
        return;
    };
    law();
    for text in found.iter().flatten() {
        let is_there = body
            .windows(text.len().max(1))
            .any(|w| w == text.as_bytes());
        assert!(is_there, "{text:?} is not in the answer");
    }
    assert_eq!(read(&again(&found)), Some(found));
}

/// The list's version, then name, uid and version of each object.
fn read(answer: &[u8]) -> Option<Vec<Vec<String>>> {
    let heads = Heads::read(PROTOBUF, answer).ok()?;
    let mut all = vec![vec![heads.metadata.resource_version.clone()]];
    for head in heads.items.iter().flatten() {
        let meta = &head.metadata;
        let texts = [&meta.name, &meta.uid, &meta.resource_version];
        assert!(texts.iter().all(|text| !text.is_empty()));
        all.push(texts.map(ToString::to_string).to_vec());
    }
    assert!(!all[0][0].is_empty());
    Some(all)
}

fn again(all: &[Vec<String>]) -> Vec<u8> {
    let mut list = field(1, &field(2, all[0][0].as_bytes()));
    for head in &all[1..] {
        let numbers = [1, 5, 6].into_iter().zip(head);
        let meta: Vec<u8> = numbers
            .flat_map(|(number, text)| field(number, text.as_bytes()))
            .collect();
        list.extend(field(2, &field(1, &meta)));
    }
    answer("PartialObjectMetadataList", &list)
}

/// Some field of the envelope that nobody knows.
fn unknown(tape: &mut Tape<'_>) -> Vec<u8> {
    let number = 20 + tape.below(100);
    let key = |kind: usize| varint(number << 3 | kind);
    match tape.below(4) {
        0 => [key(0), varint(tape.below(1 << 15))].concat(),
        1 => [key(1), vec![tape.byte(); 8]].concat(),
        2 => field(number, &tape.bytes(20)),
        _ => [key(5), vec![tape.byte(); 4]].concat(),
    }
}
