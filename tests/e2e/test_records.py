#!/usr/bin/python3
"""Whatever an agent says, the controller starts again with what it stored of it."""
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from controller import FakeAgent, Moed, each_with_a_controller
from lib import Suite, equal, need, wait_until

FAR = "9999-12-31T23:59:59.999Z"
suite = Suite()
test = each_with_a_controller(suite)


def restart(m, how=signal.SIGKILL):
    m.stop(how)
    m.start()                                  # fails with the log when it does not start


def info(*gpus):
    numa = [{"id": 0, "cpus": "0-1", "cores": "0;1", "l3": "0-1", "mem_bytes": 1 << 30, "distances": "10"}]
    return {"hostname": "n1", "gpus": list(gpus), "numa": numa, "cpus": 2, "mem_bytes": 1 << 30}


def slot(**what):
    return dict({"vendor": "fake", "model": "fake", "numa_node": 0}, **what)


def launched(m):
    """An agent to which a job was given: it, and what it was told to launch."""
    a = FakeAgent(m)
    equal(a.hello().status, 200, "hello")
    equal(m.submit().status, 201, "submit")
    wait_until(lambda: a.sync().status == 200 and [c for c in a.commands if c["kind"] == "launch"], 20, "a launch")
    return a, a.commands[-1]["launch"]


def tell(a, k, notes):
    doc = {"job": k["job"], "attempt": k["attempt"], "state": "running", "written": notes[-1]["n"], "notes": notes, "progress": []}
    equal(a.sync("news", steps=[doc]).status, 200, "news")


def snapshots(m):
    return [f for f in os.listdir(m.state) if f.startswith("snapshot-") and not f.endswith(".new")]


def fill_until_snapshot(a, k, n):
    """Each of these notes is an event, and each event a record."""
    while not snapshots(a.moed):
        tell(a, k, [{"n": n + i, "kind": "resumed", "iteration": i} for i in range(2000)])
        n += 2000
        need(n < 100000, "no snapshot after %d notes" % n)
        if n > 10000:
            wait_until(lambda: snapshots(a.moed), 30, "a snapshot")


@test
def test_slots_without_a_number_of_their_own_are_refused(m):
    a = FakeAgent(m)
    for gpus, words in (([slot(index=0), slot()], "info.gpus[1].index: is missing"), ([slot(index=-1)], "info.gpus[0].index: is out of range"),
                        ([slot(index=3), slot(index=3)], "info.gpus[1].index: 3, as info.gpus[0] has it")):
        refused = a.hello(info=info(*gpus))
        equal(refused.status, 422, "hello with %s: %s" % (gpus, refused.body))
        need(words in refused.json["detail"], refused.json["detail"])
    equal(m.get("/v1/nodes")["items"], [], "nodes")
    equal(m.submit().status, 201, "submit")
    equal(a.hello().status, 200, "a good hello")
    wait_until(lambda: a.sync().status == 200 and [c for c in a.commands if c["kind"] == "launch"], 20, "a launch")
    equal(a.commands[-1]["launch"]["gpus"], [0, 1], "slots")
    restart(m)


@test
def test_a_process_without_a_number_that_cannot_be_killed(m):
    a, k = launched(m)
    tell(a, k, [{"n": 1, "kind": "started", "rank": 0}, {"n": 2, "kind": "started", "rank": 1}, {"n": 3, "kind": "running"},
                {"n": 4, "kind": "unkillable"}, {"n": 5, "kind": "unkillable", "pid": -7}])
    equal(m.get("/v1/jobs/j-1")["state"], "running", "a job of which nothing is proved dead")
    fill_until_snapshot(a, k, 6)
    restart(m)
    equal(m.get("/v1/jobs/j-1")["state"], "running", "the job after the start")
    restart(m, signal.SIGTERM)


@test
def test_numbers_and_times_at_every_end(m):
    """What cannot be kept is unknown, the rest of the message counts, and the same is there after a start."""
    a, k = launched(m)
    most, least = 9223372036854775807, -9223372036854775807
    tell(a, k, [{"n": 1, "kind": "started", "rank": 0, "pid": most, "start_time": least, "numa_node": least, "cpus": "0", "time": "0001-01-01T00:00:00Z"},
                {"n": 2, "kind": "started", "rank": 1, "pid": 7, "bind_verified": True, "time": FAR}, {"n": 3, "kind": "running", "time": "0001-01-01T00:00:00.000001Z"},
                {"n": 4, "kind": "sample", "rank": 0, "time": "0001-01-01T00:00:00Z", "sample": {"iteration": most, "time": FAR, "loss": "NaN", "step_ms": 1e308, "tokens": most}},
                {"n": 5, "kind": "sample", "rank": 0, "time": FAR, "sample": {"iteration": 7, "loss": 2.5, "step_ms": -1e308, "tokens": least}},
                {"n": 6, "kind": "checkpoint", "iteration": most, "path": "/" + "p" * 9000}, {"n": 7, "kind": "saving", "iteration": least},
                {"n": 8, "kind": "resumed", "iteration": most}, {"n": 9, "kind": "sample", "sample": {"iteration": 8}, "left_out": most, "time": "1969-12-31T23:59:59Z"}])
    def seen():
        job, ranks = m.get("/v1/jobs/j-1"), m.get("/v1/jobs/j-1/ranks")["items"]
        return job["state"], job["iteration"], [r["pid"] for r in ranks], m.get("/v1/jobs/j-1/metrics"), m.get("/v1/jobs/j-1/checkpoints")
    before = seen()
    equal(before[:3], ("running", 8, [None, 7]), "what counts of it")
    need(all(s["time"] > "2020" for s in before[3]["items"]), "samples are of now: %s" % before[3])
    restart(m)
    equal(seen(), before, "what was kept")
    equal(a.hello().status, 200, "hello")
    tell(a, k, [{"n": 10, "kind": "exit", "rank": 0, "code": most, "signal": most, "mono_ns": least, "cause": "c" * 5000, "tail": ["t" * 100000, None]},
                {"n": 11, "kind": "exit", "rank": 1, "code": 0, "mono_ns": most}, {"n": 12, "kind": "gone"}])
    wait_until(lambda: m.get("/v1/jobs/j-1")["state"] in ("failed", "recovering", "queued", "starting"), 20, "a verdict")
    restart(m)


sys.exit(1 if suite.main() else 0)
