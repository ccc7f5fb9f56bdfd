//! What people do in a scenario, and what happens to the operator's replicas.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{Named, Scenario, length};

/// One thing that is done at a time. Exactly one of the fields after `note` is given; or none, and the note is all.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Action {
    /// How long after the start.
    #[serde(deserialize_with = "length")]
    pub at: Duration,
    /// In which cluster; at home if nothing is said.
    pub cluster: Option<String>,
    /// What it is good for, for people.
    pub note: Option<String>,
    /// Creates or changes an object, as `kubectl apply` does.
    pub apply: Option<Value>,
    /// Changes an object by a JSON merge patch.
    pub patch: Option<Change>,
    /// Deletes an object.
    pub delete: Option<Named>,
    /// Changes the number of replicas.
    pub scale: Option<Scale>,
    /// As `kubectl rollout restart` does.
    pub restart: Option<Named>,
    /// As `kubectl set image` does, for the first container.
    pub set_image: Option<SetImage>,
    /// Sets labels, or takes them away (null).
    pub label: Option<Marks>,
    /// Sets annotations, or takes them away (null).
    pub annotate: Option<Marks>,
    /// Evicts the first pod with this label `app` in this namespace: `shop/cart`; or one pod: `Pod shop/cart-0`.
    pub evict: Option<String>,
    /// Evicts these pods all at once, as a drain does: `[Pod shop/cart-0, …]`. Some may be refused.
    pub drain: Option<Vec<Named>>,
    /// Says that whatever cluster now has a name is the one that is meant, as a person does by an annotation.
    pub confirm: Option<Confirmation>,
    /// Kills a replica of the operator; another one starts in its place.
    pub crash: Option<u32>,
    /// Stops a replica for a time, as a suspended machine does.
    pub pause: Option<Stop>,
    /// Cuts a replica off from the API for a time.
    pub partition: Option<Stop>,
    /// Sets a replica's clock off.
    pub skew: Option<Skew>,
    /// It is only tried out (`--dry-run=server`).
    pub dry_run: bool,
    /// It must be refused, and this is part of what is said then.
    pub refused: Option<String>,
}

/// A merge patch.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Of which object.
    pub object: Named,
    /// The patch.
    pub body: Value,
}

/// A number of replicas.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Scale {
    /// Of which workload.
    pub workload: Named,
    /// How many.
    pub replicas: u32,
    /// Whether it is done through the subresource `scale`, as `kubectl scale` and autoscalers do.
    #[serde(default, rename = "throughScale")]
    pub is_by_subresource: bool,
}

/// A new image.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetImage {
    /// Of which workload.
    pub workload: Named,
    /// Which.
    pub image: String,
}

/// Labels or annotations.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Marks {
    /// Of which object.
    pub object: Named,
    /// Their new values.
    pub set: BTreeMap<String, Option<String>>,
}

/// That another cluster is the one that is meant.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confirmation {
    /// The object that means it.
    pub object: Named,
    /// Whichever cluster has this name.
    pub member: String,
}

/// A replica that stands still or is cut off.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// Which one, from 0.
    pub replica: u32,
    /// How long.
    #[serde(rename = "for", deserialize_with = "length")]
    pub time: Duration,
}

/// A clock that is off.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skew {
    /// Whose, from 0.
    pub replica: u32,
    /// By how much: `30s`, `-5m`.
    #[serde(deserialize_with = "signed")]
    pub by: i64,
}

