//! Runs targets on tapes that proptest draws and makes shorter when one fails.
//!
//! A run is cut into blocks, each with a seed of its own out of the run's seed, the target's name and the block's number:
//! which thread takes which block does not matter. What a thread is at stands in a file, so that a case is known even
//! if it takes the process with it; a case that takes too long ends the process.

use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use proptest::prelude::Rng as _;
use proptest::strategy::{NewTree, Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use super::tape::hex;
use super::target::{Target, was_judged};

/// Cases that are drawn from one seed.
const BLOCK: u64 = 2_000;
/// How long one case may take, on a machine that has other things to do as well.
const PATIENCE: Duration = Duration::from_secs(20);
/// Threads have the stack that the server's have.
const STACK: usize = 2 * 1024 * 1024;

/// How much, and how.
#[derive(Debug, Clone)]
pub(crate) struct Effort {
    pub(crate) cases: u64,
    pub(crate) seed: u64,
    pub(crate) threads: u64,
}

/// A case that broke a law.
pub(crate) struct Crash {
    pub(crate) target: &'static str,
    pub(crate) why: String,
    pub(crate) tape: Vec<u8>,
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { target, why, tape } = self;
        write!(
            f,
            "{target}: {why}\n  again: cargo xtask fuzz --replay {target}:{}",
            hex(tape)
        )
    }
}

/// What a run of one target came to.
pub(crate) struct Outcome {
    pub(crate) cases: u64,
    /// Those of which a law says something: of the others only that nothing broke.
    pub(crate) judged: u64,
    pub(crate) time: Duration,
    pub(crate) crash: Option<Crash>,
}

/// Runs a target for so many cases, on so many threads, until one fails.
pub(crate) fn run(target: &'static Target, effort: &Effort) -> Outcome {
    let started = Instant::now();
    let next = Arc::new(AtomicU64::new(0));
    let done = Arc::new(AtomicU64::new(0));
    let judged = Arc::new(AtomicU64::new(0));
    let crash = Arc::new(Mutex::new(None));
    let blocks = effort.cases.div_ceil(BLOCK);
    let workers: Vec<_> = (0..effort.threads)
        .map(|thread| {
            let (next, done, crash, effort) =
                (next.clone(), done.clone(), crash.clone(), effort.clone());
            let judged = judged.clone();
            let watched = Watched::new(target, thread);
            let work = move || {
                loop {
                    let block = next.fetch_add(1, Ordering::Relaxed);
                    if block >= blocks || lock(&crash).is_some() {
                        return watched.end();
                    }
                    let cases = BLOCK.min(effort.cases - block * BLOCK);
                    match run_block(target, &effort, (block, cases), &watched, &judged) {
                        None => done.fetch_add(cases, Ordering::Relaxed),
                        Some(found) => {
                            *lock(&crash) = Some(found);
                            return watched.end();
                        }
                    };
                }
            };
            std::thread::Builder::new()
                .stack_size(STACK)
                .spawn(work)
                .unwrap()
        })
        .collect();
    for worker in workers {
        worker.join().unwrap();
    }
    let crash = lock(&crash).take();
    Outcome {
        cases: done.load(Ordering::Relaxed),
        judged: judged.load(Ordering::Relaxed),
        time: started.elapsed(),
        crash,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run_block(
    target: &'static Target,
    effort: &Effort,
    (block, cases): (u64, u64),
    watched: &Watched,
    judged: &AtomicU64,
) -> Option<Crash> {
    let config = Config {
        cases: u32::try_from(cases).unwrap(),
        failure_persistence: None,
        max_shrink_iters: 20_000,
        // Milliseconds.
        max_shrink_time: 30_000,
        ..Config::default()
    };
    let mut runner = TestRunner::new_with_rng(
        config,
        TestRng::from_seed(RngAlgorithm::ChaCha, &seed(target.name, effort.seed, block)),
    );
    let result = runner.run(
        &Tapes {
            longest: target.longest,
        },
        |tape| {
            watched.begin(&tape);
            let _ = was_judged();
            let tried = try_once(target, &tape).map_err(TestCaseError::fail);
            judged.fetch_add(u64::from(was_judged()), Ordering::Relaxed);
            tried
        },
    );
    match result {
        Ok(()) => None,
        Err(TestError::Abort(why)) => Some(Crash {
            target: target.name,
            why: why.to_string(),
            tape: Vec::new(),
        }),
        Err(TestError::Fail(why, tape)) => Some(Crash {
            target: target.name,
            why: why.to_string(),
            tape,
        }),
    }
}

/// Runs one case. The error says which law broke, or where it panicked.
pub(crate) fn try_once(target: &Target, tape: &[u8]) -> Result<(), String> {
    super::panics::take();
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (target.run)(tape)));
    match (result, super::panics::take()) {
        (Ok(()), None) => Ok(()),
        (_, Some(why)) => Err(why),
        (Err(_), None) => Err("a panic that nobody saw".to_owned()),
    }
}

