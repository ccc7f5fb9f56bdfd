//! The difference of two texts in unified form, found the way the real server's library finds it, since people see
//! it in the answer to a forbidden change of a pod.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Lines of context around a change.
const CONTEXT: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Match {
    a: usize,
    b: usize,
    size: usize,
}

/// A stretch of both texts: equal, or replaced by one another.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    equal: bool,
    a: (usize, usize),
    b: (usize, usize),
}

/// The unified difference; empty if there is none.
pub fn unified(a: &[String], b: &[String]) -> String {
    let mut out = String::new();
    for group in groups(stretches(a, b)) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let _ = writeln!(
            out,
            "@@ -{} +{} @@",
            range(first.a.0, last.a.1),
            range(first.b.0, last.b.1)
        );
        for stretch in &group {
            let sign = if stretch.equal { ' ' } else { '-' };
            for line in a.get(stretch.a.0..stretch.a.1).unwrap_or_default() {
                let _ = writeln!(out, "{sign}{line}");
            }
            if !stretch.equal {
                for line in b.get(stretch.b.0..stretch.b.1).unwrap_or_default() {
                    let _ = writeln!(out, "+{line}");
                }
            }
        }
    }
    out
}

fn range(start: usize, stop: usize) -> String {
    match stop - start {
        1 => (start + 1).to_string(),
        0 => format!("{start},0"),
        length => format!("{},{length}", start + 1),
    }
}

fn groups(mut all: Vec<Stretch>) -> Vec<Vec<Stretch>> {
    if let Some(first) = all.first_mut().filter(|s| s.equal) {
        first.a.0 = first.a.0.max(first.a.1.saturating_sub(CONTEXT));
        first.b.0 = first.b.0.max(first.b.1.saturating_sub(CONTEXT));
    }
    if let Some(last) = all.last_mut().filter(|s| s.equal) {
        last.a.1 = last.a.1.min(last.a.0 + CONTEXT);
        last.b.1 = last.b.1.min(last.b.0 + CONTEXT);
    }
    let mut out = Vec::new();
    let mut group: Vec<Stretch> = Vec::new();
    for mut stretch in all {
        if stretch.equal && stretch.a.1 - stretch.a.0 > 2 * CONTEXT {
            group.push(Stretch {
                equal: true,
                a: (stretch.a.0, stretch.a.0 + CONTEXT),
                b: (stretch.b.0, stretch.b.0 + CONTEXT),
            });
            out.push(std::mem::take(&mut group));
            stretch.a.0 = stretch.a.1 - CONTEXT;
            stretch.b.0 = stretch.b.1 - CONTEXT;
        }
        group.push(stretch);
    }
    out.push(group);
    out.retain(|g| g.iter().any(|s| !s.equal));
    out
}

fn stretches(a: &[String], b: &[String]) -> Vec<Stretch> {
    let mut out = Vec::new();
    let (mut i, mut j) = (0, 0);
    for found in matches(a, b) {
        if i < found.a || j < found.b {
            out.push(Stretch {
                equal: false,
                a: (i, found.a),
                b: (j, found.b),
            });
        }
        i = found.a + found.size;
        j = found.b + found.size;
        if found.size > 0 {
            out.push(Stretch {
                equal: true,
                a: (found.a, i),
                b: (found.b, j),
            });
        }
    }
    out
}

/// Equal stretches in order, ending with an empty one at the ends.
fn matches(a: &[String], b: &[String]) -> Vec<Match> {
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (j, line) in b.iter().enumerate() {
        places.entry(line).or_default().push(j);
    }
    // Lines that occur very often in a long text are no good anchors.
    if b.len() >= 200 {
        let most = b.len() / 100 + 1;
        places.retain(|_, found| found.len() <= most);
    }
    let mut found = Vec::new();
    let mut work = vec![((0, a.len()), (0, b.len()))];
    while let Some((in_a, in_b)) = work.pop() {
        let best = longest(a, b, &places, in_a, in_b);
        if best.size > 0 {
            found.push(best);
            work.push(((in_a.0, best.a), (in_b.0, best.b)));
            work.push(((best.a + best.size, in_a.1), (best.b + best.size, in_b.1)));
        }
    }
    found.sort_unstable();
    let mut merged: Vec<Match> = Vec::new();
    for next in found {
        match merged.last_mut() {
            Some(last) if last.a + last.size == next.a && last.b + last.size == next.b => {
                last.size += next.size;
            }
            _ => merged.push(next),
        }
    }
    merged.push(Match {
        a: a.len(),
        b: b.len(),
        size: 0,
    });
    merged
}

fn longest(
    a: &[String],
    b: &[String],
    places: &BTreeMap<&str, Vec<usize>>,
    in_a: (usize, usize),
    in_b: (usize, usize),
) -> Match {
    let mut best = Match {
        a: in_a.0,
        b: in_b.0,
        size: 0,
    };
    let mut lengths: BTreeMap<usize, usize> = BTreeMap::new();
    for i in in_a.0..in_a.1 {
        let mut next = BTreeMap::new();
        let line = a.get(i).map(String::as_str).unwrap_or_default();
        for &j in places.get(line).into_iter().flatten() {
            if j < in_b.0 {
                continue;
            }
            if j >= in_b.1 {
                break;
            }
            let before = j.checked_sub(1).and_then(|j| lengths.get(&j)).copied();
            let size = before.unwrap_or(0) + 1;
            next.insert(j, size);
            if size > best.size {
                best = Match {
                    a: i + 1 - size,
                    b: j + 1 - size,
                    size,
                };
            }
        }
        lengths = next;
    }
    while best.a > in_a.0 && best.b > in_b.0 && a.get(best.a - 1) == b.get(best.b - 1) {
        best = Match {
            a: best.a - 1,
            b: best.b - 1,
            size: best.size + 1,
        };
    }
    while best.a + best.size < in_a.1
        && best.b + best.size < in_b.1
        && a.get(best.a + best.size) == b.get(best.b + best.size)
    {
        best.size += 1;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_a_change_with_context() {
        let text = |change: &str| -> Vec<String> {
            (0..20)
                .map(|i| {
                    if i == 10 {
                        change.to_owned()
                    } else {
                        i.to_string()
                    }
                })
                .collect()
        };
        assert_eq!(
            unified(&text("x"), &text("y")),
            "@@ -8,7 +8,7 @@\n 7\n 8\n 9\n-x\n+y\n 11\n 12\n 13\n"
        );
        assert_eq!(unified(&text("x"), &text("x")), "");
    }
}
