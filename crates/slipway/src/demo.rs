//! The demo: whole clusters in this process, the production controllers on them, and a picture of it all.

mod changes;
mod gather;
mod line;
mod model;
mod render;
mod words;
