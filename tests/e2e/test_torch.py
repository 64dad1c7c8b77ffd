#!/usr/bin/python3
"""Torch scripts that know nothing of moectl (tests/fixtures/scripts.py): what they leave in a checkpoint directory is never trained over without a word, and is resumed when the recipe says how.
Usage: test_torch.py [TEST...]"""
import json
import os
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "fixtures"))
import checkpoints as fixtures  # noqa: E402
from lib import ROOT, Suite, equal, moectl, need, wait_until  # noqa: E402
from rig import Rig  # noqa: E402

SCRIPT = os.path.join(ROOT, "tests/fixtures/scripts.py")
suite = Suite()
RIG = []


def rig():
    if not RIG:
        RIG.append(Rig(nodes=1, gpus_per_node=2))
        RIG[0].up()
    return RIG[0]


def recipe(name, kind, args=(), **top):
    top = dict({"recipe": 1, "name": name, "engine": {"kind": "torch", "entry": SCRIPT, "args": [kind] + list(args)}, "cluster": {"gpus": 2}}, **top)
    return json.dumps(top)


def directory(name):
    path = os.path.join(rig().dir, name)
    os.makedirs(path)
    return path


def kill_rank(job, rank=0):
    os.kill(rig().json("ranks", job)["items"][rank]["pid"], signal.SIGKILL)


def waits(job, *names):
    """The job waits, and names the files and the three ways on, wherever a user looks."""
    def told():
        w = rig().json("why", job)
        return [r for r in w["reasons"] if r["code"] == "checkpoint-unread"] and w
    why = wait_until(told, 30, "%s waits for a word" % job)
    reason = [r for r in why["reasons"] if r["code"] == "checkpoint-unread"][0]
    status = rig().job(job)
    for name in names:
        need(name in reason["text"] and name in status["reason"] and any(name in e for e in reason["evidence"]), lambda: "%s is not named: %s, %s" % (name, why, status["reason"]))
    for way in ("checkpoint.layout", "--from 0", "another checkpoint.dir"):
        need(way in why["next"] and way in status["reason"], lambda: "%r is not among the ways on: %s" % (way, why["next"]))
    events = [e for e in rig().json("events", job)["items"] if e["type"] == "checkpoint.unread"]
    need(events and all(name in events[-1]["message"] for name in names), lambda: "event: %s" % events)
    return status


@suite.test
def a_directory_says_what_nobody_reads():
    top = directory("offline")
    fixtures.write(os.path.join(top, "ckpt.pt"), fixtures.archive({"iter_num": 5}, b"w" * (2 << 20)))
    fixtures.write(os.path.join(top, "last/model.safetensors"), fixtures.safetensors(2 << 20))
    fixtures.write(os.path.join(top, "checkpoint-20/pytorch_model.bin"), b"w" * (2 << 20))
    fixtures.write(os.path.join(top, "step_30/model.pt"), fixtures.archive({}, b"w" * (2 << 20)))
    fixtures.write(os.path.join(top, "step_30/COMPLETE"), "no list")
    for name in ("small.pt", "settings/a.pt"):
        fixtures.write(os.path.join(top, name), b"w" * 1000)
    fixtures.write(os.path.join(top, "events.log"), b"w" * (2 << 20))
    os.symlink("ckpt.pt", os.path.join(top, "link.pt"))
    doc = json.loads(moectl("checkpoints", "--dir", top, "--engine", "torch", "--json").stdout)
    equal(sorted(u["name"] for u in doc["unread"]), ["checkpoint-20/", "ckpt.pt", "last/"], "what nobody reads")
    equal(doc["resume"], {"iteration": 30}, "what somebody reads")
    os.unlink(os.path.join(top, "step_30/COMPLETE"))
    out = moectl("checkpoints", "--dir", top, "--engine", "torch").stdout
    need(all("%s (" % n in out for n in ("step_30/", "ckpt.pt")) and "checkpoint.layout" in out, out)
    for kind, name in (("megatron-lm", "iter_0000020/mp_rank_00/model_optim_rng.pt"), ("torchtitan", "step-20/a.pt"), ("maxtext", "moe/checkpoints/20/a.bin"), ("deepspeed", "global_step20/a.pt")):
        top = directory("offline-" + kind)
        fixtures.write(os.path.join(top, name), b"w" * (2 << 20))
        doc = json.loads(moectl("checkpoints", "--dir", top, "--engine", kind, "--json").stdout)
        equal((doc["unread"], doc["resume"]), ([], None), "entries of %s, damaged or not" % kind)
        fixtures.write(os.path.join(top, "ckpt.pt"), b"w" * (2 << 20))
        doc = json.loads(moectl("checkpoints", "--dir", top, "--engine", kind, "--json").stdout)
        equal([u["name"] for u in doc["unread"]], ["ckpt.pt"], kind)
    many = directory("offline-many")
    for i in range(40):
        fixtures.write(os.path.join(many, "m%d.pt" % i), b"w" * (1 << 20), i)
    doc = json.loads(moectl("checkpoints", "--dir", many, "--engine", "torch", "--json").stdout)
    equal([u["name"] for u in doc["unread"]], ["m%d.pt" % i for i in range(39, 23, -1)], "the newest are named")


