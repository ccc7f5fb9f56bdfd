//! Ports for programs that have to be told one.
//!
//! A port that is drawn and let go can be somebody else's when the program binds it: any outgoing connection may get it.
//! So ports come from outside of the range that the kernel takes for those, and each belongs to its value: nobody who
//! draws here gets it before the value is gone, in whatever process. A program that ends and starts again finds it free.
//!
//! Not promised: that no stranger listens there meanwhile who chose that very number; and on machines that give all ports to
//! outgoing connections, nothing against those.
//!
//! This file is a module of `slipway-e2e` and of `xtask`, neither of which may depend on the other.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::fs::{File, TryLockError};
use std::hash::BuildHasher;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Where the kernel says which ports are for outgoing connections.
const OUTGOING: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// Where it does not say: those that the standard sets aside.
const SET_ASIDE: RangeInclusive<u16> = 49_152..=u16::MAX;

/// Below this, only root may listen.
const FIRST: u16 = 1_024;

/// From here on Kubernetes gives out ports of nodes: an address with one would look like those.
const NODE_PORTS: u16 = 30_000;

/// How many ports are drawn from; each leaves an empty file.
const MANY: u16 = 1_024;

/// A port that is this value's alone.
#[derive(Debug)]
pub struct Port {
    number: u16,
    /// Nobody else draws it while this is locked; the lock ends with the process, however that ends.
    _lock: File,
}

impl Port {
    /// Draws one that nobody listens on.
    pub fn draw() -> Result<Self> {
        let ports = apart_from(&outgoing());
        let folder = folder()?;
        let count = ports.end() - ports.start() + 1;
        // Not the same one again at once: somebody may still want to talk to the program before.
        let first = u16::try_from(RandomState::new().hash_one(0) % u64::from(count))?;
        for step in 0..count {
            let number = ports.start() + first.wrapping_add(step) % count;
            if let Some(lock) = locked(&folder, number)?
                && is_free(number)
            {
                return Ok(Self {
                    number,
                    _lock: lock,
                });
            }
        }
        bail!(
            "drawing a port: all of {} to {} are in use",
            ports.start(),
            ports.end()
        )
    }

    /// Its number.
    pub fn number(&self) -> u16 {
        self.number
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number.fmt(f)
    }
}

/// The ports of outgoing connections.
fn outgoing() -> RangeInclusive<u16> {
    let said = std::fs::read_to_string(OUTGOING).unwrap_or_default();
    range(&said).unwrap_or(SET_ASIDE)
}

fn range(said: &str) -> Option<RangeInclusive<u16>> {
    let mut numbers = said.split_whitespace().map(str::parse);
    let (Some(Ok(first)), Some(Ok(last))) = (numbers.next(), numbers.next()) else {
        return None;
    };
    (first <= last).then_some(first..=last)
}

/// Ports outside of a range: right below it and below those of nodes, or above. Where it leaves none, its last.
fn apart_from(outgoing: &RangeInclusive<u16>) -> RangeInclusive<u16> {
    let end = NODE_PORTS.min(*outgoing.start());
    let below = end.saturating_sub(FIRST);
    let above = u16::MAX - outgoing.end();
    if below == 0 && above == 0 {
        return outgoing.end() - MANY.min(outgoing.end() - outgoing.start())..=*outgoing.end();
    }
    if below >= above {
        return end - below.min(MANY)..=end - 1;
    }
    outgoing.end() + 1..=outgoing.end() + above.min(MANY)
}

/// Where the locks are: a file for each port, of all checkouts on this machine.
fn folder() -> Result<PathBuf> {
    let folder = std::env::temp_dir().join("slipway-ports");
    std::fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    Ok(folder)
}

/// The lock on a port, unless somebody else has it.
fn locked(folder: &Path, number: u16) -> Result<Option<File>> {
    let path = folder.join(number.to_string());
    // Another user's are his.
    let file = match File::options().append(true).create(true).open(&path) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(None),
        opened => opened.with_context(|| format!("opening {}", path.display()))?,
    };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("locking {}", path.display()))
        }
    }
}

/// Whether nobody listens there, at any address of either family.
fn is_free(number: u16) -> bool {
    match TcpListener::bind((Ipv6Addr::UNSPECIFIED, number)) {
        Err(error) if error.kind() != ErrorKind::AddrInUse => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, number)).is_ok()
        }
        bound => bound.is_ok(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::collections::BTreeSet;
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn no_outgoing_connection_gets_a_port_that_was_drawn() {
        let outgoing = outgoing();
        for _ in 0..50 {
            let port = Port::draw().unwrap();
            assert!(
                !outgoing.contains(&port.number()),
                "{port} is one of {outgoing:?}"
            );
        }
    }

    #[test]
    fn a_program_can_bind_its_port_again_while_connections_come_and_go() {
        let door = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = door.local_addr().unwrap();
        let port = Port::draw().unwrap();
        for _ in 0..20 {
            let program = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port.number()))
                .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port.number())));
            // Somebody talks to it when it ends.
            let _client = TcpStream::connect((Ipv4Addr::LOCALHOST, port.number())).unwrap();
            drop(program.unwrap());
            for _ in 0..100 {
                let client = TcpStream::connect(address).unwrap();
                assert_ne!(client.local_addr().unwrap().port(), port.number());
                // Taken off the queue, which would be full soon.
                door.accept().unwrap();
            }
        }
    }

    #[test]
    fn ports_that_are_held_are_not_drawn_again() {
        let held: Vec<Port> = (0..100).map(|_| Port::draw().unwrap()).collect();
        let different: BTreeSet<u16> = held.iter().map(Port::number).collect();
        assert_eq!(different.len(), held.len());
    }

    #[test]
    fn a_port_that_somebody_listens_on_is_not_free() {
        for address in [Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED] {
            let port = Port::draw().unwrap();
            assert!(is_free(port.number()));
            let _listener = TcpListener::bind((address, port.number())).unwrap();
            assert!(!is_free(port.number()));
        }
    }

    #[test]
    fn ports_lie_outside_of_the_range_wherever_it_is() {
        let of = |said: &str| apart_from(&range(said).unwrap());
        assert_eq!(of("32768\t60999\n"), 28_976..=29_999);
        assert_eq!(of("20000 60999"), 18_976..=19_999);
        assert_eq!(of("1500 60000"), 60_001..=61_024);
        assert_eq!(of("1024 65000"), 65_001..=65_535);
        assert_eq!(of("1100 65535"), 1_024..=1_099);
        assert_eq!(of("1024 65535"), 64_511..=65_535);
        assert_eq!(range("none"), None);
        assert_eq!(range("7 6"), None);
    }
}
