//! Data in each format.

use hyperprior_bugs::data::{Format, read};

fn changed(name: &str, examples: &str, format: Format) {
    super::target(name, examples, 10_000, &|input| {
        let text = String::from_utf8_lossy(input);
        match read(&text, format) {
            Ok(data) => {
                for (name, array) in &data.arrays {
                    assert_eq!(array.shape.iter().product::<usize>(), array.values.len(), "{name}");
                    assert!(array.values.iter().all(|x| !x.is_infinite()), "{name} is not finite");
                }
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    });
}

mod json {
    #[test]
    fn changed() {
        super::changed("data::json::changed", "data.json", super::Format::Json);
    }
}

mod rdump {
    #[test]
    fn changed() {
        super::changed("data::rdump::changed", "", super::Format::RDump);
    }
}

mod csv {
    #[test]
    fn changed() {
        super::changed("data::csv::changed", "", super::Format::Csv);
    }
}

/// Each is short, and each range is within the limit, but together they exceed the memory of a machine.
#[test]
fn too_many_values_are_an_error() {
    for piece in ["rep(1, 60000000), ", "1:60000000, ", "integer(60000000), "] {
        let one = format!("x <- c({}1)", piece.repeat(1000));
        let many: String = (0..1000).map(|i| format!("x{i} <- c({piece}1)\n")).collect();
        for text in [one, many] {
            let error = read(&text, Format::RDump).unwrap_err().to_string();
            assert!(error.contains("more than 1e8 values"), "{error}");
        }
    }
    // No values, repeated very often.
    let error = read("x <- rep(c(), 1e300)", Format::RDump).unwrap_err().to_string();
    assert!(error.contains("a single small number"), "{error}");
}
