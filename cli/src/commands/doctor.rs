//! `doctor`: is everything there that a turn needs?

mod offline;

use clap::Args;
use seekclaw_protocol::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::client::{Client, refusal};
use crate::commands::{Context, document};
use crate::render::escape::{neutral, one_line};
use crate::render::style::{Style, Tone};
use crate::status::{Failure, Status};

/// Columns of one detail.
const DETAIL_COLUMNS: usize = 400;

/// Arguments of `doctor`.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Check only what needs no daemon: the home, the socket, the configuration, the log
    #[arg(long)]
    offline: bool,
}

/// One check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Row {
    name: String,
    ok: bool,
    detail: String,
    kind: String,
}

/// Runs the checks; one that fails makes the status 1.
pub(crate) async fn run(context: &Context, args: DoctorArgs) -> anyhow::Result<Status> {
    let rows = if args.offline {
        offline::check(&context.place).await
    } else {
        let mut client = context.connect().await?;
        online(&mut client).await?
    };
    context.output.result(&rows, |style| render(&rows, style))?;
    Ok(if rows.iter().all(|row| row.ok) { Status::Done } else { Status::Failed })
}

/// All checks of the daemon, or, where it does not offer the providers' yet, the local ones.
async fn online(client: &mut Client) -> Result<Vec<Row>, Failure> {
    let full = client.ask("doctor.run", json!({})).await?;
    let missing = matches!(full.code(), Some(ErrorCode::Unavailable | ErrorCode::UnknownMethod));
    if full.event == "error" && missing {
        let local = client.call("run the checks", "doctor", json!({})).await?;
        return Ok(local.data.lines().filter_map(parse_row).collect());
    }
    document(&refusal::accepted(full, "run the checks", false)?, "the checks")
}

/// `[OK] <name>: <detail>` or `[FAIL] <name>: <detail>`.
fn parse_row(line: &str) -> Option<Row> {
    let (mark, rest) = line.strip_prefix('[')?.split_once("] ")?;
    let (name, detail) = rest.split_once(": ").unwrap_or((rest, ""));
    Some(Row {
        name: name.to_owned(),
        ok: mark == "OK",
        detail: detail.to_owned(),
        kind: "runtime".to_owned(),
    })
}

fn render(rows: &[Row], style: Style) -> String {
    let line = |row: &Row| {
        let (mark, tone) = if row.ok { ("[OK]", Tone::Green) } else { ("[FAIL]", Tone::Red) };
        // The daemon names methods; people type commands.
        let detail = row.detail.replace("`workspace.init`", "`seekclaw workspace init`");
        let detail = one_line(&detail, DETAIL_COLUMNS);
        format!("{} {}: {detail}\n", style.paint(tone, mark), neutral(&row.name))
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_text_form_are_read() {
        let row = parse_row("[OK] Workspace Root: /p: q").unwrap();
        assert_eq!((row.name.as_str(), row.ok, row.detail.as_str()), ("Workspace Root", true, "/p: q"));
        assert!(!parse_row("[FAIL] Provider Config: no provider").unwrap().ok);
        assert_eq!(parse_row("something else"), None);
    }

    #[test]
    fn rows_are_shown_one_a_line() {
        let rows = [
            Row { name: "A".into(), ok: true, detail: "fine".into(), kind: String::new() },
            Row {
                name: "D".into(),
                ok: false,
                detail: "no, `workspace.init` creates it".into(),
                kind: String::new(),
            },
            Row { name: "B".into(), ok: false, detail: "bad\u{1b}[2J\nnews".into(), kind: String::new() },
        ];
        assert_eq!(
            render(&rows, Style::PLAIN),
            "[OK] A: fine\n[FAIL] D: no, `seekclaw workspace init` creates it\n[FAIL] B: bad␛[2J news\n"
        );
    }
}
