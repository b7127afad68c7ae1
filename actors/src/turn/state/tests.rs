use seekclaw_storage::record::log::{Applied, Effect, Intent, Note};

use super::*;

const BOUNDS: Bounds = Bounds { max_answers: 4, max_continuations: 2, max_repairs: 1, verify: true };

fn writes(name: &str) -> bool {
    name.starts_with('w')
}

fn after(bodies: &[Body]) -> TurnState {
    let mut state = TurnState::default();
    for body in bodies {
        let entry = Entry { seq: 1, at: 0, turn: "t".to_owned(), body: body.clone() };
        state.apply(&entry, writes);
    }
    state
}

fn next(bodies: &[Body]) -> Next {
    after(bodies).next(BOUNDS, writes)
}

fn call(id: &str, name: &str) -> Call {
    Call { id: id.to_owned(), name: name.to_owned(), arguments: String::new() }
}

fn answer(text: &str, calls: &[Call], end: AnswerEnd) -> Body {
    Body::Answer(Answer {
        step: 1,
        model: String::new(),
        thinking: String::new(),
        text: text.to_owned(),
        marks: Vec::new(),
        calls: calls.to_vec(),
        viewed: Vec::new(),
        end,
    })
}

fn intent(call: &str) -> Body {
    let effect = Effect::Other { what: String::new() };
    Body::Intent(Intent { call: call.to_owned(), tool: "w".to_owned(), effect })
}

fn result(call: &str, tool: &str, outcome: Outcome) -> Body {
    Body::Result(CallResult {
        call: call.to_owned(),
        tool: tool.to_owned(),
        outcome,
        text: String::new(),
        summary: String::new(),
        took_us: 0,
        omitted: 0,
        seen: Vec::new(),
        images: Vec::new(),
    })
}

fn guidance(id: &str) -> Guidance {
    Guidance { id: id.to_owned(), text: String::new(), images: Vec::new() }
}

fn verification(ok: bool) -> Body {
    let (command, tail) = (String::new(), String::new());
    Body::Notice(Notice::Verification { command, ok, exit_code: None, tail })
}

const COMPLETE: AnswerEnd = AnswerEnd::Complete;

#[test]
fn calls_run_in_their_order_reading_ones_together_and_writing_ones_alone() {
    let calls = [call("1", "r"), call("2", "r"), call("3", "w"), call("4", "r"), call("5", "w")];
    let mut log = vec![answer("", &calls, COMPLETE)];
    for batch in [&calls[..2], &calls[2..3], &calls[3..4], &calls[4..]] {
        assert_eq!(next(&log), Next::Run(batch.to_vec()));
        log.extend(batch.iter().map(|call| result(&call.id, &call.name, Outcome::Failed)));
    }
    assert_eq!(next(&log), Next::Ask { after_cap: None });
}

#[test]
fn a_call_that_may_have_happened_is_settled_before_anything_else() {
    let calls = [call("1", "w"), call("2", "w")];
    let log = [answer("", &calls, COMPLETE), intent("1"), Body::Guidance(guidance("g"))];
    assert_eq!(next(&log), Next::Settle(vec![(calls[0].clone(), Outcome::Uncertain)]));
    let mut log = Vec::from(log);
    log.push(result("1", "w", Outcome::Uncertain));
    assert_eq!(next(&log), Next::Run(vec![calls[1].clone()]), "what has not begun is run");
}

#[test]
fn a_reading_call_without_result_runs_again() {
    let calls = [call("1", "r"), call("2", "r")];
    let log = [answer("", &calls, COMPLETE), result("2", "r", Outcome::Ok)];
    assert_eq!(next(&log), Next::Run(vec![calls[0].clone()]));
}

#[test]
fn guidance_is_applied_between_steps_and_makes_another_one() {
    let mut log =
        vec![answer("text", &[], COMPLETE), Body::Guidance(guidance("g")), Body::Guidance(guidance("h"))];
    assert_eq!(next(&log), Next::Apply(vec![guidance("g"), guidance("h")]));
    for id in ["g", "h"] {
        log.push(Body::Applied(Applied { guidance: id.to_owned(), text: String::new() }));
    }
    assert_eq!(next(&log), Next::Ask { after_cap: None });
}

#[test]
fn a_capped_answer_runs_no_call_and_is_continued_so_many_times() {
    let calls = [call("1", "r")];
    let capped = |text| answer(text, &[], AnswerEnd::Capped);
    let cut = answer("", &calls, AnswerEnd::Capped);
    assert_eq!(next(&[cut]), Next::Settle(vec![(calls[0].clone(), Outcome::Cancelled)]));
    assert_eq!(next(&[capped("half")]), Next::Ask { after_cap: Some(true) });
    assert_eq!(next(&[capped("")]), Next::Ask { after_cap: Some(false) });
    assert_eq!(next(&[capped(""), Body::Note(Note { text: String::new() })]), Next::Ask { after_cap: None });
    let three = [capped("1"), capped("2"), capped("3")];
    assert_eq!(next(&three), Next::Finish(DoneBecause::OutputCap));
}

#[test]
fn a_turn_ends_when_the_model_is_done_or_its_steps_are_used_up() {
    assert_eq!(next(&[answer("text", &[], COMPLETE)]), Next::Finish(DoneBecause::Complete));
    let calls = [call("1", "r")];
    let step = [answer("", &calls, COMPLETE), result("1", "r", Outcome::Ok)];
    let steps = |count: usize| step.iter().cycle().take(2 * count).cloned().collect::<Vec<_>>();
    assert_eq!(next(&steps(3)), Next::Ask { after_cap: None });
    assert_eq!(next(&steps(4)), Next::Finish(DoneBecause::StepLimit));
}

#[test]
fn what_was_changed_is_checked_and_repaired_so_many_times() {
    let calls = [call("1", "w")];
    let done = answer("done", &[], COMPLETE);
    let mut log = vec![answer("", &calls, COMPLETE), result("1", "w", Outcome::Ok), done.clone()];
    assert_eq!(next(&log), Next::Verify);
    assert_eq!(
        after(&log).next(Bounds { verify: false, ..BOUNDS }, writes),
        Next::Finish(DoneBecause::Complete)
    );
    log.push(verification(true));
    assert_eq!(next(&log), Next::Finish(DoneBecause::Complete));
    log.pop();
    log.extend([verification(false), Body::Note(Note { text: String::new() })]);
    assert_eq!(next(&log), Next::Ask { after_cap: None });
    log.extend([answer("", &calls, COMPLETE), result("1", "w", Outcome::Ok), done]);
    assert_eq!(next(&log), Next::Finish(DoneBecause::Complete), "no more repairs, no more checks");
}

#[test]
fn sums_come_from_the_notices_and_the_last_text_that_there_was() {
    let usage = Notice::Usage {
        provider: String::new(),
        model: String::new(),
        input: 1,
        output: 2,
        total_input: 3,
        cached: 4,
        took_us: 5,
    };
    let start = Notice::ModelStart { provider: String::new(), model: String::new(), step: 1 };
    let step = Notice::Workflow { step: 7, kind: 1, label: String::new(), detail: String::new() };
    let state = after(&[
        Body::Notice(step),
        Body::Notice(start),
        Body::Notice(usage),
        answer("text", &[], COMPLETE),
        answer("", &[], COMPLETE),
    ]);
    let totals =
        Totals { rounds: 1, steps: 7, input: 1, output: 2, total_input: 3, cached: 4, elapsed_us: 5 };
    assert_eq!((state.totals, state.step), (totals, 7));
    assert_eq!(state.done(), Finished::Done { text: "text".to_owned() });
}
