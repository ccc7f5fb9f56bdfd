//! A1, A2: what holds for all calls to the world outside.

use std::collections::BTreeMap;

use jiff::SignedDuration;

use super::{Case, Findings};
use crate::history::Asked;

/// A1: whoever is asked can tell whether it is asked again.
pub(super) fn names(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let mut first: BTreeMap<&str, &Asked> = BTreeMap::new();
    for asked in &case.history.asked {
        let known = *first.entry(asked.id.as_str()).or_insert(asked);
        let (this, that) = (what(asked), what(known));
        let holds = !asked.id.is_empty() && this == that;
        findings.check(asked.at, holds, || {
            format!("{:?} is the name of {this:?}, and of {that:?}", asked.id)
        });
    }
    findings
}

fn what(asked: &Asked) -> (&str, &str, &str) {
    (&asked.method, &asked.url, &asked.body)
}

/// One replica asks one host no more often than this in any minute: a loop would ask thousands of times.
const MAX_A_MINUTE: usize = 120;

/// A2: nobody is asked in a loop.
pub(super) fn pace(case: &Case<'_>) -> Findings {
    let mut findings = Findings::default();
    let mut by_host: BTreeMap<(&str, &str), Vec<&Asked>> = BTreeMap::new();
    for asked in &case.history.asked {
        let of = (asked.replica.as_str(), asked.host());
        by_host.entry(of).or_default().push(asked);
    }
    for ((_, host), all) in by_host {
        for (n, asked) in all.iter().enumerate() {
            let before = n.checked_sub(MAX_A_MINUTE).and_then(|n| all.get(n));
            let minute = SignedDuration::from_mins(1);
            let holds = before.is_none_or(|one| asked.at.duration_since(one.at) >= minute);
            findings.check(asked.at, holds, || {
                format!("{host} was asked {MAX_A_MINUTE} times within a minute")
            });
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::history::History;
    use crate::scenario::Scenario;

    fn asked(number: u64, id: &str, body: &str, millisecond: i64) -> Asked {
        Asked {
            number,
            at: Timestamp::from_millisecond(millisecond).unwrap(),
            replica: "slipway-0-0".to_owned(),
            method: "POST".to_owned(),
            url: "https://chat.test:8443/say?x".to_owned(),
            id: id.to_owned(),
            body: body.to_owned(),
            query: None,
            fault: None,
            arrived: 1,
            told: None,
            said: None,
        }
    }

    fn found(asked: Vec<Asked>, oracle: fn(&Case<'_>) -> Findings) -> Findings {
        let scenario = Scenario::read("a", "{name: a, about: a, duration: 1m}").unwrap();
        let history = History {
            asked,
            ..History::default()
        };
        oracle(&Case {
            scenario: &scenario,
            history: &history,
            reference: None,
            specifics: &[],
        })
    }

    #[test]
    fn a_name_for_two_questions_and_a_question_without_a_name_are_found() {
        let good = vec![
            asked(0, "a", "x", 0),
            asked(1, "a", "x", 1),
            asked(2, "b", "y", 2),
        ];
        let findings = found(good, names);
        assert_eq!((findings.checked, findings.violations.len()), (3, 0));
        let twice = vec![asked(0, "a", "x", 0), asked(1, "a", "y", 1)];
        assert_eq!(found(twice, names).violations.len(), 1);
        let nameless = vec![asked(0, "", "x", 0)];
        assert_eq!(found(nameless, names).violations.len(), 1);
    }

    #[test]
    fn a_loop_is_found() {
        assert_eq!(asked(0, "", "", 0).host(), "chat.test");
        let every = |millis: i64| (0..200).map(|n| asked(0, "a", "x", n * millis)).collect();
        assert!(found(every(1_000), pace).violations.is_empty());
        assert!(!found(every(100), pace).violations.is_empty());
    }
}
