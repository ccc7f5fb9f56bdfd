//! Whether a kind is defined: discovery's word, confirmed; and whether there is a right to it.
//!
//! A 404 does not say so (an API server that has just started gives it for kinds that are there), nor does a 403: the API
//! refuses to list what may not be listed before it says that there is no such kind. What was seen before is believed to be
//! there for longer: its absence lets go what it forbade.

use std::sync::atomic::Ordering;
use std::time::Duration;

use http::Request;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use tokio::time::{Instant, sleep, timeout};

use super::{End, Failure, News, Watch};

/// Between two questions whether a kind is defined, while it may be.
const ASK_AGAIN: Duration = Duration::from_secs(2);
/// For this long discovery has to say the same of a kind that was seen before.
const CONFIRMED: Duration = Duration::from_secs(20);
/// The same of a kind that was never seen: it may be installed all the same, and an API server that has just started knows
/// its definitions a little later than it answers.
const AT_FIRST: Duration = Duration::from_secs(4);
/// How often a kind that is not defined is looked for.
const LOOK_OUT: Duration = Duration::from_secs(5);

/// What discovery says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Defined {
    Yes,
    No,
    /// It says nothing.
    Unknown,
}

impl Watch {
    /// What follows where a kind is not found or may not be listed. If it is not defined, waits until it is; if it is, and
    /// may not be listed, it is hidden, which must not look like "there are none".
    pub(super) async fn absent(&self, failure: Failure) -> End {
        if self.is_undefined().await {
            self.tell(News::Missing(failure.clone()));
            self.until_defined(&failure).await;
            self.tell(News::Defined);
            return End::Relist;
        }
        if failure.code() == Some(403) {
            self.tell(News::Hidden(failure));
        } else {
            self.fail(failure);
        }
        End::Failed
    }

    /// What follows where a kind that can be done without may not be listed. It is done without only if the API says that
    /// the right is missing: rights that are not in effect yet, or an authorizer that does not answer, forbid as well. Where
    /// it may not be asked either, a minute of refusals has to do.
    pub(super) async fn forbidden(&self, failure: Failure) -> End {
        let kind = self.key.kind.path(&self.key.namespace);
        let path = match &self.key.name {
            Some(name) if !self.key.namespace.is_empty() => format!("{kind}/{name}"),
            _ => kind,
        };
        let missing = self
            .rights
            .is_hidden_for_long(&self.plain, (&path, LOOK_OUT));
        if missing.await {
            self.tell(News::Missing(failure));
            return End::Denied;
        }
        self.fail(failure);
        End::Failed
    }

    /// Whether discovery says so each time that it is asked; where it says nothing, the kind counts as defined.
    async fn is_undefined(&self) -> bool {
        if self.defined().await != Defined::No {
            return false;
        }
        let was_seen = self.control.seen.load(Ordering::Acquire);
        if was_seen {
            self.tell(News::Doubtful);
        }
        let patience = if was_seen { CONFIRMED } else { AT_FIRST };
        let confirmed = Instant::now() + patience;
        loop {
            sleep(ASK_AGAIN).await;
            if self.defined().await != Defined::No {
                return false;
            }
            if Instant::now() >= confirmed {
                return true;
            }
        }
    }

    async fn until_defined(&self, failure: &Failure) {
        loop {
            let is_asked = tokio::select! {
                biased;
                () = self.control.again.notified() => true,
                () = sleep(LOOK_OUT) => false,
            };
            if self.defined().await == Defined::Yes {
                return;
            }
            // Somebody waits for a list.
            if is_asked {
                self.tell(News::Missing(failure.clone()));
            }
        }
    }

    async fn defined(&self) -> Defined {
        let kind = &self.key.kind;
        if kind.group.is_empty() {
            return Defined::Yes;
        }
        let wanted = Request::get(format!("/apis/{}", kind.api_version())).body(Vec::new());
        let Ok(wanted) = wanted else {
            return Defined::Unknown;
        };
        let served = self.plain.request::<APIResourceList>(wanted);
        match timeout(LOOK_OUT, served).await {
            Ok(Ok(served)) if served.resources.iter().any(|one| one.name == kind.plural) => {
                Defined::Yes
            }
            Ok(Ok(_)) => Defined::No,
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => Defined::No,
            _ => Defined::Unknown,
        }
    }
}
