//! Training on a GPU, where there is one; otherwise the words with which it is refused.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot be set up has failed, and says what it found"
)]

use hyperprior_def::corpus::bible;
use hyperprior_def::{Device, Family, Layer, Method, Settings, Training};

fn layers(all: &[(Family, usize)]) -> Vec<Layer> {
    all.iter().map(|(family, width)| Layer { family: *family, width: *width }).collect()
}

/// The objective of every epoch, and the bound at the end.
fn trained(settings: &Settings, device: Device) -> (Vec<f64>, f64) {
    let corpus = bible();
    let mut training = Training::new(&corpus, settings).unwrap();
    training.use_device(device).unwrap();
    (0..settings.epochs).for_each(|_| {
        training.run_epoch().unwrap();
    });
    (training.history().to_vec(), training.bound(4))
}

/// Catches a kernel that computes something else than the processor: the objectives of every epoch and the bounds agree as those of
/// different seeds do, and a second run gives the same numbers.
#[test]
fn a_gpu_trains_as_the_processor_does() {
    let corpus = bible();
    let mut training = Training::new(&corpus, &Settings::default()).unwrap();
    if let Err(error) = training.use_device(Device::Cuda(0)) {
        assert!(error.to_string().ends_with("; train on the device `cpu` instead"), "{error}");
        return;
    }
    let (poisson, bernoulli) = (Family::Poisson, Family::Bernoulli);
    let shapes: [&[(Family, usize)]; 5] = [
        &[(poisson, 20)],
        &[(bernoulli, 20)],
        &[(poisson, 150)],
        &[(poisson, 16), (bernoulli, 8)],
        &[(bernoulli, 20), (poisson, 6), (poisson, 3)],
    ];
    for (number, shape) in shapes.into_iter().enumerate() {
        for draws in [1, 4, 8] {
            let settings = Settings::default().method(Method::MeanField).epochs(20).draws(draws).layers(layers(shape));
            let (on_gpu, bound) = trained(&settings, Device::Cuda(0));
            assert_eq!(trained(&settings, Device::Cuda(0)), (on_gpu.clone(), bound), "shape {number}, {draws} draws");
            let on_cpu = [1, 2].map(|seed| trained(&settings.clone().seed(seed), Device::Cpu));
            let first = on_cpu[0].0.clone();
            for (epoch, (a, b)) in on_gpu.iter().zip(&first).enumerate() {
                println!("shape {number}, {draws} draws, epoch {epoch}: {:.4} and {:.4}", a / 1e6, b / 1e6);
            }
            let bounds = on_cpu.map(|(_, bound)| bound);
            println!("shape {number}, {draws} draws, bounds {bound:.0}, on the processor {bounds:.0?}");
            // The first epoch starts from the same parameters and weights.
            let close = if draws == 8 { 0.004 } else { 0.015 };
            assert!((on_gpu[0] / first[0] - 1.0).abs() < close, "shape {number}, {draws} draws");
            let nearest = bounds.map(|other| (bound / other - 1.0).abs()).into_iter().fold(1.0, f64::min);
            assert!(nearest < 0.005, "shape {number}, {draws} draws: {nearest}");
        }
    }
}
