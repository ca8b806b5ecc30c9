//! Layers on the command line: `100,bernoulli:30,15`, bottom layer first.

use hyperprior_def::{Error, Family, Layer};
use std::fmt;
use std::str::FromStr;

/// The width of each layer, and its family if named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layers(Vec<(Option<Family>, usize)>);

/// The widest layer.
const WIDTH_MAX: usize = 4096;

impl Layers {
    /// One layer without a named family.
    pub fn one(width: usize) -> Self {
        Self(vec![(None, width)])
    }

    /// The widths, if no layer names a family.
    pub fn widths(&self) -> Option<Vec<usize>> {
        self.0.iter().map(|(family, width)| family.is_none().then_some(*width)).collect()
    }

    /// The layers, with this family for those that name none.
    pub fn of(&self, default: Family) -> Vec<Layer> {
        self.0.iter().map(|(family, width)| Layer { family: family.unwrap_or(default), width: *width }).collect()
    }
}

/// The widths and families as text: `100, 30 poisson` if all have one family, otherwise `100 poisson, 30 bernoulli`.
pub fn describe(layers: &[Layer]) -> String {
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
            "`{width}` is not a width; write whole numbers separated by commas, bottom layer first, such as 100,30,15, with a \
             family before any of them, such as 100,bernoulli:30"
        )),
    }
}

fn family_of(text: &str) -> Result<Family, String> {
    text.parse().map_err(|error| match error {
        Error::BadSetting { reason, .. } => format!("`{text}` is not a family of latents: {reason}"),
        error => error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_parsed() {
        let layers: Layers = "100, bernoulli: 30,poisson:15".parse().expect("layers");
        assert_eq!(layers.to_string(), "100,bernoulli:30,poisson:15");
        let found: Vec<_> = layers.of(Family::Bernoulli).iter().map(|layer| (layer.family, layer.width)).collect();
        assert_eq!(found, [(Family::Bernoulli, 100), (Family::Bernoulli, 30), (Family::Poisson, 15)]);
        assert_eq!(layers.widths(), None);
        assert_eq!("100,30".parse::<Layers>().expect("layers").widths(), Some(vec![100, 30]));
        for (text, hint) in [
            ("", "`` is not a width"),
            ("50,", "`` is not a width"),
            ("0", "from 1 to"),
            ("poisson:0", "from 1 to"),
            ("5,x", "`x` is not a width"),
            ("5,bernoulli:", "`` is not a width"),
            ("5,30:bernoulli", "`30` is not a family of latents: use "),
            (":5", "`` is not a family"),
        ] {
            let said = text.parse::<Layers>().expect_err(text);
            assert!(said.contains(hint), "{said}");
        }
    }

    #[test]
    fn a_single_family_is_named_once() {
        let described = |text: &str| describe(&text.parse::<Layers>().expect("layers").of(Family::Poisson));
        assert_eq!(
            ["6", "6,3", "6,bernoulli:3,2"].map(described),
            ["6 poisson", "6, 3 poisson", "6 poisson, 3 bernoulli, 2 poisson"]
        );
    }
}
