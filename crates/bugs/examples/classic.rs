//! Compares the classic BUGS programs with JAGS: does each compile, have the log density of JAGS at given points, start at a
//! possible point, and have a gradient that agrees with finite differences?
//!
//! ```sh
//! cargo run --release --package hyperprior-bugs --example classic -- FOLDER [NAME]
//! ```
//!
//! The programs are not distributed with this crate: FOLDER is your own copy, with two more files. `programs.json` is a list of
//! `{"model": path, "data": [path], "inits": [path]}`. `log_joints.json` is an object whose members have the same three fields and
//! `"points": [{"values": {"beta[1]": 0.5, …}, "log_joint": -12.5}, …]`: the values of all latents on their original scale, and the
//! log joint density that another program calculates.

#![allow(clippy::print_stdout, reason = "a program that prints a table")]

use hyperprior::Batch;
use hyperprior::math::random::stream;
use hyperprior::model::{Gradient, Model};
use hyperprior_bugs::data::{Format, read};
use hyperprior_bugs::{Compiled, Data, Options, compile, render};
use hyperprior_graph::{GraphModel, Marginalise};
use rand_distr::{Distribution, StandardNormal};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

type Failure = Box<dyn std::error::Error>;

/// JAGS prints six digits.
const TOLERANCE: f64 = 5e-6;

#[derive(Deserialize)]
struct Program {
    model: String,
    data: Vec<String>,
    #[serde(default)]
    inits: Vec<String>,
    #[serde(default)]
    points: Vec<Point>,
}

#[derive(Deserialize)]
struct Point {
    values: BTreeMap<String, f64>,
    log_joint: f64,
}

