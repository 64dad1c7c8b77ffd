#!/usr/bin/python3
"""A snapshot is written by a process of its own: the controller answers meanwhile, and what it
answered is there after kill -9 in the middle of one, and after one that was finished."""
import http.client
import json
import os
import signal
import socket
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import Cluster, Suite, command_recipe, equal, need, wait_until

CLIENTS = 4
suite = Suite()


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.unix = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.unix)

    def call(self, method, path, body=None):
        self.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        r = self.getresponse()
        text = r.read()
        need(r.status < 300, "%s %s: %d %s" % (method, path, r.status, text[:300]))
        return json.loads(text)


def children(pid):
    return [int(p) for p in open("/proc/%d/task/%d/children" % (pid, pid)).read().split()]


def dead(pid):
    try:
        return open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def churn(c, until):
    """Several clients submit jobs that wait and cancel every second one, until the condition holds;
    {id: state} of all that was answered."""
    known, stop, errors = {}, threading.Event(), []

    def client():
        api, text, n = (
            Unix(os.path.join(c.dir, "moed.sock")),
            command_recipe("queued", ["true"], 64),
            0,
        )
        try:
            while not stop.is_set():
                job = api.call("POST", "/v1/jobs", text)["id"]
                known[job] = "queued"
                n += 1
                if n % 8:
                    api.call("POST", "/v1/jobs/%s/cancel" % job, json.dumps({"now": True}))
                    known[job] = "cancelled"
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for t in threads:
        t.start()
    try:
        result = wait_until(lambda: errors or until(), 300, "a snapshot")
    finally:
        stop.set()
        for t in threads:
            t.join()
    need(not errors, lambda: repr(errors[0]))
    return known, result


def check(c, known):
    """Jobs that ended long ago may be forgotten; those that wait may not."""
    api = Unix(os.path.join(c.dir, "moed.sock"))
    waiting = [job for job, state in known.items() if state == "queued"]
    need(len(waiting) > 100, "only %d jobs wait" % len(waiting))
    for job in waiting + sorted(known, key=lambda j: int(j.rsplit("-", 1)[-1]))[-200:]:
        equal(api.call("GET", "/v1/jobs/" + job)["state"], known[job], job)


@suite.test
def test_kill_while_a_snapshot_is_written():
    with Cluster(nodes=1, gpus_per_node=1) as c:
        moed, state = c.status()["moed"]["pid"], os.path.join(c.dir, "moed")

        def finished():
            return {
                f for f in os.listdir(state) if f.startswith("snapshot-") and not f.endswith(".new")
            }

        before = set()

        def caught():
            before.update(finished())
            for p in children(moed):
                # before it is the batch process that it makes of itself, it has not asked to die
                # with the controller
                if os.sched_getscheduler(p) != os.SCHED_BATCH:
                    continue
                os.kill(p, signal.SIGSTOP)  # it stays in the middle of its work
                return p
            return None

        known, child = churn(c, caught)
        need(finished() <= before, "the snapshot was finished before it was stopped")
        api = Unix(os.path.join(c.dir, "moed.sock"))
        for _ in range(50):  # nobody waits for it
            known[
                api.call("POST", "/v1/jobs", command_recipe("queued", ["true"], 64))["id"]
            ] = "queued"
        os.kill(moed, signal.SIGKILL)
        wait_until(lambda: dead(child), 30, "the child gone with the controller")
        c.up()
        check(c, known)
        # the next one is finished, and taken over after the next start
        more, _ = churn(c, lambda: finished() - before)
        known.update(more)
        moed = c.status()["moed"]["pid"]
        wait_until(lambda: not children(moed), 30, "no snapshot under way")
        api = Unix(os.path.join(c.dir, "moed.sock"))
        api.request("GET", "/metrics")
        need(
            "\nmoe_store_snapshots_total 1\n" in api.getresponse().read().decode(),
            "the snapshot was not taken over",
        )
        os.kill(moed, signal.SIGKILL)
        c.up()
        check(c, known)


sys.exit(1 if suite.main() else 0)
