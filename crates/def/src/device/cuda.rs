//! Training on an NVIDIA GPU.
//!
//! The corpus, the documents' parameters and the words' weights stay on the device. A minibatch sends the numbers of its documents and
//! the weights between layers, and gets their derivatives back. The kernels are compiled at run time, so that a build needs no CUDA.

use super::kernels::{Kernels, SEGMENTS, THREADS, blocks, check_libraries, failed, launch, launch_with};
use super::{DeviceStep, check};
use crate::burst::constant;
use crate::corpus::Corpus;
use crate::error::{Error, Result};
use crate::settings::Settings;
use crate::shape::{Family, Shape};
use crate::weights::{LayerWeights, TermWeights, WeightPosterior};
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, PushKernelArg};
use hyperprior_math::single::{LANES, Lanes};
use rayon::prelude::*;
use std::sync::Arc;

/// The words that a block processes at a time, as the kernels have it.
const TILE: usize = 64;
/// The shared memory that every device has, in bytes.
const SHARED_MAX: usize = 48 * 1024;

/// A layer as the kernels see it: its width, its first latent, whether it is binary, and where its weights begin.
type DeviceLayer = [i32; 4];

/// A training on a device.
pub(crate) struct CudaTraining {
    stream: Arc<CudaStream>,
    kernels: Kernels,
    layers: Vec<DeviceLayer>,
    /// The numbers in a row of latents, and in one of the lowest layer; the documents' own numbers, which may be followed by others.
    row: usize,
    lowest: usize,
    local_len: usize,
    draws: usize,
    local_steps: i32,
    seed: u64,
    posterior: WeightPosterior,
    prior: [f32; 2],
    rate: Vec<f32>,
    sharpness: f32,
    /// The words of each document, and what they add to the bound whatever the latents are.
    lens: Vec<u64>,
    constants: Vec<f64>,
    terms_len: usize,
    on_device: OnDevice,
}

/// What is in the device's memory.
struct OnDevice {
    layers: CudaSlice<i32>,
    starts: CudaSlice<u64>,
    terms: CudaSlice<u32>,
    counts: CudaSlice<f32>,
    background: CudaSlice<f32>,
    lambda: CudaSlice<f32>,
    shape: CudaSlice<f32>,
    rate: CudaSlice<f32>,
    weights: CudaSlice<f32>,
    sums: CudaSlice<f32>,
    explained: CudaSlice<u64>,
    means: CudaSlice<f64>,
    batch: Option<OfBatch>,
}

/// Results of a minibatch of at most so many documents and words.
struct OfBatch {
    documents: usize,
    words: usize,
    z: CudaSlice<f32>,
    d_above: CudaSlice<f32>,
    inverse: CudaSlice<f32>,
    rows: CudaSlice<f32>,
    values: CudaSlice<f32>,
}

impl std::fmt::Debug for CudaTraining {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("CudaTraining").field("row", &self.row).finish_non_exhaustive()
    }
}

fn flat(lanes: &[Lanes]) -> Vec<f32> {
    lanes.iter().flat_map(|lanes| lanes.0).collect()
}

fn lanes(flat: &[f32]) -> Vec<Lanes> {
    flat.chunks_exact(LANES).map(|own| Lanes(std::array::from_fn(|i| own[i]))).collect()
}

/// The layers as the kernels see them.
fn device_layers(shape: &Shape) -> Vec<DeviceLayer> {
    let mut link = 0;
    (0..shape.layers().len())
        .map(|l| {
            let (layer, tiles) = (shape.layers()[l], shape.tiles(l));
            let own = link;
            link += (shape.above(l).1 + 1) * tiles.len() * LANES;
            let is_binary = i32::from(layer.family == Family::Bernoulli);
            [layer.width as i32, (tiles.start * LANES) as i32, is_binary, own as i32]
        })
        .collect()
}

/// Where each of the parts with these lengths starts, and where the last ends.
fn starts_of(lens: impl Iterator<Item = u64>) -> Vec<u64> {
    let ends = lens.scan(0, |sum, len| {
        *sum += len;
        Some(*sum)
    });
    std::iter::once(0).chain(ends).collect()
}

