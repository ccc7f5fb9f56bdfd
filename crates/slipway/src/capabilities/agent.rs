//! The fleet's agent, as this program runs, installs and plays it. It is judged with the fleet.

use clap::Args;
use slipway_fleet::AGENT_CAPABILITY;

use super::{Entry, Running};
use crate::capabilities::fleet;

/// The agent.
pub(crate) static ENTRY: Entry = Entry {
    profile: &AGENT_CAPABILITY.profile,
    options: AgentOptions::augment_args,
    from_options: |_, _| Ok(running()),
    from_scenario: |_, _| Ok(running()),
    scenarios: &[],
    specifics: &fleet::AGENT_SPECIFICS,
    abroad: &[],
};

fn running() -> Running {
    Running {
        controller: (AGENT_CAPABILITY.controller)(&()),
        hooks: (AGENT_CAPABILITY.webhooks)(&()),
        cluster_label: None,
    }
}

/// Options of the agent: there are none.
#[derive(Debug, clap::Args)]
struct AgentOptions {}
