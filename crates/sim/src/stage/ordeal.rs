//! What a run's spells do to the stage itself; what they do to requests is the [`Weather`](crate::wire::Weather)'s.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use slipway_apiserver::cluster::Snapshot;

use super::{Stage, water};
use crate::history::{Event, Image};
use crate::scenario::{Deed, Named};
use crate::spell::{Disturbance, Spell};
use crate::trial::Blow;
use crate::user::Undone;
use crate::wire::Port;

/// What is kept until a spell ends.
pub(super) enum Kept {
    /// What there was in a cluster, to be put back there.
    Everything(Snapshot, Port),
    /// Manifests, to be applied again.
    Manifests(Vec<Value>),
    /// A place, to be given back.
    Place,
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
        let Some(spell) = self.weather.spells().get(number).cloned() else {
            return;
        };
        let begins = turn == Turn::Begin;
        if begins != (spell.disturbance == Disturbance::Restore) {
            let lasts = spell.over().saturating_sub(spell.at);
            self.recorder.mark(Event::Spell(spell.clone()));
            if self.weather.is_fault(number) {
                self.recorder.disturbed_for(lasts);
            }
        }
        if let Some(at) = self.scenario.place(spell.cluster.as_deref()) {
            match turn {
                Turn::Begin => self.befall(number, &spell, at).await,
                Turn::End => self.relieve(number, at).await,
            }
        }
        self.weather.turn();
    }

    /// What a spell does to the cluster at this place, or to replicas, when it begins.
    async fn befall(&mut self, number: usize, spell: &Spell, at: usize) {
        match &spell.disturbance {
            Disturbance::Undefined(kind) => {
                let manifests = self.undefine(kind, at).await;
                self.kept.insert(number, Kept::Manifests(manifests));
            }
            Disturbance::Restore => {
                if let Some(water) = self.waters.get(at) {
                    let port = water.port();
                    let kept = Kept::Everything(port.cluster.snapshot(), port);
                    self.kept.insert(number, kept);
                }
            }
            Disturbance::Replaced => self.replace(number, at),
            Disturbance::Skew(seconds) => {
                let replica = spell.reach.unwrap_or_default();
                self.crew.strike(replica, Blow::Skew(*seconds));
            }
            Disturbance::LeaderDies => {
                self.crew.strike(self.crew.leader(), Blow::Crash);
            }
            _ => {}
        }
    }

    /// What was kept is put back.
    async fn relieve(&mut self, number: usize, at: usize) {
        match self.kept.remove(&number) {
            Some(Kept::Everything(snapshot, port)) => self.restore(&snapshot, &port, at),
            Some(Kept::Manifests(manifests)) => self.define(&manifests, at).await,
            Some(Kept::Place) => {
                if let Some(water) = self.waters.get_mut(at) {
                    water.give_back(number);
                }
            }
            None => {}
        }
    }

    /// Another cluster takes the place of one.
    fn replace(&mut self, number: usize, at: usize) {
        let (seed, reach) = (self.seed, water::reach(&self.waters));
        let Some(water) = self.waters.get_mut(at) else {
            return;
        };
        if water.replace(number, seed) {
            self.clusters.push(water.cluster());
            self.tasks.spawn(water.recorder().follow());
            let port = water.port();
            let controllers = water.look_after(&port, &self.scenario, reach, seed);
            self.controllers.insert(port.id, controllers);
            self.kept.insert(number, Kept::Place);
        }
    }

    /// Somebody deletes a definition. Gives it back with all that there is of it, as manifests.
    async fn undefine(&self, kind: &str, at: usize) -> Vec<Value> {
        let name = |definition: &&Value| definition.pointer("/metadata/name") == Some(&json!(kind));
        let definition = self.definitions.iter().find(name);
        let (Some(definition), Some(water)) = (definition, self.waters.get(at)) else {
            return Vec::new();
        };
        let mut manifests = vec![definition.clone()];
        let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str);
        let group = text("/spec/group").unwrap_or_default();
        let plural = text("/spec/names/plural").unwrap_or_default();
        let version = text("/spec/versions/0/name").unwrap_or_default();
        for image in water.recorder().all(&format!("{group}/{plural}")) {
            let api = format!("{group}/{version}");
            manifests.push(manifest(&image, &api, text("/spec/names/kind")));
        }
        let deed = Named::of(definition).map_err(|error| Undone::Nonsense(error.to_string()));
        match deed {
            Ok(named) => self.told(water.user.carry_out(Deed::Delete(&named)).await),
            Err(error) => self.told(Err(error)),
        }
        manifests
    }

    /// Somebody applies manifests.
    async fn define(&self, manifests: &[Value], at: usize) {
        let Some(water) = self.waters.get(at) else {
            return;
        };
        for manifest in manifests {
            let applied = water.user.apply(manifest).await;
            self.told(applied);
        }
    }

    fn told(&self, came: Result<String, Undone>) {
        self.recorder.mark(match came {
            Ok(done) => Event::User(done),
            Err(error) => Event::Failed(error.to_string()),
        });
    }

    /// Everything in a cluster is put back, and whoever looks after its workloads begins again.
    fn restore(&mut self, snapshot: &Snapshot, port: &Port, at: usize) {
        let Some(water) = self.waters.get(at) else {
            return;
        };
        self.controllers.remove(&port.id);
        port.recorder.restore(|| port.cluster.restore(snapshot));
        let reach = water::reach(&self.waters);
        let controllers = water.look_after(port, &self.scenario, reach, self.seed);
        self.controllers.insert(port.id.clone(), controllers);
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
