#!/usr/bin/python3
"""What breaks underneath: supervisors, nodes, ports, disks, checkpoints, programs that fail. Each
case says what must happen, and what must not."""
import contextlib
import functools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import (
    PATIENCE,
    Skipped,
    Suite,
    command_recipe,
    equal,
    need,
    wait_equal,
    wait_until,
)  # noqa: E402
from rig import RANK, SILENT_SOON, Rig, alive  # noqa: E402

suite = Suite()


def test(fn):
    """A test that leaves the cluster usable also when it fails."""

    @functools.wraps(fn)
    def run(rig):
        try:
            fn(rig)
        except BaseException:
            rig.reset()
            raise

    return suite.test(run)


def rank_recipe(rig, name, gpus=2, steps=100000, step_ms=20, save=0, extra=(), **top):
    """A job of fake ranks that keep a record of their lives in rig.dir/NAME."""
    truth = os.path.join(rig.dir, name)
    os.makedirs(truth, exist_ok=True)
    argv = [
        RANK,
        "--steps",
        str(steps),
        "--step-ms",
        str(step_ms),
        "--save-every",
        str(save),
        "--truth",
        truth,
    ] + list(extra)
    if save:
        top.setdefault("checkpoint", {"dir": os.path.join(truth, "ckpt"), "every": save})
    return command_recipe(name, argv, gpus=gpus, steps=steps, **top)


STAYS = 15


def staying_recipe(rig, name, extra=()):
    """4 ranks whose first attempt stays at an iteration between two saves, also on a machine where
    a test comes late or one rank lags behind the others."""
    words = ["--stay", str(STAYS)] + list(extra)
    return rank_recipe(rig, name, gpus=4, steps=100, save=10, extra=words)


def wait_saved(rig, job):
    """Rank 0, which saves, is there; the iteration of a job is that of its fastest rank."""
    rig.wait_iteration(job, STAYS)
    wait_until(lambda: rig.events_of(job, "checkpoint.saved"), 60, "a save")


def lines(rig, name, file):
    try:
        with open(os.path.join(rig.dir, name, file)) as f:
            return f.read().split("\n")[:-1]
    except FileNotFoundError:
        return []


def kill_now(rig, job):
    rig.run("cancel", job, "--now")
    rig.wait_state(job, "cancelled")


def incidents(rig, job):
    return rig.json("report", job)["incidents"]


def node_state(rig, node):
    return rig.json("node", node)["state"]


def no_iteration_missing(rig, job, upto=0):
    """Once all that nodes had to report was reported: samples come in their own time, after the
    newest iteration."""

    def missing():
        seen = {s["iteration"] for s in rig.json("metrics", job)["items"]}
        return sorted(set(range(1, max(upto, *seen) + 1)) - seen)

    wait_equal(missing, [], "missing iterations")


# ---- supervisor ----


@test
def killed_supervisor(rig):
    """kill -9 of a stepd ends its ranks and their children, which ignore SIGTERM and called setsid;
    cause supervisor-lost; the job goes on from its checkpoint."""
    job = rig.submit(staying_recipe(rig, "stepd", extra=["--child"]))
    rig.wait_state(job, "running")
    wait_saved(rig, job)
    stepds, ranks = rig.stepd_of(job), rig.rank_pids(job)
    equal((len(stepds), len(ranks)), (2, 4), "supervisors and ranks")
    children = [
        int(x)
        for x in wait_until(
            lambda: len(lines(rig, "stepd", "children")) == 4 and lines(rig, "stepd", "children"),
            20,
            "four children",
        )
    ]
    os.kill(stepds[0], signal.SIGKILL)
    rig.wait_state(job, "completed", 60)
    need(
        not any(alive(p) for p in list(ranks.values()) + children),
        "ranks or children of the first attempt live on",
    )
    one = incidents(rig, job)
    equal(
        [(i["cause"], i["class"]) for i in one],
        [("supervisor-lost", "transient")],
        "the incidents: %s" % json.dumps(one, indent=1),
    )
    equal(rig.job(job)["restarts"], 1, "restarts, of incidents %s" % one)
    resumed = {line.split()[3] for line in lines(rig, "stepd", "starts")[4:]}
    need(len(resumed) == 1 and int(resumed.pop()) >= 10, "resumed from %s" % resumed)
    equal(lines(rig, "stepd", "duplicates"), [], "duplicates")
    causes = {e["data"]["cause"] for e in rig.events_of(job, "rank.exited") if e["attempt"] == 1}
    need("supervisor-lost" in causes, "causes of exits: %s" % causes)


@test
def supervisor_stopped_by_its_machine(rig):
    """SIGTERM to a stepd, as systemctl stop and a shutdown send it: the rest of the job is stopped
    as planned at once (nobody waits 300 s), the reason says so, and it is nobody's failure."""
    job = rig.submit(staying_recipe(rig, "outside"))
    rig.wait_state(job, "running")
    wait_saved(rig, job)
    os.kill(rig.stepd_of(job)[0], signal.SIGTERM)
    rig.wait_state(job, "completed", 60)
    equal(
        (rig.job(job)["attempt"], rig.job(job)["restarts"], incidents(rig, job)),
        (2, 0, []),
        "attempt, restarts, incidents",
    )
    stopping = rig.events_of(job, "job.stopping")
    need(
        len(rig.events_of(job, "step.stopped_outside")) == 1
        and "not by moectl" in stopping[0]["message"],
        stopping,
    )
    equal(
        [e["data"]["cause"] for e in rig.events_of(job, "rank.exited") if e["attempt"] == 1],
        ["stopped"] * 4,
        "causes of exits",
    )
    equal(lines(rig, "outside", "duplicates"), [], "duplicates")


