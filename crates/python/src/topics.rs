//! Deep exponential families: training on counts, and what a trained one makes of other counts.

use crate::error::said;
use crate::watch::Watch;
use hyperprior_def::heldout::{FitSettings, Hide, Measured, Predictor, unigram};
use hyperprior_def::{Activity, Corpus, Settings, Topics, Training, corpus};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use rayon::prelude::*;

/// Times eight draws that the bound is taken over, as the command does.
const BOUND_ROUNDS: u64 = 16;
/// The words that every latent is told by at most.
const WORDS: usize = 100;

/// Counts as SciPy has them in rows: where each row starts, the columns, and the counts.
type Rows<'py> = (PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, f64>);
/// The same going the other way, with the names of the documents and the terms.
type Given<'py> =
    (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f64>>, Vec<String>, Vec<String>);

/// What `Trained` is made from again.
type Parts<'py> = (Bound<'py, PyBytes>, String, Vec<f64>, f64);
/// E z, layer by layer, and the bounds.
type Found<'py> = (Vec<Bound<'py, PyArray2<f64>>>, Bound<'py, PyArray1<f64>>);

/// A trained model, with what was seen of its training.
#[pyclass(frozen, module = "hyperprior._hyperprior")]
pub struct Trained {
    trained: hyperprior_def::Trained,
    /// As it is written to a file.
    saved: Vec<u8>,
    /// Its latents by their words, as JSON.
    #[pyo3(get)]
    topics: String,
    /// What was climbed per word, epoch by epoch, and the bound at the end.
    #[pyo3(get)]
    history: Vec<f64>,
    #[pyo3(get)]
    elbo: f64,
}

#[pymethods]
impl Trained {
    /// Trains on counts.
    #[staticmethod]
    fn fit(
        py: Python,
        rows: Rows,
        vocabulary: Vec<String>,
        settings_json: &str,
        tell: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let settings = read(settings_json)?;
        let corpus = counts(&rows, vocabulary)?;
        let mut watch = Watch::new(tell);
        let made = py.detach(|| make(&corpus, &settings, &mut watch));
        watch.finish()?;
        let (saved, topics, history, elbo) = made.map_err(said)?;
        Self::new(saved, topics, history, elbo)
    }

    /// From what `__reduce__` gives.
    #[new]
    fn new(saved: Vec<u8>, topics: String, history: Vec<f64>, elbo: f64) -> PyResult<Self> {
        let trained = hyperprior_def::Trained::load(saved.as_slice()).map_err(said)?;
        Ok(Self { trained, saved, topics, history, elbo })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, Parts<'py>) {
        let own = slf.get();
        let bytes = PyBytes::new(slf.py(), &own.saved);
        (slf.get_type().into_any(), (bytes, own.topics.clone(), own.history.clone(), own.elbo))
    }

    /// The file that `hyperprior topics infer` reads.
    fn model<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.saved)
    }

    /// The weights below a layer: of the terms below the lowest, of the latents below it otherwise. A row for each latent.
    fn weights<'py>(&self, py: Python<'py>, layer: usize) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let terms = self.trained.terms();
        if layer == 0 {
            let rows =
                (0..terms.width()).flat_map(|k| (0..terms.terms_len()).map(move |v| f64::from(terms.mean(v, k))));
            return PyArray1::from_vec(py, rows.collect()).reshape([terms.width(), terms.terms_len()]);
        }
        let layers = self.trained.shape().layers();
        let between = self.trained.between().get(layer - 1).filter(|between| between.parents_len() > 0);
        let between = between.ok_or_else(|| said(format!("there is no layer {layer}: there are {}", layers.len())))?;
        let (parents, children) = (between.parents_len(), layers[layer - 1].width);
        let rows = (0..parents).flat_map(|p| (0..children).map(move |c| f64::from(between.mean(p, c))));
        PyArray1::from_vec(py, rows.collect()).reshape([parents, children])
    }

    /// E z of every layer for each document, and the bound on ln p(words | weights). The same document has the same numbers wherever
    /// it stands.
    fn infer<'py>(
        &self,
        py: Python<'py>,
        rows: Rows,
        steps: u32,
        seed: u64,
        tell: Option<Py<PyAny>>,
    ) -> PyResult<Found<'py>> {
        let corpus = counts(&rows, self.trained.vocabulary().to_vec())?;
        let mut watch = Watch::new(tell);
        let len = corpus.documents_len();
        let found = py.detach(|| -> hyperprior_def::Result<Vec<_>> {
            let predictor =
                Predictor::of_trained(&self.trained, FitSettings { steps, ..FitSettings::default() }, seed)?;
            let one = |d: usize| predictor.infer(&corpus.subset(&[d]), 0..1).swap_remove(0);
            let mut found = Vec::with_capacity(len);
            for few in parts(len) {
                found.par_extend(few.clone().into_par_iter().map(one));
                if watch.turn("documents", few.end as u64, len as u64, None).is_break() {
                    break;
                }
            }
            Ok(found)
        });
        watch.finish()?;
        let found = found.map_err(said)?;
        let of_layer = |(l, layer): (usize, &hyperprior_def::Layer)| {
            let rows = found.iter().flat_map(|one| one.activations[l].iter().map(|z| f64::from(*z)));
            PyArray1::from_vec(py, rows.collect()).reshape([len, layer.width])
        };
        let layers = self.trained.shape().layers().iter().enumerate().map(of_layer).collect::<PyResult<_>>()?;
        Ok((layers, PyArray1::from_vec(py, found.iter().map(|one| one.bound).collect())))
    }

    /// How well half of the documents' word types, or of their words, are foretold from the rest.
    fn heldout<'py>(
        &self,
        py: Python<'py>,
        rows: Rows,
        hide: &str,
        seed: u64,
        tell: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let hide = match hide {
            "types" => Hide::Types,
            "words" => Hide::Tokens,
            other => return Err(said(format!("hide=`{other}` is not known; use types or words"))),
        };
        let corpus = counts(&rows, self.trained.vocabulary().to_vec())?;
        let mut watch = Watch::new(tell);
        let measured = py.detach(|| -> hyperprior_def::Result<Measured> {
            let predictor = Predictor::of_trained(&self.trained, FitSettings::default(), seed)?;
            let mut measured = Measured::default();
            let len = corpus.documents_len();
            for few in parts(len) {
                predictor.measure(&corpus, hide, few.clone(), &mut measured)?;
                if watch.turn("documents", few.end as u64, len as u64, None).is_break() {
                    break;
                }
            }
            Ok(measured)
        });
        watch.finish()?;
        let found = measured.map_err(said)?.heldout();
        let out = PyDict::new(py);
        out.set_item("perplexity", found.perplexity)?;
        out.set_item("perplexity_averaged", found.perplexity_averaged)?;
        out.set_item("elbo_per_word", found.elbo_per_word)?;
        out.set_item("hidden", found.hidden)?;
        Ok(out)
    }
}

