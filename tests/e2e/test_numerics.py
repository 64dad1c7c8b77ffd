#!/usr/bin/python3
"""The loss goes bad: a job goes back to a checkpoint of before, or stops, or nothing follows."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import Suite, command_recipe, equal, need  # noqa: E402
from rig import RANK, Rig  # noqa: E402

suite = Suite()
SAVES = 5  # every so many iterations


def losing(rig, name, loss, steps=60, **top):
    """Two ranks whose loss is FROM:TO:VALUE:ATTEMPTS, otherwise as it should be."""
    truth = os.path.join(rig.dir, name)
    os.makedirs(truth)
    argv = [RANK, "--steps", str(steps), "--step-ms", "20", "--save-every", str(SAVES)]
    argv += ["--truth", truth, "--loss", loss]
    checkpoint = {"dir": os.path.join(truth, "ckpt"), "every": SAVES}
    return rig.submit(command_recipe(name, argv, gpus=2, steps=steps, checkpoint=checkpoint, **top))


def starts(rig, name):
    """[attempt, resumed from] of rank 0."""
    with open(os.path.join(rig.dir, name, "starts")) as f:
        words = [line.split() for line in f]
    return [[int(w[2]), int(w[3])] for w in words if w[0] == "0"]


def checkpoints(rig, job):
    return {c["iteration"]: c for c in rig.json("checkpoints", job)["items"]}


@suite.test
def nan_in_the_first_attempt(rig):
    """From iteration 26 on it is no number: the checkpoint at 25, the last good loss, is as
    doubtful as those behind it, so 20 is where the next attempt begins, which writes them anew."""
    job = losing(rig, "nan", "26:1000:nan:1")
    rig.wait_state(job, "completed", 60)
    equal(starts(rig, "nan"), [[1, -1], [2, 20]], "attempts and where they began")
    equal(len(rig.events_of(job, "loss.nan")), 1, "events of the loss")
    tainted = [e["data"]["iteration"] for e in rig.events_of(job, "checkpoint.tainted")]
    equal(tainted[0], 25, "the first tainted checkpoint")
    one = rig.json("report", job)["incidents"]
    equal([(i["class"], i["cause"]) for i in one], [("numerical", "loss NaN")], "incidents")
    equal({c["state"] for c in checkpoints(rig, job).values()} & {"tainted"}, set(), "at the end")


@suite.test
def nan_in_all_attempts(rig):
    """Twice it goes back, then it is the data or the model; what was saved meanwhile is not taken,
    but by its name."""
    job = losing(rig, "always", "28:1000:nan:3", recovery={"backoff": "0s"})
    rig.wait_state(job, "failed", 60)
    equal(starts(rig, "always"), [[1, -1], [2, 25], [3, 25]], "attempts and where they began")
    need("it is the data or the model" in rig.job(job)["reason"], rig.job(job)["reason"])
    bad = [c for c in checkpoints(rig, job).values() if c["state"] == "tainted"]
    need(all(c["iteration"] > 25 for c in bad), bad)
    if bad:
        said = rig.run("checkpoints", job).stdout
        need("tainted" in said and "the loss is no number since iteration 28" in said, said)
    rig.run("restart", job)
    rig.wait_state(job, "completed", 60)
    equal(starts(rig, "always")[3], [4, 25], "after a person's restart")


@suite.test
def a_spike_that_comes_back(rig):
    job = losing(rig, "spike", "40:42:90:1", recovery={"loss_spike": {"action": "rollback"}})
    rig.wait_state(job, "completed", 60)
    equal(starts(rig, "spike"), [[1, -1]], "attempts")
    equal([e["data"]["iteration"] for e in rig.events_of(job, "loss.spike")], [40], "spikes")
    equal({c["state"] for c in checkpoints(rig, job).values()} & {"tainted"}, set(), "at the end")


def main():
    with Rig() as rig:
        return suite.main(rig)


sys.exit(1 if main() else 0)