@test
def agent_killed_while_it_forgets_a_step(rig):
    """kill -9 of the agent between any two files that it removes of a step that is over: the next
    agent knows nothing of the step any more, and the node takes work."""
    name = "node-0"
    for n in range(1, 8):
        job = rig.submit(rank_recipe(rig, "forget-%d" % n, gpus=2 * rig.nodes))
        rig.wait_iteration(job, 1)
        agent = rig.agents[name]
        tracer = subprocess.Popen(
            [
                "strace",
                "-f",
                "-qq",
                "-o",
                "/dev/null",
                "-e",
                "trace=unlinkat",
                "-e",
                "inject=unlinkat:signal=SIGKILL:when=%d" % n,
                "-p",
                str(agent.pid),
            ]
        )
        wait_until(
            lambda: "TracerPid:\t0\n" not in open("/proc/%d/status" % agent.pid).read(),
            10,
            "strace attached",
        )
        kill_now(rig, job)
        need(agent.wait(PATIENCE * 20) != 0, "the agent was not killed at file %d" % n)
        tracer.wait(PATIENCE * 20)
        rig.start_agent(name)
        wait_until(
            lambda: not os.listdir(os.path.join(rig.dir, "run", name, "steps")),
            20,
            "nothing is left of the step (file %d): %s" % (n, rig.events_of(job)),
        )
        wait_until(lambda: node_state(rig, name) == "up", 20, "the node is up")
    equal(
        [e for e in rig.json("events")["items"] if e["type"] == "step.unknown"], [], "unknown steps"
    )
    again = rig.submit(rank_recipe(rig, "after-forget", gpus=2 * rig.nodes))
    rig.wait_iteration(again, 1)
    kill_now(rig, again)


@test
def hung_supervisor(rig):
    """A stepd that holds its lock and does not answer is reported, never killed; a planned stop
    waits for it."""
    job = rig.submit(rank_recipe(rig, "hung", gpus=2))
    rig.wait_iteration(job, 5)
    stepd, ranks = rig.stepd_of(job)[0], rig.rank_pids(job)
    node = rig.json("ranks", job)["items"][0]["node"]
    os.kill(stepd, signal.SIGSTOP)
    try:
        rig.kill(rig.agents[node])  # a new agent finds the lock held and gets no answer
        rig.start_agent(node)
        wait_until(
            lambda: "hung" in json.dumps(rig.json("why", job)).lower()
            or any("hung" in e["type"] for e in rig.json("events")["items"]),
            30,
            "the hung supervisor is reported",
        )
        need(alive(stepd) and all(alive(p) for p in ranks.values()), "something was killed")
        equal(rig.job(job)["attempt"], 1, "attempt")
    finally:
        os.kill(stepd, signal.SIGCONT)
    rig.wait_iteration(job, rig.job(job)["iteration"] + 20)
    wait_equal(
        lambda: (rig.rank_pids(job), rig.job(job)["attempt"], rig.job(job)["state"]),
        (ranks, 1, "running"),
        "pids, attempt and state after SIGCONT",
    )
    kill_now(rig, job)


# ---- silence ----


@test
def silent_node(rig):
    """Silence: suspect, then down; the job of its ranks is recovering, nothing is killed; the agent
    comes back: running, same attempt, same pids, no iteration missing."""
    job = rig.submit(rank_recipe(rig, "silent", gpus=2))
    rig.wait_iteration(job, 5)
    node, ranks = rig.json("ranks", job)["items"][0]["node"], rig.rank_pids(job)
    agent, first = rig.agents[node], rig.json("events")["items"][-1]["seq"]
    agent.send_signal(signal.SIGSTOP)
    wait_until(lambda: node_state(rig, node) == "down", 20, "down")
    kinds = [
        e["type"] for e in rig.json("events")["items"] if e["seq"] > first and e["node"] == node
    ]
    equal(kinds[:2], ["node.suspect", "node.down"], "events")
    doc = rig.wait_state(job, "recovering", 30)
    need("fence %s --confirmed" % node in doc["reason"], "reason: %s" % doc["reason"])
    need(
        node in json.dumps(rig.json("why", job)) and "fence" in rig.run("why", job).stdout,
        "why does not tell",
    )
    rig.quiet(
        2,
        lambda: rig.job(job)["state"] == "recovering" and all(alive(p) for p in ranks.values()),
        "recovering with living ranks",
    )
    agent.send_signal(signal.SIGCONT)
    rig.wait_state(job, "running")
    rig.wait_iteration(job, (rig.job(job)["iteration"] or 0) + 10)
    wait_equal(
        lambda: (rig.rank_pids(job), rig.job(job)["attempt"], rig.job(job)["restarts"]),
        (ranks, 1, 0),
        "pids, attempt and restarts",
    )
    no_iteration_missing(rig, job)
    kill_now(rig, job)


@test
def silent_node_while_training_goes_on(rig):
    """An advancing iteration disproves the suspicion: running while one of two nodes is down;
    recovering only once the iteration stands."""
    job = rig.submit(rank_recipe(rig, "advances", gpus=4))
    rig.wait_state(job, "running")
    rig.wait_iteration(job, 5)
    ranks = rig.json("ranks", job)["items"]
    lead, other = ranks[0]["node"], ranks[3]["node"]
    rig.agents[other].send_signal(signal.SIGSTOP)
    stopped = []
    try:
        wait_until(lambda: node_state(rig, other) == "down", 20, "down")
        rig.quiet(2, lambda: rig.job(job)["state"] == "running", "running")
        equal(
            {r["state"] for r in rig.json("ranks", job)["items"] if r["node"] == other},
            {"lost"},
            "ranks of the silent node",
        )
        for r in ranks:
            os.kill(r["pid"], signal.SIGSTOP)
            stopped.append(r["pid"])
        rig.wait_state(job, "recovering", 40)
        wait_equal(lambda: node_state(rig, lead), "up", "state of the node that is heard")
        need(all(alive(p) for p in stopped), "something was killed")
    finally:
        for p in stopped:
            os.kill(p, signal.SIGCONT)
        rig.agents[other].send_signal(signal.SIGCONT)
    rig.wait_state(job, "running", 40)
    wait_until(lambda: node_state(rig, other) == "up", 20, "the silent node comes back")
    wait_equal(
        lambda: (rig.job(job)["attempt"], sorted(rig.rank_pids(job).values())),
        (1, sorted(stopped)),
        "attempt and pids",
    )
    kill_now(rig, job)


