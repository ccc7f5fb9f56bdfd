//! Looks at a kind again and again that may not be watched.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use kube::runtime::watcher;
use serde_json::Value;
use slipway_kernel::store::Name;
use tokio::time::{Instant, sleep, timeout};

use super::bounds::Taken;
use super::whole::{listed, page};
use super::{End, Failure, List, News, Watch};

/// How a kind can be looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Look {
    /// It may be listed.
    List,
    /// The one object of this name may be read.
    Get(Arc<str>),
}

/// Why a look has shown nothing.
enum Unseen {
    Failed(Box<kube::Error>),
    /// One of its answers did not come in time.
    Unanswered,
}

impl Watch {
    /// Looks until it is time to see whether the kind may be watched after all.
    pub(super) async fn poll(&self, look: Look, why: String) -> End {
        let until = Instant::now() + self.times.missing;
        let mut why = Some(why);
        // At once: the watch may have been refused long after the last list, and whether listing is forbidden too has to be
        // known.
        let mut due = true;
        while Instant::now() < until {
            if !due {
                tokio::select! {
                    biased;
                    () = self.control.again.notified() => {}
                    () = sleep(self.times.poll) => {}
                }
            }
            due = false;
            if let Some(end) = self.look_once(&look, &mut why).await {
                return end;
            }
        }
        End::Relist
    }

    /// Lists now and then what nobody has to see at once, until it is to be watched.
    pub(super) async fn look_now_and_then(&self) -> End {
        while let Some(every) = self.control.quiet() {
            if let Some(end) = self.look_once(&Look::List, &mut None).await {
                return end;
            }
            self.control.seen.store(true, Ordering::Release);
            tokio::select! {
                biased;
                () = self.control.again.notified() => {}
                () = sleep(every) => {}
            }
        }
        End::Relist
    }

    /// Looks once, and tells what there is; gives how it ends, if it does. `why` is told with the first answer.
    async fn look_once(&self, look: &Look, why: &mut Option<String>) -> Option<End> {
        if self.control.is_crowded() {
            return Some(End::Relist);
        }
        let round = self.control.round.load(Ordering::Acquire);
        self.tell(News::Listing(self.places.last()));
        match self.look(look).await {
            Ok(names) => {
                self.control.in_time();
                if let Some(why) = why.take() {
                    self.tell(News::Polled(why));
                }
                let told = self.tell(News::Listed(names, round));
                self.complete();
                (!told).then_some(End::Deaf)
            }
            Err(Unseen::Failed(error)) => Some(self.ended(look, *error)),
            Err(Unseen::Unanswered) => {
                self.fail(Failure::no_answer(self.times.answer));
                Some(End::Failed)
            }
        }
    }

    /// Tells all objects that there are; gives their names. As long as answers come it takes as long as there are pages.
    async fn look(&self, look: &Look) -> Result<BTreeSet<Name>, Unseen> {
        let mut list = List::default();
        if let Look::Get(name) = look {
            let found = self.in_time(self.object(name)).await?;
            self.tell_page(&mut list, found).await;
            return Ok(list.names);
        }
        let (mut params, mut taken) = (listed(&self.key), Taken::nothing(self.bounds));
        loop {
            let what = (&self.key, self.reads);
            let page = page(&self.listener, what, &params, &mut taken);
            let page = self.in_time(page).await?;
            self.tell_page(&mut list, page.objects).await;
            match page.next {
                Some(token) => params = params.limit(taken.next_page()).continue_token(&token),
                None => return Ok(list.names),
            }
        }
    }

    /// One answer.
    async fn in_time<T>(
        &self,
        answer: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, Unseen> {
        let answered = timeout(self.times.answer, answer).await;
        let answered = answered.map_err(|_| Unseen::Unanswered)?;
        answered.map_err(|error| Unseen::Failed(Box::new(error)))
    }

    async fn tell_page(&self, list: &mut List, objects: impl IntoIterator<Item = Value>) {
        for object in objects {
            list.add(object);
        }
        let page = News::Page(std::mem::take(&mut list.page));
        self.tell_much(page).await;
    }

    /// What follows from a look that was refused.
    fn ended(&self, look: &Look, error: kube::Error) -> End {
        let error = match look {
            Look::List => watcher::Error::InitialListFailed(error),
            // Neither may be read: there is no other way left.
            Look::Get(_) => watcher::Error::WatchFailed(error),
        };
        self.failed(&error).unwrap_or(End::Failed)
    }
}