/// The results of a program, one for each column of the table.
#[derive(Default)]
struct Row {
    compiles: String,
    agrees: String,
    starts: String,
    gradient: String,
    seconds: f64,
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("which folder? usage: classic FOLDER [NAME]")?;
    let only = arguments.next();
    let folder = Path::new(&folder);
    let text = |name: &str| std::fs::read_to_string(folder.join(name));
    let programs: Vec<Program> = serde_json::from_str(&text("programs.json")?)?;
    let judged: BTreeMap<String, Program> = serde_json::from_str(&text("log_joints.json")?)?;
    let points = |p: &Program| judged.values().find(|j| j.model == p.model && j.data == p.data).map(|j| &j.points[..]);
    println!("| program | data | compiles | log density | start | gradient | s |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    let (mut tried, mut good) = (0, 0);
    for program in programs.iter().filter(|p| only.as_ref().is_none_or(|o| p.model.contains(o))) {
        let row = examine(folder, program, points(program).unwrap_or(&[]))?;
        let Row { compiles, agrees, starts, gradient, seconds } = &row;
        let short =
            |path: &str| Path::new(path).file_stem().map_or(String::new(), |s| s.to_string_lossy().into_owned());
        let data = program.data.first().map_or(String::new(), |d| short(d));
        println!(
            "| {} | {data} | {compiles} | {agrees} | {starts} | {gradient} | {seconds:.1} |",
            short(&program.model)
        );
        tried += 1;
        good += u32::from([compiles, agrees, starts, gradient].iter().all(|word| word.starts_with("yes")));
    }
    println!("\n{good} of {tried} pass in every column");
    Ok(())
}

fn load(folder: &Path, paths: &[String]) -> Result<Data, Failure> {
    let mut all = Data::default();
    for path in paths {
        let text = std::fs::read_to_string(folder.join(path))?;
        all.arrays.extend(read(&text, Format::RDump)?.arrays);
    }
    Ok(all)
}

fn examine(folder: &Path, program: &Program, points: &[Point]) -> Result<Row, Failure> {
    let before = Instant::now();
    let mut row = Row::default();
    let source = std::fs::read_to_string(folder.join(&program.model))?;
    let data = match load(folder, &program.data) {
        Ok(data) => data,
        Err(failure) => return Ok(Row { compiles: format!("no: {failure}"), ..row }),
    };
    let init = if program.inits.is_empty() { None } else { Some(load(folder, &program.inits)?) };
    let options = Options { init, ..Options::default() };
    let Compiled { graph, .. } = match compile(&source, &program.model, &data, &options) {
        Ok(compiled) => compiled,
        Err(errors) => {
            let message = render(&errors, &program.model, &source, false);
            return Ok(Row { compiles: format!("no: {}", message.lines().next().unwrap_or("")), ..row });
        }
    };
    let whole = graph.clone().model_with(&Marginalise::Nothing);
    let marginalised = graph.model();
    match (whole, marginalised) {
        (Ok(whole), Ok(marginalised)) => {
            row.compiles = "yes".to_owned();
            row.agrees = agrees(&whole, points)?;
            (row.starts, row.gradient) = start_and_gradient(&marginalised)?;
        }
        (Err(failure), _) | (_, Err(failure)) => row.compiles = format!("no: {failure}"),
    }
    row.seconds = before.elapsed().as_secs_f64();
    Ok(row)
}

/// The largest relative difference of the log density from that of the points.
fn agrees(model: &GraphModel, points: &[Point]) -> Result<String, Failure> {
    let mut worst: f64 = 0.0;
    for point in points {
        let names = model.graph().latent_names();
        let values = names.map(|name| point.values.get(name).copied().ok_or(name)).collect::<Result<Vec<f64>, _>>();
        let values = match values {
            Ok(values) => values,
            Err(name) => return Ok(format!("no: a point has no `{name}`")),
        };
        let found = model.log_density(&values)?;
        let error = (found - point.log_joint).abs() / point.log_joint.abs().max(1.0);
        if !(error <= TOLERANCE) {
            return Ok(format!("no: {found:.6} for {:.6}", point.log_joint));
        }
        worst = worst.max(error);
    }
    Ok(if points.is_empty() { "–".to_owned() } else { format!("yes, to {worst:.0e}") })
}

/// Whether the start is possible, and whether the gradient is right near it and at the points of [`hyperprior::check`].
fn start_and_gradient(model: &GraphModel) -> Result<(String, String), Failure> {
    const POINTS: usize = 16;
    let given = match model.start() {
        Ok(given) => given,
        Err(failure) => return Ok((format!("no: {failure}"), String::new())),
    };
    let columns_len = model.latents().len();
    if columns_len == 0 {
        return Ok(("yes".to_owned(), "yes: no latents to differentiate".to_owned()));
    }
    let start: Vec<f64> = match given {
        Some(given) => given.into_iter().map(|x| x.unwrap_or(0.0)).collect(),
        None => vec![0.0; columns_len],
    };
    let mut z = Batch::zeros(columns_len, POINTS);
    for s in 0..POINTS {
        let mut rng = stream(17, 0, 0, s as u64);
        for (i, x) in start.iter().enumerate() {
            let noise: f64 = StandardNormal.sample(&mut rng);
            let moves = s > 0 && !model.latents().support(i).is_discrete();
            z.set(i, s, if moves { x + 0.1 * noise } else { *x });
        }
    }
    let mut log_p = vec![0.0; POINTS];
    let mut d_z = Batch::zeros(columns_len, POINTS);
    model.log_joint_gradient(&z, &mut log_p, &mut d_z)?;
    let starts = if log_p[0].is_finite() { "yes".to_owned() } else { format!("no: {}", log_p[0]) };
    if let Some(word) = differs(model, &z, &log_p, &d_z)? {
        return Ok((starts, word));
    }
    Ok((
        starts,
        match hyperprior::check(model, 3) {
            Ok(_) => "yes".to_owned(),
            Err(failure) => format!("no: {failure}"),
        },
    ))
}

/// The first place where the gradient differs from finite differences.
fn differs(model: &GraphModel, z: &Batch, log_p: &[f64], d_z: &Batch) -> Result<Option<String>, Failure> {
    let points = log_p.len();
    for i in (0..z.columns_len()).filter(|&i| !model.latents().support(i).is_discrete()) {
        // Two step sizes: if they disagree, the finite differences are unreliable.
        let mut slopes = [vec![0.0; points], vec![0.0; points]];
        for (slopes, step) in slopes.iter_mut().zip([2e-5, 1e-5]) {
            let mut ends = [vec![0.0; points], vec![0.0; points]];
            for (end, sign) in ends.iter_mut().zip([1.0, -1.0]) {
                let mut moved = z.clone();
                moved.column_mut(i).iter_mut().for_each(|x| *x += sign * step);
                model.log_joint(&moved, end)?;
            }
            for s in 0..points {
                slopes[s] = (ends[0][s] - ends[1][s]) / (2.0 * step);
            }
        }
        for s in (0..points).filter(|s| log_p[*s].is_finite()) {
            let [coarse, fine] = [slopes[0][s], slopes[1][s]];
            let error = (coarse - fine).abs() + 1e-9 * log_p[s].abs() + 1e-6;
            let found = d_z.get(i, s);
            if fine.is_finite() && !((found - fine).abs() <= 4.0 * error + 1e-5 * fine.abs()) {
                return Ok(Some(format!("no: {found} for {fine} at `{}`", model.latents().name(i))));
            }
        }
    }
    Ok(None)
}
