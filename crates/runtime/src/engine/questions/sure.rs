//! Questions about a member: asked of whoever has just said that it is the cluster that it is taken for, and of nobody else. A question
//! may change something, and what one cluster says is no fact of another.

use std::sync::Arc;

use futures::future::BoxFuture;
use slipway_kernel::fact::{Answer, Question};
use slipway_kernel::identity::Key;
use tokio::sync::mpsc;

use crate::clusters::Cluster;
use crate::execute::way_into;
use crate::gather::Gather;
use crate::message::Message;
use crate::outside::Still;
use crate::state::Shared;

/// Asks a member.
pub(super) struct Sure {
    pub(super) shared: Arc<Shared>,
    pub(super) inbox: mpsc::UnboundedSender<Message>,
    pub(super) gatherer: Arc<dyn Gather>,
    pub(super) reached: Cluster,
}

impl Gather for Sure {
    fn gather(&self, key: &Key, question: Question) -> BoxFuture<'static, Answer> {
        self.gather_while(key, question, Still::default())
    }

    fn gather_while(
        &self,
        key: &Key,
        question: Question,
        still: Still,
    ) -> BoxFuture<'static, Answer> {
        let (shared, inbox) = (self.shared.clone(), self.inbox.clone());
        let (gatherer, reached) = (self.gatherer.clone(), self.reached.clone());
        let key = key.clone();
        Box::pin(async move {
            let whose = (&key.cluster, key.controller);
            let Some(way) = way_into(&shared, &inbox, whose, &reached).await else {
                return Answer::unreachable("it has not said which cluster it is");
            };
            let asking = gatherer.elsewhere(way.client("default"));
            asking.gather_while(&key, question, still).await
        })
    }
}
