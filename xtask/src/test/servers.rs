//! Tiers that run on the embedded server and on a real control plane.

use std::collections::VecDeque;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};

use super::debian::{self, Source};
use super::listed;
use super::tier::{self, Outcome};
use crate::controlplane::{self, Borrowed, Profile, Shape};
use crate::workspace;

/// A tier that runs on the embedded server, and on a real control plane where there can be one.
pub(super) struct OnServers {
    name: &'static str,
    test: &'static str,
    /// The variable that names the real one's kubeconfig.
    variable: &'static str,
    profile: Profile,
    /// How many clusters there are besides that one, the last of which has an etcd to itself: it can be wiped.
    members: usize,
    /// Whether it runs the `slipway` program and kubectl.
    is_driven_by_kubectl: bool,
    delivery: Delivery,
    /// Minutes, about: who takes longest begins first.
    takes: u32,
}

/// Which programs that nobody here wrote run on a tier's servers, besides those of a control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delivery {
    None,
    /// Flux, on the real ones and, with all other programs, on as many embedded ones.
    Flux,
    /// Flux and Flagger, on both: without them there is nothing to the tier.
    Everything,
    /// Flagger, nginx and Prometheus are told to the tests, which start and end them.
    Canary,
}

impl Delivery {
    /// Whether all programs run on embedded servers too, which tests then do not start by themselves.
    fn is_everywhere(self) -> bool {
        matches!(self, Self::Flux | Self::Everything)
    }
}

/// What became of a tier.
#[derive(Default)]
pub(super) struct Ran {
    pub(super) outcome: Option<Outcome>,
    pub(super) left_out: Vec<String>,
}

impl OnServers {
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Whether it runs the `slipway` program.
    pub(super) fn needs_program(&self) -> bool {
        self.is_driven_by_kubectl
    }

    /// What its real control plane is made of.
    pub(super) fn shape(&self) -> Shape {
        Shape {
            flux: !matches!(self.delivery, Delivery::None | Delivery::Canary),
            flagger: self.delivery == Delivery::Everything,
            own_etcd: usize::from(self.members > 0),
            ..self.profile.into()
        }
    }

    /// What has to be built for it: that, and what its tests start themselves.
    pub(super) fn built(&self) -> Shape {
        let shape = self.shape();
        Shape {
            flagger: shape.flagger || self.delivery == Delivery::Canary,
            ..shape
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
        members: 0,
        is_driven_by_kubectl: false,
        delivery: Delivery::None,
        takes: 1,
    },
    OnServers {
        name: "kubectl",
        test: "kubectl",
        variable: "SLIPWAY_REAL_BARE",
        profile: Profile::Collectors,
        members: 0,
        is_driven_by_kubectl: true,
        delivery: Delivery::None,
        takes: 3,
    },
    OnServers {
        name: "actors",
        test: "reality",
        variable: "SLIPWAY_REAL_FULL",
        profile: Profile::Full,
        members: 0,
        is_driven_by_kubectl: false,
        delivery: Delivery::Flux,
        takes: 3,
    },
    OnServers {
        name: "end to end",
        test: "restarts",
        variable: "SLIPWAY_REAL_FULL",
        profile: Profile::Full,
        members: 0,
        is_driven_by_kubectl: true,
        delivery: Delivery::None,
        takes: 7,
    },
    OnServers {
        name: "end to end, zones",
        test: "zones",
        variable: "SLIPWAY_REAL_FULL",
        profile: Profile::Full,
        members: 0,
        is_driven_by_kubectl: true,
        delivery: Delivery::None,
        takes: 8,
    },
    OnServers {
        name: "end to end, members",
        test: "members",
        variable: "SLIPWAY_REAL_FULL",
        profile: Profile::Collectors,
        members: 3,
        is_driven_by_kubectl: true,
        delivery: Delivery::None,
        takes: 2,
    },
    OnServers {
        name: "end to end, fleet",
        test: "fleet",
        variable: "SLIPWAY_REAL_FULL",
        profile: Profile::Full,
        members: 3,
        is_driven_by_kubectl: true,
        delivery: Delivery::Flux,
        takes: 5,
    },
    OnServers {
        name: "end to end, canary",
        test: "canary",
        variable: "SLIPWAY_REAL_FULL",
        profile: Profile::Full,
        members: 0,
        is_driven_by_kubectl: true,
        delivery: Delivery::Canary,
        takes: 7,
    },
    OnServers {
        name: "pages",
        test: "pages",
        variable: "SLIPWAY_REAL_FULL",
        profile: Profile::Full,
        members: 0,
        is_driven_by_kubectl: true,
        delivery: Delivery::None,
        takes: 1,
    },
    OnServers {
        name: "foreign programs",
        test: "foreign",
        variable: "SLIPWAY_REAL_FULL",
        profile: Profile::Full,
        members: 0,
        is_driven_by_kubectl: true,
        delivery: Delivery::Everything,
        takes: 2,
    },
];

/// The variable that names the kubeconfigs of the members, as `PATH` names folders.
const MEMBERS: &str = "SLIPWAY_REAL_MEMBERS";

/// The variables that name the kubeconfig of an embedded server with the programs of a real control plane on it, and of
/// members of its kind.
const EMBEDDED: &str = "SLIPWAY_EMBEDDED_FULL";
const EMBEDDED_MEMBERS: &str = "SLIPWAY_EMBEDDED_MEMBERS";

/// Runs these tiers, with the program as it is `shipped` if there is one, so many beside each other; gives what became of each, in
/// their order. Where one cannot begin, none begins after it.
pub(super) fn run_all(
    tiers: &[&OnServers],
    words: &[String],
    shipped: Option<&Path>,
    at_once: usize,
    unavailable: impl Fn(&OnServers) -> Option<String> + Sync,
) -> (Vec<Ran>, Result<()>) {
    let mut order: Vec<usize> = (0..tiers.len()).collect();
    order.sort_by_key(|place| std::cmp::Reverse(tiers.get(*place).map(|tier| tier.takes)));
    let waiting = Mutex::new(VecDeque::from(order));
    let lane = || {
        let mut all = Vec::new();
        let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            // Nobody holds the list while a tier runs.
            let place = next().pop_front();
            let Some((place, tier)) = place.and_then(|at| Some((at, tiers.get(at)?))) else {
                return (all, Ok(()));
            };
            match run(tier, words, shipped, unavailable(tier)) {
                Ok(ran) => all.push((place, ran)),
                Err(error) => {
                    next().clear();
                    return (all, Err(error));
                }
            }
        }
    };
    let lanes: Vec<_> = std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..at_once).map(|_| scope.spawn(lane)).collect();
        lanes
            .into_iter()
            .map(std::thread::ScopedJoinHandle::join)
            .collect()
    });
    let mut all = Vec::new();
    let mut result = Ok(());
    for lane in lanes {
        match lane {
            Ok((ran, ended)) => {
                all.extend(ran);
                result = result.and(ended);
            }
            Err(_) => result = result.and(Err(anyhow::anyhow!("a lane of tiers panicked"))),
        }
    }
    all.sort_by_key(|(place, _)| *place);
    (all.into_iter().map(|(_, ran)| ran).collect(), result)
}

