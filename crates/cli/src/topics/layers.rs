//! Layers as they are written on the command line: `100,bernoulli:30,15`, the one next to the words first.

use hyperprior_def::{Error, Family, Layer};
use std::fmt;
use std::str::FromStr;

/// A width for each layer, and the family of those that name their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layers(Vec<(Option<Family>, usize)>);

/// The widest layer.
const WIDTH_MAX: usize = 4096;

impl Layers {
    /// One layer that names no family.
    pub fn one(width: usize) -> Self {
        Self(vec![(None, width)])
    }

    /// The widths, where no layer names a family of its own.
    pub fn widths(&self) -> Option<Vec<usize>> {
        self.0.iter().map(|(family, width)| family.is_none().then_some(*width)).collect()
    }

    /// The layers, where those that name no family are of this one.
    pub fn of(&self, usual: Family) -> Vec<Layer> {
        self.0.iter().map(|(family, width)| Layer { family: family.unwrap_or(usual), width: *width }).collect()
    }
}

/// The widths and families in words: `100, 30 poisson` where all are of one family, otherwise `100 poisson, 30 bernoulli`.
pub fn in_words(layers: &[Layer]) -> String {
    let is_alike = layers.windows(2).all(|pair| pair[0].family == pair[1].family);
    let one = |layer: &Layer| {
        if is_alike { layer.width.to_string() } else { format!("{} {}", layer.width, layer.family) }
    };
    let each = layers.iter().map(one).collect::<Vec<_>>().join(", ");
    match layers {
        [first, ..] if is_alike => format!("{each} {}", first.family),
        _ => each,
    }
}

impl fmt::Display for Layers {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for (i, (family, width)) in self.0.iter().enumerate() {
            f.write_str(if i > 0 { "," } else { "" })?;
            family.map_or(Ok(()), |family| write!(f, "{family}:"))?;
            write!(f, "{width}")?;
        }
        Ok(())
    }
}

impl FromStr for Layers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split(',').map(|part| layer(part.trim())).collect::<Result<_, _>>().map(Self)
    }
}

fn layer(text: &str) -> Result<(Option<Family>, usize), String> {
    let (family, width) = match text.split_once(':') {
        Some((family, width)) => (Some(family_of(family.trim())?), width.trim()),
        None => (None, text),
    };
    match width.parse::<usize>() {
        Ok(width @ 1..=WIDTH_MAX) => Ok((family, width)),
        Ok(width) => Err(format!("a layer has from 1 to {WIDTH_MAX} latents, not {width}")),
        Err(_) => Err(format!(
            "`{width}` is no width; write whole numbers separated by commas, the layer next to the words first, such as \
             100,30,15, and before any of them its own family, such as 100,bernoulli:30"
        )),
    }
}

fn family_of(text: &str) -> Result<Family, String> {
    text.parse().map_err(|error| match error {
        Error::BadSetting { reason, .. } => format!("`{text}` is no family of latents: {reason}"),
        error => error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_read_as_they_are_written() {
        let layers: Layers = "100, bernoulli: 30,poisson:15".parse().expect("layers");
        assert_eq!(layers.to_string(), "100,bernoulli:30,poisson:15");
        let found: Vec<_> = layers.of(Family::Bernoulli).iter().map(|layer| (layer.family, layer.width)).collect();
        assert_eq!(found, [(Family::Bernoulli, 100), (Family::Bernoulli, 30), (Family::Poisson, 15)]);
        assert_eq!(layers.widths(), None);
        assert_eq!("100,30".parse::<Layers>().expect("layers").widths(), Some(vec![100, 30]));
        for (text, hint) in [
            ("", "`` is no width"),
            ("50,", "`` is no width"),
            ("0", "from 1 to"),
            ("poisson:0", "from 1 to"),
            ("5,x", "`x` is no width"),
            ("5,bernoulli:", "`` is no width"),
            ("5,30:bernoulli", "`30` is no family of latents: use "),
            (":5", "`` is no family"),
        ] {
            let said = text.parse::<Layers>().expect_err(text);
            assert!(said.contains(hint), "{said}");
        }
    }

    #[test]
    fn a_family_is_said_once_where_it_is_the_only_one() {
        let said = |text: &str| in_words(&text.parse::<Layers>().expect("layers").of(Family::Poisson));
        assert_eq!(
            ["6", "6,3", "6,bernoulli:3,2"].map(said),
            ["6 poisson", "6, 3 poisson", "6 poisson, 3 bernoulli, 2 poisson"]
        );
    }
}
