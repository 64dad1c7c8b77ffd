"""Row 14: what a start costs a controller that knows a fleet (tests/bench/swarm) and 1,000 jobs,
and what a job costs its memory. The jobs are of one recipe that comes with moectl, each with a name
and a directory of its own: 400 ended after they ran, 300 run on a node each, 300 wait for all GPUs.
FLEET=N: so many nodes, 300 at least."""
import json
import os
import signal
import time

import yaml
from fleet import LIMIT_S, NODES, Fleet
from lib import ROOT, Failed, wait_until

RECIPE = os.path.join(ROOT, "config/recipes/mixtral-8x7b-8-mi325x.yaml")
ENDED, RUNNING, WAITING = 400, 300, 300


def recipe(name, gpus):
    with open(RECIPE) as f:
        r = yaml.safe_load(f)
    r["name"], r["checkpoint"] = name, dict(r["checkpoint"], dir="/ckpt/" + name)
    r["cluster"] = {"gpus": gpus}
    for k in ("model", "parallelism", "batch"):
        r.pop(k, None)
    return r


def counts(fleet):
    """Of jobs by state."""
    return fleet.moed.get("/v1/cluster", timeout=60)["jobs"]


def submit(fleet, prefix, n, gpus):
    return [fleet.post("/v1/jobs", recipe("%s-%d" % (prefix, i), gpus))["id"] for i in range(n)]


def run(fleet, prefix, n):
    """n jobs of a node each, which run."""
    before = counts(fleet).get("running", 0)
    jobs = submit(fleet, prefix, n, 8)
    wait_until(lambda: counts(fleet).get("running", 0) == before + n, 60, prefix + " running")
    return jobs


def end(fleet, jobs):
    before = counts(fleet).get("cancelled", 0)
    for j in jobs:
        fleet.post("/v1/jobs/%s/cancel" % j, {"now": True})
    wait_until(lambda: counts(fleet).get("cancelled", 0) == before + len(jobs), 60, "their end")


def pass_through(fleet, prefix, n):
    """n jobs that ran and ended."""
    for i in range(0, n, 100):
        end(fleet, run(fleet, "%s-%d" % (prefix, i), min(100, n - i)))


def stored(fleet):
    """Bytes of what a start reads."""
    return sum(
        os.path.getsize(os.path.join(fleet.moed.state, x))
        for x in os.listdir(fleet.moed.state)
        if x.startswith(("moe.db", "snapshot"))
    )


def start(fleet, figures):
    """One: the controller is killed, and started on what it left."""
    fleet.moed.options["port"] = fleet.moed.port  # where the fleet looks for it
    welcomes = fleet.heard()["welcomes"]
    fleet.moed.stop(signal.SIGKILL)
    t = time.monotonic()
    fleet.moed.start()
    fleet.moed.get("/v1/jobs?limit=100", timeout=60)
    figures["serving"].append(time.monotonic() - t)
    figures["serving_cpu"].append(fleet.cpu_s())
    figures["serving_rss"].append(fleet.rss_mib())
    wait_until(
        lambda: fleet.last["welcomes"] >= welcomes + fleet.nodes
        and fleet.last["up"] == fleet.nodes,
        LIMIT_S,
        "the fleet back",
    )
    figures["all_back"].append(time.monotonic() - t)  # the fleet says so once a second
    figures["all_back_rss"].append(fleet.rss_mib())


def starts(report, nodes):
    figures = {k: [] for k in ("serving", "serving_cpu", "serving_rss", "all_back", "all_back_rss")}
    with Fleet(nodes) as f:
        f.all_up(LIMIT_S)
        pass_through(f, "ended", ENDED)
        run(f, "runs", RUNNING)
        submit(f, "waits", WAITING, 8 * nodes)
        asked = counts(f)
        for _ in range(5):
            start(f, figures)
            if counts(f) != asked:
                raise Failed("jobs before %s, after the start %s" % (asked, counts(f)))
        print(json.dumps({"bench": "start", "nodes": nodes, "stored_bytes": stored(f)}), flush=True)
    for k, v in figures.items():
        report("start", k, v, "MiB" if k.endswith("rss") else "s")


def memory(report):
    """By what is resident: kB for each job more, 5 times. What the first 1,500 cost has the ring of
    events in it, and all else that does not grow."""
    ended, waiting = [], []
    with Fleet(100) as f:
        f.all_up(LIMIT_S)
        pass_through(f, "first", 1500)
        for i in range(5):
            before = f.rss_mib()
            pass_through(f, "ended-%d" % i, 200)
            ended.append(1024 * (f.rss_mib() - before) / 200)
        for i in range(5):
            before = f.rss_mib()
            submit(f, "waits-%d" % i, 200, 800)
            waiting.append(1024 * (f.rss_mib() - before) / 200)
    report("start", "memory_of_an_ended_job", ended, "kB")
    report("start", "memory_of_a_job_that_waits", waiting, "kB")


def bench(report):
    starts(report, NODES)
    memory(report)