@test
def frozen_machine(rig):
    """Everything stood still (a paused virtual machine) for longer than down_ms: the controller
    knows that it was late itself and blames nobody."""
    job = rig.submit(rank_recipe(rig, "frozen", gpus=2))
    rig.wait_iteration(job, 5)
    first = rig.json("events")["items"][-1]["seq"]
    agents = list(rig.agents.values())
    for p in agents + [rig.moed]:
        p.send_signal(signal.SIGSTOP)
    time.sleep(rig.moed_options["down_ms"] / 1000 * 1.6)
    rig.moed.send_signal(signal.SIGCONT)
    wait_until(lambda: rig.http("GET", "/healthz").status == 200, 20, "moed answers")
    for p in agents:
        p.send_signal(signal.SIGCONT)
    rig.wait_iteration(job, (rig.job(job)["iteration"] or 0) + 10)
    wait_until(
        lambda: [n["state"] for n in rig.json("nodes")["items"]] == ["up"] * len(agents),
        20,
        "all nodes up",
    )
    blamed = [
        e["type"]
        for e in rig.json("events")["items"]
        if e["seq"] > first and e["type"] in ("node.down", "job.recovering")
    ]
    equal(blamed, [], "events after the pause")
    wait_equal(
        lambda: (rig.job(job)["attempt"], rig.job(job)["state"]),
        (1, "running"),
        "attempt and state",
    )
    kill_now(rig, job)


@test
def fenced_node(rig):
    """fence states that the node is off: the next attempt starts elsewhere, once. A living node
    cannot be fenced."""
    r = rig.run("fence", "node-0", "--confirmed", check=False)
    need(
        r.returncode == 1 and "node-0" in r.stderr,
        "fence of a node that is up: exit %d %r" % (r.returncode, r.stderr),
    )
    equal(rig.run("fence", "node-0", check=False).returncode, 2, "fence without --confirmed")
    job = rig.submit(rank_recipe(rig, "fenced", gpus=2, save=10))
    rig.wait_iteration(job, 25)
    node = rig.json("ranks", job)["items"][0]["node"]
    stepd, ranks = rig.stepd_of(job), rig.rank_pids(job)
    rig.kill(rig.agents[node])  # the machine loses its power
    for p in stepd + list(ranks.values()):
        os.kill(p, signal.SIGKILL)
    rig.wait_state(job, "recovering", 30)
    rig.quiet(1, lambda: rig.job(job)["attempt"] == 1, "the first attempt")
    rig.run("fence", node, "--confirmed")
    doc = wait_until(
        lambda: [
            d
            for d in [rig.job(job)]
            if d["attempt"] == 2 and d["state"] == "running" and d["iteration"]
        ],
        30,
        "the second attempt",
    )[0]
    need(node not in doc["nodes"], "it is placed on %s again" % node)
    equal(doc["restarts"], 1, "restarts")
    need(
        incidents(rig, job)[0]["class"] == "node_fault",
        "class: %s" % incidents(rig, job)[0]["class"],
    )
    rig.start_agent(node)
    wait_until(lambda: node_state(rig, node) == "up", 30, "the node comes back")
    rig.quiet(1, lambda: rig.job(job)["attempt"] == 2, "the second attempt")
    equal(lines(rig, "fenced", "duplicates"), [], "duplicates")
    kill_now(rig, job)


@test
def powered_off_by_the_site(rig):
    """A machine that stands, alive: the site's command ends what runs there and says so; the next
    attempt starts elsewhere, once."""
    command = os.path.join(rig.dir, "fence")
    with open(command, "w") as f:
        f.write(
            "#!/bin/sh\n"
            'echo "$1 $MOE_NODE_BOOT_ID" >>%s/asked_power\n'
            "kill -9 $(cat %s/pids)\n"
            "echo power of $1 is off\n" % (rig.dir, rig.dir)
        )
    os.chmod(command, 0o755)
    with Rig(moed=dict(SILENT_SOON, fence_command=command)) as r:
        recovery = {"on_node_loss": "spare", "lease": "1s"}
        job = r.submit(rank_recipe(r, "powered", gpus=2, save=10, recovery=recovery))
        r.wait_iteration(job, 25)
        node = r.json("ranks", job)["items"][0]["node"]
        pids = r.stepd_of(job) + list(r.rank_pids(job).values())
        with open(os.path.join(rig.dir, "pids"), "w") as f:
            f.write(" ".join(str(p) for p in pids))
        for p in [r.agents[node].pid] + pids:
            os.kill(p, signal.SIGSTOP)
        wait_until(lambda: r.job(job)["attempt"] == 2, 60, "the second attempt")
        r.wait_iteration(job, 35)
        need(node not in r.job(job)["nodes"], "it is placed on %s again" % node)
        with open(os.path.join(rig.dir, "asked_power")) as f:
            asked = f.read().split()
        equal(asked[0::2], [node], "asked for")
        kinds = [e["type"] for e in r.json("events")["items"]]
        for kind in ("node.power_asked", "node.fenced"):
            equal(kinds.count(kind), 1, kind)
        equal(incidents(r, job)[0]["class"], "node_fault", "class")
        equal(lines(r, "powered", "duplicates"), [], "duplicates")
        os.kill(r.agents[node].pid, signal.SIGCONT)
        wait_until(lambda: node_state(r, node) == "up", 30, "the node comes back")
        kill_now(r, job)


