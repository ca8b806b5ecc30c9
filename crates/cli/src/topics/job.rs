//! A topics run, from the start or from a checkpoint.

use super::{Config, Glance, HeldOut, TopicsReport, Watch, name_of, read_again, report, write};
use crate::error::CliError;
use crate::progress::StopFlag;
use crate::run_dir::{CHECKPOINT, RunDirectory};
use hyperprior_def::{Activity, Corpus, Topics, Training};
use std::fs::File;
use std::io::{BufReader, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The number of quick evaluations of the perplexity during training.
const GLANCES: u32 = 5;
/// Draws for the bound, in units of eight: a few draws leave a word to the background alone and have a large influence.
const BOUND_ROUNDS: u64 = 16;

/// A run.
pub struct Job {
    /// The corpus's name.
    pub name: String,
    /// The configuration.
    pub config: Config,
    /// The folder for its files.
    pub out: Option<PathBuf>,
    /// Whether to print `summary.json`.
    pub json: bool,
    /// Whether to show no progress and no messages.
    pub quiet: bool,
}

impl Job {
    /// A run with the configuration of an earlier one.
    pub fn of(config: Config, out: Option<PathBuf>, json: bool, quiet: bool) -> Self {
        Self { name: name_of(&config.corpus), config, out, json, quiet }
    }

    /// Runs it again, or the rest of it, on the same corpus.
    pub fn run_again(self, is_resumed: bool) -> Result<(), CliError> {
        let (corpus, read) = (self.config.corpus.clone(), self.config.read.clone());
        self.run(|| read_again(&corpus, read.as_ref()), is_resumed)
    }

    /// Runs it, or the rest of it.
    pub fn run(
        self,
        read: impl FnOnce() -> Result<(Corpus, Vec<String>), CliError>,
        is_resumed: bool,
    ) -> Result<(), CliError> {
        let began = Instant::now();
        let interval = Duration::try_from_secs_f64(self.config.save_every).unwrap_or(Duration::MAX);
        let stop = StopFlag::on_signals_after_results();
        let mut watch = Watch::new(self.config.train.epochs, self.quiet);
        let (corpus, notes) = read()?;
        notes.iter().for_each(|note| watch.note(note));
        let places = self.split(&corpus)?;
        let [train, test] = places.each_ref().map(|places| corpus.subset(places));
        // Fail before the training, not after it, if the folder cannot be created.
        let run = self.out.as_ref().map(RunDirectory::create).transpose()?;
        let mut training = match &run {
            Some(run) if is_resumed => {
                let path = run.path().join(CHECKPOINT);
                let file = File::open(&path).map_err(|reason| CliError::Read { path, reason })?;
                let training = Training::load(&train, BufReader::new(file))?;
                self.same_settings(&training)?;
                training
            }
            _ => Training::new(&train, &self.config.train)?,
        };
        training.use_device(self.config.device)?;
        if let Some(run) = &run {
            run.config(&self.config)?;
            if !is_resumed {
                // Otherwise `resume` would continue an earlier run.
                run.remove_checkpoint();
            }
        }
        let is_saved = run_epochs(&mut training, (&train, &test), (run.as_ref(), interval), &stop, &mut watch)?;
        let heldout = HeldOut::new(&training, (&train, &test), &stop, &watch)?;
        watch.say("topics");
        let activity = Activity::new(&training, &train);
        let topics = Topics::new(&training, &train, &activity, self.config.words);
        let words = train.tokens_len() as f64;
        let elbo = training.bound(BOUND_ROUNDS) / words;
        watch.finish();
        let history = training.history().iter().enumerate();
        let report = TopicsReport {
            name: self.name.clone(),
            corpus: &corpus,
            train: &train,
            places: places.each_ref().map(Vec::as_slice),
            training: &training,
            activity,
            topics,
            heldout,
            elbo,
            trace: history.map(|(e, objective)| (e as u64 + 1, objective / words)).collect(),
            wall_seconds: began.elapsed().as_secs_f64(),
        };
        // If the disk is full, still print; if standard output is closed, still write.
        let written = run.as_ref().map_or(Ok(()), |run| write(run, &report));
        let printed = self.print(&report, run.as_ref().filter(|_| written.is_ok()));
        let again =
            run.as_ref().filter(|_| is_saved).map(|run| format!("`hyperprior resume {}`", run.path().display()));
        written.map_err(|error| CliError::NotSaved { error, again: again.clone() })?;
        printed?;
        let remedy = again.map_or_else(String::new, |again| format!("; continue with {again}"));
        if report.is_stopped() {
            let (epoch, epochs) = (training.epoch(), self.config.train.epochs);
            return Err(CliError::StoppedTraining { epoch, epochs, remedy });
        }
        if let Some((measured, documents)) = report.unmeasured() {
            return Err(CliError::StoppedMeasuring { measured, documents, remedy });
        }
        if let Some(run) = &run {
            run.remove_checkpoint();
        }
        Ok(())
    }

    /// The documents to train on, and the held-out ones.
    fn split(&self, corpus: &Corpus) -> Result<[Vec<usize>; 2], CliError> {
        let (train, test) = corpus.split(self.config.heldout, self.config.train.seed)?;
        if train.is_empty() {
            return Err(CliError::Usage(format!(
                "--heldout {} holds out all {} documents; use a smaller share",
                self.config.heldout,
                corpus.documents_len()
            )));
        }
        Ok([train, test])
    }

    /// Checks that a checkpoint belongs to this run. It belongs to an earlier one if this run was killed after writing its
    /// configuration and before removing the old checkpoint.
    fn same_settings(&self, training: &Training) -> Result<(), CliError> {
        if training.wanted() == self.config.train {
            return Ok(());
        }
        let reason = "its settings differ from those in config.toml";
        Err(hyperprior_def::Error::Checkpoint { reason }.into())
    }

    fn print(&self, of_run: &TopicsReport, run: Option<&RunDirectory>) -> Result<(), CliError> {
        let mut out = std::io::stdout().lock();
        if self.json {
            serde_json::to_writer_pretty(&mut out, &of_run.summary())?;
            writeln!(out)?;
        } else {
            write!(out, "{}", crate::render::style::for_stdout(&report(of_run)))?;
            if let Some(run) = run {
                let (folder, page) = (run.path().display(), run.path().join("report.html"));
                writeln!(out, "\nReport: {}; topics, weights and settings: {folder}", page.display())?;
            }
        }
        Ok(out.flush()?)
    }
}

/// Runs epochs until the last one or a signal; saves checkpoints at intervals and at the end. Returns whether there is a
/// checkpoint.
fn run_epochs(
    training: &mut Training,
    (train, test): (&Corpus, &Corpus),
    (run, interval): (Option<&RunDirectory>, Duration),
    stop: &StopFlag,
    watch: &mut Watch,
) -> Result<bool, CliError> {
    let (epochs, words) = (training.settings().epochs, train.tokens_len() as f64);
    let glance = (watch.is_visible() && test.documents_len() > 0).then(|| Glance::new(training, train, test));
    watch.begin();
    let mut saver = Saver { run, at: Instant::now(), is_saved: training.epoch() > 0, is_failing: false };
    if training.epoch() > 0 {
        stop.mark_results();
    }
    while training.epoch() < epochs && !stop.is_raised() {
        let began = Instant::now();
        training.choose(&mut |method| {
            watch.say(format!("trying {method}"));
            !stop.is_raised()
        })?;
        if training.is_due() {
            saver.save(training, watch);
            break;
        }
        let epoch = training.run_epoch()?;
        // From here on there are topics to report.
        stop.mark_results();
        watch.epoch(&epoch, words, began);
        let is_fifth = epoch.number.is_multiple_of(epochs.div_ceil(GLANCES)) && epoch.number < epochs;
        if let Some(glance) = glance.as_ref().filter(|_| is_fifth) {
            watch.glance(glance.perplexity(training)?);
        }
        if saver.at.elapsed() > interval || stop.is_raised() || epoch.number == epochs {
            saver.save(training, watch);
        }
    }
    Ok(saver.is_saved)
}

/// Saves checkpoints. A full disk does not end the training: there may be space later.
struct Saver<'a> {
    run: Option<&'a RunDirectory>,
    at: Instant,
    /// Whether there is a checkpoint.
    is_saved: bool,
    /// Whether the last attempt failed; the warning is shown once.
    is_failing: bool,
}

impl Saver<'_> {
    fn save(&mut self, training: &Training, watch: &Watch) {
        let Some(run) = self.run else { return };
        let saved = run.checkpoint(|file| training.save(file));
        self.is_saved |= saved.is_ok();
        let saved = saved.and_then(|_| run.model(|file| training.save_model(None, file)));
        if let Some(error) = saved.as_ref().err().filter(|_| !self.is_failing) {
            watch.warn(&format!("the checkpoint could not be saved: {error}. The training continues"));
        }
        (self.at, self.is_failing) = (Instant::now(), saved.is_err());
    }
}
