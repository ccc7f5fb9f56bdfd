//! Names and their addresses.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};

use futures::future::BoxFuture;
use tokio::sync::Semaphore;

/// How many names are looked up at once: each takes a thread for as long as the system takes, also when nobody waits for
/// it any more, and threads are shared with all else that blocks.
const AT_ONCE: usize = 32;

static LOOKUPS: Semaphore = Semaphore::const_new(AT_ONCE);

/// Looks names up.
pub trait Resolve: Send + Sync + 'static {
    /// All addresses of a name; with a dot at its end it is not to be looked for below other names.
    fn resolve(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// Asks the system, for so many names at once.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let name = name.to_owned();
        Box::pin(look_up(&LOOKUPS, move || {
            let found = (name, 0).to_socket_addrs()?;
            Ok(found.map(|address| address.ip()).collect())
        }))
    }
}

/// Looks something up on a thread that may block. Its place is free when the thread is, and not before.
async fn look_up<T: Send + 'static>(
    places: &'static Semaphore,
    blocks: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let place = places.acquire().await.map_err(io::Error::other)?;
    let looked_up = tokio::task::spawn_blocking(move || {
        let found = blocks();
        drop(place);
        found
    });
    looked_up.await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_lookup_that_nobody_waits_for_keeps_its_place_until_its_thread_is_free() {
        static PLACES: Semaphore = Semaphore::const_new(1);
        let (release, held) = mpsc::channel::<()>();
        let stuck = look_up(&PLACES, move || {
            let _ = held.recv();
            Ok(())
        });
        let given_up = tokio::time::timeout(Duration::from_millis(50), stuck).await;
        assert!(given_up.is_err());
        assert_eq!(PLACES.available_permits(), 0);
        let next = tokio::spawn(look_up(&PLACES, || Ok(7)));
        tokio::task::yield_now().await;
        assert!(!next.is_finished());
        release.send(()).unwrap();
        assert_eq!(next.await.unwrap().unwrap(), 7);
        assert_eq!(PLACES.available_permits(), 1);
    }

    #[tokio::test]
    async fn the_system_knows_this_machine() {
        let found = SystemResolver.resolve("localhost").await.unwrap();
        assert!(found.iter().all(IpAddr::is_loopback) && !found.is_empty());
    }
}
