//! Training as a whole: it recovers the true topics, gives the same numbers on any number of threads, and resumes from a
//! checkpoint.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use hyperprior_def::heldout::{FitSettings, Holdout, Predictor, unigram};
use hyperprior_def::{Corpus, Error, Family, Layer, Method, Settings, Trained, Training, WeightPosterior, WordCounts};
use hyperprior_math::random::stream;
use rand::RngExt;

/// Documents about one or two of five topics, each with ten terms of its own.
fn made(documents: usize) -> Corpus {
    let mut rng = stream(11, 0, 0, 0);
    let (mut starts, mut terms, mut counts) = (vec![0], Vec::new(), Vec::new());
    for _ in 0..documents {
        let topics: Vec<u32> = (0..2).map(|_| rng.random_range(0..5)).collect();
        for _ in 0..40 {
            terms.push(10 * topics[rng.random_range(0..2)] + rng.random_range(0..10));
            counts.push(1.0);
        }
        starts.push(terms.len());
    }
    let names = (0..documents).map(|d| d.to_string()).collect();
    Corpus::new(starts, terms, counts, names, (0..50).map(|v| format!("w{v}")).collect()).unwrap()
}

fn settings(family: Family, method: Method) -> Settings {
    let layer = |width| Layer { family, width };
    Settings::default().layers(vec![layer(8), layer(3)]).method(method).epochs(40).batch(50)
}

#[test]
fn true_topics_are_recovered() {
    let corpus = made(300);
    let (train, test) = corpus.split(0.2, 1).unwrap();
    let (train, test) = (corpus.subset(&train), corpus.subset(&test));
    for family in [Family::Poisson, Family::Bernoulli, Family::Gamma] {
        for weights in [WeightPosterior::Gamma, WeightPosterior::LogNormal, WeightPosterior::Point] {
            let settings = settings(family, Method::Hvm).weights(weights);
            let mut training = Training::new(&train, &settings).unwrap();
            (0..settings.epochs).for_each(|_| {
                training.run_epoch().unwrap();
            });
            let predictor = Predictor::new(&training, FitSettings::default()).unwrap();
            for holdout in [Holdout::Types, Holdout::Tokens] {
                let found = predictor.heldout(&test, holdout).unwrap();
                let blind = unigram(&train, &test, holdout, 1).unwrap();
                // Given the two topics of a document, a word is one of twenty terms; given nothing, one of fifty.
                assert!(found.perplexity < 26.0 && blind > 45.0, "{family} {weights} {holdout:?}: {found:?} {blind}");
                assert!(found.perplexity_averaged < 26.0, "{family} {weights} {holdout:?}: {found:?}");
            }
        }
    }
}

/// A network trained on some documents infers the topics of others, and its training resumes from a checkpoint.
#[test]
fn a_network_infers_the_topics_of_documents() {
    let corpus = made(400);
    let (train, test) = corpus.split(0.2, 1).unwrap();
    let (train, test) = (corpus.subset(&train), corpus.subset(&test));
    for method in [Method::MeanField, Method::Mixture(2), Method::LowRank(2)] {
        let settings = settings(Family::Poisson, method)
            .layers(vec![Layer { family: Family::Poisson, width: 8 }])
            .amortize(32)
            .weights(WeightPosterior::Point)
            .epochs(150);
        let mut training = Training::new(&train, &settings).unwrap();
        let mut saved = Vec::new();
        for epoch in 0..settings.epochs {
            if epoch == 70 {
                training.save(&mut saved).unwrap();
            }
            training.run_epoch().unwrap();
        }
        let mut resumed = Training::load(&train, saved.as_slice()).unwrap();
        (70..settings.epochs).for_each(|_| {
            resumed.run_epoch().unwrap();
        });
        assert_eq!((training.history(), training.bound(1)), (resumed.history(), resumed.bound(1)));
        let found = Predictor::new(&training, FitSettings::default()).unwrap().heldout(&test, Holdout::Tokens).unwrap();
        assert!(found.perplexity < 27.0, "{method}: {found:?}");
        let mut file = Vec::new();
        training.save_model(None, &mut file).unwrap();
        let trained = Trained::load(file.as_slice()).unwrap();
        let predictor = Predictor::of_trained(&trained, FitSettings::default(), settings.seed).unwrap();
        assert_eq!(predictor.heldout(&test, Holdout::Tokens).unwrap(), found);
    }
}

/// Gaussian latents above each family, with every method.
#[test]
fn continuous_layers_recover_them_too() {
    let corpus = made(300);
    let (train, test) = corpus.split(0.2, 1).unwrap();
    let (train, test) = (corpus.subset(&train), corpus.subset(&test));
    let methods = [Method::MeanField, Method::LowRank(2), Method::Mixture(2), Method::Flow(1, 2)];
    for (lowest, method) in [Family::Gamma, Family::Poisson, Family::Bernoulli, Family::Gamma].into_iter().zip(methods)
    {
        let layer = |family, width| Layer { family, width };
        let layers = vec![layer(lowest, 8), layer(Family::Gaussian, 3), layer(Family::Gamma, 2)];
        let settings = settings(lowest, method).layers(layers);
        let mut training = Training::new(&train, &settings).unwrap();
        (0..settings.epochs).for_each(|_| {
            training.run_epoch().unwrap();
        });
        let found = Predictor::new(&training, FitSettings::default()).unwrap().heldout(&test, Holdout::Types).unwrap();
        assert!(found.perplexity < 28.0 && found.elbo_per_word < 0.0, "{lowest} {method}: {found:?}");
    }
}

