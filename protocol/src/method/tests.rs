use std::collections::HashSet;

use serde_json::json;

use super::*;
use crate::basics::ProtocolInfo;

/// The methods of the contract (section 2), written down a second time on purpose.
const CONTRACT: &str = "ping protocol.info shutdown factory.reset doctor doctor.run lock.list usage.get \
    chat agent.steer agent.cancel workspace.get workspace.open workspace.init \
    agent.mode.get agent.mode.switch routing.get routing.set \
    model.list model.catalog model.switch model.test model.update prompt.optimize \
    profile.list profile.upsert profile.use profile.remove \
    provider.list provider.upsert provider.use provider.remove provider.test provider.models.fetch \
    mcp.list mcp.upsert mcp.remove mcp.reload skill.list skill.toggle skill.import \
    project.list project.upsert project.remove \
    session.list session.get session.update session.archive session.delete session.truncate session.resume session.new \
    schedule.list schedule.create schedule.update schedule.toggle schedule.delete schedule.run";

/// Ruling 28.
const MUTATING: &str = "chat agent.steer agent.cancel agent.mode.switch workspace.open workspace.init \
    session.new session.update session.archive session.delete session.truncate \
    model.switch model.update routing.set factory.reset \
    profile.upsert profile.use profile.remove provider.upsert provider.use provider.remove \
    mcp.upsert mcp.remove mcp.reload skill.toggle skill.import project.upsert project.remove \
    schedule.create schedule.update schedule.toggle schedule.delete schedule.run";

fn names(text: &'static str) -> HashSet<&'static str> {
    text.split_whitespace().collect()
}

#[test]
fn the_table_holds_the_58_methods_of_the_contract_and_the_hello() {
    let table: HashSet<_> = Method::ALL.iter().map(|method| method.name()).collect();
    let mut contract = names(CONTRACT);
    assert_eq!(contract.len(), 58);
    contract.insert("client.hello");
    assert_eq!(table, contract);
}

#[test]
fn every_name_and_alias_is_unique_and_finds_its_method() {
    let mut seen = HashSet::new();
    for method in Method::ALL {
        for name in std::iter::once(method.name()).chain(method.aliases().iter().copied()) {
            assert!(seen.insert(name), "{name} is there twice");
            assert_eq!(Method::resolve(name).unwrap(), *method);
        }
    }
    assert_eq!(Method::from_name("agent.runTurn"), Some(Method::Chat));
    assert_eq!(Method::from_name("agent/runTurn"), Some(Method::Chat));
}

#[test]
fn an_unknown_name_is_echoed_and_case_matters() {
    for name in ["", "Ping", "agent.runturn", "no.such"] {
        let error = Method::resolve(name).unwrap_err();
        assert_eq!(error.message, format!("Unknown method: {name}"));
        assert_eq!(error.code, ErrorCode::UnknownMethod);
    }
}

#[test]
fn mutating_methods_are_those_of_the_ruling() {
    let table: HashSet<_> = Method::ALL.iter().filter(|m| m.mutating()).map(|m| m.name()).collect();
    assert_eq!(table, names(MUTATING));
}

#[test]
fn info_lists_what_runs_and_nothing_else() {
    let info = ProtocolInfo::current();
    for method in Method::ALL {
        let names = std::iter::once(method.name()).chain(method.aliases().iter().copied());
        for name in names {
            assert_eq!(info.methods.contains(&name), method.available(), "{name}");
        }
        for capability in method.capabilities().iter().filter(|_| method.available()) {
            assert_eq!(info.capabilities.iter().filter(|c| *c == capability).count(), 1, "{capability}");
        }
    }
    for absent in ["mcp", "schedule", "skill", "project", "profile", "routing", "usage", "factory-reset"] {
        assert!(!info.capabilities.contains(&absent), "{absent} does not run yet");
    }
    assert_eq!((info.version, info.transport), ("2.1", "jsonl"));
    assert_eq!(serde_json::to_value(&info).unwrap()["methods"][0], json!("ping"));
}

#[test]
fn a_known_method_that_does_not_run_yet_decodes_and_says_so() {
    let command = Command::decode(Method::ScheduleRun, &Params::default()).unwrap();
    assert_eq!(command, Command::NotYet(Method::ScheduleRun));
    assert_eq!(command.method(), Method::ScheduleRun);
    let error = not_yet(command.method());
    assert_eq!(error.message, "schedule.run is not available in this version yet");
    assert_eq!(error.code, ErrorCode::Unavailable);
}

#[test]
fn a_command_knows_its_method_and_a_broken_parameter_is_no_command() {
    let open = Params::of(json!({"path": "/w"}));
    assert_eq!(Command::decode(Method::WorkspaceOpen, &open).unwrap().method(), Method::WorkspaceOpen);
    let error = Command::decode(Method::WorkspaceOpen, &Params::default()).unwrap_err();
    assert_eq!(error.message, "params.path is required");
}
