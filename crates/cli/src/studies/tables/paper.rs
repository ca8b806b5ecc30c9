//! The paper's numbers: held-out perplexity on two corpora that are not included.

use super::plan::Widths;
use hyperprior_def::Family;

/// A corpus of the paper.
pub struct Reference {
    /// Its name in the heading of its columns.
    pub name: &'static str,
    /// HVM and mean-field: layers 100, 100-30 and 100-30-15, first Poisson and then Bernoulli.
    pub perplexity: [[[u32; 2]; 3]; 2],
}

/// `table:def:nyt` and `table:def:science`.
pub const REFERENCES: [Reference; 2] = [
    Reference {
        name: "NYT",
        perplexity: [[[3386, 3387], [3396, 3896], [3346, 3962]], [[3060, 3084], [3394, 3339], [3420, 3575]]],
    },
    Reference {
        name: "Science",
        perplexity: [[[3327, 3392], [2977, 3320], [3007, 3332]], [[3165, 3166], [3135, 3195], [3050, 3185]]],
    },
];

/// The note on these numbers.
pub const NOTE: &str = "Columns paper NYT and paper Science are the paper's numbers, for its two corpora (11,000 articles each of the \
                        New York Times and of Science; 8,000 and 5,900 terms). These are different corpora: compare which method \
                        is better, not the size of the numbers.";

impl Reference {
    /// HVM and mean-field for a model, if it is in the paper.
    pub fn of(&self, family: Family, layers: &Widths) -> Option<[u32; 2]> {
        let of_family = match family {
            Family::Poisson => &self.perplexity[0],
            Family::Bernoulli => &self.perplexity[1],
            #[allow(unreachable_patterns, reason = "the paper has two families; the library may have more")]
            _ => return None,
        };
        let layers = match layers.0.as_slice() {
            [100] => 0,
            [100, 30] => 1,
            [100, 30, 15] => 2,
            _ => return None,
        };
        Some(of_family[layers])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper: five of six on the New York Times, all on Science, and a mean improvement of 180.
    #[test]
    fn the_numbers_agree_with_the_papers_summary() {
        let pairs = |reference: &Reference| reference.perplexity.as_flattened().to_vec();
        let ahead =
            |reference: &Reference| pairs(reference).iter().filter(|[hvm, mean_field]| hvm < mean_field).count();
        assert_eq!(REFERENCES.each_ref().map(ahead), [5, 6]);
        let all: Vec<[u32; 2]> = REFERENCES.iter().flat_map(pairs).collect();
        let gain: f64 = all.iter().map(|[hvm, mean_field]| f64::from(*mean_field) - f64::from(*hvm)).sum();
        assert!((gain / all.len() as f64 - 180.0).abs() < 5.0, "{gain}");
        let deep = Widths(vec![100, 30]);
        assert_eq!(REFERENCES[1].of(Family::Poisson, &deep), Some([2977, 3320]));
        assert_eq!(REFERENCES[1].of(Family::Poisson, &Widths(vec![20])), None);
    }
}
