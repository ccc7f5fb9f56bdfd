//! What can be asked of a real control plane that runs: tests of failures do.
//!
//! Who asks writes a word into the file `order` in the folder of the control plane. `cargo xtask controlplane`, which owns the
//! processes, does it and then removes the file; where it cannot, `order.failed` says why.
//!
//! This file is a module of `slipway-e2e` and of `xtask`, neither of which may depend on the other.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// How long a control plane may take.
const WITHIN: Duration = Duration::from_mins(3);

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Order {
    /// End the API server, or silence it where its objects would go with it; what has joined it stays and finds nobody
    Stop,
    /// Start what does not run
    Start,
    /// Begin again without any object: another cluster at the same address. Its etcd has to be its own
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

    /// Asks the control plane with this folder for it, and waits until it is done.
    pub fn give(self, home: &Path) -> Result<()> {
        let (word, place) = (self.word(), home.display());
        let [order, written, failed] =
            ["order", "order.written", "order.failed"].map(|name| home.join(name));
        let _ = std::fs::remove_file(&failed);
        // Moved there, so that nobody reads half a word.
        std::fs::write(&written, word)
            .and_then(|()| std::fs::rename(&written, &order))
            .with_context(|| format!("asking the control plane in {place} to {word}"))?;
        let start = Instant::now();
        while order.exists() {
            if start.elapsed() > WITHIN {
                bail!("the control plane in {place} did not {word} within {WITHIN:?}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        match std::fs::read_to_string(&failed) {
            Ok(why) => bail!("the control plane in {place} did not {word}: {why}"),
            Err(_) => Ok(()),
        }
    }

    /// Does what is asked of the control plane with this folder, if anything is.
    pub fn take(home: &Path, carry_out: impl FnOnce(Self) -> Result<()>) -> Result<()> {
        let order = home.join("order");
        let Ok(word) = std::fs::read_to_string(&order) else {
            return Ok(());
        };
        if let Err(error) = Self::read(&word).and_then(carry_out) {
            std::fs::write(home.join("order.failed"), format!("{error:#}"))
                .with_context(|| format!("saying in {} what failed", home.display()))?;
        }
        std::fs::remove_file(&order).with_context(|| format!("removing {}", order.display()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn an_order_is_carried_out_once_and_a_failure_is_told() {
        let home = std::env::temp_dir().join(format!("slipway-order-{}", std::process::id()));
        std::fs::create_dir_all(&home).unwrap();
        let mut seen = Vec::new();
        let mut take = |result: Result<()>| {
            Order::take(&home, |order| {
                seen.push(order);
                result
            })
            .unwrap();
        };
        take(Ok(()));
        for order in [Order::Stop, Order::Start, Order::Wipe] {
            std::fs::write(home.join("order"), order.word()).unwrap();
            take(Ok(()));
            take(Ok(()));
        }
        assert!(!home.join("order.failed").exists());
        std::fs::write(home.join("order"), "wipe").unwrap();
        take(Err(anyhow::anyhow!("it is shared")));
        let all = [Order::Stop, Order::Start, Order::Wipe, Order::Wipe];
        assert_eq!(seen, all);
        let why = std::fs::read_to_string(home.join("order.failed")).unwrap();
        assert_eq!(why, "it is shared");
        std::fs::remove_dir_all(&home).unwrap();
    }
}