impl OnDevice {
    fn new(
        stream: &Arc<CudaStream>,
        (corpus, lens): (&Corpus, &[u64]),
        (shape, settings, layers): (&Shape, &Settings, &[DeviceLayer]),
        terms: &TermWeights,
        local: &[Lanes],
    ) -> Result<Self> {
        let lowest = shape.tiles(0).len() * LANES;
        let own = local.chunks_exact(settings.method.parameters_len(shape));
        let lambda: Vec<f32> = own.flat_map(|own| flat(&own[..shape.tiles_len()])).collect();
        let background: Vec<f32> = (0..terms.terms_len()).map(|v| terms.background(v)).collect();
        let ([of_shape, of_rate], seen) = (terms.arrays(), terms.seen());
        let upload = |values: &[f32]| stream.clone_htod(values).map_err(failed);
        Ok(Self {
            layers: stream.clone_htod(&layers.concat()).map_err(failed)?,
            starts: stream.clone_htod(&starts_of(lens.iter().copied())).map_err(failed)?,
            terms: stream.clone_htod(corpus.terms()).map_err(failed)?,
            counts: upload(corpus.counts())?,
            background: upload(&background)?,
            lambda: upload(&lambda)?,
            shape: upload(&flat(of_shape))?,
            rate: upload(&flat(of_rate))?,
            weights: upload(&flat(seen.weights))?,
            sums: upload(&flat(seen.sums))?,
            explained: stream.alloc_zeros(terms.terms_len() * lowest).map_err(failed)?,
            means: stream.alloc_zeros(SEGMENTS as usize * lowest).map_err(failed)?,
            batch: None,
        })
    }
}

impl CudaTraining {
    pub(crate) fn new(
        number: usize,
        corpus: &Corpus,
        shape: &Shape,
        settings: &Settings,
        terms: &TermWeights,
        local: &[Lanes],
    ) -> Result<Self> {
        check(settings, shape)?;
        check_libraries()?;
        let (row, lowest) = (shape.tiles_len() * LANES, shape.tiles(0).len() * LANES);
        let draws = settings.draws;
        if shared_len(row, draws) > SHARED_MAX {
            let reason = format!(
                "{} latents with {draws} draws are too many for the device; fewer draws need less memory",
                shape.latents_len()
            );
            return Err(Error::Device { reason });
        }
        let context = CudaContext::new(number).map_err(failed)?;
        let kernels = Kernels::new(&context, draws)?;
        let stream = context.default_stream();
        let layers = device_layers(shape);
        let documents = corpus.documents_len();
        let lens: Vec<u64> = (0..documents).map(|d| corpus.document(d).0.len() as u64).collect();
        let (prior, posterior) = terms.prior();
        let on_device = OnDevice::new(&stream, (corpus, &lens), (shape, settings, &layers), terms, local)?;
        let [_, rate] = terms.arrays();
        Ok(Self {
            kernels,
            stream,
            layers,
            row,
            lowest,
            local_len: settings.method.parameters_len(shape),
            draws,
            local_steps: settings.local_steps as i32,
            seed: settings.seed,
            posterior,
            prior: [prior.shape, prior.rate],
            rate: flat(rate),
            sharpness: terms.sharpness(),
            constants: (0..documents).into_par_iter().map(|d| constant(&[], corpus.document(d))).collect(),
            lens,
            terms_len: terms.terms_len(),
            on_device,
        })
    }

    /// Runs one minibatch; returns the sum of its documents' bounds, and the derivatives along the weights between layers, scaled up to
    /// the corpus.
    pub(crate) fn run_batch(&mut self, step: &DeviceStep) -> Result<(f64, Vec<Vec<Lanes>>)> {
        let DeviceStep { batch, layer_weights, .. } = *step;
        let places = starts_of(batch.iter().map(|d| self.lens[*d]));
        self.make_room(batch.len(), places[batch.len()] as usize)?;
        let numbers: Vec<u32> = batch.iter().map(|d| *d as u32).collect();
        let (numbers, places) = (self.upload(&numbers)?, self.upload(&places)?);
        let links: Vec<f32> = layer_weights.iter().flat_map(|weights| flat(weights.drawn())).collect();
        let links = self.upload(&links)?;
        self.documents(step, &numbers, &places, &links)?;
        self.explain(batch.len(), &numbers, &places)?;
        let scale = self.lens.len() as f32 / batch.len() as f32;
        let (activity, d_links) = self.derivatives(batch.len(), layer_weights, scale)?;
        for (rate, activity) in self.rate.iter_mut().zip(activity) {
            *rate += step.forgetting * (self.prior[1] + activity - *rate);
        }
        self.update_weights(step, scale)?;
        let Some(of_batch) = &self.on_device.batch else { return Ok((0.0, d_links)) };
        let values = self.stream.clone_dtoh(&of_batch.values).map_err(failed)?;
        let value = |(d, value): (&usize, &f32)| f64::from(*value) + self.constants[*d];
        Ok((batch.iter().zip(&values).map(value).sum(), d_links))
    }

