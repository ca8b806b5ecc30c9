//! The folder of the tables: finished cells, so that none is run twice, and checkpoints.

use super::numbers::{Numbers, Point};
use super::plan::Cell;
use super::settings::differences;
use crate::error::CliError;
use crate::run_dir::pending::{Pending, create_folder};
use crate::run_dir::{RunDirectory, WriteError};
use hyperprior_def::{Corpus, Settings, Trained, Training};
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use toml::Table;

/// The folder. Files are written atomically.
pub struct Store {
    run: RunDirectory,
}

const CONFIG: &str = "config.toml";
/// The folders of cells and of points of their curves.
const CELLS: &str = "cells";
const CURVES: &str = "curves";

impl Store {
    /// Opens or creates the folder, for cells with these settings.
    pub fn open(path: &Path, facts: &Table) -> Result<Self, CliError> {
        let config = path.join(CONFIG);
        match std::fs::read_to_string(&config) {
            Ok(text) => same(path, &config, &text, facts)?,
            Err(reason) if matches!(reason.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(reason) => return Err(CliError::Read { path: config, reason }),
        }
        let store = Self { run: RunDirectory::create(path)? };
        for folder in [CELLS, CURVES] {
            create_folder(&path.join(folder))?;
        }
        store.run.config(facts)?;
        Ok(store)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.run.path()
    }

    fn file(&self, cell: &Cell, extension: &str) -> PathBuf {
        self.path().join(CELLS).join(format!("{}.{extension}", cell.file_name()))
    }

    fn point_file(&self, cell: &Cell, steps: u32) -> PathBuf {
        self.path().join(CURVES).join(format!("{}_steps{steps}.json", cell.file_name()))
    }

    /// The numbers of a cell, if it is finished. A cell whose model is needed must have that too.
    pub fn cell(&self, cell: &Cell, needs_model: bool) -> Result<Option<Numbers>, CliError> {
        if needs_model && !self.file(cell, MODEL).exists() {
            return Ok(None);
        }
        let path = self.file(cell, "json");
        let found: Option<Numbers> = read(&path)?;
        match found {
            Some(found) if found.cell != *cell => Err(damaged(&path, "it belongs to another cell")),
            found => Ok(found),
        }
    }

    /// A point of a cell's curve, if it is finished.
    pub fn point(&self, cell: &Cell, steps: u32) -> Result<Option<Point>, CliError> {
        let path = self.point_file(cell, steps);
        let found: Option<Point> = read(&path)?;
        match found {
            Some(found) if found.cell != *cell || found.steps != steps => {
                Err(damaged(&path, "it belongs to another cell"))
            }
            found => Ok(found),
        }
    }

    /// Saves the numbers of a cell and removes its checkpoint.
    pub fn save_cell(&self, numbers: &Numbers) -> Result<(), WriteError> {
        let path = self.file(&numbers.cell, "json");
        json(path, numbers)?;
        let _ = std::fs::remove_file(self.file(&numbers.cell, CHECKPOINT));
        Ok(())
    }

    /// Saves a point of a curve.
    pub fn save_point(&self, point: &Point) -> Result<(), WriteError> {
        json(self.point_file(&point.cell, point.steps), point)
    }

    /// Saves the model of a cell.
    pub fn save_model(&self, cell: &Cell, training: &Training) -> Result<(), WriteError> {
        put(self.file(cell, MODEL), |file| training.save_model(None, file))
    }

    /// The model of a cell.
    pub fn model(&self, cell: &Cell) -> Result<Trained, CliError> {
        let path = self.file(cell, MODEL);
        let file = File::open(&path).map_err(|reason| CliError::Read { path: path.clone(), reason })?;
        Trained::load(BufReader::new(file)).map_err(|error| CliError::Model { path, error })
    }

    /// Saves a checkpoint, with the training time so far.
    pub fn save_training(&self, cell: &Cell, training: &Training, seconds: f64) -> Result<(), WriteError> {
        put(self.file(cell, CHECKPOINT), |file| {
            file.write_all(&seconds.to_le_bytes())?;
            training.save(file)
        })
    }

    /// The checkpoint of a cell, if there is one; or why it cannot be used.
    pub fn training<'a>(
        &self,
        cell: &Cell,
        corpus: &'a Corpus,
        settings: &Settings,
    ) -> Result<Option<(Training<'a>, f64)>, String> {
        let Ok(file) = File::open(self.file(cell, CHECKPOINT)) else { return Ok(None) };
        let mut file = BufReader::new(file);
        let mut seconds = [0; 8];
        file.read_exact(&mut seconds).map_err(|error| error.to_string())?;
        let training = Training::load(corpus, file).map_err(|error| error.to_string())?;
        if training.settings() != settings {
            return Err("the checkpoint has other settings".to_owned());
        }
        Ok(Some((training, f64::from_le_bytes(seconds))))
    }

    /// Writes a text file.
    pub fn text(&self, name: &str, text: &str) -> Result<(), WriteError> {
        put(self.path().join(name), |file| file.write_all(text.as_bytes()))
    }
}

const CHECKPOINT: &str = "checkpoint";
const MODEL: &str = "model";

fn put(
    path: PathBuf,
    fill: impl FnOnce(&mut std::io::BufWriter<File>) -> std::io::Result<()>,
) -> Result<(), WriteError> {
    Pending::new(path, fill)?.publish().map(|_| ())
}

fn json(path: PathBuf, value: &impl serde::Serialize) -> Result<(), WriteError> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| WriteError::Format { path: path.clone(), reason: error.to_string() })?;
    put(path, |file| writeln!(file, "{text}"))
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, CliError> {
    match std::fs::read_to_string(path) {
        Ok(text) => serde_json::from_str(&text).map(Some).map_err(|error| damaged(path, &error.to_string())),
        Err(reason) if reason.kind() == ErrorKind::NotFound => Ok(None),
        Err(reason) => Err(CliError::Read { path: path.to_owned(), reason }),
    }
}

fn damaged(path: &Path, reason: &str) -> CliError {
    CliError::Damaged { path: path.to_owned(), reason: reason.to_owned() }
}

/// Checks that the cells in a folder have the same settings.
fn same(folder: &Path, config: &Path, text: &str, facts: &Table) -> Result<(), CliError> {
    let there: Table = toml::from_str(text).map_err(|error| damaged(config, error.message()))?;
    if !there.contains_key("bound_rounds") {
        return Err(CliError::Usage(format!("`{}` belongs to something else; choose another --out", folder.display())));
    }
    let differences = differences(&there, facts);
    // In an empty folder other settings do no harm.
    if differences.is_empty() || is_empty(folder) {
        return Ok(());
    }
    let is_corpus = differences.iter().any(|difference| difference.starts_with("corpus.fingerprint"));
    let other = if is_corpus { "another corpus or other settings" } else { "other settings" };
    Err(CliError::Usage(format!(
        "`{}` has cells with {other}, but all cells of a table need the same: {}. Use the earlier options to continue, choose \
         another --out, or remove the folder",
        folder.display(),
        differences.join("; ")
    )))
}

/// Whether a folder has no finished cells or points.
fn is_empty(folder: &Path) -> bool {
    let is_result = |file: std::io::Result<std::fs::DirEntry>| {
        file.is_ok_and(|file| file.path().extension().is_some_and(|extension| extension == "json"))
    };
    let has_none = |part| std::fs::read_dir(folder.join(part)).map_or(true, |mut files| !files.any(is_result));
    [CELLS, CURVES].into_iter().all(has_none)
}
