//! What failed, in the words of the tests: said once more at the very end, since of a long run often only the end is kept.
//!
//! Read from the closing lines of libtest and of runners that write as it does; a program that dies before it writes them has
//! nothing here.

/// So many of a tier are told again.
const FAILURES: usize = 10;
/// So many lines of each.
const LINES: usize = 12;
/// So much of a line.
const LETTERS: usize = 600;

/// The failures of one tier.
#[derive(Debug, Default)]
pub(super) struct Failures {
    told: Vec<Vec<String>>,
    /// Those for which there was no room.
    more: usize,
    is_open: bool,
}

impl Failures {
    /// Takes the next line of a test program.
    pub(super) fn read(&mut self, line: &str) {
        let is_title = line.starts_with("---- ") && line.ends_with(" ----");
        if is_title {
            self.begin(line);
        } else if line == "failures:" || line.starts_with("test result: ") {
            self.is_open = false;
        } else if self.is_open
            && !line.trim().is_empty()
            && let Some(failure) = self.told.last_mut()
            && failure.len() <= LINES
        {
            failure.push(beginning(line));
        }
    }

    fn begin(&mut self, title: &str) {
        self.is_open = self.told.len() < FAILURES;
        if self.is_open {
            self.told.push(vec![beginning(title)]);
        } else {
            self.more += 1;
        }
    }

    /// What is told again.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        let more = (self.more > 0).then(|| format!("and {} more", self.more));
        self.told.iter().flatten().cloned().chain(more)
    }
}

fn beginning(line: &str) -> String {
    line.chars().take(LETTERS).collect()
}

#[cfg(test)]
mod tests {
    use super::{FAILURES, Failures, LETTERS, LINES};

    fn told(lines: &[&str]) -> Vec<String> {
        let mut failures = Failures::default();
        for line in lines {
            failures.read(line);
        }
        failures.lines().collect()
    }

    #[test]
    fn the_words_of_each_failure_are_told_again_and_nothing_else() {
        let of_libtest = [
            "running 2 tests",
            ".F",
            "failures:",
            "",
            "---- plan::waits stdout ----",
            "thread 'plan::waits' panicked at src/plan.rs:1:1:",
            "left: 1",
            "",
            "failures:",
            "    plan::waits",
            "",
            "test result: FAILED. 1 passed; 1 failed",
            "---- real::gc ----",
            "  step 2: claimed 200",
            "failures:",
            "    real::gc",
        ];
        let expected = [
            "---- plan::waits stdout ----",
            "thread 'plan::waits' panicked at src/plan.rs:1:1:",
            "left: 1",
            "---- real::gc ----",
            "  step 2: claimed 200",
        ];
        assert_eq!(told(&of_libtest), expected);
        assert!(told(&["running 1 test", "test result: ok. 1 passed"]).is_empty());
    }

    #[test]
    fn they_are_bounded() {
        let long = "x".repeat(2 * LETTERS);
        let mut lines = Vec::new();
        for _ in 0..FAILURES + 3 {
            lines.push("---- a ----");
            lines.extend([long.as_str()].repeat(2 * LINES));
        }
        let told = told(&lines);
        assert_eq!(told.len(), FAILURES * (LINES + 1) + 1);
        assert_eq!(told.last().map(String::as_str), Some("and 3 more"));
        assert!(told.iter().all(|line| line.len() <= LETTERS));
    }
}
