//! `cargo xtask layout`: which functions of the program run in an operator, so that they can lie together in it.
//!
//! Most of an operator's memory is its own code, and what is read of a file comes in pieces of many functions. Where those
//! that run lie side by side, the others never come. The list has names and nothing that changes with a compiler or a
//! version; a function that is missing in it lies where it lay before, and one that is gone is looked for in vain. So an old list costs
//! memory and nothing else; `cargo xtask bench zones` says how much.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::controlplane;
use crate::controlplane::Shape;
use crate::report;
use crate::workspace;

/// What there is to do for it.
const OBJECTS: &str = include_str!("layout/objects.yaml");

/// How long a program that is looked at so closely needs until it has done what there was to do.
const AWHILE: Duration = Duration::from_secs(75);

/// Where its webhooks are.
const WEBHOOKS: &str = "8443";

pub(crate) fn run() -> Result<()> {
    if workspace::which("valgrind").is_none() {
        bail!("valgrind is not on the PATH, which says what runs; install it");
    }
    let program = workspace::build_shipped_with_names()?;
    let folder = workspace::target().join(format!("layout-{}", std::process::id()));
    std::fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    let seen = look(&program, &folder);
    let _ = std::fs::remove_dir_all(&folder);
    let names = names(&seen?);
    if names.is_empty() {
        bail!("no function was seen to run");
    }
    let lines: Vec<&str> = names.iter().map(String::as_str).collect();
    let list = lines.join("\n") + "\n";
    std::fs::write(workspace::layout(), list).context("writing the list of functions")?;
    report::line(&format!("{} functions", names.len()));
    Ok(())
}

