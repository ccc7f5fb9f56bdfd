//! What is kept for each way in which calls are made, and no more than so many.

use std::collections::BTreeMap;

/// What tells ways apart: connections are shared only by those who trust alike and are asked for alike.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Way {
    /// The authorities, in PEM; none means the system's.
    pub(super) trust: Option<String>,
    /// On behalf of somebody in another cluster.
    pub(super) for_others: bool,
}

/// Of too many, the one goes that was not used for longest; never that of the system's authorities, which nobody names.
pub(super) struct Clients<T> {
    most: usize,
    uses: u64,
    by_way: BTreeMap<Way, (u64, T)>,
}

impl<T: Clone> Clients<T> {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            uses: 0,
            by_way: BTreeMap::new(),
        }
    }

    pub(super) fn get(&mut self, way: &Way) -> Option<T> {
        self.uses += 1;
        let (used, client) = self.by_way.get_mut(way)?;
        *used = self.uses;
        Some(client.clone())
    }

    pub(super) fn put(&mut self, way: Way, client: T) {
        let named = |way: &&Way| way.trust.is_some();
        if self.by_way.keys().filter(named).count() >= self.most {
            let named = self.by_way.iter().filter(|(way, _)| named(way));
            let oldest = named.min_by_key(|(_, (used, _))| *used);
            let oldest = oldest.map(|(way, _)| way.clone());
            // Connections under way go on; whoever comes next makes new ones.
            oldest.and_then(|oldest| self.by_way.remove(&oldest));
        }
        self.uses += 1;
        self.by_way.insert(way, (self.uses, client));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(trust: Option<&str>) -> Way {
        Way {
            trust: trust.map(str::to_owned),
            for_others: false,
        }
    }

    #[test]
    fn the_one_that_was_not_used_for_longest_goes_and_never_the_systems() {
        let mut clients = Clients::new(2);
        clients.put(of(None), 0);
        clients.put(of(Some("a")), 1);
        clients.put(of(Some("b")), 2);
        assert_eq!(clients.get(&of(Some("a"))), Some(1));
        clients.put(of(Some("c")), 3);
        assert_eq!(clients.get(&of(Some("b"))), None);
        for n in 10..100 {
            clients.put(of(Some(&n.to_string())), n);
            assert_eq!(clients.by_way.len(), 3);
        }
        assert_eq!(clients.get(&of(None)), Some(0));
        assert_eq!(clients.get(&of(Some("99"))), Some(99));
    }

    #[test]
    fn who_asks_for_others_has_connections_of_their_own() {
        let mut clients = Clients::new(2);
        clients.put(of(None), 0);
        let others = Way {
            for_others: true,
            ..of(None)
        };
        assert_eq!(clients.get(&others), None);
    }
}