    /// Copies the weights and the documents' parameters back.
    pub(crate) fn download(&mut self, terms: &mut TermWeights, local: &mut [Lanes]) -> Result<()> {
        let shape = self.stream.clone_dtoh(&self.on_device.shape).map_err(failed)?;
        let lambda = self.stream.clone_dtoh(&self.on_device.lambda).map_err(failed)?;
        let [of_shape, of_rate] = terms.arrays_mut();
        of_shape.copy_from_slice(&lanes(&shape));
        of_rate.copy_from_slice(&lanes(&self.rate));
        terms.restore(self.sharpness);
        let own = local.par_chunks_exact_mut(self.local_len).zip(lambda.par_chunks_exact(self.row));
        own.for_each(|(own, lambda)| {
            for (own, lambda) in own.iter_mut().zip(lambda.chunks_exact(LANES)) {
                own.0.copy_from_slice(lambda);
            }
        });
        Ok(())
    }

    fn upload<T: cudarc::driver::DeviceRepr>(&self, values: &[T]) -> Result<CudaSlice<T>> {
        self.stream.clone_htod(values).map_err(failed)
    }

    /// Memory for a minibatch of so many documents and words.
    fn make_room(&mut self, documents: usize, words: usize) -> Result<()> {
        if self.on_device.batch.as_ref().is_some_and(|own| own.documents >= documents && own.words >= words) {
            return Ok(());
        }
        // Minibatches differ in their words.
        let (words, drawn) = (words + words / 4, documents * self.draws * self.row);
        self.on_device.batch = None;
        let zeros = |len: usize| self.stream.alloc_zeros::<f32>(len.max(1)).map_err(failed);
        self.on_device.batch = Some(OfBatch {
            documents,
            words,
            z: zeros(drawn)?,
            d_above: zeros(if self.layers.len() > 1 { drawn } else { 1 })?,
            inverse: zeros(words * self.draws)?,
            rows: zeros(documents * (self.lowest + self.row))?,
            values: zeros(documents)?,
        });
        Ok(())
    }

    fn documents(
        &mut self,
        step: &DeviceStep,
        numbers: &CudaSlice<u32>,
        places: &CudaSlice<u64>,
        links: &CudaSlice<f32>,
    ) -> Result<()> {
        let on = &mut self.on_device;
        let Some(of_batch) = &mut on.batch else { return Ok(()) };
        let (layers_len, row, lowest) = (self.layers.len() as i32, self.row as i32, self.lowest as i32);
        let mut run = self.stream.launch_builder(&self.kernels.documents);
        run.arg(&on.layers).arg(&layers_len).arg(&row).arg(&lowest);
        run.arg(numbers).arg(places).arg(&on.starts).arg(&on.terms).arg(&on.counts);
        run.arg(&on.weights).arg(&on.background).arg(&on.sums).arg(links);
        run.arg(&mut on.lambda).arg(&self.seed).arg(&step.step).arg(&self.local_steps).arg(&step.size);
        run.arg(&mut of_batch.z).arg(&mut of_batch.d_above).arg(&mut of_batch.inverse);
        run.arg(&mut of_batch.rows).arg(&mut of_batch.values);
        let threads = (self.lowest as u32).next_multiple_of(32).max(THREADS);
        launch_with(&mut run, (step.batch.len() as u32, 1), threads, shared_len(self.row, self.draws))
    }

    fn explain(&mut self, documents: usize, numbers: &CudaSlice<u32>, places: &CudaSlice<u64>) -> Result<()> {
        let on = &mut self.on_device;
        let Some(of_batch) = &on.batch else { return Ok(()) };
        let (row, lowest, width) = (self.row as i32, self.lowest as i32, self.layers[0][0]);
        let mut run = self.stream.launch_builder(&self.kernels.explain);
        run.arg(&row).arg(&lowest).arg(&width).arg(numbers).arg(places).arg(&on.starts).arg(&on.terms);
        run.arg(&on.counts).arg(&on.weights).arg(&of_batch.z).arg(&of_batch.inverse).arg(&mut on.explained);
        launch(&mut run, (documents as u32, 1), self.draws * width as usize * size_of::<f32>())
    }

