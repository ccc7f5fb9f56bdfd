//! What canary looks at: a Canary, and the objects that it is about by their names.

mod abandoned;
mod needs;
mod original;
mod projections;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use slipway_api::canary::{Canary, ObjectReference};
use slipway_kernel::basis::{Basis, basis};
use slipway_kernel::fact::{Answers, Facts, Refusal};
use slipway_kernel::fields::text;
use slipway_kernel::interest::Interest;
use slipway_kernel::store::{Item, Meta, Projection};
use slipway_kernel::{ClusterId, Key, Kind, ObjectRef, Stores};

use crate::kinds;
use crate::places::Places;
use crate::provider::Provider;
use crate::router::{self, Objects};
use crate::settings::Settings;
use crate::standalone::Names;
use crate::standalone::acts::workload;
use crate::standalone::configs::{Config, ConfigKind, Known, references};
use abandoned::{CLAIMED, index_claimed};
use projections::{
    ABOUT, ASKS, CONFIGS, SERVES, index_about, index_asks, index_configs, index_serves, place,
    served,
};

pub use abandoned::abandoned;
pub use needs::interests_in;
pub use projections::{
    CanarySeen, ConfigSeen, MapSeen, Meant, ProviderSeen, SecretSeen, TemplateSeen, Whole, about,
};

/// The work that a Canary is.
pub fn key(cluster: &ClusterId, meta: &Meta) -> Key {
    Key {
        cluster: cluster.clone(),
        controller: crate::NAME,
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
    }
}

fn indexed(cluster: &ClusterId, meta: &Meta, stores: &Stores, index: &'static str) -> Vec<Key> {
    let place = place(&meta.namespace, &meta.name);
    let found = stores.indexed::<CanarySeen>(cluster, &kinds::CANARY, index, &place);
    found.map(|entry| key(cluster, entry.meta)).collect()
}

fn on_canary(cluster: &ClusterId, meta: &Meta, _: &Stores) -> Vec<Key> {
    vec![key(cluster, meta)]
}

fn on_object(cluster: &ClusterId, meta: &Meta, stores: &Stores) -> Vec<Key> {
    indexed(cluster, meta, stores, ABOUT)
}

/// A change of Flagger's own Deployment concerns all: whether it runs decides whether we do.
fn on_deployment(cluster: &ClusterId, meta: &Meta, stores: &Stores) -> Vec<Key> {
    let (kind, namespace) = (&kinds::DEPLOYMENT, &meta.namespace);
    let seen = stores.get::<Whole>(cluster, kind, namespace, &meta.name);
    if seen.is_some_and(|seen| seen.body.is_original()) {
        let all = stores.list::<CanarySeen>(cluster, &kinds::CANARY);
        return all.map(|entry| key(cluster, entry.meta)).collect();
    }
    on_object(cluster, meta, stores)
}

fn on_template(cluster: &ClusterId, meta: &Meta, stores: &Stores) -> Vec<Key> {
    indexed(cluster, meta, stores, ASKS)
}

/// A change of a config concerns those whose workload, or copy of it, uses it, or whose copy is to use it again.
fn on_config(cluster: &ClusterId, meta: &Meta, stores: &Stores) -> Vec<Key> {
    let place = place(&meta.namespace, &meta.name);
    let workloads = [kinds::DEPLOYMENT, kinds::DAEMON_SET];
    let users = workloads
        .iter()
        .flat_map(|kind| stores.indexed::<Whole>(cluster, kind, CONFIGS, &place));
    let mut keys = indexed(cluster, meta, stores, SERVES);
    keys.extend(users.flat_map(|entry| on_object(cluster, entry.meta, stores)));
    keys.sort();
    keys.dedup();
    keys
}

/// What canary wants to see whatever there is; for what follows from the Canaries that there are, see [`interests_in`].
pub fn interests() -> Vec<Interest> {
    vec![
        Interest::of::<CanarySeen>(kinds::CANARY, on_canary)
            .where_defined()
            .indexed(ABOUT, index_about)
            .indexed(ASKS, index_asks)
            .indexed(SERVES, index_serves)
            .indexed(needs::NEEDS, needs::index_needs),
        Interest::of::<Whole>(kinds::DEPLOYMENT, on_deployment)
            .indexed(CONFIGS, index_configs)
            .indexed(CLAIMED, index_claimed)
            .indexed(original::ORIGINAL, original::index_original),
        Interest::of::<Whole>(kinds::SERVICE, on_object),
    ]
}

