//! What is written reads back the same.

use super::zipped;
use hyperprior_def::Corpus;
use hyperprior_def::corpus::{ReadSettings, read_from};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::io::Cursor;
use std::path::PathBuf;

prop_compose! {
    /// A corpus whose documents all have words, as those from files do.
    fn any_corpus()(
        documents in prop::collection::vec(prop::collection::btree_map(0..9_u32, 1..40_000_u32, 1..6), 1..12),
        unused in 0..4_usize,
    ) -> Corpus {
        let (mut starts, mut terms, mut counts) = (vec![0], vec![], vec![]);
        for document in &documents {
            terms.extend(document.keys().copied());
            counts.extend(document.values().map(|&count| count as f32));
            starts.push(terms.len());
        }
        let names = (1..=documents.len()).map(|d| d.to_string()).collect();
        let vocabulary = (0..9 + unused).map(|v| format!("term{v}")).collect();
        Corpus::new(starts, terms, counts, names, vocabulary).unwrap()
    }
}

/// The vocabulary's file is named by its size, because tests run concurrently.
fn vocabulary_of(corpus: &Corpus) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-vocabulary-{}", corpus.terms_len()));
    let mut bytes = Vec::new();
    corpus.write_vocabulary(&mut bytes).unwrap();
    std::fs::write(&path, bytes).unwrap();
    path
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_reads_back_the_same(corpus in any_corpus()) {
        let settings = ReadSettings::default().vocabulary(vocabulary_of(&corpus));
        let mut files: [Vec<u8>; 3] = Default::default();
        corpus.write_ldac(&mut files[0]).unwrap();
        corpus.write_uci(&mut files[1]).unwrap();
        corpus.write_matrix_market(&mut files[2]).unwrap();
        for (name, bytes) in ["a.ldac", "a.uci", "a.mtx"].into_iter().zip(files) {
            prop_assert_eq!(&read_from(name, Cursor::new(zipped(&bytes)), &settings).unwrap().0, &corpus);
            prop_assert_eq!(&read_from("unnamed", Cursor::new(bytes), &settings).unwrap().0, &corpus);
        }
    }
}
