//! The lock of a group: taken and given back by compare-and-swap on one `ConfigMap`.

use jiff::Timestamp;
use serde_json::Value;
use slipway_api::purpose::zones as purpose;
use slipway_kernel::Purpose;
use slipway_kernel::fact::Question;
use slipway_kernel::identity::kinds;

use super::case::{Case, Rejection};
use super::ledger::{self, Ledger, Lock};
use super::others::{self, Keeping};
use crate::admit::inquiry::{Failure, Inquiry, Pending};
use crate::observe::LOCKS;

/// How often a map that others change is looked at again.
const MAX_ROUNDS: u32 = 8;

/// How far the lock of a group was taken.
pub(super) enum Taken {
    /// It is ours, in this map.
    Held(Box<Ledger>),
    /// Locks must not be kept here.
    Unguarded,
}

/// How a downscale ended, as far as the webhook knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// It was let through.
    Passed,
    /// It was not.
    Stopped,
}

impl Case<'_> {
    pub(super) fn keeping(&self) -> Keeping {
        if self.hook.tracker.is_some() {
            Keeping::Tracker
        } else {
            Keeping::Annotation
        }
    }

    fn map(&self) -> &str {
        self.hook.tracker.as_deref().unwrap_or(LOCKS)
    }

    fn map_path(&self) -> String {
        let collection = kinds::CONFIG_MAP.path(&self.review.namespace);
        format!("{collection}/{}", self.map())
    }

    /// What is locked: the group, or the one zone that is in none.
    fn scope(&self) -> String {
        let alone = || format!("statefulset/{}", self.review.name);
        self.group.map_or_else(alone, str::to_owned)
    }

    /// Takes the lock of the group, unless the other zones object already.
    pub(super) fn take(
        &self,
        inquiry: &mut Inquiry<'_>,
    ) -> Result<Result<Taken, Rejection>, Pending> {
        let list = match self.list(inquiry, 0)? {
            Ok(list) => list,
            Err(why) => return Ok(Err(why)),
        };
        for round in 0..MAX_ROUNDS {
            let (ledger, is_new) = match self.load(inquiry, round, &list)? {
                Ok(Some(found)) => found,
                Ok(None) => continue,
                Err(Failure {
                    is_no_right: true, ..
                }) if self.keeping() == Keeping::Annotation => {
                    // Once they were looked at again pods may have been told, and who objects then withdraws that.
                    if inquiry.is_answered_in(purpose::LIST_GROUP, 1) {
                        return Ok(Ok(Taken::Unguarded));
                    }
                    let nothing = Ledger::new("", "");
                    let objection = self.objection(&list, &nothing);
                    return Ok(objection.map_or(Ok(Taken::Unguarded), Err));
                }
                Err(_) => return Ok(Err(self.unloaded())),
            };
            // Once the lock is ours, what stood in the map before is of no interest any more.
            if !inquiry.is_answered_in(purpose::LOCK, round) {
                if let Some(lock) = ledger.lock(&self.scope(), self.now) {
                    if lock.holder == self.review.uid {
                        // It was taken in an earlier round, and the answer was lost.
                        return Ok(Ok(Taken::Held(Box::new(ledger))));
                    }
                    let set = lock.statefulset;
                    let why =
                        format!("statefulset {set} is already in process of updating replicas");
                    return Ok(Err(why));
                }
                if let Some(why) = self.objection(&list, &ledger) {
                    return Ok(Err(why));
                }
            }
            match self.lock(inquiry, round, ledger, is_new)? {
                Ok(object) => return Ok(Ok(Taken::Held(Box::new(Ledger::read(object))))),
                // Changed by others, or nobody knows: it is looked at again.
                Err(Failure {
                    code: Some(404 | 409 | 500..) | None,
                    ..
                }) => {}
                // A map that is there was written by somebody, so locks can be kept.
                Err(Failure {
                    is_no_right: true, ..
                }) if is_new => return Ok(Ok(Taken::Unguarded)),
                Err(_) => return Ok(Err(self.unset())),
            }
        }
        Ok(Err(self.unset()))
    }

    fn unloaded(&self) -> Rejection {
        match self.keeping() {
            Keeping::Tracker => "loading zones failed.".to_owned(),
            Keeping::Annotation => "reading the lock of the group failed.".to_owned(),
        }
    }

    fn unset(&self) -> Rejection {
        match self.keeping() {
            Keeping::Tracker => {
                "setting downscale timestamp in the zone ConfigMap failed.".to_owned()
            }
            Keeping::Annotation => "taking the lock of the group failed.".to_owned(),
        }
    }

    /// Reads the map, or makes it. None if somebody else made it meanwhile; true if it is yet to be made.
    fn load(
        &self,
        inquiry: &mut Inquiry<'_>,
        round: u32,
        list: &Value,
    ) -> Result<Result<Option<(Ledger, bool)>, Failure>, Pending> {
        let namespace = &self.review.namespace;
        match inquiry.api_again(
            (purpose::READ_LOCKS, round),
            "GET",
            &self.map_path(),
            &Value::Null,
        )? {
            Ok(object) => return Ok(Ok(Some((Ledger::read(object), false)))),
            Err(Failure {
                code: Some(404), ..
            }) => {}
            Err(failure) => return Ok(Err(failure)),
        }
        if self.keeping() == Keeping::Annotation {
            return Ok(Ok(Some((Ledger::new(namespace, self.map()), true))));
        }
        let sets = others::listed(list).unwrap_or_default();
        let sets = others::names_of(&sets);
        let body = Ledger::tracking(namespace, self.map(), sets, self.now).body();
        let path = kinds::CONFIG_MAP.path(namespace);
        Ok(
            match inquiry.api(purpose::CREATE_TRACKER, round, "POST", path, body)? {
                Ok(object) => Ok(Some((Ledger::read(object), false))),
                Err(Failure {
                    code: Some(409), ..
                }) => Ok(None),
                Err(failure) => Err(failure),
            },
        )
    }

    fn lock(
        &self,
        inquiry: &mut Inquiry<'_>,
        round: u32,
        ledger: Ledger,
        is_new: bool,
    ) -> Result<Result<Value, Failure>, Pending> {
        let lock = Lock {
            holder: self.review.uid.clone(),
            statefulset: self.review.name.clone(),
            from: self.down.from,
            to: self.down.to,
            until: ledger::until(self.now),
            abandoned: None,
        };
        let body = ledger.with_lock(&self.scope(), Some(lock)).body();
        let (method, path) = if is_new {
            ("POST", kinds::CONFIG_MAP.path(&self.review.namespace))
        } else {
            ("PUT", self.map_path())
        };
        inquiry.api_again((purpose::LOCK, round), method, &path, &body)
    }

    /// The map without the lock: with a note of the downscale if it is let through, and its time where these are kept.
    fn without_lock(&self, ledger: Ledger, ending: Ending) -> Ledger {
        let scope = self.scope();
        match ending {
            Ending::Stopped => ledger.with_lock(&scope, None),
            Ending::Passed => ledger
                .with_passed(&scope, self.now)
                .with_downscale(&self.review.name, self.now),
        }
    }

    /// Gives the lock back.
    pub(super) fn settle(
        &self,
        inquiry: &mut Inquiry<'_>,
        purpose: Purpose,
        ledger: &Ledger,
        ending: Ending,
    ) -> Result<Result<(), Failure>, Pending> {
        let scope = self.scope();
        let mut ledger = ledger.clone();
        let mut last = Failure {
            code: Some(409),
            is_no_right: false,
            message: "the lock was lost".to_owned(),
        };
        for round in 0..MAX_ROUNDS {
            let next = self.without_lock(ledger, ending);
            match inquiry.api(purpose, round, "PUT", self.map_path(), next.body())? {
                Ok(_) => return Ok(Ok(())),
                Err(Failure {
                    code: Some(409), ..
                }) => {}
                Err(failure) => return Ok(Err(failure)),
            }
            let read = inquiry.api(
                purpose::READ_LOCK_AGAIN,
                round,
                "GET",
                self.map_path(),
                Value::Null,
            )?;
            ledger = match read {
                Ok(object) => Ledger::read(object),
                Err(failure) => return Ok(Err(failure)),
            };
            let holder = ledger.lock(&scope, self.now).map(|lock| lock.holder);
            if holder.as_ref() != Some(&self.review.uid) {
                return Ok(Err(last));
            }
            "the map is changed too often".clone_into(&mut last.message);
        }
        Ok(Err(last))
    }

    /// When the lock that was taken is void.
    pub(super) fn held_until(&self, taken: &Taken) -> Option<Timestamp> {
        match taken {
            Taken::Held(ledger) => Some(ledger.lock(&self.scope(), self.now)?.until),
            Taken::Unguarded => None,
        }
    }

    /// Gives the lock back; what there is no time for is left. A lock that cannot be given back ends by itself.
    pub(super) fn give_back(
        &self,
        inquiry: &mut Inquiry<'_>,
        taken: &Taken,
    ) -> Result<Option<Question>, Pending> {
        let Taken::Held(ledger) = taken else {
            return Ok(None);
        };
        if inquiry.is_over() && !inquiry.is_answered(purpose::UNLOCK, 0) {
            let body = self
                .without_lock((**ledger).clone(), Ending::Stopped)
                .body();
            let unlock = inquiry.to_api(purpose::UNLOCK, 0, "PUT", self.map_path(), body);
            return Ok(Some(unlock));
        }
        let _ = self.settle(inquiry, purpose::UNLOCK, ledger, Ending::Stopped)?;
        Ok(None)
    }
}
