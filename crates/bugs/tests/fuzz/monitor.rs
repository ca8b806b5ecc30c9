//! Monitors.

use hyperprior::posterior::Monitor;

const NAMES: [&str; 14] = [
    "a",
    "tau",
    "p[1]",
    "p[2]",
    "p[3]",
    "m[1,1]",
    "m[1,2]",
    "m[2,1]",
    "m[2,2]",
    "z[1]",
    "z[2]",
    "z[3]",
    "odd[",
    "x[18446744073709551615]",
];

#[test]
fn changed() {
    super::target("monitor::changed", "", 20_000, &|input| {
        let text = String::from_utf8_lossy(input);
        match Monitor::parse_list(&text) {
            Ok(monitors) => {
                for monitor in monitors {
                    match monitor.places(&NAMES) {
                        Ok(places) => assert!(!places.is_empty() && places.iter().all(|place| *place < NAMES.len())),
                        Err(error) => assert!(error.to_string().contains('`'), "{error}"),
                    }
                }
            }
            Err(error) => assert!(error.to_string().contains("cannot be selected"), "{error}"),
        }
    });
}
