#!/usr/bin/python3
"""kill -9 of moed, of an agent, of both, twice in a row, at seeded instants, some of them exactly
at a system call (between store and reply, between command and spool, during spawn), during a
save and during a recovery. After each: the job completes, every iteration is in the metrics,
ranks kept their pids, no rank ever lived twice, nothing restarted that had not failed. Usage:
test_kill.py [--rounds N] [--seed S] [--keep DIR]. Each round prints its seed and kind, so one
can be run again alone."""
import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import BUILD, PATIENCE, Cluster, Failed, wait_until

STEP_MS = 15
RANK = os.path.join(BUILD, "tests/fake/rank")

# kind, what is killed, how
KINDS = [
    "moed",
    "agent",
    "both",
    "moed-twice",
    "agent-twice",
    "both-twice",
    "moed-at-sync",
    "moed-at-send",
    "agent-at-sync",
    "agent-at-spawn",
    "agent-at-send",
    "save-moed",
    "save-both",
    "recovery-moed",
    "recovery-agent",
    "recovery-both",
]
SYSCALLS = {
    "sync": "fsync,fdatasync",
    "send": "sendto,sendmsg,write,writev",
    "spawn": "vfork,clone,clone3",
}


class Round:
    def __init__(self, cluster, seed, work):
        self.c, self.seed, self.rng = cluster, seed, random.Random(seed)
        self.kind = KINDS[seed % len(KINDS)]
        self.dir = os.path.join(work, "round-%d" % seed)
        self.truth = os.path.join(self.dir, "truth")
        self.steps = 40
        # a recovery must find the job still running, however late it is begun
        self.stay = 15 if self.kind.startswith("recovery-") else 0
        os.makedirs(self.truth)
        self.problems, self.pids, self.tracers = [], {}, []

    def fail(self, what):
        self.problems.append(what)

    def recipe(self):
        path = os.path.join(self.dir, "recipe.yaml")
        with open(path, "w") as f:
            f.write(
                "recipe: 1\nname: kill-%d\n"
                "engine: {kind: command, argv: [%s, --steps, '%d', --step-ms, '%d', --save-every, "
                "'10', --stay, '%d', --truth, %s, --child]}\n"
                "cluster: {gpus: 4}\nsteps: %d\ncheckpoint: {dir: %s, every: 10}\n"
                "recovery: {backoff: 0}\n"
                % (
                    self.seed,
                    RANK,
                    self.steps,
                    STEP_MS,
                    self.stay,
                    self.truth,
                    self.steps,
                    os.path.join(self.dir, "ckpt"),
                )
            )
        return path

    def victims(self):
        s = self.c.status()
        agent = self.rng.choice(s["agents"])["pid"]
        return {"moed": [s["moed"]["pid"]], "agent": [agent], "both": [s["moed"]["pid"], agent]}[
            self.kind.replace("save-", "").replace("recovery-", "").split("-")[0]
        ]

    def kill(self, pids):
        for p in pids:
            try:
                os.kill(p, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def attach(self, pids, what):
        """SIGKILL at the n-th system call of a kind, before the kernel carries it out."""
        n = self.rng.randint(1, 12 if what != "spawn" else 2)
        for p in pids:
            t = subprocess.Popen(
                [
                    "strace",
                    "-qq",
                    "-o",
                    "/dev/null",
                    "-e",
                    "trace=" + SYSCALLS[what],
                    "-e",
                    "inject=%s:signal=SIGKILL:when=%d" % (SYSCALLS[what], n),
                    "-p",
                    str(p),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            self.tracers.append(t)
            # a traced daemon may already be dead when it is looked at
            wait_until(
                lambda: self.dead([p])
                or "TracerPid:\t0\n" not in open("/proc/%d/status" % p).read(),
                10,
                "strace attached to %d" % p,
            )

    def detach(self):
        for t in self.tracers:
            t.terminate()
            t.wait()

    def dead(self, pids):
        def gone(p):
            try:
                return open("/proc/%d/stat" % p).read().rsplit(")", 1)[1].split()[0] == "Z"
            except (FileNotFoundError, ProcessLookupError):
                return True

        return all(gone(p) for p in pids)

    def ranks(self, job):
        return {r["rank"]: r["pid"] for r in self.c.json("ranks", job)["items"] if r["pid"]}

    def starts(self):
        """What each process of a rank wrote as its first deed."""
        path = os.path.join(self.truth, "starts")
        return [line.split() for line in open(path)] if os.path.exists(path) else []

    def remember(self, job):
        if self.c.json("status", job)["attempt"] == 1:
            self.pids = self.ranks(job)

    def run(self):
        at = self.kind.split("-at-")
        before = self.victims() if len(at) == 2 else []
        if before:
            self.attach(before, at[1])
        submit = self.c.popen("submit", self.recipe(), "--json")
        name = "kill-%d" % self.seed
        restarts = 0
        if before:
            wait_until(
                lambda: self.dead(before) or submit.poll() is not None,
                30,
                "the traced daemon died or the submit returned",
            )
            deadline = time.monotonic() + 1.5
            while not self.dead(before) and time.monotonic() < deadline:
                time.sleep(0.01)
            self.kill(before)
            self.detach()
        else:
            if submit.wait(PATIENCE * 30) != 0:
                self.fail("submit failed: " + submit.stderr.read())
                return
            if self.kind.startswith("save-"):
                wait_until(
                    lambda: os.path.isdir(os.path.join(self.dir, "ckpt"))
                    and os.listdir(os.path.join(self.dir, "ckpt")),
                    30,
                    "the first save",
                )
            elif self.kind.startswith("recovery-"):
                # one rank's iterations say nothing of another's start
                wait_until(
                    lambda: (self.c.json("status", name)["iteration"] or 0) >= 12
                    and len(self.starts()) >= 4,
                    30,
                    "iteration 12, and every rank's start",
                )
                pid = self.rng.choice(sorted(self.ranks(name).values()))
                try:
                    os.kill(pid, signal.SIGKILL)
                    restarts = 1
                except ProcessLookupError:
                    pass  # all was trained before this slow look at it
                time.sleep(self.rng.random() * 0.06)
            else:
                time.sleep(self.rng.random() * self.steps * STEP_MS / 1000 * 1.2)
                if restarts == 0:
                    self.remember(name)
            victims = self.victims()
            self.kill(victims)
            if self.kind.endswith("-twice"):
                self.c.up()
                time.sleep(self.rng.random() * 0.3)
                self.kill(self.victims())
        self.c.up()
        if before and submit.wait(PATIENCE * 60) != 0:
            self.fail("submit was not repeated: " + submit.stderr.read())
            return
        self.check(name, restarts)

    def check(self, name, restarts):
        final = ("completed", "failed", "cancelled")
        try:
            wait_until(
                lambda: self.c.json("status", name)["state"] in final, 60, "the end of " + name
            )
        except Failed as e:
            self.fail(
                "%s; status %s why %s" % (e, self.c.json("status", name), self.c.json("why", name))
            )
            return
        job = self.c.json("status", name)
        if job["state"] != "completed" or job["restarts"] != restarts:
            self.fail(
                "state %s restarts %s (expected completed, %d): %s"
                % (job["state"], job["restarts"], restarts, job["reason"])
            )
        seen = {}
        for s in self.c.json("metrics", name)["items"]:
            seen.setdefault(s["iteration"], []).append(s["attempt"])
        missing = [i for i in range(1, self.steps + 1) if i not in seen]
        if missing:
            self.fail("iterations missing from the metrics: %s" % missing)
        twice = [i for i, a in seen.items() if len(a) != len(set(a))]
        if twice:
            self.fail("iterations reported twice by one attempt: %s" % twice)
        if os.path.exists(os.path.join(self.truth, "duplicates")):
            self.fail(open(os.path.join(self.truth, "duplicates")).read().strip())
        starts = self.starts()
        # a node on which another process of this machine holds the port starts nothing; the other
        # node's ranks are ended, and the next attempt has another port
        refused = sum(
            e["type"] == "step.refused" and "port-busy" in e["message"]
            for e in self.c.json("events", name)["items"]
        )
        for rank in range(4):
            mine = [s for s in starts if int(s[0]) == rank]
            if not restarts + 1 <= len(mine) <= restarts + 1 + refused:
                self.fail("rank %d was started %d times: %s" % (rank, len(mine), mine))
            elif (
                self.pids
                and not restarts
                and int(mine[0][1]) != self.pids.get(rank, int(mine[0][1]))
            ):
                self.fail("rank %d changed its pid" % rank)
        children = [int(line) for line in open(os.path.join(self.truth, "children"))]
        left = [p for p in children if not self.dead([p])]
        if left:
            self.fail("children of ranks are alive after the end: %s" % left)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rounds", type=int, default=50)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--keep")
    a = p.parse_args()
    passed = failed = 0
    work = a.keep or os.path.join(BUILD, "test-kill")
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    cluster = Cluster(os.path.join(work, "cluster"), nodes=2, gpus_per_node=2)
    try:
        cluster.up()
        for seed in range(a.seed, a.seed + a.rounds):
            r = Round(cluster, seed, work)
            try:
                r.run()
            except (Failed, subprocess.SubprocessError, OSError, KeyError, ValueError) as e:
                r.fail("%s: %s" % (type(e).__name__, e))
            finally:
                r.detach()
            if r.problems:
                failed += 1
                print(
                    "FAIL kill seed %d %s: %s" % (seed, r.kind, "; ".join(r.problems)), flush=True
                )
                cluster.up()
                cluster.run("cancel", "kill-%d" % seed, "--now", check=False)
            else:
                passed += 1
                print("ok kill seed %d %s" % (seed, r.kind), flush=True)
    finally:
        cluster.down()
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
