//! `call`: any method, every event line as it comes.

use clap::Args;
use serde_json::Value;

use crate::client::refusal::{Names, advice};
use crate::client::{Fields, belongs};
use crate::commands::{Context, read_stdin};
use crate::output::{note, print_bytes};
use crate::status::{Failure, Status};

/// Arguments of `call`.
#[derive(Debug, Args)]
#[command(
    after_help = "Unlike other commands, this one adds nothing to the parameters: without \"workspace\": \"/DIR\" or \
    \"global\": true a method works in the daemon's current workspace (`seekclaw workspace show`), not in this directory."
)]
pub(crate) struct CallArgs {
    /// Name of the method
    method: String,
    /// Parameters as a JSON object; `-` reads them from standard input
    params: Option<String>,
}

/// Sends the method and prints its lines; the terminal one decides the status.
pub(crate) async fn run(context: &Context, args: CallArgs) -> anyhow::Result<Status> {
    let params = match args.params.as_deref() {
        None => Fields::new(),
        Some("-") => object(&read_stdin()?)?,
        Some(text) => object(text)?,
    };
    let mut client = context.connect().await?;
    let id = client.send(&args.method, params).await?;
    loop {
        let line = client.next().await?;
        if !belongs(&line, id) {
            continue;
        }
        print_bytes(&[&line.raw[..], b"\n"].concat())?;
        if line.is_terminal() {
            let code = line.code().filter(|_| line.event == "error");
            if let Some(next) = advice(code, false, &Names::of(&line)) {
                note(&next);
            }
            return Ok(status_of(&line.event, Status::of_error(code)));
        }
    }
}

fn object(text: &str) -> Result<Fields, Failure> {
    let wrong = |why: String| {
        Failure::usage(format!("cannot read the parameters: {why}"))
            .next("give one JSON object, for example '{\"id\":\"…\"}', or - for standard input")
    };
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(wrong("they are no JSON object".to_owned())),
        Err(error) => Err(wrong(error.to_string())),
    }
}

fn status_of(event: &str, of_error: Status) -> Status {
    match event {
        "error" => of_error,
        "cancelled" => Status::Stopped,
        _ => Status::Done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_one_object() {
        assert_eq!(object(r#"{"id":"x"}"#).unwrap()["id"], "x");
        for wrong in ["[1]", "7", "{", ""] {
            assert_eq!(object(wrong).unwrap_err().status, Status::Usage);
        }
    }

    #[test]
    fn the_terminal_line_decides() {
        assert_eq!(status_of("result", Status::Failed), Status::Done);
        assert_eq!(status_of("bye", Status::Failed), Status::Done);
        assert_eq!(status_of("error", Status::Failed), Status::Failed);
        assert_eq!(status_of("cancelled", Status::Failed), Status::Stopped);
    }
}
