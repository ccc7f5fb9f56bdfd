//! Keeps the memory of this process off disks.
//!
//! A process that works on other clusters has their credentials, and one that serves webhooks a private key. A token is there
//! for as long as it is sent, and so it would be in a core. Whoever calls this has none written, and lets no other process of the
//! same user look into it; a person with the right to look into any process still can.

use std::io;

use rustix::process::{Resource, Rlimit, setrlimit};

/// From now on no core of this process is written.
pub fn forbid() -> io::Result<()> {
    // The limit is what people see; programs that take cores through a pipe do not heed it.
    setrlimit(
        Resource::Core,
        Rlimit {
            current: Some(0),
            maximum: Some(0),
        },
    )?;
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    Ok(())
}
