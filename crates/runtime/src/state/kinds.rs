//! What clusters serve, each set of kinds once: thousands of clusters serve a handful.

use std::collections::BTreeSet;
use std::sync::Arc;

use slipway_kernel::member::Discovery;

/// So few sets may be kept that no cluster serves any more.
const FEW: usize = 16;

/// All sets of kinds.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    known: BTreeSet<Arc<Discovery>>,
    /// When there are so many, it is looked whether somebody has them.
    many: usize,
}

impl Kinds {
    /// A set that some cluster serves already; or this one, which none does.
    pub(super) fn shared(&mut self, kinds: Arc<Discovery>) -> Arc<Discovery> {
        if let Some(known) = self.known.get(&kinds) {
            return known.clone();
        }
        // Only when there are twice as many as were needed: to look at all of them each time would cost as much as there are
        // clusters, where each serves something else.
        if self.known.len() >= self.many.max(FEW) {
            self.known.retain(|known| Arc::strong_count(known) > 1);
            self.many = self.known.len() * 2;
        }
        self.known.insert(kinds.clone());
        kinds
    }
}

#[cfg(test)]
mod tests {
    use slipway_kernel::identity::Kind;

    use super::*;

    fn served(n: usize) -> Arc<Discovery> {
        let kind = Kind::owned(
            "toy.dev",
            "v1",
            format!("Kind{n}"),
            format!("kind{n}s"),
            true,
        );
        Arc::new(Discovery::new(vec![kind]))
    }

    #[test]
    fn what_many_serve_is_there_once_and_what_nobody_serves_goes() {
        let mut kinds = Kinds::default();
        let one = kinds.shared(served(0));
        assert!(Arc::ptr_eq(&one, &kinds.shared(served(0))));
        for n in 1..1_000 {
            kinds.shared(served(n));
        }
        assert!(kinds.known.len() <= 2 * FEW, "{}", kinds.known.len());
        assert!(Arc::ptr_eq(&one, &kinds.shared(served(0))));
        let held: Vec<_> = (0..1_000).map(|n| kinds.shared(served(n))).collect();
        assert_eq!(kinds.known.len(), held.len());
    }
}
