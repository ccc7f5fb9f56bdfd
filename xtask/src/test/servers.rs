//! Tiers that run on the embedded server and on a real control plane.

use anyhow::{Context, Result};

use super::Tiers;
use crate::controlplane::{self, Borrowed, Profile, Shape};
use crate::workspace;

/// A tier that runs on the embedded server, and on a real control plane where there can be one.
pub(super) struct OnServers {
    name: &'static str,
    test: &'static str,
    /// The variable that names the real one's kubeconfig.
    variable: &'static str,
    profile: Profile,
    /// Whether it runs the `slipway` program and kubectl.
    is_driven_by_kubectl: bool,
    /// Whether Flux and Flagger run on the real one, and all of its programs on an embedded one too.
    is_foreign: bool,
}

impl OnServers {
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// What its real control plane is made of.
    pub(super) fn shape(&self) -> Shape {
        Shape {
            flux: self.is_foreign,
            flagger: self.is_foreign,
            ..self.profile.into()
        }
    }
}

/// Each has a control plane of its own, so that none sees what another leaves.
pub(super) const ON_SERVERS: &[OnServers] = &[
    OnServers {
        name: "conformance",
        test: "conformance",
        variable: "SLIPWAY_CONFORMANCE_REAL",
        profile: Profile::Collectors,
        is_driven_by_kubectl: false,
        is_foreign: false,
    },
    OnServers {
        name: "kubectl",
        test: "kubectl",
        variable: "SLIPWAY_REAL_BARE",
        profile: Profile::Collectors,
        is_driven_by_kubectl: true,
        is_foreign: false,
    },
    OnServers {
        name: "actors",
        test: "reality",
        variable: "SLIPWAY_REAL_FULL",
        profile: Profile::Full,
        is_driven_by_kubectl: false,
        is_foreign: false,
    },
    OnServers {
        name: "end to end",
        test: "restarts",
        variable: "SLIPWAY_REAL_FULL",
        profile: Profile::Full,
        is_driven_by_kubectl: true,
        is_foreign: false,
    },
    OnServers {
        name: "end to end, zones",
        test: "zones",
        variable: "SLIPWAY_REAL_FULL",
        profile: Profile::Full,
        is_driven_by_kubectl: true,
        is_foreign: false,
    },
    OnServers {
        name: "pages",
        test: "pages",
        variable: "SLIPWAY_REAL_FULL",
        profile: Profile::Full,
        is_driven_by_kubectl: true,
        is_foreign: false,
    },
    OnServers {
        name: "foreign programs",
        test: "foreign",
        variable: "SLIPWAY_REAL_FULL",
        profile: Profile::Full,
        is_driven_by_kubectl: true,
        is_foreign: true,
    },
];

/// The variable that names the kubeconfig of an embedded server with the programs of a real control plane on it.
const EMBEDDED: &str = "SLIPWAY_EMBEDDED_FULL";

pub(super) fn run(tiers: &mut Tiers, tier: &OnServers, unavailable: Option<String>) -> Result<()> {
    let mut command = workspace::cargo();
    command.args([
        "test",
        "--release",
        "--quiet",
        "--workspace",
        "--test",
        tier.test,
    ]);
    if !tiers.words.is_empty() {
        command.arg("--").args(&tiers.words);
    }
    if tier.is_driven_by_kubectl {
        workspace::build_program()?;
    }
    let mut borrowed = Vec::new();
    match unavailable {
        None => {
            let shape = tier.shape();
            let real = Borrowed::start(1, &shape).context("starting a real control plane")?;
            command.env(tier.variable, real.kubeconfig(0));
            borrowed.push(real);
            if tier.is_foreign {
                let shape = Shape {
                    embedded: true,
                    ..shape
                };
                let embedded = Borrowed::start(1, &shape)
                    .context("starting foreign programs on the embedded server")?;
                command.env(EMBEDDED, embedded.kubeconfig(0));
                borrowed.push(embedded);
            }
        }
        Some(why) if tier.is_foreign => {
            tiers.left_out.push(format!("{}: {why}", tier.name));
            return Ok(());
        }
        Some(why) => tiers
            .left_out
            .push(format!("{} on a real control plane: {why}", tier.name)),
    }
    if tier.is_driven_by_kubectl {
        if !borrowed.is_empty() {
            command.env(
                "SLIPWAY_KUBECTL",
                controlplane::tools::locate(&Shape::default())?.path("kubectl")?,
            );
        } else if workspace::which("kubectl").is_none() {
            tiers.left_out.push(format!(
                "{}: there is no kubectl on the PATH, and no Go to build one",
                tier.name
            ));
            return Ok(());
        }
    }
    tiers.run(tier.name, &mut command);
    Ok(())
}
