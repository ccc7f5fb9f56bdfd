//! The policies that apply now: all Flippers, and the default criteria while there is none. One that is invalid holds what
//! it matches, as far as that can be read, and keeps the default criteria away like every other.

use std::borrow::Cow;
use std::collections::BTreeSet;

use jiff::Timestamp;
use slipway_api::flipper::WorkloadKind;
use slipway_kernel::duration;
use slipway_kernel::window::Hours;

use crate::due::Cadence;
use crate::matching::Matcher;
use crate::observe::{Flipper, Item, Workload, World};
use crate::policy::{Invalid, Policy};
use crate::precedence::Rank;
use crate::settings::{DefaultCriteria, SHORTEST_INTERVAL, Scope, Settings};

/// A policy that applies, with what the settings make of it.
#[derive(Debug)]
pub struct Active<'w> {
    /// The policy.
    pub policy: Cow<'w, Policy>,
    /// Whose it is; none for the default criteria.
    pub flipper: Option<&'w Item<Flipper>>,
    /// What is wrong with it, if it cannot be followed: then it only holds.
    pub invalid: Option<&'w Invalid>,
    /// Its cadence, not below the floor.
    pub cadence: Cadence,
    /// Whether the floor had to be applied.
    pub is_raised: bool,
    /// The namespaces it reaches; none for all.
    pub namespaces: Option<BTreeSet<String>>,
    /// What its calendar says now.
    pub hours: Hours,
    floor: std::time::Duration,
}

impl<'w> Active<'w> {
    /// All that apply, in order of precedence; the default criteria come last.
    pub fn all(settings: &Settings, world: &'w World, now: Timestamp) -> Vec<Self> {
        let mut flippers: Vec<(Rank, &Item<Flipper>)> = world
            .flippers
            .iter()
            .map(|flipper| (rank(flipper), flipper))
            .collect();
        flippers.sort_by(|a, b| a.0.cmp(&b.0));
        let mut all: Vec<Self> = flippers
            .into_iter()
            .map(|(_, flipper)| {
                let (policy, invalid) = match &flipper.body().policy {
                    Ok(policy) => (policy, None),
                    Err(invalid) => (invalid.policy.as_ref(), Some(invalid)),
                };
                let policy = Cow::Borrowed(policy);
                Self::new(settings, policy, Some(flipper), invalid, now)
            })
            .collect();
        if let Some(criteria) = default_criteria(settings, world) {
            let policy = Cow::Owned(Policy::by_default(criteria));
            all.push(Self::new(settings, policy, None, None, now));
        }
        all
    }

    fn new(
        settings: &Settings,
        policy: Cow<'w, Policy>,
        flipper: Option<&'w Item<Flipper>>,
        invalid: Option<&'w Invalid>,
        now: Timestamp,
    ) -> Self {
        let floor = settings.floor.max(SHORTEST_INTERVAL);
        let (cadence, is_raised) = match &policy.cadence {
            Cadence::Every(interval) => (Cadence::Every((*interval).max(floor)), *interval < floor),
            at @ Cadence::At(_) => (at.clone(), false),
        };
        let hours = policy.calendar.at(now);
        Self {
            namespaces: reach(settings, &policy, flipper),
            policy,
            flipper,
            invalid,
            cadence,
            is_raised,
            hours,
            floor,
        }
    }

    /// `namespace/name`, or what the default criteria are called.
    pub fn name(&self) -> String {
        self.flipper.map_or_else(
            || "the default criteria".to_owned(),
            |flipper| format!("{}/{}", flipper.meta().namespace, flipper.meta().name),
        )
    }

    /// The namespaces that it names and does not reach.
    pub fn out_of_reach(&self) -> Vec<&str> {
        let Some(reached) = &self.namespaces else {
            return Vec::new();
        };
        let named = self.policy.namespaces.difference(reached);
        named.map(String::as_str).collect()
    }

    /// How often, for people.
    pub fn often(&self) -> String {
        match &self.cadence {
            Cadence::Every(interval) => format!("every {}", duration::render(*interval)),
            Cadence::At(_) => "by schedule".to_owned(),
        }
    }

    /// The cadence of one workload, which may have its own interval.
    pub fn cadence_of(&self, workload: &Workload) -> Cow<'_, Cadence> {
        let own = workload
            .interval
            .as_deref()
            .and_then(|text| duration::parse(text).ok());
        match own.filter(|interval| !interval.is_zero()) {
            Some(interval) => Cow::Owned(Cadence::Every(interval.max(self.floor))),
            None => Cow::Borrowed(&self.cadence),
        }
    }
}

/// The default criteria, if they may act now: there is no Flipper, and that is known. One that is invalid was meant to
/// replace them.
pub fn default_criteria<'s>(settings: &'s Settings, world: &World) -> Option<&'s DefaultCriteria> {
    let criteria = settings.default_criteria.as_ref()?;
    (world.flippers.is_empty() && world.knows_all_flippers).then_some(criteria)
}

fn rank(flipper: &Item<Flipper>) -> Rank {
    let meta = flipper.meta();
    let created = flipper.body().created;
    match &flipper.body().policy {
        Ok(policy) => Rank::of(policy, created, &meta.namespace, &meta.name),
        Err(invalid) => Rank::of_invalid(invalid, created, &meta.namespace, &meta.name),
    }
}

fn reach(
    settings: &Settings,
    policy: &Policy,
    flipper: Option<&Item<Flipper>>,
) -> Option<BTreeSet<String>> {
    let own = match (settings.scope, flipper) {
        (Scope::OwnNamespace, Some(flipper)) => &flipper.meta().namespace,
        _ if policy.namespaces.is_empty() => return None,
        _ => return Some(policy.namespaces.clone()),
    };
    let is_named = policy.namespaces.contains(own);
    let is_meant = policy.namespaces.is_empty() && !settings.protected_namespaces.contains(own);
    Some(if is_named || is_meant {
        BTreeSet::from([own.clone()])
    } else {
        BTreeSet::new()
    })
}

/// Finds the policies of workloads.
#[derive(Debug)]
pub struct Finder<'a> {
    matcher: Matcher<'a>,
    settings: &'a Settings,
    found: Vec<usize>,
}

impl<'a> Finder<'a> {
    /// A finder over policies in order of precedence.
    pub fn new(settings: &'a Settings, active: &'a [Active<'_>]) -> Self {
        let policies = active
            .iter()
            .map(|active| (active.policy.as_ref(), active.namespaces.as_ref()));
        Self {
            matcher: Matcher::new(policies, &settings.protected_namespaces),
            settings,
            found: Vec::new(),
        }
    }

    /// The policies that match a workload, the one that decides first.
    pub fn find(&mut self, kind: WorkloadKind, item: &Item<Workload>) -> &[usize] {
        let meta = item.meta();
        let is_own = kind == WorkloadKind::Deployment
            && self
                .settings
                .own_deployment
                .as_ref()
                .is_some_and(|(namespace, name)| {
                    *namespace == meta.namespace && *name == meta.name
                });
        if is_own || self.settings.skip_controlled && item.body().is_controlled {
            return &[];
        }
        let labels = &item.body().labels;
        self.matcher
            .find(kind, &meta.namespace, labels, &mut self.found);
        &self.found
    }
}
