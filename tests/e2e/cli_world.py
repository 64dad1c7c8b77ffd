"""For tests of moectl: a cluster with a job in each state, and what its documents and error lines
must look like."""
import json
import os
import shutil
import signal
import tempfile

from lib import BUILD, Cluster, command_recipe, equal, need, wait_until

RANK = os.path.join(BUILD, "tests/fake/rank")
WORK = tempfile.mkdtemp(prefix="moe-cli-")

# what documents must have
JOB = (
    "id name state attempt restarts iteration steps loss tokens_per_s_per_gpu tflops_per_gpu mfu "
    "ranks nodes created_at started_at ended_at eta_s reason checkpoint".split()
)
CHECKPOINT = "iteration path state level bytes saved_at verified_at attempt reason".split()


def place(name):
    return os.path.join(WORK, name)


def keys(doc, wanted, what):
    missing = [k for k in wanted if k not in doc]
    need(not missing, lambda: "%s lacks %s: %s" % (what, missing, json.dumps(doc)[:400]))


def error_line(r, status, what):
    equal(r.returncode, status, "exit status of %s (%s)" % (what, r.stderr.strip()[:300]))
    need(
        r.stderr.startswith("moectl: ") and r.stderr.count("\n") == 1 and r.stderr.count(": ") >= 2,
        lambda: "%s: not one line `moectl: what: why`: %r" % (what, r.stderr),
    )


def fake(name, *words, gpus=1, **top):
    truth = place("truth-" + name)
    os.makedirs(truth, exist_ok=True)
    return command_recipe(name, [RANK, "--truth", truth, *map(str, words)], gpus=gpus, **top)


class World:
    """One cluster with a job in each state."""

    def __init__(self):
        self.c = Cluster(place("cluster"), nodes=2, gpus_per_node=8)
        self.c.up()
        self.jobs, self.stopped, c = {}, None, self.c
        self.jobs["completed"] = c.submit(
            fake(
                "w-completed",
                "--steps",
                6,
                "--step-ms",
                5,
                "--save-every",
                2,
                gpus=2,
                steps=6,
                checkpoint={"dir": place("ckpt"), "every": 2},
                env={"MY_TOKEN": "hush-hush", "WORD": "w"},
            )
        )
        self.jobs["failed"] = c.submit(
            command_recipe("w-failed", ["sh", "-c", "echo RuntimeError: no such flavour; exit 3"])
        )
        self.jobs["running"] = c.submit(
            fake("w-running", "--steps", 1000000, "--step-ms", 20, gpus=2, steps=1000000)
        )
        self.jobs["cancelled"] = c.submit(fake("w-cancelled", "--steps", 1000000, "--step-ms", 20))
        self.jobs["paused"] = c.submit(fake("w-paused", "--steps", 1000000, "--step-ms", 20))
        self.jobs["queued"] = c.submit(command_recipe("w-queued", ["true"], gpus=64))
        self.jobs["stopping"] = c.submit(
            command_recipe(
                "w-stopping",
                ["sh", "-c", "trap '' TERM; touch %s; while :; do sleep 1; done" % place("deaf")],
                stop={"grace": "600s"},
            )
        )
        self.jobs["recovering"] = c.submit(
            fake(
                "w-recovering",
                "--steps",
                1000000,
                "--step-ms",
                20,
                recovery={"grace": "600s"},
                steps=1000000,
            )
        )
        for state in ("running", "cancelled", "paused", "stopping", "recovering"):
            c.wait_state(self.jobs[state], "running")
        for state in ("cancelled", "paused", "recovering"):
            c.wait_iteration(self.jobs[state], 2)
        wait_until(lambda: os.path.exists(place("deaf")), 30, "a rank that hears no signal")
        c.run("cancel", self.jobs["cancelled"])
        c.run("pause", self.jobs["paused"])
        c.run("cancel", self.jobs["stopping"])
        os.kill(c.json("ranks", self.jobs["recovering"])["items"][0]["pid"], signal.SIGKILL)
        for state, job in self.jobs.items():
            c.wait_state(job, state)

    def start_one(self):
        """A job that stays `starting`: its agent is stopped, so that nobody answers the launch.
        Only until the node counts as down."""
        agent = next(a for a in self.c.status()["agents"] if a["node"] == "node-1")["pid"]
        os.kill(agent, signal.SIGSTOP)
        self.stopped = agent
        job = self.jobs["starting"] = self.c.submit(
            command_recipe("w-starting", ["sleep", "1000"], gpus=8)
        )
        equal(self.c.job(job)["state"], "starting", "state of a job whose agent does not answer")
        return job

    def wake(self):
        if self.stopped:
            os.kill(self.stopped, signal.SIGCONT)
        self.stopped = None

    def close(self):
        self.wake()
        self.c.down()


def main(suite):
    """Runs the suite on a world; what it leaves stays when something failed."""
    world = World()
    try:
        failed = suite.main(world)
    finally:
        world.close()
    if not failed:
        shutil.rmtree(WORK, ignore_errors=True)
    return 1 if failed else 0
