//! The readers: the same corpus from each format, and counts from text.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use flate2::Compression;
use flate2::write::GzEncoder;
use hyperprior_def::Corpus;
use hyperprior_def::corpus::{Format, ReadSettings, StopWords, TextSettings, Warning, read, read_from, words};
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

/// A temporary file of this test.
fn file(name: &str, contents: &[u8]) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("read").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, contents).unwrap();
    path
}

fn zipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn small() -> Corpus {
    let vocabulary = ["ash", "birch", "cedar", "elm"].map(String::from).to_vec();
    let names = ["1", "2", "3"].map(String::from).to_vec();
    Corpus::new(vec![0, 2, 3, 6], vec![0, 2, 1, 0, 1, 2], vec![1.0, 3.0, 2.0, 1.0, 1.0, 7.0], names, vocabulary)
        .unwrap()
}

fn written(write: impl Fn(&mut Vec<u8>) -> io::Result<()>) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes).unwrap();
    bytes
}

fn text(text: &'static str, settings: TextSettings) -> (Corpus, Vec<Warning>) {
    let settings = ReadSettings::default().text(settings);
    read_from("a.txt", text.as_bytes(), &settings).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn every_format_plain_and_compressed() {
    let corpus = small();
    let vocabulary = file("vocab.txt", &written(|out| corpus.write_vocabulary(out)));
    let settings = ReadSettings::default().vocabulary(vocabulary);
    for (name, bytes) in [
        ("a.ldac", written(|out| corpus.write_ldac(out))),
        ("a.uci", written(|out| corpus.write_uci(out))),
        ("a.mtx", written(|out| corpus.write_matrix_market(out))),
    ] {
        assert_eq!(read(file(name, &bytes), &settings).unwrap(), (corpus.clone(), vec![]), "{name}");
        assert_eq!(read(file(&format!("{name}.gz"), &zipped(&bytes)), &settings).unwrap().0, corpus, "{name}.gz");
        // The contents decide if the name does not, and a compressed file need not be called .gz.
        assert_eq!(read(file(&format!("{name}.dat"), &zipped(&bytes)), &settings).unwrap().0, corpus, "{name}.dat");
        assert_eq!(read(file(&format!("{name}.txt"), &bytes), &settings).unwrap().0, corpus, "{name}.txt");
        let windows = [
            b"\xef\xbb\xbf",
            &bytes.iter().flat_map(|&b| if b == b'\n' { vec![13, 10] } else { vec![b] }).collect::<Vec<_>>()[..],
        ]
        .concat();
        assert_eq!(read(file(&format!("windows-{name}"), &windows), &settings).unwrap().0, corpus, "windows {name}");
    }
}

#[test]
fn documents_without_words_are_left_out_and_names_stay_with_their_documents() {
    let names = file("names", b"first\nsecond\nthird\nfourth\n\n");
    let settings = ReadSettings::default().names(names);
    let left_out = Warning::EmptyDocuments { dropped: 2, seen: 4 };
    for (name, contents) in [
        ("e.ldac", "0\n1 1:2\n\n2 2:0 0:1\n"),
        ("e.uci", "4\n3\n3\n4 1 1\n2 2 2\n4 3 0\n"),
        ("e.mtx", "%%MatrixMarket matrix coordinate real general\n% a remark\n\n4 3 2\n2 2 2e0\n4 1 1.0\n"),
    ] {
        let (corpus, warnings) = read_from(name, contents.as_bytes(), &settings).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(corpus.names(), ["second", "fourth"]);
        assert_eq!(corpus.document(0), (&[1][..], &[2.0][..]));
        assert_eq!(corpus.document(1), (&[0][..], &[1.0][..]));
        assert_eq!(corpus.vocabulary(), ["0", "1", "2"]);
        assert_eq!(warnings, [Warning::NumberedTerms { terms_len: 3 }, left_out.clone()]);
    }
    let (corpus, _) = read_from("unnamed", "0\n1 1:2\n".as_bytes(), &ReadSettings::default()).unwrap();
    assert_eq!(corpus.names(), ["2"]);
}

#[test]
fn matrices_by_columns_and_patterns() {
    let contents = "%%matrixmarket MATRIX coordinate Pattern general\n3 3 5\n1 1\n3 1\n1 3\n2 3\n3 3\n";
    let (corpus, _) = read_from("p.mtx", contents.as_bytes(), &ReadSettings::default()).unwrap();
    assert_eq!(corpus.terms(), [0, 2, 2, 0, 2]);
    assert_eq!(corpus.starts(), [0, 2, 3, 5]);
}

#[test]
fn a_term_twice_in_a_document_is_added_up() {
    let (corpus, _) = read_from("d.ldac", "3 4:1 0:2 4:5\n".as_bytes(), &ReadSettings::default()).unwrap();
    assert_eq!(corpus.document(0), (&[0, 4][..], &[2.0, 6.0][..]));
}

#[test]
fn words_of_a_text() {
    let cases = [
        ("Well-known THINGS", "well known things"),
        ("don't Don’t o'clock 'quoted' dogs' James's rock'n'roll", "dont dont oclock quoted dogs james rocknroll"),
        ("'s s' S", "s s s"),
        ("1990s h2o 3,141 x² ok", "ok"),
        ("Größe İstanbul Ωμέγα слово 東京", "größe i\u{307}stanbul ωμέγα слово 東京"),
        ("e\u{301}tude co\u{ad}operate", "e\u{301}tude cooperate"),
        ("a_b/c.d", "a b c d"),
        ("", ""),
    ];
    for (text, wanted) in cases {
        let mut found = Vec::new();
        words(text, |word| found.push(word.to_string()));
        assert_eq!(found.join(" "), wanted, "{text}");
    }
}

#[test]
fn limits_on_the_vocabulary() {
    let lines = "ash birch cedar\nash birch birch elm\nash fir\nash birch fir\n";
    let open = TextSettings::default().least_documents(1).largest_share(1.0);
    assert_eq!(text(lines, open.clone()).0.vocabulary(), ["ash", "birch", "cedar", "elm", "fir"]);
    let (corpus, warnings) = text(lines, TextSettings::default());
    assert_eq!(corpus.vocabulary(), ["birch", "fir"]);
    assert_eq!(corpus.document(1), (&[0][..], &[2.0][..]));
    assert_eq!(warnings, [Warning::Vocabulary { kept: 2, seen: 5 }]);
    // Ties are broken alphabetically.
    assert_eq!(text(lines, open.clone().most_terms(3)).0.vocabulary(), ["ash", "birch", "fir"]);
    assert_eq!(text(lines, open.most_terms(4)).0.vocabulary(), ["ash", "birch", "cedar", "fir"]);
}

#[test]
fn limits_on_documents() {
    let lines = "ash\n\nash elm fir\nthe\nash elm elm fir fir\n";
    let settings =
        TextSettings::default().least_documents(1).largest_share(1.0).shortest_document(2).longest_document(4);
    let (corpus, warnings) = text(lines, settings);
    assert_eq!(corpus.names(), ["3"]);
    let messages: Vec<String> = warnings.iter().map(Warning::to_string).collect();
    assert_eq!(
        messages,
        [
            "3 of 3 distinct words are in the vocabulary",
            "documents left out because they have no words: 2 of 5",
            "documents left out because of their length: 1 too short and 1 too long, of 5"
        ]
    );
}

#[test]
fn own_stop_words_or_none() {
    let lines = "the Ash isn't here\nthe Ash isn't there\n";
    let of = |stop_words| {
        text(lines, TextSettings::default().stop_words(stop_words).largest_share(1.0)).0.vocabulary().join(" ")
    };
    assert_eq!(of(StopWords::English), "ash");
    assert_eq!(of(StopWords::None), "ash isnt the");
    assert_eq!(of(StopWords::File(file("stop", b"Isn't\nASH\n"))), "the");
}

#[test]
fn a_folder_of_text() {
    for (name, contents) in [
        ("folder/b.txt", &b"ash birch\nash"[..]),
        ("folder/a/c.txt.gz", &zipped(b"ash elm")),
        ("folder/empty.txt", b"\n"),
        ("folder/picture.png", b"\x89PNG\0"),
        ("folder/.hidden", b"\0"),
    ] {
        file(name, contents);
    }
    let folder = file("folder/b.txt", b"ash birch\nash").parent().unwrap().to_path_buf();
    let text = TextSettings::default().least_documents(1).largest_share(1.0);
    let (corpus, warnings) = read(&folder, &ReadSettings::default().text(text)).unwrap();
    assert_eq!(corpus.names(), [&format!("a{}c.txt.gz", std::path::MAIN_SEPARATOR), "b.txt"]);
    assert_eq!(corpus.vocabulary(), ["ash", "birch", "elm"]);
    assert_eq!(corpus.document(1), (&[0, 1][..], &[2.0, 1.0][..]));
    assert_eq!(warnings[0], Warning::OtherFiles { left_out: 1 });
    assert_eq!(warnings[2], Warning::EmptyDocuments { dropped: 1, seen: 3 });
}

#[test]
fn settings_are_a_file() {
    let written = "format = \"matrix_market\"\n[text]\nstop_words = { file = \"a\" }\nmost_terms = 3\n";
    let settings: ReadSettings = toml::from_str(written).unwrap();
    assert_eq!(settings.format, Some(Format::MatrixMarket));
    assert_eq!(settings.text.stop_words, StopWords::File("a".into()));
    let again: ReadSettings = toml::from_str(&toml::to_string(&settings).unwrap()).unwrap();
    assert_eq!(again, settings);
    assert_eq!(
        toml::from_str::<ReadSettings>("[text]\nstop_words = \"none\"").unwrap().text.stop_words,
        StopWords::None
    );
    assert!(toml::from_str::<ReadSettings>("tex = 1").is_err());
}
