#!/usr/bin/python3
"""The program of gpu.collective, with ranks that are processes of this machine over gloo, and what
it names when one of them sends or adds wrong."""
import functools
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from canary_rig import environment
from lib import ROOT, Suite, equal, need

suite = Suite()
SCRIPT = os.path.join(ROOT, "config/health/collective.py")
FAULTS = os.path.join(ROOT, "tests/fake/collective_faults.py")
A, B = "0000:05:00.0", "0000:26:00.0"
CASES = {
    "none": (3, {}),
    "one sends": (4, {"sent": [[1, 2, 3], [1, 0, 0], [3, 1, 1]]}),
    "one link": (4, {"sent": [[1, 2, 3]]}),
    "to itself": (4, {"sent": [[2, 2, 0]]}),
    "one adds": (4, {"added": [[2, -1]]}),
    "one adds once": (4, {"added": [[2, 4]]}),
    "all add": (4, {"added": [[2, -1]], "all_only": True}),
    "all send": (4, {"sent": [[i, k, 0] for i in range(4) for k in range(4) if i != k]}),
    "two send": (2, {"sent": [[0, 1, 0]]}),
    "hangs": (4, {"hangs": 1, "sent": [[3, 0, 0], [3, 1, 0]]}),
    "dies": (4, {"dies": 1}),
    "raises": (4, {"raises": 3}),
}


def output(words, env={}, script=None):
    run = subprocess.run(
        [sys.executable] + words,
        stdin=script,
        env=dict(os.environ, **{"PYTHONDONTWRITEBYTECODE": "1", **env}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    if run.returncode:
        raise AssertionError("%s: %d: %s" % (words, run.returncode, run.stderr))
    return run.stdout


def lines(words, env={}):
    return [line.split(" ", 2) for line in output([SCRIPT] + words, env).splitlines()]


@functools.lru_cache()
def all_cases():
    return json.loads(output([FAULTS, json.dumps(CASES)]))


def of(case):
    """State and text of each rank."""
    said = all_cases()[case]
    equal([line[0] for line in said], ["cpu-%d" % i for i in range(CASES[case][0])])
    return [line[1:] for line in said]


def states(said):
    return [state for state, _ in said]


@suite.test
def all_right():
    """all right, of a number that is odd too, and in full size, read from a pipe"""
    equal(of("none"), [["ok", "16 collectives of 3 GPUs"]] * 3)
    with open(SCRIPT) as f:
        said = output(["-", "--cpu", "2"], script=f)
    equal(said, "".join("cpu-%d ok 16 collectives of 2 GPUs\n" % i for i in (0, 1)))


@suite.test
def one_sends_wrong():
    """what goes wrong with most of the others is the odd one's, sent or received"""
    said = of("one sends")
    equal(states(said), ["ok", "crit", "ok", "ok"])
    text = said[1][1]
    need(text.startswith("with 3 of 3 others, as cpu-"), text)
    need(": all-to-all int32: element 17 is " in text, text)
    need(text.endswith("; 1 of 8 repetitions differ"), text)


@suite.test
def one_link():
    """where one pair alone is wrong, it is both"""
    said = of("one link")
    equal(states(said), ["ok", "crit", "crit", "ok"])
    need(said[1][1].startswith("with cpu-2 (that GPU, this one or their link): "), said)
    need(said[2][1].startswith("with cpu-1 (that GPU, this one or their link): "), said)


@suite.test
def to_itself():
    """what a GPU sends to itself has no other who could be it"""
    said = of("to itself")
    equal(states(said), ["ok", "ok", "crit", "ok"])
    need(said[2][1].startswith("with itself: "), said)


@suite.test
def one_adds_wrong():
    """a sum is wrong everywhere: pairs name who adds wrong"""
    said = of("one adds")
    equal(states(said), ["ok", "ok", "crit", "ok"])
    need(said[2][1].startswith("with 3 of 3 others, as cpu-0: all-reduce float32: "), said)


@suite.test
def nobody_can_be_named():
    """a sum that was wrong once, or of all only, and whatever is wrong everywhere, is no GPU's"""
    for case in ("one adds once", "all add"):
        said = of(case)
        equal(states(said), ["unknown"] * 4)
        need(said[0][1].startswith("wrong, and no GPU can be named: all-reduce float32: "), said)
    equal(states(of("all send")), ["unknown"] * 4)
    equal(states(of("two send")), ["unknown"] * 2)


@suite.test
def no_answer():
    """ranks that hang, die or break are no word about a GPU; what was seen before is"""
    said = of("hangs")
    equal(states(said), ["unknown"] * 3 + ["crit"])
    need(said[0][1].startswith("not done within 15 s: cpu-"), said)
    need(said[0][1].endswith(" is in the all-reduce"), said)
    for said in of("dies"):
        equal(said, ["unknown", "cpu-1: its process ended in the all-reduce"])
    for said in of("raises"):
        equal(said, ["unknown", "cpu-3: RuntimeError: NCCL error: unhandled system error"])


@suite.test
def nothing_to_try():
    """one GPU has no other; a torch that has no RCCL, or is none, tries nothing"""
    equal(lines([A]), [[A, "skipped", "there is no other GPU"]])
    for line in lines([A, B]):  # the one of Debian is for processors
        equal(line[1], "skipped")
        need(line[2].endswith("has no RCCL or NCCL"), line)
    with tempfile.TemporaryDirectory() as dir:
        for line in lines([A, B], environment({"gpus": [A, B]}, dir)):
            equal(line[1], "skipped")
            need("has no torch (No module named 'torch.distributed'" in line[2], line)


@suite.test
def each_pair_once():
    """rounds of pairs: each pair once, nobody twice in a round"""
    spec = importlib.util.spec_from_file_location("collective", SCRIPT)
    collective = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(collective)
    for n in range(2, 10):
        rounds = list(collective.rounds(n))
        for pairs in rounds:
            equal(len({rank for pair in pairs for rank in pair}), 2 * len(pairs))
        pairs = sorted(pair for pairs in rounds for pair in pairs)
        equal(pairs, [[i, k] for i in range(n) for k in range(i + 1, n)], n)


sys.exit(1 if suite.main() else 0)
