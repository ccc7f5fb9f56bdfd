//! This process: what it was built from, and what it takes of the machine, by the names that all Prometheus clients use.
//!
//! The numbers are read off `/proc` when somebody asks; where there is none, they are not shown.

use std::path::Path;
use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

/// Ticks a second in `/proc`: the kernel shows times in these, whatever its own are.
const TICKS: f64 = 100.0;

/// Which build this is.
pub(super) fn build(registry: &mut Registry) {
    let labels = [
        ("version", env!("CARGO_PKG_VERSION")),
        ("os", std::env::consts::OS),
        ("arch", std::env::consts::ARCH),
    ];
    registry.register(
        "slipway_build",
        "Which build this is",
        Info::new(labels.to_vec()),
    );
}

/// What the process takes now.
pub(super) fn now(registry: &mut Registry) {
    let Some(taken) = Taken::read(Path::new("/proc")) else {
        return;
    };
    let cpu = Counter::<f64, AtomicU64>::default();
    cpu.inc_by(taken.cpu_seconds);
    registry.register(
        "process_cpu_seconds",
        "Processor time used, of user and system",
        cpu,
    );
    for (name, help, value) in [
        (
            "process_resident_memory_bytes",
            "Memory that is resident",
            taken.resident,
        ),
        (
            "process_virtual_memory_bytes",
            "Memory that is mapped",
            taken.mapped,
        ),
        (
            "process_start_time_seconds",
            "When the process started, in Unix time",
            taken.started,
        ),
        (
            "process_open_fds",
            "File descriptors that are open",
            taken.open_files,
        ),
        (
            "process_max_fds",
            "File descriptors that may be open",
            taken.max_files,
        ),
    ] {
        let gauge = Gauge::<f64, AtomicU64>::default();
        gauge.set(value);
        registry.register(name, help, gauge);
    }
}

/// What a process takes of the machine.
#[derive(Debug, PartialEq)]
struct Taken {
    cpu_seconds: f64,
    resident: f64,
    mapped: f64,
    started: f64,
    open_files: f64,
    max_files: f64,
}

impl Taken {
    /// Of this process; none where the kernel does not say so.
    fn read(proc: &Path) -> Option<Self> {
        let text = |file: &str| std::fs::read_to_string(proc.join(file)).ok();
        let stat = text("self/stat")?;
        // The program's name is in brackets, and may have anything in it.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        // Counted from the third field of proc(5).
        let ticks = |field: usize| fields.get(field - 3)?.parse::<f64>().ok();
        let status = text("self/status")?;
        let boot = value(&text("stat")?, "btime")?;
        let open = std::fs::read_dir(proc.join("self/fd")).ok()?.count();
        Some(Self {
            cpu_seconds: (ticks(14)? + ticks(15)?) / TICKS,
            resident: value(&status, "VmRSS:")? * 1024.0,
            mapped: value(&status, "VmSize:")? * 1024.0,
            started: boot + ticks(22)? / TICKS,
            // One of them is open to count them.
            open_files: f64::from(u32::try_from(open.saturating_sub(1)).unwrap_or(u32::MAX)),
            max_files: value(&text("self/limits")?, "Max open files").unwrap_or(f64::INFINITY),
        })
    }
}

/// The number after the name at the beginning of a line.
fn value(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    #[allow(clippy::disallowed_methods, reason = "a process starts in real time")]
    fn a_process_shows_what_it_takes() {
        let taken = Taken::read(Path::new("/proc")).unwrap();
        assert!(taken.resident > 1e5 && taken.mapped >= taken.resident);
        assert!(taken.open_files >= 3.0 && taken.max_files >= taken.open_files);
        let now = jiff::Timestamp::now().as_duration().as_secs_f64();
        assert!(
            (0.0..86_400.0).contains(&(now - taken.started)),
            "{taken:?}"
        );
        let mut registry = Registry::default();
        build(&mut registry);
        super::now(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for name in [
            "slipway_build_info{version=\"",
            "process_cpu_seconds_total ",
            "process_resident_memory_bytes ",
            "process_open_fds ",
            "process_start_time_seconds ",
        ] {
            assert!(text.contains(&format!("\n{name}")), "{name}: {text}");
        }
    }

    #[test]
    fn without_proc_nothing_is_shown() {
        assert_eq!(Taken::read(Path::new("/nowhere")), None);
    }
}
