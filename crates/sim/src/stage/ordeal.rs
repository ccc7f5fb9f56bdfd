//! What a run's spells do to the stage itself; what they do to requests is the [`Weather`](crate::wire::Weather)'s.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use slipway_apiserver::cluster::Snapshot;

use super::Stage;
use crate::history::{Event, Image};
use crate::scenario::{Deed, Named};
use crate::spell::{Disturbance, Spell};
use crate::trial::Blow;
use crate::user::{Undone, User};

/// What is kept until a spell ends.
pub(super) enum Kept {
    /// What there was, to be put back.
    Everything(Snapshot),
    /// Manifests, to be applied again.
    Manifests(Vec<Value>),
}

/// When something has to be done about a spell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Begin,
    End,
}

/// The moments of a spell.
pub(super) fn turns(spell: &Spell) -> Vec<(Duration, Turn)> {
    match spell.disturbance {
        Disturbance::Restore => vec![
            (spell.at.saturating_sub(spell.lasts), Turn::Begin),
            (spell.at, Turn::End),
        ],
        _ => vec![(spell.at, Turn::Begin), (spell.ends(), Turn::End)],
    }
}

impl Stage {
    /// A spell begins or ends.
    pub(super) async fn turn(&mut self, number: usize, turn: Turn) {
        let Some(spell) = self.spells.get(number).cloned() else {
            return;
        };
        let begins = turn == Turn::Begin;
        if begins != (spell.disturbance == Disturbance::Restore) {
            let lasts = spell.over().saturating_sub(spell.at);
            self.recorder.mark(Event::Spell(spell.clone()));
            self.recorder.disturbed_for(lasts);
        }
        match (&spell.disturbance, turn) {
            (Disturbance::Undefined(kind), Turn::Begin) => {
                let manifests = self.undefine(kind).await;
                self.kept.insert(number, Kept::Manifests(manifests));
            }
            (Disturbance::Restore, Turn::Begin) => {
                if let Some(cluster) = self.clusters.first() {
                    let kept = Kept::Everything(cluster.snapshot());
                    self.kept.insert(number, kept);
                }
            }
            (Disturbance::Skew(seconds), Turn::Begin) => {
                let replica = spell.reach.unwrap_or_default();
                self.crew.strike(replica, Blow::Skew(*seconds));
            }
            (Disturbance::LeaderDies, Turn::Begin) => {
                self.crew.strike(self.crew.leader(), Blow::Crash);
            }
            (_, Turn::End) => match self.kept.remove(&number) {
                Some(Kept::Everything(snapshot)) => self.restore(&snapshot),
                Some(Kept::Manifests(manifests)) => self.define(&manifests).await,
                None => {}
            },
            _ => {}
        }
        self.weather.turn();
    }

    /// Somebody deletes a definition. Gives it back with all that there is of it, as manifests.
    async fn undefine(&self, kind: &str) -> Vec<Value> {
        let name = |definition: &&Value| definition.pointer("/metadata/name") == Some(&json!(kind));
        let Some(definition) = self.definitions.iter().find(name) else {
            return Vec::new();
        };
        let mut manifests = vec![definition.clone()];
        let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str);
        let group = text("/spec/group").unwrap_or_default();
        let plural = text("/spec/names/plural").unwrap_or_default();
        let version = text("/spec/versions/0/name").unwrap_or_default();
        for image in self.recorder.all(&format!("{group}/{plural}")) {
            let api = format!("{group}/{version}");
            manifests.push(manifest(&image, &api, text("/spec/names/kind")));
        }
        let deed = Named::of(definition).map_err(|error| Undone::Nonsense(error.to_string()));
        let Some(user) = self.people.first() else {
            return manifests;
        };
        match deed {
            Ok(named) => self.told(user.carry_out(Deed::Delete(&named)).await),
            Err(error) => self.told(Err(error)),
        }
        manifests
    }

    /// Somebody applies manifests.
    async fn define(&self, manifests: &[Value]) {
        let Some(user): Option<&User> = self.people.first() else {
            return;
        };
        for manifest in manifests {
            let applied = user.apply(manifest).await;
            self.told(applied);
        }
    }

    fn told(&self, came: Result<String, Undone>) {
        self.recorder.mark(match came {
            Ok(done) => Event::User(done),
            Err(error) => Event::Failed(error.to_string()),
        });
    }

    /// Everything is put back, and whoever looks after workloads begins again.
    fn restore(&mut self, snapshot: &Snapshot) {
        let Some(cluster) = self.clusters.first().cloned() else {
            return;
        };
        self.controllers.abort_all();
        self.recorder.restore(|| cluster.restore(snapshot));
        for cluster in &self.clusters {
            let seed = self.seed;
            super::setup::controllers(
                &mut self.controllers,
                cluster,
                &self.scenario,
                &self.clock,
                seed,
            );
        }
    }
}

/// An object as somebody would apply it.
fn manifest(image: &Arc<Image>, api_version: &str, kind: Option<&str>) -> Value {
    let mut metadata = json!({});
    for field in ["name", "namespace", "labels", "annotations"] {
        if let Some(value) = image.at(&format!("/metadata/{field}")) {
            metadata[field] = value.clone();
        }
    }
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": metadata,
        "spec": image.at("/spec"),
    })
}
