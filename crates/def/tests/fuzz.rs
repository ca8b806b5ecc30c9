//! Whatever the bytes, there is a corpus or there is an error, never a panic; and what is written reads back the same.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use flate2::Compression;
use flate2::write::GzEncoder;
use hyperprior_def::Corpus;
use hyperprior_def::corpus::{Format, ReadSettings, TextSettings, read_from};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::io::{Cursor, Write};
use std::path::PathBuf;

const FORMATS: [Format; 4] = [Format::LdaC, Format::Uci, Format::MatrixMarket, Format::Text];

const SEEDS: [&str; 5] = [
    "3 0:1 2:3 7:1\n1 4:2\n0\n2 1:1 1:1\n",
    "3\n5\n4\n1 1 2\n1 5 1\n3 2 1\n3 3 7\n",
    "%%MatrixMarket matrix coordinate real general\n% a remark\n3 5 4\n1 1 2.0\n3 2 1e0\n1 5 1\n3 3 7\n",
    "%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 1\n2 2\n",
    "The ash isn't an elm.\n\nÄsche, ulme: 東京 e\u{301} 1990s\nash\u{ad}tree\n",
];

/// Reads in every format, with the format left to the reader too.
fn read_all(bytes: &[u8]) {
    let text = TextSettings { least_documents: 1, largest_share: 1.0, ..TextSettings::default() };
    for format in FORMATS.map(Some).into_iter().chain([None]) {
        let settings = ReadSettings { format, text: text.clone(), ..ReadSettings::default() };
        match read_from("file", bytes, &settings) {
            Ok((corpus, notes)) => {
                // What a reader builds without asking, the constructor must accept as it is.
                let again = Corpus::new(
                    corpus.starts().to_vec(),
                    corpus.terms().to_vec(),
                    corpus.counts().to_vec(),
                    corpus.names().to_vec(),
                    corpus.vocabulary().to_vec(),
                );
                assert_eq!(again.unwrap(), corpus);
                assert!((0..corpus.documents_len()).all(|d| !corpus.document(d).0.is_empty()));
                notes.iter().for_each(|note| assert!(!note.to_string().is_empty()));
            }
            Err(error) => assert!(error.to_string().contains("file"), "{error}"),
        }
    }
}

fn zipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

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

/// The vocabulary's file is written once for each size; tests run beside each other.
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
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        read_all(&bytes);
        read_all(&[b"\x1f\x8b\x08\x00".to_vec(), bytes].concat());
    }

    #[test]
    fn random_characters_of_the_formats(text in "[0-9 :\n.%e-]{0,80}") {
        read_all(text.as_bytes());
        read_all(format!("%%MatrixMarket matrix coordinate real general\n{text}").as_bytes());
    }

    #[test]
    fn files_with_a_byte_changed(which in 0..SEEDS.len(), at: prop::sample::Index, byte: u8) {
        let mut bytes = SEEDS[which].as_bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        read_all(&bytes);
        let mut packed = zipped(SEEDS[which].as_bytes());
        let at = at % packed.len();
        packed[at] = byte;
        read_all(&packed);
    }

    #[test]
    fn files_cut_off(which in 0..SEEDS.len(), at: prop::sample::Index) {
        let bytes = SEEDS[which].as_bytes();
        read_all(&bytes[..at.index(bytes.len())]);
        let packed = zipped(bytes);
        read_all(&packed[..at.index(packed.len())]);
    }

    #[test]
    fn what_is_written_reads_back_the_same(corpus in any_corpus()) {
        let settings = ReadSettings { vocabulary: Some(vocabulary_of(&corpus)), ..ReadSettings::default() };
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
