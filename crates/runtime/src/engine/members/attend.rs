//! Asks a member now and then whether it answers, which cluster it is, and which kinds it serves.
//!
//! One small read for the whole member, so that its watches need none of their own: a member in which nothing happens costs one
//! request in each [`crate::settings::Members::check`], and one that does not answer one in at most [`BACKOFF`].

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use slipway_api::purpose::runtime::{DISCOVERY, IDENTITY};
use slipway_kernel::identity::{ClusterId, Kind, ObjectRef, kinds};
use slipway_kernel::member::Discovery;
use slipway_kernel::store::Meta;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::channel::Channel;
use crate::message::Message;
use crate::request::{ApiRequest, Outcome};
use crate::settings::Backoff;
use crate::state::{Asked, Doubts, Shared};

/// Between questions to a member that does not answer.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_secs(1),
    most: Duration::from_secs(30),
};

/// However often somebody doubts it, a member is not asked more often.
const LEAST: Duration = Duration::from_secs(1);

/// Members are asked at whole multiples of this many milliseconds.
const TOGETHER: i64 = 250;

/// How often kinds are asked for, unless something hints that they have changed.
const DISCOVER: Duration = Duration::from_mins(10);
/// The same of those of a cluster that has taken the place of another one: there may be no end of that.
const SWAPPED: Duration = Duration::from_mins(1);
/// The same where nothing was said that can be understood.
const UNTOLD: Duration = Duration::from_secs(10);

/// A member's kinds have no more bytes than this.
const LARGEST_DISCOVERY: usize = 4 << 20;

/// The namespace by whose uid a cluster is known: it is made with the cluster, and nobody can delete it.
const SYSTEM: &str = "kube-system";

/// An answer to the question which cluster it is has no more bytes than this: it may come each second, and whoever reads it does nothing
/// else meanwhile.
const LARGEST: usize = 1 << 20;

/// What a member says to the question which cluster it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    /// The one of this uid.
    Uid(String),
    /// That we may not know.
    Forbidden(String),
    /// That it does not know us.
    Refused(String),
    /// That it cannot say so now.
    Failed(String),
    /// Nothing, or nothing that can be understood: whatever was open may be dead.
    Silent(String),
}

impl Said {
    /// Whether it answers what it was asked, if only that it may not say so.
    pub(crate) fn is_well(&self) -> bool {
        matches!(self, Self::Uid(_) | Self::Forbidden(_))
    }
}

/// Asks a member which cluster it is.
pub(crate) async fn identify(client: &Channel, timeout: Duration) -> Said {
    let object = ObjectRef::local(kinds::NAMESPACE, "", SYSTEM);
    let wanted = ApiRequest::get(&object).at_most(LARGEST);
    let wanted = wanted.traced(format!("purpose={IDENTITY}"));
    match wanted.send(client, timeout).await {
        Outcome::Done(value) => {
            let uid = Meta::of(&value).uid;
            if uid.is_empty() {
                return Said::Failed(format!("namespace {SYSTEM} has no uid"));
            }
            Said::Uid(uid)
        }
        Outcome::Refused(refused) if refused.is_forbidden() => Said::Forbidden(refused.message),
        Outcome::Refused(refused) if refused.reason.as_str() == "Unauthorized" => {
            Said::Refused(refused.message)
        }
        Outcome::Unknown(refused, _) if refused.is_unanswered() => Said::Silent(refused.message),
        // Whoever says that it fails is there, and so are its streams.
        Outcome::Unknown(refused, _) | Outcome::Refused(refused) => Said::Failed(refused.message),
        Outcome::Absent(_) => Said::Failed(format!("there is no namespace {SYSTEM}")),
        Outcome::Conflict | Outcome::Busy(_) => Said::Failed("it has too much to do".to_owned()),
    }
}

/// Somebody who attends to a member.
pub(super) struct Attend {
    pub(super) shared: Arc<Shared>,
    pub(super) cluster: ClusterId,
    pub(super) run: u64,
    pub(super) client: Channel,
    pub(super) doubts: Arc<Doubts>,
    pub(super) inbox: mpsc::UnboundedSender<Message>,
    /// Whether somebody wants to know which kinds it serves.
    pub(super) discovers: bool,
}

