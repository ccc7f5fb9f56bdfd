//! What a capability brings along for oracles: its own ones, and what the general ones must know of it.

use slipway_api::purpose::Purpose;

use super::{Case, Findings, Oracle};
use crate::history::{Change, Object, Request};

/// What oracles must know of one capability. They learn nothing else of it.
pub struct Specifics {
    /// Its name.
    pub name: &'static str,
    /// Its Lease.
    pub lease: &'static str,
    /// What is true of this capability only.
    pub oracles: &'static [Oracle],
    /// How the names of `ConfigMap`s begin that nobody else writes, in any namespace.
    pub maps: &'static [&'static str],
    /// How the names of `ConfigMap`s and Secrets end that it makes as copies of others, in their namespaces.
    pub copies: &'static [&'static str],
    /// What of the end depends on the faults.
    pub fleeting: Fleeting,
    /// The kinds whose status it writes: `group/plural`, and the kind.
    pub statuses: &'static [(&'static str, &'static str)],
    /// The plurals of kinds by which people tell it what to do: who never hears of a change goes on as before.
    pub orders: &'static [&'static str],
    /// Resources, as `group/plural`, whose spec it keeps as people want it now: how often it changes that is counted, and what they
    /// wanted while it was held up may be left out.
    pub superseded: &'static [&'static str],
    /// Whether it makes of this workload, in steps, what people want of it now: what they wanted while it was held up for long
    /// is left out, with its steps.
    pub follows: fn(&Case<'_>, &Object) -> bool,
    /// Whether a patch is right whatever has changed meanwhile: also an apply of what others have a part in.
    pub is_unconditional: fn(&Request) -> bool,
    /// Whether a Secret that is written anywhere is one that it makes.
    pub has_secret: fn(&Request) -> bool,
    /// Whether a change is its business.
    pub may_change: fn(&Case<'_>, &Change, &Request) -> bool,
    /// Purposes of writes that disrupt nobody, and have preconditions of their own.
    pub harmless: &'static [Purpose],
    /// Checks that in the end nothing is left that is due and unexplained.
    pub nothing_left: fn(&Case<'_>, &mut Findings),
}

/// What of a capability's objects depends on the faults. Names of fields are those of the kinds whose status it writes.
///
/// All of it is printed beside what was found; a field that comes to it and is not printed does not compile.
#[derive(Debug, Clone, Copy)]
pub struct Fleeting {
    /// Annotations with dates and names that depend on the faults.
    pub annotations: &'static [&'static str],
    /// How the names of those of its `ConfigMap`s begin whose content depends on the faults.
    pub maps: &'static [&'static str],
    /// Fields that say when something was: that there is one is compared.
    pub times: &'static [&'static str],
    /// Lists whose order says nothing: what is in them is known by its name.
    pub lists: &'static [&'static str],
    /// Fields that tell what happened one after the other: compared where nothing was held up.
    pub annals: &'static [&'static str],
    /// Hashes of what has such things in it, in any object.
    pub hashes: &'static [&'static str],
    /// Names that have a version of another object in them, in any object.
    pub stable: Option<Stable>,
}

/// Names of which a part is compared.
#[derive(Debug, Clone, Copy)]
pub struct Stable {
    /// What is not compared.
    pub hides: &'static str,
    /// What is compared of one of them; none of all other texts.
    pub of: fn(&str) -> Option<&str>,
}

impl Fleeting {
    /// Nothing.
    pub const NONE: Self = Self {
        annotations: &[],
        maps: &[],
        times: &[],
        lists: &[],
        annals: &[],
        hashes: &[],
        stable: None,
    };
}

/// Whether this is the path of a `ConfigMap` that only the operator writes.
pub(super) fn is_own_map(case: &Case<'_>, path: &str) -> bool {
    let name = path.rsplit_once("/configmaps/").map(|(_, name)| name);
    name.is_some_and(|name| is_own_name(case, name))
}

/// Whether only the operator writes `ConfigMap`s of this name.
pub(super) fn is_own_name(case: &Case<'_>, name: &str) -> bool {
    let mut all = case.specifics.iter().flat_map(|one| one.maps);
    all.any(|own| name.starts_with(own))
}
