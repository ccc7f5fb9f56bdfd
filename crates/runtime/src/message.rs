//! What the loop is told by what it has started.

use std::sync::Arc;

use slipway_kernel::action::Action;
use slipway_kernel::admission::Hold;
use slipway_kernel::event::Event;
use slipway_kernel::fact::Answer;
use slipway_kernel::identity::{ClusterId, Key, ObjectRef};
use slipway_kernel::member::Discovery;
use tokio::sync::OwnedSemaphorePermit;

use crate::channel::Channel;
use crate::connect::Unconnected;
use crate::election::Taken;
use crate::engine::{Bumped, Pending, Said};
use crate::events::{Slot, Untold};
use crate::execute::Report;
use crate::state::Asked;
use crate::watch::{News, WatchKey};

/// Something that the loop has to deal with.
pub(crate) enum Message {
    /// The watch of this number has something to tell. What it gives back when that has been taken in is the room for more.
    Watch(WatchKey, u64, News, Option<OwnedSemaphorePermit>),
    /// A read has shown an object of this cluster at an older version than was known, in this history.
    Rewound(ClusterId, u64),
    /// Everything in this cluster is to be listed again, if it still is.
    ListAgain(ClusterId),
    /// A plan has been carried out; the number is that of what is known of its cluster.
    Executed(Key, u64, Report),
    /// A plan of this key has an event to be told, about what was done to an object if it was.
    Publish(Key, Box<Event>, Option<Box<ObjectRef>>),
    /// A question has been answered.
    Answered(Box<Pending>, Answer),
    /// This replica has taken a lease.
    Taken(&'static str, i64, Taken),
    /// This replica has lost a lease.
    Lost(&'static str),
    /// Nothing of the former holder of a lease can be under way any more in a cluster.
    WaitedOut(ClusterId, &'static str, i64),
    /// What a former leader could act on in a cluster has been changed, or could not be.
    Bumped(ClusterId, &'static str, i64, Bumped),
    /// There is a way to a member, or none; the number is that of the attempt.
    Connected(ClusterId, u64, Result<Channel, Unconnected>),
    /// It is time to try again.
    Reconnect(ClusterId, u64),
    /// A member was asked which cluster it is.
    Attended(ClusterId, Asked, Said),
    /// A cluster has said which kinds it serves.
    Discovered(ClusterId, u64, Arc<Discovery>),
    /// This event has been told, or none can be told in its namespace because of that; the number is that of what is known of its
    /// cluster.
    Told(Slot, u64, Option<Untold>),
    /// This is to be undone after a review was answered.
    Undo(Vec<Action>),
    /// A review was answered that lets this go.
    Held(Box<Hold>),
    /// What was to be undone has been.
    Undone,
    /// Something has ended that nobody waits for.
    Ended,
}
