//! The corpus itself: construction, subsets and splits, and the built-in corpus.

use hyperprior_def::Corpus;
use hyperprior_def::corpus::{Document, bible, hold_out_tokens, hold_out_types};
use hyperprior_testkit::mean::assert_mean;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::BTreeMap;

fn names(len: usize) -> Vec<String> {
    (0..len).map(|i| format!("n{i}")).collect()
}

#[test]
fn terms_are_sorted_and_added_up() {
    let corpus =
        Corpus::new(vec![0, 3, 3, 5], vec![2, 0, 2, 1, 0], vec![1.0, 2.0, 3.0, 1.0, 1.0], names(3), names(4)).unwrap();
    assert_eq!(corpus.document(0), (&[0, 2][..], &[2.0, 4.0][..]));
    assert_eq!(corpus.document(1), (&[][..], &[][..]));
    assert_eq!(corpus.document(2), (&[0, 1][..], &[1.0, 1.0][..]));
    assert_eq!((corpus.documents_len(), corpus.terms_len()), (3, 4));
    assert_eq!((corpus.nonzeros_len(), corpus.tokens_len()), (4, 8));
    assert_eq!(corpus.starts(), [0, 2, 2, 4]);
}

#[test]
fn parts_that_make_no_corpus() {
    let faults = [
        Corpus::new(vec![0, 1], vec![0], vec![], names(1), names(1)),
        Corpus::new(vec![0, 2], vec![0], vec![1.0], names(1), names(1)),
        Corpus::new(vec![0, 2, 1, 1], vec![0], vec![1.0], names(3), names(1)),
        Corpus::new(vec![], vec![], vec![], names(0), names(1)),
        Corpus::new(vec![0, 1], vec![0], vec![1.0], names(2), names(1)),
        Corpus::new(vec![0, 1], vec![1], vec![1.0], names(1), names(1)),
        Corpus::new(vec![0, 1], vec![0], vec![0.0], names(1), names(1)),
        Corpus::new(vec![0, 1], vec![0], vec![-1.0], names(1), names(1)),
        Corpus::new(vec![0, 1], vec![0], vec![1.5], names(1), names(1)),
        Corpus::new(vec![0, 1], vec![0], vec![f32::NAN], names(1), names(1)),
        Corpus::new(vec![0, 2], vec![0, 0], vec![16_777_216.0, 1.0], names(1), names(1)),
        Corpus::new(vec![0, 1], vec![0], vec![1.0], names(1), ["a", "b", "a"].map(String::from).to_vec()),
    ]
    .map(|result| result.map_or_else(|e| e.to_string(), |corpus| format!("no error: {corpus:?}")))
    .join("\n");
    insta::assert_snapshot!(faults);
}

#[test]
fn the_bible() {
    let bible = bible();
    assert_eq!((bible.documents_len(), bible.terms_len()), (1189, 4376));
    assert_eq!((bible.nonzeros_len(), bible.tokens_len()), (145_578, 257_526));
    let count = |document: &str, term: &str| {
        let d = bible.names().iter().position(|name| name == document).unwrap();
        let v = bible.vocabulary().iter().position(|name| name == term).unwrap() as u32;
        let (terms, counts) = bible.document(d);
        terms.binary_search(&v).map_or(0.0, |i| counts[i])
    };
    assert_eq!(count("Genesis 1", "created"), 5.0);
    assert_eq!(count("Genesis 1", "god"), 32.0);
    assert_eq!(count("Psalms 23", "shepherd"), 1.0);
    for stop in ["the", "thou", "hath", "art"] {
        assert!(!bible.vocabulary().iter().any(|term| term == stop), "{stop}");
    }
    // The constructor accepts what the files contain.
    let again = Corpus::new(
        bible.starts().to_vec(),
        bible.terms().to_vec(),
        bible.counts().to_vec(),
        bible.names().to_vec(),
        bible.vocabulary().to_vec(),
    );
    assert_eq!(again.unwrap(), bible);
}

#[test]
fn a_split_is_a_partition_that_the_seed_decides() {
    let bible = bible();
    let (train, test) = bible.split(0.2, 7).unwrap();
    assert_eq!(test.len(), 238);
    let mut all = [train.clone(), test.clone()].concat();
    all.sort_unstable();
    assert_eq!(all, (0..1189).collect::<Vec<_>>());
    assert!(train.is_sorted() && test.is_sorted());
    assert_eq!(bible.split(0.2, 7).unwrap(), (train, test.clone()));
    assert_ne!(bible.split(0.2, 8).unwrap().1, test);
    assert_eq!(test[..4], GOLDEN_SPLIT);
    assert_eq!(bible.split(0.0, 7).unwrap().1.len(), 0);
    assert_eq!(bible.split(1.0, 7).unwrap().0.len(), 0);
    for share in [-0.1, 1.1, f64::NAN] {
        let error = bible.split(share, 7).unwrap_err().to_string();
        assert_eq!(error, format!("setting `share` = {share} is invalid: it must be between 0 and 1"));
        assert_eq!(hold_out_types(bible.document(0), share, 1, 0).unwrap_err().to_string(), error);
        assert_eq!(hold_out_tokens(bible.document(0), share, 1, 0).unwrap_err().to_string(), error);
    }
}

