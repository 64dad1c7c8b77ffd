#!/usr/bin/python3
"""`moectl fabric check`: a stand-in for rccl-tests that is slow, hangs, fails or counts wrong on
one node or link of five; it is found, and nobody's job is disturbed."""
import json
import os
import re
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import ROOT, Cluster, Suite, command_recipe, equal, need, wait_until  # noqa: E402
from rig import Rig  # noqa: E402

STAND_IN = os.path.join(ROOT, "tests/fake/collective.py")
NODES = ["node-%d" % i for i in range(5)]
suite = Suite()


def recipe(c, *ills, limit="300s", **top):
    path = os.path.join(c.dir, "fabric.yaml")
    with open(path, "w") as f:
        f.write(command_recipe("fabric", ["/usr/bin/python3", STAND_IN, *ills], **top))
    return [path, "--set", "time_limit=%s" % limit]


def check(c, *ills, limit="300s", nodes=NODES, words=()):
    """Its document and exit status."""
    words = [*recipe(c, *ills, limit=limit), "--nodes", ",".join(nodes), *words]
    r = c.run("fabric", "check", *words, "--json", check=False, timeout=300)
    return json.loads(r.stdout or "null"), r


def odd(doc):
    return [o["node"] for o in doc["odd"]]


@suite.test
def a_sound_fabric(c):
    out = os.path.join(c.dir, "reduce.txt")
    doc, r = check(c, words=["-o", out])
    equal((r.returncode, doc["verdict"], odd(doc), doc["links"]), (0, "fine", [], []), "verdict")
    equal(doc["runs"][0]["nodes"], NODES, "nodes of the first run")
    curve = [{"bytes": 1048576, "gbs": 150}, {"bytes": 67108864, "gbs": 300}]
    equal(doc["curve"], curve, "curve")
    equal(c.json("fabric", "read", out)["curve"], curve, "what plans read")
    doc, r = check(c, words=["--expect", "310"])
    equal((r.returncode, len(doc["runs"])), (0, 1), "as expected: no pairs")
    doc, r = check(c, words=["--expect", "600"])
    equal((r.returncode, doc["verdict"]), (1, "together"), "below what was expected")


@suite.test
def a_slow_node(c):
    doc, r = check(c, "slow=node-2")
    equal((r.returncode, doc["verdict"], odd(doc)), (1, "odd", ["node-2"]), "verdict")
    runs = [x for x in doc["runs"][1:] if x["slow"]]
    need(len(runs) == 2 and all("node-2" in x["nodes"] for x in runs), doc)
    for x in runs:
        equal(c.job(x["job"])["nodes"], x["nodes"], "where a pair ran")
        need(x["job"] in doc["odd"][0]["evidence"], doc["odd"])


@suite.test
def a_node_that_hangs_is_drained(c):
    words = [*recipe(c, "hang=node-1", limit="6s"), "--nodes", ",".join(NODES), "--drain"]
    r = c.run("fabric", "check", *words, check=False, timeout=300)
    equal(r.returncode, 1, "exit status")
    need(re.search(r"^odd +node-1: fails with", r.stdout, re.M), r.stdout)
    need("time limit of 6 s reached" in r.stdout, r.stdout)
    why = c.run("why", "node-1").stdout
    need("fabric check: fails with" in why and "undrain" in why, why)
    doc, r = check(c)
    equal((doc, r.returncode), (None, 1), "a check of a drained node")
    need("node-1 gets no work: drained" in r.stderr and "undrain" in r.stderr, r.stderr)
    c.run("undrain", "node-1")


@suite.test
def a_node_that_fails(c):
    doc, r = check(c, "fail=node-4")
    equal((r.returncode, odd(doc)), (1, ["node-4"]), "verdict")
    need("unhandled system error" in doc["odd"][0]["evidence"], doc["odd"])
    equal(doc["runs"][0]["gbs"], None, "bandwidth of what failed")
    doc, r = check(c, "wrong=node-0")
    equal((r.returncode, odd(doc)), (1, ["node-0"]), "verdict on wrong values")
    need("3 values were wrong" in doc["odd"][0]["evidence"], doc["odd"])


