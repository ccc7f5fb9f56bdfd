//! What goes wrong for a time: named, so that a run can be told in a line (`outage@30s+10s`, `403:widgets/1@0s+5s`,
//! `replaced~east@1m+5m`).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;
use slipway_kernel::duration::{parse, render};
use slipway_kernel::identity::ClusterId;

/// How late the answers to deletions are, or these themselves: less than the operator waits.
pub const TARDY: Duration = Duration::from_secs(8);

/// The kind of which a quota is where none is named.
pub const MAPS: &str = "configmaps";

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
    /// No object more of a kind may be made, by whomever.
    Quota(String),
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
    /// Requests arrive and are carried out, and no answer comes back; watches say nothing more.
    AnswersLost,
    /// No request arrives, and none is answered; watches that are open go on.
    RequestsLost,
    /// Every answer takes so many seconds.
    Slow(u64),
    /// Nobody knows the operator's credentials any more, and open watches break.
    Revoked,
    /// Behind the cluster's name is another cluster, with the same objects under other uids; in the end it is the first again.
    Replaced,
}

impl Disturbance {
    /// What reports count it as.
    pub fn class(&self) -> &'static str {
        match self {
            Self::Outage | Self::BlackHole | Self::AnswersLost | Self::RequestsLost => "outages",
            Self::Slow(_) => "slow answers",
            Self::Revoked => "credentials",
            Self::Replaced => "replaced clusters",
            Self::Silence(_) => "silent watches",
            Self::Refusal(..) | Self::Unknown(_) => "refused kinds",
            Self::Quota(_) => "quotas",
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
            Self::Refusal(403, _) | Self::Quota(_) | Self::RetryAfter(..) => Duration::from_mins(5),
            // Until a watch that says nothing is opened again.
            Self::Silence(_) | Self::BlackHole | Self::AnswersLost | Self::RequestsLost => {
                Duration::from_mins(2)
            }
            // Requests that were slow are given up, and tried again after a while; so are credentials.
            Self::Slow(_) | Self::Revoked | Self::Replaced => Duration::from_mins(2),
            _ => Duration::ZERO,
        }
    }
}

/// Something that is wrong for a time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Spell {
    /// What.
    pub disturbance: Disturbance,
    /// In which cluster; none for the one that the operator runs in.
    pub cluster: Option<String>,
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
            cluster: None,
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

    /// The same in a cluster besides home.
    #[must_use]
    pub fn within(self, cluster: &str) -> Self {
        Self {
            cluster: Some(cluster.to_owned()),
            ..self
        }
    }

    /// Whether it is in this cluster.
    pub fn is_in(&self, cluster: &ClusterId) -> bool {
        self.cluster.as_deref().unwrap_or_default() == cluster.as_str()
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
            Self::Quota(plural) if plural == MAPS => f.write_str("quota"),
            Self::Quota(plural) => write!(f, "quota:{plural}"),
            Self::RetryAfter(code, seconds) => write!(f, "retry-after-{code}:{seconds}"),
            Self::Undefined(plural) => write!(f, "undefined:{plural}"),
            Self::Restore => f.write_str("restore"),
            Self::LateAnswers => f.write_str("late-answers"),
            Self::LateArrivals => f.write_str("late-arrivals"),
            Self::Skew(seconds) => write!(f, "skew:{seconds}"),
            Self::LeaderDies => f.write_str("leader-dies"),
            Self::AnswersLost => f.write_str("answers-lost"),
            Self::RequestsLost => f.write_str("requests-lost"),
            Self::Slow(seconds) => write!(f, "slow:{seconds}"),
            Self::Revoked => f.write_str("revoked"),
            Self::Replaced => f.write_str("replaced"),
        }
    }
}

impl fmt::Display for Spell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.disturbance)?;
        if let Some(cluster) = &self.cluster {
            write!(f, "~{cluster}")?;
        }
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
        "quota" => Some(Disturbance::Quota(
            plural().unwrap_or_else(|| MAPS.to_owned()),
        )),
        "unknown" => plural().map(Disturbance::Unknown),
        "undefined" => plural().map(Disturbance::Undefined),
        "skew" => about.parse().ok().map(Disturbance::Skew),
        "slow" => about.parse().ok().map(Disturbance::Slow),
        _ if !about.is_empty() => Some(Disturbance::Refusal(name.parse().ok()?, plural()?)),
        "outage" => Some(Disturbance::Outage),
        "black-hole" => Some(Disturbance::BlackHole),
        "restore" => Some(Disturbance::Restore),
        "late-answers" => Some(Disturbance::LateAnswers),
        "late-arrivals" => Some(Disturbance::LateArrivals),
        "leader-dies" => Some(Disturbance::LeaderDies),
        "answers-lost" => Some(Disturbance::AnswersLost),
        "requests-lost" => Some(Disturbance::RequestsLost),
        "revoked" => Some(Disturbance::Revoked),
        "replaced" => Some(Disturbance::Replaced),
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
            let (what, cluster) = match what.rsplit_once('~') {
                Some((what, cluster)) => (what, Some(cluster.to_owned())),
                None => (what, None),
            };
            Some(Self {
                disturbance: disturbance(what)?,
                cluster: cluster.filter(|name| !name.is_empty()),
                reach,
                at: parse(at).ok()?,
                lasts: parse(lasts).ok()?,
            })
        };
        read().ok_or_else(|| NoSpell(text.to_owned()))
    }
}

impl TryFrom<String> for Spell {
    type Error = NoSpell;

    fn try_from(text: String) -> Result<Self, NoSpell> {
        text.parse()
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
            Disturbance::Quota(MAPS.to_owned()),
            Disturbance::Quota(plural()),
            Disturbance::RetryAfter(429, u64::MAX),
            Disturbance::Undefined(plural()),
            Disturbance::Restore,
            Disturbance::LateAnswers,
            Disturbance::LateArrivals,
            Disturbance::Skew(-3600),
            Disturbance::LeaderDies,
            Disturbance::AnswersLost,
            Disturbance::RequestsLost,
            Disturbance::Slow(4),
            Disturbance::Revoked,
            Disturbance::Replaced,
        ];
        for disturbance in disturbances {
            let spell = Spell::new(
                disturbance,
                Duration::from_millis(30_030),
                Duration::from_secs(90),
            );
            assert_eq!(spell.to_string().parse(), Ok(spell.clone()));
            let spell = spell.only(1);
            assert_eq!(spell.to_string().parse(), Ok(spell.clone()));
            let spell = spell.within("east-1");
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
