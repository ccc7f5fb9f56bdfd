//! The one list of what is not compared literally, with the reason for each; printed at the end of a run.

use std::sync::atomic::{AtomicUsize, Ordering};

/// One kind of value that is not compared literally.
pub(crate) struct Mask {
    pub(crate) what: &'static str,
    pub(crate) becomes: &'static str,
    pub(crate) why: &'static str,
    used: AtomicUsize,
}

impl Mask {
    const fn new(what: &'static str, becomes: &'static str, why: &'static str) -> Self {
        Self {
            what,
            becomes,
            why,
            used: AtomicUsize::new(0),
        }
    }

    pub(crate) fn count(&self) {
        self.used.fetch_add(1, Ordering::Relaxed);
    }

    /// How often it was applied in this process.
    pub(crate) fn uses(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

pub(crate) static NAMESPACE: Mask = Mask::new(
    "the behaviour's own namespace name",
    "{ns}",
    "fresh for each run, so that runs do not meet",
);
pub(crate) static GENERATED: Mask = Mask::new(
    "five characters after metadata.generateName",
    "<generated-N>",
    "random; length and alphabet are checked, and one name stays one symbol",
);
pub(crate) static UID: Mask = Mask::new(
    "UUIDs",
    "<uid-N>",
    "random; equal ones stay equal, numbered by first appearance",
);
pub(crate) static VERSION: Mask = Mask::new(
    "resourceVersion of objects, also in messages",
    "<rv-N>",
    "a counter shared with everything else on the server; equal ones stay equal, numbered by first appearance",
);
pub(crate) static LIST_VERSION: Mask = Mask::new(
    "resourceVersion of lists and tables",
    "<list-rv>",
    "the server's newest revision, moved by other behaviours at any moment",
);
pub(crate) static BOOKMARK: Mask = Mask::new(
    "resourceVersion of BOOKMARK events",
    "<bookmark-rv>",
    "the server's newest revision, moved by other behaviours at any moment",
);
pub(crate) static CURRENT: Mask = Mask::new(
    "the current revision in `too large` and `too old` messages",
    "<current-rv>",
    "the server's newest revision, moved by other behaviours at any moment",
);
pub(crate) static CONTINUE: Mask = Mask::new(
    "metadata.continue",
    "<continue>",
    "opaque by contract: only the server that gave it reads it",
);
pub(crate) static TIME: Mask = Mask::new(
    "RFC 3339 times of the server's clock",
    "<time>, <microtime>",
    "the clock; the precision is compared",
);
pub(crate) static AGE: Mask = Mask::new(
    "ages in Table cells",
    "<age>",
    "counted from the clock while the test runs",
);
pub(crate) static CLUSTER_IP: Mask = Mask::new(
    "cluster IPs that the server chose",
    "<cluster-ip>",
    "random in the service range",
);
pub(crate) static NODE_PORT: Mask = Mask::new(
    "node ports that the server chose",
    "<node-port>",
    "random in 30000-32767",
);
pub(crate) static TOKEN: Mask = Mask::new(
    "signed tokens",
    "<token>",
    "signed with the server's own key",
);

pub(crate) static HASH: Mask = Mask::new(
    "storageVersionHash of custom resources",
    "<hash>",
    "a hash over the API group, whose name has the behaviour's namespace in it",
);

pub(crate) static ORDER: Mask = Mask::new(
    "the order of managedFields in time",
    "sorted by operation, manager and subresource",
    "the server sorts by whole seconds, and a run may cross one",
);

pub(crate) static PROSE: Mask = Mask::new(
    "descriptions of Table columns",
    "<prose>",
    "paragraphs of the API's documentation, which no client depends on",
);

/// Everything that is masked.
pub(crate) static MASKS: [&Mask; 16] = [
    &PROSE,
    &ORDER,
    &HASH,
    &NAMESPACE,
    &GENERATED,
    &UID,
    &VERSION,
    &LIST_VERSION,
    &BOOKMARK,
    &CURRENT,
    &CONTINUE,
    &TIME,
    &AGE,
    &CLUSTER_IP,
    &NODE_PORT,
    &TOKEN,
];
