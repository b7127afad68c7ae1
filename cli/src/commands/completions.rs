//! `completions`: a script for a shell, made from the command line's own description.

use std::fmt::Write as _;

use clap::{Args, CommandFactory as _, ValueEnum};

use crate::args::Cli;
use crate::output::print;
use crate::status::Status;

/// Arguments of `completions`.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Shells that we can complete for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// One command with what may follow it.
#[derive(Debug)]
struct Place {
    /// Words that lead to it, without the program's name.
    path: String,
    /// Subcommands with their descriptions.
    commands: Vec<(String, String)>,
    /// Flags with their descriptions, dashes included.
    flags: Vec<(String, String)>,
}

/// Prints the script.
pub(crate) fn run(args: &CompletionsArgs) -> anyhow::Result<Status> {
    print(&script(args.shell)?)?;
    Ok(Status::Done)
}

fn script(shell: Shell) -> Result<String, std::fmt::Error> {
    let mut root = Cli::command();
    root.build();
    let mut places = Vec::new();
    collect(&root, String::new(), &mut places);
    match shell {
        Shell::Bash => bash(&places),
        Shell::Zsh => {
            Ok(format!("#compdef seekclaw\nautoload -U +X bashcompinit && bashcompinit\n{}", bash(&places)?))
        }
        Shell::Fish => fish(&places),
    }
}

fn collect(command: &clap::Command, path: String, places: &mut Vec<Place>) {
    let children =
        || command.get_subcommands().filter(|child| !child.is_hide_set() && child.get_name() != "help");
    let about = |child: &clap::Command| child.get_about().map(ToString::to_string).unwrap_or_default();
    let flags = command.get_arguments().filter(|arg| !arg.is_hide_set()).flat_map(|arg| {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let short = arg.get_short().map(|short| format!("-{short}"));
        let names = arg.get_long().map(|long| format!("--{long}")).or(short);
        names.map(|name| (name, help))
    });
    places.push(Place {
        commands: children().map(|child| (child.get_name().to_owned(), about(child))).collect(),
        flags: flags.collect(),
        path: path.clone(),
    });
    for child in children() {
        let below = if path.is_empty() {
            child.get_name().to_owned()
        } else {
            format!("{path} {}", child.get_name())
        };
        collect(child, below, places);
    }
}

fn bash(places: &[Place]) -> Result<String, std::fmt::Error> {
    let known: Vec<String> = places
        .iter()
        .filter(|place| !place.path.is_empty())
        .map(|place| format!("\"{}\"", place.path))
        .collect();
    let mut text = String::from(
        "_seekclaw() {\n    local current=\"${COMP_WORDS[COMP_CWORD]}\" at='' next words='' word\n    \
         for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n        next=\"${at:+$at }$word\"\n",
    );
    writeln!(
        text,
        "        case \"$next\" in\n            {}) at=\"$next\" ;;\n        esac\n    done",
        known.join("|")
    )?;
    writeln!(text, "    case \"$at\" in")?;
    for place in places {
        let words: Vec<&str> =
            place.commands.iter().chain(&place.flags).map(|(word, _)| word.as_str()).collect();
        writeln!(text, "        \"{}\") words='{}' ;;", place.path, words.join(" "))?;
    }
    text.push_str(
        "    esac\n    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n}\n\
         complete -o default -F _seekclaw seekclaw\n",
    );
    Ok(text)
}

fn fish(places: &[Place]) -> Result<String, std::fmt::Error> {
    let mut text = String::from(
        "function __seekclaw_at\n    set -l words (string match -v -- '-*' (commandline -opc)[2..])\n    \
         test \"$words\" = \"$argv\"\nend\nfunction __seekclaw_in\n    \
         set -l words (string match -v -- '-*' (commandline -opc)[2..])\n    \
         string match -q -- \"$argv *\" \"$words \"\nend\n",
    );
    for place in places {
        for (name, about) in &place.commands {
            let (about, path) = (quoted(about), &place.path);
            writeln!(text, "complete -c seekclaw -f -n '__seekclaw_at {path}' -a {name} -d {about}")?;
        }
        for (name, about) in &place.flags {
            let about = quoted(about);
            let kind = if name.starts_with("--") { "-l" } else { "-s" };
            let test = if place.path.is_empty() { "__seekclaw_at" } else { "__seekclaw_in" };
            let name = name.trim_start_matches('-');
            writeln!(text, "complete -c seekclaw -n '{test} {}' {kind} {name} -d {about}", place.path)?;
        }
    }
    Ok(text)
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn every_command_and_flag_is_offered() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell).unwrap();
            for word in ["daemon", "restart", "session", "archive", "completions", "base-url", "no-start"] {
                assert!(script.contains(word), "{shell:?} lacks {word}");
            }
            assert!(!script.contains("detached"), "{shell:?} offers a hidden flag");
        }
    }

    #[test]
    fn bash_completes_below_a_command() {
        let script = format!(
            "{}\nCOMP_WORDS=(seekclaw --json daemon st); COMP_CWORD=3; _seekclaw; echo \"${{COMPREPLY[*]}}\"",
            script(Shell::Bash).unwrap()
        );
        let output = Command::new("bash").args(["--norc", "-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "start stop status", "{output:?}");
    }
}
