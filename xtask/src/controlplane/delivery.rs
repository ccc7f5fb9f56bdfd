//! Flux and Flagger on a control plane: their kinds, and which processes with which flags.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::Shape;
use super::tools::Programs;
use super::words::{Words, text};
use crate::ports::Port;

/// Installs the kinds of those that are asked for, without which they do not start, and says how to start them.
pub(super) fn joined(
    programs: &Programs,
    shape: &Shape,
    kubectl: &Path,
    home: &Path,
    kubeconfig: &Path,
) -> Result<Vec<(&'static str, Words)>> {
    let mut all = Vec::new();
    let config = kubeconfig.display().to_string();
    if shape.flux {
        for name in ["source-controller", "kustomize-controller"] {
            install(programs, name, "", kubectl, kubeconfig)?;
        }
        let flux = |words: Words| {
            words
                .with("RUNTIME_NAMESPACE", "flux-system")
                .with("KUBECONFIG", &config)
        };
        std::fs::create_dir_all(home.join(SOURCES)).context("making a folder for sources")?;
        let port = Port::draw()?;
        let words = source(home, &port).holding([port]);
        all.push(("source-controller", flux(words)));
        all.push(("kustomize-controller", flux(text(&FLUX))));
    }
    if shape.flagger {
        install(programs, "flagger", "crd.yaml", kubectl, kubeconfig)?;
        let port = Port::draw()?;
        all.push(("flagger", flagger(&config, &port).holding([port])));
    }
    Ok(all)
}

/// Where source-controller keeps what it fetched.
const SOURCES: &str = "sources";

/// What Flux's controllers have in common: nothing but their work.
const FLUX: [&str; 4] = [
    "--metrics-addr=0",
    "--health-addr=0",
    "--events-addr=",
    "--enable-leader-election=false",
];

fn source(home: &Path, port: &Port) -> Words {
    let folder = home.join(SOURCES);
    let path = format!("--storage-path={}", folder.display());
    let (address, advertised) = (
        format!("--storage-addr=127.0.0.1:{port}"),
        format!("--storage-adv-addr=127.0.0.1:{port}"),
    );
    let mut words: Vec<&str> = FLUX.to_vec();
    words.extend([path.as_str(), &address, &advertised]);
    text(&words)
}

fn flagger(kubeconfig: &str, port: &Port) -> Words {
    text(&[
        &format!("-kubeconfig={kubeconfig}"),
        "-mesh-provider=kubernetes",
        &format!("-port={port}"),
        "-control-loop-interval=1s",
        "-log-level=info",
        // Nobody asks it: canaries without a mesh are judged by their readiness.
        "-metrics-server=http://127.0.0.1:9",
    ])
}

/// Applies the definitions that come with a module, and waits until they are served.
fn install(
    programs: &Programs,
    module: &str,
    file: &str,
    kubectl: &Path,
    kubeconfig: &Path,
) -> Result<()> {
    let Some(files) = programs.files(module) else {
        bail!("the definitions of {module} are not there");
    };
    let place = files.join(file);
    for arguments in [
        &["apply", "--server-side", "-f"] as &[&str],
        &["wait", "--for=condition=Established", "--timeout=30s", "-f"],
    ] {
        let output = Command::new(kubectl)
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .args(arguments)
            .arg(&place)
            .output()
            .context("starting kubectl")?;
        if !output.status.success() {
            bail!(
                "installing {}: {}",
                place.display(),
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }
    Ok(())
}