fn seed(name: &str, seed: u64, block: u64) -> [u8; 32] {
    // FNV-1a, of which four different ones make 32 bytes.
    let mut out = [0; 32];
    for (i, chunk) in out.chunks_mut(8).enumerate() {
        let mut hash = 0xcbf2_9ce4_8422_2325 ^ (i as u64);
        for byte in name
            .bytes()
            .chain(seed.to_le_bytes())
            .chain(block.to_le_bytes())
        {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        chunk.copy_from_slice(&hash.to_le_bytes());
    }
    out
}

// === tapes ===

/// Draws tapes up to this length.
#[derive(Debug)]
struct Tapes {
    longest: usize,
}

impl Strategy for Tapes {
    type Tree = Shrinking;
    type Value = Vec<u8>;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        let rng = runner.rng();
        let length =
            usize::try_from(rng.next_u64() % (self.longest as u64 + 1)).unwrap_or_default();
        let mut tape = vec![0; length];
        rng.fill_bytes(&mut tape);
        Ok(Shrinking {
            best: tape.clone(),
            tried: tape,
            width: length.max(1),
            at: 0,
            zeroing: false,
        })
    }
}

/// A failing tape on its way to a shorter one: parts are left out, ever smaller ones, then bytes made zero.
struct Shrinking {
    best: Vec<u8>,
    tried: Vec<u8>,
    width: usize,
    at: usize,
    zeroing: bool,
}

impl Shrinking {
    /// The next attempt; false, and the best so far, when there is none.
    fn attempt(&mut self) -> bool {
        loop {
            if self.at >= self.best.len() {
                self.at = 0;
                self.width /= 2;
                if self.width == 0 && !self.zeroing {
                    (self.zeroing, self.width) = (true, 4);
                }
                if self.width == 0 || self.best.is_empty() {
                    self.tried.clone_from(&self.best);
                    self.width = 0;
                    self.at = usize::MAX;
                    self.zeroing = true;
                    return false;
                }
            }
            let end = (self.at + self.width).min(self.best.len());
            self.tried.clone_from(&self.best);
            if self.zeroing {
                self.tried[self.at..end].fill(0);
            } else {
                self.tried.drain(self.at..end);
            }
            self.at = end;
            if self.tried != self.best {
                return true;
            }
        }
    }
}

impl ValueTree for Shrinking {
    type Value = Vec<u8>;

    fn current(&self) -> Vec<u8> {
        self.tried.clone()
    }

    fn simplify(&mut self) -> bool {
        let removed = self.best.len() - self.tried.len();
        self.best.clone_from(&self.tried);
        self.at = self.at.saturating_sub(removed);
        self.attempt()
    }

    fn complicate(&mut self) -> bool {
        self.attempt()
    }
}

// === what a thread is at ===

/// The case of one thread: in a file, and under a watchdog.
struct Watched {
    file: File,
    path: PathBuf,
    since: Arc<AtomicU64>,
    epoch: Instant,
}

impl Watched {
    fn new(target: &'static Target, thread: u64) -> Self {
        let folder = folder();
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("{}.{}-{thread}", target.name, std::process::id()));
        let file = File::create(&path).unwrap();
        let (since, epoch) = (Arc::new(AtomicU64::new(0)), Instant::now());
        let (watched, told) = (Arc::downgrade(&since), path.clone());
        std::thread::spawn(move || {
            while let Some(since) = watched.upgrade() {
                let began = Duration::from_millis(since.load(Ordering::Relaxed));
                if !began.is_zero() && epoch.elapsed().saturating_sub(began) > PATIENCE {
                    let tape = at(&told).unwrap_or_default();
                    println!(
                        "{}: takes longer than {PATIENCE:?}\n  again: cargo xtask fuzz --replay {}:{}",
                        target.name,
                        target.name,
                        hex(&tape)
                    );
                    std::process::exit(1);
                }
                drop(since);
                std::thread::sleep(Duration::from_millis(500));
            }
        });
        Self {
            file,
            path,
            since,
            epoch,
        }
    }

    fn begin(&self, tape: &[u8]) {
        let now = u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.since.store(now.max(1), Ordering::Relaxed);
        let mut line = u32::try_from(tape.len())
            .unwrap_or(u32::MAX)
            .to_le_bytes()
            .to_vec();
        line.extend_from_slice(tape);
        self.file.write_all_at(&line, 0).unwrap();
    }

    fn end(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Where threads write what they are at.
fn folder() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    let target = exe.ancestors().nth(3).unwrap_or(Path::new("."));
    target.join("tmp/fuzz")
}

fn at(path: &Path) -> Option<Vec<u8>> {
    let bytes = std::fs::read(path).ok()?;
    let (length, tape) = bytes.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    tape.get(..length).map(<[u8]>::to_vec)
}

/// The cases that a run before this one did not survive.
pub(crate) fn left_behind() -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder()).into_iter().flatten().flatten() {
        let path = entry.path();
        let who = path
            .extension()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let process = who.split('-').next().unwrap_or_default();
        if Path::new("/proc").join(process).exists() {
            // It runs beside this one.
            continue;
        }
        if let (Some(name), Some(tape)) = (path.file_stem(), at(&path)) {
            found.push((name.to_string_lossy().into_owned(), tape));
        }
        let _ = std::fs::remove_file(&path);
    }
    found
}

pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}
