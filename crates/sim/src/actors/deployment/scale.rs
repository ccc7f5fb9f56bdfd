//! How many pods each `ReplicaSet` is to have.

use super::set::{DESIRED, MAX, Set};
use super::sets::Rollout;

/// Gives the new set what surge leaves room for; whether it changed.
pub(super) fn up_new(rollout: &mut Rollout) -> bool {
    let (desired, surge, total) = (rollout.replicas(), rollout.surge(), rollout.total());
    let Some(new) = rollout.new_mut() else {
        return false;
    };
    let wanted = if new.replicas >= desired {
        desired
    } else {
        let room = (desired + surge - total).max(0);
        new.replicas + room.min(desired - new.replicas)
    };
    resize(new, wanted, desired, surge)
}

/// Sets the size of a set and notes why; whether it changed. A set that was just made has its size already.
fn resize(set: &mut Set, wanted: i32, desired: i32, surge: i32) -> bool {
    if set.replicas == wanted {
        return false;
    }
    set.replicas = wanted;
    set.note_replicas(desired, desired + surge);
    true
}

/// Takes from the old sets what availability allows, unhealthy pods first; whether something changed.
pub(super) fn down_old(rollout: &mut Rollout) -> bool {
    let (desired, surge) = (rollout.replicas(), rollout.surge());
    let total = rollout.total();
    let min_available = desired - rollout.max_unavailable();
    let (new_missing, new_available) = rollout.new_set().map_or((0, 0), |new| {
        (new.replicas - new.available(), new.available())
    });
    let most = total - min_available - new_missing;
    if most <= 0 || rollout.old().all(|set| set.replicas == 0) {
        return false;
    }
    let mut taken = 0;
    for set in rollout.old_mut().filter(|set| set.replicas > 0) {
        let unhealthy = (set.replicas - set.available()).max(0);
        let less = unhealthy.min(most - taken);
        if less > 0 {
            let wanted = set.replicas - less;
            taken += less;
            resize(set, wanted, desired, surge);
        }
    }
    let active = rollout.old().filter(|set| set.object_replicas() > 0);
    let available = active.map(Set::available).sum::<i32>() + new_available;
    let mut spare = available - min_available;
    let mut changed = taken > 0;
    for set in rollout.old_mut().filter(|set| set.replicas > 0) {
        let less = set.replicas.min(spare);
        if less <= 0 {
            continue;
        }
        spare -= less;
        let wanted = set.replicas - less;
        changed |= resize(set, wanted, desired, surge);
    }
    changed
}

/// Takes all old sets to zero; whether something changed.
pub(super) fn old_to_zero(rollout: &mut Rollout) -> bool {
    let (desired, surge) = (rollout.replicas(), rollout.surge());
    let mut changed = false;
    for set in rollout.old_mut() {
        changed |= resize(set, 0, desired, surge);
    }
    changed
}

/// Brings the sets to a new number of replicas, each in proportion to its size.
pub(super) fn proportionally(rollout: &mut Rollout) {
    let (desired, surge) = (rollout.replicas(), rollout.surge());
    let active = rollout.sets.iter().filter(|set| set.replicas > 0).count();
    if active <= 1 {
        let new = rollout.new_set().map(|set| set.name().to_owned());
        let newest = rollout.old().last().map(|set| set.name().to_owned());
        let latest = new.or(newest);
        let one = |set: &&mut Set| {
            if active == 1 {
                set.replicas > 0
            } else {
                Some(set.name()) == latest.as_deref()
            }
        };
        if let Some(set) = rollout.sets.iter_mut().find(one) {
            resize(set, desired, desired, surge);
        }
    } else if is_saturated(rollout) {
        for set in rollout.old_mut() {
            resize(set, 0, desired, surge);
        }
    } else if !rollout.recreates() {
        spread(rollout);
    }
}

/// Whether the new set has and can have all replicas.
fn is_saturated(rollout: &Rollout) -> bool {
    let desired = rollout.replicas();
    rollout.new_set().is_some_and(|new| {
        new.replicas == desired
            && new.number(DESIRED) == Some(desired)
            && new.available() == desired
    })
}

fn spread(rollout: &mut Rollout) {
    let (desired, surge) = (rollout.replicas(), rollout.surge());
    let allowed = if desired > 0 { desired + surge } else { 0 };
    let to_add = allowed - rollout.total();
    let before = rollout.base.replicas.unwrap_or(0);
    let mut order: Vec<usize> = (0..rollout.sets.len())
        .filter(|at| rollout.sets.get(*at).is_some_and(|set| set.replicas > 0))
        .collect();
    // Larger sets first; of equal ones the newer when there is something to give, the older when to take.
    order.sort_by_key(|at| {
        let size = rollout.sets.get(*at).map_or(0, |set| set.replicas);
        let age = i64::try_from(*at).unwrap_or(0);
        (-size, if to_add > 0 { -age } else { age })
    });
    let mut added = 0;
    for at in &order {
        let Some(set) = rollout.sets.get_mut(*at) else {
            continue;
        };
        let part = share(set, desired, surge, before, to_add, added);
        added += part;
        set.replicas += part;
    }
    for (rank, at) in order.iter().enumerate() {
        let Some(set) = rollout.sets.get_mut(*at) else {
            continue;
        };
        if rank == 0 {
            set.replicas = (set.replicas + to_add - added).max(0);
        }
        set.note_replicas(desired, desired + surge);
    }
}

/// The part of `to_add` replicas that this set gets, when `added` are given already.
fn share(set: &Set, desired: i32, surge: i32, before: i32, to_add: i32, added: i32) -> i32 {
    if to_add == 0 || to_add == added {
        return 0;
    }
    let fraction = if desired == 0 {
        -set.replicas
    } else {
        match set.number(MAX).filter(|max| *max > 0).unwrap_or(before) {
            0 => 0,
            max => rounded(set.replicas * (desired + surge), max) - set.replicas,
        }
    };
    let left = to_add - added;
    if to_add > 0 {
        fraction.min(left)
    } else {
        fraction.max(left)
    }
}

/// A fraction, rounded half up.
fn rounded(numerator: i32, denominator: i32) -> i32 {
    (2 * numerator + denominator).div_euclid(2 * denominator)
}

/// Deletes old sets at rest, the lowest revisions first, beyond what the history keeps.
pub(super) fn clean_up(rollout: &mut Rollout) {
    let Some(limit) = rollout.spec.revision_history_limit else {
        return;
    };
    let alive = |set: &&mut Set| set.object.metadata.deletion_timestamp.is_none();
    let mut old: Vec<&mut Set> = rollout.old_mut().filter(alive).collect();
    let excess = old
        .len()
        .saturating_sub(usize::try_from(limit).unwrap_or(0));
    old.sort_by_key(|set| set.order());
    for set in old.into_iter().take(excess) {
        set.deleted = set.is_idle();
    }
}
