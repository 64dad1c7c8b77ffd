#!/usr/bin/env python3
"""Accuracy of the planner over the public rows: `make bench B=planner`. One JSON line per family,
for all dense and all MoE rows: uncalibrated; with measured runs of the same stack (software
version, GPU, precision, model) as anchors, and of the model with other software; and both fitted
without the family (what a family that nobody has seen would get)."""
import json, os, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from planner_fit import fit
from planner_truth import Planner


def at(values, share):
    values = sorted(values)
    return (
        round(100 * values[min(len(values) - 1, int(share * len(values)))], 1) if values else None
    )


class Anchored:
    """Errors of rows that have others of their stack, by lib/plan/anchor.c: planned with one of
    them (each in turn, together as heavy as one row), with all of them, and with those of the
    same model on the same GPU by other software; and how often the error bar that the plan
    states holds."""

    def __init__(self, planner, steps):
        self.one, self.all, self.other, self.bars, self.loose = {}, {}, {}, {}, {}
        k = {name: value for name, value, _ in planner.constants}
        ratio = {r: r.truth / x for r, x in zip(planner.rows, steps)}
        for r, x in zip(planner.rows, steps):
            bar = k["error_moe_pct" if r.moe else "error_dense_pct"] / 100
            self.loose[r] = [(abs(x / r.truth - 1), bar)]

            def error(runs):
                factor, left = planner.anchored(r, [(a, ratio[a]) for a in runs])
                return abs(x * factor / r.truth - 1), left * bar

            mates = [a for a in planner.rows if a is not r and a.stack == r.stack]
            others = [
                a for a in planner.rows if a.stack[1:] == r.stack[1:] and a.stack[0] != r.stack[0]
            ]
            if mates:
                self.one[r] = [error([a]) for a in mates]
                self.all[r] = [error(mates)]
            if others:
                self.other[r] = [error(others)]

    @staticmethod
    def quantile(errors, share):
        """errors: row -> [(error, bar)]; every row weighs the same."""
        values = sorted((e, 1 / len(l)) for l in errors.values() for e, _ in l)
        total, so_far = sum(w for _, w in values), 0
        for e, w in values:
            so_far += w
            if so_far >= share * total:
                return round(100 * e, 1)
        return None

    @staticmethod
    def within(errors):
        """Share of errors, in %, that are inside the bar stated with them."""
        shares = [sum(e <= bar for e, bar in l) / len(l) for l in errors.values()]
        return round(100 * sum(shares) / len(shares)) if shares else None

    def words(self, name, rows):
        out = {}
        for word, errors in (
            ("anchored", self.one),
            ("anchored_all", self.all),
            ("anchored_other_software", self.other),
        ):
            of = {r: l for r, l in errors.items() if r in rows}
            out.update(
                {
                    f"{name}{word}_rows": len(of),
                    f"{name}{word}_median": self.quantile(of, 0.5),
                    f"{name}{word}_p80": self.quantile(of, 0.8),
                    f"{name}{word}_p90": self.quantile(of, 0.9),
                    f"{name}{word}_within_bar": self.within(of),
                }
            )
        return out


def summary(name, rows, steps, without, anchored, anchored_without):
    errors = [abs(steps[r] / r.truth - 1) for r in rows]
    left = [abs(without[r] / r.truth - 1) for r in rows]
    worst = sorted(zip(errors, rows), key=lambda t: -t[0])[:3]
    return {
        "bench": "planner",
        "metric": "step time error, " + name,
        "unit": "%",
        "rows": len(rows),
        "median": at(errors, 0.5),
        "p90": at(errors, 0.9),
        "left_out_median": at(left, 0.5),
        "left_out_p80": at(left, 0.8),
        "left_out_p90": at(left, 0.9),
        "left_out_within_bar": Anchored.within({r: anchored_without.loose[r] for r in rows}),
        **anchored.words("", set(rows)),
        **anchored_without.words("left_out_", set(rows)),
        "worst": [f"{r.id}: {steps[r]:.4g} s planned, {r.truth:.4g} s measured" for _, r in worst],
    }


