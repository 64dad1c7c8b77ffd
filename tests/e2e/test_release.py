#!/usr/bin/python3
"""GPUs are given back by the dead before the next attempt gets them: a real agent with moe-probe on
a made machine, whose driver holds memory or a process that has ended."""
import os
import signal
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import Suite, equal, need
from node_rig import SLEEP
from test_health import MINUTES, Machine, write_checks

suite = Suite()
HELD = 20 * 2**30
SHORT = """checks:
  - id: gpu.kfd_left
    what: left
    next: reboot
    source: test
    area: gpu
    when: [preflight, failure, epilog]
    reading: ended_pids
    crit_above: 0
    consecutive: 2
    settle: 2s
    action: cordon
"""


def end(n, attempt=1):
    n.moed.order("kill", 1, attempt)
    n.moed.wait_note(1, attempt, "gone")


def vram(n, bytes):
    n.machine.write("{gpu0}/mem_info_vram_used", bytes)


def dead_process(n, gpu):
    id = n.machine.read("{kfd%d}/gpu_id" % gpu).strip()
    n.machine.files("sys/class/kfd/kfd/proc/4242", **{"vram_" + id: 2**20})


def waiting(n, attempt=2):
    """A job leaves memory held, and the next one is launched: what its agent says of that."""
    n.looked()
    n.launch(SLEEP)
    before = n.machine.read("{gpu0}/mem_info_vram_used").strip()
    vram(n, HELD)
    end(n)
    n.launch(SLEEP, attempt=attempt, wait=None)
    n.moed.wait(lambda: "step j-1 attempt 2 waits: GPU " in n.log(), 20, "its log says so")
    return before


def told(n):
    return n.moed.steps.get((1, 2), {}).get("waits")


def machine(reads=True):
    n = Machine("mi300x", options=MINUTES)
    n.moed.reads = {"waits": True} if reads else {}
    return n


@suite.test
def the_next_attempt_waits_until_memory_is_given_back():
    with machine() as n:
        before = waiting(n)
        bdf = n.machine.gpus[0].bdf
        n.moed.wait(lambda: "20.0 GiB" in (told(n) or ""), 20, "it says how much")
        need(told(n).startswith("GPU %s: " % bdf), told(n))
        equal(n.moed.note_list(1, 2, "started"), [], "started")
        vram(n, before)
        n.moed.wait_note(1, 2, "running")
        n.moed.wait(lambda: told(n) is None, 20, "it waits no longer")
        equal(n.results(), {}, "findings")


@suite.test
def a_controller_of_before_is_not_told():
    with machine(reads=False) as n:
        before = waiting(n)
        syncs = n.moed.syncs
        n.moed.wait(lambda: n.moed.syncs > syncs + 2, 20, "it goes on")
        equal(n.moed.steps[(1, 2)]["state"], "spooled", "state")
        equal(told(n), None, "waits")
        vram(n, before)
        n.moed.wait_note(1, 2, "running")


@suite.test
def who_is_ended_while_it_waits_was_never_started():
    with machine() as n:
        waiting(n)
        end(n, 2)
        equal(n.moed.note_list(1, 2, "started"), [], "started")


@suite.test
def an_agent_that_begins_anew_looks_again():
    with machine() as n:
        before = waiting(n)
        n.moed.wait(lambda: "20.0 GiB" in (told(n) or ""), 20, "it says how much")
        n.stop_agent(signal.SIGTERM)
        n.moed.steps.clear()
        n.start()
        n.moed.wait(lambda: "20.0 GiB" in (told(n) or ""), 20, "it says so again")
        equal(n.moed.note_list(1, 2, "started"), [], "started")
        vram(n, before)
        n.moed.wait_note(1, 2, "running")


@suite.test
def checks_that_cannot_be_read_hold_nothing_up():
    with machine() as n:
        n.stop_agent(signal.SIGTERM)
        n.own_helpers(
            **{"moe-probe": "#!/bin/sh\nuntil test -e %s/go; do sleep 0.1; done\nexit 1\n" % n.dir}
        )
        n.start()
        n.launch(SLEEP, wait=None)
        n.moed.wait(
            lambda: "attempt 1 waits: the checks of this node are not read yet" in n.log(),
            20,
            "it waits",
        )
        open(n.dir + "/go", "w").close()
        n.moed.wait_note(1, 1, "running")


@suite.test
def what_is_not_given_back_is_found_and_refused():
    with tempfile.TemporaryDirectory() as tmp, Machine(
        "mi300x", options=MINUTES, env=write_checks(tmp + "/config", SHORT)
    ) as n:
        n.looked()
        n.launch(SLEEP)
        dead_process(n, 0)
        end(n)
        n.launch(SLEEP, attempt=2, wait="refused")
        note = n.moed.note_list(1, 2, "refused")[0]
        bdf = n.machine.gpus[0].bdf
        equal(note["cause"], "gpu-held", "cause")
        need(bdf in note["text"] and "ended_pids is 1" in note["text"], note)
        r = n.find("gpu.kfd_left", bdf, "crit")
        need("ended_pids.pid = 4242" in r["evidence"] and r["action"] == "cordon", r)
        # the other GPUs work on
        n.launch(SLEEP, job=2, gpus=[1])


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
