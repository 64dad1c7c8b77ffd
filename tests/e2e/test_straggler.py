#!/usr/bin/python3
"""A rank of half the speed makes all others wait: it is named, with its node and what it costs, and
no longer once it is well."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import Suite, command_recipe, equal, need, wait_until  # noqa: E402
from rig import RANK, Rig  # noqa: E402

suite = Suite()
SLOW = 2  # the first rank of the second node


def told(rig, job, kind):
    return rig.events_of(job, kind)


def start(rig, name, slow, steps, more=(), **top):
    argv = [RANK, "--steps", str(steps), "--step-ms", "100", "--slow", slow, *more]
    truth = os.path.join(rig.dir, name)
    os.makedirs(truth)
    recipe = command_recipe(name, argv + ["--truth", truth], gpus=4, steps=steps, **top)
    return rig.submit(recipe)


@suite.test
def a_slow_rank_is_named(rig):
    job = start(rig, "slow", "%d:60:5000:2" % SLOW, 5000)
    wait_until(lambda: told(rig, job, "straggler.found"), 90, "the straggler")
    found = told(rig, job, "straggler.found")[0]
    node = next(r["node"] for r in rig.json("ranks", job)["items"] if r["rank"] == SLOW)
    equal((found["rank"], found["node"], found["data"]["sign"]), (SLOW, node, "step"), "who")
    need(1.6 < found["data"]["times"] < 2.4, found)
    need(40 < found["data"]["lost_pct"] < 60, found)
    wait_until(lambda: told(rig, job, "pace.slower"), 60, "that the job is slower")
    equal(rig.job(job)["straggler"]["rank"], SLOW, "in the job's document")
    need("straggler" in rig.run("status", job).stdout, "status names it")
    why = rig.run("why", job).stdout
    need("rank %d on %s" % (SLOW, node) in why and "of its own for a step" in why, why)
    need("against its own past: " in why and found["data"]["own_times"] > 1.6, why)
    ranks = rig.run("ranks", job).stdout.split("\n")
    need([r.split()[0] for r in ranks if "x its best" in r] == [str(SLOW)], ranks)
    need(rig.json("node", node)["lemon_score"] > 0.4, "its node has a score")
    rig.run("cancel", job)
    rig.wait_state(job, "cancelled", 60)


@suite.test
def one_that_is_well_again(rig):
    job = start(rig, "well", "%d:40:140:2" % SLOW, 5000)
    wait_until(lambda: told(rig, job, "straggler.cleared"), 120, "that it is over")
    equal(len(told(rig, job, "straggler.found")), 1, "verdicts")
    need("straggler" not in rig.job(job), rig.job(job))
    rig.run("cancel", job)
    rig.wait_state(job, "cancelled", 60)


@suite.test
def a_job_leaves_it_at_a_checkpoint(rig):
    job = start(
        rig,
        "leaves",
        "%d:60:5000:2" % SLOW,
        5000,
        ["--save-every", "40"],
        stop={"grace": "2s"},
        recovery={"straggler": "drain"},
        checkpoint={"dir": os.path.join(rig.dir, "leaves-ckpt")},
    )
    rig.wait_iteration(job, 1)
    node = next(r["node"] for r in rig.json("ranks", job)["items"] if r["rank"] == SLOW)
    wait_until(lambda: told(rig, job, "straggler.left"), 120, "that it leaves")
    left = told(rig, job, "straggler.left")[0]
    equal((left["rank"], left["node"]), (SLOW, node), "whom it leaves")
    need(left["data"]["lost_s"] >= left["data"]["restart_s"] >= 2, left)
    wait_until(lambda: rig.job(job)["attempt"] == 2, 60, "the next attempt")
    wait_until(lambda: rig.job(job)["state"] == "running", 60, "that it runs")
    nodes = {r["node"] for r in rig.json("ranks", job)["items"]}
    need(node not in nodes and len(nodes) == 2, nodes)
    started = told(rig, job, "job.started")[1]
    need(started["data"]["resume"] >= 40, started)
    equal(rig.job(job)["restarts"], 0, "failures")
    need("straggler j-" in rig.run("why", node).stdout, "its node is cordoned by it")
    rig.run("cancel", job)
    rig.wait_state(job, "cancelled", 60)


def main():
    with Rig(nodes=3) as rig:
        return suite.main(rig)


sys.exit(1 if main() else 0)
