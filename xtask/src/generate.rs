//! `cargo xtask generate`: files that are made from other files and checked in.
//!
//! The table of built-in kinds is made from the `OpenAPI` documents and the Go types of the Kubernetes modules that
//! `xtask/controlplane/kubernetes` pins, and is a function of those modules alone. Manifests and pages of the reference
//! are what the program itself prints.

mod documents;
mod golang;
#[allow(
    dead_code,
    unreachable_pub,
    reason = "the test that compares reads what is written here"
)]
mod outline;
mod pages;
mod proto;
mod write;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Where the table is checked in, from the root of the workspace.
const TABLE: &str = "crates/apiserver/src/schema/builtin.types";

/// What the real server's `OpenAPI` documents have, from the root of the workspace.
const OUTLINE: &str = "crates/apiserver/tests/integration/openapi.outline";

/// Makes the generated files; with `check`, fails if a checked-in one differs instead of writing it.
/// With `pages` only what needs no Go.
pub(crate) fn run(check: bool, pages: bool) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .context("xtask lies in the workspace")?;
    if !pages {
        // First: the program that prints the pages has the table in it.
        table(root, check)?;
    }
    pages::run(root, check)
}

fn table(root: &Path, check: bool) -> Result<()> {
    let pins = root.join("xtask/controlplane/kubernetes");
    let kubernetes = module(&pins, "k8s.io/kubernetes")?;
    let documents = kubernetes.folder.join("api/openapi-spec/v3");
    settle(
        &root.join(OUTLINE),
        &documents::outlines(&documents)?,
        check,
    )?;
    let schemas = documents::read(&documents)?;
    let mut go = golang::Sources::new();
    for name in [
        "k8s.io/api",
        "k8s.io/apimachinery",
        "k8s.io/apiextensions-apiserver",
    ] {
        go.add_module(name, module(&pins, name)?.folder);
    }
    let made = write::table(&kubernetes.version, &schemas, &mut go)?;
    settle(&root.join(TABLE), &made, check)
}

struct Module {
    version: String,
    folder: PathBuf,
}

/// Where Go keeps a module that `pins` requires; it is fetched when it is not there yet.
fn module(pins: &Path, name: &str) -> Result<Module> {
    let output = Command::new("go")
        .args(["mod", "download", "-json", name])
        .current_dir(pins)
        .output()
        .context("cannot run `go`: generating the table needs a Go toolchain")?;
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let field = |key: &str| answer.get(key).and_then(Value::as_str);
    match (field("Version"), field("Dir")) {
        (Some(version), Some(folder)) if output.status.success() => Ok(Module {
            version: version.to_owned(),
            folder: PathBuf::from(folder),
        }),
        _ => bail!(
            "go mod download {name}: {}{}",
            field("Error").unwrap_or_default(),
            String::from_utf8_lossy(&output.stderr)
        ),
    }
}

fn settle(path: &Path, made: &str, check: bool) -> Result<()> {
    if check {
        let found = std::fs::read_to_string(path).unwrap_or_default();
        if found != made {
            bail!(
                "{} is not current: run `cargo xtask generate`",
                path.display()
            );
        }
        return Ok(());
    }
    std::fs::write(path, made).with_context(|| format!("cannot write {}", path.display()))
}
