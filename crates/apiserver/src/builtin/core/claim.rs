//! x
use crate::builtin::rules::{PLAIN, Rules};
/// x
pub const RULES: Rules = PLAIN;
