//! `cargo xtask load`: a command again and again on a machine that is busy with something else, each run logged.
//!
//! The load is this process: threads that never pause, and connections to itself that come and go. It ends with it.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::report;
use crate::workspace;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How often
    #[arg(long, default_value_t = 1)]
    times: usize,
    /// How many threads keep processors busy; as many as there are processors, if nothing is said
    #[arg(long)]
    threads: Option<usize>,
    /// How many short connections a second are made beside
    #[arg(long, default_value_t = 0)]
    connections: u64,
    /// How many of them there are at most
    #[arg(long, default_value_t = 1_000_000)]
    most_connections: u64,
    /// Where each run's output goes; a folder of target, if nothing is said
    #[arg(long)]
    logs: Option<PathBuf>,
    /// What is run
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let folder = match &arguments.logs {
        Some(folder) => folder.clone(),
        None => workspace::target().join(format!("load-{}", std::process::id())),
    };
    std::fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    let threads = arguments.threads.unwrap_or(processors);
    let load = Load::start(threads, arguments.connections, arguments.most_connections)?;
    report::line(&format!(
        "{threads} busy threads, {} connections a second; logs in {}",
        arguments.connections,
        folder.display()
    ));
    let mut failed = 0;
    for number in 1..=arguments.times {
        let start = Instant::now();
        let code = once(
            &arguments.command,
            &folder.join(format!("run-{number}.log")),
        )?;
        let verdict = if code == Some(0) { "ok" } else { "FAILED" };
        failed += usize::from(code != Some(0));
        let line = format!(
            "run {number} of {}: {verdict} in {}, {} connections so far",
            arguments.times,
            report::duration(start.elapsed()),
            load.connections()
        );
        report::line(&line);
        let mut runs = File::options()
            .append(true)
            .create(true)
            .open(folder.join("runs.txt"))?;
        writeln!(runs, "{line}: {}", arguments.command.join(" "))?;
    }
    drop(load);
    if failed > 0 {
        bail!("{failed} of {} runs failed", arguments.times);
    }
    Ok(())
}

/// Runs the command; all that it says goes to a file, and its exit code comes back.
fn once(command: &[String], log: &Path) -> Result<Option<i32>> {
    let (program, arguments) = command.split_first().context("there is no command")?;
    let file = File::create(log).with_context(|| format!("creating {}", log.display()))?;
    let ended = workspace::called_as_by_hand(program)
        .args(arguments)
        .stdout(file.try_clone()?)
        .stderr(file)
        .status()
        .with_context(|| format!("starting {program}"))?;
    Ok(ended.code())
}

/// What keeps the machine busy, until this value goes.
struct Load {
    stop: Arc<AtomicBool>,
    made: Arc<AtomicU64>,
}

impl Load {
    fn start(threads: usize, connections: u64, most: u64) -> Result<Self> {
        let load = Self {
            stop: Arc::default(),
            made: Arc::default(),
        };
        for _ in 0..threads {
            let stop = load.stop.clone();
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        if connections > 0 {
            let address = answering()?;
            let (stop, made) = (load.stop.clone(), load.made.clone());
            std::thread::spawn(move || connect(address, connections, most, &stop, &made));
        }
        Ok(load)
    }

    fn connections(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Somebody who takes connections, and closes them when the other end has.
fn answering() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("listening for a load")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0]);
        }
    });
    Ok(address)
}

/// Makes connections, so many a second in tens of bursts, each from the next port that the kernel has.
fn connect(address: SocketAddr, a_second: u64, most: u64, stop: &AtomicBool, made: &AtomicU64) {
    let start = Instant::now();
    while !stop.load(Ordering::Relaxed) && made.load(Ordering::Relaxed) < most {
        let elapsed = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        let due = elapsed.saturating_mul(a_second) / 1_000;
        while made.load(Ordering::Relaxed) < due.min(most) && !stop.load(Ordering::Relaxed) {
            // One that is refused is as good: it had a port.
            drop(TcpStream::connect(address));
            made.fetch_add(1, Ordering::Relaxed);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
