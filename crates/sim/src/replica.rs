//! One process of the operator: it can die, stand still and be cut off.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use crate::history::{Event, Recorder};

#[derive(Debug, Default)]
struct State {
    dead: bool,
    paused_until: Option<Instant>,
    cut_off_until: Option<Instant>,
    /// Of all that this process does: its own future, and what it serves to others.
    wakers: Vec<Waker>,
}

/// The state of a process. The process itself is an [`Alive`] future.
#[derive(Debug)]
pub struct Replica {
    name: String,
    state: Mutex<State>,
}

impl Replica {
    /// A living one.
    pub fn new(name: String) -> Self {
        Self {
            name,
            state: Mutex::default(),
        }
    }

    /// Its name, which no other process has or had.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It dies.
    pub fn crash(&self) {
        let mut state = self.lock();
        state.dead = true;
        for waker in std::mem::take(&mut state.wakers) {
            waker.wake();
        }
    }

    /// Whether it has died.
    pub fn is_dead(&self) -> bool {
        self.lock().dead
    }

    fn wake_on_death(&self, waker: &Waker) {
        let wakers = &mut self.lock().wakers;
        if !wakers.iter().any(|known| known.will_wake(waker)) {
            wakers.push(waker.clone());
        }
    }

    /// It stands still for this time.
    pub fn pause(&self, time: Duration, recorder: &Recorder) {
        recorder.mark(Event::Paused(self.name.clone(), time));
        self.lock().paused_until = Some(Instant::now() + time);
    }

    /// None of its requests arrives for this time.
    pub fn cut_off(&self, time: Duration, recorder: &Recorder) {
        recorder.mark(Event::CutOff(self.name.clone(), time));
        self.lock().cut_off_until = Some(Instant::now() + time);
    }

    /// Whether requests arrive.
    pub fn is_cut_off(&self) -> bool {
        let until = self.lock().cut_off_until;
        until.is_some_and(|until| Instant::now() < until)
    }

    /// When it moves again, if it stands still.
    fn paused_until(&self) -> Option<Instant> {
        let until = self.lock().paused_until;
        until.filter(|until| Instant::now() < *until)
    }

    /// Waits while it stands still.
    pub async fn gate(&self) {
        while let Some(until) = self.paused_until() {
            tokio::time::sleep_until(until).await;
        }
    }
}

/// How a process ended.
#[derive(Debug)]
pub enum End<T> {
    /// It died.
    Crashed,
    /// It came to its end.
    Done(T),
}

/// A process: a future that is not polled while it stands still, and dropped when it dies.
pub struct Alive<'a, F> {
    replica: &'a Replica,
    process: Option<Pin<Box<F>>>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl<'a, F: Future> Alive<'a, F> {
    /// Starts a process.
    pub fn new(replica: &'a Replica, process: F) -> Self {
        Self {
            replica,
            process: Some(Box::pin(process)),
            timer: None,
        }
    }
}

impl<F: Future> Future for Alive<'_, F> {
    type Output = End<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        this.replica.wake_on_death(cx.waker());
        loop {
            if this.replica.lock().dead {
                this.process = None;
                return Poll::Ready(End::Crashed);
            }
            let Some(until) = this.replica.paused_until() else {
                break;
            };
            let mut timer = Box::pin(tokio::time::sleep_until(until));
            if timer.as_mut().poll(cx).is_pending() {
                this.timer = Some(timer);
                return Poll::Pending;
            }
        }
        let Some(process) = &mut this.process else {
            return Poll::Ready(End::Crashed);
        };
        if let Poll::Ready(result) = process.as_mut().poll(cx) {
            this.process = None;
            return Poll::Ready(End::Done(result));
        }
        if this.replica.lock().dead {
            this.process = None;
            return Poll::Ready(End::Crashed);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn virtually<T>(work: impl Future<Output = T>) -> T {
        crate::runner::virtually(work)
    }

    #[test]
    fn a_process_that_stands_still_sees_time_jump() {
        virtually(async {
            let replica = Replica::new("a".to_owned());
            let start = Instant::now();
            let process = async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Instant::now() - start
            };
            replica.lock().paused_until = Some(start + Duration::from_secs(30));
            match Alive::new(&replica, process).await {
                End::Done(after) => assert_eq!(after.as_secs(), 31),
                End::Crashed => panic!("it lives"),
            }
        });
    }

    #[test]
    fn a_dead_process_does_nothing_more() {
        virtually(async {
            let replica = Replica::new("a".to_owned());
            let process = async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                replica.crash();
                tokio::time::sleep(Duration::from_secs(1)).await;
            };
            let start = Instant::now();
            assert!(matches!(Alive::new(&replica, process).await, End::Crashed));
            assert_eq!((Instant::now() - start).as_secs(), 1);
        });
    }
}
