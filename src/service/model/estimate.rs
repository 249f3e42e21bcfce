//! What calls will cost, before the first of them: tokens by the tokeniser of the model's family, money by its price.

use super::budget::cost;
use crate::config::ModelConfig;
use crate::stage::{Call, Part};
use tiktoken_rs::{CoreBPE, cl100k_base_singleton, o200k_base_singleton};

/// Tokens of the frame of a message, in the protocols that say.
const MESSAGE_FRAME: u64 = 4;
/// Tokens that an image is taken for.
const IMAGE_TOKENS: u64 = 1100;
/// Characters of English for one token, where the tokeniser is not known.
const CHARACTERS_PER_TOKEN: u64 = 4;

/// Counts tokens as a model does, or estimates them.
pub struct TokenCounter {
    tokenizer: Option<&'static CoreBPE>,
}

impl TokenCounter {
    pub fn of(model: &ModelConfig) -> Self {
        let tokenizer = match model.tokenizer.as_str() {
            "o200k_base" => Some(o200k_base_singleton()),
            "cl100k_base" => Some(cl100k_base_singleton()),
            _ => None,
        };
        Self { tokenizer }
    }

    pub fn text(&self, text: &str) -> u64 {
        match self.tokenizer {
            Some(tokenizer) => tokenizer.encode_ordinary(text).len() as u64,
            None => (text.chars().count() as u64).div_ceil(CHARACTERS_PER_TOKEN),
        }
    }

    /// Input tokens of a call, the schema included: servers count it, one way or another.
    pub fn call(&self, call: &Call) -> u64 {
        let mut tokens = call.format.as_ref().map_or(0, |format| self.text(&format.schema.to_string()));
        for message in &call.messages {
            tokens += MESSAGE_FRAME;
            for part in &message.parts {
                tokens += match part {
                    Part::Text(text) => self.text(text),
                    Part::Image { .. } => IMAGE_TOKENS,
                };
            }
        }
        tokens
    }
}

/// Calls of one model at one node that are still to be paid.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Estimate {
    pub node: String,
    pub model: String,
    /// Calls in all.
    pub calls: u64,
    /// Of them with a reply in the store.
    pub stored: u64,
    /// Of them such that their record may not be sent to the model.
    pub refused: u64,
    pub input_tokens: u64,
    /// Expected, from the replies that the node had so far; without any the same as `output_tokens_at_most`.
    pub output_tokens: u64,
    pub output_tokens_at_most: u64,
    /// Null for a model without a price.
    pub cost: Option<f64>,
    pub cost_at_most: Option<f64>,
}

impl Estimate {
    /// Adds a call that must be paid.
    pub fn add(&mut self, model: &ModelConfig, input_tokens: u64, mean_output_tokens: Option<f64>) {
        let at_most = u64::from(model.max_tokens);
        self.input_tokens += input_tokens;
        self.output_tokens += mean_output_tokens.map_or(at_most, |mean| mean.ceil() as u64);
        self.output_tokens_at_most += at_most;
        if model.price.is_some() {
            self.cost = Some(cost(model, self.input_tokens, self.output_tokens));
            self.cost_at_most = Some(cost(model, self.input_tokens, self.output_tokens_at_most));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::pipeline;
    use crate::stage::{Message, ReplyFormat, Role};
    use serde_json::json;

    fn model(name: &str, extra: &str) -> ModelConfig {
        let text = format!(
            "name = 'p'\nsummary = 's'\ncases = 'n'\n[nodes.n]\n[models.m]\nprovider = 'openai'\nmodel = '{name}'\nbase_url_env = 'U'\n\
             egress = 'public'\nmax_tokens = 1000\n{extra}\n"
        );
        pipeline::parse("p.toml", &text).unwrap().models.remove("m").unwrap()
    }

    #[test]
    fn tokens_are_counted_by_the_family_of_the_model() {
        let text = "A 41-year-old woman comes to the physician because of hyperpigmentation.";
        let counted = |name: &str| TokenCounter::of(&model(name, "")).text(text);
        // As OpenAI's tiktoken counts them; a quarter of the characters elsewhere.
        assert_eq!((counted("gpt-4o-mini"), counted("gpt-4-turbo"), counted("qwen3-8b")), (16, 16, 18));
        let message = Message { role: Role::User, parts: vec![Part::Text(text.to_owned())] };
        let format = ReplyFormat::new("answer", json!({"type": "object"})).unwrap();
        let call = Call { model: "m".to_owned(), messages: vec![message], format: Some(format), sample: 0 };
        assert_eq!(TokenCounter::of(&model("qwen3-8b", "")).call(&call), 4 + 18 + 5);
    }

    #[test]
    fn money_follows_from_tokens_and_price() {
        let priced = model("gpt-4o", "price = { input = 2.0, output = 10.0 }");
        let mut estimate = Estimate::default();
        estimate.add(&priced, 500_000, None);
        assert_eq!((estimate.cost, estimate.cost_at_most), (Some(1.01), Some(1.01)));
        estimate.add(&priced, 500_000, Some(99.5));
        assert_eq!((estimate.output_tokens, estimate.output_tokens_at_most), (1100, 2000));
        assert_eq!((estimate.cost, estimate.cost_at_most), (Some(2.011), Some(2.02)));
        let mut free = Estimate::default();
        free.add(&model("gpt-4o", ""), 1, None);
        assert_eq!(free.cost, None);
    }
}
