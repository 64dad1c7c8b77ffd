#!/usr/bin/python3
"""The step's own mount namespace: what escapes a dead supervisor is found in it, whatever it has
done to its environment; the host sees nothing of it; without one three nets do."""
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import Skipped, Suite, equal, need, wait_until
from node_rig import SLEEP, Node, alive

suite = Suite()
MARKER = "/run/moe-step"
# leaves its rank twice over: a session of its own, no parent, no environment
ESCAPES = [
    sys.executable,
    "-c",
    "import os, time\n"
    "if os.fork() == 0:\n"
    "    os.setsid()\n"
    "    if os.fork() == 0:\n"
    "        os.execve('/bin/sh', ['sh', '-c', 'echo $$ >> escaped; exec sleep 1003'], {})\n"
    "    os._exit(0)\n"
    "os.wait()\n"
    "time.sleep(1000)",
]


def escaped(n):
    try:
        return [int(line) for line in n.file("escaped").split()]
    except FileNotFoundError:
        return []


def own_namespace(pid):
    return os.stat("/proc/%d/ns/mnt" % pid).st_ino != os.stat("/proc/self/ns/mnt").st_ino


def as_root():
    if os.getuid() != 0:
        raise Skipped("only root makes namespaces")


def ranks(n, attempt=1):
    return [s["pid"] for s in n.moed.note_list(1, attempt, "started")]


@suite.test
def escaped_of_a_killed_supervisor():
    """No cgroup, no parent, no environment: the namespace finds all of them, and only then is the
    step gone."""
    as_root()
    with Node(options=["use_cgroup=no"]) as n:
        n.launch(ESCAPES, n=4)
        wait_until(lambda: len(escaped(n)) == 4, 20, "each rank leaves one")
        pids = escaped(n)
        for pid in pids:
            with open("/proc/%d/environ" % pid, "rb") as f:
                need(b"MOE_STEP" not in f.read(), "it carries the step in its environment")
        os.kill(n.stepd_pid(), signal.SIGKILL)
        n.moed.wait_note(1, 1, "gone")
        equal([p for p in pids if alive(p)], [], "of those that escaped live")


@suite.test
def neighbours_live_on():
    """A process in the same place of another step, or in a namespace that only has the marker of
    another, is not touched."""
    as_root()
    with Node(options=["use_cgroup=no"]) as n:
        n.launch(ESCAPES, n=1, job=2)
        wait_until(lambda: len(escaped(n)) == 1, 20)
        n.launch(SLEEP, n=1, job=1, gpus=[1])
        os.kill(n.stepd_pid(1), signal.SIGKILL)
        n.moed.wait_note(1, 1, "gone")
        need(alive(escaped(n)[0]), "the neighbour's process was killed")
        need(alive(n.moed.note_list(2, 1, "started")[0]["pid"]), "the neighbour's rank was killed")


@suite.test
def inside_and_outside():
    as_root()
    with Node() as n:
        n.launch(SLEEP, n=2)
        pids = ranks(n)
        spaces = {os.stat("/proc/%d/ns/mnt" % p).st_ino for p in pids}
        equal(len(spaces), 1, "namespaces of a step")
        need(own_namespace(pids[0]), "the rank is in the host's namespace")
        with open(n.step_dir() + "/namespace") as f:
            equal(int(f.read()), spaces.pop(), "spooled number")
        with open("/proc/%d/root%s" % (pids[0], MARKER)) as f:
            need(f.read().startswith("j1.a1.n0."), "marker inside")
        with open("/proc/%d/mountinfo" % pids[0]) as f:
            line = [m for m in f if " %s " % MARKER in m]
        need(line and " ro," in line[0], "the marker is read-only: %s" % line)
        with open("/proc/self/mountinfo") as f:
            equal([m for m in f if MARKER in m], [], "mounts that the host sees")
        equal(os.path.getsize(MARKER), 0, "bytes of the marker outside")
        n.moed.order("kill", 1, 1)
        n.moed.wait_note(1, 1, "gone")


@suite.test
def no_new_privileges():
    """A set-user-id file gives a rank nothing, nor what engine.prepare runs."""
    with Node() as n:
        n.launch(["/bin/sh", "-c", "grep NoNewPrivs /proc/self/status > nnp; exec sleep 1000"])
        wait_until(lambda: os.path.exists(n.dir + "/nnp") and n.file("nnp"), 20)
        equal(n.file("nnp").split(), ["NoNewPrivs:", "1"], "of a rank")


@suite.test
def three_nets_where_none_can_be_made():
    """A machine that refuses: the step runs, and its log says what it does without."""
    as_root()
    with Node() as n:
        n.stop_agent()
        n.own_helpers(**{"moe-namespace": "#!/bin/sh\necho '1 make a mount namespace' >&3\n"})
        n.start()
        n.launch(SLEEP, n=1)
        need(not own_namespace(ranks(n)[0]), "it has a namespace")
        need(
            "could not make a mount namespace: Operation not permitted" in n.log(),
            "log: " + n.log(),
        )
        need(not os.path.exists(n.step_dir() + "/namespace"), "a number is spooled")


@suite.test
def maker_that_dies_hangs_or_lies():
    as_root()
    for says, script in (
        ("ended without a word", "#!/bin/sh\nexit 0\n"),
        ("answered what it never says", "#!/bin/sh\necho hello >&3\n"),
        ("its number cannot be kept: File exists", "#!/bin/sh\necho ok >&3\nexec sleep 1005\n"),
        ("could not be started", None),
    ):
        with Node() as n:
            n.stop_agent()
            n.own_helpers(**{"moe-namespace": script or "not a program"})
            if not script:
                os.remove(n.bin + "/moe-namespace")
            n.start()
            n.launch(SLEEP, n=1)
            need(not own_namespace(ranks(n)[0]), says)
            want = says if script else "ended without a word"
            need(want in n.log(), "%s: %s" % (want, n.log()))


@suite.test
def cancelled_while_it_is_made():
    as_root()
    with Node() as n:
        n.stop_agent()
        n.own_helpers(**{"moe-namespace": "#!/bin/sh\nexec sleep 1004\n"})
        n.start()
        n.launch(SLEEP, n=1, wait=None)
        wait_until(lambda: n.stepd_pid(), 20)
        n.moed.order("kill", 1, 1)
        n.moed.wait_note(1, 1, "gone")
        equal(ranks(n), [], "ranks")


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
