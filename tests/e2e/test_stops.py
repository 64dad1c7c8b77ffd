"""A controller is stopped while something is open: every kind of stream and held request alone,
then all of them at once. It ends by itself with status 0, and everybody who waited sees the end.
The same under AddressSanitizer in the suite `hostile`."""
import json
import os
import resource
import shutil
import signal
import sys
import threading

from controller import RECIPE, FakeAgent, Moed
from lib import PATIENCE, Daemon, Suite, equal, need, wait_until
from rig import alive, searches

suite = Suite()
SEARCH = {
    "recipe": 1,
    "name": "search",
    "engine": {"kind": "command", "argv": ["/bin/true"]},
    "model": "deepseek-v3",
    "cluster": {"gpus": 2048, "gpu": "mi300x", "nic_gbps": 400},
    "parallelism": "auto",
    "batch": {"seq": 4096, "global": 61440},
    "precision": "bf16",
    "steps": 100,
}
SIZES = ",".join(str(2048 * i) for i in range(1, 9))


class World:
    """A controller with a running job of two ranks, and connections that are open at its stop."""

    def __init__(self, moed):
        self.m, self.open, self.agent, self.helper = moed, [], FakeAgent(moed), None
        self.agent.logs = {0: "a0\n", 1: "b0\n"}
        equal(self.agent.hello().status, 200, "hello")
        self.agent.loop()
        self.job = moed.submit().json["id"]
        wait_until(lambda: moed.get("/v1/jobs/" + self.job)["state"] == "running", 20, "running")

    def send(self, method, path, body=None, token=None, raw=None):
        c = self.m.connect(timeout=60)
        self.open.append(c)
        if raw is not None:
            c.connect()
            c.sock.sendall(raw)
        else:
            c.request(
                method,
                path.replace("JOB", self.job),
                body,
                {
                    "Authorization": "Bearer " + (token or self.m.admin),
                    "Content-Type": "application/json",
                },
            )
        return c

    def follow(self, path):
        """Opens a stream and waits for its first bytes."""
        c = self.send("GET", path)
        r = c.getresponse()
        equal(r.status, 200, path)
        need(r.readline(), "%s: nothing came" % path)

    def asks(self, path):
        """Opens what the agent is asked for; it takes the question and says nothing."""
        self.agent.deaf = True
        n = len(self.agent.queries)
        self.send("GET", path)
        wait_until(lambda: len(self.agent.queries) > n, 10, "the question for " + path)

    def ended(self):
        for c in self.open:
            try:
                while c.sock.recv(65536):
                    pass
            except ConnectionError:
                pass  # what was not read yet when it was closed
            c.close()

    def end(self):
        self.agent.running = False
        self.agent.thread.join(PATIENCE * 10)


def deaf_follower(w):
    """A follower who never reads, with more unsent than the kernel's buffers hold."""
    w.agent.logs[0] = "x" * 79 + "\n"
    w.agent.logs[0] *= 100000
    n = len(w.agent.queries)
    w.send("GET", "/v1/jobs/JOB/logs?rank=0&follow=1")
    wait_until(lambda: len(w.agent.queries) > n, 10, "the question for the log")


def sync_of_another(w):
    other = FakeAgent(w.m, node="n2", gpus=0)
    equal(other.hello().status, 200, "hello of another node")
    doc = {
        "node": "n2",
        "boot_id": "boot",
        "instance": "i1",
        "epoch": other.epoch,
        "beat": 1,
        "mono_ns": 1,
        "steps": [],
        "scans": [],
    }
    w.send("POST", "/v1/agent/sync", json.dumps(doc), token=w.m.agent)


def search(w):
    """A plan is searched for seconds by a helper, which is stopped here so that it lasts; it must
    not outlive its controller."""
    w.send("POST", "/v1/plan?gpus=16384&open=1&top=1000&scale=" + SIZES, json.dumps(SEARCH))
    w.helper = wait_until(lambda: searches(w.m.process.pid), 10, "the helper")[0]
    os.kill(w.helper, signal.SIGSTOP)


