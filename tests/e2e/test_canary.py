#!/usr/bin/python3
"""The canary of GPUs that compute wrong: its program with a torch that is none, and what a real
controller and agents make of what it says."""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from canary_rig import SCRIPT, Canaries, canary, environment
from lib import Suite, command_recipe, equal, need, wait_until
from rig import RANK

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
    equal([line[1] for line in said_of({"gpus": [], "hip": "6.4"})], ["unknown"] * 2)
    equal([line[1] for line in said_of({"gpus": [A, B], "old": True})], ["skipped"] * 2)
    with tempfile.TemporaryDirectory() as dir:
        open(os.path.join(dir, "torch.py"), "w").write("raise ImportError('libamdhip64.so')\n")
        lines = canary([A], {"PYTHONPATH": dir, "PYTHONDONTWRITEBYTECODE": "1"})
        equal(lines[0][:2], [A, "skipped"])
        need("has no torch (libamdhip64.so)" in lines[0][2], lines)


@suite.test
def on_the_processor():
    """on the processor"""
    equal(said_of({"gpus": []}, ["--cpu"]), [["cpu", "ok", "16 products"]])


@suite.test
def through_a_pipe():
    """as docs/health.md has a site run it in an image: the script is read from a pipe"""
    with tempfile.TemporaryDirectory() as dir:
        env = dict(os.environ, **environment({"gpus": [A], "wrong": {A: [0, 0, 0, 1]}}, dir))
        words = ["sh", "-c", 'exec %s - "$@" < "$0"' % sys.executable, SCRIPT, A]
        out = subprocess.run(words, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout
    need(out.startswith(A + " crit 4x6x8 float32: element (0,0) is 1, should be "), out)


def begin(rig, name, argv, **top):
    """A job of eight ranks that waits for rig.dir/go; the node where it is."""
    job = rig.submit(command_recipe(name, argv, gpus=8, **top))
    rig.wait_state(job, "running", 60)
    wait_until(lambda: rig.json("ranks", job)["items"][0]["node"], 30, "the node of rank 0")
    return job, rig.json("ranks", job)["items"][0]["node"]


def breaks_once(rig):
    """Its first attempt dies by SIGSEGV when rig.dir/go is there."""
    go = os.path.join(rig.dir, "go")
    wait = "while ! test -e %s; do sleep 0.1; done; kill -SEGV $$" % go
    job, node = begin(
        rig,
        "breaks",
        ["sh", "-c", "ulimit -c 0; test $MOE_ATTEMPT = 1 && { %s; }; sleep 1000" % wait],
    )
    return job, node, lambda: open(go, "w").close()


def moves(rig, job, attempt=2):
    """The node of its next attempt."""
    wait_until(
        lambda: rig.job(job)["attempt"] == attempt and rig.job(job)["state"] == "running",
        90,
        "attempt %d" % attempt,
    )
    return rig.json("ranks", job)["items"][0]["node"]


def finding(gpu):
    return "gpu.canary %s: the GPU computes wrong: 4x6x8 float32: element (2,1) is 8.000001, " % gpu


@suite.test
def after_a_crash():
    """A rank dies by SIGSEGV: the canary runs where it was, a wrong bit moves the job elsewhere,
    and the node comes back by a person's word alone, or not at all."""
    with Canaries() as rig:
        job, node, go = breaks_once(rig)
        equal(rig.canaries(node), {}, "before the failure")
        bad = rig.gpus[3]
        rig.computes(node, wrong=bad)
        go()
        other = moves(rig, job)
        need(other != node, "the next attempt is on %s again" % node)
        doc = rig.node(node)
        equal([doc["state"], doc["cordoned"], doc["health"]], ["drained", True, "crit"], "the node")
        need(doc["reason"].startswith(finding(bad)), doc["reason"])
        incident = rig.json("report", job)["incidents"][0]
        equal(incident["class"], "suspect", "class of the failure")
        equal([g for g, c in rig.canaries(node).items() if c[0] == "crit"], [bad], "wrong GPUs")
        equal(rig.canaries(other), {}, "nobody doubts the other node")
        for tries in (1, 2):
            said = rig.run("undrain", node).stdout
            need("its GPUs are being tried" in said and "--force" in said, said)
            held = wait_until(
                lambda: [m for m in rig.said(node, "node.draining") if "stays cordoned" in m][
                    tries - 1 :
                ],
                90,
                "answer %d" % tries,
            )[0]
            need(finding(bad) in held and "moectl undrain %s" % node in held, held)
            equal(rig.node(node)["state"], "drained", "after it failed again")
            need(
                "it did not come back: " + finding(bad) in rig.node(node)["refuses"], rig.node(node)
            )
        said = rig.run("undrain", node, "--force").stdout
        equal(rig.node(node)["state"], "up", "after --force: " + said)
        equal(len(rig.said(node, "node.undrained")), 1, "it came back once")


@suite.test
def after_nan():
    """A loss that is no number is everybody's: all GPUs of the job are tried, and the node where
    one is wrong is left. When it computes right, undrain gives it back."""
    with Canaries() as rig:
        truth, go = os.path.join(rig.dir, "truth"), os.path.join(rig.dir, "go")
        os.makedirs(truth)
        argv = [RANK, "--steps", "60", "--step-ms", "20", "--save-every", "5", "--truth", truth]
        argv += ["--loss", "26:1000:nan:1", "--hold-start", go]
        checkpoint = {"dir": os.path.join(truth, "ckpt"), "every": 5}
        job, node = begin(rig, "nan", argv, steps=60, checkpoint=checkpoint)
        rig.computes(node, wrong=rig.gpus[0])
        open(go, "w").close()
        rig.wait_state(job, "completed", 120)
        one = rig.json("report", job)["incidents"]
        equal([(i["class"], i["cause"]) for i in one], [("numerical", "loss NaN")], "incidents")
        equal(rig.job(job)["attempt"], 2, "attempts")
        need(rig.json("ranks", job)["items"][0]["node"] != node, "it was left")
        doc = rig.node(node)
        need(doc["cordoned"] and doc["reason"].startswith(finding(rig.gpus[0])), doc["reason"])
        rig.computes(node)
        rig.run("undrain", node)
        wait_until(lambda: rig.node(node)["state"] == "up", 90, "the node is back")
        equal(rig.node(node)["health"], "ok", "health of the node")
        equal(rig.said(node, "node.undrained"), ["node %s takes work again" % node], "events")


@suite.test
def no_torch():
    """Where there is no torch, that is what is shown, nothing is found, and nothing is held up."""
    with Canaries(nodes=1, torch=False) as rig:
        job, node, go = breaks_once(rig)
        go()
        moves(rig, job)
        wait_until(lambda: len(rig.canaries(node)) == 8, 30, "the canary ran")
        for state, text in rig.canaries(node).values():
            need(state == "skipped" and "has no torch" in text, (state, text))
        doc = rig.node(node)
        equal([doc["state"], doc["health"], doc["findings"]], ["up", "ok", 0], "the node")
        need("gpu.canary" not in rig.run("why", node).stdout, rig.run("why", node).stdout)
        equal([r for r in rig.json("ranks", job)["items"] if r.get("gpu_note")], [], "notes")
        equal(
            [e for e in rig.json("events")["items"] if e["type"].startswith("health.")],
            [],
            "events",
        )
        rig.run("cancel", job, "--now")
        rig.run("ack", node)  # a new node only reports this
        rig.machine.ras(4, "umc", ue=2)
        wait_until(lambda: rig.node(node)["state"] == "drained", 60, "a cordon by a GPU")
        rig.run("undrain", node)
        wait_until(lambda: rig.node(node)["state"] == "up", 90, "the node is back")


sys.exit(1 if suite.main() else 0)
