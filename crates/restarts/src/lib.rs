//! Periodic rolling restarts of matching workloads.
