//! The connections of one server: so many at once, and whoever holds one without using it gives way.
//!
//! It promises that somebody who comes is served as long as any connection is idle: when all places are taken, the one
//! that has been idle for longest is closed for them. Idle ones also end by themselves. A connection that is used is
//! never closed for somebody else. What is spoken on a connection is its server's business, and so are times within a
//! request.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// Accepting fails again at once while there are no file descriptors left.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a connection that gives way may take to end in good order.
const FAREWELL: Duration = Duration::from_secs(1);

/// How many, and how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// How many connections may be open.
    pub(crate) most: usize,
    /// How long one may be open without a request.
    pub(crate) idle: Duration,
    /// How long those that are used may go on when the server ends.
    pub(crate) grace: Duration,
}

/// Accepts connections until `stop`, each for `each`, then lets those that are used end.
pub(crate) async fn accept<F, C>(
    listener: TcpListener,
    bounds: Bounds,
    stop: impl Future<Output = ()> + Send,
    each: F,
) where
    F: Fn(TcpStream, Arc<Seat>) -> C,
    C: Future<Output = ()> + Send + 'static,
{
    let hall = Arc::new(Hall::default());
    let mut open: JoinSet<()> = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = async {
            let accepted = listener.accept().await;
            hall.room(bounds.most.max(1)).await;
            accepted
        };
        let mut accepted = std::pin::pin!(accepted);
        let accepted = loop {
            tokio::select! {
                biased;
                () = &mut stop => break None,
                Some(_) = open.join_next(), if !open.is_empty() => {}
                accepted = &mut accepted => break Some(accepted),
            }
        };
        match accepted {
            None => break,
            Some(Ok((stream, _))) => {
                let seat = hall.sit(bounds.idle);
                let left = Left(seat.clone());
                let serving = each(stream, seat);
                open.spawn(async move {
                    serving.await;
                    drop(left);
                });
            }
            Some(Err(error)) => {
                tracing::warn!(%error, "a connection could not be accepted");
                sleep(PAUSE).await;
            }
        }
    }
    drop(listener);
    hall.close();
    let ending = async { while open.join_next().await.is_some() {} };
    let _ = timeout(bounds.grace, ending).await;
}

/// All connections of a server.
#[derive(Debug, Default)]
struct Hall {
    seats: Mutex<Seats>,
    /// A connection has ended, or is idle now.
    freed: Notify,
    closing: Notify,
    is_closing: AtomicBool,
}

#[derive(Debug, Default)]
struct Seats {
    next: u64,
    taken: BTreeMap<u64, Arc<Seat>>,
}

impl Hall {
    fn seats(&self) -> MutexGuard<'_, Seats> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sit(self: &Arc<Self>, idle: Duration) -> Arc<Seat> {
        let mut seats = self.seats();
        seats.next += 1;
        let seat = Arc::new(Seat {
            hall: self.clone(),
            number: seats.next,
            idle,
            usage: Mutex::new(Usage {
                requests: 0,
                since: Instant::now(),
                is_leaving: false,
            }),
            leave: Notify::new(),
        });
        seats.taken.insert(seat.number, seat.clone());
        seat
    }

    /// Waits until one more may sit down; who has been idle for longest is asked to leave for them.
    async fn room(&self, most: usize) {
        loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            freed.as_mut().enable();
            {
                let seats = self.seats();
                if seats.taken.len() < most {
                    return;
                }
                let seated = seats.taken.values();
                let idle = seated.filter_map(|seat| Some((seat.idle_since()?, seat)));
                let longest = idle.clone().min_by_key(|(since, _)| *since);
                let is_awaited = idle.clone().any(|(_, seat)| seat.usage().is_leaving);
                if let (false, Some((_, seat))) = (is_awaited, longest) {
                    seat.usage().is_leaving = true;
                    seat.leave.notify_one();
                }
            }
            freed.await;
        }
    }

    fn close(&self) {
        self.is_closing.store(true, Ordering::Release);
        self.closing.notify_waiters();
    }

    async fn closed(&self) {
        let mut closing = std::pin::pin!(self.closing.notified());
        closing.as_mut().enable();
        if !self.is_closing.load(Ordering::Acquire) {
            closing.await;
        }
    }
}

#[derive(Debug)]
struct Usage {
    requests: usize,
    /// Since when it has been idle, if it is.
    since: Instant,
    /// It was asked to give way.
    is_leaving: bool,
}

/// One connection's place.
#[derive(Debug)]
pub(crate) struct Seat {
    hall: Arc<Hall>,
    number: u64,
    idle: Duration,
    usage: Mutex<Usage>,
    leave: Notify,
}

impl Seat {
    fn usage(&self) -> MutexGuard<'_, Usage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn idle_since(&self) -> Option<Instant> {
        let usage = self.usage();
        (usage.requests == 0).then_some(usage.since)
    }

    /// A request has come; it is being answered until this is dropped.
    pub(crate) fn request(self: &Arc<Self>) -> Busy {
        self.usage().requests += 1;
        Busy(self.clone())
    }

    /// Waits until the connection has to end: the server does, it has been idle for too long, or it gives way.
    pub(crate) async fn over(&self) {
        let idle = async {
            loop {
                let now = Instant::now();
                let end = self.idle_since().unwrap_or(now) + self.idle;
                if now >= end {
                    return;
                }
                sleep_until(end).await;
            }
        };
        tokio::select! {
            biased;
            () = self.hall.closed() => {}
            () = self.leave.notified() => {}
            () = idle => {}
        }
    }

    /// Serves on a connection until it ends or has to; `shut` lets requests under way end.
    pub(crate) async fn serve<S, E>(&self, serving: S, shut: impl FnOnce(std::pin::Pin<&mut S>))
    where
        S: Future<Output = Result<(), E>>,
        E: std::fmt::Display,
    {
        let mut serving = std::pin::pin!(serving);
        tokio::select! {
            biased;
            ended = &mut serving => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended badly");
                }
                return;
            }
            () = self.over() => {}
        }
        shut(serving.as_mut());
        // Requests under way are answered, also one that comes just now; the peer of an idle connection is not waited for.
        let farewell = async {
            while self
                .idle_since()
                .is_none_or(|since| since.elapsed() < FAREWELL)
            {
                sleep(FAREWELL).await;
            }
        };
        tokio::select! {
            biased;
            _ = &mut serving => {}
            () = farewell => {}
        }
    }
}

/// A request under way.
pub(crate) struct Busy(Arc<Seat>);

impl Drop for Busy {
    fn drop(&mut self) {
        let mut usage = self.0.usage();
        usage.requests = usage.requests.saturating_sub(1);
        usage.since = Instant::now();
        let is_idle = usage.requests == 0;
        drop(usage);
        if is_idle {
            self.0.hall.freed.notify_waiters();
        }
    }
}

/// Frees the place when the connection is over, however it ended.
struct Left(Arc<Seat>);

impl Drop for Left {
    fn drop(&mut self) {
        let hall = &self.0.hall;
        hall.seats().taken.remove(&self.0.number);
        hall.freed.notify_waiters();
    }
}
