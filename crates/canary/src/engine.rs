//! The engine: a run moves traffic and replicas from a *source*, which serves, to a *target*, which is new, and back.
//!
//! ```text
//! Rules   what a person asked for ──┐
//! Run     what is remembered ───────┼─ advance ─► Next: the Run to remember, questions, news, when to look again
//! Sight   what is seen ─────────────┤
//! Answers what was asked and heard ─┘
//! Rules, Run, Sight ────────────────── deeds ───► what to do so that the world is as the Run says
//! ```
//!
//! Where source and target come from is not its business: a copy and the original, or two revisions.
//!
//! It promises:
//!
//! - Intent first: [`advance`] changes nothing but the [`Run`], which is written at once and in one write; [`deeds`] follow
//!   from a Run that was written. So a crash between any two requests goes on where it was.
//! - Weights sum to 100: a weight is the target's, and the source has the rest.
//! - The target's share grows only while the target is ready, is of the analysed revision, and has as many replicas as
//!   that share of the source's. Where none of its pods is available any more, the source gets everything at once.
//! - The target is promoted only after a check that passed in the same tick; unless a person said to skip the analysis.
//! - Neither side is scaled down before the other is routed to, as the data plane confirms; one that says nothing is given a
//!   while ([`Rules::grace`]).
//! - Every phase takes a new revision, a revert and a command.
//! - Time in which nothing was done, or could be, counts against no version.
//! - Timers are exact: [`Next::wake`] is when something can change by itself, and an idle Canary has none.
//!
//! It does not promise that somebody who edits the routing object by hand gets their way: the recorded weight is
//! restored, and that is told.

mod advance;
mod answers;
mod commands;
mod deeds;
mod idle;
mod judge;
mod promote;
mod rules;
mod run;
mod sight;
mod step;
mod stops;
mod ticks;

pub use advance::{Hold, Level, News, Next, advance, withdrawn};
pub use answers::{Answer, Answers, Ask, Check, Reading};
pub use commands::{Command, Verb};
pub use deeds::{Deed, Deeds, deeds, split};
pub use judge::{Checked, Good, Measure, Verdict, judge};
pub use rules::{Finish, Hook, Rules, Shift, Strategy, Way};
pub use run::{Revision, Run};
pub use sight::{Readiness, Routing, Side, Sight, Weights};
