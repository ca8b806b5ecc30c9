#!/bin/sh
# The flow bench: hyperprior beside JAX on one job. Usage: bench/flow.sh [ROUNDS]
set -eu
cd "$(dirname "$0")"
target=${CARGO_TARGET_DIR:-target}
venv=target/venv
if [ ! -x "$venv/bin/python" ]; then
    python3 -m venv "$venv"
fi
"$venv/bin/python" -c 'import jax, numpy' 2>/dev/null || "$venv/bin/pip" install --quiet numpy 'jax[cpu]'
cargo build --release --package hyperprior-bench-flow
"$venv/bin/python" flow/inputs.py data
JAX_PLATFORMS=cpu "$venv/bin/python" flow/compare.py data "$target/release/hyperprior-bench-flow" "${1:-5}"
