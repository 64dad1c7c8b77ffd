#!/usr/bin/python3
"""Every iteration of a run is kept: over kills of the controller, a file that was cut or spoilt,
and within the room that it may take. Usage: test_iterations.py [TEST...]"""
import json
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from controller import FakeAgent, each_with_a_controller  # noqa: E402
from lib import Suite, clean_env, equal, moectl, need, wait_until  # noqa: E402

MANY, SPIKE = 30000, 777
suite = Suite()
test = each_with_a_controller(suite)
bounded = each_with_a_controller(suite, samples_max="300k")
off = each_with_a_controller(suite, samples_max=0)


class Run:
    """A job whose one rank says what it did as fast as it may be said."""

    def __init__(self, m):
        self.m, self.agent = m, FakeAgent(m)
        equal(self.agent.hello().status, 200, "hello")
        self.launch()

    def launch(self):
        self.n, agent = 1, self.agent
        agent.commands = []
        equal(self.m.submit().status, 201, "submit")
        wait_until(
            lambda: agent.sync().status == 200
            and [c for c in agent.commands if c["kind"] == "launch"],
            20,
            "a launch",
        )
        self.step = agent.commands[-1]["launch"]

    def tell(self, notes, state="running"):
        for n in notes:
            n["n"] = self.n
            self.n += 1
        doc = {"job": self.step["job"], "attempt": self.step["attempt"], "state": state}
        doc |= {"written": self.n - 1, "notes": notes, "progress": []}
        equal(self.agent.sync("news", steps=[doc]).status, 200, "news")

    def end(self):
        ranks = range(self.step["n_local"])
        self.tell([{"kind": "exit", "rank": r, "code": 0, "cause": "exit"} for r in ranks])
        self.tell([{"kind": "gone", "text": "reaped"}], state="gone")
        job = "/v1/jobs/j-%d" % self.step["job"]
        wait_until(lambda: self.m.get(job)["state"] == "completed", 20, "the end")

    def train(self, first, last):
        for i in range(first, last + 1, 2000):
            samples = [
                {"iteration": k, "loss": 99.5 if k == SPIKE else 2 + k % 10 / 8, "step_ms": 40.25}
                for k in range(i, min(i + 2000, last + 1))
            ]
            self.tell([{"kind": "sample", "rank": 0, "sample": s} for s in samples])


def rows(m, query="", job="j-1"):
    after, all_of_them = "", []
    while after is not None:
        a = m.get("/v1/jobs/%s/metrics?limit=1000%s%s" % (job, query, after and "&after=" + after))
        all_of_them += a["items"]
        after = a["next"]
    return all_of_them


def whole(m, last=MANY, missing=()):
    said = [r["iteration"] for r in rows(m)]
    equal(said, [i for i in range(1, last + 1) if i not in missing], "iterations")


def file(m):
    return os.path.join(m.state, "samples", "j-1.a1")


def log(m):
    return open(os.path.join(m.dir, "log")).read()


@test
def every_iteration_is_there(m):
    run = Run(m)
    run.train(1, 4000)
    # from another line of another rank, and late
    run.tell([{"kind": "sample", "rank": 0, "sample": {"iteration": 3900, "grad_norm": 0.75}}])
    run.train(4001, MANY)
    whole(m)
    m.stop(signal.SIGKILL)
    m.start()
    whole(m)
    equal(rows(m, "&since=3899")[1]["grad_norm"], 0.75, "what came late")
    equal([r["loss"] for r in rows(m, "&since=29990")][:3], [2, 2.125, 2.25], "values")
    a = m.get("/v1/jobs/j-1/metrics?last=1&limit=5")
    equal([r["iteration"] for r in a["items"]], list(range(MANY - 4, MANY + 1)), "the newest")
    equal((a["earlier"], a["next"]), (MANY - 5, None), "how many stand before them")
    size = os.path.getsize(file(m))
    need(20 * MANY < size < 60 * MANY, "%d bytes of %d samples" % (size, MANY))
    equal("cut off" in log(m), False, log(m))


