//! The readers' messages about files that they cannot read.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use flate2::Compression;
use flate2::write::GzEncoder;
use hyperprior_def::corpus::{Format, ReadSettings, StopWords, TextSettings, read, read_from};
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("faults")
}

fn file(name: &str, contents: &[u8]) -> PathBuf {
    let path = folder().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, contents).unwrap();
    path
}

fn fault(name: &str, contents: &[u8], settings: &ReadSettings) -> String {
    let result = read_from(name, contents, settings);
    let message = result.map_or_else(|e| e.to_string(), |read| format!("no error: {read:?}"));
    message.replace(&format!("{}/", folder().display()), "")
}

fn path_fault(path: &Path, settings: &ReadSettings) -> String {
    let result = read(path, settings);
    let message = result.map_or_else(|e| e.to_string(), |read| format!("no error: {read:?}"));
    message.replace(&folder().display().to_string(), "FOLDER")
}

fn faults(name: &str, files: &[&str], settings: &ReadSettings) -> String {
    files.iter().map(|contents| fault(name, contents.as_bytes(), settings)).collect::<Vec<_>>().join("\n")
}

fn with_vocabulary(name: &str, contents: &str) -> ReadSettings {
    ReadSettings::default().vocabulary(file(name, contents.as_bytes()))
}

#[test]
fn in_lda_c() {
    let files = [
        "",
        "0\n0\n",
        "1 0:1\ntwo 0:1\n",
        "1 0:1\n2 0:1 x:1\n",
        "1 0:1\n1 7\n",
        "2 0:1 7:-1\n",
        "1 3:0.5\n",
        "1 3:one\n",
        "1 3:\n",
        "1 3:inf\n",
        "1 3:20000000\n",
        "2 3:16777216 3:1\n",
        "1 0:1\n3 0:1 2:1\n",
        "1 -1:1\n",
        "1 4294967296:1\n",
        "1 99999999999999999999:1\n",
        "1 0:1\n1 \u{1}\u{2}:1\n",
    ];
    insta::assert_snapshot!(faults("docs.ldac", &files, &ReadSettings::default()));
}

#[test]
fn of_a_vocabulary() {
    let said = |vocabulary: &str| fault("docs.ldac", b"1 0:1\n3 0:1 1:2 3:1\n", &with_vocabulary("v.txt", vocabulary));
    let messages = ["ash\nelm\n", "ash\nelm\nfir\nelm\n", "ash\n\nelm\nfir\noak", "\n", ""].map(said).join("\n");
    let binary = ReadSettings::default().vocabulary(file("b.txt", b"ash\nel\xffm\n"));
    let absent = ReadSettings::default().vocabulary(folder().join("absent.txt"));
    let names = ReadSettings::default().names(file("names.txt", b"first\nsecond\n"));
    let more = [binary, absent, names].map(|settings| fault("docs.ldac", b"1 0:1\n", &settings)).join("\n");
    insta::assert_snapshot!(format!("{messages}\n{more}"));
}

#[test]
fn in_uci() {
    let files = [
        "",
        "2\n3\n",
        "2\n3\nfour\n",
        "2 3\n4\n",
        "2\n3\n2\n1 1 1\n",
        "2\n3\n1\n1 1 1\n2 1 1\n",
        "2\n3\n1\n3 1 1\n",
        "2\n3\n1\n1 4 1\n",
        "2\n3\n1\n0 1 1\n",
        "2\n3\n1\n1 0 1\n",
        "2\n3\n1\n1 1\n",
        "2\n3\n1\n1\n",
        "2\n3\n1\n1 1 1 1\n",
        "2\n3\n1\n1 1 -2\n",
        "2\n3\n1\n1 1 2.5\n",
        "2\n3\n1\n1 1 x\n",
        "2\n3\n0\n",
        "2\n3000000000\n0\n",
        "5000000000\n3\n0\n",
    ];
    let mut messages = faults("docword.uci", &files, &ReadSettings::default());
    messages += "\n";
    messages += &fault("docword.uci", b"2\n3\n1\n1 1 1\n", &with_vocabulary("v2.txt", "ash\nelm\nfir\noak\n"));
    insta::assert_snapshot!(messages);
}

