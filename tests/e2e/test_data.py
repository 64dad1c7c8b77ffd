#!/usr/bin/python3
"""A rank is killed and the job resumes: whether it goes on with its data is said, by the samples
that its engine says were consumed, and where it says nothing, that is said."""
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import Suite, command_recipe, equal, need  # noqa: E402
from rig import RANK, Rig  # noqa: E402

suite = Suite()
SAVES = 5  # every so many iterations
STAY = 13  # the first attempt goes no further, and is killed there


def resumed(rig, name, *data):
    """-> a job whose second attempt trained to its end, and what is said of its data"""
    truth = os.path.join(rig.dir, name)
    os.makedirs(truth)
    argv = [RANK, "--steps", "40", "--step-ms", "50", "--save-every", str(SAVES)]
    argv += ["--truth", truth, "--stay", str(STAY), *data]
    checkpoint = {"dir": os.path.join(truth, "ckpt"), "every": SAVES}
    recipe = command_recipe(
        name, argv, gpus=2, steps=40, checkpoint=checkpoint, recovery={"backoff": "0s"}
    )
    job = rig.submit(recipe)
    rig.wait_iteration(job, STAY)
    os.kill(rig.rank_pids(job)[1], signal.SIGKILL)
    rig.wait_state(job, "completed", 60)
    why = rig.run("why", job).stdout
    said = rig.job(job)["data_order"]
    equal((said["attempt"], said["resume"]), (2, 10), "attempt and where it began")
    for command in ("status", "report"):
        printed = " ".join(rig.run(command, job).stdout.split())
        # what nobody knows is for who asks how it went
        told = command == "report" or said["kind"] != "unknown"
        equal("data " + said["text"] in printed, told, printed)
    equal(rig.json("report", job)["data_order"], said, "the report's")
    return job, said, " ".join(why.split())


def events(rig, job):
    return [
        (e["type"], e["data"]["kind"])
        for kind in ("data.order", "data.moved")
        for e in rig.events_of(job, kind)
    ]


@suite.test
def it_goes_on(rig):
    job, said, why = resumed(rig, "kept", "--data", "kept")
    equal(said["kind"], "continues", said["text"])
    need(said["text"] not in why, why)
    equal(events(rig, job), [("data.order", "continues")], "events")
    samples = {s["iteration"]: s for s in rig.json("metrics", job)["items"] if s["attempt"] == 2}
    equal(samples[40]["consumed_samples"], 320, "samples of the last iteration")


@suite.test
def it_begins_anew(rig):
    job, said, why = resumed(rig, "anew", "--data", "anew")
    equal((said["kind"], said["begins"], said["ended"], said["samples"]), ("anew", 0, 80, 80), said)
    need("begins its data anew and repeats 80 samples" in why, why)
    equal(events(rig, job), [("data.moved", "anew")], "events")


@suite.test
def it_says_nothing(rig):
    job, said, why = resumed(rig, "silent")
    equal(said["kind"], "unknown", said["text"])
    need("the engine does not say how many samples were consumed" in said["text"], said["text"])
    need("consumed" not in why, why)
    equal(events(rig, job), [("data.order", "unknown")], "events")


@suite.test
def it_outlives_the_controller(rig):
    job, said, _ = resumed(rig, "stored", "--data", "anew")
    rig.kill(rig.moed)
    rig.start_moed()
    equal(rig.job(job)["data_order"], said, "after a restart")
    equal(events(rig, job), [("data.moved", "anew")], "events after a restart")


def main():
    with Rig() as rig:
        return suite.main(rig)


sys.exit(1 if main() else 0)
