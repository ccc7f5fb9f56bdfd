//! What goes wrong for a time: named, so that a run can be told in a line (`outage@30s+10s`, `403:widgets/1@0s+5s`).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use slipway_kernel::duration::{parse, render};

/// How late the answers to deletions are, or these themselves: less than the operator waits.
pub const TARDY: Duration = Duration::from_secs(8);

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Disturbance {
    /// No request arrives, and open watches break.
    Outage,
    /// No request is answered, and open watches say nothing more; nothing breaks.
    BlackHole,
    /// Watches of a kind say nothing, not even a bookmark, and do not break; of all kinds if none is named. Everything
    /// else works.
    Silence(String),
    /// Lists and watches of a kind are refused with this code. Discovery has it.
    Refusal(u16, String),
    /// Lists and watches of a kind are not found, and discovery does not have it.
    Unknown(String),
    /// No `ConfigMap` more may be made.
    Quota,
    /// Every request is refused with this code, to be tried again after so many seconds.
    RetryAfter(u16, u64),
    /// Somebody deletes a definition, and applies it again in the end, with what there was of it.
    Undefined(String),
    /// Everything is put back to where it was so long ago, also the versions.
    Restore,
    /// Deletions are carried out at once, and answered late.
    LateAnswers,
    /// Deletions arrive late.
    LateArrivals,
    /// A replica goes on in a new process whose clock is off by these seconds, until the end of the run.
    Skew(i64),
    /// The leader dies.
    LeaderDies,
}

impl Disturbance {
    /// What reports count it as.
    pub fn class(&self) -> &'static str {
        match self {
            Self::Outage | Self::BlackHole => "outages",
            Self::Silence(_) => "silent watches",
            Self::Refusal(..) | Self::Unknown(_) => "refused kinds",
            Self::Quota => "quotas",
            Self::RetryAfter(..) => "retry-after",
            Self::Undefined(_) => "definitions",
            Self::Restore => "restores",
            Self::LateAnswers | Self::LateArrivals => "late deletions",
            Self::Skew(_) => "clocks",
            Self::LeaderDies => "deaths",
        }
    }

    /// How long after its end the operator may still be kept from something.
    fn aftermath(&self) -> Duration {
        match self {
            // What it may not do it leaves off until its next heartbeat; and so long it waits at most, whatever it is told.
            Self::Refusal(403, _) | Self::Quota | Self::RetryAfter(..) => Duration::from_mins(5),
            // Until a watch that says nothing is opened again.
            Self::Silence(_) | Self::BlackHole => Duration::from_mins(2),
            _ => Duration::ZERO,
        }
    }
}

/// Something that is wrong for a time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spell {
    /// What.
    pub disturbance: Disturbance,
    /// For which replica; none for all.
    pub reach: Option<u32>,
    /// From when on, after the start.
    pub at: Duration,
    /// For how long.
    pub lasts: Duration,
}

impl Spell {
    /// One that reaches all replicas.
    pub fn new(disturbance: Disturbance, at: Duration, lasts: Duration) -> Self {
        Self {
            disturbance,
            reach: None,
            at,
            lasts,
        }
    }

    /// The same for one replica only.
    #[must_use]
    pub fn only(self, replica: u32) -> Self {
        Self {
            reach: Some(replica),
            ..self
        }
    }

    /// When it is over.
    pub fn ends(&self) -> Duration {
        match self.disturbance {
            Disturbance::Restore => self.at,
            _ => self.at.saturating_add(self.lasts),
        }
    }

    /// Until when it can keep the operator from something.
    pub fn over(&self) -> Duration {
        self.ends().saturating_add(self.disturbance.aftermath())
    }