@test
def a_command_that_fails_is_no_proof(rig):
    """Neither its exit status nor a signal; why says what it printed."""
    for end, said in (
        ("echo no route to the BMC; exit 3", "exit status 3: no route to the BMC"),
        ("kill -9 $$", "ended by signal 9"),
    ):
        command = os.path.join(rig.dir, "fence")
        with open(command, "w") as f:
            f.write("#!/bin/sh\n%s\n" % end)
        os.chmod(command, 0o755)
        with Rig(moed=dict(SILENT_SOON, fence_command=command)) as r:
            recovery = {"on_node_loss": "spare", "lease": "1s"}
            job = r.submit(rank_recipe(r, "unproved", gpus=2, recovery=recovery))
            r.wait_iteration(job, 5)
            node = r.json("ranks", job)["items"][0]["node"]
            stopped = [r.agents[node].pid] + r.stepd_of(job) + list(r.rank_pids(job).values())
            for p in stopped:
                os.kill(p, signal.SIGSTOP)
            wait_until(lambda: said in r.run("why", job).stdout, 60, "why says %r" % said)
            equal(r.job(job)["attempt"], 1, "attempt")
            for p in stopped:
                os.kill(p, signal.SIGCONT)
            wait_until(lambda: node_state(r, node) == "up", 30, "the node comes back")
            wait_until(lambda: r.job(job)["state"] == "running", 30, "the same attempt runs")
            kill_now(r, job)


@test
def rebooted_node(rig):
    """A new boot id proves the steps of the old one dead: the next attempt starts by itself, on
    that very node if need be."""
    with Rig(nodes=1, moed=SILENT_SOON) as r:
        job = r.submit(rank_recipe(r, "boot", gpus=2, steps=200, save=10))
        r.wait_iteration(job, 12)
        stepd, ranks = r.stepd_of(job), r.rank_pids(job)
        r.kill(r.agents["node-0"])
        for p in stepd + list(ranks.values()):
            os.kill(p, signal.SIGKILL)
        r.wait_state(job, "recovering", 30)
        r.start_agent("node-0", "another-boot")
        doc = r.wait_state(job, "completed", 40)
        equal((doc["attempt"], doc["restarts"]), (2, 1), "attempt and restarts")
        equal(incidents(r, job)[0]["class"], "node_fault", "class")
        equal(lines(r, "boot", "duplicates"), [], "duplicates")


@test
def lost_spool(rig):
    """Somebody deletes the step directory under a running job: reported, nothing is killed, nothing
    restarts; a person's word clears it, or a new boot."""
    with Rig(nodes=1) as r:
        job = r.submit(rank_recipe(r, "lost", gpus=2, steps=100000))
        r.wait_iteration(job, 5)
        stepd, ranks = r.stepd_of(job), r.rank_pids(job)
        r.kill(r.agents["node-0"])
        shutil.rmtree(os.path.join(r.dir, "run/node-0/steps"))
        r.start_agent("node-0")
        wait_until(
            lambda: [e for e in r.events_of(job) if e["type"] == "step.missing"],
            30,
            "event step.missing",
        )
        need(
            "no longer knows" in r.events_of(job, "step.missing")[0]["message"],
            "event: %s" % r.events_of(job, "step.missing")[0],
        )
        need(
            "resolve %s.a1 --gone" % job in json.dumps(r.json("why", job)),
            "why: %s" % r.json("why", job),
        )
        r.quiet(
            1,
            lambda: all(alive(p) for p in ranks.values()) and r.job(job)["attempt"] == 1,
            "the first attempt",
        )
        r.run("cancel", job, "--now")
        r.quiet(1, lambda: r.job(job)["state"] == "stopping", "stopping without proof")
        for p in stepd + list(ranks.values()):
            os.kill(p, signal.SIGKILL)
        r.run("resolve", "%s.a1" % job, "--gone")
        r.wait_state(job, "cancelled", 30)
        # and the node takes work
        again = r.submit(rank_recipe(r, "again", gpus=2, steps=100000))
        r.wait_iteration(again, 5)
        r.run("cancel", again, "--now")
        r.wait_state(again, "cancelled", 30)


@test
def full_runtime_disk(rig):
    """The agent's runtime file system is full: running steps go on and lose nothing; a launch is
    refused with the reason."""
    with Rig(nodes=0, gpus_per_node=4) as r:
        run = os.path.join(r.dir, "run")
        os.makedirs(run)
        if (
            os.geteuid() != 0
            or subprocess.call(
                ["mount", "-t", "tmpfs", "-o", "size=8m", "none", run], stderr=subprocess.DEVNULL
            )
            != 0
        ):
            raise Skipped("a small file system cannot be mounted here")
        try:
            r.start_agent("node-0")
            wait_until(
                lambda: [n["state"] for n in r.json("nodes")["items"]] == ["up"], 30, "the node"
            )
            job = r.submit(rank_recipe(r, "tight", gpus=2))
            r.wait_iteration(job, 10)
            ranks = r.rank_pids(job)
            fill(os.path.join(run, "junk"))
            other = r.submit(command_recipe("more", ["/bin/true"]))
            doc = wait_until(
                lambda: [d for d in [r.job(other)] if d["state"] == "failed" or d["attempt"] > 1],
                30,
                "the launch is refused",
            )[0]
            need(
                "spool" in json.dumps(r.json("why", other)) + (doc["reason"] or ""),
                "why: %s" % r.json("why", other),
            )
            equal(
                (r.rank_pids(job), r.job(job)["state"]),
                (ranks, "running"),
                "pids and state of the running job",
            )
            os.remove(os.path.join(run, "junk"))
            at = r.job(job)["iteration"]
            wait_until(
                lambda: max(x["iteration"] for x in r.json("metrics", job)["items"]) > at + 20,
                30,
                "the samples of the meantime",
            )
            no_iteration_missing(r, job)
            r.run("cancel", other, "--now", check=False)
            kill_now(r, job)
            r.wait_state(other, ["failed", "cancelled", "completed"])
        finally:
            r.down(check=False)
            subprocess.call(["umount", "-l", run])


