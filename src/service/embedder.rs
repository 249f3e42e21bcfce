//! A small sentence encoder (BERT on the CPU) for comparing texts by meaning.
//!
//! It reads a folder with `config.json`, `tokenizer.json` and `model.safetensors`
//! (`scripts/embedder-weights.sh` makes one) and never uses the network.
//!
//! Every text is run alone, without padding, so its vectors never depend on the texts before it
//! or beside it. On one machine the same text gives the same bits, however many threads there
//! are; another processor may sum in another order and differ in the last digits, so scores
//! belong in a report rounded, beside [`Embedder::weights_sha256`].
//!
//! A text longer than the model reads is cut, and [`Embedder::texts_cut`] counts those.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, anyhow, ensure};
use candle_core::{Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config, DTYPE};
use sha2::{Digest, Sha256};
use tokenizers::{PostProcessor, Tokenizer, TruncationParams};

const CONFIG_BYTES: u64 = 64 << 10;
const TOKENIZER_BYTES: u64 = 16 << 20;
const WEIGHTS_BYTES: u64 = 512 << 20;
/// What the vectors in the cache may take.
const CACHE_BYTES: usize = 64 << 20;

/// Turns texts into vectors and compares them.
pub struct Embedder {
    model: BertModel,
    tokenizer: Tokenizer,
    dimension: usize,
    max_tokens: usize,
    weights_sha256: String,
    cache: Mutex<Cache>,
}

impl Embedder {
    /// Loads `config.json`, `tokenizer.json` and `model.safetensors` from one folder.
    ///
    /// # Errors
    /// When a file is missing, larger than a weights folder has reason to hold, or not what the
    /// others describe.
    pub fn load(folder: &Path) -> Result<Self> {
        Self::read(folder).with_context(|| format!("cannot load the embedder from {}", folder.display()))
    }

    fn read(folder: &Path) -> Result<Self> {
        let config: Config =
            serde_json::from_slice(&read_file(&folder.join("config.json"), CONFIG_BYTES)?).context("config.json")?;
        let (dimension, max_tokens) = (config.hidden_size, config.max_position_embeddings);
        ensure!(
            config.num_attention_heads > 0 && dimension > 0 && dimension.is_multiple_of(config.num_attention_heads),
            "config.json: {dimension} dimensions cannot be split over {} attention heads",
            config.num_attention_heads
        );

        let mut tokenizer = Tokenizer::from_bytes(read_file(&folder.join("tokenizer.json"), TOKENIZER_BYTES)?)
            .map_err(|error| anyhow!("tokenizer.json: {error}"))?;
        let added = tokenizer.get_post_processor().map_or(0, |processor| processor.added_tokens(false));
        ensure!(max_tokens > added, "config.json: no room for a token in {max_tokens} positions");
        // The file asks for padding to, and a cut at, what training used.
        tokenizer.with_padding(None);
        tokenizer
            .with_truncation(Some(TruncationParams { max_length: max_tokens, ..TruncationParams::default() }))
            .map_err(|error| anyhow!("tokenizer.json: {error}"))?;
        // "[SEP]" in a text is text.
        tokenizer.set_encode_special_tokens(true);

        let weights = read_file(&folder.join("model.safetensors"), WEIGHTS_BYTES)?;
        let weights_sha256 = hex(&Sha256::digest(&weights));
        let model = VarBuilder::from_buffered_safetensors(weights, DTYPE, &Device::Cpu)
            .and_then(|weights| BertModel::load(weights, &config))
            .context("model.safetensors")?;
        Ok(Self { model, tokenizer, dimension, max_tokens, weights_sha256, cache: Mutex::default() })
    }

    /// SHA-256 of `model.safetensors`, in hex.
    pub fn weights_sha256(&self) -> &str {
        &self.weights_sha256
    }

    /// The most tokens the model reads, with the two that it adds.
    pub fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    /// How many different texts were cut so far because they have more tokens than that.
    pub fn texts_cut(&self) -> usize {
        self.cache().cut.len()
    }

    /// One vector of length 1 for each token of the text, without `[CLS]` and `[SEP]`; none for a
    /// text without a token (empty or only spaces).
    ///
    /// # Errors
    /// When the model fails on the text.
    pub fn token_vectors(&self, text: &str) -> Result<Vec<Vec<f32>>> {
        Ok(self.embed(text)?.tokens.chunks_exact(self.dimension).map(<[f32]>::to_vec).collect())
    }

