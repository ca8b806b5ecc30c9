//! The latents of a model, those of one array that are alike in one row.

use crate::names;
use hyperprior::model::graph::{Outline, Role};
use hyperprior::posterior::ElementName;
use serde::Serialize;
use std::collections::BTreeSet;

/// Latents that are alike.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The array, or its elements that are meant.
    pub name: String,
    /// Their law.
    pub law: &'static str,
    /// The values that they can take.
    pub support: String,
    /// How many there are.
    pub count: usize,
    /// What is done with them.
    pub role: String,
    /// The fewest and the most terms of the log joint that one of them is in, for discrete ones that are fitted.
    pub blanket: Option<(usize, usize)>,
}

/// Collects a model's latents in rows.
pub fn rows(outline: &[Outline]) -> Vec<Row> {
    let mut groups: Vec<(&Outline, Vec<&Outline>)> = Vec::new();
    let mut known = std::collections::HashMap::new();
    for one in outline {
        let key: (&str, &str, Role) = (ElementName::parse(&one.name).array, one.law, one.role);
        let group = *known.entry(key).or_insert_with(|| {
            groups.push((one, Vec::new()));
            groups.len() - 1
        });
        groups[group].1.push(one);
    }
    let row = |(first, all): (&Outline, Vec<&Outline>)| {
        let blankets = || all.iter().filter_map(|o| o.blanket);
        Row {
            name: names::line(all.iter().map(|o| o.name.as_str())),
            law: first.law,
            support: match all.iter().map(|o| &o.support).collect::<BTreeSet<_>>().len() {
                1 => first.support.clone(),
                len => format!("{}; {} other ranges", first.support, len - 1),
            },
            count: all.len(),
            role: first.role.to_string(),
            blanket: blankets().min().zip(blankets().max()),
        }
    };
    groups.into_iter().map(row).collect()
}
