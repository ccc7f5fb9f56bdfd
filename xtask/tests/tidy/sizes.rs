//! Files that are read in one go. Tests are counted apart: they grow with what is promised, not with what it takes.

use crate::code::{is_test, production};
use crate::sources;

/// Lines that a source file may have, tests apart.
const LONGEST_SOURCE: usize = 600;

/// Lines of tests that a source file may have; more of them get a file of their own.
const LONGEST_INLINE: usize = 200;

/// Lines that a file of tests may have.
const LONGEST_TEST: usize = 700;

#[test]
fn files_are_short() {
    for file in sources() {
        let text = std::fs::read_to_string(&file).unwrap();
        let all = text.lines().count();
        let (lines, tests) = if is_test(&file) {
            (0, all)
        } else {
            let lines = production(&text).len();
            (lines, all - lines)
        };
        let most = if lines == 0 {
            LONGEST_TEST
        } else {
            LONGEST_INLINE
        };
        let name = file.display();
        assert!(
            lines <= LONGEST_SOURCE,
            "{name} has {lines} lines without its tests: two things live in one room"
        );
        assert!(
            tests <= most,
            "{name} has {tests} lines of tests: give some of them a file of their own"
        );
    }
}
