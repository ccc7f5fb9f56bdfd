//! Unified diffs of small texts, which some refusals of changes show.

/// One line of a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line<'a> {
    Same(&'a str),
    Old(&'a str),
    New(&'a str),
}

/// How many unchanged lines are shown around a change.
const CONTEXT: usize = 3;

/// The difference in the unified format, without file names; empty if there is none. Meant for texts of some
/// hundred lines: time and memory grow with the product of the lengths.
pub fn unified(old: &str, new: &str) -> String {
    let lines = compare(
        &old.lines().collect::<Vec<_>>(),
        &new.lines().collect::<Vec<_>>(),
    );
    let mut out = String::new();
    for hunk in hunks(&lines) {
        write_hunk(&mut out, &lines, hunk);
    }
    out
}

/// A longest common subsequence, by the table of their lengths.
fn compare<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Line<'a>> {
    let width = new.len() + 1;
    let mut longest = vec![0_u32; (old.len() + 1) * width];
    let at = |i: usize, j: usize| i * width + j;
    for (i, a) in old.iter().enumerate().rev() {
        for (j, b) in new.iter().enumerate().rev() {
            let look = |i, j| longest.get(at(i, j)).copied().unwrap_or_default();
            let best = if a == b {
                look(i + 1, j + 1) + 1
            } else {
                look(i + 1, j).max(look(i, j + 1))
            };
            if let Some(cell) = longest.get_mut(at(i, j)) {
                *cell = best;
            }
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut lines = Vec::new();
    loop {
        match (old.get(i), new.get(j)) {
            (Some(a), Some(b)) if a == b => {
                lines.push(Line::Same(a));
                (i, j) = (i + 1, j + 1);
            }
            (Some(a), b) if b.is_none() || longest.get(at(i + 1, j)) >= longest.get(at(i, j + 1)) => {
                lines.push(Line::Old(a));
                i += 1;
            }
            (_, Some(b)) => {
                lines.push(Line::New(b));
                j += 1;
            }
            (_, None) => return lines,
        }
    }
}

/// Ranges of lines to show.
fn hunks(lines: &[Line<'_>]) -> Vec<std::ops::Range<usize>> {
    let mut hunks: Vec<std::ops::Range<usize>> = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        if matches!(line, Line::Same(_)) {
            continue;
        }
        let (from, to) = (i.saturating_sub(CONTEXT), (i + 1 + CONTEXT).min(lines.len()));
        match hunks.last_mut() {
            Some(last) if from <= last.end => last.end = to,
            _ => hunks.push(from..to),
        }
    }
    hunks
}

fn write_hunk(out: &mut String, lines: &[Line<'_>], hunk: std::ops::Range<usize>) {
    let count = |part: &[Line<'_>]| {
        let old = part.iter().filter(|l| !matches!(l, Line::New(_))).count();
        let new = part.iter().filter(|l| !matches!(l, Line::Old(_))).count();
        (old, new)
    };
    let (before_old, before_new) = count(lines.get(..hunk.start).unwrap_or_default());
    let shown = lines.get(hunk).unwrap_or_default();
    let (old, new) = count(shown);
    let range = |before: usize, length: usize| match length {
        0 => format!("{before},0"),
        1 => format!("{}", before + 1),
        _ => format!("{},{length}", before + 1),
    };
    out.push_str(&format!(
        "@@ -{} +{} @@\n",
        range(before_old, old),
        range(before_new, new)
    ));
    // Within a run of changes, what went comes before what came.
    let mut came = Vec::new();
    for line in shown {
        match line {
            Line::Old(text) => out.push_str(&format!("-{text}\n")),
            Line::New(text) => came.push(format!("+{text}\n")),
            Line::Same(text) => {
                out.extend(came.drain(..));
                out.push_str(&format!(" {text}\n"));
            }
        }
    }
    out.extend(came);
}

#[cfg(test)]
mod tests {
    use super::unified;

    #[test]
    fn shows_changes_with_three_lines_around() {
        let old = "{\n a\n b\n c\n d\n e\n}";
        let new = "{\n a\n b\n c\n D\n e\n}";
        assert_eq!(
            unified(old, new),
            "@@ -2,6 +2,6 @@\n  a\n  b\n  c\n- d\n+ D\n  e\n }\n"
        );
        assert_eq!(unified(old, old), "");
    }

    #[test]
    fn shows_what_went_before_what_came() {
        assert_eq!(
            unified("a\nb", "x\ny"),
            "@@ -1,2 +1,2 @@\n-a\n-b\n+x\n+y\n"
        );
    }
}
