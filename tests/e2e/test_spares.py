#!/usr/bin/python3
"""A job with a spare node: it is kept for the job, and takes the place of the node that is lost."""
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import Suite, command_recipe, equal, need, wait_until  # noqa: E402
from rig import RANK, SILENT_SOON, Rig  # noqa: E402

suite = Suite()


def recipe(rig, name, gpus, save=0, spares=0):
    truth = os.path.join(rig.dir, name)
    os.makedirs(truth)
    argv = [RANK, "--steps", "100000", "--step-ms", "20", "--save-every", str(save)]
    top = {"steps": 100000, "cluster": {"gpus": gpus, "spares": spares}}
    if save:
        top["checkpoint"] = {"dir": os.path.join(rig.dir, name + "-ckpt")}
    return command_recipe(name, argv + ["--truth", truth], **top)


def parent(pid):
    with open("/proc/%d/stat" % pid) as f:
        return int(f.read().rsplit(")", 1)[1].split()[1])


def spares(rig, job):
    return {s["node"]: s["checked"] for s in rig.job(job).get("spares") or []}


@suite.test
def what_a_spare_costs_is_said(rig):
    r = rig.run("submit", "-", stdin=recipe(rig, "costs", 4, spares=1))
    words = "1 whole node is kept for it and given to nobody else: 2 GPUs, 33.3 % of the GPU-seco"
    need(words in r.stdout + r.stderr, r.stdout + r.stderr)
    rig.run("cancel", "costs")
    rig.wait_state("costs", "cancelled", 60)


@suite.test
def a_lost_node_is_replaced_by_the_spare(rig):
    job = rig.submit(recipe(rig, "spared", 4, save=10, spares=1))
    rig.wait_iteration(job, 12)
    wait_until(lambda: True in spares(rig, job).values(), 60, "a spare that is checked")
    equal(spares(rig, job), {"node-2": True}, "the spare")
    need("spare of %s" % job in rig.run("nodes").stdout, rig.run("nodes").stdout)
    need("1 of 1, node-2 (checked)" in rig.run("status", job).stdout, rig.run("status", job).stdout)
    equal(rig.json("node", "node-2")["spare_of"], job, "in the node's document")

    other = rig.submit(recipe(rig, "other", 2))
    wait_until(lambda: "kept as spares" in rig.run("why", other).stdout, 30, "why the other waits")
    need("node-2 is kept as a spare of %s" % job in rig.run("why", other).stdout, "whose it is")

    # the agent of a node and its ranks die together, and a person says that it is off
    lost = rig.json("ranks", job)["items"][-1]["node"]
    ranks = [r["pid"] for r in rig.json("ranks", job)["items"] if r["node"] == lost]
    pids = {parent(p) for p in ranks} | set(ranks)
    rig.kill(rig.agents[lost])
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: rig.json("node", lost)["state"] == "down", 60, "the node is down")
    rig.run("fence", lost, "--confirmed")
    begin = time.monotonic()
    wait_until(lambda: rig.job(job)["attempt"] == 2, 60, "the second attempt")
    rig.wait_iteration(job, 35)
    print("from the proof to iterations again: %.1f s" % (time.monotonic() - begin))
    equal(sorted(rig.job(job)["nodes"]), sorted({"node-0", "node-1", "node-2"} - {lost}), "nodes")
    equal(len(rig.events_of(job, "job.spare_used")), 1, "uses of a spare")
    equal(spares(rig, job), {}, "spares: there is no other node")
    need("0 of 1 spare nodes" in rig.run("why", job).stdout, rig.run("why", job).stdout)
    need(rig.json("report", job)["gpu_seconds"]["spare"] > 0, "its time is in the report")
    need("spare" in rig.run("report", job).stdout, "and printed")

    # the lost node comes back: ranks that wait come after the spare of a job before them
    rig.start_agent(lost, "another-boot")
    wait_until(lambda: lost in spares(rig, job), 60, "it is kept")
    equal(rig.job(other)["state"], "queued", "the other job")
    rig.run("cancel", job)
    rig.wait_state(job, "cancelled", 60)
    wait_until(lambda: rig.job(other)["state"] == "running", 60, "the other job runs")
    rig.run("cancel", other)


def main():
    with Rig(nodes=3, moed=SILENT_SOON) as rig:
        return suite.main(rig)


sys.exit(1 if main() else 0)
