#!/bin/sh
# The tape bench: hyperprior beside JAX on one job. Usage: bench/tape.sh [ROUNDS]
# PYTHON names an interpreter that has JAX; without it one is made.
set -eu
cd "$(dirname "$0")"
target=${CARGO_TARGET_DIR:-target}
if [ -z "${PYTHON:-}" ]; then
    PYTHON=target/venv/bin/python
    [ -x "$PYTHON" ] || python3 -m venv target/venv
    "$PYTHON" -c 'import jax, numpy' 2>/dev/null || target/venv/bin/pip install --quiet numpy 'jax[cpu]'
fi
cargo build --release --package hyperprior-bench-tape
"$PYTHON" tape/compare.py data/tape "$target/release/hyperprior-bench-tape" "${1:-5}"