impl Attend {
    pub(super) async fn run(self) {
        let mut failures = 0;
        let mut discovering = Discovering::default();
        loop {
            let timeout = self.shared.settings.request_timeout;
            let asked = Asked::now(self.run, &self.doubts, &self.client);
            let said = Box::pin(identify(&self.client, timeout)).await;
            if let Said::Uid(uid) = &said {
                discovering.hear(uid);
            }
            let is_well = said.is_well();
            self.tell(Message::Attended(self.cluster.clone(), asked, said));
            if is_well && self.discovers && discovering.is_due() {
                let is_told = Box::pin(self.discover(timeout)).await;
                discovering.asked(is_told);
            }
            let wait = if is_well {
                failures = 0;
                together(
                    &self.shared,
                    jittered(&self.shared, self.shared.settings.members.check),
                )
            } else {
                failures += 1;
                BACKOFF.after(failures)
            };
            self.shared.environment.sleep(LEAST.min(wait)).await;
            tokio::select! {
                biased;
                () = self.doubts.risen() => {}
                () = self.shared.environment.sleep(wait.saturating_sub(LEAST)) => {}
            }
        }
    }

    /// Asks which kinds it serves; gives whether it said so.
    async fn discover(&self, timeout: Duration) -> bool {
        let Some(kinds) = discover(&self.client, timeout, LARGEST_DISCOVERY).await else {
            return false;
        };
        let kinds = Arc::new(kinds);
        self.tell(Message::Discovered(self.cluster.clone(), self.run, kinds));
        true
    }

    fn tell(&self, message: Message) {
        // Nobody listens when the replica is about to end.
        let _ = self.inbox.send(message);
    }
}

/// When a member is asked which kinds it serves.
#[derive(Debug, Default)]
struct Discovering {
    /// The uid that it said last.
    uid: Option<String>,
    /// Whether it is another one since it was asked.
    is_swapped: bool,
    /// Whether it said something when it was asked.
    is_told: bool,
    /// When it was asked, and when it was because of another uid.
    asked: Option<Instant>,
    swapped: Option<Instant>,
}

impl Discovering {
    /// It has said this uid. Another cluster serves something else.
    fn hear(&mut self, uid: &str) {
        if self.uid.as_deref() == Some(uid) {
            return;
        }
        self.is_swapped |= self.uid.is_some();
        self.uid = Some(uid.to_owned());
    }

    fn is_due(&self) -> bool {
        let (last, pause) = if self.is_swapped {
            (self.swapped, SWAPPED)
        } else if self.is_told {
            (self.asked, DISCOVER)
        } else {
            (self.asked, UNTOLD)
        };
        last.is_none_or(|at| at.elapsed() >= pause)
    }

    /// It was asked; whether it said something.
    fn asked(&mut self, is_told: bool) {
        let now = Instant::now();
        self.asked = Some(now);
        if std::mem::take(&mut self.is_swapped) {
            self.swapped = Some(now);
        }
        self.is_told = is_told;
    }
}

/// A time, a quarter more or less: what many do as often is not done at once.
pub(super) fn jittered(shared: &Shared, time: Duration) -> Duration {
    let draw = u32::try_from(shared.environment.draw() % 500).unwrap_or_default();
    time.saturating_mul(750 + draw) / 1_000
}

/// A time that ends where those of others end as well: to wake for each of thousands costs more than what is done then.
fn together(shared: &Shared, time: Duration) -> Duration {
    let now = shared.environment.now().as_millisecond();
    let end = now.saturating_add(i64::try_from(time.as_millis()).unwrap_or(i64::MAX));
    let early = u64::try_from(end.wrapping_neg().rem_euclid(TOGETHER)).unwrap_or_default();
    time.saturating_add(Duration::from_millis(early))
}

