//! The supervision tree of seekclaw. One file or folder is one actor; providers, tools and the agent's
//! plain functions are rooms of their own. No command line, no rendering.

pub mod admin;
pub mod agent;
pub mod config;
mod connection;
pub mod daemon;
mod dispatch;
pub mod history;
mod listener;
pub mod locks;
pub mod provider;
mod services;
mod session;
mod sessions;
#[cfg(test)]
mod stage;
mod store;
pub mod supervision;
pub mod tools;
mod turn;
pub mod workspace;
