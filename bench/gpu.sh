#!/bin/sh
# Training of topics on an NVIDIA GPU: that it agrees with the processor, and the time of a minibatch. Usage: bench/gpu.sh
# Needs a GPU, its driver and NVRTC (libnvrtc, part of CUDA); the build needs none of them.
set -eu
cd "$(dirname "$0")/.."
cargo test --release --package hyperprior-def --features cuda --test device -- --nocapture
cargo run --release --package hyperprior-def --features cuda --example device -- cuda
cargo run --release --package hyperprior-def --features cuda --example device -- cpu 100 8000 110 8