    /// The sums of the rows of a matrix, by segments.
    fn sum_rows(&self, matrix: &CudaSlice<f32>, rows: usize, columns: usize) -> Result<Vec<f32>> {
        let zeros = |len: usize| self.stream.alloc_zeros::<f32>(len).map_err(failed);
        let (mut partial, mut total) = (zeros(SEGMENTS as usize * columns)?, zeros(columns)?);
        let of = |from: &CudaSlice<f32>, rows: u64, segments: u32, to: &mut CudaSlice<f32>| {
            let columns_len = columns as i32;
            let mut run = self.stream.launch_builder(&self.kernels.sum_rows);
            run.arg(from).arg(&rows).arg(&columns_len).arg(to);
            launch(&mut run, (blocks(columns), segments), 0)
        };
        of(matrix, rows as u64, SEGMENTS, &mut partial)?;
        of(&partial, u64::from(SEGMENTS), 1, &mut total)?;
        self.stream.clone_dtoh(&total).map_err(failed)
    }

    /// The latents' activity, and the derivatives along the weights between layers.
    fn derivatives(
        &self,
        documents: usize,
        layer_weights: &[LayerWeights],
        scale: f32,
    ) -> Result<(Vec<f32>, Vec<Vec<Lanes>>)> {
        let Some(of_batch) = &self.on_device.batch else { return Ok(Default::default()) };
        let scaled = |values: Vec<f32>| values.into_iter().map(|x| scale * x).collect::<Vec<f32>>();
        let sums = scaled(self.sum_rows(&of_batch.rows, documents, self.lowest + self.row)?);
        let (activity, d_bias) = sums.split_at(self.lowest);
        let mut d_links = Vec::with_capacity(layer_weights.len());
        for (l, weights) in layer_weights.iter().enumerate() {
            let [width, child, ..] = self.layers[l];
            let (parents, padded) = (weights.parents_len(), (width as usize).next_multiple_of(LANES));
            let mut all = Vec::with_capacity(weights.len() * LANES);
            if parents > 0 {
                let mut partial =
                    self.stream.alloc_zeros::<f32>(SEGMENTS as usize * parents * padded).map_err(failed)?;
                let (row, parent) = (self.row as i32, self.layers[l + 1][1]);
                let (padded_len, documents_len) = (padded as i32, documents as u64);
                let mut run = self.stream.launch_builder(&self.kernels.link_gradient);
                run.arg(&row).arg(&child).arg(&width).arg(&padded_len).arg(&parent).arg(&documents_len);
                run.arg(&of_batch.z).arg(&of_batch.d_above).arg(&mut partial);
                launch(&mut run, (parents as u32, SEGMENTS), 0)?;
                all.extend(scaled(self.sum_rows(&partial, SEGMENTS as usize, parents * padded)?));
            }
            all.extend_from_slice(&d_bias[child as usize..child as usize + padded]);
            d_links.push(lanes(&all));
        }
        Ok((activity.to_vec(), d_links))
    }

    /// Moves the words' weights.
    fn update_weights(&mut self, step: &DeviceStep, scale: f32) -> Result<()> {
        let on = &mut self.on_device;
        self.stream.memcpy_htod(&self.rate, &mut on.rate).map_err(failed)?;
        self.sharpness = step.sharpness;
        let (len, terms) = (self.terms_len * self.lowest, self.terms_len as u64);
        let (all, lowest, width) = (len as u64, self.lowest as i32, self.layers[0][0]);
        let mut run = self.stream.launch_builder(&self.kernels.update);
        run.arg(&all).arg(&self.prior[0]).arg(&scale).arg(&step.forgetting).arg(&mut on.explained).arg(&mut on.shape);
        launch(&mut run, (blocks(len), 1), 0)?;
        let posterior = match self.posterior {
            WeightPosterior::Gamma => 0,
            WeightPosterior::LogNormal => 1,
            WeightPosterior::Point => 2,
        };
        let mut run = self.stream.launch_builder(&self.kernels.refresh);
        run.arg(&all).arg(&lowest).arg(&width).arg(&posterior).arg(&step.sharpness);
        run.arg(&on.shape).arg(&on.rate).arg(&mut on.weights);
        launch(&mut run, (blocks(len), 1), 0)?;
        let mut run = self.stream.launch_builder(&self.kernels.sum_means);
        run.arg(&on.shape).arg(&terms).arg(&lowest).arg(&mut on.means);
        launch(&mut run, (blocks(self.lowest), SEGMENTS), 0)?;
        let segments = SEGMENTS as i32;
        let mut run = self.stream.launch_builder(&self.kernels.total_means);
        run.arg(&lowest).arg(&width).arg(&segments).arg(&on.means).arg(&on.rate).arg(&mut on.sums);
        launch(&mut run, (blocks(self.lowest), 1), 0)
    }
}

/// The shared memory of a block that fits a document, in bytes.
fn shared_len(row: usize, draws: usize) -> usize {
    let of_tile = (draws + 2) * TILE;
    ((4 + 2 * draws) * row + of_tile + 32) * size_of::<f32>()
}