@suite.test
def a_slow_link(c):
    doc, r = check(c, "slow=node-2+node-3")
    equal((r.returncode, doc["verdict"], odd(doc)), (1, "odd", []), "verdict")
    equal([x["nodes"] for x in doc["links"]], [["node-2", "node-3"]], "links")


@suite.test
def what_is_no_measurement(c):
    doc, r = check(c, *["fail=" + n for n in NODES])
    equal((r.returncode, doc["verdict"], odd(doc)), (1, "nothing", []), "verdict")
    doc, r = check(c, words=["--set", "checkpoint.dir=/tmp/x"])
    need(r.returncode == 2 and "checkpoint.dir" in r.stderr, r.stderr)
    doc, r = check(c, nodes=["node-0", "node-9"])
    need(r.returncode == 5 and "node-9" in r.stderr, r.stderr)
    r = c.run("fabric", "check", *recipe(c), check=False)
    need(r.returncode == 2 and "--nodes" in r.stderr, r.stderr)


@suite.test
def a_running_job_is_left_alone(c):
    job = c.submit(command_recipe("busy", ["sleep", "1000"], cluster={"gpus": 1, "nodes": NODES}))
    c.wait_state(job, "running")
    before = len(c.json("list")["items"])
    r = c.run("fabric", "check", *recipe(c), "--job", job, check=False)
    equal(r.returncode, 1, "exit status")
    need("%s runs there" % job in r.stderr and "moectl pause %s" % job in r.stderr, r.stderr)
    equal(len(c.json("list")["items"]), before, "jobs")
    equal(c.job(job)["state"], "running", "the job")
    c.run("cancel", job, "--now")
    c.wait_state(job, "cancelled")
    doc = c.json("fabric", "check", *recipe(c), "--job", job)
    equal([x["nodes"] for x in doc["runs"]], [c.job(job)["nodes"]], "nodes of the job")


@suite.test
def the_job_has_the_verdict(c):
    """Told by the check itself; it outlives a kill of the controller, and the newest counts."""
    job = c.submit(command_recipe("hung", ["sleep", "1000"], cluster={"gpus": 5}))
    c.wait_state(job, "running")
    c.run("cancel", job, "--now")
    c.wait_state(job, "cancelled")
    need("fabric" not in c.job(job), c.job(job))
    words = [*recipe(c, "slow=node-2"), "--job", job]
    r = c.run("fabric", "check", *words, check=False, timeout=300)
    equal(r.returncode, 1, "exit status")
    need("recorded   in %s" % job in r.stdout, r.stdout)
    os.kill(c.status()["moed"]["pid"], signal.SIGKILL)
    c.up()
    f = c.job(job)["fabric"]["found"]
    equal((f["verdict"], f["nodes"], [o["node"] for o in f["odd"]]), ("odd", 5, ["node-2"]), f)
    equal([p["bytes"] for p in f["curve"]], [1048576, 67108864], "sizes of the curve")
    why = " ".join(c.run("why", job).stdout.split())
    need("fabric check over 5 nodes: node-2 stands out; pairs reach 300.0 GB/s" in why, why)
    need(f["odd"][0]["evidence"] in why and "GB/s with node-" in why, why)
    event = [e for e in c.json("events", job)["items"] if e["type"] == "fabric.odd"]
    equal([(e["data"]["odd"], e["data"]["verdict"]) for e in event], [(1, "odd")], "events")
    c.run("fabric", "check", *recipe(c, "slow=node-2+node-3"), "--job", job, check=False)
    odd = c.job(job)["fabric"]["found"]["odd"]
    equal([(o["node"], o["peer"]) for o in odd], [("node-2", "node-3")], "the link")
    c.json("fabric", "check", *recipe(c), "--job", job)
    equal(c.job(job)["fabric"]["found"]["verdict"], "fine", "the newest")


