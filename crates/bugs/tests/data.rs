//! The three readers: the same data from each, and their errors.

use hyperprior_bugs::data::{DataError, Format, read};
use std::path::Path;

fn values(text: &str, format: Format, name: &str) -> (Vec<usize>, Vec<String>) {
    let data = read(text, format).unwrap_or_else(|e| panic!("{e}"));
    let array = &data.arrays[name];
    (array.shape.clone(), array.values.iter().map(f64::to_string).collect())
}

fn fault(text: &str, format: Format) -> String {
    read(text, format).map_or_else(|e| e.to_string(), |data| format!("no error: {data:?}"))
}

#[test]
fn a_matrix_is_the_same_in_every_format() {
    let wanted = (vec![2, 3], ["1", "2", "NaN", "4", "5", "6"].map(String::from).to_vec());
    assert_eq!(values(r#"{"x": [[1, 2, null], [4, 5, 6]]}"#, Format::Json, "x"), wanted);
    assert_eq!(values("x <- structure(c(1, 4, 2, 5, NA, 6), .Dim = c(2, 3))", Format::RDump, "x"), wanted);
    assert_eq!(values("list(x = structure(.Data = c(1, 2, NA, 4, 5, 6), .Dim = c(2, 3)))", Format::RDump, "x"), wanted);
}

#[test]
fn arrays_are_reordered_from_column_major_to_row_major() {
    let (shape, found) = values("x <- structure(1:12, .Dim = as.integer(c(2, 3, 2)))", Format::RDump, "x");
    assert_eq!(shape, [2, 3, 2]);
    assert_eq!(found, ["1", "7", "3", "9", "5", "11", "2", "8", "4", "10", "6", "12"].map(String::from));
}

#[test]
fn r_dumps_are_read() {
    let text = "`a` <- 27L\n\"b\" <-\nc(1, -2.5e-1, NA, 3:5)\n# a remark\nc.d = as.integer(c(1, 2)); e <- 3:1\n\
                f <- structure(c(a = 1, b = 2), .Names = c(\"a\", \"b, c)\"))\ng <- rep(0, 3)\nh <- c()\nT <- TRUE\n\
                \".RNG.name\" <- \"base::Wichmann-Hill\"\n.RNG.seed <- 3";
    let data = read(text, Format::RDump).unwrap();
    assert_eq!(data.arrays.keys().collect::<Vec<_>>(), ["T", "a", "b", "c.d", "e", "f", "g", "h"]);
    assert_eq!(data.arrays["a"].shape, Vec::<usize>::new());
    assert_eq!(data.arrays["b"].values[..2], [1.0, -0.25]);
    assert_eq!(data.arrays["b"].values[3..], [3.0, 4.0, 5.0]);
    assert_eq!(data.arrays["e"].values, [3.0, 2.0, 1.0]);
    assert_eq!(data.arrays["f"].values, [1.0, 2.0]);
    assert_eq!(data.arrays["g"].values, [0.0; 3]);
    assert_eq!(data.arrays["h"].shape, [0]);
}

#[test]
fn json_takes_booleans_and_scalars() {
    let data = read(r#"{"N": 2, "up": [true, false], "none": []}"#, Format::Json).unwrap();
    assert_eq!(data.arrays["N"].shape, Vec::<usize>::new());
    assert_eq!(data.arrays["up"].values, [1.0, 0.0]);
    assert_eq!(data.arrays["none"].shape, [0]);
}

#[test]
fn csv_columns_and_levels() {
    let data = read("y, group,x\n1,b,0.5\nNA,a,\n3,b,-1e3\n", Format::Csv).unwrap();
    assert_eq!(data.arrays["group"].values, [2.0, 1.0, 2.0]);
    assert!(data.arrays["y"].values[1].is_nan() && data.arrays["x"].values[1].is_nan());
    assert_eq!(data.notes, ["column `group` is text, coded by level: 1 = a, 2 = b"]);
}

#[test]
fn the_extension_determines_the_format() {
    assert_eq!(Format::of_path(Path::new("a/b.JSON")), Ok(Format::Json));
    assert_eq!(Format::of_path(Path::new("b.data.R")), Ok(Format::RDump));
    assert_eq!(Format::of_path(Path::new("b.csv")), Ok(Format::Csv));
    assert!(matches!(Format::of_path(Path::new("b.xlsx")), Err(DataError::UnknownFormat { .. })));
}

#[test]
fn faults_in_json() {
    let faults = [
        r#"{"y": [[1, 2], [3]]}"#,
        r#"{"y": [[1, 2], 3]}"#,
        r#"{"y": [1, [2]]}"#,
        r#"{"y": [[], 2]}"#,
        "{\"y\": 1,\n \"y\": 2}",
        "{} {}",
        "{\"y\":\n [1, NA]}",
        r#"{"y": ["NA"]}"#,
        r#"{"y": {"a": 1}}"#,
        "[1, 2]",
        "{\"y\": [1, 2}",
    ]
    .map(|text| fault(text, Format::Json))
    .join("\n");
    insta::assert_snapshot!(faults);
}

#[test]
fn faults_in_r() {
    let faults = [
        "N <- 3\ny <- c(1, 2",
        "y <- structure(c(1, 2, 3), .Dim = c(2, 2))",
        "y <- c(1, two)",
        "y <- 1\ny <- 2",
        "y 1",
        "<- 3",
        "y <- c(1, Inf)",
        "y <- \"text\"",
        "list(y = 1) z <- 2",
        "y <- 1:99999999999",
        "y <- rep(1, c(1, 2))",
        "y <- data.frame(1)",
    ]
    .map(|text| fault(text, Format::RDump))
    .join("\n");
    insta::assert_snapshot!(faults);
}

#[test]
fn faults_in_csv() {
    let faults =
        ["a,b\n1,2\n3\n", "a,b\n1,2\n3,four\n", "a,a\n1,2\n", ""].map(|text| fault(text, Format::Csv)).join("\n");
    insta::assert_snapshot!(faults);
}
