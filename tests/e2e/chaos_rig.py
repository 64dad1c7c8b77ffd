"""The world of tests/chaos: a cluster whose links can be cut, whose clocks can be wrong and whose
disks can be full, its jobs, and what explains a restart of one: each was caused by something that
was done to just that attempt and ends attempts in just that way."""
import contextlib
import math
import os
import select
import shutil
import signal
import subprocess
import time

from lib import BUILD, Failed, equal, need, wait_until
from rig import AGENT, Rig, alive
from test_faults import lines, rank_recipe
from test_link import Wire, free_port

STEPS, SAVE, BYTES = 150, 25, 1 << 17
FINAL = ("completed", "failed", "cancelled")
WALLCLOCK = os.path.join(BUILD, "tests/fake/preload/wallclock.so")
# beginnings of an incident's cause
KILLED, LOST, BOOTED = "signal 9 SIGKILL", "supervisor-lost", "node-lost"
ROTTEN, NO_ROOM, PORT_BUSY = "exit code 94", "spool", "port-busy"


def proc(pid, file):
    """A file of zero-terminated words as text, a line for each; empty of a process that is gone."""
    with contextlib.suppress(OSError):
        with open("/proc/%d/%s" % (pid, file), "rb") as f:
            return f.read().replace(b"\0", b"\n").decode(errors="replace")
    return ""


def processes_of(path):
    """Pids of those that name it, in their environment or in their words (supervisors)."""
    pids = [int(p) for p in os.listdir("/proc") if p.isdigit() and int(p) != os.getpid()]
    return [p for p in pids if path in proc(p, "environ") + proc(p, "cmdline") and alive(p)]


def kill_all(path):
    """Until they have ended. One that ends has no environment any more while it still holds its
    files: a rank's lock, by which a second life of it would be told."""
    while found := processes_of(path):
        for p in found:
            with contextlib.suppress(ProcessLookupError):
                fd = os.pidfd_open(p)
                signal.pidfd_send_signal(fd, signal.SIGKILL)
                select.select([fd], [], [])
                os.close(fd)


class World(Rig):
    """Each agent has a link of its own, which can be cut. Daemons and supervisors see the wall
    clock of their machine, which can be wrong. The disks of the controller and of the last node are
    small (root only)."""

    def __init__(self):
        super().__init__(nodes=3)
        port = free_port()
        self.moed_options.update(port=port, suspect_ms=4000, down_ms=8000)
        self.links = {"node-%d" % i: Wire(port) for i in range(self.nodes)}
        self.boots, self.disks, self.clock_moves = {}, {}, 0
        # boots of which moed may not know yet: name of the node, its boot id, Harms
        self.booting = []
        self.small_disk("moed", os.path.join(self.dir, "disk"), 112)
        if "moed" in self.disks:
            self.state_dir = os.path.join(self.disks["moed"], "moed")
            self.moed_options["state_dir"] = self.state_dir
        last = "node-%d" % (self.nodes - 1)
        self.small_disk(last, os.path.join(self.dir, "run", last), 16)

    def small_disk(self, name, path, mib):
        os.makedirs(path)
        words = ["mount", "-t", "tmpfs", "-o", "size=%dm" % mib, "none", path]
        if os.geteuid() == 0 and subprocess.call(words, stderr=subprocess.DEVNULL) == 0:
            self.disks[name] = path

    def down(self, check=True):
        try:
            super().down(check)
            if check:
                wait_until(lambda: not processes_of(self.dir), 20, "the end of all supervisors")
        finally:
            kill_all(self.dir)
            for path in self.disks.values():
                subprocess.call(["umount", "-l", path])
            if os.environ.get("KEEP") != "1":
                shutil.rmtree(self.dir, ignore_errors=True)

    def says(self, name, offset, synced):
        """What the machine's wall clock is off by, and whether a time service vouches for it."""
        file = os.path.join(self.dir, "clock." + name)
        with open(file + ".new", "w") as f:
            f.write("%d %d\n" % (offset, synced))
        os.rename(file + ".new", file)

    def programs(self, node):
        """A directory of an agent whose supervisors see the clock of its machine too: agents leave
        their environment to nobody."""
        top = os.path.join(self.dir, "bin", node)
        if not os.path.exists(top):
            os.makedirs(top)
            for name in filter(lambda n: n.startswith("moe-"), os.listdir(BUILD)):
                os.symlink(os.path.join(BUILD, name), os.path.join(top, name))
            os.unlink(os.path.join(top, "moe-agent"))
            shutil.copy2(AGENT, top)  # a link is followed to where its helpers lie
            stepd = os.path.join(top, "moe-stepd")
            os.unlink(stepd)
            with open(stepd, "w") as f:
                f.write(
                    "#!/bin/bash\nexport LD_PRELOAD=%s FAKE_CLOCK=%s\n"
                    'exec -a moe-stepd %s/moe-stepd "$@"\n'
                    % (WALLCLOCK, os.path.join(self.dir, "clock." + node), BUILD)
                )
            os.chmod(stepd, 0o755)
        return os.path.join(top, "moe-agent")

    def spawn(self, program, name, options, args=(), **env):
        if program == AGENT:
            program = self.programs(name)
        env["MOE_BOOT_ID"] = self.boots.get(name)
        clock = os.path.join(self.dir, "clock." + name)
        return super().spawn(
            program, name, options, args, LD_PRELOAD=WALLCLOCK, FAKE_CLOCK=clock, **env
        )

    def start_agent(self, node, boot_id=None):
        self.agent_options["controller"] = "http://127.0.0.1:%d" % self.links[node].port
        super().start_agent(node)

    def known_boots(self, jobs):
        """Of a boot that moed knows by now, it ends no attempt that comes later."""
        if self.booting:
            known = {n["name"]: n["boot_id"] for n in self.json("nodes")["items"]}
            for node, boot_id, harms in list(self.booting):
                if known.get(node) == self.boots[node]:
                    self.booting.remove((node, boot_id, harms))
                    for job, harm in harms:
                        harm.last = job.doc()["attempt"]


