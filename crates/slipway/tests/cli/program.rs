//! Runs the program, and ends it with the test.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long anything may take before it counts as never.
pub(crate) const NEVER: Duration = Duration::from_mins(1);

/// The program: `SLIPWAY_BIN`, such as the one that is shipped, else the one that was built for this test.
pub(crate) fn binary() -> PathBuf {
    std::env::var_os("SLIPWAY_BIN")
        .map_or_else(|| env!("CARGO_BIN_EXE_slipway").into(), PathBuf::from)
}

/// A folder of the test's own, which goes with it.
pub(crate) struct Place(PathBuf);

impl Place {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("slipway-cli-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("tmp")).unwrap();
        std::fs::create_dir_all(path.join("home/.kube")).unwrap();
        // Whoever reads this fails.
        std::fs::write(path.join("home/.kube/config"), "{ this is no kubeconfig").unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// What the program left among the temporary files.
    pub(crate) fn left_behind(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path("tmp")).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    /// The program with this folder as its home.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command
            .args(arguments)
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env_remove("KUBECONFIG")
            .env_remove("RUST_LOG")
            .env_remove("POD_NAME")
            .env_remove("POD_NAMESPACE")
            .stdin(Stdio::null());
        command
    }

    /// Runs to the end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Standard output of a run that must succeed.
pub(crate) fn succeeded(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// A running program. It dies with this.
pub(crate) struct Running {
    child: Child,
    lines: mpsc::Receiver<String>,
    pub(crate) seen: Vec<String>,
}

impl Running {
    /// Starts it and follows one of its outputs.
    pub(crate) fn start(command: &mut Command, follow_errors: bool) -> Self {
        let (out, err) = if follow_errors {
            (Stdio::null(), Stdio::piped())
        } else {
            (Stdio::piped(), Stdio::null())
        };
        let mut child = command.stdout(out).stderr(err).spawn().unwrap();
        let source: Box<dyn Read + Send> = match (child.stdout.take(), child.stderr.take()) {
            (Some(out), _) => Box::new(out),
            (_, Some(err)) => Box::new(err),
            _ => unreachable!("one of them is followed"),
        };
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(source).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self {
            child,
            lines,
            seen: Vec::new(),
        }
    }

    /// The first line that has this in it.
    pub(crate) fn line(&mut self, with: &str) -> String {
        let until = Instant::now() + NEVER;
        if let Some(line) = self.seen.iter().find(|line| line.contains(with)) {
            return line.clone();
        }
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if line.contains(with) {
                        return line;
                    }
                }
                Err(error) => panic!(
                    "no line with {with:?}: {error}; these came: {:#?}",
                    self.seen
                ),
            }
        }
    }

    /// Takes in the lines that have come.
    pub(crate) fn catch_up(&mut self) {
        self.seen.extend(self.lines.try_iter());
    }

    /// What the kernel says of it in a file of `/proc`.
    pub(crate) fn proc(&self, file: &str) -> String {
        self.try_proc(file).unwrap()
    }

    /// The same, where it may be that we are not let.
    pub(crate) fn try_proc(&self, file: &str) -> std::io::Result<String> {
        std::fs::read_to_string(format!("/proc/{}/{file}", self.child.id()))
    }

    /// Ends it as a fault of its own would, and gives whether a core was written.
    pub(crate) fn abort(mut self) -> bool {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-ABRT", &id]).status().unwrap();
        assert!(sent.success());
        let status = self.child.wait().unwrap();
        assert_eq!(status.signal(), Some(6), "{status}");
        status.core_dumped()
    }

    /// Asks it to end, as kubelet does, and gives its exit code.
    pub(crate) fn terminate(mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status().unwrap();
        assert!(sent.success());
        let until = Instant::now() + NEVER;
        while Instant::now() < until {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("it does not end");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until a file is there.
pub(crate) fn appears(file: &Path) {
    let until = Instant::now() + NEVER;
    while !file.exists() {
        assert!(Instant::now() < until, "{} never appears", file.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A client by a kubeconfig.
pub(crate) async fn client(kubeconfig: &Path) -> kube::Client {
    let read = kube::config::Kubeconfig::read_from(kubeconfig).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(read, &options)
        .await
        .unwrap();
    kube::Client::try_from(config).unwrap()
}

/// Runs something that waits for real programs.
pub(crate) fn wait<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(work)
}
