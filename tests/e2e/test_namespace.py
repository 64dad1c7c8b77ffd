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


def entry_is_lost(n, text, forgets=()):
    """The agent is away while the supervisor dies and the spool entry is damaged; then it is
    back."""
    stepd, step = n.stepd_pid(), n.step_dir()
    n.stop_agent()
    os.kill(stepd, signal.SIGKILL)
    wait_until(lambda: not alive(stepd), 20, "the supervisor's end")
    with open(step + "/launch.json", "w") as f:
        f.write(text)
    for name in forgets:
        os.remove(step + "/" + name)
    n.start()


@suite.test
def escaped_of_a_step_without_its_entry():
    """launch.json is empty or half of it is there, and its supervisor is dead: what lies beside it
    finds all that is left, and the journal reaches the controller with the ranks' ends."""
    as_root()
    for text in ("", '{"step_id":"j1.a1'):
        with Node(options=["use_cgroup=no"]) as n:
            n.launch(ESCAPES, n=4)
            wait_until(lambda: len(escaped(n)) == 4, 20, "each rank leaves one")
            pids = escaped(n) + ranks(n)
            entry_is_lost(n, text)
            n.moed.wait_note(1, 1, "gone")
            equal([p for p in pids if alive(p)], [], "processes of the step")
            equal(len(n.moed.note_list(1, 1, "started")), 4, "starts that the controller knows")
            equal(len(n.moed.note_list(1, 1, "exit")), 4, "ends")


@suite.test
def nothing_proves_a_step_of_which_nothing_is_known():
    """Neither the entry nor the id, but notes: something was started, and its end is not said."""
    as_root()
    with Node(options=["use_cgroup=no"]) as n:
        n.launch(ESCAPES, n=1)
        wait_until(lambda: len(escaped(n)) == 1, 20)
        with open(n.step_dir() + "/launch.json") as f:
            whole = f.read()
        with open(n.step_dir() + "/step_id") as f:
            name = f.read()
        entry_is_lost(n, "", ["step_id"])
        wait_until(lambda: "neither launch.json nor step_id" in n.log(), 20, "a line in the log")
        equal([s["job"] for s in n.moed.hellos[-1]["steps"]], [1], "steps of the hello")
        equal(n.moed.note_list(1, 1, "gone"), [], "the step's end")
        need(alive(escaped(n)[0]), "something was killed")
        n.stop_agent()
        for file, text in (("launch.json", whole), ("step_id", name)):
            with open(n.step_dir() + "/" + file, "w") as f:
                f.write(text)
        n.start()
        n.moed.wait_note(1, 1, "gone")
        need(not alive(escaped(n)[0]), "it lives")


@suite.test
def escaped_of_an_attempt_that_ends():
    """Neither cgroup2 nor systemd: the supervisor is the parent of whatever lost its own, and no
    attempt is over before it, however it ends."""
    with Node(options=["use_cgroup=no", "use_systemd=no"]) as n:
        for attempt, end in ((1, "kill"), (2, "stop"), (3, None)):
            n.launch(ESCAPES, n=2, attempt=attempt)
            wait_until(lambda: len(escaped(n)) == 2 * attempt, 20, "each rank leaves one")
            if end:
                n.moed.order(end, 1, attempt)
            else:
                os.kill(ranks(n, attempt)[0], signal.SIGKILL)
                os.kill(ranks(n, attempt)[1], signal.SIGKILL)
            n.moed.wait_note(1, attempt, "gone")
            equal([p for p in escaped(n) if alive(p)], [], "of those that escaped live")


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
