#!/usr/bin/python3
"""Agents and a controller that dies: with requests under way, between request and reply, with its
machine. Nobody is called silent for what the controller did, and all are back at once. Beats are
as in life here: what is tried is how long an agent waits."""
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import PATIENCE, Suite, clean_env, command_recipe, equal, need, wait_until  # noqa: E402
from rig import MOED, Rig  # noqa: E402

suite = Suite()
NODES = 3
# an agent that a busy machine lets wait for some seconds is none that the controller's end cost
BEATS = {"beat_ms": 1000, "suspect_ms": 6000, "down_ms": 12000}
# below the 10 and 11 s of the longest patience and of the HTTP library: they wait by the core's
# (unit tests say how long exactly)
BACK_S = 9


def free_port():
    """Below those that the kernel gives to connections: one that lasts while the controller is away
    would take its port."""
    while True:
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", random.randrange(30000, 32000)))
                return s.getsockname()[1]
            except OSError:
                continue


class Wire:
    """Between agents and controller. While it is dead, nothing passes and nothing breaks, as when
    the controller's machine lost power: connections of that time stay mute for ever."""

    def __init__(self, to):
        self.to, self.dead, self.hellos, self.roads = to, False, 0, True
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.mute = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            agent = self.listener.accept()[0]
            try:
                moed = None if self.dead else socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                agent.close()
                continue
            threading.Thread(target=self.carry, args=(agent, moed, True), daemon=True).start()
            if moed:
                threading.Thread(target=self.carry, args=(moed, agent, False), daemon=True).start()

    def carry(self, one, other, from_agent):
        mute = other is None
        try:
            while True:
                data = one.recv(65536)
                # the first word of a hello: it goes by the road that this asks for
                self.hellos += from_agent and b"GET /v1/agent/road" in data
                mute = mute or self.dead
                if not data and not mute:
                    break
                if not data:
                    self.mute.append(one)
                    return
                if not self.roads and b"GET /v1/agent/road" in data:
                    one.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                elif not mute:
                    other.sendall(data)
        except OSError:
            pass
        for s in (one, other):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def wait_hellos(self, n):
        """Until agents said hello n times more (each once, when n are given: the second try of one
        comes seconds later)."""
        before = self.hellos
        wait_until(lambda: self.hellos >= before + n, 30, "%d hellos on their way" % n)


def stand_still(rig, wire):
    """SIGSTOP until the agents gave up their syncs and said hello again, and longer than a node may
    be silent."""
    began = time.monotonic()
    rig.moed.send_signal(signal.SIGSTOP)
    wire.wait_hellos(NODES)
    silent = lambda: time.monotonic() - began > BEATS["suspect_ms"] / 1000 + 1
    wait_until(silent, 30, "a silence that would make a node suspect")


def cluster(wired=False):
    """Agents over TCP, as in life."""
    rig, port = Rig(nodes=NODES), free_port()
    wire = Wire(port) if wired else None
    rig.moed_options.update(BEATS, port=port)
    rig.agent_options["controller"] = "http://127.0.0.1:%d" % (wire.port if wire else port)
    return rig, wire


def epoch_of(rig):
    return rig.http("GET", "/v1/cluster").json["epoch"]


def welcome(rig):
    """Every agent is, by the present controller."""
    epoch = epoch_of(rig)
    return all(re.search(r"epoch %d\b" % epoch, rig.log(a)) for a in rig.agents)


def back(rig):
    """The agents are welcome again, in less time than a lost hello would cost."""
    wait_until(lambda: welcome(rig), BACK_S / PATIENCE, "all agents back")


def blamed(rig):
    return [
        (e["type"], e["message"])
        for e in rig.json("events")["items"]
        if e["type"] in ("node.suspect", "node.down")
    ]