    /// The mean of the vectors of all tokens (`[CLS]` and `[SEP]` too), scaled to length 1.
    ///
    /// # Errors
    /// When the text has no token, or the model fails on it.
    pub fn sentence_vector(&self, text: &str) -> Result<Vec<f32>> {
        let embedded = self.embed(text)?;
        ensure!(!embedded.tokens.is_empty(), "a text without a token has no vector");
        Ok(embedded.sentence.clone())
    }

    /// How well the tokens of two texts match by meaning, in 0..=1: as BERTScore (last layer, no
    /// idf, no rescaling), each token is matched with the nearest one of the other text; precision
    /// and recall are the mean cosines, and this is their harmonic mean. Swapping the texts
    /// changes nothing. 0 when either text has no token.
    ///
    /// # Errors
    /// When the model fails on a text.
    pub fn token_f1(&self, reference: &str, candidate: &str) -> Result<f64> {
        let (reference, candidate) = (self.embed(reference)?, self.embed(candidate)?);
        Ok(greedy_f1(&reference.tokens, &candidate.tokens, self.dimension))
    }

    /// The cosine of the two sentence vectors, in -1..=1. 0 when either text has no token.
    ///
    /// # Errors
    /// When the model fails on a text.
    pub fn cosine(&self, a: &str, b: &str) -> Result<f64> {
        let (a, b) = (self.embed(a)?, self.embed(b)?);
        if a.tokens.is_empty() || b.tokens.is_empty() {
            return Ok(0.0);
        }
        Ok(dot(&a.sentence, &b.sentence).clamp(-1.0, 1.0))
    }

    fn embed(&self, text: &str) -> Result<Arc<Embedded>> {
        if let Some(embedded) = self.cache().get(text) {
            return Ok(embedded);
        }
        // Not under the lock: two threads with the same new text do the work twice, to the same end.
        let (embedded, cut) = self.run(text)?;
        let embedded = Arc::new(embedded);
        self.cache().insert(text, &embedded, cut);
        Ok(embedded)
    }

