"""Rows 9, 10, 14 and 15 with emulated agents (tests/bench/swarm): a controller of its own on
loopback, and a fleet that speaks the real protocol to it. Controller, fleet and clients share the
machine: processor time is the controller's own, latencies stand beside a bare server's of the same
run. FLEET=N: so many nodes instead of 12,500."""
import json
import os
import resource
import subprocess
import threading
import time

from controller import Moed
from lib import BUILD, Failed, wait_until

NODES = int(os.environ.get("FLEET", "12500"))
SWARM = os.path.join(BUILD, "tests/bench/swarm/swarm")
LIMIT_S = 600


class Fleet:
    """moed and the fleet; `last` is the newest line that the fleet said."""

    def __init__(self, nodes=NODES, **options):
        self.nodes, self.last, self.options = nodes, {}, options

    def __enter__(self):
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        self.moed = Moed(beat_ms=1000, suspect_ms=2200, down_ms=10000, max_connections=most - 1000)
        self.swarm = subprocess.Popen(
            [SWARM, "http://%s:%s" % (self.moed.host, self.moed.port)]
            + [os.path.join(self.moed.dir, "tokens/agent.token"), str(self.nodes)]
            + ["seconds=%d" % LIMIT_S]
            + ["%s=%s" % o for o in self.options.items()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        threading.Thread(target=self.listen, daemon=True).start()
        return self

    def __exit__(self, *exc):
        self.swarm.kill()
        self.swarm.wait()
        self.moed.stop()

    def listen(self):
        for line in self.swarm.stdout:
            self.last = json.loads(line)

    def say(self, command):
        self.swarm.stdin.write(command + "\n")
        self.swarm.stdin.flush()

    def all_up(self, deadline):
        """Seconds until all are."""
        t = time.monotonic()
        wait_until(lambda: self.last.get("up") == self.nodes, deadline, "the fleet up")
        return time.monotonic() - t

    def heard(self):
        """A line that was said from now on."""
        t = time.time()
        return wait_until(lambda: self.last.get("t", 0) > t and self.last, 10, "the fleet")

    def post(self, path, body):
        a = self.moed.ask("POST", path, body, timeout=60)
        if a.status >= 300:
            raise Failed("%s: %d %s" % (path, a.status, a.body[:300]))
        return a.json

    def state(self, job):
        return self.moed.get("/v1/jobs/" + job, timeout=60)["state"]

    def cpu_s(self):
        with open("/proc/%d/stat" % self.moed.process.pid) as f:
            words = f.read().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def rss_mib(self):
        with open("/proc/%d/status" % self.moed.process.pid) as f:
            return next(int(x.split()[1]) / 1024 for x in f if x.startswith("VmRSS"))

    def busy(self, n):
        """Shares of a core, each of a second."""
        shares = []
        for _ in range(n):
            before, t = self.cpu_s(), time.monotonic()
            time.sleep(1)
            shares.append(100 * (self.cpu_s() - before) / (time.monotonic() - t))
        return shares


def large_job(gpus):
    return {
        "recipe": 1,
        "name": "large",
        "engine": {"kind": "command", "argv": ["/bin/train"]},
        "cluster": {"gpus": gpus},
    }


def idle(report, n, reads):
    """Row 9 without jobs, and row 15: how long the fleet takes to be up when all say hello at
    once."""
    with Fleet() as f:
        up = [f.all_up(LIMIT_S)]
        f.say("mark")
        report("fleet", "idle_moed_cpu", f.busy(max(10, n)), "% of a core")
        beats = [f.heard()["late_p99_ms"] for _ in range(5)]
        report("fleet", "idle_beats_late_p99", beats, "ms")
        report("fleet", "idle_moed_rss", [f.rss_mib() for _ in range(5)], "MiB")
        reads("idle", f.moed.options["unix_socket"], ["/v1/cluster", "/v1/nodes/swarm-1"])
        for _ in range(4):
            f.say("reboot")
            wait_until(lambda: f.last["up"] < f.nodes, 30, "the fleet down")
            up.append(f.all_up(LIMIT_S))
        report("fleet", "all_up_after_power_cut", up, "s")


def busy(report, n, reads):
    """Rows 9 and 10: one job on every GPU, whose ranks all report each second."""
    sent, running = [], []
    with Fleet(progress=1) as f:
        f.all_up(LIMIT_S)
        wait_until(lambda: f.moed.get("/v1/cluster")["gpus"]["free"] == 8 * f.nodes, 30, "free")
        for i in range(5):
            f.say("mark")
            f.heard()
            t = time.time()
            job = f.post("/v1/jobs", large_job(8 * f.nodes))["id"]
            wait_until(lambda: f.state(job) == "running", 120, "running")
            running.append(time.time() - t)
            sent.append(f.heard()["launch_last"] - t)
            if i == 4:
                break
            f.post("/v1/jobs/%s/cancel" % job, {"now": True})
            wait_until(lambda: f.state(job) == "cancelled", 120, "end")
        report("fleet", "launch_last_command", sent, "s")
        report("fleet", "launch_running", running, "s")
        f.say("mark")
        report("fleet", "progress_moed_cpu", f.busy(max(10, n)), "% of a core")
        beats = [f.heard()["late_p99_ms"] for _ in range(5)]
        report("fleet", "progress_beats_late_p99", beats, "ms")
        report("fleet", "progress_moed_rss", [f.rss_mib() for _ in range(5)], "MiB")
        paths = ["/v1/cluster", "/v1/jobs/" + job, "/v1/jobs?limit=100"]
        reads("progress", f.moed.options["unix_socket"], paths)


def bench(report, n, reads):
    if not os.path.exists(SWARM):
        raise Failed("no %s: make bench builds it" % SWARM)
    idle(report, n, reads)
    busy(report, n, reads)
