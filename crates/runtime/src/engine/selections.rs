//! Interests in one kind by one projection share a store, which is found by these two. So they must select the same
//! objects: what the list of one of them does not have would be gone for the other one.

use std::collections::BTreeMap;

use slipway_kernel::identity::ClusterId;
use slipway_kernel::interest::Interest;
use slipway_kernel::store::StoreKey;

use crate::error::Error;

/// Whether all interests that share a store select the same objects.
pub(super) fn agree(interests: impl IntoIterator<Item = Interest>) -> Result<(), Error> {
    let mut selections: BTreeMap<StoreKey, String> = BTreeMap::new();
    let places = [ClusterId::local(), ClusterId::remote("any")];
    for interest in interests {
        for place in places.iter().filter(|place| interest.at.holds(place)) {
            let other = interest.selection();
            if let Some(one) = selections.insert(interest.store(place), other.clone())
                && one != other
            {
                return Err(Error::Interests {
                    kind: interest.kind.to_string(),
                    projection: interest.projection,
                    one,
                    other,
                });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use slipway_kernel::identity::kinds;
    use slipway_kernel::interest::Where;
    use slipway_kernel::parts::Parts;
    use slipway_kernel::store::{Projection, Undecodable};

    use super::*;

    #[derive(Debug)]
    struct Map;

    impl Projection for Map {
        const READS: Parts = Parts::NONE;

        fn project(_: &Value) -> Result<Self, Undecodable> {
            Ok(Self)
        }
    }

    #[derive(Debug)]
    struct OtherMap;

    impl Projection for OtherMap {
        const READS: Parts = Parts::NONE;

        fn project(_: &Value) -> Result<Self, Undecodable> {
            Ok(Self)
        }
    }

    fn maps<T: Projection>() -> Interest {
        Interest::of::<T>(kinds::CONFIG_MAP, |_, _, _| Vec::new())
    }

    #[test]
    fn interests_that_share_a_store_select_the_same() {
        let labelled = || Interest {
            labels: "a=b".to_owned(),
            ..maps::<Map>()
        };
        let ways = [
            maps::<Map>(),
            labelled(),
            maps::<Map>().own("status"),
            maps::<Map>().own("tracker"),
            maps::<Map>().named("status"),
        ];
        for (at, one) in ways.iter().enumerate() {
            for (other_at, other) in ways.iter().enumerate() {
                let found = agree([one.clone(), other.clone()]);
                assert_eq!(found.is_ok(), at == other_at, "{one:?} {other:?}");
            }
        }
        let problem = agree([maps::<Map>().own("status"), labelled()]);
        let problem = problem.err().map(|error| error.to_string());
        let problem = problem.unwrap_or_default();
        assert!(
            problem.contains("status in the operator's namespace and a=b:"),
            "{problem}"
        );
    }

    #[test]
    fn what_is_watched_at_home_need_not_be_what_is_watched_in_members() {
        let there = |at| maps::<Map>().named("status").at(at);
        assert!(agree([maps::<Map>(), there(Where::Members)]).is_ok());
        assert!(agree([maps::<Map>(), there(Where::Both)]).is_err());
        let slot = maps::<Map>().labelled("a=b").in_slot("a=b");
        assert!(agree([maps::<Map>(), slot]).is_ok());
    }

    #[test]
    fn another_projection_and_another_kind_have_stores_of_their_own() {
        let pods = Interest::of::<Map>(kinds::POD, |_, _, _| Vec::new());
        let all = [
            maps::<Map>(),
            maps::<OtherMap>().own("status"),
            pods.named("a"),
        ];
        assert!(agree(all).is_ok());
    }
}
