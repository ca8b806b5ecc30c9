"""Compares hyperprior's log joint with JAGS's at points that hyperprior chooses; exits with 1 where they differ.

log_density.py MODEL --data DATA.{json,R} [--inits INITS.{json,R}] [--modules mix] [--points 20]
               [--hyperprior PROGRAM] [--tolerance 1e-5]

The latents are handed to JAGS as data, so that its total deviance (module dic) is -2 log joint. JAGS prints six digits:
the tolerance cannot be set below 5e-6.
"""

import argparse
import math
import sys

import jags
import points


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--data", required=True)
    parser.add_argument("--inits", help="a start from which JAGS will initialize; only to learn extents")
    parser.add_argument("--modules", nargs="*", default=[], help="JAGS's modules that the model needs, beyond dic")
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--hyperprior", default="hyperprior", help="the program, with arguments if it needs them")
    parser.add_argument("--tolerance", type=float, default=1e-5, help="relative, on max(1, |log joint|)")
    arguments = parser.parse_args()
    if arguments.tolerance < 5e-6:
        parser.error("JAGS prints six digits: take a tolerance of 5e-6 or more")
    data = jags.load(arguments.data)
    inits = jags.load(arguments.inits) if arguments.inits else None
    try:
        extents = jags.extents(arguments.model, data, inits, arguments.modules)
    except jags.Refused:
        # Enough wherever the last element of each array is a latent itself.
        print(
            "JAGS cannot initialize (--inits would help): extents are taken from the largest indices", file=sys.stderr
        )
        extents = None
    worst, compared = 0.0, 0
    for point in points.from_hyperprior(arguments.hyperprior, arguments.model, arguments.data, arguments.points):
        ours = point["log_joint"]
        if ours is None or not math.isfinite(ours):
            print(f"skipped: hyperprior's log joint is {ours}", file=sys.stderr)
            continue
        try:
            theirs = points.jags_log_joint(arguments.model, data, point["values"], extents, arguments.modules)
        except jags.Refused as refused:
            print(f"JAGS refuses where hyperprior has {ours:.10g}: {refused}")
            return 1
        error = abs(ours - theirs) / max(1.0, abs(theirs))
        worst, compared = max(worst, error), compared + 1
        if error > arguments.tolerance:
            print(f"hyperprior {ours:.10g}, JAGS {theirs:.6g} at {point['values']}")
    print(
        f"{arguments.model}: {compared} points, largest relative difference {worst:.1e} (at most {arguments.tolerance:g})"
    )
    return 0 if compared and worst <= arguments.tolerance else 1


if __name__ == "__main__":
    sys.exit(main())
