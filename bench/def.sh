#!/bin/sh
# A step of topics: hyperprior beside JAX and PyTorch. Usage: bench/def.sh [ROUNDS [DOCS VOCAB]]
# DOCS is a corpus as LDA-C, VOCAB its terms; without them one is made up.
set -eu
rounds=${1:-5}
if [ $# -ge 3 ]; then
    docs=$(realpath "$2") vocab=$(realpath "$3")
    set -- "$docs" "$vocab"
else
    set --
fi
cd "$(dirname "$0")"
target=${CARGO_TARGET_DIR:-target}
venv=target/venv
if [ ! -x "$venv/bin/python" ]; then
    python3 -m venv "$venv"
fi
"$venv/bin/python" -c 'import jax, numpy, scipy, torch' 2>/dev/null ||
    "$venv/bin/pip" install --quiet numpy scipy 'jax[cpu]' torch
cargo build --release --package hyperprior-bench-def
"$venv/bin/python" def/inputs.py data/def "$@"
JAX_PLATFORMS=cpu "$venv/bin/python" def/compare.py data/def "$target/release/step" "$rounds"
