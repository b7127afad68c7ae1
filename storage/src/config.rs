//! `config.json`: what users write by hand and admin methods change.

mod broken;
mod edit;
mod file;
pub mod model;
mod parse;

pub use file::{ConfigError, ConfigFile, Stamp, UpdateError, Updated};
pub use parse::InvalidConfig;
