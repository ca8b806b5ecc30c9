//! The results as plain-text tables, Markdown, comma-separated values and JSON.

use super::curve;
use super::grid::{Entry, Section};
use super::heading::heading;
use super::numbers::{ANNEALED, AVERAGED, BOUNDS, MEASURES, Measure, Numbers, PLUG_IN, Point};
use super::paper::{NOTE, REFERENCES};
use super::plan::{Cell, FLOW, Plan, Widths};
use super::settings::{Choice, HELDOUT};
use crate::run_dir::quoted;
use crate::topics::{duration, grouped};
use hyperprior::report::SCHEMA;
use hyperprior_def::{Corpus, Family, Method};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use toml::Table;

/// The results.
pub struct Report<'a> {
    /// The name of the corpus, and the command line.
    pub name: &'a str,
    pub command: &'a str,
    pub corpus: &'a Corpus,
    pub plan: &'a Plan,
    pub choice: &'a Choice,
    pub facts: &'a Table,
    /// The finished cells, and the points of curves.
    pub cells: &'a [Numbers],
    pub points: &'a [Point],
}

/// The number of cells in which a method is no worse than mean-field.
#[derive(Debug, Serialize)]
pub struct Count {
    method: Method,
    cells: usize,
    #[serde(flatten)]
    no_worse: BTreeMap<&'static str, usize>,
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
pub struct Summary<'a> {
    schema: u32,
    corpus: &'a str,
    documents: usize,
    terms: usize,
    tokens: u64,
    settings: &'a Table,
    planned_cells: usize,
    cells: &'a [Numbers],
    curve: &'a [Point],
    no_worse: Vec<Count>,
}

/// A row of the tables: a model with the methods of the columns, or with the paper's flows instead of the hierarchical model.
pub(super) struct Row<'a> {
    pub(super) family: Family,
    pub(super) layers: &'a Widths,
    pub(super) methods: Vec<Method>,
    is_flow: bool,
}

