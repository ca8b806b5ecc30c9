//! Every format is read back number for number.

use super::RunDirectory;
use super::pending::WriteError;
use crate::error::CliError;
use hyperprior::Batch;
use hyperprior::diagnostics::Verdict;
use hyperprior::posterior::{Column, Draws, Kind, Parameters, summarise};
use hyperprior::report::{Elbo, Estimator, Evidence, FitSummary, Plan, SCHEMA};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// A temporary folder, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("hyperprior-output-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn run(&self) -> RunDirectory {
        RunDirectory::create(&self.0).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Names with a comma, a quote and a dot; numbers that are hard to write.
fn draws() -> Draws {
    let columns = vec![
        Column::continuous("mu"),
        Column::discrete("z[3,2]"),
        Column::continuous("say \"x\""),
        Column::discrete("n.total"),
    ];
    let values = [
        vec![0.1, -1e-300, f64::INFINITY],
        vec![1.0, 2.0, 1.0],
        vec![1.0 / 3.0, 6.02e23, -0.0],
        vec![-4.0, 9_007_199_254_740_992.0, 0.0],
    ];
    Draws::new(columns, Batch::from_columns(values.concat(), 3)).unwrap()
}

fn weighted() -> Draws {
    draws().weighted(vec![0.0, -0.7, f64::NEG_INFINITY]).unwrap()
}

/// The fields of CSV text, by RFC 4180.
fn fields(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut field, mut inside) = (vec![], vec![], String::new(), false);
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '"' if inside && characters.peek() == Some(&'"') => field.extend(characters.next()),
            '"' => inside = !inside,
            ',' if !inside => row.push(std::mem::take(&mut field)),
            '\n' if !inside => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            _ => field.push(c),
        }
    }
    assert!(!inside && row.is_empty() && field.is_empty(), "the file ends within a line");
    rows
}

fn bits(text: &str) -> u64 {
    text.parse::<f64>().unwrap().to_bits()
}

#[test]
fn csv_is_read_back_number_for_number() {
    let folder = Folder::new("csv");
    let path = folder.run().draws_csv(&weighted()).unwrap();
    let text = fs::read_to_string(path).unwrap();
    assert_eq!(text.lines().next(), Some("mu,\"z[3,2]\",\"say \"\"x\"\"\",n.total,.log_weight"));
    let rows = fields(&text);
    assert_eq!(rows[0], ["mu", "z[3,2]", "say \"x\"", "n.total", ".log_weight"]);
    assert_eq!(rows.len(), 4);
    for (s, row) in rows[1..].iter().enumerate() {
        for i in 0..4 {
            assert_eq!(bits(&row[i]), draws().column(i)[s].to_bits(), "column {i}, draw {s}");
        }
        assert_eq!(bits(&row[4]), weighted().log_weights().unwrap()[s].to_bits());
    }
    // Integers are written without a decimal point.
    assert_eq!(rows[2][3], "9007199254740992");
}

#[test]
fn parquet_is_read_back_number_for_number() {
    let folder = Folder::new("parquet");
    for draws in [draws(), weighted()] {
        let path = folder.run().draws_parquet(&draws).unwrap();
        let reader = SerializedFileReader::try_from(path.as_path()).unwrap();
        let mut rows = 0;
        for (s, row) in reader.get_row_iter(None).unwrap().enumerate() {
            let row = row.unwrap();
            let found: Vec<(&String, &Field)> = row.get_column_iter().collect();
            for (i, column) in draws.columns().iter().enumerate() {
                assert_eq!(found[i].0, &column.name);
                match (column.kind, found[i].1) {
                    (Kind::Discrete, Field::Long(x)) => assert_eq!(*x as f64, draws.column(i)[s]),
                    (Kind::Continuous, Field::Double(x)) => assert_eq!(x.to_bits(), draws.column(i)[s].to_bits()),
                    other => panic!("{other:?}"),
                }
            }
            let weight = draws.log_weights().map(|logs| (".log_weight".to_owned(), Field::Double(logs[s])));
            assert_eq!(found.get(4).map(|(name, field)| ((*name).clone(), (*field).clone())), weight);
            rows += 1;
        }
        assert_eq!(rows, 3);
    }
}

#[test]
fn many_draws_of_few_values_take_few_bytes() {
    let folder = Folder::new("packed");
    let z: Vec<f64> = (0..20_000_u32).map(|s| f64::from(s * s % 7 % 4)).collect();
    let draws = Draws::new(vec![Column::discrete("z")], Batch::from_columns(z, 20_000)).unwrap();
    let path = folder.run().draws_parquet(&draws).unwrap();
    // Two bits each, plus the footer.
    assert!(fs::metadata(&path).unwrap().len() < 20_000 / 4 + 1000);
    let first = fs::read(&path).unwrap();
    folder.run().draws_parquet(&draws).unwrap();
    assert_eq!(fs::read(&path).unwrap(), first, "the same draws give the same bytes");
}

/// Reads CODA's two files as R's `read.coda` does.
fn read_coda([index, chain]: [PathBuf; 2]) -> BTreeMap<String, Vec<f64>> {
    let values: Vec<(usize, f64)> = fs::read_to_string(chain)
        .unwrap()
        .lines()
        .map(|line| {
            let mut words = line.split_whitespace();
            (words.next().unwrap().parse().unwrap(), words.next().unwrap().parse().unwrap())
        })
        .collect();
    let mut columns = BTreeMap::new();
    for line in fs::read_to_string(index).unwrap().lines() {
        let [last, first, name] = line.rsplitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let lines = &values[first.parse::<usize>().unwrap() - 1..last.parse().unwrap()];
        assert!(lines.iter().enumerate().all(|(s, (iteration, _))| *iteration == s + 1));
        columns.insert(name.to_owned(), lines.iter().map(|(_, x)| *x).collect());
    }
    columns
}