def start_and_die(rig, n):
    """Killed at its n-th sync to disk: the records of that turn may be stored, and nobody has an
    answer. True when it came so far."""
    path = os.path.join(rig.dir, "log", "moed.log")
    with open(path, "ab") as log:
        tracer = subprocess.Popen(
            [
                "strace",
                "-f",
                "-qq",
                "-o",
                "/dev/null",
                "-e",
                "trace=fsync,fdatasync",
                "-e",
                "inject=fsync,fdatasync:signal=SIGKILL:when=%d" % n,
                MOED,
                "--config",
                os.path.join(rig.dir, "moed.yaml"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=clean_env(),
        )
    try:
        wait_until(
            lambda: tracer.poll() is not None or welcome(rig),
            20,
            "the controller serves its agents or is dead",
        )
        tracer.wait(1.5)
        return True
    except subprocess.TimeoutExpired:
        with open("/proc/%d/task/%d/children" % (tracer.pid, tracer.pid)) as f:
            for pid in f.read().split():
                os.kill(int(pid), signal.SIGKILL)
        tracer.wait(PATIENCE * 20)
        return False


@suite.test
def killed_with_syncs_held():
    rig, _ = cluster()
    with rig:
        for _ in range(3):
            rig.kill(rig.moed)
            rig.start_moed()
            back(rig)
        rig.quiet(3, lambda: not blamed(rig), "nobody is blamed")


@suite.test
def killed_between_request_and_reply():
    """At each of the first syncs after its start: among them are those of the agents' hellos."""
    rig, _ = cluster()
    with rig:
        died = 0
        for n in range(1, 7):
            rig.kill(rig.moed)
            died += start_and_die(rig, n)
            rig.start_moed()
            back(rig)
        need(died >= 4, "it was killed %d times only" % died)
        rig.quiet(3, lambda: not blamed(rig), "nobody is blamed")


@suite.test
def killed_while_it_stands_still():
    """SIGSTOP until the agents gave up their syncs and said hello again, then SIGKILL: those hellos
    break with it."""
    rig, wire = cluster(wired=True)
    with rig:
        stand_still(rig, wire)
        rig.kill(rig.moed)
        rig.start_moed()
        back(rig)
        rig.quiet(3, lambda: not blamed(rig), "nobody is blamed")


@suite.test
def paused():
    """SIGSTOP until the agents gave up their syncs and said hello again, then SIGCONT: nobody is
    blamed for that either."""
    rig, wire = cluster(wired=True)
    with rig:
        stand_still(rig, wire)
        rig.moed.send_signal(signal.SIGCONT)
        rig.quiet(4, lambda: not blamed(rig), "nobody is blamed")
        wait_until(
            lambda: all(n["heartbeat_age_ms"] < 1500 for n in rig.json("nodes")["items"]),
            BACK_S,
            "all nodes heard",
        )


@suite.test
def dead_with_its_machine():
    """No connection breaks: the hello that is on its way when the controller comes back is lost
    without a word, and the agent does not wait long for its answer."""
    rig, wire = cluster(wired=True)
    with rig:
        wire.dead = True
        rig.kill(rig.moed)
        wire.wait_hellos(NODES)
        wire.dead = False
        rig.start_moed()
        back(rig)  # 2 s for the lost one, at most 1.25 s until the next
        rig.quiet(
            3, lambda: not [b for b in blamed(rig) if b[0] == "node.down"], "nobody is called down"
        )


def roads(rig):
    text = rig.http("GET", "/metrics").body.decode()
    return int(re.search(r'moe_http_connections\{kind="road"\} (\d+)', text)[1])


def completes(rig, name):
    job = rig.http("POST", "/v1/jobs", command_recipe(name, ["/bin/true"])).json["id"]
    wait_until(
        lambda: rig.http("GET", "/v1/jobs/" + job).json["state"] == "completed",
        30,
        "the end of a job " + name,
    )


@suite.test
def without_a_road():
    """A controller of a release before has none, and a proxy may let none pass: agents go by
    requests then, and ask again with their next hello."""
    rig, wire = cluster(wired=True)
    with rig:
        wait_until(lambda: roads(rig) == NODES, 20, "a road for each agent")
        completes(rig, "by-roads")
        wire.roads = False
        rig.kill(rig.moed)
        rig.start_moed()
        back(rig)
        equal(roads(rig), 0, "roads through a proxy that lets none pass")
        completes(rig, "by-requests")
        wire.roads = True
        rig.kill(rig.moed)
        rig.start_moed()
        back(rig)
        wait_until(lambda: roads(rig) == NODES, 20, "a road for each agent again")
        rig.quiet(3, lambda: not blamed(rig), "nobody is blamed")


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
