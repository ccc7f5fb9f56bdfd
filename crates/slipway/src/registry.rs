//! The capabilities that there are, and what the program is with them: its command line, its rights, its definitions.
//!
//! A capability is in the program if its line is in [`PROGRAM`]; nothing else lists them.

#[cfg(test)]
mod toy;

use anyhow::Result;
use clap::builder::Resettable;
use clap::{Args, CommandFactory, FromArgMatches};
use serde_json::Value;
use slipway_kernel::capability::Profile;
use slipway_kernel::permission::{Permission, Scope};

use crate::args::{Arguments, Webhooks};
use crate::capabilities::{Entry, agent, canary, fleet, restarts, zones};
use crate::exit::Usage;

/// The capabilities of this program.
const PROGRAM: &[&Entry] = &[
    &restarts::ENTRY,
    &zones::ENTRY,
    &canary::ENTRY,
    &fleet::ENTRY,
    &agent::ENTRY,
];

/// The Secret of the certificate that webhooks are served with.
pub(crate) const SECRET: &str = "rollout-operator-self-signed-certificate";

/// Capabilities, in their order.
#[derive(Clone)]
pub(crate) struct Registry {
    entries: Vec<&'static Entry>,
}

impl Default for Registry {
    fn default() -> Self {
        Self::of(PROGRAM)
    }
}

impl Registry {
    /// These capabilities.
    pub(crate) fn of(entries: &[&'static Entry]) -> Self {
        Self {
            entries: entries.to_vec(),
        }
    }

    /// All of them.
    pub(crate) fn all(&self) -> &[&'static Entry] {
        &self.entries
    }

    /// What each of them says of itself.
    pub(crate) fn profiles(&self) -> Vec<&'static Profile> {
        profiles(&self.entries)
    }

    fn names(&self) -> Vec<&'static str> {
        self.entries
            .iter()
            .map(|entry| entry.profile.name)
            .collect()
    }

    /// Those of these names, each once, in their order.
    pub(crate) fn named(&self, names: &[String]) -> Result<Vec<&'static Entry>> {
        let known = self.names();
        if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
            let known = known.join(", ");
            return Err(Usage(format!(
                "--controllers: there is no controller {unknown:?}; there are: {known}"
            ))
            .into());
        }
        let is_named = |entry: &&&Entry| names.iter().any(|name| name == entry.profile.name);
        Ok(self.entries.iter().filter(is_named).copied().collect())
    }

    /// The names of those that have webhooks.
    fn with_webhooks(&self) -> Vec<&'static str> {
        let entries = self.entries.iter().map(|entry| entry.profile);
        let guards = entries.filter(|profile| !profile.registrations.is_empty());
        guards.map(|profile| profile.name).collect()
    }

    /// Webhooks are asked for where there are none.
    pub(crate) fn no_webhooks(&self) -> Usage {
        let names = self.with_webhooks().join(" or ");
        Usage(format!("--webhooks needs --controllers {names}"))
    }

    /// The command line, with the options of all capabilities.
    pub(crate) fn command(&self) -> clap::Command {
        Arguments::command().mut_subcommands(|command| match command.get_name() {
            "run" => self.options(command),
            "crds" => command.mut_arg("controllers", |arg| arg.default_values(self.names())),
            _ => command,
        })
    }

    fn options(&self, run: clap::Command) -> clap::Command {
        // Whatever adds options says what those are, and not what the command is.
        let about = run.get_about().cloned();
        let run = self.entries.iter().fold(run, |run, entry| {
            (entry.options)(run).next_help_heading(Resettable::Reset)
        });
        let names = self.with_webhooks().join(", ");
        let help = format!("Serve the webhooks of the controllers that have some: {names}");
        Webhooks::augment_args(run)
            .mut_arg("webhooks", |arg| arg.help(help))
            .about(about.unwrap_or_default())
    }

    /// Reads a command line.
    pub(crate) fn parse(
        &self,
        line: impl IntoIterator<Item = std::ffi::OsString>,
    ) -> Result<Arguments, clap::Error> {
        let mut command = self.command();
        let matches = command.try_get_matches_from_mut(line)?;
        Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }
}

