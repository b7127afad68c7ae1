//! `model.*` (contract 2.6).

use serde::Serialize;

use crate::agent::ReasoningLevel;
use crate::error::{ErrorCode, WireError};
use crate::params::{FromParams, Params};

/// Parameters of `model.switch` and `model.test`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelParams {
    /// Reference, alias, or a bare id that is unambiguous.
    pub model: String,
}

impl FromParams for ModelParams {
    fn from_params(params: &Params) -> Result<Self, WireError> {
        Ok(Self { model: params.required_str("model")?.to_owned() })
    }
}

/// One entry of `model.catalog`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelEntry {
    /// `provider/model`.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Whether it heads the candidate chain; at most one does.
    pub active: bool,
    /// Provider id.
    pub provider: String,
    /// Whether its provider is enabled.
    pub provider_enabled: bool,
    /// Id within the provider.
    pub id: String,
    /// Short name.
    pub alias: Option<String>,
    /// Tokens of prompt and answer together.
    pub context_window: u64,
    /// Tokens of an answer.
    pub max_output: u64,
    /// Free words.
    pub tags: Vec<String>,
    /// What it can do.
    pub capabilities: ModelCapabilities,
}

/// What a model can do, as far as clients care.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "the contract's own list of independent flags")]
pub struct ModelCapabilities {
    /// Streams its answers.
    pub streaming: bool,
    /// Calls tools.
    pub tools: bool,
    /// Thinks on request.
    pub thinking: bool,
    /// Reads images.
    pub vision: bool,
    /// Reasons on its own.
    pub reasoning: bool,
    /// Highest level it takes.
    pub max_reasoning_level: ReasoningLevel,
    /// May use MCP tools.
    pub mcp: bool,
}

/// Result of `model.test`; a failed call is a result too.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelTest {
    /// `provider/model`.
    pub model: String,
    /// Whether it answered.
    pub success: bool,
    /// What it answered, or what went wrong.
    pub detail: String,
    /// Time of the call.
    pub latency_ms: f64,
}

/// Text of `model.switch` when it is done.
#[must_use]
pub fn switched_to(reference: &str) -> String {
    format!("switched to {reference}")
}

/// `Unknown model <model>`: what `model.switch` and `chat` answer (ruling 36).
#[must_use]
pub fn unknown_model(model: &str) -> WireError {
    WireError::new(ErrorCode::NotFound, format!("Unknown model {model}"))
}

/// `Model not found: <model>`: what `model.test` answers.
#[must_use]
pub fn model_not_found(model: &str) -> WireError {
    WireError::new(ErrorCode::NotFound, format!("Model not found: {model}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_texts_are_those_of_the_contract() {
        let model = |value| ModelParams::from_params(&Params::of(value));
        assert_eq!(model(json!({})).unwrap_err().message, "params.model is required");
        assert_eq!(
            model(json!({"model": []})).unwrap_err().message,
            "Invalid request: params.model must be a string"
        );
        assert_eq!(unknown_model("m").message, "Unknown model m");
        assert_eq!(model_not_found("m").message, "Model not found: m");
        assert_eq!(switched_to("p/m"), "switched to p/m");
    }

    #[test]
    fn a_catalog_entry_has_every_field_with_nulls() {
        let entry = ModelEntry {
            reference: "p/m".to_owned(),
            active: true,
            provider: "p".to_owned(),
            provider_enabled: true,
            id: "m".to_owned(),
            alias: None,
            context_window: 1024,
            max_output: 128,
            tags: Vec::new(),
            capabilities: ModelCapabilities {
                streaming: true,
                tools: true,
                thinking: false,
                vision: false,
                reasoning: false,
                max_reasoning_level: ReasoningLevel::Max,
                mcp: true,
            },
        };
        let expected = json!({
            "ref": "p/m", "active": true, "provider": "p", "providerEnabled": true, "id": "m", "alias": null,
            "contextWindow": 1024, "maxOutput": 128, "tags": [],
            "capabilities": {
                "streaming": true, "tools": true, "thinking": false, "vision": false, "reasoning": false,
                "maxReasoningLevel": "max", "mcp": true,
            },
        });
        assert_eq!(serde_json::to_value(entry).unwrap(), expected);
    }
}
