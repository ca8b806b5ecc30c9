//! Deep exponential families: training on counts, and inference for other documents.

use crate::error::exception;
use crate::watch::Watch;
use hyperprior_def::heldout::{FitSettings, Holdout, Measured, Predictor, unigram};
use hyperprior_def::{Activity, Corpus, Settings, Topics, Training, corpus};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use rayon::prelude::*;

/// Rounds of eight draws each that estimate the bound, as in the command.
const BOUND_ROUNDS: u64 = 16;
/// The largest number of words listed for a latent.
const WORDS: usize = 100;

/// Counts in compressed sparse rows, as in SciPy: where each row starts, the columns, and the counts.
type Rows<'py> = (PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, f64>);
/// The same as a result, with the names of the documents and the terms.
type Named<'py> =
    (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f64>>, Vec<String>, Vec<String>);

/// The arguments that recreate a `Trained` from a pickle.
type Pickled<'py> = (Bound<'py, PyBytes>, String, Vec<f64>, f64);
/// E z, layer by layer, and the bounds.
type Inferred<'py> = (Vec<Bound<'py, PyArray2<f64>>>, Bound<'py, PyArray1<f64>>);

/// A trained model, with the history of its training.
#[pyclass(frozen, module = "hyperprior._hyperprior")]
pub struct Trained {
    trained: hyperprior_def::Trained,
    /// The contents of its file.
    saved: Vec<u8>,
    /// Its latents with their top words, as JSON.
    #[pyo3(get)]
    topics: String,
    /// The objective per word, epoch by epoch.
    #[pyo3(get)]
    history: Vec<f64>,
    /// The bound per word at the end.
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
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let settings = parse_settings(settings_json)?;
        let corpus = counts(&rows, vocabulary)?;
        let mut watch = Watch::new(progress);
        let outcome = py.detach(|| train(&corpus, &settings, &mut watch));
        watch.finish()?;
        let (saved, topics, history, elbo) = outcome.map_err(exception)?;
        Self::new(saved, topics, history, elbo)
    }

    /// Recreates a trained model from the values that `__reduce__` returns.
    #[new]
    fn new(saved: Vec<u8>, topics: String, history: Vec<f64>, elbo: f64) -> PyResult<Self> {
        let trained = hyperprior_def::Trained::load(saved.as_slice()).map_err(exception)?;
        Ok(Self { trained, saved, topics, history, elbo })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, Pickled<'py>) {
        let own = slf.get();
        let bytes = PyBytes::new(slf.py(), &own.saved);
        (slf.get_type().into_any(), (bytes, own.topics.clone(), own.history.clone(), own.elbo))
    }

    /// The contents of the file that `hyperprior topics infer` reads.
    fn model<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.saved)
    }

    /// The variational model of a document: what hvm turned out to be, or what was asked for.
    #[getter]
    fn method(&self) -> String {
        self.trained.settings().method.to_string()
    }

    /// The weights between a layer and the one below, or the terms for layer 0: a row for each latent.
    fn weights<'py>(&self, py: Python<'py>, layer: usize) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let terms = self.trained.terms();
        if layer == 0 {
            let rows =
                (0..terms.width()).flat_map(|k| (0..terms.terms_len()).map(move |v| f64::from(terms.mean(v, k))));
            return PyArray1::from_vec(py, rows.collect()).reshape([terms.width(), terms.terms_len()]);
        }
        let layers = self.trained.shape().layers();
        let between = self.trained.layer_weights().get(layer - 1).filter(|between| between.parents_len() > 0);
        let between =
            between.ok_or_else(|| exception(format!("there is no layer {layer}; the model has {}", layers.len())))?;
        let (parents, children) = (between.parents_len(), layers[layer - 1].width);
        let rows = (0..parents).flat_map(|p| (0..children).map(move |c| f64::from(between.mean(p, c))));
        PyArray1::from_vec(py, rows.collect()).reshape([parents, children])
    }

    /// E z of every layer for each document, and the bound on ln p(words | weights). A document's numbers do not depend on its
    /// position.
    fn infer<'py>(
        &self,
        py: Python<'py>,
        rows: Rows,
        steps: u32,
        seed: u64,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Inferred<'py>> {
        let corpus = counts(&rows, self.trained.vocabulary().to_vec())?;
        let mut watch = Watch::new(progress);
        let len = corpus.documents_len();
        let found = py.detach(|| -> hyperprior_def::Result<Vec<_>> {
            let predictor = Predictor::of_trained(&self.trained, FitSettings::default().steps(steps), seed)?;
            let one = |d: usize| predictor.infer(&corpus.subset(&[d]), 0..1).swap_remove(0);
            let mut found = Vec::with_capacity(len);
            for few in parts(len) {
                found.par_extend(few.clone().into_par_iter().map(one));
                if watch.report("documents", few.end as u64, len as u64, None).is_break() {
                    break;
                }
            }
            Ok(found)
        });
        watch.finish()?;
        let found = found.map_err(exception)?;
        let of_layer = |(l, layer): (usize, &hyperprior_def::Layer)| {
            let rows = found.iter().flat_map(|one| one.activations[l].iter().map(|z| f64::from(*z)));
            PyArray1::from_vec(py, rows.collect()).reshape([len, layer.width])
        };
        let layers = self.trained.shape().layers().iter().enumerate().map(of_layer).collect::<PyResult<_>>()?;
        Ok((layers, PyArray1::from_vec(py, found.iter().map(|one| one.bound).collect())))
    }

    /// How well half of each document's word types, or of its words, are predicted from the rest.
    fn heldout<'py>(
        &self,
        py: Python<'py>,
        rows: Rows,
        hide: &str,
        seed: u64,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let hide = match hide {
            "types" => Holdout::Types,
            "words" => Holdout::Tokens,
            other => return Err(exception(format!("hide=`{other}` is not known; use types or words"))),
        };
        let corpus = counts(&rows, self.trained.vocabulary().to_vec())?;
        let mut watch = Watch::new(progress);
        let measured = py.detach(|| -> hyperprior_def::Result<Measured> {
            let predictor = Predictor::of_trained(&self.trained, FitSettings::default(), seed)?;
            let mut measured = Measured::default();
            let len = corpus.documents_len();
            for few in parts(len) {
                predictor.measure(&corpus, hide, few.clone(), &mut measured)?;
                if watch.report("documents", few.end as u64, len as u64, None).is_break() {
                    break;
                }
            }
            Ok(measured)
        });
        watch.finish()?;
        let found = measured.map_err(exception)?.heldout();
        let out = PyDict::new(py);
        out.set_item("perplexity", found.perplexity)?;
        out.set_item("perplexity_averaged", found.perplexity_averaged)?;
        out.set_item("elbo_per_word", found.elbo_per_word)?;
        out.set_item("hidden", found.hidden)?;
        Ok(out)
    }
}

