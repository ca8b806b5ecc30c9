#!/bin/sh
# Hidden words: one layer of counts beside scikit-learn's LDA. Usage: bench/def/lda.sh DOCS VOCAB TOPICS [PASSES]
set -eu
docs=$(realpath "$1") vocab=$(realpath "$2")
topics=$3 passes=${4:-20}
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
venv=target/venv
if [ ! -x "$venv/bin/python" ]; then
    python3 -m venv "$venv"
fi
"$venv/bin/python" -c 'import sklearn' 2>/dev/null || "$venv/bin/pip" install --quiet scikit-learn
cargo build --release --package hyperprior-bench-def
"$target/release/heldout" "$docs" "$vocab" "$topics" data/lda
"$venv/bin/python" def/lda.py data/lda "$topics" "$passes"
