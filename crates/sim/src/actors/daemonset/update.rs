//! Rolling updates of a `DaemonSet`.

use k8s_openapi::api::core::v1::{Node, Pod};

use super::super::amount;
use super::super::pod;
use super::super::replicaset::delete;
use super::super::write::Write;
use super::{Daemons, make};

/// How many nodes may have a second pod, and how many may be without an available one.
pub(super) fn bounds(daemons: &Daemons<'_>, nodes: i32) -> (i32, i32) {
    let strategy = daemons.spec.update_strategy.as_ref();
    let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
    if !daemons.rolls() {
        return (0, 0);
    }
    let part = |part: Option<&_>| part.map_or(0, |part| amount::of(part, nodes, true));
    let surge = part(rolling.and_then(|rolling| rolling.max_surge.as_ref()));
    let unavailable = part(rolling.and_then(|rolling| rolling.max_unavailable.as_ref()));
    if surge == 0 && unavailable == 0 {
        return (0, 1);
    }
    (surge, unavailable)
}

/// The pod of the present revision and the one of an earlier, among those on a node that stay. None if there are more.
fn pair<'a>(daemons: &'a Daemons<'_>, node: &Node) -> Option<(Option<&'a Pod>, Option<&'a Pod>)> {
    let (mut new, mut old) = (None, None);
    for pod in daemons
        .on(node)
        .iter()
        .filter(|pod| !pod::is_terminating(pod))
    {
        let place = if daemons.is_updated(pod) {
            &mut new
        } else {
            &mut old
        };
        if place.replace(&**pod).is_some() {
            return None;
        }
    }
    Some((new, old))
}

/// Replaces as many outdated pods as the bounds allow.
pub(super) fn roll(daemons: &Daemons<'_>, writes: &mut Vec<Write>) {
    let wanted: Vec<&Node> = daemons
        .nodes
        .iter()
        .map(|node| &***node)
        .filter(|node| daemons.belongs(node).0 || !daemons.on(node).is_empty())
        .collect();
    let desired = wanted.iter().filter(|node| daemons.belongs(node).0).count();
    let desired = i32::try_from(desired).unwrap_or(i32::MAX);
    let (surge, unavailable) = bounds(daemons, desired);
    if surge == 0 {
        replace(daemons, &wanted, unavailable, writes);
    } else {
        add(daemons, &wanted, surge, writes);
    }
}

/// Deletes outdated pods; those that are not available in any case.
fn replace(daemons: &Daemons<'_>, nodes: &[&Node], most: i32, writes: &mut Vec<Write>) {
    let mut missing = 0;
    let mut candidates = Vec::new();
    for node in nodes {
        match pair(daemons, node) {
            None | Some((None, None) | (Some(_), Some(_))) => missing += 1,
            Some((Some(new), None)) => missing += i32::from(!daemons.is_available(new)),
            Some((None, Some(old))) if !daemons.is_available(old) => {
                writes.push(delete(old));
                missing += 1;
            }
            Some((None, Some(old))) => candidates.push(old),
        }
    }
    let room = usize::try_from(most - missing).unwrap_or(0);
    writes.extend(candidates.into_iter().take(room).map(delete));
}

/// Adds new pods beside outdated ones, which go when the new one is available.
fn add(daemons: &Daemons<'_>, nodes: &[&Node], surge: i32, writes: &mut Vec<Write>) {
    let mut added = 0;
    let mut candidates = Vec::new();
    for node in nodes {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        match pair(daemons, node) {
            None => added += 1,
            Some((_, None)) => {}
            Some((None, Some(old))) if !daemons.is_available(old) => {
                writes.push(make::create(daemons, name));
            }
            Some((None, Some(_))) => candidates.push(name),
            Some((Some(new), Some(_))) if !daemons.is_available(new) => added += 1,
            Some((Some(_), Some(old))) => writes.push(delete(old)),
        }
    }
    let room = usize::try_from(surge - added).unwrap_or(0);
    let creates = candidates.into_iter().take(room);
    writes.extend(creates.map(|node| make::create(daemons, node)));
}
