//! Object metadata: what every kind shares.
