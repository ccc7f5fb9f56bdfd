//! Folders and processes that end with the value that stands for them.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// An empty folder that goes with this value.
pub struct Folder(PathBuf);

impl Folder {
    /// Makes one; `purpose` is part of its name.
    pub fn new(purpose: &str) -> Result<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!(
            "slipway-e2e-{}-{number}-{purpose}",
            std::process::id()
        ));
        std::fs::create_dir_all(&path).with_context(|| format!("creating {}", path.display()))?;
        Ok(Self(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A shell command with all that it starts; ended with this value.
pub struct Shell {
    child: Child,
    out: Receiver<String>,
    err: Receiver<String>,
}

/// What a finished command left.
pub struct Output {
    /// What it printed.
    pub out: String,
    /// What it said beside.
    pub err: String,
    /// None: ended by a signal.
    pub exit: Option<i32>,
}

impl Shell {
    /// Starts `sh -c script` with nothing in its environment but what is given.
    pub fn start(script: &str, folder: &Path, environment: &[(&str, String)]) -> Result<Self> {
        let mut child = Command::new("sh")
            .args(["-c", script])
            .current_dir(folder)
            .env_clear()
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A group of its own, so that all of it can be ended.
            .process_group(0)
            .spawn()
            .with_context(|| format!("starting {script}"))?;
        let out = lines(child.stdout.take());
        let err = lines(child.stderr.take());
        Ok(Self { child, out, err })
    }

    /// Whether it has ended.
    pub fn is_done(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    /// Waits until it ends.
    pub fn finish(mut self, within: Duration) -> Result<Output> {
        let deadline = Instant::now() + within;
        let out = until_end(&self.out, deadline)?;
        let err = until_end(&self.err, deadline)?;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Output {
                    out,
                    err,
                    exit: status.code(),
                });
            }
            if Instant::now() > deadline {
                bail!("it did not end");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for so many lines of output, or until time is up.
    pub fn take_lines(&self, count: usize, within: Duration) -> String {
        let deadline = Instant::now() + within;
        let mut text = String::new();
        for _ in 0..count {
            match self
                .out
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            {
                Ok(line) => text.push_str(&line),
                Err(_) => break,
            }
        }
        text
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill")
            .args(["-KILL", "--", &group])
            .stderr(Stdio::null())
            .status();
        let _ = self.child.wait();
    }
}

/// Reads a stream by lines, each with its end.
fn lines<R: Read + Send + 'static>(stream: Option<R>) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let Some(stream) = stream else { return };
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        while reader
            .read_until(b'\n', &mut line)
            .is_ok_and(|read| read > 0)
        {
            if sender
                .send(String::from_utf8_lossy(&line).into_owned())
                .is_err()
            {
                return;
            }
            line.clear();
        }
    });
    receiver
}

fn until_end(lines: &Receiver<String>, deadline: Instant) -> Result<String> {
    let mut text = String::new();
    loop {
        match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => text.push_str(&line),
            Err(RecvTimeoutError::Disconnected) => return Ok(text),
            Err(RecvTimeoutError::Timeout) => bail!("it did not end; it said: {text}"),
        }
    }
}

/// Resident memory of a process, in bytes.
pub fn resident(id: u32) -> Result<u64> {
    memory(id, "VmRSS:")
}

/// The most that a process ever had resident, in bytes.
pub fn most_resident(id: u32) -> Result<u64> {
    memory(id, "VmHWM:")
}

fn memory(id: u32, key: &str) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status"))
        .with_context(|| format!("reading the memory of process {id}"))?;
    let kilobytes = status
        .lines()
        .find_map(|line| line.strip_prefix(key))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok())
        .with_context(|| format!("the kernel does not tell the memory of process {id}"))?;
    Ok(kilobytes * 1024)
}

/// Processor time of a process so far.
pub fn processor_time(id: u32) -> Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat"))
        .with_context(|| format!("reading the processor time of process {id}"))?;
    // The name in parentheses may hold anything; fields are counted after it.
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: u64 = rest
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<u64>().ok())
        .sum();
    // 100 ticks a second on every Linux that this runs on.
    Ok(Duration::from_millis(ticks * 10))
}