    fn run(&self, text: &str) -> Result<(Embedded, bool)> {
        let encoding = self.tokenizer.encode_fast(text, true).map_err(|error| anyhow!("cannot tokenize: {error}"))?;
        let cut = !encoding.get_overflowing().is_empty();
        let added = encoding.get_special_tokens_mask();
        if added.iter().all(|&added| added == 1) {
            return Ok((Embedded::default(), cut));
        }
        let ids = Tensor::new(encoding.get_ids(), &Device::Cpu)?.unsqueeze(0)?;
        let types = Tensor::new(encoding.get_type_ids(), &Device::Cpu)?.unsqueeze(0)?;
        // Without padding every token counts, so there is no mask.
        let mut rows: Vec<Vec<f32>> = self.model.forward(&ids, &types, None)?.squeeze(0)?.to_vec2()?;

        let mut mean = vec![0.0; self.dimension];
        for row in &rows {
            mean.iter_mut().zip(row).for_each(|(sum, &value)| *sum += f64::from(value));
        }
        let mut sentence: Vec<f32> = mean.iter().map(|sum| (sum / rows.len() as f64) as f32).collect();
        normalize(&mut sentence)?;

        let mut tokens = Vec::with_capacity(rows.len() * self.dimension);
        for (row, _) in rows.iter_mut().zip(added).filter(|(_, added)| **added == 0) {
            normalize(row)?;
            tokens.extend_from_slice(row);
        }
        Ok((Embedded { tokens, sentence }, cut))
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        // Each change of the cache is whole before anything can panic.
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the model says of one text; empty for one without a token.
#[derive(Default)]
struct Embedded {
    /// Row after row, each of length 1.
    tokens: Vec<f32>,
    sentence: Vec<f32>,
}

/// The newest texts, as many as fit in [`CACHE_BYTES`].
#[derive(Default)]
struct Cache {
    texts: HashMap<Arc<str>, Arc<Embedded>>,
    /// Oldest first.
    order: VecDeque<Arc<str>>,
    bytes: usize,
    /// SHA-256 of each text that was cut: it outlasts the cache, so none counts twice.
    cut: HashSet<[u8; 32]>,
}

impl Cache {
    fn get(&self, text: &str) -> Option<Arc<Embedded>> {
        self.texts.get(text).cloned()
    }

    fn insert(&mut self, text: &str, embedded: &Arc<Embedded>, cut: bool) {
        if cut {
            self.cut.insert(Sha256::digest(text).into());
        }
        let text: Arc<str> = text.into();
        if self.texts.insert(text.clone(), embedded.clone()).is_some() {
            return;
        }
        self.bytes += size(&text, embedded);
        self.order.push_back(text);
        while self.bytes > CACHE_BYTES
            && let Some(oldest) = self.order.pop_front()
        {
            if let Some(embedded) = self.texts.remove(&oldest) {
                self.bytes -= size(&oldest, &embedded);
            }
        }
    }
}

fn size(text: &str, embedded: &Embedded) -> usize {
    text.len() + size_of_val(&*embedded.tokens) + size_of_val(&*embedded.sentence)
}

/// Rows of both sides have length 1, so a dot product is a cosine.
fn greedy_f1(reference: &[f32], candidate: &[f32], dimension: usize) -> f64 {
    if reference.is_empty() || candidate.is_empty() {
        return 0.0;
    }
    let mut nearest_reference = vec![f64::NEG_INFINITY; candidate.len() / dimension];
    let mut nearest_candidate = vec![f64::NEG_INFINITY; reference.len() / dimension];
    for (a, nearest_candidate) in reference.chunks_exact(dimension).zip(&mut nearest_candidate) {
        for (b, nearest_reference) in candidate.chunks_exact(dimension).zip(&mut nearest_reference) {
            let cosine = dot(a, b);
            *nearest_candidate = nearest_candidate.max(cosine);
            *nearest_reference = nearest_reference.max(cosine);
        }
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (precision, recall) = (mean(&nearest_reference), mean(&nearest_candidate));
    if precision <= 0.0 || recall <= 0.0 {
        return 0.0;
    }
    (2.0 * precision * recall / (precision + recall)).min(1.0)
}

/// In a fixed order, with eight sums side by side so that the compiler can use wide registers.
fn dot(a: &[f32], b: &[f32]) -> f64 {
    let mut sums = [0.0; 8];
    for (a, b) in a.chunks(8).zip(b.chunks(8)) {
        for ((sum, &a), &b) in sums.iter_mut().zip(a).zip(b) {
            *sum += f64::from(a) * f64::from(b);
        }
    }
    sums.iter().sum()
}

fn normalize(vector: &mut [f32]) -> Result<()> {
    let length = dot(vector, vector).sqrt();
    ensure!(length.is_finite() && length > 0.0, "the model gave a vector of length {length}");
    vector.iter_mut().for_each(|value| *value = (f64::from(*value) / length) as f32);
    Ok(())
}

fn read_file(path: &Path, most: u64) -> Result<Vec<u8>> {
    let read = || -> Result<Vec<u8>> {
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        ensure!(size <= most, "{size} bytes, and at most {most} are read");
        let mut bytes = Vec::with_capacity(usize::try_from(size)?);
        // It may have grown since.
        file.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().with_context(|| path.display().to_string())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The real model, where there is one.
    fn embedder() -> Option<Embedder> {
        let Some(folder) = std::env::var_os("CASEMILL_EMBEDDER") else {
            eprintln!("skipped: CASEMILL_EMBEDDER does not name a folder made by scripts/embedder-weights.sh");
            return None;
        };
        Some(Embedder::load(Path::new(&folder)).unwrap())
    }

    /// A model of one layer and eight words, with made-up weights, that reads at most 8 tokens.
    fn write_tiny(folder: &Path) {
        let words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "heart", "attack", "ankle", "sprain"];
        let config = r#"{"vocab_size":8,"hidden_size":4,"num_hidden_layers":1,"num_attention_heads":2,
            "intermediate_size":8,"hidden_act":"gelu","hidden_dropout_prob":0.1,"max_position_embeddings":8,
            "type_vocab_size":2,"initializer_range":0.02,"layer_norm_eps":1e-12,"pad_token_id":0,
            "model_type":"bert"}"#;
        std::fs::write(folder.join("config.json"), config).unwrap();
        let vocab: serde_json::Map<_, _> = words.iter().enumerate().map(|(n, w)| (w.to_string(), n.into())).collect();
        let special = |n: usize| {
            serde_json::json!({"id": n, "content": words[n], "special": true, "single_word": false,
                "lstrip": false, "rstrip": false, "normalized": false})
        };
        let tokenizer = serde_json::json!({
            "version": "1.0",
            "truncation": {"max_length": 4, "strategy": "LongestFirst", "stride": 0},
            "padding": {"strategy": {"Fixed": 6}, "direction": "Right", "pad_to_multiple_of": null,
                "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"},
            "added_tokens": [special(0), special(1), special(2), special(3)],
            "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                "strip_accents": null, "lowercase": true},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
            "decoder": null,
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 100, "vocab": vocab},
        });
        std::fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).unwrap();

        let mut shapes = vec![
            ("embeddings.word_embeddings.weight".to_owned(), vec![8, 4]),
            ("embeddings.position_embeddings.weight".to_owned(), vec![8, 4]),
            ("embeddings.token_type_embeddings.weight".to_owned(), vec![2, 4]),
        ];
        let mut pair = |name: &str, shape: &[usize]| {
            shapes.push((format!("{name}.weight"), shape.to_vec()));
            shapes.push((format!("{name}.bias"), shape[..1].to_vec()));
        };
        pair("embeddings.LayerNorm", &[4]);
        for name in ["self.query", "self.key", "self.value", "output.dense"] {
            pair(&format!("encoder.layer.0.attention.{name}"), &[4, 4]);
        }
        pair("encoder.layer.0.attention.output.LayerNorm", &[4]);
        pair("encoder.layer.0.intermediate.dense", &[8, 4]);
        pair("encoder.layer.0.output.dense", &[4, 8]);
        pair("encoder.layer.0.output.LayerNorm", &[4]);
        let tensors: HashMap<String, Tensor> = shapes
            .into_iter()
            .enumerate()
            .map(|(n, (name, shape))| {
                let size: usize = shape.iter().product();
                let values: Vec<f32> = (0..size).map(|at| ((n * 31 + at * 7) as f32).sin()).collect();
                (name, Tensor::from_vec(values, shape, &Device::Cpu).unwrap())
            })
            .collect();
        candle_core::safetensors::save(&tensors, folder.join("model.safetensors")).unwrap();
    }

