#!/usr/bin/python3
"""Rows of public measurements as the planner's words: what is planned, what is left out and why,
whatever a row holds. Usage: test_planner_rows.py [TEST...]"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench"))
import planner_truth as truth  # noqa: E402
from lib import Suite, equal, need  # noqa: E402

suite = Suite()
ROW = {
    "id": "r",
    "family": "nemo_moe",
    "task": "pretrain",
    "model": "qwen3_30b_a3b",
    "gpu": "GB300",
    "n_gpus": 8,
    "tp": 1,
    "pp": 1,
    "vpp": 1,
    "ep": 8,
    "etp": 1,
    "cp": 1,
    "dp": 8,
    "fsdp": "zero1",
    "mbs": 8,
    "gbs": 512,
    "seq": 4096,
    "precision": "MXFP8",
    "recompute": None,
    "a2a": None,
    "schedule": None,
    "step_time_s": 8.0,
    "extra": {"release": "26.04"},
    "regression": "B",
}


def row(**more):
    return truth.plain({**ROW, **more})


@suite.test
def what_cannot_be_planned_is_named():
    equal(truth.reason(row()), None)
    for more, why in (
        ({"task": "lora"}, "task lora"),
        ({"model": "nobody_knows"}, "model without description"),
        ({"model": 7}, "model without description"),
        ({"gpu": ["GB300"]}, "GPU without description"),
        ({"precision": "INT3"}, "precision unknown"),
        ({"fsdp": "some"}, "sharding unknown"),
        ({"tp": None}, "input missing: tp"),
        ({"tp": "two"}, "input missing: tp"),
        ({"seq": -4096}, "input missing: seq"),
        ({"dp": 4}, "sizes that do not multiply"),
        ({"gbs": 500}, "sizes that do not multiply"),
        ({"step_time_s": "fast"}, "nothing measured"),
    ):
        equal(truth.reason(row(**more)), why)


@suite.test
def numbers_as_text_are_numbers():
    equal(truth.words(row(mbs="8", gbs="512.0")), truth.words(row()))


@suite.test
def unknown_families_are_planned_as_they_are_written():
    for family in ("new_family", None, 7):
        equal(truth.reason(row(family=family)), None)
        need(
            "features.deepep" not in truth.words(row(family=family))[0],
            "properties that nobody stated",
        )


@suite.test
def recipes_belong_to_release_and_sizes():
    def has(word, **more):
        return word in " ".join(truth.words(row(**more)))

    need(
        has("features.graphs=12") and not has("features.fused_experts=1"),
        "release 26.04 captures router and preprocessing",
    )
    need(
        has("features.graphs=31", extra={"release": "26.06"})
        and has("features.fused_experts=1", extra={"release": "26.06"}),
        "release 26.06 captures the whole step",
    )
    need(not has("features.graphs", extra={"release": "99.01"}), "a release that nobody has seen")
    oss = {
        "model": "gpt_oss_120b",
        "gpu": "B200",
        "precision": "BF16",
        "n_gpus": 64,
        "dp": 64,
        "mbs": 4,
        "gbs": 1280,
        "extra": {"release": "26.02"},
    }
    need(
        has(f"features.recompute_modules={2 + 4}", **oss) and not has("features.deepep", **oss),
        "gpt-oss makes norms and activations again and exchanges plainly",
    )
    need(has("recompute=full", recompute="full", **oss), "what a row states counts more")


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
