//! The runtime with plugins that are real processes.

mod crash;
mod example;
mod node;
mod processes;
mod together;