/// Changing these changes the results of every seed: say so in the CHANGELOG.
const GOLDEN_SPLIT: [usize; 4] = [6, 10, 13, 16];

#[test]
fn golden_draws() {
    let document = (&[2, 3, 5, 7, 11][..], &[1.0, 9.0, 4.0, 2.0, 30.0][..]);
    let types = hold_out_types(document, 0.4, 5, 17).unwrap().1;
    assert_eq!(types.terms, [7, 11]);
    let tokens = hold_out_tokens(document, 0.4, 5, 17).unwrap().1;
    assert_eq!((tokens.terms, tokens.counts), (vec![2, 3, 5, 11], vec![1.0, 3.0, 1.0, 14.0]));
    assert_ne!(hold_out_types(document, 0.4, 5, 18).unwrap().1, types);
}

#[test]
fn shuffling_keeps_names_with_their_documents() {
    let bible = bible();
    let shuffled = bible.shuffled(3);
    assert_eq!(shuffled, bible.shuffled(3));
    assert_ne!(shuffled.names(), bible.shuffled(4).names());
    let by_name: BTreeMap<&String, usize> = bible.names().iter().enumerate().map(|(d, name)| (name, d)).collect();
    for (d, name) in shuffled.names().iter().enumerate() {
        assert_eq!(shuffled.document(d), bible.document(by_name[name]));
    }
    assert_eq!(shuffled.tokens_len(), bible.tokens_len());
}

#[test]
fn each_token_is_held_out_with_the_given_probability() {
    // The first mean alone would also pass if each document were held out or observed as a whole; the second would not.
    let (terms, counts) = (&[0, 1, 2][..], &[1.0, 20.0, 5.0][..]);
    let (mut hidden_share, mut both) = (Vec::new(), Vec::new());
    for index in 0..4000 {
        let (_, hidden) = hold_out_tokens((terms, counts), 0.3, 11, index).unwrap();
        let of = |term: u32| hidden.terms.binary_search(&term).map_or(0.0, |i| f64::from(hidden.counts[i]));
        hidden_share.push((of(0) + of(1) + of(2)) / 26.0);
        both.push(of(0) * of(1));
    }
    assert_mean(&hidden_share, 0.3, 0.02);
    assert_mean(&both, 0.3 * 6.0, 0.4);
}

fn sum(observed: &Document, hidden: &Document) -> BTreeMap<u32, f32> {
    let mut sum = BTreeMap::new();
    for part in [observed, hidden] {
        for (&term, &count) in part.terms.iter().zip(&part.counts) {
            assert!(count >= 1.0 && count.fract() == 0.0);
            *sum.entry(term).or_default() += count;
        }
    }
    sum
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn holding_out_conserves_counts(
        document in prop::collection::btree_map(0..50_u32, 1..9_u8, 0..20),
        share in 0.0..=1.0,
        seed: u64,
        index: u64,
    ) {
        let terms: Vec<u32> = document.keys().copied().collect();
        let counts: Vec<f32> = document.values().map(|&count| f32::from(count)).collect();
        let whole: BTreeMap<u32, f32> = terms.iter().copied().zip(counts.iter().copied()).collect();
        for hold_out in [hold_out_types, hold_out_tokens] {
            let (observed, hidden) = hold_out((&terms, &counts), share, seed, index).unwrap();
            prop_assert_eq!(sum(&observed, &hidden), whole.clone());
            prop_assert!(terms.len() >= 2 || hidden.terms.is_empty());
            prop_assert!(observed.terms.is_sorted() && hidden.terms.is_sorted());
            prop_assert_eq!(hold_out((&terms, &counts), share, seed, index).unwrap(), (observed, hidden));
        }
        let (observed, hidden) = hold_out_types((&terms, &counts), share, seed, index).unwrap();
        prop_assert!(hidden.terms.iter().all(|term| !observed.terms.contains(term)));
        if terms.len() >= 2 && share > 0.0 {
            prop_assert!(!observed.terms.is_empty() && !hidden.terms.is_empty());
            prop_assert!((hidden.terms.len() as f64 - share * terms.len() as f64).abs() <= 1.0);
        }
    }
}