    fn tiny() -> Embedder {
        let folder = tempfile::tempdir().unwrap();
        write_tiny(folder.path());
        Embedder::load(folder.path()).unwrap()
    }

    #[test]
    fn a_tiny_model_does_all_a_real_one_does() {
        let embedder = tiny();
        assert_eq!(embedder.weights_sha256().len(), 64);
        let vectors = embedder.token_vectors("Heart attack").unwrap();
        assert_eq!(vectors.len(), 2, "neither padding nor [CLS] and [SEP]");
        let sentence = embedder.sentence_vector("heart attack").unwrap();
        for vector in vectors.iter().chain([&sentence]) {
            assert_eq!(vector.len(), 4);
            assert!((dot(vector, vector) - 1.0).abs() < 1e-6);
        }
        let f1 = embedder.token_f1("heart attack", "ankle sprain").unwrap();
        assert!(f1 > 0.0 && f1 < 1.0, "{f1}");
        assert_eq!(f1, embedder.token_f1("ankle sprain", "heart attack").unwrap());
        assert!((embedder.token_f1("ankle sprain", "ankle sprain").unwrap() - 1.0).abs() < 1e-5);
        assert!((embedder.cosine("ankle sprain", "ankle sprain").unwrap() - 1.0).abs() < 1e-5);
    }

    #[test]
    fn a_text_without_a_token_scores_0() {
        let embedder = tiny();
        for empty in ["", " \n\t"] {
            assert!(embedder.token_vectors(empty).unwrap().is_empty());
            assert!(embedder.sentence_vector(empty).is_err());
            for other in ["", "heart"] {
                assert_eq!(embedder.token_f1(empty, other).unwrap(), 0.0);
                assert_eq!(embedder.token_f1(other, empty).unwrap(), 0.0);
                assert_eq!(embedder.cosine(empty, other).unwrap(), 0.0);
            }
        }
    }

    #[test]
    fn a_long_text_is_cut_and_counted_once() {
        let embedder = tiny();
        assert_eq!(embedder.max_tokens(), 8);
        assert_eq!(embedder.token_vectors(&"heart ".repeat(6)).unwrap().len(), 6);
        assert_eq!(embedder.texts_cut(), 0);
        for _ in 0..2 {
            assert_eq!(embedder.token_vectors(&"heart ".repeat(7)).unwrap().len(), 6);
        }
        assert_eq!(embedder.texts_cut(), 1);
    }

    #[test]
    fn a_special_token_in_a_text_is_text() {
        // "[", "SEP" and "]", each unknown to the tiny model.
        assert_eq!(tiny().token_vectors("heart [SEP]").unwrap().len(), 4);
    }