class Harm:
    """What may end attempts `first` to `last` of a job, `times` times: by one of these causes, on
    this node (None: any), of those that resumed from this iteration (None: any)."""

    def __init__(self, first, last, causes, node=None, resume=None, times=1):
        self.first, self.last, self.causes, self.times = first, last, causes, times
        self.node, self.resume = node, resume

    def explains(self, incident, resume):
        return (
            self.times > 0
            and self.first <= incident["attempt"] <= self.last
            and incident["cause"].startswith(self.causes)
            and self.node in (None, incident["node"])
            and self.resume in (None, resume)
        )


def unexplained(incidents, harms, resumes):
    """Incidents that nothing explains; each takes away what it is explained by, what fits least
    others first. resumes: attempt -> iteration that it resumed from."""
    left = []
    for i in incidents:
        fits = [h for h in harms if h.explains(i, resumes.get(i["attempt"]))]
        if fits:
            min(fits, key=lambda h: h.last - h.first).times -= 1
        elif not i["cause"].startswith(PORT_BUSY):  # another process of this machine has it
            left.append(i)
    return left


class Job:
    def __init__(self, world, number, gpus):
        self.world, self.gpus = world, gpus
        self.name = "chaos-%d" % number
        self.recipe = rank_recipe(
            world,
            self.name,
            gpus=gpus,
            steps=STEPS,
            step_ms=25,
            save=SAVE,
            extra=["--child", "--save-bytes", str(BYTES)],
            recovery={"max_cycles_without_progress": 100},
            checkpoint={
                "dir": os.path.join(world.dir, self.name, "ckpt"),
                "every": SAVE,
                "verify": "crc" if gpus > 2 else "sizes",
            },
            time_limit="30m",  # less than the least that a clock jumps
        )
        self.harms, self.torn, self.forgot = [], [], False
        self.began, self.clock_moves = time.monotonic(), world.clock_moves
        for node, _, harms in world.booting:
            self.boot(node, 1, harms)
        self.id = self.submit(201)

    def submit(self, status):
        a = self.world.http(
            "POST",
            "/v1/jobs",
            self.recipe,
            content_type="application/yaml",
            Idempotency_Key=self.name,
        )
        equal(a.status, status, "a submit of %s: %s" % (self.name, a.body[:300]))
        return a.json["id"]

    def harm(self, first, last, *causes, **kw):
        self.harms.append(Harm(first, last, causes, **kw))
        return self.harms[-1]

    def boot(self, node, first, harms):
        self.forgot = True
        harms.append((self, self.harm(first, math.inf, BOOTED, node=node)))

    def doc(self):
        return self.world.http("GET", "/v1/jobs/" + self.id).json

    def ranks(self):
        items = self.world.http("GET", "/v1/jobs/%s/ranks" % self.id).json["items"]
        return [r for r in items if r["pid"] and r["state"] == "running" and alive(r["pid"])]

    def attempt_of(self, pid):
        """Of a rank's process, or of a supervisor; 0: it is neither of this job, or gone."""
        for line in proc(pid, "cmdline").split("\n"):
            head, _, attempt = os.path.basename(line).rpartition(".a")
            if head == self.id.replace("-", "") and "/steps/" in line:
                return int(attempt)
        env = dict(w.split("=", 1) for w in proc(pid, "environ").split("\n") if "=" in w)
        return int(env.get("MOE_ATTEMPT", 0)) if env.get("MOE_JOB") == self.id else 0

    # ---- its saves ----

    def saves(self):
        with contextlib.suppress(FileNotFoundError):
            top = os.path.join(self.world.dir, self.name, "ckpt")
            return sorted(int(d.split("_")[1]) for d in os.listdir(top) if d.startswith("iter_"))
        return []

    def file(self, iteration, name):
        return os.path.join(self.world.dir, self.name, "ckpt", "iter_%07d" % iteration, name)

    def whole(self, iteration):
        with contextlib.suppress(FileNotFoundError):
            with open(self.file(iteration, "state"), "rb") as f:
                right = f.read() == bytes([iteration % 251 + 1]) * BYTES
            return right and os.path.getsize(self.file(iteration, "COMPLETE")) > 0
        return False

    def spoilable(self, verified=False):
        """The newest save, when it is whole, or verified to be; of a job without another one a
        person is asked."""
        saves = self.saves()
        if len(saves) < 2 or not self.whole(saves[-1]):
            return None
        ledger = self.world.http("GET", "/v1/jobs/%s/checkpoints" % self.id).json["items"]
        state = {c["iteration"]: c["state"] for c in ledger}
        if verified and state.get(saves[-1]) != "verified":
            return None
        usable = [i for i in saves[:-1] if state.get(i) in ("complete", "verified")]
        return saves[-1] if any(self.whole(i) for i in usable) else None

    # ---- what must hold ----

    def ended(self):
        return self.doc()["state"] in FINAL

    def wait_end(self):
        try:
            wait_until(self.ended, 60, "the end of " + self.name)
        except Failed as e:
            doc = self.doc()
            raise Failed("%s; it is %s: %s" % (e, doc["state"], doc["reason"]))

    def starts(self):
        """(attempt, iteration that it resumes from) of each process, by its own word."""
        told = [line.split() for line in lines(self.world, self.name, "starts")]
        return [(int(w[2]), int(w[3])) for w in told]

    def check_starts(self):
        """Whenever: what processes wrote of their own lives."""
        equal(lines(self.world, self.name, "duplicates"), [], "ranks that lived twice")
        for attempt, resume in self.starts():
            where = "attempt %d of %s resumed from " % (attempt, self.name)
            need(resume <= 0 or resume % SAVE == 0, "%s%d, no save" % (where, resume))
            need((attempt, resume) not in self.torn, "%s%d, which is torn" % (where, resume))

    def check_restarts(self, doc):
        report = self.world.http("GET", "/v1/jobs/%s/report" % self.id).json
        told = report["incidents"]
        equal(doc["restarts"], len(told), "restarts of %s, and its incidents" % self.name)
        equal(len(told), len({i["attempt"] for i in told}), "attempts with incidents")
        left = unexplained(told, self.harms, dict(self.starts()))
        need(
            not left,
            lambda: "%s restarted for nothing that was done to it: %s; done was: %s"
            % (
                self.name,
                [(i["attempt"], i["node"], i["cause"], i["evidence"]) for i in left],
                [vars(h) for h in self.harms],
            ),
        )
        # a minute of a wrong clock cannot be told from a minute's absence
        most = time.monotonic() - self.began + 60 * (self.world.clock_moves - self.clock_moves + 1)
        seconds = report["gpu_seconds"]["total"]
        need(seconds < self.gpus * most, "%s is charged %g GPU-seconds" % (self.name, seconds))

    def wrong(self):
        """Iterations that are not in the metrics, or with other digits. What a supervisor had heard
        and not told yet is gone with it."""
        seen = {s["iteration"]: s["loss"] for s in self.world.json("metrics", self.id)["items"]}
        return [
            i
            for i in range(1, STEPS + 1)
            if not (self.forgot and i not in seen)
            and abs(seen.get(i, 0) - (1 + 4 / (1 + i / 10))) > 1e-5
        ]

    def check_end(self):
        doc = self.doc()
        equal(doc["state"], "completed", "state of %s: %s" % (self.name, doc["reason"]))
        self.check_starts()
        self.check_restarts(doc)
        try:
            wait_until(lambda: not self.wrong(), 20, "all iterations of " + self.name)
        except Failed as e:
            told = ["%s %s" % (x["type"], x["message"]) for x in self.world.events_of(self.id)]
            raise Failed("%s: %s; its last events: %s" % (e, self.wrong(), "; ".join(told[-12:])))
        children = [int(p) for p in lines(self.world, self.name, "children")]
        wait_until(lambda: not any(map(alive, children)), 20, "the end of all children")