@suite.test
def what_the_controller_takes(c):
    """Of operators, and only what a check can have found."""
    good = {"verdict": "odd", "nodes": 2, "all_gbs": None, "pair_gbs": 3.5}
    good.update(odd=[{"node": "a", "evidence": "slow"}], curve=[{"bytes": 8, "gbs": 1}])
    bad = [
        (dict(good, verdict="well"), "verdict"),
        (dict(good, verdict="fine"), "odd: nodes and links stand here"),
        (dict(good, nodes=0), "nodes: must be from 1 to 1024"),
        (dict(good, pair_gbs=-1), "must be from 0"),
        (dict(good, odd=[{"node": "a", "evidence": "x" * 600}]), "evidence"),
        (dict(good, odd=good["odd"] * 65), "odd"),
        (dict(good, curve=good["curve"] * 2), "sizes must ascend"),
        (dict(good, speed=1), "speed"),
    ]
    with Rig(nodes=1, gpus_per_node=1) as rig:
        job = rig.submit(command_recipe("one", ["true"]))
        path = "/v1/jobs/%s/fabric" % job
        for body, words in bad:
            r = rig.http("POST", path, json.dumps(body))
            need(r.status in (400, 413, 422) and words in r.detail, (body, r.status, r.body))
        need("fabric" not in rig.job(job), rig.job(job))
        equal(rig.http("POST", "/v1/jobs/j-99/fabric", json.dumps(good)).status, 404, "no job")
        r = rig.http("POST", path, json.dumps(good), token=rig.token("user"), tcp=True)
        equal(r.status, 403, "of a user")
        r = rig.http("POST", path, json.dumps(good), token=rig.token("operator"), tcp=True)
        equal((r.status, r.json["fabric"]["by"]), (200, "somebody"), "of an operator")


@suite.test
def an_interrupt_cancels_what_runs(c):
    newest = c.json("list")["items"]
    words = [*recipe(c, "hang=node-0"), "--nodes", ",".join(NODES)]
    p = c.popen("fabric", "check", *words)
    ours = wait_until(
        lambda: [
            j
            for j in c.json("list")["items"]
            if j["id"] not in [k["id"] for k in newest] and j["state"] == "running"
        ],
        30,
        "the first run",
    )
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=120)
    equal((p.returncode, out), (1, ""), "exit status and output")
    need("%s was cancelled" % ours[0]["id"] in err, err)
    c.wait_state(ours[0]["id"], "cancelled")


@suite.test
def what_somebody_cancels_says_nothing(c):
    newest = [j["id"] for j in c.json("list")["items"]]
    words = [*recipe(c, "hang=node-0"), "--nodes", ",".join(NODES)]
    p = c.popen("fabric", "check", *words)
    ours = wait_until(
        lambda: [j["id"] for j in c.json("list")["items"] if j["id"] not in newest],
        30,
        "the first run",
    )
    c.run("cancel", ours[0], "--now")
    out, err = p.communicate(timeout=120)
    equal((p.returncode, out), (1, ""), "exit status and output")
    need("%s was cancelled by somebody" % ours[0] in err, err)


@suite.test
def the_shipped_program(c):
    shipped = os.path.join(ROOT, "config/recipes/fabric.yaml")
    for collective in ("all_reduce", "all_to_all"):
        words = ["engine.args.collective=%s" % collective, "engine.args.max=1048576"]
        sets = [w for word in words for w in ("--set", word)]
        doc = c.json("fabric", "check", shipped, "--nodes", "node-0,node-1", *sets)
        equal((doc["verdict"], [p["bytes"] for p in doc["curve"]]), ("fine", [1048576]), "found")
        log = c.run("logs", doc["runs"][0]["job"], "--rank", "0").stdout
        need(re.search(r"^ +1048576 +262144 .* 0$", log, re.M), log)


def main():
    with Cluster(nodes=len(NODES), gpus_per_node=1) as c:
        return suite.main(c)


sys.exit(1 if main() else 0)