@test
def moectl_prints_a_long_list_page_by_page(m):
    """One document with every iteration, and no list of them all is held to print it."""

    def printed(*words):
        r = moectl("metrics", "j-1", "--json", *words, env=env)
        return json.loads(r.stdout), len(r.stdout.splitlines())

    env = clean_env(MOE_URL="unix:" + m.options["unix_socket"])
    run = Run(m)
    run.train(1, 999)
    doc, lines = printed()
    equal((len(doc["items"]), lines), (999, 1), "a list of one page is the route's document")
    run.train(1000, 5000)
    doc, lines = printed()
    equal([r["iteration"] for r in doc["items"]], list(range(1, 5001)), "iterations")
    equal(doc["items"], rows(m), "each as the route has it")
    one = m.get("/v1/jobs/j-1/metrics?since=4999")
    equal(
        {k: doc[k] for k in doc if k != "items"}, {k: one[k] for k in one if k != "items"}, "rest"
    )
    need(5 <= lines <= 7, "%d lines: printed as pages came" % lines)
    doc, _ = printed("--since", 3000)
    equal([r["iteration"] for r in doc["items"]], list(range(3000, 5001)), "since 3000")


@test
def a_picture_hides_no_value(m):
    Run(m).train(1, MANY)
    v = m.get("/v1/jobs/j-1/metrics?points=20&names=loss")
    equal(sum(v["count"]), MANY, "samples that are drawn")
    need(len(v["iteration"]) <= 22, v["iteration"])
    equal(max(v["series"][0]["max"]), 99.5, "the one that stands out, of a part long thinned")
    newer = m.get("/v1/jobs/j-1/metrics?points=2000&names=loss&after=1.29000")
    equal(newer["iteration"], list(range(29001, MANY + 1)), "what is newer")
    need(not newer["decimated"], "each of them")
    older = m.get("/v1/jobs/j-1/metrics?points=2000&names=loss&after=1.100")
    need(max(older["count"]) <= 60, "buckets as asked for, or nearly")
    equal(sum(older["count"]), MANY - 100, "from within a block on")


@test
def what_was_cut_is_written_again(m):
    run = Run(m)
    run.train(1, MANY)
    size = os.path.getsize(file(m))
    m.stop(signal.SIGKILL)
    with open(file(m), "r+b") as f:
        f.truncate(size - 7)
    m.start()
    whole(m)
    need("are cut off" in log(m), log(m))
    run.agent = FakeAgent(m)
    equal(run.agent.hello().status, 200, "hello")
    last = MANY + 12000  # the state has what was cut no more
    run.train(MANY + 1, last)
    need(os.path.getsize(file(m)) > size, "the file goes on")
    whole(m, last)
    m.stop(signal.SIGKILL)
    with open(file(m), "ab") as f:
        f.write(b"\0" * 5000)  # as a loss of power may leave it
    m.start()
    whole(m, last)


@test
def what_is_spoilt_is_left_out_and_said(m):
    Run(m).train(1, MANY)
    m.stop()
    with open(file(m), "r+b") as f:
        f.seek(200)  # in the body of the first block
        f.write(b"\xff\xff")
    m.start()
    whole(m, missing=range(1, 65))
    need("iterations 1 to 64 cannot be read and are left out" in log(m), log(m))


@test
def files_of_nobody_go(m):
    Run(m).train(1, 2000)
    m.stop()
    there = os.path.dirname(file(m))
    for name in ("j-7.a1", "j-1.a1.bak", "notes"):
        open(os.path.join(there, name), "w").close()
    m.start()
    m.get("/v1/jobs")
    equal(sorted(os.listdir(there)), ["j-1.a1", "j-1.a1.bak", "notes"], "files")


def sizes(m):
    there = os.path.dirname(file(m))
    return {f: os.path.getsize(os.path.join(there, f)) for f in os.listdir(there)}


@bounded
def the_oldest_make_room(m):
    run = Run(m)
    run.train(1, 4001)
    before = sizes(m)
    run.end()
    need(sizes(m)["j-1.a1"] > before["j-1.a1"], "an end writes what was left: %s" % sizes(m))
    whole(m, 4001)
    run.launch()
    run.train(1, 14000)
    equal(sorted(sizes(m)), ["j-2.a1"], "files")
    whole(m, 4001)  # the state had them all
    run.train(14001, MANY)
    need(sum(sizes(m).values()) <= 300 << 10, sizes(m))
    need("samples_max is reached" in log(m), log(m))
    said = [r["iteration"] for r in rows(m, job="j-2")]
    equal(said[-10000:], list(range(MANY - 9999, MANY + 1)), "the newest are whole")
    equal(said, sorted(set(said)), "in order, each once")


@off
def without_files_the_newest_stay(m):
    Run(m).train(1, MANY)
    equal(os.path.exists(os.path.dirname(file(m))), False, "a directory")
    said = [r["iteration"] for r in rows(m)]
    equal(said[-10000:], list(range(MANY - 9999, MANY + 1)), "the newest are whole")


sys.exit(1 if suite.main() else 0)
