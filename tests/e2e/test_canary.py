#!/usr/bin/python3
"""The canary of GPUs that compute wrong: its program with a torch that is none."""
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from canary_rig import canary, environment
from lib import Suite, equal, need

suite = Suite()
A, B, C = "0000:05:00.0", "0000:26:00.0", "0001:46:00.0"


def said_of(said, names=(A, B)):
    with tempfile.TemporaryDirectory() as dir:
        return canary(names, environment(said, dir))


@suite.test
def all_right():
    """all right: each GPU a line, by its address and not by torch's order"""
    equal(
        said_of({"gpus": [C, B, A]}, [A, C]), [[A, "ok", "32 products"], [C, "ok", "32 products"]]
    )


@suite.test
def one_bit():
    """one bit in one of the repetitions: which element, expected and got"""
    lines = said_of({"gpus": [A, B], "wrong": {B: [5, 2, 1, 8.000001]}})
    equal(lines[0][:2], [A, "ok"])
    equal(lines[1][:2], [B, "crit"])
    need(lines[1][2].startswith("4x6x8 float32: element (2,1) is 8.000001, should be "), lines)
    need(lines[1][2].endswith("; 1 of 8 repetitions differ"), lines)


@suite.test
def not_a_number():
    """a NaN is no number that was expected"""
    lines = said_of({"gpus": [A], "wrong": {A: [0, 0, 0, "nan"]}}, [A])
    equal(lines[0][:2], [A, "crit"])
    need("element (0,0) is nan" in lines[0][2], lines)


@suite.test
def breaks():
    """what breaks is no word about the GPU, and the others are tried"""
    lines = said_of({"gpus": [A, B], "breaks": {A: "HIP error: invalid\nargument"}})
    equal(lines[0], [A, "unknown", "RuntimeError: HIP error: invalid argument"])
    equal(lines[1][:2], [B, "ok"])


@suite.test
def nothing_to_try():
    """a GPU that torch does not see is unknown, and none at all, or no torch, is skipped"""
    equal(said_of({"gpus": [B]})[0], [A, "unknown", "torch does not see it, but %s" % B])
    equal([line[1] for line in said_of({"gpus": []})], ["skipped"] * 2)
    equal([line[1] for line in said_of({"gpus": [A, B], "old": True})], ["skipped"] * 2)
    with tempfile.TemporaryDirectory() as dir:
        open(os.path.join(dir, "torch.py"), "w").write("raise ImportError('libamdhip64.so')\n")
        lines = canary([A], {"PYTHONPATH": dir, "PYTHONDONTWRITEBYTECODE": "1"})
        equal(lines[0][:2], [A, "skipped"])
        need("has no torch (libamdhip64.so)" in lines[0][2], lines)


@suite.test
def on_the_processor():
    """on the processor"""
    equal(said_of({"gpus": []}, ["--cpu"])[0][:2], ["cpu", "ok"])


sys.exit(1 if suite.main() else 0)