#[test]
fn the_bound_rises_and_is_the_same_on_any_number_of_threads() {
    let corpus = made(100);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut training = Training::new(&corpus, &settings(Family::Poisson, Method::LowRank(2))).unwrap();
            let before = training.bound(1);
            let epochs: Vec<f64> = (0..8).map(|_| training.run_epoch().unwrap().objective).collect();
            let after = training.bound(1);
            assert!(after > before + 100.0, "{before} {after}");
            (epochs, after, training.activations(3))
        })
    };
    assert_eq!(run(1), run(2));
    assert_eq!(run(1), run(3));
}

#[test]
fn a_resumed_training_gives_the_same_numbers() {
    resumes(WordCounts::Poisson);
    resumes(WordCounts::NegativeBinomial);
}

fn resumes(words: WordCounts) {
    let corpus = made(60);
    let mut settings = settings(Family::Poisson, Method::LowRank(2)).weights(WeightPosterior::LogNormal).words(words);
    settings.layers.push(Layer { family: Family::Gamma, width: 2 });
    let mut whole = Training::new(&corpus, &settings).unwrap();
    let mut saved = Vec::new();
    for epoch in 0..settings.epochs {
        if epoch == 23 {
            whole.save(&mut saved).unwrap();
        }
        whole.run_epoch().unwrap();
    }
    let mut resumed = Training::load(&corpus, saved.as_slice()).unwrap();
    assert_eq!(resumed.epoch(), 23);
    (23..settings.epochs).for_each(|_| {
        resumed.run_epoch().unwrap();
    });
    let (mut one, mut other) = (Vec::new(), Vec::new());
    whole.save(&mut one).unwrap();
    resumed.save(&mut other).unwrap();
    assert!(one == other);
    // Files that are not checkpoints, or are damaged, are refused.
    let reason = |bytes: &[u8], corpus: &Corpus| match Training::load(corpus, bytes) {
        Err(Error::Checkpoint { reason }) => reason,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was taken"),
    };
    assert_eq!(reason(&saved[..saved.len() - 1], &corpus), "it ends too early");
    assert_eq!(reason(b"not a training at all, only words", &corpus), "it is not a file of this kind");
    assert_eq!(reason(&saved, &made(61)), "it belongs to another corpus, or another split of it");
    for at in (0..saved.len()).step_by(saved.len() / 97 + 1) {
        let mut damaged = saved.clone();
        damaged[at] ^= 4;
        reason(&damaged, &corpus);
    }
}

#[test]
fn invalid_settings_are_refused() {
    let corpus = made(10);
    let refused = |settings: Settings| Training::new(&corpus, &settings).map(|_| ()).unwrap_err().to_string();
    let base = Settings::default;
    for (settings, field) in [
        (base().layers(vec![]), "layers"),
        (base().batch(0), "batch"),
        (base().draws(3), "draws"),
        (base().local_steps(0), "local_steps"),
        (base().local_size(f32::NAN), "local_size"),
        (base().background(1.5), "background"),
        (base().activity(1e9), "activity"),
        (base().gamma_shape(-1.0), "gamma_shape"),
        (base().layers(vec![Layer { family: Family::Gaussian, width: 5 }]), "layers"),
    ] {
        let said = refused(settings);
        assert!(said.contains(&format!("`{field}`")), "{said}");
    }
    let training = Training::new(&corpus, &base()).unwrap();
    assert!(Predictor::new(&training, FitSettings::default().draws(0)).is_err());
}

/// Catches Conway–Maxwell counts whose fit ends below the Poisson fit that it starts from.
#[test]
fn conway_maxwell_counts_improve_on_poisson_ones() {
    let bible = hyperprior_def::corpus::bible();
    let (train, test) = bible.split(0.1, 1).unwrap();
    let (train, test) = (bible.subset(&train), bible.subset(&test));
    let layers = vec![Layer { family: Family::Poisson, width: 60 }];
    let settings = Settings::default().layers(layers).method(Method::MeanField).epochs(10);
    let of = |method: Method| -> f64 {
        let settings = settings.clone().method(method);
        let mut training = Training::new(&train, &settings).unwrap();
        (0..settings.epochs).for_each(|_| {
            training.run_epoch().unwrap();
        });
        let predictor = Predictor::new(&training, FitSettings::default()).unwrap();
        predictor.heldout(&test, Holdout::Types).unwrap().elbo_per_word
    };
    let poisson = of(Method::MeanField);
    for method in [Method::ConwayMaxwell, Method::ConwayMaxwellMixture(2)] {
        let found = of(method);
        assert!(found > poisson + 0.02, "{method}: {found}, and {poisson} with Poisson counts");
    }
}

