//! Writes statuses, after the steps.

use slipway_kernel::plan::Status;
use slipway_kernel::store::Meta;
use tokio::time::Instant;

use super::{Doubt, Ended, Execution, Report, settle::Found};
use crate::request::{Outcome, Wanted};
use crate::status::Gate;

impl Execution {
    pub(super) async fn statuses(&self, report: &mut Report) {
        for status in &self.plan.statuses {
            let ended = self.status(status).await;
            if !report.add(ended) {
                self.stopped
                    .store(true, std::sync::atomic::Ordering::Release);
                return;
            }
        }
    }

    async fn status(&self, status: &Status) -> Ended {
        let object = status.target.object();
        let every = self.shared.settings.status_every;
        let gate = {
            let state = self.shared.lock();
            state.statuses.gate(status, every, Instant::now())
        };
        match gate {
            Gate::Write => {}
            Gate::Futile => return Ended::Well,
            Gate::Wait(until) => return Ended::Waits(self.moment(until)),
        }
        if let Some(early) = self.too_early(object, Some(&status.target)) {
            return early;
        }
        let body = serde_json::json!({"status": status.body});
        let wanted = Wanted::patch(&status.target, "/status", body);
        let doubt = Doubt::of(Some(&status.target));
        let Some(outcome) = self.write(object, wanted, ("patch", "status")).await else {
            return Ended::Deposed;
        };
        match outcome {
            Outcome::Done(value) => {
                let now = Instant::now();
                let mut state = self.shared.lock();
                state.statuses.written(status, Some(&value), now);
                drop(state);
                self.written(object, &value);
                Ended::Well
            }
            Outcome::Absent(_) => match self.read(object, &doubt.uid).await {
                // The object is there, so it is its status that is not.
                Found::Object(value) if Meta::of(&value).uid == doubt.uid => {
                    let mut state = self.shared.lock();
                    state.statuses.written(status, None, Instant::now());
                    Ended::Well
                }
                _ => Ended::Outdated,
            },
            outcome => self.fell_short(object, doubt, outcome).await,
        }
    }
}
