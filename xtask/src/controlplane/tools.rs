//! The programs of a control plane: found by `KUBEBUILDER_ASSETS`, in the cache, on the PATH (kubectl), or built once
//! from Go modules.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use super::Shape;
use crate::kept::once;
use crate::report;
use crate::workspace;

/// The Kubernetes version that the binaries say they are.
pub(crate) const KUBERNETES: &str = "v1.36.3";

/// A program that is built from a Go module.
struct Program {
    name: &'static str,
    package: &'static str,
    /// The folder in `xtask/controlplane` whose `go.mod` decides the versions. Programs of one folder share most of their
    /// packages, and so most of the time that their building takes.
    folder: &'static str,
    /// Files that come with it and are kept beside it: module and folder in it.
    files: Option<(&'static str, &'static str)>,
    /// Which control planes need it.
    needed: fn(&Shape) -> bool,
}

/// A program of Kubernetes itself.
const fn kubernetes(name: &'static str, package: &'static str) -> Program {
    Program {
        name,
        package,
        folder: STAMPED,
        files: None,
        needed: |_| true,
    }
}

/// The folder whose programs are told their version at build time.
const STAMPED: &str = "kubernetes";

/// All programs, in the order they are built in.
const PROGRAMS: &[Program] = &[
    Program {
        name: "etcd",
        package: "go.etcd.io/etcd/server/v3",
        folder: "etcd",
        files: None,
        needed: |_| true,
    },
    kubernetes("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
    kubernetes(
        "kube-controller-manager",
        "k8s.io/kubernetes/cmd/kube-controller-manager",
    ),
    kubernetes("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
    kubernetes("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
    Program {
        name: "kwok",
        package: "sigs.k8s.io/kwok/cmd/kwok",
        folder: "others",
        files: Some(("sigs.k8s.io/kwok", "kustomize/stage")),
        needed: |_| true,
    },
    Program {
        name: "source-controller",
        package: "github.com/fluxcd/source-controller",
        folder: "others",
        files: Some(("github.com/fluxcd/source-controller", "config/crd/bases")),
        needed: |shape| shape.flux,
    },
    Program {
        name: "kustomize-controller",
        package: "github.com/fluxcd/kustomize-controller",
        folder: "others",
        files: Some(("github.com/fluxcd/kustomize-controller", "config/crd/bases")),
        needed: |shape| shape.flux,
    },
    // It needs a version of Kubernetes' API that the others are past.
    Program {
        name: "flagger",
        package: "github.com/fluxcd/flagger/cmd/flagger",
        folder: "flagger",
        files: Some(("github.com/fluxcd/flagger", "artifacts/flagger")),
        needed: |shape| shape.flagger,
    },
];

/// What `shape` needs.
fn needed(shape: &Shape) -> impl Iterator<Item = &'static Program> {
    PROGRAMS.iter().filter(|program| (program.needed)(shape))
}

/// Where the programs are.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    paths: BTreeMap<&'static str, PathBuf>,
    files: BTreeMap<&'static str, PathBuf>,
}

impl Programs {
    /// All programs by name.
    pub(crate) fn paths(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.paths
            .iter()
            .map(|(name, path)| (*name, path.as_path()))
    }

    /// The files that came with a program, if it was built here.
    pub(crate) fn files(&self, program: &str) -> Option<&Path> {
        self.files.get(program).map(PathBuf::as_path)
    }

    /// One program.
    pub(crate) fn path(&self, name: &str) -> Result<&Path> {
        self.paths
            .get(name)
            .map(PathBuf::as_path)
            .with_context(|| format!("{name} is not there"))
    }
}

/// Whether all programs that `shape` needs could be found or built: `Err` says what is missing and what to do.
pub(crate) fn available(shape: &Shape) -> Result<()> {
    if needed(shape).all(is_found) || workspace::which("go").is_some() {
        return Ok(());
    }
    bail!(
        "there is no Go on the PATH to build a control plane with, and no binaries are named by KUBEBUILDER_ASSETS: \
         install Go 1.26 or set KUBEBUILDER_ASSETS to a folder with etcd, kube-apiserver, kube-controller-manager, \
         kube-scheduler, kubectl and kwok"
    )
}

fn is_found(program: &Program) -> bool {
    let built = cached(program.folder).map(|folder| folder.join(program.name));
    asset(program.name).is_some() || built.is_ok_and(|file| file.is_file())
}

fn asset(name: &str) -> Option<PathBuf> {
    let path = Path::new(&std::env::var_os("KUBEBUILDER_ASSETS")?).join(name);
    path.is_file().then_some(path)
}

/// Finds or builds all programs that `shape` needs.
pub(crate) fn locate(shape: &Shape) -> Result<Programs> {
    available(shape)?;
    let mut programs = Programs {
        paths: BTreeMap::new(),
        files: BTreeMap::new(),
    };
    for program in needed(shape) {
        let folder = cached(program.folder)?;
        let path = if let Some(path) = asset(program.name) {
            path
        } else {
            let built = folder.join(program.name);
            once(&built, |partial| build(program, &folder, partial))?;
            built
        };
        programs.paths.insert(program.name, path);
        if let Some((module, inside)) = program.files {
            let kept = folder.join(format!("{}-files", program.name));
            once(&kept, |partial| {
                copy_files(program.folder, module, inside, partial)
            })?;
            programs.files.insert(program.name, kept);
        }
    }
    Ok(programs)
}

fn source(folder: &str) -> PathBuf {
    workspace::root()
        .join("xtask")
        .join("controlplane")
        .join(folder)
}

/// What Go's compiler is told of every package: the linker drops what debuggers read, so that nobody need write it.
const COMPILER: &str = "-gcflags=all=-dwarf=false";

fn flags(folder: &str) -> String {
    if folder != STAMPED {
        return "-s -w".to_owned();
    }
    let mut parts = KUBERNETES.trim_start_matches('v').split('.');
    let (major, minor) = (
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
    );
    let version = "k8s.io/component-base/version";
    format!(
        "-s -w -X {version}.gitVersion={KUBERNETES} -X {version}.gitMajor={major} -X {version}.gitMinor={minor}"
    )
}

/// Runs the program that records what packages of Kubernetes say; gives the version of the Go that it was built with.
pub(crate) fn run_recorder(words: &[&OsStr]) -> Result<String> {
    let go = |command: &mut Command| -> Result<std::process::Output> {
        let ended = command.current_dir(source(STAMPED)).output();
        let output = ended.context("starting go; is it on the PATH?")?;
        if !output.status.success() {
            bail!("{}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(output)
    };
    let build = ["run", "-mod=readonly", "-trimpath", "-buildvcs=false"];
    go(Command::new("go").args(build).arg("./recorder").args(words))?;
    let said = go(Command::new("go").args(["env", "GOVERSION"]))?;
    Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
}

/// The cache folder of a folder's programs: named by the content that decides what is built.
fn cached(folder: &str) -> Result<PathBuf> {
    let mut hash = Sha256::new();
    for file in ["go.mod", "go.sum"] {
        let path = source(folder).join(file);
        hash.update(std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?);
    }
    hash.update(flags(folder));
    hash.update(COMPILER);
    let mut digest = String::new();
    for byte in hash.finalize().iter().take(8) {
        let _ = write!(digest, "{byte:02x}");
    }
    Ok(workspace::cache()?
        .join("controlplane")
        .join(format!("{folder}-{digest}")))
}

fn build(program: &Program, folder: &Path, partial: &Path) -> Result<()> {
    let name = program.name;
    report::line(&format!(
        "building {name} from Go modules (once; kept in {})",
        folder.display()
    ));
    let start = Instant::now();
    let mut go = workspace::gently(&Command::new("go"));
    // A quarter of what Go's compiler does is collecting garbage, in processes that end a moment later.
    if std::env::var_os("GOGC").is_none() {
        go.env("GOGC", "400");
    }
    let mut child = go
        .args([
            "build",
            "-mod=readonly",
            "-trimpath",
            "-buildvcs=false",
            COMPILER,
            "-ldflags",
            &flags(program.folder),
            "-o",
        ])
        .arg(partial)
        .arg(program.package)
        .current_dir(source(program.folder))
        .spawn()
        .context("starting go")?;
    let mut told = start;
    let status = loop {
        if let Some(status) = child.try_wait().context("waiting for go")? {
            break status;
        }
        if told.elapsed() > Duration::from_mins(1) {
            told = Instant::now();
            report::line(&format!(
                "  … still building {name}, {}",
                report::duration(start.elapsed())
            ));
        }
        std::thread::sleep(Duration::from_millis(200));
    };
    if !status.success() {
        bail!("building {name}: go ended with {status}");
    }
    report::line(&format!(
        "  {name} built in {}",
        report::duration(start.elapsed())
    ));
    Ok(())
}

/// Where the definitions of Gateway API are. They are a module of Go, of which nothing is built.
pub(crate) fn gateway() -> Result<PathBuf> {
    let (folder, module) = ("gateway", "sigs.k8s.io/gateway-api");
    let kept = cached(folder)?.join("definitions");
    once(&kept, |partial| {
        let fetched = Command::new("go")
            .args(["mod", "download", module])
            .current_dir(source(folder))
            .output()
            .context("starting go; is it on the PATH?")?;
        if !fetched.status.success() {
            let said = String::from_utf8_lossy(&fetched.stderr);
            bail!("downloading {module}: {said}");
        }
        copy_files(folder, module, "config/crd/standard", partial)
    })?;
    Ok(kept)
}

fn copy_files(source_folder: &str, module: &str, inside: &str, to: &Path) -> Result<()> {
    let output = Command::new("go")
        .args(["list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module])
        .current_dir(source(source_folder))
        .output()
        .context("asking go for a module's folder")?;
    let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if folder.is_empty() {
        bail!(
            "go does not know the folder of {module}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    copy_tree(&Path::new(&folder).join(inside), to)
}

fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to).with_context(|| format!("creating {}", to.display()))?;
    for entry in std::fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            let content = std::fs::read(entry.path())?;
            std::fs::write(&target, content)
                .with_context(|| format!("writing {}", target.display()))?;
        }
    }
    Ok(())
}