    #[test]
    fn a_text_is_embedded_once_and_the_cache_is_bounded() {
        let embedder = tiny();
        let first = embedder.embed("heart").unwrap();
        assert!(Arc::ptr_eq(&first, &embedder.embed("heart").unwrap()));

        let mut cache = Cache::default();
        for n in 0..10 {
            let embedded = Arc::new(Embedded { tokens: vec![0.0; CACHE_BYTES / 16], sentence: Vec::new() });
            cache.insert(&n.to_string(), &embedded, false);
        }
        assert!(cache.bytes <= CACHE_BYTES);
        assert_eq!(cache.order.iter().map(|text| &**text).collect::<Vec<_>>(), ["7", "8", "9"]);
        assert_eq!(cache.texts.len(), 3);
    }

    #[test]
    fn a_bad_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let refusal = |folder: &Path| format!("{:#}", Embedder::load(folder).err().unwrap());
        assert!(refusal(folder.path()).contains("config.json"));

        write_tiny(folder.path());
        let weights = folder.path().join("model.safetensors");
        let whole = std::fs::read(&weights).unwrap();
        std::fs::write(&weights, &whole[..whole.len() - 1]).unwrap();
        assert!(refusal(folder.path()).contains("model.safetensors"));
        File::create(&weights).unwrap().set_len(WEIGHTS_BYTES + 1).unwrap();
        assert!(refusal(folder.path()).contains("at most"));

        let config = folder.path().join("config.json");
        let text = std::fs::read_to_string(&config).unwrap();
        std::fs::write(&config, text.replace("\"num_attention_heads\":2", "\"num_attention_heads\":0")).unwrap();
        assert!(refusal(folder.path()).contains("attention heads"));
        std::fs::write(&config, text.replace("embeddings\":8", "embeddings\":2")).unwrap();
        assert!(refusal(folder.path()).contains("no room"));
    }

    #[test]
    fn greedy_matching_counts_the_nearest_on_each_side() {
        // Reference: x, y. Candidate: x. Precision 1, recall (1 + 0) / 2.
        assert_eq!(greedy_f1(&[1.0, 0.0, 0.0, 1.0], &[1.0, 0.0], 2), 2.0 * 0.5 / 1.5);
        assert_eq!(greedy_f1(&[1.0, 0.0], &[-1.0, 0.0], 2), 0.0);
        assert_eq!(greedy_f1(&[], &[1.0, 0.0], 2), 0.0);
    }

    #[test]
    fn identical_texts_score_1() {
        let Some(embedder) = embedder() else { return };
        for text in ["heart attack", "A 54-year-old man with crushing chest pain radiating to the left arm."] {
            assert!((embedder.token_f1(text, text).unwrap() - 1.0).abs() < 1e-5);
            assert!((embedder.cosine(text, text).unwrap() - 1.0).abs() < 1e-5);
        }
    }

    #[test]
    fn a_synonym_is_nearer_than_another_injury() {
        let Some(embedder) = embedder() else { return };
        let (text, synonym, other) = ("myocardial infarction", "heart attack", "ankle sprain");
        assert!(embedder.cosine(text, synonym).unwrap() > embedder.cosine(text, other).unwrap() + 0.2);
        assert!(embedder.token_f1(text, synonym).unwrap() > embedder.token_f1(text, other).unwrap());
    }

    #[test]
    fn token_f1_is_symmetric() {
        let Some(embedder) = embedder() else { return };
        let (a, b) = ("Give aspirin and call the cath lab.", "The patient needs aspirin, then angiography.");
        assert_eq!(embedder.token_f1(a, b).unwrap(), embedder.token_f1(b, a).unwrap());
    }

    #[test]
    fn two_runs_give_the_same_bits() {
        let (Some(first), Some(second)) = (embedder(), embedder()) else { return };
        let (a, b) = ("Acute chest pain with ST elevation. ".repeat(20), "Twisted ankle while running. ".repeat(150));
        // The second embeds them in the other order.
        second.sentence_vector(&b).unwrap();
        assert_eq!(first.token_f1(&a, &b).unwrap().to_bits(), second.token_f1(&a, &b).unwrap().to_bits());
        assert_eq!(first.cosine(&a, &b).unwrap().to_bits(), second.cosine(&a, &b).unwrap().to_bits());
        assert_eq!(first.token_vectors(&b).unwrap(), second.token_vectors(&b).unwrap());
        assert_eq!(first.texts_cut(), 1);
    }
}