/// Namespace and name.
pub type Place = (String, String);

/// All that the plan of a Canary depends on.
#[derive(Debug, Clone)]
pub struct World {
    /// The cluster.
    pub cluster: ClusterId,
    /// The Canary.
    pub canary: Item<CanarySeen>,
    /// Objects that it may be about.
    pub objects: Objects,
    /// Which versions of them these are.
    pub metas: BTreeMap<(String, String), Meta>,
    /// What its workload is, or may be, configured with.
    pub configs: BTreeMap<Config, Known>,
    /// Which versions of them these are, and whose they are.
    pub config_metas: BTreeMap<Config, (Meta, Vec<Value>)>,
    /// What the values of Secrets in its namespace are called that templates may use, by namespace and name.
    pub secrets: BTreeMap<Place, BTreeSet<String>>,
    /// Templates that it names, by namespace and name.
    pub templates: BTreeMap<Place, TemplateSeen>,
    /// Alert providers that it names, by namespace and name.
    pub providers: BTreeMap<Place, ProviderSeen>,
    /// A Canary about the same workload that was there before.
    pub rival: Option<String>,
    /// Where Flagger itself runs, and acts on it.
    pub original: Option<String>,
    /// Kinds that it needs and that cannot be seen.
    pub unseen: Vec<Kind>,
    /// What was heard.
    pub answers: Answers,
    /// Writes that the API refused.
    pub refusals: BTreeMap<ObjectRef, Refusal>,
    /// The newest version seen of each kind.
    pub basis: Basis,
}

/// Gathers the world of a Canary. None if there is no such Canary, and while a kind that can be seen has not been listed yet:
/// then it is not known what is missing.
pub fn world(settings: &Settings, stores: &Stores, facts: &Facts, key: &Key) -> Option<World> {
    let store = stores.typed::<CanarySeen>(&key.cluster, &kinds::CANARY)?;
    let canary = Item::<CanarySeen>::of(store.get(&key.namespace, &key.name)?)?;
    let gathering = Gathering {
        stores,
        facts,
        cluster: &key.cluster,
        namespace: &key.namespace,
    };
    let mut world = World {
        cluster: key.cluster.clone(),
        canary: canary.clone(),
        objects: Objects::default(),
        metas: BTreeMap::new(),
        configs: BTreeMap::new(),
        config_metas: BTreeMap::new(),
        secrets: BTreeMap::new(),
        templates: BTreeMap::new(),
        providers: BTreeMap::new(),
        rival: None,
        original: gathering.original(settings.operator_namespace.as_deref()),
        unseen: Vec::new(),
        answers: facts.answers.clone(),
        refusals: facts.refusals.clone(),
        basis: basis(stores, &key.cluster),
    };
    if let Ok(read) = &canary.body().read {
        gathering.objects(settings, read, &mut world)?;
        if settings.config_tracking {
            gathering.configs(read, &mut world)?;
        }
        gathering.asked(read, &mut world)?;
        world.rival = gathering.rival(&canary, read, &world.objects);
    }
    if let Some((_, places)) = canary.body().unread() {
        gathering.workloads(&places, &mut world)?;
    }
    Some(world)
}

/// The uid of who controls an object.
fn holder(seen: &Objects, kind: &str, name: &str) -> Option<String> {
    let controller = router::controller(seen.get(kind, name)?)?;
    text(controller, "/uid").map(str::to_owned)
}

/// The checksum that a config had when it was seen last.
fn remembered(canary: &Canary, config: &Config) -> Option<String> {
    let status = canary.status.as_ref()?;
    let tried = status.tracked_configs.as_ref();
    let tried = tried.and_then(|all| all.get(&config.key()));
    let serving = || {
        let run = status.run.as_ref()?;
        run.promoted_configs.as_ref()?.get(&config.key())
    };
    tried.or_else(serving).cloned()
}

/// Where a world is gathered.
struct Gathering<'a> {
    stores: &'a Stores,
    facts: &'a Facts,
    cluster: &'a ClusterId,
    namespace: &'a str,
}

