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
use crate::ports::Port;
use crate::report;
use crate::workspace;

/// What there is to do for it.
const OBJECTS: &str = include_str!("layout/objects.yaml");

/// How long a program that is looked at so closely needs until it has done what there was to do.
const AWHILE: Duration = Duration::from_secs(75);

/// Who is looked at: what several of them run stands first in the list, so that each has its own beside it.
const CREWS: &[&str] = &["zones", "restarts", "canary,fleet,agent"];

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A program that was built with names (`-C strip=none`, mangled in the form v0); without it one is built
    #[arg(long)]
    program: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if workspace::which("valgrind").is_none() {
        bail!("valgrind is not on the PATH, which says what runs; install it");
    }
    let program = match &arguments.program {
        Some(program) => program.clone(),
        None => workspace::build_shipped_with_names()?,
    };
    let seen = std::thread::scope(|scope| {
        let crews: Vec<_> = CREWS
            .iter()
            .map(|crew| scope.spawn(|| seen(&program, crew)))
            .collect();
        let all = crews.into_iter().map(|crew| match crew.join() {
            Ok(seen) => seen,
            Err(_) => bail!("looking at an operator panicked"),
        });
        all.collect::<Result<Vec<_>>>()
    })?;
    let list = list(&seen);
    std::fs::write(workspace::layout(), &list).context("writing the list of functions")?;
    report::line(&format!("{} functions", list.lines().count()));
    Ok(())
}

/// The names that one of these runs, or several.
fn seen(program: &Path, crew: &str) -> Result<BTreeSet<String>> {
    let first = crew.split(',').next().unwrap_or(crew);
    let folder = workspace::target().join(format!("layout-{}-{first}", std::process::id()));
    std::fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    let said = look(program, &folder, crew);
    let _ = std::fs::remove_dir_all(&folder);
    let names = names(&said.with_context(|| format!("looking at {crew}"))?);
    if names.is_empty() {
        bail!("no function of {crew} was seen to run");
    }
    Ok(names)
}

/// What more of the crews run before what fewer do, and each crew's own together.
fn list(seen: &[BTreeSet<String>]) -> String {
    let all: BTreeSet<&String> = seen.iter().flatten().collect();
    let mut lines: Vec<(Vec<bool>, &String)> = all
        .into_iter()
        .map(|name| (seen.iter().map(|crew| !crew.contains(name)).collect(), name))
        .collect();
    lines.sort_by_key(|(missing, name)| {
        let who = missing.iter().filter(|is| **is).count();
        (who, missing.clone(), (*name).clone())
    });
    let names: Vec<&str> = lines.iter().map(|(_, name)| name.as_str()).collect();
    names.join("\n") + "\n"
}