#[test]
fn in_matrix_market() {
    let banner = "%%MatrixMarket matrix coordinate integer general\n";
    let with_banner = ["", "2 3\n", "2 3 1 1\n", "2 x 1\n", "2 3 2\n1 1 1\n", "2 3 1\n1 1 1.25\n", "% only a remark\n"];
    let mut messages: Vec<String> = with_banner
        .iter()
        .map(|rest| fault("a.mtx", format!("{banner}{rest}").as_bytes(), &ReadSettings::default()))
        .collect();
    messages.push(faults(
        "a.mtx",
        &[
            "1 1 1\n1 1 1\n",
            "%%MatrixMarket matrix array real general\n2 2\n",
            "%%MatrixMarket matrix coordinate complex general\n",
            "%%MatrixMarket matrix coordinate real symmetric\n",
            "%%MatrixMarket matrix\n",
            "%%MatrixMarket matrix coordinate pattern general\n2 3 1\n1 1 1\n",
        ],
        &ReadSettings::default(),
    ));
    let turned = format!("{banner}3 2 1\n1 1 1\n");
    messages.push(fault("a.mtx", turned.as_bytes(), &with_vocabulary("v3.txt", "ash\nelm\nfir\n")));
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn in_text() {
    let mut messages = vec![faults("a.txt", &["", "\n\n", "the\nand 1990\n", "ash\nelm\n"], &ReadSettings::default())];
    let strict = TextSettings::default().shortest_document(9);
    messages.push(faults("a.txt", &["ash\nash\nelm\n"], &ReadSettings::default().text(strict)));
    for junk in [&b"ash\nel\0m\n"[..], b"ash\nsmall \xe9lm\n", b"\xff\xfea\0s\0h\0"] {
        messages.push(fault("a.txt", junk, &ReadSettings::default()));
    }
    messages.push(fault("a.txt", b"ash\nash\n", &with_vocabulary("v4.txt", "ash\n")));
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn of_the_format() {
    let messages = [
        fault("corpus", b"some words\n", &ReadSettings::default()),
        fault("corpus.docx", b"PK\x03\x04\0\0", &ReadSettings::default()),
        fault("corpus", b"", &ReadSettings::default()),
        fault("corpus", b"7 words\n", &ReadSettings::default()),
        fault("corpus", b"7 10:30 the meeting\n", &ReadSettings::default()),
        fault("corpus", b"0\n0\n1 3\n", &ReadSettings::default()),
        fault("corpus.txt", b"ash", &ReadSettings::default().format(Format::Folder)),
    ];
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn of_compressed_files() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    for i in 0..3000_u32 {
        writeln!(encoder, "2 {}:1 {}:{}", i, i * 7919 % 6007 + 3000, i % 17 + 1).unwrap();
    }
    let whole = encoder.finish().unwrap();
    let cut = &whole[..whole.len() / 2];
    let mut damaged = whole.clone();
    let end = damaged.len() - 6;
    damaged[end] ^= 0x55;
    let messages =
        [cut, &whole[..whole.len() - 3], &whole[..5], &damaged, b"\x1f\x8b\x99\x99\x99\x99\x99\x99\x99\x99\x99\x99"]
            .map(|bytes| fault("docs.ldac.gz", bytes, &ReadSettings::default()));
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn of_files_that_are_not_there() {
    let absent = folder().join("absent.ldac");
    let error = read(&absent, &ReadSettings::default()).unwrap_err();
    assert_eq!(error.io_kind(), Some(ErrorKind::NotFound));
    let counts = file("mixed/docs.ldac.gz", b"1 0:1\n").parent().unwrap().to_path_buf();
    file("mixed/vocab.txt", b"ash\n");
    let none = folder().join("none");
    fs::create_dir_all(&none).unwrap();
    let stop_words = TextSettings::default().stop_words(StopWords::File(absent.clone()));
    let messages = [
        path_fault(&absent, &ReadSettings::default()),
        path_fault(&file("a.txt", b"ash"), &ReadSettings::default().text(stop_words)),
        path_fault(&counts, &ReadSettings::default()),
        path_fault(&counts, &ReadSettings::default().format(Format::LdaC)),
        path_fault(&none, &ReadSettings::default()),
    ];
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn of_settings() {
    let plain = TextSettings::default;
    let messages = [
        plain().shortest_word(0),
        plain().least_documents(0),
        plain().largest_share(0.0),
        plain().largest_share(f64::NAN),
        plain().most_terms(0),
        plain().shortest_document(0),
        plain().shortest_document(5).longest_document(4),
    ]
    .map(|text| fault("a.txt", b"ash\nash", &ReadSettings::default().text(text)));
    insta::assert_snapshot!(messages.join("\n"));
}
