//! The order of a merged list: what the patch names in the order of the patch, with the rest kept in its places.

use serde_json::Value;

use super::go;
use super::strategic::{Merged, Refusal, as_map, key_of};

/// What a list holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Elements {
    Scalars,
    Maps,
}

impl Elements {
    /// All items of all lists are of one type.
    pub(super) fn of(lists: &[&[Value]]) -> Merged<Self> {
        let mut all = lists.iter().flat_map(|list| list.iter());
        let Some(first) = all.next() else {
            let text = "no elements in any of the given slices";
            return Err(Refusal::Other(text.to_owned()));
        };
        if first.is_array() {
            return Err(Refusal::ListOfLists);
        }
        let name = go::type_name(first);
        if first.is_null() || all.any(|item| go::type_name(item) != name) {
            let shown: Vec<String> = lists.iter().map(|list| go::print_list(list)).collect();
            return Err(Refusal::Other(format!(
                "list element types are not identical: [{}]",
                shown.join(" ")
            )));
        }
        Ok(if first.is_object() {
            Self::Maps
        } else {
            Self::Scalars
        })
    }
}

/// Splits `items` into those that are in `by` and the others; by key if there is one, else by value.
pub(super) fn partition(
    items: Vec<Value>,
    by: &[Value],
    merge_key: &str,
) -> Merged<(Vec<Value>, Vec<Value>)> {
    if merge_key.is_empty() {
        return Ok(items.into_iter().partition(|item| by.contains(item)));
    }
    let (mut inside, mut outside) = (Vec::new(), Vec::new());
    for item in items {
        let key = key_of(as_map(&item)?, merge_key)?;
        if contains_key(by, merge_key, key)? {
            inside.push(item);
        } else {
            outside.push(item);
        }
    }
    Ok((inside, outside))
}

fn contains_key(items: &[Value], merge_key: &str, key: &Value) -> Merged<bool> {
    for (i, item) in items.iter().enumerate() {
        let Some(map) = item.as_object() else {
            return Err(Refusal::Other(format!("value for key {i} is not a map")));
        };
        if map.get(merge_key) == Some(key) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Merges `ours`, in the order of `our_order`, with `theirs`, in the order of `their_order`: each of theirs goes
/// before the first of ours that stood behind it.
pub(super) fn interleave(
    ours: Vec<Value>,
    theirs: Vec<Value>,
    our_order: &[Value],
    their_order: &[Value],
    merge_key: &str,
    elements: Elements,
) -> Merged<Vec<Value>> {
    let ours = sorted(ours, our_order, merge_key, elements)?;
    let theirs = sorted(theirs, their_order, merge_key, elements)?;
    let place = |item: &Value| place(their_order, item, merge_key, elements);
    let mut all = Vec::with_capacity(ours.len() + theirs.len());
    let mut theirs = theirs.into_iter().peekable();
    for item in ours {
        let here = place(&item);
        while let Some(next) = theirs
            .next_if(|t| matches!((place(t), here), (Some(before), Some(here)) if before < here))
        {
            all.push(next);
        }
        all.push(item);
    }
    all.extend(theirs);
    Ok(all)
}

fn sorted(
    items: Vec<Value>,
    order: &[Value],
    merge_key: &str,
    elements: Elements,
) -> Merged<Vec<Value>> {
    if elements == Elements::Maps {
        for item in items.iter().chain(order) {
            key_of(as_map(item)?, merge_key)?;
        }
    }
    let placed = items
        .into_iter()
        .map(|item| (place(order, &item, merge_key, elements), item));
    let mut placed: Vec<(Option<usize>, Value)> = placed.collect();
    if placed.len() > INSERTED || placed.iter().all(|(place, _)| place.is_some()) {
        placed.sort_by_key(|(place, _)| place.unwrap_or(usize::MAX));
    } else {
        insert_each(&mut placed);
    }
    Ok(placed.into_iter().map(|(_, item)| item).collect())
}

/// Up to how many items Go's stable sort inserts one by one.
const INSERTED: usize = 20;

/// Sorting as Go does it where the order does not name all items: those count as less than any other, and others as
/// less than those, so that the outcome depends on the way of sorting.
fn insert_each(placed: &mut [(Option<usize>, Value)]) {
    let is_less = |a: Option<usize>, b: Option<usize>| match (a, b) {
        (Some(a), Some(b)) => a < b,
        _ => true,
    };
    for end in 1..placed.len() {
        for at in (1..=end).rev() {
            let place = |i: usize| placed.get(i).and_then(|(place, _)| *place);
            if !is_less(place(at), place(at - 1)) {
                break;
            }
            placed.swap(at, at - 1);
        }
    }
}

fn place(list: &[Value], item: &Value, merge_key: &str, elements: Elements) -> Option<usize> {
    match elements {
        Elements::Maps => {
            let key = item.get(merge_key);
            list.iter().position(|other| other.get(merge_key) == key)
        }
        Elements::Scalars => list.iter().position(|other| other == item),
    }
}