fn run(
    tier: &OnServers,
    words: &[String],
    shipped: Option<&Path>,
    unavailable: Option<String>,
) -> Result<Ran> {
    let mut ran = Ran::default();
    let mut command = listed::tests(&[tier.test]);
    if !words.is_empty() {
        command.arg("--").args(words);
    }
    if let Some(program) = shipped {
        command.env(super::SLIPWAY_BIN, program);
    }
    let mut borrowed = Vec::new();
    match unavailable {
        None => {
            if tier.delivery == Delivery::Canary
                && let Some(why) = tell_canary(&mut command)?
            {
                ran.left_out.push(format!("{}: {why}", tier.name));
                return Ok(ran);
            }
            borrowed = servers_of(tier, &mut command)?;
        }
        Some(why) if matches!(tier.delivery, Delivery::Everything | Delivery::Canary) => {
            ran.left_out.push(format!("{}: {why}", tier.name));
            return Ok(ran);
        }
        Some(why) => ran
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
            ran.left_out.push(format!(
                "{}: there is no kubectl on the PATH, and no Go to build one",
                tier.name
            ));
            return Ok(ran);
        }
    }
    ran.outcome = Some(tier::run_among(tier.name, &mut command));
    Ok(ran)
}

/// Tells tests of canary where everything is that they start; or why it cannot be had.
fn tell_canary(command: &mut Command) -> Result<Option<String>> {
    for package in [debian::NGINX, debian::PROMETHEUS] {
        match package.locate()? {
            Source::Program(program) => command.env(package.variable, program),
            Source::NoApt(why) => return Ok(Some(why)),
        };
    }
    let shape = Shape {
        flagger: true,
        ..Shape::default()
    };
    let programs = controlplane::tools::locate(&shape)?;
    command
        .env("SLIPWAY_FLAGGER", programs.path("flagger")?)
        .env("SLIPWAY_GATEWAY", controlplane::tools::gateway()?);
    Ok(None)
}

/// The servers that a tier runs on beside the embedded one, which its tests start by themselves.
fn servers_of(tier: &OnServers, command: &mut Command) -> Result<Vec<Borrowed>> {
    let shape = tier.shape();
    let clusters = 1 + tier.members;
    let real = Borrowed::start(clusters, &shape).context("starting real control planes")?;
    name(&real, (tier.variable, MEMBERS), command)?;
    let mut all = vec![real];
    if tier.delivery.is_everywhere() {
        let shape = Shape {
            embedded: true,
            ..shape
        };
        let embedded = Borrowed::start(clusters, &shape)
            .context("starting foreign programs on embedded servers")?;
        name(&embedded, (EMBEDDED, EMBEDDED_MEMBERS), command)?;
        all.push(embedded);
    }
    Ok(all)
}

/// Tells tests where the first of these servers is, and where the others are.
fn name(all: &Borrowed, (first, others): (&str, &str), command: &mut Command) -> Result<()> {
    command.env(first, all.kubeconfig(0));
    let members = (1..all.clusters()).map(|index| all.kubeconfig(index));
    let members = std::env::join_paths(members).context("naming the members' kubeconfigs")?;
    command.env(others, members);
    Ok(())
}
