//! A corpus in each format, plain and compressed.

use super::{Corpus as Inputs, target, zipped};
use hyperprior_def::Corpus;
use hyperprior_def::corpus::{Format, ReadSettings, TextSettings, read_from};
use std::path::{Path, PathBuf};

const FORMATS: [Format; 4] = [Format::LdaC, Format::Uci, Format::MatrixMarket, Format::Text];
const WORDS: [&str; 22] = [
    "%%MatrixMarket matrix coordinate real general\n",
    "integer",
    "pattern",
    "symmetric",
    "array",
    "%",
    "\n",
    "\n\n",
    " ",
    "\t",
    ":",
    ".",
    "-",
    "+",
    "0",
    "1",
    "1:1",
    "1 1 1\n",
    "e",
    "\r\n",
    "ash",
    "\u{301}",
];

/// Reads in every format, and with the format recognised by the reader.
fn read_all(bytes: &[u8]) {
    let text = TextSettings::default().least_documents(1).largest_share(1.0);
    for format in FORMATS.map(Some).into_iter().chain([None]) {
        let settings = ReadSettings::default().format(format).text(text.clone());
        match read_from("file", bytes, &settings) {
            Ok((corpus, warnings)) => {
                // The constructor must accept what a reader builds without checks.
                let again = Corpus::new(
                    corpus.starts().to_vec(),
                    corpus.terms().to_vec(),
                    corpus.counts().to_vec(),
                    corpus.names().to_vec(),
                    corpus.vocabulary().to_vec(),
                );
                assert_eq!(again.unwrap(), corpus);
                assert!((0..corpus.documents_len()).all(|d| !corpus.document(d).0.is_empty()));
                warnings.iter().for_each(|warning| assert!(!warning.to_string().is_empty()));
            }
            Err(error) => assert!(error.to_string().contains("file"), "{error}"),
        }
    }
}

fn changed(name: &str) {
    let folder = name.split("::").nth(1).unwrap_or_default();
    target(name, Inputs::default(), folder, &WORDS, 2000, &|input| {
        read_all(input);
        read_all(&zipped(input));
    });
}

mod ldac {
    #[test]
    fn changed() {
        super::changed("counts::ldac::changed");
    }
}

mod uci {
    #[test]
    fn changed() {
        super::changed("counts::uci::changed");
    }
}

mod matrix_market {
    #[test]
    fn changed() {
        super::changed("counts::matrix_market::changed");
    }
}

mod text {
    #[test]
    fn changed() {
        super::changed("counts::text::changed");
    }
}

/// Compressed files, changed after compression.
#[test]
fn compressed() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inputs");
    let plain = Inputs::read(&here, "").inputs;
    let inputs = Inputs { inputs: plain.iter().map(|input| zipped(input)).collect() };
    target("counts::compressed", inputs, "compressed", &[], 2000, &|input| read_all(input));
}

/// The file that names the terms, together with counts of some of them.
#[test]
fn vocabulary() {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzzed-vocabulary-{}", std::process::id()));
    target("counts::vocabulary", Inputs::default(), "vocabulary", &["\n", "ash"], 2000, &|input| {
        std::fs::write(&file, input).unwrap();
        let settings = ReadSettings::default().vocabulary(file.clone());
        match read_from("docs.ldac", &b"2 0:1 2:3\n1 4:2\n"[..], &settings) {
            Ok((corpus, _)) => assert!(corpus.terms_len() > 4),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    });
}
