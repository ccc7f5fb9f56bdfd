//! What is made once and kept in the cache: programs, and the files beside them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail};

/// Makes what is not there yet. One thread at a time for each, so that whoever needs what another makes waits for it, and not
/// for what that one makes next; and under another name that is moved at the end, so that what is interrupted leaves no half
/// of it, and another process may do the same.
pub(crate) fn once(kept: &Path, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    static MAKING: Mutex<BTreeMap<PathBuf, Arc<Mutex<()>>>> = Mutex::new(BTreeMap::new());
    let turn = {
        let mut all = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(kept.to_owned()).or_default().clone()
    };
    let _alone = turn.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.exists() {
        return Ok(());
    }
    let (Some(folder), Some(name)) = (kept.parent(), kept.file_name()) else {
        bail!("{} is no place to keep something", kept.display());
    };
    std::fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    let name = name.to_string_lossy();
    let partial = folder.join(format!(".{name}.{}", std::process::id()));
    if let Err(failed) = make(&partial) {
        // What was interrupted before is of no use to whoever tries again.
        let _ = std::fs::remove_dir_all(&partial).or_else(|_| std::fs::remove_file(&partial));
        return Err(failed);
    }
    match std::fs::rename(&partial, kept) {
        // Another process was faster.
        Err(_) if kept.is_dir() => Ok(std::fs::remove_dir_all(&partial)?),
        renamed => renamed.with_context(|| format!("keeping {}", kept.display())),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Files were once copied by two threads at a time under one name: the quicker moved them away from under the slower, and
    /// a gate on a machine without caches failed.
    #[test]
    fn what_many_want_at_once_is_made_once() -> Result<()> {
        let folder = std::env::temp_dir().join(format!("slipway-once-{}", std::process::id()));
        let kept = folder.join("stage-files");
        let made = std::sync::atomic::AtomicUsize::new(0);
        let make = |partial: &Path| -> Result<()> {
            made.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            for number in 0..20 {
                std::fs::create_dir_all(partial)?;
                std::thread::sleep(Duration::from_millis(1));
                std::fs::write(partial.join(number.to_string()), "stage")?;
            }
            Ok(())
        };
        let ends: Vec<Result<()>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| once(&kept, make))).collect();
            threads
                .into_iter()
                .filter_map(|thread| thread.join().ok())
                .collect()
        });
        let files = std::fs::read_dir(&kept)?.count();
        std::fs::remove_dir_all(&folder)?;
        assert_eq!(ends.len(), 8);
        ends.into_iter().collect::<Result<()>>()?;
        assert_eq!((made.into_inner(), files), (1, 20));
        Ok(())
    }
}