/// Until its points are spread, a mixture is its first point.
#[test]
fn a_mixture_that_has_not_begun_is_mean_field() {
    let corpus = made(200);
    let bounds = [Method::MeanField, Method::Mixture(8)].map(|method| {
        let mut training = Training::new(&corpus, &settings(Family::Bernoulli, method)).unwrap();
        (0..10).for_each(|_| {
            training.run_epoch().unwrap();
        });
        training.bound(64) / corpus.tokens_len() as f64
    });
    assert!((bounds[0] - bounds[1]).abs() < 0.01, "{bounds:?}");
}

/// What `hvm` chooses is the training with that method; where it is mean-field, to the last digit. Catches a choice that leaves a trace
/// in the training, and one that a resumed training makes differently.
#[test]
fn hvm_is_the_method_that_it_chooses() {
    let corpus = made(300);
    for family in [Family::Poisson, Family::Bernoulli, Family::Gamma] {
        let settings = settings(family, Method::Hvm).epochs(12);
        let mut whole = Training::new(&corpus, &settings).unwrap();
        let mut files: Vec<Vec<u8>> = Vec::new();
        for _ in 0..settings.epochs {
            assert_eq!(whole.is_due(), whole.epoch() == 6);
            assert_eq!(whole.choice().is_some(), whole.epoch() > 6);
            let mut file = Vec::new();
            whole.save(&mut file).unwrap();
            files.push(file);
            whole.run_epoch().unwrap();
        }
        let choice = whole.choice().unwrap().clone();
        assert_eq!((choice.documents, choice.method), (30, whole.settings().method));
        assert_eq!(whole.wanted(), settings);
        let candidates: Vec<Method> = choice.candidates.iter().map(|candidate| candidate.method).collect();
        let expected = match family {
            Family::Poisson => vec![Method::Mixture(8), Method::ConwayMaxwell],
            Family::Bernoulli => vec![Method::Mixture(8)],
            _ => vec![Method::LowRank(8)],
        };
        assert_eq!(candidates, expected);
        assert!(choice.candidates.iter().all(|one| one.annealed.is_some() == (family != Family::Gamma)));
        // Before the choice, at it, and after it.
        for epoch in [3, 6, 9] {
            let mut resumed = Training::load(&corpus, files[epoch].as_slice()).unwrap();
            for _ in epoch..12 {
                resumed.run_epoch().unwrap();
            }
            assert_eq!((whole.history(), whole.choice()), (resumed.history(), resumed.choice()));
            assert_eq!(whole.bound(1), resumed.bound(1));
        }
        if choice.method == Method::MeanField {
            let mut other = Training::new(&corpus, &settings.clone().method(Method::MeanField)).unwrap();
            for _ in 0..12 {
                other.run_epoch().unwrap();
            }
            assert_eq!((whole.history(), whole.bound(1)), (other.history(), other.bound(1)));
        }
    }
}

/// A choice that is stopped leaves the training where it was. With few documents, or few epochs, there is nothing to choose.
#[test]
fn a_choice_can_be_stopped_or_idle() {
    let corpus = made(300);
    let settings = settings(Family::Poisson, Method::Hvm).epochs(4);
    let mut training = Training::new(&corpus, &settings).unwrap();
    (0..2).for_each(|_| {
        training.run_epoch().unwrap();
    });
    let before = training.bound(1);
    let mut asked = Vec::new();
    training
        .choose(&mut |method| {
            asked.push(method);
            asked.len() < 5
        })
        .unwrap();
    assert_eq!((asked[0], asked.last()), (Method::MeanField, Some(&Method::Mixture(8))));
    assert!(training.is_due() && training.choice().is_none() && training.bound(1) == before);
    for (documents, epochs) in [(150, 4), (300, 3)] {
        let corpus = made(documents);
        let mut training = Training::new(&corpus, &settings.clone().epochs(epochs)).unwrap();
        (0..epochs).for_each(|_| {
            training.run_epoch().unwrap();
        });
        let choice = training.choice().unwrap();
        assert_eq!((choice.method, choice.documents, choice.candidates.len()), (Method::MeanField, 0, 0));
    }
}

/// With one layer of counts, dependence cannot improve the bound; what moves is the location. Catches a gain that is measured from the
/// old location.
#[test]
fn counts_in_one_layer_keep_no_dependence() {
    let corpus = made(300);
    let layers = vec![Layer { family: Family::Poisson, width: 8 }];
    let settings = settings(Family::Poisson, Method::LowRank(8)).layers(layers).epochs(4);
    let mut training = Training::new(&corpus, &settings).unwrap();
    (0..4).for_each(|_| {
        training.run_epoch().unwrap();
    });
    assert_eq!(training.dependent_len(), Some(0));
    let mean_field = Training::new(&corpus, &settings.clone().method(Method::MeanField)).unwrap();
    assert_eq!(mean_field.dependent_len(), None);
}
