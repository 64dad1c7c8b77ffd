"""Rows 2 and 3: 512 and 2,048 ranks on 8 agents of one machine, beside the floor: 8 processes that
posix_spawn as many of the same program at the same time (tests/bench/fan.c). The two take turns.
Beside the time by the clock, which other work stretches, stands the processor time of the three
daemons' programs per rank, exec and the rank's own start not in it."""
import json
import os
import signal
import subprocess
import time

from lib import BUILD, ROOT, command_recipe, wait_until

AGENTS, SIZES = 8, (512, 2048)
TINY = os.path.join(BUILD, "tests/fake/tiny")


def cpu_ms(pid):
    """Of the process alone: what its threads were on a core for."""
    total = 0
    for t in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/schedstat" % (pid, t)) as f:
            total += int(f.read().split()[0])
    return total / 1e6


def mains(path, n):
    """ns of the last main() once all n are there."""
    try:
        with open(path) as f:
            rows = [line.split() for line in f]
    except FileNotFoundError:
        return None
    return max(int(r[3]) for r in rows) if len(rows) >= n else None


def floor_ms(path, ranks):
    """exec of the spawners -> last main()."""
    argv = [os.path.join(BUILD, "tests/bench/fan"), str(AGENTS), str(ranks), TINY, path]
    t0 = time.time_ns()
    p = subprocess.Popen(argv, start_new_session=True, env={"MOE_ATTEMPT": "1"})
    last = wait_until(lambda: mains(path, ranks), 60, "ranks of the floor")
    os.killpg(p.pid, signal.SIGKILL)
    p.wait()
    return (last - t0) / 1e6


def launch(cluster, api, path, ranks):
    """POST -> last main(), then until `running`, ms; processor ms of each kind of daemon."""
    status = cluster.status()
    daemons = {"moed": [status["moed"]["pid"]], "agents": [a["pid"] for a in status["agents"]]}
    before = {k: sum(map(cpu_ms, pids)) for k, pids in daemons.items()}
    t0 = time.time_ns()
    job = api.submit(command_recipe("wide", [TINY, path], ranks))
    last = wait_until(lambda: mains(path, ranks), 60, "%d ranks" % ranks)
    api.state(job, ["running"], 60)
    running = time.time_ns()
    spent = {k: sum(map(cpu_ms, pids)) - before[k] for k, pids in daemons.items()}
    steps = [s["pid"] for s in cluster.status()["steps"]]
    spent["supervisors"] = sum(map(cpu_ms, steps))
    api.end(job)
    return (last - t0) / 1e6, (running - t0) / 1e6, spent


def of_size(report, cluster, api, out, ranks, n):
    took, running, floor, spent = [], [], [], []
    for i in range(n + 1):
        path = os.path.join(out, "run-wide")
        for f in (path, path + "-floor"):
            if os.path.exists(f):
                os.unlink(f)
        a, b = launch(cluster, api, path, ranks), floor_ms(path + "-floor", ranks)
        if i > 0:  # the first of each reads programs from the disk
            took.append(a[0])
            running.append(a[1])
            spent.append(a[2])
            floor.append(b)
    name = "post_to_%d_ranks" % ranks
    report("wide", name, took, "ms", "%d spawners" % AGENTS, floor)
    report("wide", name + "_running", running, "ms")
    for k in spent[0]:
        report(
            "wide",
            "%s_cpu_us_per_rank_of_%d" % (k, ranks),
            [1000 * s[k] / ranks for s in spent],
            "us",
        )
