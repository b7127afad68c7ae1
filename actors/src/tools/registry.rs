//! All tools by name: what the model is told, what clients are shown, and the one way to run a call.

mod summary;

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use serde_json::{Map, Value};

pub use self::summary::{argument_summary, result_summary};
use super::{ToolContext, ToolReport, ToolSpec};
use super::{bash, edit_file, glob, grep, list_dir, read_file, write_file};

/// All tools, by name, so that the prompt stays cacheable.
#[must_use]
pub fn specs() -> Vec<ToolSpec> {
    let reading = [glob::spec(), grep::spec(), list_dir::spec(), read_file::spec()];
    let mut specs = Vec::from(reading);
    specs.extend([bash::spec(), edit_file::spec(), write_file::spec()]);
    specs.sort_by(|a, b| a.name.cmp(&b.name));
    specs
}

/// Whether there is a tool of that name.
#[must_use]
pub fn known(name: &str) -> bool {
    reads(name) || matches!(name, bash::NAME | edit_file::NAME | write_file::NAME)
}

/// Whether a call may change something; of an unknown tool that is assumed.
#[must_use]
pub fn is_mutating(name: &str) -> bool {
    !reads(name)
}

fn reads(name: &str) -> bool {
    matches!(name, glob::NAME | grep::NAME | list_dir::NAME | read_file::NAME)
}

/// What the status line says while the tool runs (contract 3.2).
#[must_use]
pub fn label(name: &str) -> &'static str {
    match name {
        bash::NAME => "Running command",
        edit_file::NAME | write_file::NAME => "Editing",
        glob::NAME | grep::NAME => "Searching",
        list_dir::NAME | read_file::NAME => "Reading files",
        _ => "Running tool",
    }
}

/// Runs a call. Whatever goes wrong in it is a result; only its effects are left to the caller to undo.
pub async fn run(name: &str, arguments: &Map<String, Value>, ctx: &ToolContext) -> ToolReport {
    // Boxed, since the largest tool would make every turn's future as large.
    let call = Box::pin(AssertUnwindSafe(dispatch(name, arguments, ctx)));
    call.catch_unwind().await.unwrap_or_else(|panic| {
        let message = panic.downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown reason");
        tracing::error!(tool = name, message, "a tool panicked");
        ToolReport::failed(format!("{name} crashed: {message}"))
    })
}

async fn dispatch(name: &str, arguments: &Map<String, Value>, ctx: &ToolContext) -> ToolReport {
    match name {
        bash::NAME => bash::run(arguments, ctx).await,
        edit_file::NAME => edit_file::run(arguments, ctx).await,
        glob::NAME => glob::run(arguments, ctx).await,
        grep::NAME => grep::run(arguments, ctx).await,
        list_dir::NAME => list_dir::run(arguments, ctx).await,
        read_file::NAME => read_file::run(arguments, ctx).await,
        write_file::NAME => write_file::run(arguments, ctx).await,
        #[cfg(test)]
        crate::stage::tool::STUBBORN => crate::stage::tool::run(arguments, ctx).await,
        _ => ToolReport::failed(format!("Unknown tool: {name}")),
    }
}

#[cfg(test)]
mod tests;
