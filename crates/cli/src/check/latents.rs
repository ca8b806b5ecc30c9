//! The latents of a model, with similar elements of an array in one row.

use hyperprior::posterior::ElementName;
use hyperprior::posterior::ranges;
use hyperprior_graph::{Outline, Role};
use serde::Serialize;
use std::collections::BTreeSet;

/// Similar latents.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The array, or the elements of it in this row.
    pub name: String,
    /// Their distribution.
    pub distribution: &'static str,
    /// Their possible values.
    pub support: String,
    /// How many there are.
    pub count: usize,
    /// Whether they are fitted, marginalised or drawn from the prior.
    pub role: String,
    /// The smallest and largest number of terms of the log joint with one of them, for fitted discrete latents.
    pub blanket: Option<(usize, usize)>,
}

/// Groups a model's latents into rows.
pub fn rows(outline: &[Outline]) -> Vec<Row> {
    let mut groups: Vec<(&Outline, Vec<&Outline>)> = Vec::new();
    let mut known = std::collections::HashMap::new();
    for one in outline {
        let key: (&str, &str, Role) = (ElementName::parse(&one.name).array, one.distribution, one.role);
        let group = *known.entry(key).or_insert_with(|| {
            groups.push((one, Vec::new()));
            groups.len() - 1
        });
        groups[group].1.push(one);
    }
    let row = |(first, all): (&Outline, Vec<&Outline>)| {
        let blankets = || all.iter().filter_map(|o| o.blanket);
        Row {
            name: ranges::line(all.iter().map(|o| o.name.as_str())),
            distribution: first.distribution,
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