@suite.test
def what_lay_there_is_not_trained_over():
    top = directory("before")
    path = os.path.join(top, "ckpt.pt")
    fixtures.write(path, fixtures.archive({"iter_num": 500}, b"w" * (2 << 20)))
    before = open(path, "rb").read()
    job = rig().submit(recipe("before", "nanogpt", ["--out_dir=" + top, "--max_iters=30"], checkpoint={"dir": top}))
    equal(waits(job, "ckpt.pt")["state"], "queued", "state")
    equal(open(path, "rb").read(), before, "the file")
    rig().run("restart", job, "--from", "0")
    rig().wait_state(job, "completed", 60)
    need(open(path, "rb").read() != before, "it never began")


@suite.test
def its_own_work_is_not_trained_over():
    """The script overwrites one file, and nobody said how it is resumed: after a kill the job waits."""
    top = directory("own")
    job = rig().submit(recipe("own", "nanogpt", ["--out_dir=" + top, "--max_iters=100000"], checkpoint={"dir": top}))
    wait_until(lambda: os.path.exists(os.path.join(top, "ckpt.pt")), 60, "a first save")
    rig().wait_iteration(job, 25)
    kill_rank(job)
    equal(waits(job, "ckpt.pt")["state"], "recovering", "state")
    rig().run("cancel", job)
    rig().wait_state(job, "cancelled", 30)
    top = directory("own-hf")
    job = rig().submit(recipe("own-hf", "trainer", ["--out_dir=" + top, "--max_iters=100000"], checkpoint={"dir": top}))
    wait_until(lambda: os.path.exists(os.path.join(top, "checkpoint-40/trainer_state.json")), 60, "two saves")
    kill_rank(job)
    waits(job, "checkpoint-20/", "checkpoint-40/")
    rig().run("cancel", job)


def resumed(job, attempt=2):
    """Where the newest attempt was told to begin, once it is that attempt."""
    wait_until(lambda: rig().job(job)["attempt"] >= attempt, 60, "attempt %d of %s" % (attempt, job))
    started = [e for e in rig().json("events", job)["items"] if e["type"] == "job.started" and e["attempt"] == attempt]
    return started[-1]["data"]["resume"]


@suite.test
def one_file_is_resumed_as_the_recipe_says():
    top = directory("one-file")
    job = rig().submit(recipe("one-file", "nanogpt", ["--out_dir=" + top, "--max_iters=100000"], checkpoint={"dir": top, "layout": "ckpt.pt", "resume_args": ["--init_from=resume"]}))
    wait_until(lambda: os.path.exists(os.path.join(top, "ckpt.pt")), 60, "a first save")
    rig().wait_iteration(job, 25)
    kill_rank(job, 1)
    at = resumed(job)
    need(at >= 20 and at % 20 == 0, "resumed from %s" % at)
    wait_until(lambda: "Resuming training from" in rig().run("logs", job).stdout, 30, "the script was told to resume")
    ledger = {c["iteration"]: c["state"] for c in rig().json("checkpoints", job)["items"]}
    need(ledger.get(at) in ("verified", "complete", "deleted"), ledger)
    rig().run("cancel", job)
    rig().wait_state(job, "cancelled", 30)
    job = rig().submit(recipe("one-file", "nanogpt", ["--out_dir=" + top, "--max_iters=100000"], checkpoint={"dir": top, "layout": "ckpt.pt", "resume_args": ["--init_from=resume"]}))
    need(resumed(job, 1) >= at, "a new job resumes from it")
    rig().run("cancel", job)


@suite.test
def directories_are_resumed_as_the_recipe_says():
    top = directory("directories")
    job = rig().submit(recipe("directories", "trainer", ["--out_dir=" + top, "--max_iters=100000", "--piece_ms=5"], checkpoint={
        "dir": top, "layout": "checkpoint-{iteration}/trainer_state.json", "resume_args": ["--resume_from_checkpoint", "{dir}/checkpoint-{iteration}"]}))
    wait_until(lambda: os.path.exists(os.path.join(top, "checkpoint-40/trainer_state.json")), 60, "two saves")
    wait_until(lambda: os.path.exists(os.path.join(top, "checkpoint-60/optimizer.pt")), 60, "a third one began")
    kill_rank(job)
    whole = [int(d.split("-")[1]) for d in os.listdir(top) if os.path.exists(os.path.join(top, d, "trainer_state.json"))]
    equal(resumed(job), max(whole), "the newest whole one")
    wait_until(lambda: os.path.exists(os.path.join(top, "checkpoint-%d/trainer_state.json" % (max(whole) + 20))), 60, "it trains on")
    rig().run("cancel", job)


if __name__ == "__main__":
    try:
        failures = suite.main()
    finally:
        for r in RIG:
            r.down(check=False)
    sys.exit(1 if failures else 0)
