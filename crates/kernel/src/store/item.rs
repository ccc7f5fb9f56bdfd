//! Objects as worlds hold them.

use std::sync::Arc;

use super::{Meta, Projection, Seen};

/// An object of one projection, for worlds: it shares what the store holds.
#[derive(Debug, Clone)]
pub struct Item<T> {
    seen: Arc<Seen>,
    body: Arc<T>,
}

impl<T: Projection> Item<T> {
    /// The object, if it is of this projection and could be understood.
    pub fn of(seen: &Arc<Seen>) -> Option<Self> {
        let body = seen.body.as_ref().ok()?.clone().downcast::<T>().ok()?;
        Some(Self {
            seen: seen.clone(),
            body,
        })
    }

    /// An object that is in no store, for previews and tests.
    pub fn new(meta: Meta, body: T) -> Self {
        let body = Arc::new(body);
        let seen = Arc::new(Seen {
            meta,
            body: Ok(body.clone()),
        });
        Self { seen, body }
    }

    /// What every object has.
    pub fn meta(&self) -> &Meta {
        &self.seen.meta
    }

    /// What was taken of it.
    pub fn body(&self) -> &T {
        &self.body
    }
}
