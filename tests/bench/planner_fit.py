#!/usr/bin/env python3
"""Fits the planner's constants to all public rows at once: planner_fit.py [--leave FAMILY] prints
values for lib/plan/constants.c and the error before and after.

Coordinate search with shrinking steps from the values of the library; the error is the mean of
sqrt(e^2 + 0.05^2) + e^2, e = ln(planned / measured), each family weighted by the root of its size,
so that neither the largest family nor a single odd row decides. Bounds keep every constant where
its meaning allows. Nothing is random: the same rows give the same constants.
"""
import math, os, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from planner_truth import Planner

# lowest, expected and highest value. What is expected comes from what a constant means, not from
# these rows: it decides where few rows speak.
RANGES = {
    "sustained": (0.9, 1.0, 1.25),
    "gemm_use": (0.6, 0.9, 1.0),
    "fp8_use": (0.4, 0.9, 1.1),
    "kernel_s": (1e-6, 5e-6, 15e-6),
    "attention_use": (0.3, 0.9, 1.3),
    "triton_attention": (0.4, 0.8, 1.0),
    "ring_attention": (0.3, 0.8, 1.0),
    "eager_passes": (1.0, 3.0, 6.0),
    "permute_passes": (4.0, 20.0, 32.0),
    "quantize_passes": (0.3, 4.0, 12.0),
    "host_dense_s": (3e-4, 3e-3, 6e-3),
    "host_moe_s": (1e-3, 9e-3, 3e-2),
    "host_narrow": (1.0, 1.3, 2.0),
    "host_expert_s": (1e-4, 8e-4, 3e-3),
    "nic_use": (0.4, 0.8, 0.95),
    "a2a_nic_use": (0.2, 0.8, 1.0),
    "scaleup_use": (0.4, 0.7, 0.95),
    "p2p_exposed": (0.1, 0.2, 1.0),
    "dp_contention": (0.02, 0.4, 1.0),
    "fsdp_contention": (0.02, 0.4, 1.0),
    "ring_step_s": (2e-7, 2e-6, 2e-5),
}
# in the expected values: what a constant that is off by e costs, against the rows' error
BELIEF = 0.005


def error(planner, vector, without=None):
    sizes, total, weight = {}, 0.0, 0.0
    for r in planner.rows:
        sizes[r.family] = sizes.get(r.family, 0) + 1
    for r, x in zip(planner.rows, planner.steps(vector)):
        if r.family == without:
            continue
        w = 1 / math.sqrt(sizes[r.family])
        e = math.log(x / r.truth)
        total += w * (math.sqrt(e * e + 0.05**2) + e * e)
        weight += w
    return total / weight + BELIEF * sum(
        math.log(v / RANGES[name][1]) ** 2 for name, v in vector.items()
    )


def fit(planner, without=None, steps=(0.2, 0.1, 0.05, 0.02), rounds=12):
    vector = {name: expected for name, (_, expected, _) in RANGES.items()}
    best = error(planner, vector, without)
    for step in steps:
        for _ in range(rounds):
            before = best
            for name in vector:
                low, _, high = RANGES[name]
                for factor in (1 + step, 1 / (1 + step)):
                    value = min(max(vector[name] * factor, low), high)
                    e = (
                        error(planner, {**vector, name: value}, without)
                        if value != vector[name]
                        else best
                    )
                    if e < best:
                        best, vector[name] = e, value
                        break
            if before - best < 1e-5:
                break
    return vector, best


def main():
    planner = Planner()
    start = {name: value for name, value, fitted in planner.constants if fitted}
    missing = set(start) ^ set(RANGES)
    if missing:
        sys.exit(f"planner_fit: ranges and fitted constants differ: {sorted(missing)}")
    without = sys.argv[2] if sys.argv[1:2] == ["--leave"] else None
    vector, best = fit(planner, without)
    print(f"error {error(planner, start, without):.4f} -> {best:.4f}")
    for name, value in vector.items():
        print(f"{name} {value:.4g}" + (" (bound)" if value in RANGES[name][::2] else ""))
    planner.close()


if __name__ == "__main__":
    main()
