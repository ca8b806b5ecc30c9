//! Data in each of their formats.

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