# ---- planned stops ----

# ready: from here on it does not hear the signal
DEAF = "trap '' TERM; touch \"$0/ready-$RANK\"; while :; do sleep 0.05; done"
SAVER = (
    "trap 'sleep 0.5; echo saved > \"$0/saved-$RANK\"; exit 0' TERM; touch \"$0/ready-$RANK\"; "
    "while :; do sleep 0.05; done"
)


def saver(rig, name, script=SAVER, **stop):
    d = os.path.join(rig.dir, name)
    os.makedirs(d, exist_ok=True)
    job = rig.submit(
        command_recipe(
            name, ["/bin/sh", "-c", script, d], gpus=2, **({"stop": stop} if stop else {})
        )
    )
    wait_until(
        lambda: len([f for f in os.listdir(d) if f.startswith("ready")]) == 2,
        30,
        "both ranks ready",
    )
    return job, d


@test
def planned_stop(rig):
    """cancel lets the ranks save within stop.grace; --now does not; a rank that ignores the signal
    is killed when the grace is over."""
    job, d = saver(rig, "gentle")
    rig.run("cancel", job)
    rig.wait_state(job, "cancelled")
    equal(
        sorted(f for f in os.listdir(d) if f.startswith("saved")),
        ["saved-0", "saved-1"],
        "saved by cancel",
    )
    job, d = saver(rig, "hard")
    rig.run("cancel", job, "--now")
    rig.wait_state(job, "cancelled")
    equal([f for f in os.listdir(d) if f.startswith("saved")], [], "saved by cancel --now")
    job, d = saver(rig, "deaf", DEAF, grace="1s")
    rig.wait_state(job, "running")
    rig.run("cancel", job)
    rig.wait_state(job, "cancelled", 15)
    equal(
        [e["data"]["signal"] for e in rig.events_of(job, "rank.exited")],
        [9, 9],
        "signals that ended the deaf ones",
    )
    job, d = saver(rig, "usr1", signal="USR1", grace="1s")
    rig.run("pause", job)
    rig.wait_state(job, "paused", 15)
    equal(
        [f for f in os.listdir(d) if f.startswith("saved")],
        [],
        "saved although the signal was another one",
    )
    rig.run("cancel", job)
    rig.wait_state(job, "cancelled")


@test
def cancel_while_a_hard_one_follows(rig):
    """cancel, then cancel --now during a long grace."""
    job, _ = saver(rig, "twice", DEAF, grace="300s")
    rig.wait_state(job, "running")
    rig.run("cancel", job)
    equal(rig.job(job)["state"], "stopping", "state")
    rig.run("cancel", job, "--now")
    rig.wait_state(job, "cancelled", 15)


# ---- programs that fail ----


@test
def user_error(rig):
    """A rank that exits 1 by itself before the first iteration: one attempt, failed, with its last
    lines."""
    job = rig.submit(
        command_recipe(
            "wrong",
            [
                "/bin/sh",
                "-c",
                "[ $RANK = 1 ] || exec sleep 100; echo first line; echo 'ModuleNotFoundError: no "
                "module named flash' >&2; exit 1",
            ],
            gpus=2,
        )
    )
    doc = rig.wait_state(job, "failed")
    equal((doc["attempt"], doc["restarts"]), (1, 0), "attempt and restarts")
    need(
        "rank 1" in doc["reason"] and "ModuleNotFoundError: no module named flash" in doc["reason"],
        "reason: %s" % doc["reason"],
    )
    one = incidents(rig, job)[0]
    equal((one["class"], one["first_rank"]), ("user_error", 1), "incident")
    need("first line" in one["evidence"], "evidence: %s" % one["evidence"])
    watch = rig.run(
        "submit", "-", "--watch", stdin=command_recipe("watched", ["/bin/false"]), check=False
    )
    equal(watch.returncode, 10, "exit status of submit --watch")


@test
def full_disk_before_the_first_iteration(rig):
    """A disk that is full is no error of the user's: the job waits and goes on when there is room,
    and why tells the rank, the line and what to do."""
    room = os.path.join(rig.dir, "room")
    script = (
        "[ -e %s ] && exec %s --steps 5 --step-ms 5; [ $RANK = 1 ] || exec sleep 100; "
        "echo 'OSError: [Errno 28] No space left on device' >&2; exit 1" % (room, RANK)
    )
    job = rig.submit(
        command_recipe("full", ["/bin/sh", "-c", script], gpus=2, recovery={"backoff": "300s"})
    )
    wait_until(lambda: len(incidents(rig, job)) > 1, 60, "the second failure")
    one = incidents(rig, job)[-1]
    equal((one["class"], one["rule"], one["first_rank"]), ("storage", "no-space", 1), "incident")
    wait_until(
        lambda: "next attempt in" in rig.run("why", job).stdout, 20, "why says when it goes on"
    )
    said = rig.run("why", job).stdout
    need("rank 1 died first" in said and "make room" in said, said)
    with open(room, "w"):
        pass
    rig.wait_state(job, "completed", 60)


