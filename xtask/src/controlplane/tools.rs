//! The programs of a control plane: found by `KUBEBUILDER_ASSETS`, in the cache, on the PATH (kubectl), or built once
//! from Go modules.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use super::Shape;
use crate::report;
use crate::workspace;

/// The Kubernetes version that the binaries say they are.
const KUBERNETES: &str = "v1.36.3";

/// One Go module that is built, in `xtask/controlplane/FOLDER`.
pub(crate) struct Module {
    folder: &'static str,
    /// Package and name of the program; programs are built one after the other, sharing most of their packages.
    programs: &'static [(&'static str, &'static str)],
    stamp: bool,
    /// Files that come with a module and are kept beside the programs: module and folder in it.
    files: Option<(&'static str, &'static str)>,
    /// Which control planes need it.
    needed: fn(&Shape) -> bool,
}

/// All modules.
pub(crate) const TOOLS: &[Module] = &[
    Module {
        folder: "etcd",
        programs: &[("go.etcd.io/etcd/server/v3", "etcd")],
        stamp: false,
        files: None,
        needed: |_| true,
    },
    Module {
        folder: "kubernetes",
        programs: &[
            ("k8s.io/kubernetes/cmd/kube-apiserver", "kube-apiserver"),
            (
                "k8s.io/kubernetes/cmd/kube-controller-manager",
                "kube-controller-manager",
            ),
            ("k8s.io/kubernetes/cmd/kube-scheduler", "kube-scheduler"),
            ("k8s.io/kubernetes/cmd/kubectl", "kubectl"),
        ],
        stamp: true,
        files: None,
        needed: |_| true,
    },
    Module {
        folder: "kwok",
        programs: &[("sigs.k8s.io/kwok/cmd/kwok", "kwok")],
        stamp: false,
        files: Some(("sigs.k8s.io/kwok", "kustomize/stage")),
        needed: |_| true,
    },
    Module {
        folder: "source-controller",
        programs: &[("github.com/fluxcd/source-controller", "source-controller")],
        stamp: false,
        files: Some(("github.com/fluxcd/source-controller", "config/crd/bases")),
        needed: |shape| shape.flux,
    },
    Module {
        folder: "kustomize-controller",
        programs: &[(
            "github.com/fluxcd/kustomize-controller",
            "kustomize-controller",
        )],
        stamp: false,
        files: Some(("github.com/fluxcd/kustomize-controller", "config/crd/bases")),
        needed: |shape| shape.flux,
    },
    Module {
        folder: "flagger",
        programs: &[("github.com/fluxcd/flagger/cmd/flagger", "flagger")],
        stamp: false,
        files: Some(("github.com/fluxcd/flagger", "artifacts/flagger")),
        needed: |shape| shape.flagger,
    },
];

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

    /// The files that came with a module, if it was built here.
    pub(crate) fn files(&self, folder: &str) -> Option<&Path> {
        self.files.get(folder).map(PathBuf::as_path)
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
    if TOOLS
        .iter()
        .filter(|module| (module.needed)(shape))
        .all(is_found)
        || workspace::which("go").is_some()
    {
        return Ok(());
    }
    bail!(
        "there is no Go on the PATH to build a control plane with, and no binaries are named by KUBEBUILDER_ASSETS: \
         install Go 1.26 or set KUBEBUILDER_ASSETS to a folder with etcd, kube-apiserver, kube-controller-manager, \
         kube-scheduler, kubectl and kwok"
    )
}

fn is_found(module: &Module) -> bool {
    let folder = cached(module).ok();
    module.programs.iter().all(|(_, name)| {
        asset(name).is_some()
            || folder
                .as_ref()
                .is_some_and(|folder| folder.join(name).is_file())
    })
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
    for module in TOOLS.iter().filter(|module| (module.needed)(shape)) {
        let folder = cached(module)?;
        for (package, name) in module.programs {
            let built = folder.join(name);
            let path = match asset(name) {
                Some(path) => path,
                None if built.is_file() => built,
                None => {
                    build(module, package, name, &folder)?;
                    built
                }
            };
            programs.paths.insert(name, path);
        }
        if let Some((go_module, inside)) = module.files {
            let kept = folder.join("files");
            if !kept.is_dir() {
                keep_files(module, go_module, inside, &kept)?;
            }
            programs.files.insert(module.folder, kept);
        }
    }
    Ok(programs)
}

fn source(module: &Module) -> PathBuf {
    workspace::root()
        .join("xtask")
        .join("controlplane")
        .join(module.folder)
}

fn flags(module: &Module) -> String {
    if !module.stamp {
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

/// The cache folder of a module: named by the content that decides what is built.
fn cached(module: &Module) -> Result<PathBuf> {
    let mut hash = Sha256::new();
    for file in ["go.mod", "go.sum"] {
        let path = source(module).join(file);
        hash.update(std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?);
    }
    hash.update(flags(module));
    let mut digest = String::new();
    for byte in hash.finalize().iter().take(8) {
        let _ = write!(digest, "{byte:02x}");
    }
    Ok(workspace::cache()?
        .join("controlplane")
        .join(format!("{}-{digest}", module.folder)))
}

fn build(module: &Module, package: &str, name: &str, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    report::line(&format!(
        "building {name} from Go modules (once; kept in {})",
        folder.display()
    ));
    // Built under another name and moved, so that an interrupted build leaves no half program in the cache.
    let partial = folder.join(format!(".{name}.{}", std::process::id()));
    let start = Instant::now();
    let mut child = Command::new("go")
        .args([
            "build",
            "-mod=readonly",
            "-trimpath",
            "-buildvcs=false",
            "-ldflags",
            &flags(module),
            "-o",
        ])
        .arg(&partial)
        .arg(package)
        .current_dir(source(module))
        .spawn()
        .context("starting go")?;
    let mut told = start;
    let status = loop {
        if let Some(status) = child.try_wait().context("waiting for go")? {
            break status;
        }
        if told.elapsed() > Duration::from_secs(15) {
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
    std::fs::rename(&partial, folder.join(name)).with_context(|| format!("keeping {name}"))?;
    report::line(&format!(
        "  {name} built in {}",
        report::duration(start.elapsed())
    ));
    Ok(())
}

fn keep_files(module: &Module, go_module: &str, inside: &str, kept: &Path) -> Result<()> {
    let output = Command::new("go")
        .args(["list", "-mod=readonly", "-m", "-f", "{{.Dir}}", go_module])
        .current_dir(source(module))
        .output()
        .context("asking go for a module's folder")?;
    let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if folder.is_empty() {
        bail!(
            "go does not know the folder of {go_module}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    copy_tree(&Path::new(&folder).join(inside), kept)
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
