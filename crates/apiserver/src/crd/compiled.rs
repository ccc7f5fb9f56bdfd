//! What an `openAPIV3Schema` is compiled to, once for all definitions and clusters of the process that have it.
//!
//! Nodes, limits and rules are made when the first object of a kind needs them. Until then a definition is no more than
//! its text: a cluster has many that nobody uses.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::build;
use super::rules::Rules;
use super::structural::Structural;
use crate::schema::Schema;
use crate::shelf::{Kept, Shelf};

/// All schemas that are in use, by their JSON; that of a version without a schema is empty.
static SCHEMAS: Shelf<Arc<str>, Compiled> = Shelf::new();

/// How many there have been.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// One of them.
pub(super) type Shared = Arc<Kept<Arc<str>, Compiled>>;

/// A compiled schema.
#[derive(Debug)]
pub(super) struct Compiled {
    /// No other one has this number, whatever became of that, and it is not 0.
    pub(super) number: u64,
    /// Decodes, prunes, defaults and publishes.
    pub(super) schema: Schema,
    structural: OnceLock<Structural>,
    rules: OnceLock<Option<Rules>>,
}

/// The compiled form of the schema of a version.
pub(super) fn compiled(openapi: Option<&Value>) -> Shared {
    // Fields of a value are in the order of their names: what means the same is the same text.
    let text = openapi.map(Value::to_string).unwrap_or_default();
    SCHEMAS.get(&*text, || {
        let source: Arc<str> = text.as_str().into();
        let schema = match openapi {
            Some(_) => build::written(source.clone()),
            None => build::anything(),
        };
        let compiled = Compiled {
            number: COUNT.fetch_add(1, Ordering::Relaxed) + 1,
            schema,
            structural: OnceLock::new(),
            rules: OnceLock::new(),
        };
        (source, compiled)
    })
}

impl Compiled {
    /// Its limits, which objects are held against.
    pub(super) fn structural(&self) -> &Structural {
        self.structural.get_or_init(|| {
            let source = self.schema.read_source();
            source.as_ref().map(Structural::read).unwrap_or_default()
        })
    }

    /// Its CEL rules, if it has any.
    pub(super) fn rules(&self) -> Option<&Rules> {
        let rules = self
            .rules
            .get_or_init(|| Rules::compile(self.structural(), true));
        rules.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn schemas_that_mean_the_same_are_one() {
        let one = compiled(Some(&json!({"type": "object", "description": "one"})));
        let same = compiled(Some(&json!({"description": "one", "type": "object"})));
        let other = compiled(Some(&json!({"type": "object", "description": "other"})));
        assert!(Arc::ptr_eq(&one, &same));
        assert!(!Arc::ptr_eq(&one, &other));
        assert!(std::ptr::eq(one.structural(), same.structural()));
        assert_eq!(
            one.schema.source(),
            Some(r#"{"description":"one","type":"object"}"#)
        );
        assert_eq!(compiled(None).schema.source(), None);
    }
}