@test
def same_failure_three_times(rig):
    """Stops when it failed the same way on another node too; a checkpoint in between starts the
    count anew."""
    job = rig.submit(
        command_recipe(
            "again",
            [
                "/bin/sh",
                "-c",
                "printf 'ITERATION=1\\nLOSS=1' > /dev/null; exec "
                + RANK
                + " --steps 5 --step-ms 5 --exit 99999:1:0; ",
            ],
            gpus=1,
        )
    )
    rig.wait_state(job, "completed")
    # dies by a signal at iteration 8 of every attempt, before the checkpoint of 10
    script = (
        RANK
        + " --steps 100 --step-ms 10 --save-every 10 & pid=$!; sleep 0.3; kill -SEGV $pid; kill "
        "-SEGV $$"
    )
    job = rig.submit(command_recipe("again", ["/bin/sh", "-c", script], gpus=1, steps=100000))
    doc = rig.wait_state(job, "failed", 60)
    equal((doc["attempt"], doc["restarts"]), (3, 2), "attempt and restarts")
    # twice on one node, then on the other
    said = "reason: %s; incidents: %s" % (doc["reason"], incidents(rig, job))
    need("SIGSEGV on node-" in doc["reason"], said)
    need("as on node-" in doc["reason"], said)
    truth = os.path.join(rig.dir, "progress")
    os.makedirs(truth)
    # each attempt reaches one more checkpoint before it dies: five attempts are fine
    script = (
        "n=$MOE_ATTEMPT; [ $n -ge 5 ] && exit 0; d=$MOE_CHECKPOINT_DIR/iter_000000$n; mkdir -p "
        "$d; echo x > $d/COMPLETE; "
        "python3 -c 'import os,socket;s=socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM);"
        "s.sendto((\"ITERATION=%s\\nCHECKPOINT=%s\""
        "%(os.environ[\"MOE_ATTEMPT\"],\"'$d'\")).encode(),"
        "os.environ[\"MOE_NOTIFY_SOCKET\"])'; kill -KILL $$"
    )
    job = rig.submit(
        command_recipe(
            "progress", ["/bin/sh", "-c", script], gpus=1, checkpoint={"dir": truth + "/ckpt"}
        )
    )
    doc = rig.wait_state(job, ["completed", "failed"], 60)
    equal(
        (doc["state"], doc["attempt"]), ("completed", 5), "state and attempt (%s)" % doc["reason"]
    )


@test
def early_exit(rig):
    """All ranks exit 0 before the last step: failed, not completed. One exit 0 waits for the rest,
    then counts as a failure."""
    job = rig.submit(
        command_recipe("early", [RANK, "--steps", "5", "--step-ms", "10"], gpus=2, steps=50)
    )
    doc = rig.wait_state(job, "failed")
    need(
        "ended early at 5 of 50" in doc["reason"] and doc["attempt"] == 1,
        "reason: %s" % doc["reason"],
    )
    job = rig.submit(
        command_recipe(
            "rest", ["/bin/sh", "-c", "[ $RANK = 0 ] && exit 0; sleep 1; exit 0"], gpus=2
        )
    )
    rig.wait_state(job, "completed")
    with Rig(nodes=1, moed={"exit_wait": "3s"}) as soon:
        never = ["/bin/sh", "-c", "[ $RANK = 0 ] && exit 0; exec sleep 1000"]
        job = soon.submit(command_recipe("never", never, gpus=2))
        wait_until(
            lambda: "exit-wait" in json.dumps(incidents(soon, job)),
            30,
            "the wait for the other rank ends",
        )
        soon.run("cancel", job, "--now", check=False)
        soon.wait_state(job, ["cancelled", "failed"])


# ---- ports ----


@test
def busy_rank_ports(rig):
    """MASTER_PORT is the first of four in a row that are free on the node; busy ones cost neither a
    restart nor budget."""
    with Rig(nodes=1, moed={"rank_ports": "24500-24563"}) as r:
        held = []
        for port in (24500, 24505, 24510, 24512, 24517, 24521):
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(("0.0.0.0", port))
            s.listen()
            held.append(s)
        out = os.path.join(r.dir, "port")
        job = r.submit(
            command_recipe(
                "ports",
                ["/bin/sh", "-c", "[ $RANK = 0 ] && echo $MASTER_PORT > %s; sleep 0.2" % out],
                gpus=2,
            )
        )
        doc = r.wait_state(job, "completed", 60)
        with open(out) as f:
            port = int(f.read())
        need(
            not any(port <= s.getsockname()[1] < port + 4 for s in held),
            "MASTER_PORT %d is busy" % port,
        )
        equal(doc["restarts"], 0, "restarts")
        equal(incidents(r, job), [], "incidents")
        for s in held:
            s.close()


# ---- checkpoints ----


@test
def unwritable_checkpoint_directory(rig):
    plain = os.path.join(rig.dir, "file")
    with open(plain, "w") as f:
        f.write("x")
    mounted = os.path.join(rig.dir, "ro")
    os.makedirs(mounted)
    if os.geteuid() != 0:
        os.chmod(mounted, 0o555)
    elif (
        subprocess.call(
            ["mount", "-t", "tmpfs", "-o", "ro", "none", mounted], stderr=subprocess.DEVNULL
        )
        != 0
    ):
        raise Skipped("a read-only file system cannot be mounted here")
    try:
        for d in (mounted, plain, plain + "/below"):
            text = rank_recipe(
                rig, "ckpt-" + os.path.basename(d), checkpoint={"dir": d, "every": 10}
            )
            # moectl would look at its own machine first
            a = rig.http("POST", "/v1/jobs", text, content_type="application/yaml")
            equal(a.status, 201, "submit: %s" % a.body)
            job = a.json["id"]
            doc = wait_until(
                lambda: [
                    x
                    for x in [rig.job(job)]
                    if x["state"] == "failed" or (x["state"] == "queued" and x["reason"])
                ],
                30,
                "told",
            )[0]
            need(
                d in doc["reason"] and doc["attempt"] == 0,
                "%s: attempt %s, %s" % (d, doc["attempt"], doc["reason"]),
            )
            need(d in json.dumps(rig.json("why", job)), "why: %s" % rig.json("why", job))
            rig.run("cancel", job, check=False)
    finally:
        if os.geteuid() == 0:
            subprocess.call(["umount", mounted])


