//! Starting values of a model with latents of every kind.

use hyperprior_bugs::data::{Format, read};
use hyperprior_bugs::{Array, Data, Options, compile};

const MODEL: &str = "model {
    a ~ dnorm(0, 1) tau ~ dgamma(1, 1) T(0.01, 50) c ~ dcat(p[]) n ~ dpois(3)
    p[1:3] ~ ddirch(ones[]) m[1:2, 1:2] ~ dwish(R[,], 3)
    for (i in 1:3) { z[i] ~ dunif(0, 5) y[i] ~ dnorm(a + z[i] + m[1, 2] + c + n, tau) }
}";

#[test]
fn changed() {
    let data = Data::default()
        .with("ones", Array::vector(vec![1.0; 3]))
        .with("y", Array::vector(vec![1.0, 2.0, 0.5]))
        .with("R", Array { shape: vec![2, 2], values: vec![1.0, 0.0, 0.0, 1.0] });
    assert!(compile(MODEL, "model", &data, &Options::default()).is_ok());
    super::target("init::changed", "", 2000, &|input| {
        let text = String::from_utf8_lossy(input);
        let format = if text.starts_with('{') { Format::Json } else { Format::RDump };
        let Ok(init) = read(&text, format) else { return };
        match compile(MODEL, "model", &data, &Options { init: Some(init), ..Options::default() }) {
            Ok(compiled) => {
                let model = compiled.graph.model().expect("a model for any starting values");
                if let Err(error) = model.start() {
                    assert!(error.to_string().contains("cannot start"), "{error}");
                }
            }
            Err(errors) => assert!(!errors.is_empty(), "errors without a message"),
        }
    });
}