/// What is kept of a training: the model's file, its topics, what was climbed and the bound.
type Made = (Vec<u8>, String, Vec<f64>, f64);

fn make(corpus: &Corpus, settings: &Settings, watch: &mut Watch) -> Result<Made, String> {
    let mut training = Training::new(corpus, settings).map_err(|error| error.to_string())?;
    let words = corpus.tokens_len() as f64;
    for number in 1..=settings.epochs {
        let epoch = training.run_epoch();
        if watch.turn("epochs", number.into(), settings.epochs.into(), Some(epoch.objective / words)).is_break() {
            break;
        }
    }
    let activity = Activity::new(&training, corpus);
    let topics = Topics::new(&training, corpus, &activity, WORDS);
    let mut saved = Vec::new();
    training.save_model(Some(&topics), &mut saved).map_err(|error| error.to_string())?;
    let topics = serde_json::to_string(&topics).map_err(|error| error.to_string())?;
    let history = training.history().iter().map(|objective| objective / words).collect();
    Ok((saved, topics, history, training.bound(BOUND_ROUNDS) / words))
}

/// Documents a few at a time: enough for every thread, and soon done.
fn parts(len: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let part = 8 * rayon::current_num_threads().max(1);
    (0..len).step_by(part).map(move |start| start..len.min(start + part))
}

fn read(settings_json: &str) -> PyResult<Settings> {
    let settings: Settings = serde_json::from_str(settings_json).map_err(|error| {
        let error = error.to_string();
        said(error.rsplit_once(" at line ").map_or(error.as_str(), |(reason, _)| reason))
    })?;
    settings.check().map_err(said)?;
    Ok(settings)
}

fn counts((starts, terms, counts): &Rows, vocabulary: Vec<String>) -> PyResult<Corpus> {
    let starts: Vec<usize> = whole(starts)?;
    let terms: Vec<u32> = whole(terms)?;
    let counts = counts.as_slice().map_err(said)?.iter().map(|x| *x as f32).collect();
    let names = (0..starts.len().saturating_sub(1)).map(|d| d.to_string()).collect();
    Corpus::new(starts, terms, counts, names, vocabulary).map_err(said)
}

fn whole<T: TryFrom<i64>>(numbers: &PyReadonlyArray1<i64>) -> PyResult<Vec<T>> {
    let wrong = |x: i64| said(format!("{x} is no place in a sparse matrix"));
    numbers.as_slice().map_err(said)?.iter().map(|x| T::try_from(*x).map_err(|_| wrong(*x))).collect()
}

/// The King James Bible, a document a chapter: starts, terms, counts, names and vocabulary.
#[pyfunction]
pub fn bible(py: Python) -> Given {
    let bible = corpus::bible();
    (
        PyArray1::from_vec(py, bible.starts().iter().map(|x| *x as i64).collect()),
        PyArray1::from_vec(py, bible.terms().iter().map(|x| i64::from(*x)).collect()),
        PyArray1::from_vec(py, bible.counts().iter().map(|x| f64::from(*x)).collect()),
        bible.names().to_vec(),
        bible.vocabulary().to_vec(),
    )
}

/// The documents that `hyperprior topics --heldout SHARE --seed SEED` trains on, those that it sets aside, and the perplexity of the
/// latter's hidden word types under the shares of all words.
#[pyfunction]
pub fn split(rows: Rows, vocabulary: Vec<String>, share: f64, seed: u64) -> PyResult<(Vec<usize>, Vec<usize>, f64)> {
    let corpus = counts(&rows, vocabulary)?;
    let (train, test) = corpus.split(share, seed).map_err(said)?;
    let perplexity = unigram(&corpus.subset(&train), &corpus.subset(&test), Hide::Types, seed).map_err(said)?;
    Ok((train, test, perplexity))
}