def checkpoint(d, iteration, complete=True):
    p = os.path.join(d, "iter_%07d" % iteration)
    os.makedirs(p)
    with open(os.path.join(p, "shard"), "w") as f:
        f.write("x" * 100)
    with open(os.path.join(p, "COMPLETE"), "w") as f:
        f.write("{}\n" if complete else "")


@test
def checkpoints_found(rig):
    """resume: auto takes the newest complete one of what lies there; resume: N one that is not
    there fails; all damaged waits with the reason and never starts afresh."""
    d = os.path.join(rig.dir, "found")
    for i, complete in ((10, True), (20, True), (30, False)):
        checkpoint(d, i, complete)
    out = os.path.join(rig.dir, "resumed")
    argv = ["/bin/sh", "-c", "echo $MOE_RESUME_ITERATION > " + out]
    job = rig.submit(command_recipe("auto", argv, checkpoint={"dir": d}))
    rig.wait_state(job, "completed")
    equal(open(out).read().strip(), "20", "resumed from")
    equal(
        {c["iteration"]: c["state"] for c in rig.json("checkpoints", job)["items"]},
        {10: "verified", 20: "verified", 30: "torn"},
        "ledger",
    )
    need(
        any(e["type"] == "checkpoint.torn" for e in rig.events_of(job)), "no event for the torn one"
    )
    job = rig.submit(command_recipe("ten", argv, checkpoint={"dir": d, "resume": 10}))
    rig.wait_state(job, "completed")
    equal(open(out).read().strip(), "10", "resumed from")
    job = rig.submit(command_recipe("never", argv, checkpoint={"dir": d, "resume": "never"}))
    rig.wait_state(job, "completed")
    equal(open(out).read().strip(), "-1", "resumed from")
    for wanted in (15, 30):
        job = rig.submit(command_recipe("missing", argv, checkpoint={"dir": d, "resume": wanted}))
        doc = rig.wait_state(job, "failed")
        need(
            str(wanted) in doc["reason"] and d in doc["reason"] and doc["attempt"] == 0,
            "reason: %s" % doc["reason"],
        )
    os.remove(out)
    shutil.rmtree(d)
    checkpoint(d, 40, False)
    checkpoint(d, 50, False)
    job = rig.submit(command_recipe("damaged", argv, checkpoint={"dir": d}))
    doc = wait_until(
        lambda: [x for x in [rig.job(job)] if "damaged" in (x["reason"] or "")], 30, "the reason"
    )[0]
    need(
        doc["state"] == "queued"
        and doc["attempt"] == 0
        and d in doc["reason"]
        and "50" in doc["reason"],
        "%s: %s" % (doc["state"], doc["reason"]),
    )
    rig.quiet(1, lambda: rig.job(job)["state"] == "queued" and not os.path.exists(out), "waiting")
    need("damaged" in json.dumps(rig.json("why", job)), "why: %s" % rig.json("why", job))
    rig.run("restart", job, "--from", "0")  # what the reason says
    rig.wait_state(job, "completed", 60)
    equal(open(out).read().strip(), "-1", "resumed from")


# ---- disk of the controller ----


def fill(path):
    """Fills the file system to the last byte."""
    with open(path, "wb", buffering=0) as f:
        for size in (1 << 20, 4096, 512, 1):
            try:
                while True:
                    f.write(b"x" * size)
            except OSError:
                continue


@contextlib.contextmanager
def small_disk(rig):
    """A file system of 112 MiB."""
    mount = os.path.join(rig.dir, "disk")
    os.makedirs(mount, exist_ok=True)
    if (
        os.geteuid() != 0
        or subprocess.call(
            ["mount", "-t", "tmpfs", "-o", "size=112m", "none", mount], stderr=subprocess.DEVNULL
        )
        != 0
    ):
        raise Skipped("a small file system cannot be mounted here")
    try:
        yield mount
    finally:
        subprocess.call(["umount", "-l", mount])


