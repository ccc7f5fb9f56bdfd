//! Counts of what was asked again and of what came out differently.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use slipway_e2e::record::Pair;

use crate::compare::{Difference, EXCHANGED, MASKS, UNRECORDED};
use crate::explained::{self, REASONS};

/// How many examples of a kind of difference are shown.
const EXAMPLES: usize = 3;

/// The counts.
#[derive(Default)]
pub(crate) struct Report {
    programs: BTreeMap<String, usize>,
    explained: BTreeMap<&'static str, usize>,
    unexplained: BTreeMap<String, (usize, Vec<String>)>,
    /// Watches that were compared, and their events.
    pub(crate) watched: (usize, usize),
}

impl Report {
    /// One more pair.
    pub(crate) fn count(&mut self, pair: &Pair) {
        *self.programs.entry(pair.program().to_owned()).or_default() += 1;
    }

    /// One more difference.
    pub(crate) fn add(&mut self, index: usize, pair: &Pair, difference: &Difference) {
        if let Some(why) = explained::why(pair, difference) {
            *self.explained.entry(why).or_default() += 1;
            return;
        }
        let plain = without_names(&difference.path);
        let kind = format!("{} {} {plain}", pair.method, resource(&pair.path));
        let (count, examples) = self.unexplained.entry(kind).or_default();
        *count += 1;
        if examples.len() < EXAMPLES {
            examples.push(format!(
                "pair {} {} {} {}: recorded {}, found {}",
                index + 1,
                pair.program(),
                pair.path,
                difference.path,
                short(&difference.recorded.to_string()),
                short(&difference.found.to_string())
            ));
        }
    }

    /// How many differences nobody has explained.
    pub(crate) fn unexplained(&self) -> usize {
        self.unexplained.values().map(|(count, _)| count).sum()
    }

    /// As many differences as the rules are pinned to.
    pub(crate) fn pinned() -> Self {
        let all = REASONS.iter().map(|reason| (reason.why, reason.pinned));
        Self {
            explained: all.collect(),
            ..Self::default()
        }
    }

    fn excused_by(&self, why: &str) -> usize {
        self.explained.get(why).copied().unwrap_or_default()
    }

    /// Rules that excuse another number of differences than they are known to: more of them are a fault that hides behind a
    /// rule, fewer a rule that excuses too much.
    pub(crate) fn moved(&self, known: &Self) -> Vec<String> {
        let counts = REASONS.iter().map(|reason| {
            let why = reason.why;
            (why, known.excused_by(why), self.excused_by(why))
        });
        counts
            .filter(|(_, known, found)| known != found)
            .map(|(why, known, found)| format!("known for {known}, found {found}: {why}"))
            .collect()
    }

    /// All of it, for people.
    pub(crate) fn table(&self) -> String {
        let mut text = String::from("masked (that it is there is compared):\n");
        for mask in MASKS {
            let _ = writeln!(text, "  {}: {}", mask.what, mask.why);
        }
        let _ = writeln!(text, "never recorded, and so not compared:");
        for (what, why) in UNRECORDED {
            let _ = writeln!(text, "  {what}: {why}");
        }
        let _ = writeln!(text, "exchanged, then compared:");
        for (what, why) in EXCHANGED {
            let _ = writeln!(text, "  {what}: {why}");
        }
        let _ = writeln!(text, "explained differences:");
        for (why, count) in &self.explained {
            let _ = writeln!(text, "  {count:6}  {why}");
        }
        if !self.unexplained.is_empty() {
            let _ = writeln!(text, "UNEXPLAINED differences:");
        }
        let mut kinds: Vec<_> = self.unexplained.iter().collect();
        kinds.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
        for (kind, (count, examples)) in kinds {
            let _ = writeln!(text, "  {count:6}  {kind}");
            for example in examples {
                let _ = writeln!(text, "            {example}");
            }
        }
        let programs: Vec<String> = self
            .programs
            .iter()
            .map(|(name, count)| format!("{name} {count}"))
            .collect();
        let _ = write!(text, "pairs by program: {}", programs.join(", "));
        text
    }

    /// The first kind of difference that nobody has explained, or else the first rule that explains another number of them than
    /// for the sound server.
    pub(crate) fn first(&self, sound: &Self) -> Option<String> {
        let unexplained = self.unexplained.iter().next();
        unexplained
            .map(|(kind, (count, _))| format!("{count} × {kind}"))
            .or_else(|| self.moved(sound).into_iter().next())
    }

    /// How it begins in a line.
    pub(crate) fn line(&self) -> String {
        let (watches, events) = self.watched;
        format!(
            "replay: {} pairs ({watches} watches with {events} events), {} explained differences of {} kinds, {} unexplained",
            self.programs.values().sum::<usize>(),
            self.explained.values().sum::<usize>(),
            self.explained.len(),
            self.unexplained()
        )
    }
}

/// Whether each rule is noticed that explains one difference more than it is known for, or one fewer, and no other.
pub(crate) fn is_noticed() -> bool {
    let known = Report::pinned();
    let is_seen = |why: &'static str, count: usize| {
        let mut report = Report::pinned();
        report.explained.insert(why, count);
        let moved = report.moved(&known);
        moved.len() == 1 && moved.iter().all(|line| line.ends_with(why))
    };
    known.moved(&known).is_empty()
        && REASONS.iter().all(|reason| {
            let fewer = reason.pinned.checked_sub(1);
            is_seen(reason.why, reason.pinned + 1)
                && fewer.is_some_and(|fewer| is_seen(reason.why, fewer))
        })
}

/// A path without the names in it: `/api/v1/namespaces/*/pods/*`.
fn resource(path: &str) -> String {
    let path = path.split('?').next().unwrap_or_default();
    let known = |word: &str| {
        word.chars()
            .all(|c| c.is_ascii_lowercase() || c == '.' || c.is_ascii_digit())
    };
    let mut after_collection = false;
    let words = path.split('/').map(|word| {
        let is_name = after_collection;
        after_collection = !is_name && word.ends_with('s') && word != "apis" && word != "status";
        if is_name || !known(word) { "*" } else { word }
    });
    words.collect::<Vec<_>>().join("/")
}

fn without_names(path: &str) -> String {
    let mut plain = String::new();
    let mut depth = 0_usize;
    for letter in path.chars() {
        match letter {
            '[' => {
                depth += 1;
                plain.push_str("[*");
            }
            ']' => {
                depth = depth.saturating_sub(1);
                plain.push(']');
            }
            letter if depth == 0 => plain.push(letter),
            _ => {}
        }
    }
    plain
}

fn short(text: &str) -> String {
    const MOST: usize = 300;
    if text.chars().count() <= MOST {
        return text.to_owned();
    }
    let start: String = text.chars().take(MOST).collect();
    format!("{start}…")
}
