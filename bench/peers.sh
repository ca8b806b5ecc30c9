#!/bin/sh
# hyperprior beside JAGS, Stan, PyMC, nutpie and NumPyro: models that ship with the project, and three larger ones with simulated data.
# Usage: bench/peers.sh [NAME...] [--programs P,Q] [--seeds N]
set -eu
cd "$(dirname "$0")"
root=$(cd .. && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
venv=target/peers-venv
if [ ! -x "$venv/bin/python" ]; then
    python3 -m venv "$venv"
fi
"$venv/bin/python" -c 'import funsor, nutpie, numpyro, pymc, stan' 2>/dev/null ||
    "$venv/bin/pip" install --quiet pymc nutpie numpyro funsor pystan setuptools
(cd "$root" && cargo build --release --package hyperprior-cli)
exec "$venv/bin/python" peers/compare.py --hyperprior "$target/release/hyperprior" "$@"