    /// Whether it is for this replica.
    pub fn reaches(&self, replica: u32) -> bool {
        self.reach.is_none_or(|only| only == replica)
    }
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outage => f.write_str("outage"),
            Self::BlackHole => f.write_str("black-hole"),
            Self::Silence(plural) if plural.is_empty() => f.write_str("silence"),
            Self::Silence(plural) => write!(f, "silence:{plural}"),
            Self::Refusal(code, plural) => write!(f, "{code}:{plural}"),
            Self::Unknown(plural) => write!(f, "unknown:{plural}"),
            Self::Quota => f.write_str("quota"),
            Self::RetryAfter(code, seconds) => write!(f, "retry-after-{code}:{seconds}"),
            Self::Undefined(plural) => write!(f, "undefined:{plural}"),
            Self::Restore => f.write_str("restore"),
            Self::LateAnswers => f.write_str("late-answers"),
            Self::LateArrivals => f.write_str("late-arrivals"),
            Self::Skew(seconds) => write!(f, "skew:{seconds}"),
            Self::LeaderDies => f.write_str("leader-dies"),
        }
    }
}

impl fmt::Display for Spell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.disturbance)?;
        if let Some(replica) = self.reach {
            write!(f, "/{replica}")?;
        }
        write!(f, "@{}+{}", render(self.at), render(self.lasts))
    }
}

/// Why a text is no spell.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no spell; write `outage@30s+10s`, `403:pods/1@0s+5s`, `silence@1m+3m`, …")]
pub struct NoSpell(String);

fn disturbance(text: &str) -> Option<Disturbance> {
    let (name, about) = text.split_once(':').unwrap_or((text, ""));
    let plural = || Some(about.to_owned()).filter(|plural| !plural.is_empty());
    if let Some(code) = name.strip_prefix("retry-after-") {
        return Some(Disturbance::RetryAfter(
            code.parse().ok()?,
            about.parse().ok()?,
        ));
    }
    match name {
        "silence" => Some(Disturbance::Silence(about.to_owned())),
        "unknown" => plural().map(Disturbance::Unknown),
        "undefined" => plural().map(Disturbance::Undefined),
        "skew" => about.parse().ok().map(Disturbance::Skew),
        _ if !about.is_empty() => Some(Disturbance::Refusal(name.parse().ok()?, plural()?)),
        "outage" => Some(Disturbance::Outage),
        "black-hole" => Some(Disturbance::BlackHole),
        "quota" => Some(Disturbance::Quota),
        "restore" => Some(Disturbance::Restore),
        "late-answers" => Some(Disturbance::LateAnswers),
        "late-arrivals" => Some(Disturbance::LateArrivals),
        "leader-dies" => Some(Disturbance::LeaderDies),
        _ => None,
    }
}

impl FromStr for Spell {
    type Err = NoSpell;

    fn from_str(text: &str) -> Result<Self, NoSpell> {
        let read = || {
            let (what, when) = text.split_once('@')?;
            let (at, lasts) = when.split_once('+')?;
            let (what, reach) = match what.split_once('/') {
                Some((what, replica)) => (what, Some(replica.parse().ok()?)),
                None => (what, None),
            };
            Some(Self {
                disturbance: disturbance(what)?,
                reach,
                at: parse(at).ok()?,
                lasts: parse(lasts).ok()?,
            })
        };
        read().ok_or_else(|| NoSpell(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spell_can_be_told_and_read() {
        let plural = || "widgets".to_owned();
        let disturbances = [
            Disturbance::Outage,
            Disturbance::BlackHole,
            Disturbance::Silence(String::new()),
            Disturbance::Silence(plural()),
            Disturbance::Refusal(403, plural()),
            Disturbance::Unknown(plural()),
            Disturbance::Quota,
            Disturbance::RetryAfter(429, u64::MAX),
            Disturbance::Undefined(plural()),
            Disturbance::Restore,
            Disturbance::LateAnswers,
            Disturbance::LateArrivals,
            Disturbance::Skew(-3600),
            Disturbance::LeaderDies,
        ];
        for disturbance in disturbances {
            let spell = Spell::new(
                disturbance,
                Duration::from_millis(30_030),
                Duration::from_secs(90),
            );
            assert_eq!(spell.to_string().parse(), Ok(spell.clone()));
            let spell = spell.only(1);
            assert_eq!(spell.to_string().parse(), Ok(spell));
        }
        for text in [
            "outage",
            "rain@1s+1s",
            "403:@1s+1s",
            "outage@1s",
            "skew@1s+1s",
        ] {
            assert!(text.parse::<Spell>().is_err(), "{text}");
        }
    }
}