/// Lets an operator work beside an embedded server; what was said of the functions that ran.
fn look(program: &Path, folder: &Path, crew: &str) -> Result<String> {
    let kubeconfig = folder.join("kubeconfig");
    let (webhooks, probes) = (Port::draw()?, Port::draw()?);
    let service = format!("rollout/rollout-operator=127.0.0.1:{webhooks}");
    let mut server = Ended(
        Command::new(program)
            .args(["apiserver", "--port=0", "--actors", "--crds"])
            .args(["--clusters", "hub,rome"])
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
        probes,
        has_webhooks: crew == "zones",
    };
    story.prepare()?;
    let out = folder.join("functions");
    let mut operator = Command::new("valgrind");
    operator
        .args(["--tool=callgrind", "--demangle=no"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(program)
        .args(["run", "--controllers", crew, "--kubeconfig"])
        .arg(&story.kubeconfig)
        .args(["--no-leader-elect", "--call-special", "127.0.0.1"])
        .args(["--port", &story.probes.to_string()]);
    if story.has_webhooks {
        operator.args(["--webhooks", "--webhooks-port", &webhooks.to_string()]);
    }
    let mut operator = Ended(
        operator
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
    /// Where the operator says how it is.
    probes: Port,
    /// Whether the operator answers reviews: without it, nobody may ask for any.
    has_webhooks: bool,
}

impl Story<'_> {
    fn prepare(&self) -> Result<()> {
        for namespace in ["mimir", "shop"] {
            self.kubectl(&["create", "namespace", namespace])?;
        }
        if self.has_webhooks {
            self.register()?;
        }
        let rome = Command::new(&self.kubectl)
            .args(["config", "view", "--minify", "--raw", "--context", "rome"])
            .env("KUBECONFIG", &self.kubeconfig)
            .output()
            .context("reading the other cluster's kubeconfig")?;
        let rome = self.file("rome", &rome.stdout)?;
        let value = format!("--from-file=value={}", rome.display());
        let shop = "--namespace=shop";
        self.kubectl(&[shop, "create", "secret", "generic", "rome", &value])?;
        let labels = ["fleet.squaremo.dev/cluster=true", "env=staging"];
        self.kubectl(&[shop, "label", "secret", "rome", labels[0], labels[1]])
    }

    /// Has the server ask the operator before pods go.
    fn register(&self) -> Result<()> {
        let manifests = Command::new(self.program)
            .args(["manifests", "--controllers", "zones", "--webhooks"])
            .args(["--namespace", "mimir", "--no-crds"])
            .output()
            .context("printing manifests")?;
        self.apply("manifests.yaml", &manifests.stdout)
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
        if self.has_webhooks {
            self.ask_for_reviews(&zones);
        }
        Ok(())
    }

    /// What is refused is as good: an answer was made.
    fn ask_for_reviews(&self, zones: &str) {
        let zone = "statefulset/ingester-zone-a";
        let _ = self.kubectl(&[zones, "scale", zone, "--replicas=1"]);
        let nodes = ["--selector=!none", "--ignore-daemonsets", "--force"];
        let _ = self.kubectl(&["drain", nodes[0], nodes[1], nodes[2], "--timeout=20s"]);
        for path in ["metrics", "ready", "healthz"] {
            let _ = Command::new("curl")
                .args(["--silent", "--output", "/dev/null"])
                .arg(format!("http://127.0.0.1:{}/{path}", self.probes))
                .status();
        }
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
        .filter_map(lasting)
        .collect()
}

/// A mangled name with anything in place of what changes with the compiler and with versions: the crates' disambiguators (`C` `s` … `_`).
/// None for a name that no mangling made, or another one.
fn lasting(name: &str) -> Option<String> {
    let mut lasting = String::new();
    let mut rest = name.strip_prefix("_R").map(|_| name)?;
    while let Some((before, after)) = rest.split_once("Cs") {
        lasting.push_str(before);
        let after_digits = after.trim_start_matches(|sign: char| sign.is_ascii_alphanumeric());
        let digits = after.len() - after_digits.len();
        let is_one = (6..=12).contains(&digits) && after_digits.starts_with('_');
        lasting.push_str(if is_one { "Cs*" } else { "Cs" });
        rest = if is_one { after_digits } else { after };
    }
    Some(lasting + rest)
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
        let to = |name: &str| lasting(name).unwrap_or_default();
        assert_eq!(
            to("_RNvNtNtCs4fqI2P2rA04_15slipway_runtime6engine4work"),
            "_RNvNtNtCs*_15slipway_runtime6engine4work"
        );
        assert_eq!(to("_RNvC5local2CsX"), "_RNvC5local2CsX");
        assert_eq!(to("_ZN3std6thread4park17h0123456789abcdefE"), "");
        assert_eq!(to("memcpy"), "");
    }

    #[test]
    fn what_ran_is_read_once_each() {
        let said = "fn=(1) _RNvCs4fqI2P2rA04_7slipway3run'2\ncfn=(2) _RNvCs4fqI2P2rA04_7slipway3run\ncfn=(1)\nfn=(3) memcpy\n";
        assert_eq!(names(said), crew(&["_RNvCs*_7slipway3run"]));
    }

    #[test]
    fn what_all_run_stands_before_what_one_runs() {
        let seen = [
            crew(&["all", "first", "pair"]),
            crew(&["all", "own"]),
            crew(&["all", "pair"]),
        ];
        assert_eq!(list(&seen), "all\npair\nfirst\nown\n");
    }

    fn crew(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_linker_is_told_where_they_go() {
        assert_eq!(
            script("_RNv\n"),
            "SECTIONS {\n  .text.operator : {\n    *(.text._RNv)\n  }\n}\nINSERT BEFORE .text;\n"
        );
    }
}
