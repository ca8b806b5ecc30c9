//! Widths of layers as they are written on the command line: `100,30,15`, the one next to the words first.

use hyperprior_def::{Family, Layer};
use std::fmt;
use std::str::FromStr;

/// The widths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layers(pub Vec<usize>);

/// The widest layer.
const WIDTH_MAX: usize = 4096;

impl Layers {
    /// Layers of one family.
    pub fn of(&self, family: Family) -> Vec<Layer> {
        self.0.iter().map(|width| Layer { family, width: *width }).collect()
    }
}

impl fmt::Display for Layers {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let widths: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&widths.join(","))
    }
}

impl FromStr for Layers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let width = |part: &str| match part.trim().parse::<usize>() {
            Ok(width @ 1..=WIDTH_MAX) => Ok(width),
            Ok(width) => Err(format!("a layer has from 1 to {WIDTH_MAX} latents, not {width}")),
            Err(_) => Err(format!(
                "`{}` is no width; write whole numbers separated by commas, the layer next to the words first, such as \
                 100,30,15",
                part.trim()
            )),
        };
        text.split(',').map(width).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::Layers;

    #[test]
    fn widths_are_read_as_they_are_written() {
        let layers: Layers = "100, 30,15".parse().expect("widths");
        assert_eq!((layers.0.as_slice(), layers.to_string().as_str()), (&[100, 30, 15][..], "100,30,15"));
        for (text, hint) in [("", "`` is no width"), ("50,", "`` is no width"), ("0", "from 1 to"), ("5,x", "`x`")] {
            let said = text.parse::<Layers>().expect_err(text);
            assert!(said.contains(hint), "{said}");
        }
    }
}
