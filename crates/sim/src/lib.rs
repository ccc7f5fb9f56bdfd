//! A simulated cluster: the controllers around an API server, played by actors.
//!
//! [`actors`] holds stand-ins for kube-controller-manager, kube-scheduler and the kubelets. They speak to any API server
//! through a `kube::Client`, wait by tokio's time, and take everything else from parameters; so against the embedded
//! server under a paused clock a run is a function of its seed.

pub mod actors;
