//! A simulated cluster: actors, faults, scenarios, oracles.
