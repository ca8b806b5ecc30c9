//! A run: from a corpus to what is summary of its topics, from the beginning or from a checkpoint.

use super::{HeldOut, Config, Glance, TopicsReport, Watch, name_of, read_again, report, write};
use crate::error::CliError;
use crate::run_dir::{CHECKPOINT, RunDirectory};
use crate::progress::StopFlag;
use crate::save_interval;
use hyperprior_def::{Activity, Corpus, Topics, Training};
use std::fs::File;
use std::io::{BufReader, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How often the perplexity is looked at on the way.
const GLANCES: u32 = 5;
/// Times eight draws that the bound is taken over: some draws leave a word to the background alone, and say much.
const BOUND_ROUNDS: u64 = 16;

/// What is to be done.
pub struct Job {
    /// The corpus's name.
    pub name: String,
    /// How it is done.
    pub config: Config,
    /// Where the files go.
    pub out: Option<PathBuf>,
    /// Whether `summary.json` is printed.
    pub json: bool,
    /// Whether nothing else is.
    pub quiet: bool,
}

impl Job {
    /// A run by the configuration of one that was begun before.
    pub fn of(config: Config, out: Option<PathBuf>, json: bool, quiet: bool) -> Self {
        Self { name: name_of(&config.corpus), config, out, json, quiet }
    }

    /// Does that, or what is left of it, on the corpus that it was on.
    pub fn run_again(self, is_resumed: bool) -> Result<(), CliError> {
        let (corpus, read) = (self.config.corpus.clone(), self.config.read.clone());
        self.run(|| read_again(&corpus, read.as_ref()), is_resumed)
    }

    /// Does it, or what is left of it.
    pub fn run(
        self,
        read: impl FnOnce() -> Result<(Corpus, Vec<String>), CliError>,
        is_resumed: bool,
    ) -> Result<(), CliError> {
        let began = Instant::now();
        let interval = save_interval::interval()?;
        let stop = StopFlag::on_signals_after_results();
        let mut watch = Watch::new(self.config.train.epochs, self.quiet);
        let (corpus, notes) = read()?;
        notes.iter().for_each(|note| watch.note(note));
        let places = self.split(&corpus)?;
        let [train, test] = places.each_ref().map(|places| corpus.subset(places));
        // A folder that cannot be made is better known before the training than after it.
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
        if let Some(run) = &run {
            run.config(&self.config)?;
            if !is_resumed {
                // An earlier run's would be gone on from in the place of this one's.
                run.remove_checkpoint();
            }
        }
        let is_saved = climb(&mut training, (&train, &test), (run.as_ref(), interval), &stop, &mut watch)?;
        let aside = HeldOut::new(&training, (&train, &test), &stop, &watch)?;
        watch.say("topics");
        let activity = Activity::new(&training, &train);
        let topics = Topics::new(&training, &train, &activity, self.config.words);
        let words = train.tokens_len() as f64;
        let elbo = training.bound(BOUND_ROUNDS) / words;
        watch.finish();
        let history = training.history().iter().enumerate();
        let summary = TopicsReport {
            name: self.name.clone(),
            corpus: &corpus,
            train: &train,
            places: places.each_ref().map(Vec::as_slice),
            training: &training,
            activity,
            topics,
            aside,
            elbo,
            trace: history.map(|(e, objective)| (e as u64 + 1, objective / words)).collect(),
            wall_seconds: began.elapsed().as_secs_f64(),
        };
        // Neither a full disk nor a reader that left may take the other's results away.
        let written = run.as_ref().map_or(Ok(()), |run| write(run, &summary));
        let printed = self.print(&summary, run.as_ref().filter(|_| written.is_ok()));
        let again =
            run.as_ref().filter(|_| is_saved).map(|run| format!("`hyperprior resume {}`", run.path().display()));
        written.map_err(|error| CliError::NotSaved { error, again: again.clone() })?;
        printed?;
        let remedy = again.map_or_else(String::new, |again| format!("; {again} goes on"));
        if summary.is_stopped() {
            let (epoch, epochs) = (training.epoch(), self.config.train.epochs);
            return Err(CliError::StoppedTraining { epoch, epochs, remedy });
        }
        if let Some((measured, documents)) = summary.unmeasured() {
            return Err(CliError::StoppedMeasuring { measured, documents, remedy });
        }
        if let Some(run) = &run {
            run.remove_checkpoint();
        }
        Ok(())
    }

    /// The documents to train on, and those set aside.
    fn split(&self, corpus: &Corpus) -> Result<[Vec<usize>; 2], CliError> {
        let (train, test) = corpus.split(self.config.heldout, self.config.train.seed)?;
        if train.is_empty() {
            return Err(CliError::Usage(format!(
                "--heldout {} sets every document aside, of {} that there are; use a smaller share",
                self.config.heldout,
                corpus.documents_len()
            )));
        }
        Ok([train, test])
    }

    /// Whether a training that was saved is the one that is to be gone on with. Another is there where a run was killed between the first
    /// file that it writes and the moment that an earlier run's checkpoint is taken away.
    fn same_settings(&self, training: &Training) -> Result<(), CliError> {
        if *training.settings() == self.config.train {
            return Ok(());
        }
        let reason = "it goes with other settings than those in config.toml beside it";
        Err(hyperprior_def::Error::Checkpoint { reason }.into())
    }

    fn print(&self, summary: &TopicsReport, run: Option<&RunDirectory>) -> Result<(), CliError> {
        let mut out = std::io::stdout().lock();
        if self.json {
            serde_json::to_writer_pretty(&mut out, &summary.summary())?;
            writeln!(out)?;
        } else {
            write!(out, "{}", crate::render::style::for_stdout(&report(summary)))?;
            if let Some(run) = run {
                let (folder, page) = (run.path().display(), run.path().join("report.html"));
                writeln!(
                    out,
                    "\nThe page to look at is {}; the topics, the weights and what repeats the run are in {folder}",
                    page.display()
                )?;
            }
        }
        Ok(out.flush()?)
    }
}

/// Epoch after epoch, until the last or until someone asks to stop; saved now and then, and at the end. Whether there is something to
/// go on from.
fn climb(
    training: &mut Training,
    (train, test): (&Corpus, &Corpus),
    (run, interval): (Option<&RunDirectory>, Duration),
    stop: &StopFlag,
    watch: &mut Watch,
) -> Result<bool, CliError> {
    let (epochs, words) = (training.settings().epochs, train.tokens_len() as f64);
    let glance = (watch.is_seen() && test.documents_len() > 0).then(|| Glance::new(training, train, test));
    watch.begin();
    let mut saver = Saver { run, at: Instant::now(), is_saved: training.epoch() > 0, is_failing: false };
    if training.epoch() > 0 {
        stop.mark_results();
    }
    while training.epoch() < epochs && !stop.is_raised() {
        let began = Instant::now();
        let epoch = training.run_epoch();
        // From here on there are topics that are worth keeping.
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

/// Saves a training. A disk that is full is no reason to end it: there may be room later.
struct Saver<'a> {
    run: Option<&'a RunDirectory>,
    at: Instant,
    /// Whether there is something to go on from.
    is_saved: bool,
    /// Whether the last time went wrong, which is said once.
    is_failing: bool,
}

impl Saver<'_> {
    fn save(&mut self, training: &Training, watch: &Watch) {
        let Some(run) = self.run else { return };
        let saved = run.checkpoint(|file| training.save(file));
        self.is_saved |= saved.is_ok();
        let saved = saved.and_then(|_| run.model(|file| training.save_model(None, file)));
        if let Some(error) = saved.as_ref().err().filter(|_| !self.is_failing) {
            watch.note(&format!("the training could not be saved: {error}. It goes on all the same"));
        }
        (self.at, self.is_failing) = (Instant::now(), saved.is_err());
    }
}