def left_out(planner):
    """{row: seconds} with constants fitted to all other families."""
    out = {}
    for family in sorted({r.family for r in planner.rows}):
        vector, _ = fit(planner, without=family)
        out.update(
            {r: x for r, x in zip(planner.rows, planner.steps(vector)) if r.family == family}
        )
    return out


def flops(planner):
    """FLOPs per token against the ratio of the rates that a source states: 0 where it counts as we
    do."""
    cells, errors = planner.raw({}), []
    for r in planner.rows:
        p = r.p
        if (
            p["tokens_per_s_per_gpu"]
            and p["tflops_per_gpu"]
            and p["tokens_per_s_per_gpu"] > 1000
            and r.family.startswith("nemo")
            and not p["model"].startswith("gpt_oss")
        ):
            stated = p["tflops_per_gpu"] * 1e12 / p["tokens_per_s_per_gpu"]
            errors.append(abs(cells[r.first][2] / stated - 1))
    return {
        "bench": "planner",
        "metric": "FLOPs per token error",
        "unit": "%",
        "rows": len(errors),
        "median": at(errors, 0.5),
        "p90": at(errors, 0.9),
    }


def memory(planner, own):
    """Memory of the fullest rank of rows that state it: public ones, or our own."""
    cells, errors, lines = planner.raw({}), [], []
    for r in planner.rows:
        if not r.p["mem_gb"] or r.own != own:
            continue
        measured = r.p["mem_gb"] * (
            2**30 / 1e9 if (r.p["mem_unit"] or "").startswith("GiB") else 1
        )
        planned = min(c[1] for c in cells[r.first : r.first + r.n])
        errors.append(abs(planned / measured - 1))
        lines.append(f"{r.id}: {planned:.1f} GB planned, {measured:.1f} GB measured")
    return {
        "bench": "planner",
        "metric": "memory error" + (", own_h200" if own else ""),
        "unit": "%",
        "rows": len(errors),
        "median": at(errors, 0.5),
        "p90": at(errors, 0.9),
        "worst": [l for _, l in sorted(zip(errors, lines), reverse=True)],
    }


def false_alarms(planner):
    """Rows that ran, with all their weights trained, and are planned not to fit: by how much the
    best of their versions is over."""
    cells, over, n = planner.raw({}), [], 0
    for r in planner.rows:
        total, capacity = min((c[1], c[19]) for c in cells[r.first : r.first + r.n])
        n += r.p["task"] != "lora"
        if total > capacity and r.p["task"] != "lora":
            over.append((total / capacity, f"{r.id}: {total:.1f} of {capacity:.1f} GB"))
    return {
        "bench": "planner",
        "metric": "ran, but planned not to fit",
        "unit": "rows",
        "rows": len(over),
        "of": n,
        "worst": [line for _, line in sorted(over, reverse=True)[:10]],
    }


def main():
    planner = Planner()
    steps, without = dict(zip(planner.rows, planner.steps())), left_out(planner)
    anchored, anchored_without = (
        Anchored(planner, [x[r] for r in planner.rows]) for x in (steps, without)
    )
    groups = [
        (f, lambda r, f=f: r.family == f) for f in sorted({r.family for r in planner.rows})
    ] + [
        ("all dense", lambda r: not r.moe and not r.own),
        ("all MoE", lambda r: r.moe and not r.own),
        ("all", lambda r: not r.own),
    ]
    for name, belongs in groups:
        print(
            json.dumps(
                summary(
                    name,
                    [r for r in planner.rows if belongs(r)],
                    steps,
                    without,
                    anchored,
                    anchored_without,
                )
            )
        )
    print(
        json.dumps(
            {
                "bench": "planner",
                "metric": "rows not planned",
                "unit": "rows",
                "rows": sum(planner.left.values()),
                "of": len(planner.rows) + sum(planner.left.values()),
                "by": planner.left,
            }
        )
    )
    print(json.dumps(flops(planner)))
    print(json.dumps(memory(planner, False)))
    print(json.dumps(memory(planner, True)))
    print(json.dumps(false_alarms(planner)))
    planner.close()


if __name__ == "__main__":
    main()
