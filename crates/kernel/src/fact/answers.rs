//! Answers that are handed on without being copied.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use jiff::Timestamp;

use super::asked::{Answer, QuestionId};

/// Answers and when they came, by question. A clone is the same until one of the two is changed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answers(Arc<BTreeMap<QuestionId, (Timestamp, Answer)>>);

impl Deref for Answers {
    type Target = BTreeMap<QuestionId, (Timestamp, Answer)>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Answers {
    fn deref_mut(&mut self) -> &mut Self::Target {
        Arc::make_mut(&mut self.0)
    }
}
