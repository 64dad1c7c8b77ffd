"""For tests of one agent: a directory, a scripted controller (fake_moed.py) and moe-agent; the
ranks are small shell or Python programs and tests/fake/rank."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fake_moed import FakeMoed
from lib import BUILD, PATIENCE, ROOT, Daemon, Failed, equal, need, wait_until

FAKE_RANK = os.path.join(BUILD, "tests/fake/rank")
PORT = [23000 + os.getpid() % 500 * 10]


class Node:
    """A directory, a scripted controller and one agent."""

    def __init__(self, gpus=8, options=(), env=None, beat_ms=200):
        self.dir = tempfile.mkdtemp(prefix="moe-agent-")
        self.gpus, self.options, self.env = gpus, list(options), env or {}
        self.moed = FakeMoed(self.dir + "/moed.sock", beat_ms=beat_ms)
        self.agent, self.bin = None, BUILD
        self.attempts = []

    def __enter__(self):
        self.moed.start()
        self.start()
        return self

    def __exit__(self, *exc):
        for job, attempt in self.attempts:
            self.moed.order("kill", job, attempt)
        try:
            if self.agent is None:
                self.start()
            for key in self.attempts:
                self.moed.wait_note(*key, "gone", deadline=20)
        finally:
            self.stop_agent(signal.SIGTERM)
            self.moed.stop()
            self.stopped()
        left = []
        try:
            wait_until(
                lambda: not [p for p in processes() if self.dir in p[1]], 10, "all processes end"
            )
        except Failed:
            left = [p for p in processes() if self.dir in p[1]]
        log = self.log()
        shutil.rmtree(self.dir)
        if exc[0]:
            sys.stdout.write(log[-4000:])
        need(not left, "left behind: %s" % left)
        need("Sanitizer" not in log and "runtime error" not in log, log[-3000:])

    def stopped(self):
        """What a test takes down once no agent uses it."""

    def command(self):
        """The agent's command line and environment."""
        args = [os.path.join(self.bin, "moe-agent"), "--config", "/dev/null"]
        for o in [
            "controller=unix:" + self.dir + "/moed.sock",
            "node=n0",
            "state_dir=" + self.dir + "/state",
            "runtime_dir=" + self.dir + "/run",
            "gpus=%d" % self.gpus,
            "only_fake_gpus=true",
            "allow_root=true",
        ] + self.options:
            args += ["--set", o]
        env = {
            "PATH": "/usr/bin:/bin",
            "LEAKED": "yes",
            "SLURM_JOB_ID": "1",
            "http_proxy": "http://x",
            "MOE_DATA_DIR": os.path.join(ROOT, "config"),
        }
        env.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
        env.update(self.env)
        return args, env

    def start(self):
        args, env = self.command()
        hellos = len(self.moed.hellos)
        with open(self.dir + "/agent.log", "ab") as log:
            self.agent = Daemon(args, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env)
        self.moed.wait(lambda: len(self.moed.hellos) > hellos, 20, "hello of the agent")

    def stop_agent(self, sig=signal.SIGKILL):
        if self.agent:
            self.agent.send_signal(sig)
            code, self.agent = self.agent.wait(PATIENCE * 20), None
            if sig == signal.SIGTERM:
                equal(
                    code, 0, "exit status of the agent after SIGTERM (log: %s)" % self.log()[-3000:]
                )

    def own_helpers(self, **scripts):
        """The next start uses copies of the programs, of which some are these scripts."""
        self.bin = self.dir + "/bin"
        os.mkdir(self.bin)
        for name in (
            "moe-agent",
            "moe-stepd",
            "moe-discover",
            "moe-ckpt",
            "moe-config",
            "moe-probe",
            "moe-namespace",
            "moe-image",
            "moe-recorder",
            "moe-runtime",
            "moe-hold",
        ):
            if name not in scripts:
                shutil.copy(os.path.join(BUILD, name), self.bin)
        for name, text in scripts.items():
            with open(os.path.join(self.bin, name), "w") as f:
                f.write(text)
            os.chmod(os.path.join(self.bin, name), 0o755)

    def log(self):
        with open(self.dir + "/agent.log", errors="replace") as f:
            text = f.read()
        for root, _, files in os.walk(self.dir + "/run"):
            for name in files:
                if name == "stepd.log":
                    with open(os.path.join(root, name), errors="replace") as f:
                        text += f.read()
        return text

    def launch(
        self,
        argv,
        n=1,
        job=1,
        attempt=1,
        wait="running",
        rules=(),
        env=(),
        items=(),
        deadline=20,
        **over,
    ):
        PORT[0] += 4
        launch = {
            "job": job,
            "attempt": attempt,
            "name": "t",
            "user": None,
            "allow_root": True,
            "first_rank": 0,
            "n_local": n,
            "world": n,
            "node_rank": 0,
            "n_nodes": 1,
            "gpus": list(range(n)),
            "master_addr": "127.0.0.1",
            "master_port": PORT[0],
            "hold_ports": True,
            "argv": argv,
            "workdir": self.dir,
            "env": [
                dict(name=k, value=v, reason="r", source="s", overrides=None, layer="recipe")
                for k, v in env
            ]
            + list(items),
            "bind": {
                "cpu": "numa",
                "memory": "preferred",
                "nic": "nearest",
                "smt": "auto",
                "verify": "strict",
                "reserve_cores": 0,
            },
            "checkpoint_dir": self.dir + "/ckpt",
            "resume": -1,
            "steps": None,
            "stop_signal": 15,
            "stop_grace_us": 5000000,
            "metrics_rank": "first",
            "rules": list(rules),
            "announced_is_complete": True,
        }
        launch.update(over)
        self.attempts.append((job, attempt))
        self.launched_wall = time.time()
        done = self.moed.order("launch", job, attempt, launch=launch)
        if wait:
            self.moed.wait_note(job, attempt, wait, deadline=deadline)
            if wait == "refused":
                self.moed.wait_note(job, attempt, "gone", deadline=deadline)
            done()
        return launch["master_port"]

    def step_dir(self, job=1, attempt=1):
        return self.dir + "/run/steps/j%d.a%d" % (job, attempt)

    def stepd_pid(self, job=1, attempt=1):
        mark = self.step_dir(job, attempt)
        found = [p for p, cmd in processes() if "moe-stepd" in cmd and mark in cmd]
        return found[0] if found else None

    def file(self, name):
        with open(os.path.join(self.dir, name), errors="replace") as f:
            return f.read()


def processes():
    out = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/cmdline" % name, "rb") as f:
                    cmd = f.read().replace(b"\0", b" ").decode(errors="replace")
                with open("/proc/%s/stat" % name) as f:
                    state = f.read().rsplit(")", 1)[1].split()[0]
                if state not in "ZX":
                    out.append((int(name), cmd))
            except OSError:
                pass
    return out


def alive(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


SLEEP = ["/bin/sh", "-c", "exec sleep 1000"]


def children_of(n):
    return (
        [int(line) for line in n.file("children").splitlines()]
        if os.path.exists(n.dir + "/children")
        else []
    )