@test
def full_state_disk(rig):
    """Ballast is given up and running jobs still record; submits get 507; event store.full; once
    there is room, all is well again and the ballast is back."""
    with small_disk(rig) as mount:
        with Rig(nodes=1, state_dir=os.path.join(mount, "moed")) as r:
            ballast = os.path.join(r.state_dir, "ballast")
            equal(os.path.getsize(ballast), 16 << 20, "ballast")
            job = r.submit(rank_recipe(r, "full", gpus=2))
            r.wait_iteration(job, 10)
            fill(os.path.join(mount, "junk"))
            node = r.json("nodes")["items"][0]["name"]

            def noticed():
                """The log was made long at the start: so many records still fit."""
                for verb in ("drain", "undrain"):
                    r.http(
                        "POST",
                        "/v1/nodes/%s/%s" % (node, verb),
                        json.dumps({"when": "idle", "reason": "x"} if verb == "drain" else {}),
                    )
                return not os.path.exists(ballast)

            wait_until(noticed, 60, "the ballast is given up")
            before = r.job(job)["iteration"]
            a = r.http(
                "POST",
                "/v1/jobs",
                command_recipe("more", ["/bin/true"]),
                content_type="application/yaml",
            )
            equal(a.status, 507, "a submit: %s" % a.body)
            need("full" in a.detail or "space" in a.detail, a.detail)
            equal(
                r.run(
                    "submit", "-", check=False, stdin=command_recipe("more", ["/bin/true"])
                ).returncode,
                1,
                "exit status of a submit",
            )
            need(
                any(e["type"] == "store.full" for e in r.json("events")["items"]),
                "no event store.full",
            )
            r.wait_iteration(job, before + 30)
            equal(len(r.json("list", "--all")["items"]), 1, "jobs")
            # what was recorded while it was full is there after a crash
            at = r.job(job)["iteration"]
            r.kill(r.moed)
            r.start_moed()
            r.wait_iteration(job, at)
            no_iteration_missing(r, job, at)
            equal((r.job(job)["attempt"], r.job(job)["restarts"]), (1, 0), "attempt and restarts")
            os.remove(os.path.join(mount, "junk"))
            wait_until(
                lambda: os.path.exists(ballast) and os.path.getsize(ballast) == 16 << 20,
                60,
                "the ballast is made again",
            )
            again = wait_until(
                lambda: [
                    x
                    for x in [
                        r.http(
                            "POST",
                            "/v1/jobs",
                            command_recipe("more", ["/bin/true"]),
                            content_type="application/yaml",
                        )
                    ]
                    if x.status == 201
                ],
                30,
                "submits are taken again",
            )[0]
            kill_now(r, job)
            r.wait_state(again.json["id"], "completed")


@test
def start_on_a_full_state_disk(rig):
    """The ballast is there for this: given up before anything is written, by a moed that was killed
    as by one that ended. Nothing acknowledged is lost, and it says that submits are refused. A disk
    that is full without ballast keeps no moed from starting; its address is written later."""
    with small_disk(rig) as mount, Rig(nodes=1, state_dir=os.path.join(mount, "moed")) as r:
        ballast, address = (os.path.join(r.state_dir, x) for x in ("ballast", "address"))
        for how in (signal.SIGKILL, signal.SIGTERM):
            wait_until(lambda: os.path.exists(ballast), 60, "the ballast")
            job = r.submit(rank_recipe(r, "begins-%d" % how, gpus=2))
            r.wait_iteration(job, 5)
            r.kill(r.moed, how)
            fill(os.path.join(mount, "junk"))
            r.start_moed()
            need(not os.path.exists(ballast), "the ballast lies there, and the disk is full")
            r.wait_iteration(job, r.job(job)["iteration"] + 5)
            equal((r.job(job)["attempt"], r.job(job)["restarts"]), (1, 0), "attempt and restarts")
            a = r.http(
                "POST",
                "/v1/jobs",
                command_recipe("more", ["/bin/true"]),
                content_type="application/yaml",
            )
            equal(a.status, 507, "a submit: %s" % a.body)
            need(
                any(e["type"] == "store.full" for e in r.json("events")["items"]),
                "no event store.full",
            )
            fill(os.path.join(mount, "more"))
            r.kill(r.moed)
            r.start_moed()
            r.wait_iteration(job, r.job(job)["iteration"] + 5)
            need(not os.path.exists(address), "an address that is not its own")
            for name in ("junk", "more"):
                os.remove(os.path.join(mount, name))
            wait_until(lambda: os.path.exists(address), 60, "its address")
            kill_now(r, job)


@test
def checkpoints_that_will_not_fit(rig):
    """Told after the first save, long before one fails: by an event, why, status and a metric."""
    with small_disk(rig) as mount:
        saves = {"dir": os.path.join(mount, "ckpt"), "every": 10}
        words = ["--stay", str(STAYS), "--save-bytes", str(20 << 20)]
        job = rig.submit(
            rank_recipe(rig, "large", steps=100, save=10, extra=words, checkpoint=saves)
        )
        told = wait_until(lambda: rig.events_of(job, "checkpoint.space"), 60, "checkpoint.space")
        equal(len(told), 1, "events")
        text = "4 more checkpoints of 21.0 MB fit in %s" % saves["dir"]
        need(text in told[0]["message"] and ", and 9 are due" in told[0]["message"], told[0])
        equal((told[0]["data"]["fits"], told[0]["data"]["due"]), (4, 9), "data")
        why = rig.run("why", job).stdout
        need(text in why and "make room in %s" % saves["dir"] in why, why)
        need("4 more checkpoints" in rig.run("status", job).stdout, "status")
        doc = rig.job(job)
        equal(doc["checkpoints_fit"], 4, "the job's document")
        need(
            "moe_job_checkpoint_free_bytes{" in rig.http("GET", "/metrics").body.decode(), "metrics"
        )
        equal((doc["state"], doc["restarts"]), ("running", 0), "state and restarts")
        kill_now(rig, job)
        # who submits it again hears it at once, and is not refused
        again = rank_recipe(rig, "large", steps=100, save=10, extra=words, checkpoint=saves)
        for path, status in (("/v1/validate", 200), ("/v1/jobs", 201)):
            a = rig.http("POST", path, again, content_type="application/yaml")
            equal(a.status, status, "%s: %s" % (path, a.body))
            warned = [w for w in a.json.get("warnings", ()) if w.startswith("checkpoint.dir: ")]
            equal(len(warned), 1, "warnings of %s: %s" % (path, a.json))
            need(" of 21.0 MB fit in %s" % saves["dir"] in warned[0], warned[0])
            need("measured there for %s at" % job in warned[0], warned[0])
        kill_now(rig, a.json["id"])


def main():
    with Rig(moed=SILENT_SOON) as rig:
        return suite.main(rig)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