impl Gathering<'_> {
    /// Whether a kind has been listed; not if it can be done without and is. None if it has yet to be.
    fn is_listed<T: Projection>(&self, kind: &Kind) -> Option<bool> {
        if self.facts.is_absent(self.cluster, kind) {
            return Some(false);
        }
        let is_synced = self.stores.is_synced::<T>(self.cluster, kind);
        is_synced.then_some(true)
    }

    /// Objects that the Canary is about, of all kinds that it needs.
    fn objects(&self, settings: &Settings, canary: &Canary, world: &mut World) -> Option<()> {
        let mut needed = vec![kinds::DEPLOYMENT, kinds::SERVICE];
        let provider = Provider::of_canary(canary, settings.provider);
        needed.extend(needs::kinds_of(canary, provider.ok()));
        let names = about(canary);
        for kind in needed {
            if !self.is_listed::<Whole>(&kind)? {
                world.unseen.push(kind);
                continue;
            }
            for name in &names {
                self.object(&kind, name, world);
            }
        }
        // What the last run went by may have to be given back, where it can still be seen.
        let former = Provider::of_run(canary).into_iter().flat_map(router::kinds);
        let is_seen = |kind: &Kind| self.stores.is_synced::<Whole>(self.cluster, kind);
        for kind in former.filter(is_seen) {
            for name in &names {
                self.object(&kind, name, world);
            }
        }
        Some(())
    }

    /// What a run is about whose Canary cannot be read.
    fn workloads(&self, places: &Places, world: &mut World) -> Option<()> {
        let kind = workload(places.workload());
        if self.is_listed::<Whole>(&kind)? {
            let names = places.names();
            self.object(&kind, &names.target, world);
            self.object(&kind, &names.primary, world);
        }
        Some(())
    }

    fn object(&self, kind: &Kind, name: &str, world: &mut World) {
        let found = self
            .stores
            .get::<Whole>(self.cluster, kind, self.namespace, name);
        let Some(found) = found else {
            return;
        };
        let mut object = found.body.value();
        if let Some(fields) = object.as_object_mut() {
            // What comes out of a list has neither.
            fields.insert("apiVersion".to_owned(), json!(kind.api_version()));
            fields.insert("kind".to_owned(), json!(kind.kind));
        }
        let key = (kind.kind.to_string(), name.to_owned());
        world.metas.insert(key.clone(), found.meta.clone());
        world.objects.0.insert(key, object);
    }

    /// What the workload is configured with, and the copies of that. Where Secrets or `ConfigMap`s cannot be seen, they are
    /// not tracked.
    fn configs(&self, canary: &Canary, world: &mut World) -> Option<()> {
        let kind = Places::kind(canary);
        let workload = world.objects.get(kind, &Places::of_canary(canary).target);
        let template = workload.and_then(|one| one.pointer("/spec/template"));
        let used = template.map(references).unwrap_or_default();
        let used: BTreeSet<Config> = used.into_keys().chain(served(canary)).collect();
        let sees_maps = self.is_listed::<MapSeen>(&kinds::CONFIG_MAP)?;
        let sees_secrets = self.is_listed::<SecretSeen>(&kinds::SECRET)?;
        for config in used {
            let is_seen = match config.kind {
                ConfigKind::ConfigMap => sees_maps,
                ConfigKind::Secret => sees_secrets,
            };
            if is_seen {
                for one in [config.former(), config.copy(), config] {
                    self.config(&one, world);
                }
            } else {
                // What cannot be seen any more has not changed, as far as anybody knows.
                let before = remembered(canary, &config);
                let known = Known {
                    is_tracked: before.is_some(),
                    checksum: before.unwrap_or_default(),
                    owners: BTreeSet::new(),
                };
                world.configs.insert(config.copy(), known.clone());
                world.configs.insert(config, known);
            }
        }
        Some(())
    }

    fn config(&self, config: &Config, world: &mut World) {
        let (stores, cluster, namespace) = (self.stores, self.cluster, self.namespace);
        let name = &config.name;
        let found = match config.kind {
            ConfigKind::ConfigMap => {
                let found = stores.get::<MapSeen>(cluster, &kinds::CONFIG_MAP, namespace, name);
                found.map(|entry| (entry.meta, &entry.body.0))
            }
            ConfigKind::Secret => {
                let found = stores.get::<SecretSeen>(cluster, &kinds::SECRET, namespace, name);
                found.map(|entry| (entry.meta, &entry.body.0))
            }
        };
        if let Some((meta, seen)) = found {
            world.configs.insert(config.clone(), seen.known.clone());
            let seen = (meta.clone(), seen.owners.clone());
            world.config_metas.insert(config.clone(), seen);
        }
    }

    /// Templates and alert providers that the Canary names, and the Secrets that these name.
    fn asked(&self, canary: &Canary, world: &mut World) -> Option<()> {
        let analysis = canary.spec.analysis().unwrap_or_default();
        let metrics = analysis.metrics.iter();
        let templates = metrics.filter_map(|one| one.template_ref.as_ref());
        let templates: Vec<_> = templates.collect();
        world.templates = self.meant(&kinds::METRIC_TEMPLATE, &templates)?;
        let providers: Vec<_> = analysis
            .alerts
            .iter()
            .map(|one| &one.provider_ref)
            .collect();
        world.providers = self.meant(&kinds::ALERT_PROVIDER, &providers)?;
        let of_templates = world.templates.iter().filter_map(|(place, found)| {
            let secret = found.0.as_ref().ok()?.spec.provider.secret_ref.as_ref()?;
            Some((place.0.clone(), secret.name.clone()))
        });
        let of_providers = world.providers.iter().filter_map(|(place, found)| {
            let secret = found.0.as_ref().ok()?.spec.secret_ref.as_ref()?;
            Some((place.0.clone(), secret.name.clone()))
        });
        let named: Vec<Place> = of_templates.chain(of_providers).collect();
        world.secrets = named
            .into_iter()
            .filter_map(|place| self.secret(place))
            .collect();
        Some(())
    }

    /// What is there of the objects that are referred to.
    fn meant<T>(&self, kind: &Kind, all: &[&ObjectReference]) -> Option<BTreeMap<Place, Meant<T>>>
    where
        T: Clone,
        Meant<T>: Projection,
    {
        let mut found = BTreeMap::new();
        if all.is_empty() || !self.is_listed::<Meant<T>>(kind)? {
            return Some(found);
        }
        for reference in all {
            let namespace = reference.namespace.as_deref().unwrap_or(self.namespace);
            let name = &reference.name;
            let seen = self
                .stores
                .get::<Meant<T>>(self.cluster, kind, namespace, name);
            if let Some(seen) = seen {
                let place = (namespace.to_owned(), name.clone());
                found.insert(place, seen.body.clone());
            }
        }
        Some(found)
    }

    /// What the values of a Secret are called.
    fn secret(&self, place: Place) -> Option<(Place, BTreeSet<String>)> {
        let (kind, (namespace, name)) = (&kinds::SECRET, &place);
        let found = self
            .stores
            .get::<SecretSeen>(self.cluster, kind, namespace, name)?;
        let keys = found.body.0.keys.clone();
        Some((place, keys))
    }

    /// Where Flagger itself runs, and acts on Canaries of this namespace.
    fn original(&self, ours: Option<&str>) -> Option<String> {
        let (kind, index) = (&kinds::DEPLOYMENT, original::ORIGINAL);
        let mut all = self
            .stores
            .indexed::<Whole>(self.cluster, kind, index, original::RUNS);
        let found = all.find(|one| original::acts(&one.body.value(), self.namespace, ours))?;
        Some(place(&found.meta.namespace, &found.meta.name))
    }

    /// A Canary about the same workload, or the same Service, that has what both would make; or was there before, where nobody
    /// has it.
    fn rival(&self, own: &Item<CanarySeen>, canary: &Canary, seen: &Objects) -> Option<String> {
        // What counts from the next run on is nobody's business in this one.
        let kind = Places::kind(canary);
        let own_places = Places::of_canary(canary);
        let (target, apex) = (&own_places.target, &own_places.apex);
        let places = [target, apex].map(|name| place(self.namespace, name));
        let all = places.iter().flat_map(|place| {
            self.stores
                .indexed::<CanarySeen>(self.cluster, &kinds::CANARY, ABOUT, place)
        });
        let (created, name) = (&own.body().created, &own.meta().name);
        let names = Names::of(target, apex);
        let of_workload = holder(seen, kind, &names.primary);
        let of_service = holder(seen, &kinds::SERVICE.kind, &names.apex_primary);
        let mut rivals = all.filter(|other| {
            let Ok(read) = &other.body.read else {
                return false;
            };
            let one = Places::of_canary(read);
            let is_workload = (Places::kind(read), &one.target) == (kind, target);
            if !is_workload && one.apex != *apex {
                return false;
            }
            let holder = if is_workload {
                &of_workload
            } else {
                &of_service
            };
            match holder.as_deref() {
                Some(uid) if uid == own.meta().uid => false,
                Some(uid) if uid == other.meta.uid => true,
                _ => (&other.body.created, &other.meta.name) < (created, name),
            }
        });
        rivals.next().map(|rival| rival.meta.name.clone())
    }
}
