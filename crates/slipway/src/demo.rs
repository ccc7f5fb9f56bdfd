//! The demo: whole clusters in this process, the production controllers on them, and a picture of it all.
//!
//! Everything runs on one thread whose clock is paused. Without people looking it jumps from timer to timer; with people
//! it is let go by as much as real time has gone by, times the speed. Controllers, actors and watches cannot tell.

mod changes;
mod door;
mod headless;
mod line;
mod mirror;
mod model;
mod pace;
mod play;
mod render;
mod screen;
mod words;

pub(crate) use headless::judge;
pub(crate) use line::Style;
pub(crate) use play::{Show, play};
pub(crate) use screen::is_terminal;