/// What an [`Action`] comes down to.
#[derive(Debug, Clone, Copy)]
pub enum Deed<'a> {
    /// Nothing but the note.
    Note,
    /// See [`Action::apply`].
    Apply(&'a Value),
    /// See [`Action::patch`].
    Patch(&'a Change),
    /// See [`Action::delete`].
    Delete(&'a Named),
    /// See [`Action::scale`].
    Scale(&'a Scale),
    /// See [`Action::restart`].
    Restart(&'a Named),
    /// See [`Action::set_image`].
    SetImage(&'a SetImage),
    /// See [`Action::label`].
    Label(&'a Marks),
    /// See [`Action::annotate`].
    Annotate(&'a Marks),
    /// See [`Action::evict`].
    Evict(&'a str),
    /// See [`Action::drain`].
    Drain(&'a [Named]),
    /// See [`Action::confirm`].
    Confirm(&'a Confirmation),
    /// See [`Action::crash`].
    Crash(u32),
    /// See [`Action::pause`].
    Pause(&'a Stop),
    /// See [`Action::partition`].
    Partition(&'a Stop),
    /// See [`Action::skew`].
    Skew(&'a Skew),
}

impl Action {
    /// What is asked for; an error if it is more than one thing.
    pub fn deed(&self) -> Result<Deed<'_>, String> {
        let all: [(&str, Option<Deed<'_>>); 15] = [
            ("apply", self.apply.as_ref().map(Deed::Apply)),
            ("patch", self.patch.as_ref().map(Deed::Patch)),
            ("delete", self.delete.as_ref().map(Deed::Delete)),
            ("scale", self.scale.as_ref().map(Deed::Scale)),
            ("restart", self.restart.as_ref().map(Deed::Restart)),
            ("setImage", self.set_image.as_ref().map(Deed::SetImage)),
            ("label", self.label.as_ref().map(Deed::Label)),
            ("annotate", self.annotate.as_ref().map(Deed::Annotate)),
            ("evict", self.evict.as_deref().map(Deed::Evict)),
            ("drain", self.drain.as_deref().map(Deed::Drain)),
            ("confirm", self.confirm.as_ref().map(Deed::Confirm)),
            ("crash", self.crash.map(Deed::Crash)),
            ("pause", self.pause.as_ref().map(Deed::Pause)),
            ("partition", self.partition.as_ref().map(Deed::Partition)),
            ("skew", self.skew.as_ref().map(Deed::Skew)),
        ];
        let given: Vec<_> = all
            .into_iter()
            .filter_map(|(name, deed)| Some((name, deed?)))
            .collect();
        match given.as_slice() {
            [(_, deed)] => Ok(*deed),
            [] if self.note.is_some() => Ok(Deed::Note),
            [] => Err("nothing is done; write what, or a note".to_owned()),
            [(a, _), (b, _), ..] => Err(format!("{a} and {b} at once; write two actions")),
        }
    }

    pub(super) fn check(&self, scenario: &Scenario) -> Result<(), String> {
        if self.at > scenario.duration {
            return Err("at: this is after the end of the scenario".to_owned());
        }
        if let Some(cluster) = &self.cluster
            && scenario.place(Some(cluster)).is_none()
        {
            return Err(format!("cluster: there is no {cluster:?}"));
        }
        let replica = match self.deed()? {
            Deed::Confirm(confirmation) if scenario.place(Some(&confirmation.member)).is_none() => {
                let member = &confirmation.member;
                return Err(format!("confirm: there is no {member:?}"));
            }
            Deed::Crash(replica) => replica,
            Deed::Pause(stop) | Deed::Partition(stop) => stop.replica,
            Deed::Skew(skew) => skew.replica,
            Deed::Apply(manifest) => {
                Named::of(manifest).map_err(|error| format!("apply: {error}"))?;
                0
            }
            _ => 0,
        };
        if replica >= scenario.replicas {
            return Err(format!(
                "there is no replica {replica}; the first is 0, and there are {}",
                scenario.replicas
            ));
        }
        Ok(())
    }
}

/// Seconds with a sign.
pub(super) fn signed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    use serde::de::Error;
    let text = String::deserialize(deserializer)?;
    let (sign, magnitude) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.as_str()),
    };
    let time = slipway_kernel::duration::parse(magnitude).map_err(D::Error::custom)?;
    let seconds = i64::try_from(time.as_secs()).map_err(D::Error::custom)?;
    Ok(sign * seconds)
}
