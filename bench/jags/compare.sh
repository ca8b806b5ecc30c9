#!/bin/sh
# hyperprior beside JAGS on the examples with discrete latents. Usage: bench/jags/compare.sh [NAME...] [--seeds N] [--jags-only]
set -eu
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
venv=$root/bench/target/venv
if [ ! -x "$venv/bin/python" ]; then
    python3 -m venv "$venv"
fi
"$venv/bin/python" -c 'import numpy, scipy' 2>/dev/null || "$venv/bin/pip" install --quiet numpy scipy
case " $* " in
    *" --jags-only "*) ;;
    *) (cd "$root" && cargo build --release --package hyperprior-cli) ;;
esac
exec "$venv/bin/python" compare.py --hyperprior "$target/release/hyperprior" "$@"
