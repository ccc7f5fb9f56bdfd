//! What can be asked of a control plane that runs: tests of failures do.
//!
//! Who asks writes a word into the file `order` in the folder of the control plane. The supervisor does it and then removes
//! the file; where it cannot, the file becomes `order.failed` and says why.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::{READY_WITHIN, cluster};

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Order {
    /// End the API server; what has joined it stays and finds nobody
    Stop,
    /// Start what does not run
    Start,
    /// Start without any object: another cluster at the same address. Its etcd has to be its own
    Wipe,
}

impl Order {
    fn word(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Start => "start",
            Self::Wipe => "wipe",
        }
    }

    fn read(word: &str) -> Result<Self> {
        let all = [Self::Stop, Self::Start, Self::Wipe];
        let found = all.into_iter().find(|order| order.word() == word.trim());
        found.with_context(|| format!("{word:?} is none of stop, start and wipe"))
    }
}

fn file(home: &Path) -> PathBuf {
    home.join("order")
}

/// Asks a control plane for this, and waits until it is done.
pub(super) fn give(folder: &Path, index: usize, order: Order) -> Result<()> {
    let home = cluster::home(folder, index);
    let (file, failed) = (file(&home), home.join("order.failed"));
    let _ = std::fs::remove_file(&failed);
    // Moved there, so that nobody reads half a word.
    let written = home.join("order.written");
    std::fs::write(&written, order.word())
        .and_then(|()| std::fs::rename(&written, &file))
        .with_context(|| format!("there is no control plane {index}"))?;
    let start = Instant::now();
    while file.exists() {
        if start.elapsed() > READY_WITHIN {
            bail!("the control plane did not {} within {READY_WITHIN:?}", order.word());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    match std::fs::read_to_string(&failed) {
        Ok(why) => bail!("cluster-{index} did not {}: {why}", order.word()),
        Err(_) => Ok(()),
    }
}

/// Does what is asked of the control plane with this folder, if anything is.
pub(super) fn take(home: &Path, carry_out: impl FnOnce(Order) -> Result<()>) -> Result<()> {
    let file = file(home);
    let Ok(word) = std::fs::read_to_string(&file) else {
        return Ok(());
    };
    if let Err(error) = Order::read(&word).and_then(carry_out) {
        std::fs::write(home.join("order.failed"), format!("{error:#}"))
            .with_context(|| format!("saying why in {}", home.display()))?;
    }
    std::fs::remove_file(&file).with_context(|| format!("removing {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_is_read_as_it_is_written() {
        for order in [Order::Stop, Order::Start, Order::Wipe] {
            assert_eq!(Order::read(order.word()).ok(), Some(order));
        }
        assert!(Order::read("dance").is_err());
    }
}
