//! Runs capabilities: watches, stores, queue, executor, leases, probes.