/// What these say of themselves.
pub(crate) fn profiles(entries: &[&'static Entry]) -> Vec<&'static Profile> {
    entries.iter().map(|entry| entry.profile).collect()
}

const fn own(
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
    names: &'static [&'static str],
    why: &'static str,
) -> Permission {
    Permission {
        group,
        resource,
        verbs,
        names,
        scope: Scope::Own,
        why,
    }
}

/// A capability's Lease.
fn lease(profile: &'static Profile) -> Permission {
    own(
        "coordination.k8s.io",
        "leases",
        &["get", "update"],
        std::slice::from_ref(&profile.lease),
        "to agree with other replicas on who acts",
    )
}

/// What the operator itself does beside its capabilities.
const OWN: &[Permission] = &[
    own(
        "coordination.k8s.io",
        "leases",
        &["create"],
        &[],
        "to make the Lease by which replicas agree on who acts",
    ),
    Permission {
        group: "events.k8s.io",
        resource: "events",
        verbs: &["create"],
        names: &[],
        scope: Scope::Watched,
        why: "to tell on an object what was done to it",
    },
];

const fn hooks(resource: &'static str) -> Permission {
    Permission {
        group: "admissionregistration.k8s.io",
        resource,
        verbs: &["list", "watch", "patch"],
        names: &[],
        scope: Scope::Cluster,
        why: "to have our certificate trusted where webhooks are registered",
    }
}

/// What serving webhooks needs besides what they do themselves.
const SERVING: &[Permission] = &[
    own(
        "",
        "secrets",
        &["create"],
        &[],
        "to keep the certificate of the webhooks",
    ),
    own(
        "",
        "secrets",
        &["get", "update"],
        &[SECRET],
        "to keep the certificate of the webhooks, and to renew it",
    ),
    hooks("validatingwebhookconfigurations"),
    hooks("mutatingwebhookconfigurations"),
];

/// All that an operator with these capabilities may do, each line once, in a stable order; also what webhooks do, if
/// they are served.
pub(crate) fn permissions(profiles: &[&'static Profile], serves_webhooks: bool) -> Vec<Permission> {
    let mut all: Vec<Permission> = OWN.to_vec();
    for profile in profiles {
        all.extend(profile.permissions);
        all.push(lease(profile));
        if serves_webhooks && !profile.registrations.is_empty() {
            all.extend(profile.webhook_permissions);
            all.extend(SERVING);
        }
    }
    all.sort();
    all.dedup();
    all
}

/// The definitions of these capabilities' kinds, as objects. Two may have a kind in common: each is there once.
pub(crate) fn definitions(profiles: &[&Profile]) -> Result<Vec<Value>> {
    let mut all: Vec<Value> = Vec::new();
    for profile in profiles {
        for definition in (profile.definitions)()? {
            if !all.contains(&definition) {
                all.push(definition);
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_controller_is_wrong_usage_and_the_known_ones_are_named() {
        let names = ["restarts".to_owned(), "restart".to_owned()];
        let Err(error) = Registry::default().named(&names) else {
            panic!("there is no such controller");
        };
        assert!(error.is::<Usage>());
        assert!(
            error
                .to_string()
                .ends_with("there are: restarts, zones, canary, fleet, agent"),
            "{error}"
        );
    }

    #[test]
    fn every_kind_is_some_capability_s_own() {
        let known = slipway_api::crds::crds();
        let known: Vec<Value> = known
            .iter()
            .map(|definition| serde_json::to_value(definition).unwrap())
            .collect();
        assert_eq!(definitions(&Registry::default().profiles()).unwrap(), known);
    }

    #[test]
    fn the_command_line_makes_sense() {
        Registry::default().command().debug_assert();
    }
}
