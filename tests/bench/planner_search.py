#!/usr/bin/env python3
"""Search time of the planner: the 2 T model on 65,536 MI355X, the grid of an engine and the open
one: CPU seconds and peak memory of the whole `moectl plan`, and whether every run gave the same
bytes."""
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile

MOECTL = os.path.join(os.environ.get("BUILD", "build"), "moectl")
SAMPLES = 7
RECIPE = """recipe: 1
name: search
engine: {kind: primus-megatron, workdir: /x, entry: x}
model: moe-2t
cluster: {gpus: 65536, gpu: mi355x}
parallelism: auto
batch: {seq: 4096, global: 32768}
steps: 1
"""


def search(recipe, words):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = subprocess.run(
        [MOECTL, "plan", recipe, "--json"] + words, stdout=subprocess.PIPE, check=True, timeout=120
    ).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, after.ru_maxrss, out


def main():
    with tempfile.TemporaryDirectory() as d:
        recipe = os.path.join(d, "recipe.yaml")
        with open(recipe, "w") as f:
            f.write(RECIPE)
        same = True
        for name, words in (
            ("search of 65,536 GPUs, 2 T model", []),
            ("open search of 65,536 GPUs, 2 T model", ["--open"]),
        ):
            runs = [search(recipe, words) for _ in range(SAMPLES)]
            seconds = [r[0] for r in runs]
            same &= len({r[2] for r in runs}) == 1
            print(
                json.dumps(
                    {
                        "bench": "planner",
                        "metric": name,
                        "value": round(statistics.median(seconds), 3),
                        "unit": "CPU s",
                        "n": SAMPLES,
                        "min": round(min(seconds), 3),
                        "max": round(max(seconds), 3),
                        "rss_mib": runs[-1][1] // 1024,
                        "same_answer": same,
                    }
                )
            )
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
