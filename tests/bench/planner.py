#!/usr/bin/env python3
"""Accuracy of the planner over the public rows: `make bench B=planner`. One JSON line per family, for all dense and all MoE rows, uncalibrated, with one measured run of the same stack
(software version, GPU, precision, model) as anchor, and fitted without the family (what a family that nobody has seen would get)."""
import json, math, os, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from planner_fit import fit
from planner_truth import Planner, points



def at(values, share):
    values = sorted(values)
    return round(100 * values[min(len(values) - 1, int(share * len(values)))], 1) if values else None


def anchored(rows, steps, constants):
    """Error of each row that has others of its stack, planned with each of those as the only anchor; (family, error)."""
    stacks = {}
    for r, x in zip(rows, steps):
        stacks.setdefault(r.stack, []).append((r, x))
    k = {name: value for name, value, _ in constants}
    weight = {moe: k[s] ** 2 / (k[s] ** 2 + k["spread_row"] ** 2) for moe, s in ((False, "spread_dense"), (True, "spread_moe"))}   # as lib/plan/anchor.c
    return [(r, abs(x * (a.truth / y) ** weight[r.moe] / r.truth - 1)) for l in stacks.values() for r, x in l for a, y in l if a is not r]


def summary(name, rows, steps, ratios, without):
    errors = [abs(x / r.truth - 1) for r, x in zip(rows, steps)]
    worst = sorted(zip(errors, rows, steps), key=lambda t: -t[0])[:3]
    return {"bench": "planner", "metric": "step time error, " + name, "unit": "%", "rows": len(rows), "median": at(errors, 0.5), "p90": at(errors, 0.9), "anchored_median": at(ratios, 0.5),
            "anchored_p80": at(ratios, 0.8), "anchored_p90": at(ratios, 0.9), "left_out_median": at(without, 0.5), "left_out_p80": at(without, 0.8), "left_out_p90": at(without, 0.9),
            "worst": [f"{r.id}: {x:.4g} s planned, {r.truth:.4g} s measured" for _, r, x in worst]}


def left_out(planner):
    """{row: error} with constants fitted to all other families."""
    start = {name: value for name, value, fitted in planner.constants if fitted}
    out = {}
    for family in sorted({r.family for r in planner.rows}):
        vector, _ = fit(planner, start, without=family, steps=(0.1, 0.05), rounds=4)
        for r, x in zip(planner.rows, planner.steps(vector)):
            if r.family == family:
                out[r] = abs(x / r.truth - 1)
    return out


def flops(planner):
    """FLOPs per token against the ratio of the rates that a source states: 0 where it counts as we do."""
    cells, errors = planner.raw({}), []
    for r in planner.rows:
        p = r.p
        if p["tokens_per_s_per_gpu"] and p["tflops_per_gpu"] and p["tokens_per_s_per_gpu"] > 1000 and r.family.startswith("nemo") and not p["model"].startswith("gpt_oss"):
            stated = p["tflops_per_gpu"] * 1e12 / p["tokens_per_s_per_gpu"]
            errors.append(abs(cells[r.first][2] / stated - 1))
    return {"bench": "planner", "metric": "FLOPs per token error", "unit": "%", "rows": len(errors), "median": at(errors, 0.5), "p90": at(errors, 0.9)}


def memory(planner):
    """Memory of the fullest rank of rows that state it; rows that ran may not be told that they do not fit by more than the reserve."""
    cells, errors, lines = planner.raw({}), [], []
    for r in planner.rows:
        if not r.p["mem_gb"]:
            continue
        measured = r.p["mem_gb"] * (2 ** 30 / 1e9 if r.p["mem_unit"].startswith("GiB") else 1)
        planned = min(c[1] for c in cells[r.first:r.first + r.n])
        errors.append(abs(planned / measured - 1))
        lines.append(f"{r.id}: {planned:.1f} GB planned, {measured:.1f} GB measured")
    return {"bench": "planner", "metric": "memory error", "unit": "%", "rows": len(errors), "median": at(errors, 0.5), "p90": at(errors, 0.9), "worst": [l for _, l in sorted(zip(errors, lines), reverse=True)]}


def main():
    planner = Planner()
    steps, without = planner.steps(), left_out(planner)
    ratios = anchored(planner.rows, steps, planner.constants)
    groups = [(f, lambda r, f=f: r.family == f) for f in sorted({r.family for r in planner.rows})] + [("all dense", lambda r: not r.moe), ("all MoE", lambda r: r.moe), ("all", lambda r: True)]
    for name, belongs in groups:
        picked = [(r, x) for r, x in zip(planner.rows, steps) if belongs(r)]
        print(json.dumps(summary(name, [r for r, _ in picked], [x for _, x in picked], [e for r, e in ratios if belongs(r)], [without[r] for r, _ in picked])))
    print(json.dumps(flops(planner)))
    print(json.dumps(memory(planner)))
    planner.close()


if __name__ == "__main__":
    main()
