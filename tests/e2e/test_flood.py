#!/usr/bin/python3
"""Hundreds of agents at once, as after a power cut: all come in, and meanwhile nothing starves: the
beats of who is up, probes, and people's requests are answered. Conditions, no durations."""
import json
import os
import re
import resource
import select
import signal
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from controller import FakeAgent, Moed, Stream  # noqa: E402
from lib import PATIENCE, Suite, equal, need, wait_until  # noqa: E402

suite = Suite()
AT_ONCE = 1500  # three times as many as may wait for their answer


def hello(moed, i):
    body = json.dumps(
        {
            "node": "crowd-%d" % i,
            "boot_id": "boot",
            "instance": "first",
            "protocol": 1,
            "version": "test",
            "info": {"hostname": "crowd-%d" % i, "cpus": 2, "mem_bytes": 1 << 30},
            "steps": [],
        }
    )
    return (
        "POST /v1/agent/hello HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n"
        "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
        % (moed.agent, len(body), body)
    ).encode()


class Crowd:
    """A connection of each, from an address of its own, as nodes have. A request that is answered
    with Retry-After is sent again then."""

    def __init__(self, moed, n):
        self.moed, self.poll, self.all, self.counts, self.again = moed, select.poll(), {}, {}, []
        for i in range(n):
            s = socket.socket()
            s.bind(("127.1.%d.%d" % (i >> 8, i & 255), 0))
            s.connect((moed.host, int(moed.port)))
            self.all[s.fileno()] = (s, i, b"")
            self.poll.register(s, select.POLLIN)

    def say(self):
        for s, i, _ in self.all.values():
            s.sendall(hello(self.moed, i))

    def close(self):
        for s, _, _ in self.all.values():
            s.close()

    def heard(self, fd):
        s, i, text = self.all[fd]
        text += s.recv(65536)
        head, end, body = text.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
        if not end or len(body) < int(length.group(1)):
            self.all[fd] = (s, i, text)
            return
        self.all[fd] = (s, i, b"")
        status = int(head.split()[1])
        self.counts[status] = self.counts.get(status, 0) + 1
        after = re.search(rb"(?i)\r\nretry-after: (\d+)", head)
        if status != 200:
            need(status == 503 and after, lambda: text.decode())
            self.again.append((time.monotonic() + int(after.group(1)), fd))

    def all_in(self, deadline):
        end = time.monotonic() + deadline
        while self.counts.get(200, 0) < len(self.all):
            need(time.monotonic() < end, lambda: "not all came in: %s" % self.counts)
            for fd, _ in self.poll.poll(50):
                self.heard(fd)
            due = [x for x in self.again if x[0] <= time.monotonic()]
            self.again = [x for x in self.again if x not in due]
            for _, fd in due:
                self.all[fd][0].sendall(hello(self.moed, self.all[fd][1]))


class Beside(threading.Thread):
    """Asks again and again, until it is told to end; every answer must be 200."""

    def __init__(self, ask):
        super().__init__(daemon=True)
        self.ask, self.over, self.statuses, self.error = ask, False, [], None
        self.start()

    def run(self):
        try:
            while not self.over:
                self.statuses.append(self.ask())
        except Exception as e:  # noqa: BLE001: it is the test's to say
            self.error = e

    def end(self, what):
        self.over = True
        self.join(PATIENCE * 20)
        need(not self.error, lambda: "%s: %r" % (what, self.error))
        need(
            self.statuses and set(self.statuses) == {200}, lambda: "%s: %s" % (what, self.statuses)
        )


def files():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return {"max_connections": min(most - 1000, 8000)}


@suite.test
def nothing_starves():
    """It is stopped while they all say hello, so that they come at once whatever the machine is
    busy with. Idle connections of strangers stand beside them."""
    options = files()
    with Moed(beat_ms=300, suspect_ms=6000, down_ms=60000, **options) as moed:
        agent = FakeAgent(moed, "steady")
        equal(agent.hello().status, 200, "hello")
        equal(agent.sync().status, 200, "sync")
        events = Stream(moed)
        idle = [socket.create_connection((moed.host, int(moed.port))) for _ in range(100)]
        crowd = Crowd(moed, AT_ONCE)
        moed.process.send_signal(signal.SIGSTOP)
        crowd.say()
        moed.process.send_signal(signal.SIGCONT)
        beside = {
            "beats": Beside(lambda: agent.sync().status),
            "probe": Beside(lambda: moed.ask("GET", "/healthz", token=None).status),
            "people": Beside(lambda: moed.ask("GET", "/v1/nodes/steady").status),
        }
        crowd.all_in(PATIENCE * 20)
        for what, b in beside.items():
            b.end(what)
        need(crowd.counts.get(503), "nobody was asked to come later: %s" % crowd.counts)
        # each of those who had to come later was told when: few came in vain again
        need(crowd.counts[503] < 3 * AT_ONCE, "asked too often: %s" % crowd.counts)
        lost = [e for e in events.events if e["data"].get("type") == "node.suspect"]
        need(not [e for e in lost if "steady" in json.dumps(e)], lambda: str(lost))
        equal(moed.get("/v1/cluster")["nodes"]["up"] > 0, True, "nodes up")
        crowd.close()
        for s in idle:
            s.close()


@suite.test
def who_has_left_costs_nothing():
    """Hellos whose agents have given up are not carried out: none of these nodes is known."""
    with Moed(**files()) as moed:
        crowd = Crowd(moed, 100)
        moed.process.send_signal(signal.SIGSTOP)
        crowd.say()
        crowd.close()
        moed.process.send_signal(signal.SIGCONT)
        agent = FakeAgent(moed, "stays")
        equal(agent.hello().status, 200, "hello")
        wait_until(lambda: moed.get("/v1/nodes")["items"], 20, "a node")
        equal([n["name"] for n in moed.get("/v1/nodes")["items"]], ["stays"], "nodes")


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