/// Lets an operator work beside an embedded server; what was said of the functions that ran.
fn look(program: &Path, folder: &Path) -> Result<String> {
    let kubeconfig = folder.join("kubeconfig");
    let service = format!("rollout/rollout-operator=127.0.0.1:{WEBHOOKS}");
    let mut server = Ended(
        Command::new(program)
            .args([
                "apiserver",
                "--port",
                "0",
                "--actors",
                "--crds",
                "--clusters",
                "hub,rome",
            ])
            .args(["--service", &service, "--kubeconfig-out"])
            .arg(&kubeconfig)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("starting the embedded server")?,
    );
    let start = Instant::now();
    while !kubeconfig.is_file() {
        if start.elapsed() > AWHILE || server.0.try_wait()?.is_some() {
            bail!("the embedded server did not answer");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let story = Story {
        kubectl: controlplane::tools::locate(&Shape::default())?
            .path("kubectl")?
            .to_owned(),
        program,
        kubeconfig,
        folder,
    };
    story.prepare()?;
    let out = folder.join("functions");
    let mut operator = Ended(
        Command::new("valgrind")
            .args(["--tool=callgrind", "--demangle=no"])
            .arg(format!("--callgrind-out-file={}", out.display()))
            .arg(program)
            .args(["run", "--controllers", "zones,restarts,canary,fleet,agent"])
            .args(["--webhooks", "--no-leader-elect", "--kubeconfig"])
            .arg(&story.kubeconfig)
            .args(["--call-special", "127.0.0.1"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("starting the operator under valgrind")?,
    );
    std::thread::sleep(AWHILE / 3);
    story.play()?;
    Command::new("kill")
        .args(["-INT", &operator.0.id().to_string()])
        .status()
        .context("ending the operator")?;
    operator.0.wait().context("waiting for the operator")?;
    std::fs::read_to_string(&out).context("reading which functions ran")
}

/// Who does what meanwhile.
struct Story<'a> {
    kubectl: PathBuf,
    program: &'a Path,
    kubeconfig: PathBuf,
    folder: &'a Path,
}

impl Story<'_> {
    fn prepare(&self) -> Result<()> {
        for namespace in ["mimir", "shop"] {
            self.kubectl(&["create", "namespace", namespace])?;
        }
        let manifests = Command::new(self.program)
            .args(["manifests", "--controllers", "zones", "--webhooks"])
            .args(["--namespace", "mimir", "--no-crds"])
            .output()
            .context("printing manifests")?;
        self.apply("manifests.yaml", &manifests.stdout)?;
        let rome = Command::new(&self.kubectl)
            .args(["config", "view", "--minify", "--raw", "--context", "rome"])
            .env("KUBECONFIG", &self.kubeconfig)
            .output()
            .context("reading the other cluster's kubeconfig")?;
        let rome = self.file("rome", &rome.stdout)?;
        let value = format!("--from-file=value={}", rome.display());
        self.kubectl(&[
            "--namespace",
            "shop",
            "create",
            "secret",
            "generic",
            "rome",
            &value,
        ])?;
        let labels = ["fleet.squaremo.dev/cluster=true", "env=staging"];
        self.kubectl(&[
            "--namespace",
            "shop",
            "label",
            "secret",
            "rome",
            labels[0],
            labels[1],
        ])
    }

    fn play(&self) -> Result<()> {
        self.apply("objects.yaml", OBJECTS.as_bytes())?;
        std::thread::sleep(AWHILE);
        let [zones, shop] = ["mimir", "shop"].map(|namespace| format!("--namespace={namespace}"));
        for zone in ["statefulset/ingester-zone-a", "statefulset/ingester-zone-b"] {
            self.kubectl(&[&zones, "set", "image", zone, "ingester=ingester:2"])?;
        }
        self.kubectl(&[&shop, "set", "image", "deployment/web", "web=web:2"])?;
        std::thread::sleep(AWHILE);
        // What is refused is as good: an answer was made.
        let _ = self.kubectl(&[
            &zones,
            "scale",
            "statefulset/ingester-zone-a",
            "--replicas=1",
        ]);
        let _ = self.kubectl(&[
            "drain",
            "--all",
            "--ignore-daemonsets",
            "--force",
            "--timeout=20s",
        ]);
        for path in ["metrics", "ready", "healthz"] {
            let _ = Command::new("curl")
                .args(["--silent", "--output", "/dev/null"])
                .arg(format!("http://127.0.0.1:8001/{path}"))
                .status();
        }
        Ok(())
    }

    fn apply(&self, name: &str, text: &[u8]) -> Result<()> {
        let file = self.file(name, text)?;
        self.kubectl(&[
            "apply",
            "--server-side",
            "--filename",
            &file.display().to_string(),
        ])
    }

    fn file(&self, name: &str, text: &[u8]) -> Result<PathBuf> {
        let file = self.folder.join(name);
        std::fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
        Ok(file)
    }

    fn kubectl(&self, words: &[&str]) -> Result<()> {
        let status = Command::new(&self.kubectl)
            .args(words)
            .env("KUBECONFIG", &self.kubeconfig)
            .status()
            .context("starting kubectl")?;
        if !status.success() {
            bail!("kubectl {} ended with {status}", words.join(" "));
        }
        Ok(())
    }
}

/// A program that ends when nobody needs it any more.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The names of what ran, without what is another one with each compiler, version and folder.
fn names(callgrind: &str) -> BTreeSet<String> {
    callgrind
        .lines()
        .filter_map(|line| {
            let named = line
                .strip_prefix("fn=")
                .or_else(|| line.strip_prefix("cfn="))?;
            let (_, name) = named.split_once(") ")?;
            // A function that calls itself is named once more for each depth.
            name.split('\'').next()
        })
        .filter(|name| name.starts_with("_R"))
        .map(lasting)
        .collect()
}

/// A mangled name with any disambiguator in place of the crates' own (`C` `s` … `_`).
fn lasting(name: &str) -> String {
    let mut lasting = String::new();
    let mut rest = name;
    while let Some((before, after)) = rest.split_once("Cs") {
        lasting.push_str(before);
        let digits = after.len()
            - after
                .trim_start_matches(|sign: char| sign.is_ascii_alphanumeric())
                .len();
        let is_one = (6..=12).contains(&digits) && after[digits..].starts_with('_');
        lasting.push_str(if is_one { "Cs*" } else { "Cs" });
        rest = if is_one { &after[digits..] } else { after };
    }
    lasting + rest
}

/// The list as a linker reads it.
pub(crate) fn script(list: &str) -> String {
    let sections: Vec<String> = list
        .lines()
        .map(|name| format!("    *(.text.{name})"))
        .collect();
    format!(
        "SECTIONS {{\n  .text.operator : {{\n{}\n  }}\n}}\nINSERT BEFORE .text;\n",
        sections.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_outlast_a_compiler_and_a_version() {
        assert_eq!(
            lasting("_RNvNtNtCs4fqI2P2rA04_15slipway_runtime6engine4work"),
            "_RNvNtNtCs*_15slipway_runtime6engine4work"
        );
        assert_eq!(lasting("_RNvC5local2CsX"), "_RNvC5local2CsX");
    }

    #[test]
    fn what_ran_is_read_once_each() {
        let said = "fn=(1) _RNvCs4fqI2P2rA04_7slipway3run'2\ncfn=(2) _RNvCs4fqI2P2rA04_7slipway3run\ncfn=(1)\nfn=(3) memcpy\n";
        assert_eq!(
            names(said),
            BTreeSet::from(["_RNvCs*_7slipway3run".to_owned()])
        );
    }

    #[test]
    fn a_linker_is_told_where_they_go() {
        assert_eq!(
            script("_RNv\n"),
            "SECTIONS {\n  .text.operator : {\n    *(.text._RNv)\n  }\n}\nINSERT BEFORE .text;\n"
        );
    }
}
