//! Whoever has said over a connection which cluster it is gets what is meant for that cluster, and nobody else does.

use std::collections::BTreeMap;

use jiff::Timestamp;
use slipway_kernel::identity::{ClusterId, ObjectRef, kinds};
use slipway_kernel::member::{Attention, Credentials, Member};

use super::*;
use crate::channel::Channel;
use crate::clusters::{Cluster, Clusters};
use crate::environment::Environment;
use crate::execute::way_into;
use crate::message::Message;
use crate::request::{ApiRequest, Outcome};
use crate::settings::Settings;
use crate::state::{ClusterState, Membership, Shared};

const NAME: &str = "north";

/// A replica that knows a member as the cluster of this uid, and the way to it.
fn replica(wire: Wire, confirmed: &str) -> (Shared, Cluster) {
    let environment = Environment::virtual_from(Timestamp::UNIX_EPOCH, 1);
    let shared = Shared::new(environment, Settings::default());
    let cluster = ClusterId::remote(NAME);
    let member = Arc::new(Member {
        cluster: cluster.clone(),
        object: ObjectRef::local(kinds::CONFIG_MAP, "default", NAME),
        uid: "object".to_owned(),
        credentials: Credentials {
            namespace: "default".to_owned(),
            name: NAME.to_owned(),
            key: "token".to_owned(),
            version: "1".to_owned(),
        },
        labels: BTreeMap::new(),
        confirmed: Some(confirmed.to_owned()),
        attention: Attention::Close,
    });
    let named = [("herd", member.clone())].into();
    let mut membership = Membership::new(member, named, Timestamp::UNIX_EPOCH);
    membership.run = 1;
    let known = ClusterState::of_member(Some(membership));
    shared.lock().members.insert(cluster.clone(), known);
    let clusters = Clusters::default();
    clusters.add(cluster.clone(), (1, Channel::from(wire)), 1);
    let reached = clusters.get(&cluster).unwrap();
    (shared, reached)
}

/// The API server ends the connection right behind its answer, and the next one may lead to somebody else.
#[tokio::test(start_paused = true)]
async fn a_write_goes_over_no_connection_that_was_made_after_the_member_said_who_it_is() {
    let (server, (tell, told)) = (Server::default(), mpsc::unbounded_channel());
    let wire = Arc::into_inner(server.wire(tell)).unwrap();
    let (shared, reached) = replica(wire, UID);
    let (inbox, mut messages) = mpsc::unbounded_channel();
    let cluster = ClusterId::remote(NAME);
    let whose = (&cluster, "herd");
    let way = way_into(&shared, &inbox, whose, &reached).await.unwrap();
    assert!(matches!(messages.try_recv(), Ok(Message::Attended(..))));
    server.ends.notify_one();
    secs(1).await;
    let object = ObjectRef::local(kinds::CONFIG_MAP, "default", "herd");
    let wanted = ApiRequest::get(&object);
    let outcome = wanted.send(&way, Duration::from_secs(10)).await;
    assert!(matches!(outcome, Outcome::Unknown(..)) && way.is_unsent());
    assert_eq!((count(&server.made), told.len()), (1, 1));
    // Whoever answers now is asked.
    let way = way_into(&shared, &inbox, whose, &reached).await.unwrap();
    let outcome = wanted.send(&way, Duration::from_secs(10)).await;
    assert!(!way.is_unsent(), "{outcome:?}");
    assert_eq!((count(&server.made), told.len()), (2, 3));
}

#[tokio::test(start_paused = true)]
async fn there_is_no_way_into_another_cluster_than_the_one_that_was_confirmed() {
    let (server, (tell, told)) = (Server::default(), mpsc::unbounded_channel());
    let wire = Arc::into_inner(server.wire(tell)).unwrap();
    let (shared, reached) = replica(wire, "another");
    let (inbox, _messages) = mpsc::unbounded_channel();
    let cluster = ClusterId::remote(NAME);
    let way = way_into(&shared, &inbox, (&cluster, "herd"), &reached).await;
    assert!(way.is_none());
    assert_eq!(told.len(), 1);
}
