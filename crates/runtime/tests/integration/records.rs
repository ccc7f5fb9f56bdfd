//! All that any crate tells `tracing`, at any level, for tests that look for what must not be there.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};

/// Everything that was told on this thread, spans and their fields too.
#[derive(Clone, Default)]
pub(crate) struct Records(Arc<Mutex<Vec<String>>>);

impl Records {
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    fn add(&self, what: &str, record: impl FnOnce(&mut Told)) {
        let mut told = Told(what.to_owned());
        record(&mut told);
        self.0.lock().unwrap().push(told.0);
    }
}

struct Told(String);

impl Visit for Told {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0 = format!("{} {}={value:?}", self.0, field.name());
    }
}

impl tracing::Subscriber for Records {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.add(span.metadata().name(), |told| span.record(told));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        self.add("span", |told| values.record(told));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        self.add(event.metadata().target(), |told| event.record(told));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
