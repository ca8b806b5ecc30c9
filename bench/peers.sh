#!/bin/sh
# hyperprior beside JAGS, Stan, PyMC and NumPyro on models that ship with the project.
# Usage: bench/peers.sh [NAME...] [--programs P,Q] [--seeds N]
set -eu
cd "$(dirname "$0")"
root=$(cd .. && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
venv=target/peers-venv
if [ ! -x "$venv/bin/python" ]; then
    python3 -m venv "$venv"
fi
"$venv/bin/python" -c 'import funsor, numpyro, pymc, stan' 2>/dev/null ||
    "$venv/bin/pip" install --quiet pymc numpyro funsor pystan setuptools
(cd "$root" && cargo build --release --package hyperprior-cli)
exec "$venv/bin/python" peers/compare.py --hyperprior "$target/release/hyperprior" "$@"
