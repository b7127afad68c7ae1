//! The agent's plain functions: what a model is told, what it may do, and how its history and its
//! arguments are kept valid. No actors and no tasks; those that read files say so and block.

pub mod arguments;
pub mod fit;
pub mod permissions;
pub mod prompt;
pub mod repair;
pub mod tokens;