KINDS = {
    "events": lambda w: w.follow("/v1/events?follow=1&after=0"),
    "events of a job": lambda w: w.follow("/v1/jobs/JOB/events?follow=1&after=0"),
    "events of a node": lambda w: w.follow("/v1/events?follow=1&after=0&node=n1"),
    "log of a rank": lambda w: w.follow("/v1/jobs/JOB/logs?rank=0&follow=1"),
    "logs of all ranks": lambda w: w.follow("/v1/jobs/JOB/logs?follow=1"),
    "records of all ranks": lambda w: w.follow("/v1/jobs/JOB/logs?follow=1&records=1"),
    "a log that nobody reads": deaf_follower,
    "a search for a plan": search,
    "a held sync": sync_of_another,
    "half a head": lambda w: w.send(
        None, None, raw=b"GET /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nAuth"
    ),
    "half a body": lambda w: w.send(
        None,
        None,
        raw=b"POST /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n"
        b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{" % w.m.admin.encode(),
    ),
    "an idle connection": lambda w: w.send(None, None, raw=b""),
    # the agent is deaf from here on
    "a log that did not begin": lambda w: w.asks("/v1/jobs/JOB/logs?rank=1&follow=1"),
    "a log to its end": lambda w: w.asks("/v1/jobs/JOB/logs?rank=1"),
    "an environment": lambda w: w.asks("/v1/jobs/JOB/env?rank=0"),
}


def stop(kinds):
    with Moed(beat_ms=1000, suspect_ms=5000, down_ms=10000) as m:
        w = World(m)
        try:
            for kind in kinds:
                KINDS[kind](w)
            closing = threading.Thread(target=w.ended, daemon=True)
            closing.start()
            equal(m.stop(), 0, "exit status of moed with %s open" % ", ".join(kinds))
            closing.join(PATIENCE * 20)
            need(
                not closing.is_alive(),
                "%s: open although the controller is gone" % ", ".join(kinds),
            )
            need(not w.helper or not alive(w.helper), "the search goes on without its controller")
        finally:
            w.end()


@suite.test
def with_each_kind_alone():
    for kind in KINDS:
        stop([kind])


@suite.test
def with_all_kinds():
    stop(list(KINDS))


@suite.test
def with_all_kinds_in_the_other_order():
    """The questions first: what is asked later is not asked any more, and waits."""
    stop(
        [k for k in reversed(list(KINDS)) if not k.startswith(("log", "records", "a log"))]
        + ["a log that did not begin", "a log to its end"]
    )


@suite.test
def two_stops_at_once():
    """SIGTERM and SIGINT while it stops already."""
    with Moed() as m:
        w = World(m)
        try:
            for kind in ("events", "logs of all ranks", "a search for a plan"):
                KINDS[kind](w)
            for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
                os.kill(m.process.pid, sig)
            equal(m.stop(), 0, "exit status")
        finally:
            w.end()


@suite.test
def a_crash_is_noticed():
    """What every suite relies on: a daemon that a signal ended is found, though no test looked at
    it."""
    m = Moed()
    os.kill(m.process.pid, signal.SIGABRT)
    m.process.wait(PATIENCE * 20)
    need([c for c in Daemon.crashed() if "signal 6" in c and "moed" in c], "nobody noticed")
    equal(Daemon.crashed(), [], "it is reported twice")
    shutil.rmtree(m.dir)


@suite.test
def after_the_store_failed():
    """What cannot be stored is not answered: moed ends with status 1, with everything open, and by
    no signal."""
    m = Moed(beat_ms=1000, suspect_ms=5000, down_ms=10000)
    try:
        w = World(m)
        try:
            for kind in KINDS:
                KINDS[kind](w)
            # for what it says; the store's file is longer
            enough = os.path.getsize(os.path.join(m.dir, "log")) + 2000
            resource.prlimit(m.process.pid, resource.RLIMIT_FSIZE, (enough, enough))
            w.send("POST", "/v1/jobs", RECIPE)
            equal(m.process.wait(PATIENCE * 20), 1, "exit status of moed")
            need(
                "cannot be stored" in open(os.path.join(m.dir, "log")).read(),
                "the log says nothing of it",
            )
            w.ended()
        finally:
            w.end()
    finally:
        m.stop()
        shutil.rmtree(m.dir, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