/// The result of a training: the model's file, its topics, the history of the objective and the bound.
type Outcome = (Vec<u8>, String, Vec<f64>, f64);

fn train(corpus: &Corpus, settings: &Settings, watch: &mut Watch) -> Result<Outcome, String> {
    let mut training = Training::new(corpus, settings).map_err(|error| error.to_string())?;
    let words = corpus.tokens_len() as f64;
    for number in 1..=settings.epochs {
        let epochs = settings.epochs.into();
        let goes_on = &mut |_| watch.report("epochs", (number - 1).into(), epochs, None).is_continue();
        training.choose(goes_on).map_err(|error| error.to_string())?;
        if training.is_due() {
            break;
        }
        let epoch = training.run_epoch().map_err(|error| error.to_string())?;
        if watch.report("epochs", number.into(), epochs, Some(epoch.objective / words)).is_break() {
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

/// Ranges of documents: enough for every thread, and few enough to check signals often.
fn parts(len: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let part = 8 * rayon::current_num_threads().max(1);
    (0..len).step_by(part).map(move |start| start..len.min(start + part))
}

fn parse_settings(settings_json: &str) -> PyResult<Settings> {
    let settings: Settings = serde_json::from_str(settings_json).map_err(|error| {
        let error = error.to_string();
        exception(error.rsplit_once(" at line ").map_or(error.as_str(), |(reason, _)| reason))
    })?;
    settings.check().map_err(exception)?;
    Ok(settings)
}

fn counts((starts, terms, counts): &Rows, vocabulary: Vec<String>) -> PyResult<Corpus> {
    let starts: Vec<usize> = integers(starts)?;
    let terms: Vec<u32> = integers(terms)?;
    let counts = counts.as_slice().map_err(exception)?.iter().map(|x| *x as f32).collect();
    let names = (0..starts.len().saturating_sub(1)).map(|d| d.to_string()).collect();
    Corpus::new(starts, terms, counts, names, vocabulary).map_err(exception)
}

fn integers<T: TryFrom<i64>>(numbers: &PyReadonlyArray1<i64>) -> PyResult<Vec<T>> {
    let wrong = |x: i64| exception(format!("{x} is not a valid index of a sparse matrix"));
    numbers.as_slice().map_err(exception)?.iter().map(|x| T::try_from(*x).map_err(|_| wrong(*x))).collect()
}

/// The King James Bible, one document per chapter: starts, terms, counts, names and vocabulary.
#[pyfunction]
pub fn bible(py: Python) -> Named {
    let bible = corpus::bible();
    (
        PyArray1::from_vec(py, bible.starts().iter().map(|x| *x as i64).collect()),
        PyArray1::from_vec(py, bible.terms().iter().map(|x| i64::from(*x)).collect()),
        PyArray1::from_vec(py, bible.counts().iter().map(|x| f64::from(*x)).collect()),
        bible.names().to_vec(),
        bible.vocabulary().to_vec(),
    )
}

/// The documents that `hyperprior topics --heldout SHARE --seed SEED` trains on, those that it holds out, and the perplexity of the
/// held-out documents' hidden word types under the unigram.
#[pyfunction]
pub fn split(rows: Rows, vocabulary: Vec<String>, share: f64, seed: u64) -> PyResult<(Vec<usize>, Vec<usize>, f64)> {
    let corpus = counts(&rows, vocabulary)?;
    let (train, test) = corpus.split(share, seed).map_err(exception)?;
    let perplexity = unigram(&corpus.subset(&train), &corpus.subset(&test), Holdout::Types, seed).map_err(exception)?;
    Ok((train, test, perplexity))
}
