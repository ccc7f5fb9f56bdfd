//! How each watch is doing, as far as the loop has heard.

use std::sync::Arc;
use std::time::Duration;

use slipway_kernel::interest::Need;
use slipway_kernel::store::StoreKey;
use tokio::time::Instant;

use super::Trust;
use crate::watch::{Control, WatchKey};

/// How a watch is doing.
#[derive(Debug, Clone)]
pub(crate) struct WatchState {
    pub(crate) need: Need,
    pub(crate) listed: bool,
    pub(crate) off: bool,
    pub(crate) trust: Trust,
    pub(crate) control: Arc<Control>,
    /// What is fed by it.
    pub(crate) stores: Vec<Arc<StoreKey>>,
    /// What we had written and been told before the list that is being made.
    pub(crate) place: u64,
    /// The round whose list is waited for, because versions have run backwards; `u64::MAX` if it has not been asked for yet.
    pub(crate) rewound: Option<u64>,
    /// When the list began that is under way, and the one that was taken in last.
    pub(crate) lists_since: Option<Instant>,
    pub(crate) listed_since: Option<Instant>,
}

/// A kind that has failed for this long is out of sync: a stream that breaks now and then is none.
pub(crate) const FAILING: Duration = Duration::from_secs(5);

impl WatchState {
    /// Whether it is of a kind of a member that can be done without, and fails for longer than a stream that breaks now and then: it may
    /// fail for ever, so nobody waits for it.
    pub(crate) fn is_done_without(&self, key: &WatchKey) -> bool {
        let is_optional = self.need == Need::Optional && !key.cluster.is_local();
        let failing = self.control.failing().filter(|_| is_optional);
        failing.is_some_and(|(since, _)| since.elapsed() >= FAILING)
    }

    /// Has a list made that begins after a moment; gives the number of the one to wait for, none if one has been taken in. One
    /// that is under way and began late enough is not begun again: where that takes long, it would never come to its end.
    pub(crate) fn list_after(&self, moment: Instant) -> Option<u64> {
        let is_later = |began: Option<Instant>| began.is_some_and(|began| began > moment);
        if is_later(self.lists_since) {
            return Some(self.control.round());
        }
        (!is_later(self.listed_since)).then(|| self.control.relist())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch() -> WatchState {
        WatchState {
            need: Need::Required,
            listed: true,
            off: false,
            trust: Trust::Sound,
            control: Arc::new(Control::new(1)),
            stores: Vec::new(),
            place: 0,
            rewound: None,
            lists_since: None,
            listed_since: None,
        }
    }

    #[test]
    fn only_what_was_not_listed_since_is_listed_again_and_no_list_of_since_then_begins_again() {
        let silence = Instant::now();
        let (before, after) = (silence, silence + Duration::from_secs(1));
        let asked = |listed, lists| {
            let watch = WatchState {
                listed_since: listed,
                lists_since: lists,
                ..watch()
            };
            let before = watch.control.round();
            let wanted = watch.list_after(silence);
            let is_begun_again = watch.control.round() > before;
            (wanted.is_some(), is_begun_again)
        };
        assert_eq!(asked(None, None), (true, true));
        assert_eq!(asked(Some(before), None), (true, true));
        assert_eq!(asked(Some(before), Some(before)), (true, true));
        assert_eq!(asked(Some(before), Some(after)), (true, false), "under way");
        assert_eq!(asked(Some(after), None), (false, false), "taken in");
        assert_eq!(asked(Some(after), Some(after)), (true, false));
    }
}
