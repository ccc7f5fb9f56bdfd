//! Resource quantities: `100m`, `1Gi`, `2`.