#[test]
fn coda_is_read_back_number_for_number() {
    let folder = Folder::new("coda");
    let written = folder.run().coda(&draws()).unwrap();
    assert!(written[0].ends_with("CODAindex.txt") && written[1].ends_with("CODAchain1.txt"));
    let index = fs::read_to_string(&written[0]).unwrap();
    assert!(index.starts_with("mu 1 3\nz[3,2] 4 6\n"), "{index}");
    let columns = read_coda(written);
    for (i, column) in draws().columns().iter().enumerate() {
        assert_eq!(columns[&column.name], draws().column(i), "{}", column.name);
    }
    // CODA has no weights: the last draw, whose weight is zero, is missing.
    assert_eq!(read_coda(folder.run().coda(&weighted()).unwrap())["z[3,2]"], [1.0, 1.0, 2.0]);
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Settings {
    seed: u64,
    method: String,
    optimizer: BTreeMap<String, f64>,
}

#[test]
fn settings_and_traces_are_read_back() {
    let folder = Folder::new("texts");
    let run = folder.run();
    let optimizer = BTreeMap::from([("rate".to_owned(), 0.05)]);
    let settings = Settings { seed: u64::MAX, method: "hvm".to_owned(), optimizer };
    let config = run.config(&settings).unwrap();
    assert_eq!(toml::from_str::<Settings>(&fs::read_to_string(config).unwrap()).unwrap(), settings);

    let trace = run.trace(["step", "elbo"], &[(10, -3.25), (20, f64::NEG_INFINITY)]).unwrap();
    assert_eq!(fs::read_to_string(trace).unwrap(), "step,elbo\n10,-3.25\n20,-inf\n");
}

#[test]
fn the_summary_has_the_documented_fields() {
    let folder = Folder::new("summary");
    let mut summary = FitSummary::default();
    summary.schema = SCHEMA;
    summary.model = "coins.bug".to_owned();
    summary.method = "hvm".to_owned();
    summary.seed = 17;
    summary.converged = true;
    summary.steps = 900;
    summary.wall_seconds = 1.5;
    summary.elbo = Elbo { value: -3.5, standard_error: 0.01, upper: None };
    summary.evidence = Some(Evidence { log: -3.25, standard_error: 0.125, by: Estimator::ImportanceSampling });
    summary.khat = Some(f64::NAN);
    summary.khat_limit = Some(0.7);
    summary.verdict = Some(Verdict::MeansOnly);
    summary.reason = Some("few steps".to_owned());
    summary.warnings = vec!["labels switch".to_owned()];
    summary.plan = Plan { marginalised: vec!["z".to_owned()], ..Plan::default() };
    summary.parameters = Parameters(summarise(&draws()));
    let written = folder.run().summary(&summary);
    let mut found: Value = serde_json::from_str(&fs::read_to_string(written.unwrap()).unwrap()).unwrap();
    let parameters = found["parameters"].take();
    let expected = json!({
        "schema": 2, "model": "coins.bug", "method": "hvm", "seed": 17, "converged": true, "steps": 900,
        "wall_seconds": 1.5, "elbo": {"value": -3.5, "standard_error": 0.01, "upper": null},
        "evidence": {"log": -3.25, "standard_error": 0.125, "by": "importance-sampling"}, "khat": null, "khat_limit": 0.7,
        "verdict": "means-only",
        "reason": "few steps",
        "warnings": ["labels switch"],
        "diagnostics": [],
        "plan": {"marginalised": ["z"], "prior_only": [], "centring": {}, "likelihood": "", "prior": "", "recursive": "", "gradient": {}},
        "parameters": null
    });
    assert_eq!(found, expected);
    let verdicts = [Verdict::Trust, Verdict::MeansOnly, Verdict::Distrust];
    assert_eq!(json!(verdicts), json!(["trust", "means-only", "distrust"]));
    assert_eq!(parameters["z[3,2]"]["pmf"], json!({"1": 2.0 / 3.0, "2": 1.0 / 3.0}));
    assert_eq!((&parameters["n.total"]["median"], &parameters["mu"]["sd"]), (&json!(0.0), &Value::Null));
}

#[test]
fn a_failed_write_names_the_file_and_leaves_nothing() {
    let folder = Folder::new("refused");
    let run = folder.run();
    assert_eq!(run.path(), folder.0);
    fs::create_dir(folder.0.join("draws.csv")).unwrap();
    let error = run.draws_csv(&draws()).unwrap_err();
    assert!(matches!(&error, WriteError::File { path, .. } if path.ends_with("draws.csv")), "{error:?}");
    assert!(error.to_string().contains("something else has that name"), "{error}");
    assert_eq!(CliError::from(error).exit_code(), 73);

    let error = run.config(&17).unwrap_err();
    assert!(matches!(&error, WriteError::Format { path, .. } if path.ends_with("config.toml")), "{error:?}");

    let names: Vec<_> = fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["draws.csv"], "no temporary file is left");
    let path = run.trace(["step", "elbo"], &[]).unwrap();
    let error = RunDirectory::create(path.join("run")).unwrap_err();
    assert!(error.to_string().contains("trace.csv"), "{error}");
}

#[test]
fn a_failed_write_keeps_the_old_file() {
    let folder = Folder::new("kept");
    let run = folder.run();
    let path = run.trace(["step", "elbo"], &[(1, -1.0)]).unwrap();
    let failed = run.write("trace.csv", |_| Err(std::io::ErrorKind::StorageFull.into()));
    assert!(failed.unwrap_err().to_string().contains("free some space"));
    assert_eq!(fs::read_to_string(path).unwrap(), "step,elbo\n1,-1.0\n");
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
}