impl Report<'_> {
    /// As plain text.
    pub fn text(&self) -> String {
        let mut out = format!("{}\n", self.head().join("\n"));
        self.sections().iter().for_each(|section| out.push_str(&format!("\n{}", section.plain())));
        out.push_str(&format!("\n{}", self.counted()));
        out
    }

    /// As Markdown.
    pub fn markdown(&self, has_picture: bool) -> String {
        let mut out = format!("# The paper's tables on {}\n\n```sh\n{}\n```\n\n", self.name, self.command);
        self.head().iter().for_each(|line| out.push_str(&format!("{line}\n\n")));
        self.sections().iter().for_each(|section| out.push_str(&format!("{}\n", section.markdown())));
        if has_picture {
            out.push_str("![Perplexity and bound against the number of steps](curve.png)\n\n");
        }
        let _ = write!(
            out,
            "## Comparison with mean-field\n\n{}\n## Settings\n\n```toml\n{}```\n",
            self.counted(),
            self.facts
        );
        out
    }

    /// Every finished cell, in order, as comma-separated values.
    pub fn csv(&self) -> String {
        let mut out = "family,layers,method,seed,documents,heldout_documents,measured_documents".to_owned();
        MEASURES.iter().for_each(|measure| out.push_str(&format!(",{}", measure.name)));
        out.push_str(",unigram_perplexity,completion_unigram_perplexity,training_seconds,evaluation_seconds\n");
        for n in self.in_order() {
            let Cell { family, layers, method, seed } = &n.cell;
            let method = method.to_string();
            let method = quoted(&method);
            let _ = write!(out, "{family},{layers},{method},{seed},{}", n.documents);
            let _ = write!(out, ",{},{}", n.heldout_documents, n.measured_documents);
            let others =
                [n.unigram_perplexity, n.completion_unigram_perplexity, n.training_seconds, n.evaluation_seconds];
            let all = MEASURES.iter().map(|measure| (measure.of)(n)).chain(others);
            // The shortest text that parses to the same number.
            all.for_each(|x| out.push_str(&format!(",{x:?}")));
            out.push('\n');
        }
        out
    }

    /// As JSON.
    pub fn summary(&self) -> Summary<'_> {
        Summary {
            schema: SCHEMA,
            corpus: self.name,
            documents: self.corpus.documents_len(),
            terms: self.corpus.terms_len(),
            tokens: self.corpus.tokens_len(),
            settings: self.facts,
            planned_cells: self.plan.cells().len(),
            cells: self.cells,
            curve: self.points,
            no_worse: self.counts(),
        }
    }

    pub(super) fn in_order(&self) -> impl Iterator<Item = &Numbers> {
        self.plan.cells().into_iter().filter_map(|cell| self.cells.iter().find(|numbers| numbers.cell == cell))
    }

    /// The corpus and the settings.
    fn head(&self) -> Vec<String> {
        let (corpus, choice) = (self.corpus, self.choice);
        let [documents, terms] = [corpus.documents_len(), corpus.terms_len()].map(|len| grouped(len as u64));
        let words = grouped(corpus.tokens_len());
        let mut head = vec![
            format!(
                "{}: {documents} documents, {terms} terms, {words} words; {:.0} % of the documents held out for each seed",
                self.name,
                100.0 * HELDOUT
            ),
            format!(
                "{} epochs, {} weights, {} words; at most {} held-out documents evaluated, each with {} steps",
                choice.epochs, choice.weights, choice.words, choice.measured, choice.steps
            ),
        ];
        let (done, planned) = (self.in_order().count(), self.plan.cells().len());
        if done < planned {
            head.push(format!("{done} of {planned} cells are done; means are over the finished seeds"));
        }
        let seconds: f64 = self.cells.iter().map(|n| n.training_seconds + n.evaluation_seconds).sum();
        head.push(format!("{} for all cells", duration(seconds)));
        head
    }

    fn sections(&self) -> Vec<Section> {
        let mut sections = vec![self.perplexity(PLUG_IN, "plug-in"), self.perplexity(AVERAGED, "averaged over z")];
        sections.push(self.bounds());
        sections.extend((self.choice.temperatures > 0).then(|| self.annealed()));
        sections.push(self.gains());
        sections.push(self.each());
        sections.extend(curve::sections(self.plan, self.points));
        sections
    }

    /// The rows, model by model.
    pub(super) fn rows(&self) -> Vec<Row<'_>> {
        let mut rows = Vec::new();
        for &family in &self.plan.families {
            for layers in &self.plan.layers {
                rows.push(Row { family, layers, methods: self.columns(), is_flow: false });
                if self.plan.has_flow(layers) {
                    let own = |method| if method == Method::MeanField { method } else { FLOW };
                    let methods = self.columns().into_iter().map(own).collect();
                    rows.push(Row { family, layers, methods, is_flow: true });
                }
            }
        }
        rows
    }

    /// The methods of the columns; at least one besides mean-field, for the row of the flows.
    fn columns(&self) -> Vec<Method> {
        let has_flow = self.plan.layers.iter().any(|layers| self.plan.has_flow(layers));
        let is_alone = self.plan.methods.iter().all(|method| *method == Method::MeanField);
        let more = (has_flow && is_alone).then_some(Method::Hvm);
        self.plan.methods.iter().copied().chain(more).collect()
    }

    /// The mean over the finished seeds, and whether these are all.
    fn mean(&self, row: &Row, method: Method, measure: &Measure) -> Option<(f64, bool)> {
        let is_own =
            |n: &&Numbers| n.cell.family == row.family && n.cell.layers == *row.layers && n.cell.method == method;
        let values: Vec<f64> = self.in_order().filter(is_own).map(|n| (measure.of)(n)).collect();
        let is_all = values.len() == self.plan.seeds.len();
        (!values.is_empty()).then(|| (values.iter().sum::<f64>() / values.len() as f64, is_all))
    }

    /// A row's means of one measure; the best is marked if all seeds are finished.
    fn compared(&self, row: &Row, measure: &Measure) -> Vec<Entry> {
        let means: Vec<Option<(f64, bool)>> =
            row.methods.iter().map(|method| self.mean(row, *method, measure)).collect();
        let whole: Vec<f64> = means.iter().filter_map(|mean| mean.filter(|(_, is_all)| *is_all)).map(|m| m.0).collect();
        let is_compared = whole.len() == row.methods.len() && whole.len() > 1;
        let is_best = |x: f64| is_compared && x.is_finite() && whole.iter().all(|other| measure.is_no_worse(x, *other));
        let entry = |mean: &Option<(f64, bool)>| match mean {
            Some((x, _)) => Entry { text: measure.show(*x), is_best: is_best(*x) },
            None => Entry::plain("–"),
        };
        means.iter().map(entry).collect()
    }

    fn first_columns(&self, row: &Row, before: Option<&Row>) -> [Entry; 2] {
        let is_new = before.is_none_or(|before| before.family != row.family);
        let family = if is_new { row.family.to_string() } else { String::new() };
        let flow = if row.is_flow { format!(", {FLOW}") } else { String::new() };
        [family, format!("{}{flow}", row.layers)].map(Entry::plain)
    }

    /// In the paper's layout, with the paper's numbers for comparison.
    fn perplexity(&self, measure: usize, how: &str) -> Section {
        let (measure, rows) = (&MEASURES[measure], self.rows());
        let reference = |row: &Row| REFERENCES.each_ref().map(|reference| reference.of(row.family, row.layers));
        let has_references = rows.iter().any(|row| reference(row).iter().any(Option::is_some));
        let mut header = vec!["family".to_owned(), "layers".to_owned()];
        header.extend(self.columns().into_iter().map(heading));
        if has_references {
            let columns =
                REFERENCES.iter().flat_map(|r| ["HVM", "mean-field"].map(|m| format!("paper {}: {m}", r.name)));
            header.extend(columns);
        }
        let line = |(i, row): (usize, &Row)| {
            let before = i.checked_sub(1).map(|before| &rows[before]);
            let mut line = self.first_columns(row, before).to_vec();
            line.extend(self.compared(row, measure));
            if has_references {
                // The paper's numbers are not repeated in the row of the flows.
                let own = |pair: Option<[u32; 2]>| match pair.filter(|_| !row.is_flow) {
                    Some(pair) => pair.map(|x| x.to_string()),
                    None => [(); 2].map(|()| if row.is_flow { String::new() } else { "–".to_owned() }),
                };
                line.extend(reference(row).into_iter().flat_map(own).map(Entry::plain));
            }
            line
        };
        let mut notes = vec![self.marked("Smaller is better")];
        if rows.iter().any(|row| row.is_flow) {
            notes.push(format!(
                "Rows with {FLOW} use the paper's prior and recursive approximation, planar flows, instead of the hierarchical \
                 model above them."
            ));
        }
        if has_references {
            notes.push(NOTE.to_owned());
        }
        Section {
            title: format!("Held-out perplexity of hidden word types, {how}"),
            header,
            rows: rows.iter().enumerate().map(line).collect(),
            notes,
        }
    }

    fn marked(&self, better: &str) -> String {
        let seeds: Vec<String> = self.plan.seeds.iter().map(u64::to_string).collect();
        let (seeds, means) = match seeds.as_slice() {
            [seed] => (seed.clone(), "seed"),
            seeds => (seeds.join(", "), "means of seeds"),
        };
        format!("{better}; {means} {seeds}; the best of each row is marked.")
    }

    fn bounds(&self) -> Section {
        let (rows, measures) = (self.rows(), &MEASURES[BOUNDS]);
        let mut header = vec!["family".to_owned(), "layers".to_owned()];
        for label in ["training", "held-out", "visible"] {
            header.extend(self.columns().into_iter().map(|method| format!("{label}: {}", heading(method))));
        }
        let line = |(i, row): (usize, &Row)| {
            let before = i.checked_sub(1).map(|before| &rows[before]);
            let mut line = self.first_columns(row, before).to_vec();
            measures.iter().for_each(|measure| line.extend(self.compared(row, measure)));
            line
        };
        Section {
            title:
                "Bounds per word: training documents with the weights; whole held-out documents; their visible halves"
                    .to_owned(),
            header,
            rows: rows.iter().enumerate().map(line).collect(),
            notes: vec![self.marked("Larger is better")],
        }
    }

    fn annealed(&self) -> Section {
        let (rows, measure) = (self.rows(), &MEASURES[ANNEALED]);
        let mut header = vec!["family".to_owned(), "layers".to_owned()];
        header.extend(self.columns().into_iter().map(heading));
        let line = |(i, row): (usize, &Row)| {
            let before = i.checked_sub(1).map(|before| &rows[before]);
            self.first_columns(row, before).into_iter().chain(self.compared(row, measure)).collect()
        };
        Section {
            title: "Log likelihood per word of whole held-out documents, by annealed importance sampling".to_owned(),
            header,
            rows: rows.iter().enumerate().map(line).collect(),
            notes: vec![self.marked("Larger is better")],
        }
    }

    /// All cells.
    fn each(&self) -> Section {
        let mut header: Vec<String> = ["family", "layers", "method", "seed"].map(str::to_owned).to_vec();
        header.extend(MEASURES.iter().map(|measure| measure.label.to_owned()));
        header.extend(["types unigram", "words unigram", "training s", "evaluation s"].map(str::to_owned));
        let row = |n: &Numbers| {
            let Cell { family, layers, method, seed } = &n.cell;
            let mut row = vec![family.to_string(), layers.to_string(), method.to_string(), seed.to_string()];
            row.extend(MEASURES.iter().map(|measure| measure.show((measure.of)(n))));
            row.extend([n.unigram_perplexity, n.completion_unigram_perplexity].map(|x| format!("{x:.1}")));
            row.extend([n.training_seconds, n.evaluation_seconds].map(|x| format!("{x:.1}")));
            row.into_iter().map(Entry::plain).collect()
        };
        Section {
            title: "Each cell: bounds per word, perplexity of hidden word types and of hidden words, seconds"
                .to_owned(),
            header,
            rows: self.in_order().map(row).collect(),
            notes: self.chosen().into_iter().collect(),
        }
    }

    /// What `hvm` turned out to be in the cells where it is not mean-field.
    fn chosen(&self) -> Option<String> {
        let chosen: Vec<&Numbers> = self.in_order().filter(|n| n.chosen.is_some()).collect();
        if chosen.is_empty() {
            return None;
        }
        let others = chosen.iter().filter(|n| n.chosen != Some(Method::MeanField));
        let describe = |n: &&Numbers| -> String {
            let Cell { family, layers, seed, .. } = &n.cell;
            n.chosen.map_or_else(String::new, |method| format!("{method} for {family} {layers}, seed {seed}"))
        };
        let others: Vec<String> = others.map(describe).collect();
        Some(match others.is_empty() {
            true => "hvm chose mean-field in all cells.".to_owned(),
            false => format!("hvm chose {}, and mean-field elsewhere.", others.join("; ")),
        })
    }

    /// Compares each cell with the mean-field cell of the same model and seed.
    fn counts(&self) -> Vec<Count> {
        let mut methods: Vec<Method> = self.plan.methods.clone();
        if self.plan.layers.iter().any(|layers| self.plan.has_flow(layers)) {
            methods.push(FLOW);
        }
        let count = |method: &Method| {
            let other = |n: &Numbers| Cell { method: Method::MeanField, ..n.cell.clone() };
            let pairs: Vec<(&Numbers, &Numbers)> = self
                .in_order()
                .filter(|n| n.cell.method == *method)
                .filter_map(|n| Some((n, self.cells.iter().find(|own| own.cell == other(n))?)))
                .collect();
            let of = |measure: &Measure| {
                pairs.iter().filter(|(n, other)| measure.is_no_worse((measure.of)(n), (measure.of)(other))).count()
            };
            let no_worse = MEASURES.iter().map(|measure| (measure.name, of(measure))).collect();
            Count { method: *method, cells: pairs.len(), no_worse }
        };
        methods.iter().filter(|method| **method != Method::MeanField).map(count).filter(|c| c.cells > 0).collect()
    }

    fn counted(&self) -> String {
        let line = |count: &Count| {
            let all: Vec<String> = MEASURES
                .iter()
                .map(|measure| {
                    let label = if measure.is_log { "" } else { "perplexity of " };
                    format!("{label}{} in {}", measure.label, count.no_worse[measure.name])
                })
                .collect();
            format!(
                "Of {1} cells, {0} is no worse than mean-field: {2}.\n",
                heading(count.method),
                count.cells,
                all.join(", ")
            )
        };
        let lines: String = self.counts().iter().map(line).collect();
        if lines.is_empty() { "No model is fitted by both mean-field and another method.\n".to_owned() } else { lines }
    }
}