/// The kinds that a cluster serves, as far as each answer has no more than so many bytes; none if it does not say.
pub(super) async fn discover(
    client: &Channel,
    timeout: Duration,
    most: usize,
) -> Option<Discovery> {
    let mut all = Vec::new();
    for root in ["/api", "/apis"] {
        let wanted = ApiRequest::discovery(root).at_most(most);
        let wanted = wanted.traced(format!("purpose={DISCOVERY}"));
        match wanted.send(client, timeout).await {
            Outcome::Done(said) => all.extend(read(&said)),
            _ => return None,
        }
    }
    // A cluster without kinds has not said which ones it has.
    (!all.is_empty()).then(|| Discovery::new(all))
}

/// Reads what the API calls an `APIGroupDiscoveryList`.
fn read(said: &Value) -> Vec<Kind> {
    let list = |value: &Value, field: &str| -> Vec<Value> {
        let found = value.get(field).and_then(Value::as_array);
        found.cloned().unwrap_or_default()
    };
    let mut all = Vec::new();
    for group in list(said, "items") {
        let name = Meta::of(&group).name;
        for version in list(&group, "versions") {
            let of = version.get("version").and_then(Value::as_str);
            for resource in list(&version, "resources") {
                let text = |path: &str| resource.pointer(path).and_then(Value::as_str);
                let kind = text("/responseKind/kind");
                if let (Some(of), Some(kind), Some(plural)) = (of, kind, text("/resource")) {
                    let namespaced = text("/scope") == Some("Namespaced");
                    all.push(Kind::owned(name.clone(), of, kind, plural, namespaced));
                }
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use crate::environment::Environment;
    use crate::settings::Settings;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn members_are_asked_at_the_same_moments_and_none_of_them_early_or_late() {
        let environment = Environment::virtual_from(Timestamp::UNIX_EPOCH, 1);
        let shared = Shared::new(environment, Settings::default());
        tokio::time::sleep(Duration::from_millis(123)).await;
        for wait in [0, 1, 126, 127, 128, 250, 30_000] {
            let whole = together(&shared, Duration::from_millis(wait)).as_millis();
            let wait = u128::from(wait);
            assert!((wait..wait + 250).contains(&whole), "{wait}: {whole}");
            assert_eq!((123 + whole) % 250, 0, "{wait}");
        }
    }

    /// Whoever has taken its place, and does so again and again.
    #[tokio::test(start_paused = true)]
    async fn what_a_member_serves_whose_uid_alternates_is_asked_once_a_minute() {
        let mut discovering = Discovering::default();
        let mut asked = Vec::new();
        for second in 0..200_u64 {
            discovering.hear(if second / 5 % 2 == 0 { "a" } else { "b" });
            if discovering.is_due() {
                discovering.asked(true);
                asked.push(second);
            }
            tokio::time::sleep(LEAST).await;
        }
        assert_eq!(asked, [0, 5, 65, 125, 185], "the first time at once");
        let mut silent = Discovering::default();
        silent.asked(false);
        assert!(!silent.is_due());
        tokio::time::sleep(UNTOLD).await;
        assert!(silent.is_due());
    }

    #[test]
    fn what_a_cluster_says_is_read_with_versions_and_scope() {
        let said = json!({"items": [{
            "metadata": {"name": "toy.dev"},
            "versions": [
                {"version": "v1", "resources": [
                    {"resource": "gadgets", "responseKind": {"kind": "Gadget"}, "scope": "Namespaced"},
                    {"resource": "worlds", "responseKind": {"kind": "World"}, "scope": "Cluster"},
                ]},
                {"version": "v1beta1", "resources": [
                    {"resource": "gadgets", "responseKind": {"kind": "Gadget"}, "scope": "Namespaced"},
                ]},
            ],
        }]});
        let known = Discovery::new(read(&said));
        let shown: Vec<String> = known
            .kinds()
            .map(|kind| format!("{} {} {}", kind.api_version(), kind.plural, kind.namespaced))
            .collect();
        assert_eq!(
            shown,
            [
                "toy.dev/v1 gadgets true",
                "toy.dev/v1beta1 gadgets true",
                "toy.dev/v1 worlds false"
            ]
        );
        assert!(read(&json!({"kind": "APIVersions"})).is_empty());
    }
}
