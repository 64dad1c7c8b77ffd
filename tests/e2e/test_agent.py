#!/usr/bin/python3
"""moe-agent and moe-stepd against a scripted controller (fake_moed.py): launch, binding, environment, notes, logs, adoption, the three nets, stops, refusals, floods.
The ranks here are small shell or Python programs and tests/fake/rank."""
import errno
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fake_moed import FakeMoed
from lib import BUILD, ROOT, Failed, Skipped, Suite, equal, need, wait_until

suite = Suite()
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
        left = []
        try:
            wait_until(lambda: not [p for p in processes() if self.dir in p[1]], 10, "all processes end")
        except Failed:
            left = [p for p in processes() if self.dir in p[1]]
        log = self.log()
        shutil.rmtree(self.dir)
        if exc[0]:
            sys.stdout.write(log[-4000:])
        need(not left, "left behind: %s" % left)
        need("Sanitizer" not in log and "runtime error" not in log, log[-3000:])

    def start(self):
        args = [os.path.join(self.bin, "moe-agent"), "--config", "/dev/null"]
        for o in ["controller=unix:" + self.dir + "/moed.sock", "node=n0", "state_dir=" + self.dir + "/state", "runtime_dir=" + self.dir + "/run", "gpus=%d" % self.gpus,
                  "only_fake_gpus=true", "allow_root=true"] + self.options:
            args += ["--set", o]
        env = {"PATH": "/usr/bin:/bin", "LEAKED": "yes", "SLURM_JOB_ID": "1", "http_proxy": "http://x", "MOE_DATA_DIR": os.path.join(ROOT, "config")}
        env.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
        env.update(self.env)
        with open(self.dir + "/agent.log", "ab") as log:
            self.agent = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env)
        hellos = len(self.moed.hellos)
        self.moed.wait(lambda: len(self.moed.hellos) > hellos, 20, "hello of the agent")

    def stop_agent(self, sig=signal.SIGKILL):
        if self.agent:
            self.agent.send_signal(sig)
            code, self.agent = self.agent.wait(20), None
            if sig == signal.SIGTERM:
                equal(code, 0, "exit status of the agent after SIGTERM (log: %s)" % self.log()[-3000:])

    def own_helpers(self, **scripts):
        """The next start uses copies of the programs, of which some are these scripts."""
        self.bin = self.dir + "/bin"
        os.mkdir(self.bin)
        for name in ("moe-agent", "moe-stepd", "moe-discover", "moe-ckpt", "moe-probe"):
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

    def launch(self, argv, n=1, job=1, attempt=1, wait="running", rules=(), env=(), items=(), deadline=20, **over):
        PORT[0] += 4
        launch = {
            "job": job, "attempt": attempt, "name": "t", "user": None, "allow_root": True, "first_rank": 0, "n_local": n, "world": n, "node_rank": 0, "n_nodes": 1, "gpus": list(range(n)), "master_addr": "127.0.0.1",
            "master_port": PORT[0], "hold_ports": True, "argv": argv, "workdir": self.dir, "env": [dict(name=k, value=v, reason="r", source="s", overrides=None, layer="recipe") for k, v in env] + list(items),
            "bind": {"cpu": "numa", "memory": "preferred", "nic": "nearest", "smt": "auto", "verify": "strict", "reserve_cores": 0}, "checkpoint_dir": self.dir + "/ckpt", "resume": -1,
            "steps": None, "stop_signal": 15, "stop_grace_us": 5000000, "metrics_rank": "first", "rules": list(rules), "announced_is_complete": True}
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


@suite.test
def launch_eight_ranks():
    with Node() as n:
        n.launch(["/bin/sh", "-c", "env > env.$RANK; grep -i cpus_allowed_list /proc/self/status > cpus.$RANK; ls -l /proc/self/fd > fds.$RANK; ulimit -c > core.$RANK; umask > umask.$RANK; "
                  "cat /proc/$PPID/cmdline > parent.$RANK; echo hello $RANK; exec sleep 1000"], n=8)
        started = n.moed.note_list(1, 1, "started")
        equal(sorted(s["rank"] for s in started), list(range(8)), "started ranks")
        for s in started:
            need(alive(s["pid"]), "rank %d is not alive" % s["rank"])
            equal(s["bind_verified"], True, "bind_verified of rank %d (%s)" % (s["rank"], s.get("bind_note")))
            wait_until(lambda: os.path.getsize("%s/parent.%d" % (n.dir, s["rank"])), 10)
            with open("/proc/%d/status" % s["pid"]) as f:
                cpus = [line.split()[1] for line in f if line.startswith("Cpus_allowed_list")][0]
            equal(cpus, s["cpus"], "cpus of rank %d" % s["rank"])
            with open("/proc/%d/stat" % s["pid"]) as f:
                equal(int(f.read().rsplit(")", 1)[1].split()[19]), s["start_time"], "start time")
        env = dict(line.split("=", 1) for line in n.file("env.3").splitlines() if "=" in line)
        wanted = {"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "3", "LOCAL_WORLD_SIZE": "8", "NODE_RANK": "0", "NNODES": "1", "MASTER_ADDR": "127.0.0.1", "MOE_JOB": "j-1", "MOE_ATTEMPT": "1",
                  "MOE_RESUME_ITERATION": "-1", "TORCHELASTIC_RESTART_COUNT": "0", "MOE_CHECKPOINT_DIR": n.dir + "/ckpt", "LANG": "C.UTF-8"}
        for k, v in wanted.items():
            equal(env.get(k), v, k)
        for k in ("HOME", "USER", "LOGNAME", "SHELL", "PATH", "TMPDIR", "MOE_STEP", "MOE_NOTIFY_SOCKET", "TORCHELASTIC_ERROR_FILE", "OMP_NUM_THREADS"):
            need(env.get(k), "%s is missing" % k)
        for k in ("LEAKED", "SLURM_JOB_ID", "http_proxy", "NOTIFY_SOCKET", "MOE_DATA_DIR"):
            need(k not in env, "%s leaked" % k)
        fds = [line.split()[8:] for line in n.file("fds.3").splitlines() if "->" in line]
        equal(sorted(f[0] for f in fds if "/proc/" not in f[2] and "fds.3" not in f[2]), ["0", "2"], "descriptors beside stdout (%s)" % fds)
        equal(n.file("core.3").strip(), "0", "core limit")
        need(n.file("umask.3").strip() in ("0022", "022"), "umask")
        need("moe-stepd" in n.file("parent.3"), "the parent is stepd")
        wait_until(lambda: n.moed.query(1, 1, 5)["text"] == "hello 5\n", 10, "log of rank 5")


@suite.test
def notes_and_exit_codes():
    with Node() as n:
        n.launch(["/bin/sh", "-c", "echo out; echo err >&2; printf 'no newline'; [ $RANK = 1 ] && kill -SEGV $$; exit 3"], n=2, wait="gone")
        exits = {e["rank"]: e for e in n.moed.note_list(1, 1, "exit")}
        equal((exits[0]["code"], exits[0].get("signal")), (3, None), "rank 0")
        equal((exits[1].get("code"), exits[1]["signal"]), (None, 11), "rank 1")
        for e in exits.values():
            equal(sorted(e["tail"]), ["err", "no newline", "out"], "last lines")
            need(e["mono_ns"] > 0 and e["pid"] > 0, "mono_ns, pid")
        numbers = sorted(n.moed.notes[(1, 1)])
        equal(numbers, list(range(1, len(numbers) + 1)), "note numbers")
        equal(n.moed.note_list(1, 1)[-1]["kind"], "gone", "last note")
        wait_until(lambda: not n.stepd_pid(), 5, "stepd ends by itself")
        log = n.file("state/logs/j1/a1/rank-0.log")
        equal(sorted(log.splitlines()), ["err", "no newline", "out"], "log file")
        done = n.moed.order("forget", 1, 1)
        wait_until(lambda: not os.path.exists(n.step_dir()), 10, "forgotten step directory")
        done()
        need(os.path.exists(n.dir + "/state/logs/j1/a1/rank-0.log"), "logs stay after forget")
        n.attempts.clear()


@suite.test
def agent_killed_and_back():
    with Node() as n:
        n.launch([FAKE_RANK, "--steps", "100000", "--step-ms", "20", "--truth", n.dir], n=4)
        pids = {s["rank"]: s["pid"] for s in n.moed.note_list(1, 1, "started")}
        stepd = n.stepd_pid()
        for round in range(2):
            n.stop_agent(signal.SIGKILL)
            before = len(n.moed.note_list(1, 1, "sample"))
            for pid in list(pids.values()) + [stepd]:
                need(alive(pid), "pid %d died with the agent" % pid)
            n.start()
            hello = n.moed.hellos[-1]
            equal([(s["job"], s["attempt"]) for s in hello["steps"]], [(1, 1)], "steps of the hello")
            n.moed.wait(lambda: len(n.moed.note_list(1, 1, "sample")) > before + 5, 10, "samples after the agent came back")
        seen = [s["sample"]["iteration"] for s in n.moed.note_list(1, 1, "sample")]
        equal(seen, list(range(1, len(seen) + 1)), "iterations: none missing, none twice")
        equal(n.stepd_pid(), stepd, "stepd's pid")
        n.moed.wait(lambda: n.moed.progress.get((1, 1), {}).get(3, {}).get("iteration"), 10, "progress of rank 3")
        need(not os.path.exists(n.dir + "/duplicates"), "a rank ran twice")
        equal(len(n.file("starts").splitlines()), 4, "starts")


def children_of(n):
    return [int(line) for line in n.file("children").splitlines()] if os.path.exists(n.dir + "/children") else []


@suite.test
def stepd_killed():
    with Node() as n:
        n.launch([FAKE_RANK, "--steps", "100000", "--step-ms", "20", "--truth", n.dir, "--child"], n=3)
        pids = [s["pid"] for s in n.moed.note_list(1, 1, "started")]
        wait_until(lambda: len(children_of(n)) == 3, 10, "children")
        os.kill(n.stepd_pid(), signal.SIGKILL)
        n.moed.wait_note(1, 1, "gone")
        for pid in pids + children_of(n):
            need(not alive(pid), "pid %d lives" % pid)
        equal(n.moed.note_list(1, 1, "lost")[0]["cause"], "supervisor-lost", "cause")
        equal(sorted(e["rank"] for e in n.moed.note_list(1, 1, "exit")), [0, 1, 2], "exits of all ranks")
        numbers = [x["n"] for x in n.moed.note_list(1, 1)]
        equal(numbers, list(range(1, len(numbers) + 1)), "note numbers")


def in_reserve(n):
    """pid of the supervisor that waits for the next step."""
    found = [p for p, cmd in processes() if "moe-stepd" in cmd and "--reserve" in cmd and n.step_dir(2**63 - 1, 2**63 - 1) in cmd]
    return found[0] if found else None


@suite.test
def supervisor_in_reserve():
    """It becomes the step's, is found by the step's name, is replaced, is done without when it is dead, and never outlives its agent unused."""
    with Node() as n:
        first = wait_until(lambda: in_reserve(n), 10, "the first in reserve")
        n.launch([FAKE_RANK, "--steps", "100000", "--step-ms", "20"])
        equal(n.stepd_pid(), first, "supervisor of the step")
        second = wait_until(lambda: in_reserve(n), 10, "the second in reserve")
        os.kill(second, signal.SIGKILL)
        wait_until(lambda: not alive(second), 10, "the second ends")
        n.launch([FAKE_RANK, "--steps", "100000", "--step-ms", "20"], job=2)
        need(n.stepd_pid(2) not in (None, second), "job 2 has a supervisor of its own")
        n.stop_agent()
        wait_until(lambda: not in_reserve(n), 10, "none in reserve without an agent")
        equal(n.stepd_pid(), first, "supervisor of the step that runs on")


@suite.test
def log_that_cannot_be_opened():
    with Node() as n:
        log = n.dir + "/state/logs/j1/a1/rank-1.log"
        os.makedirs(log)
        n.launch([FAKE_RANK, "--steps", "100000", "--step-ms", "20"], n=2, wait="refused")
        note = n.moed.note_list(1, 1, "refused")[0]
        equal((note["rank"], note["cause"]), (1, "exec"), "rank and cause")
        need(log in note["text"], note["text"])
        wait_until(lambda: not n.stepd_pid(), 10, "the supervisor ends")


@suite.test
def stepd_and_agent_killed():
    with Node() as n:
        n.launch([FAKE_RANK, "--steps", "100000", "--step-ms", "20", "--truth", n.dir, "--child"], n=2)
        pids = [s["pid"] for s in n.moed.note_list(1, 1, "started")]
        wait_until(lambda: len(children_of(n)) == 2, 10, "children")
        stepd = n.stepd_pid()
        n.stop_agent(signal.SIGKILL)
        os.kill(stepd, signal.SIGKILL)
        wait_until(lambda: not any(alive(p) for p in pids), 5, "PDEATHSIG")
        n.start()
        n.moed.wait_note(1, 1, "gone")
        for pid in children_of(n):
            need(not alive(pid), "child %d lives" % pid)
        equal(n.moed.note_list(1, 1, "lost")[0]["cause"], "supervisor-lost", "cause")


@suite.test
def stop_with_grace():
    with Node() as n:
        n.launch([sys.executable, "-c", "import signal,sys,time\nsignal.signal(15, lambda *a: (print('saving', flush=True), time.sleep(0.3), sys.exit(7)))\nprint('up', flush=True)\ntime.sleep(1000)"], n=2)
        wait_until(lambda: n.moed.query(1, 1, 1)["text"] == "up\n" and n.moed.query(1, 1, 0)["text"] == "up\n", 20, "both ranks are up")
        n.moed.order("stop", 1, 1, signal=15, grace_us=10000000)
        n.moed.wait_note(1, 1, "gone")
        for e in n.moed.note_list(1, 1, "exit"):
            equal((e["code"], e["cause"], e["tail"]), (7, "stopped", ["up", "saving"]), "exit")


@suite.test
def stop_ends_in_kill():
    with Node() as n:
        n.launch(["/bin/sh", "-c", "trap '' TERM; (trap '' TERM; exec setsid sleep 1001) & echo $! > child; while :; do sleep 0.1; done"], n=1)
        wait_until(lambda: os.path.exists(n.dir + "/child") and n.file("child"), 5)
        begin = time.monotonic()
        n.moed.order("stop", 1, 1, signal=15, grace_us=500000)
        n.moed.wait_note(1, 1, "gone")
        took = time.monotonic() - begin
        need(took >= 0.5, "killed after %.3f s, before the grace ended" % took)
        equal(n.moed.note_list(1, 1, "exit")[0]["signal"], 9, "signal")
        need(not alive(int(n.file("child"))), "the child that ignores TERM lives")


@suite.test
def kill_at_once():
    with Node() as n:
        n.launch(["/bin/sh", "-c", "trap '' TERM; (setsid sh -c \"trap '' TERM; sleep 1002 & wait\" &) ; echo up; while :; do sleep 0.1; done"], n=4)
        wait_until(lambda: n.moed.query(1, 1, 3)["text"] == "up\n", 10)
        n.moed.order("kill", 1, 1)
        n.moed.wait_note(1, 1, "gone")
        equal([e["signal"] for e in n.moed.note_list(1, 1, "exit")], [9] * 4, "signals")
        need(not [p for p in processes() if "sleep 1002" in p[1]], "children live")


@suite.test
def supervisor_told_to_end():
    with Node() as n:
        n.launch([FAKE_RANK, "--steps", "100000", "--step-ms", "20", "--truth", n.dir], n=2)
        n.moed.wait(lambda: all(n.moed.progress.get((1, 1), {}).get(r, {}).get("iteration") for r in range(2)), 20, "both ranks iterate")
        os.kill(n.stepd_pid(), signal.SIGTERM)
        n.moed.wait_note(1, 1, "gone")
        equal([(e["code"], e["cause"]) for e in n.moed.note_list(1, 1, "exit")], [(0, "stopped")] * 2, "ranks got their planned stop")


@suite.test
def journal_segments():
    rules = [{"kind": "sample", "pattern": r"step (?<iteration>\d+) loss (?<loss>\S+)", "phase": None, "missing_loss_is_nan": False}]
    code = "import time\nfor i in range(1, 12001):\n  print('step %d loss %.3f' % (i, 1 / i), flush=i % 400 == 0)\n  if i % 400 == 0: time.sleep(0.02)\ntime.sleep(1000)"
    with Node() as n:
        n.moed.forget_notes = True
        n.launch([sys.executable, "-c", code], rules=rules, env=[("PYTHONUNBUFFERED", "")])
        n.moed.wait(lambda: n.moed.steps.get((1, 1), {}).get("written", 0) > 12000, 60, "12,000 notes")
        need(len([f for f in os.listdir(n.step_dir()) if f.startswith("notes.")]) > 2, "several segments")
        n.stop_agent(signal.SIGKILL)
        n.moed.forget_notes = False
        n.start()
        n.moed.wait(lambda: len(n.moed.note_list(1, 1, "sample")) >= 11999, 60, "all samples after the restart")
        seen = [s["sample"]["iteration"] for s in n.moed.note_list(1, 1, "sample")]
        equal(seen, list(range(1, len(seen) + 1)), "iterations: none missing, none twice")
        wait_until(lambda: len([f for f in os.listdir(n.step_dir()) if f.startswith("notes.")]) == 1, 20, "acknowledged segments are deleted")
        n.stop_agent(signal.SIGKILL)
        n.start()
        n.moed.order("kill", 1, 1)
        n.moed.wait_note(1, 1, "exit")


@suite.test
def peer_death_is_told_at_once():
    with Node(beat_ms=5000) as n:
        n.launch(SLEEP, n=4)
        victim = [s for s in n.moed.note_list(1, 1, "started") if s["rank"] == 2][0]
        os.kill(victim["pid"], signal.SIGKILL)
        exits = n.moed.wait_note(1, 1, "exit", deadline=2)
        equal((exits[0]["rank"], exits[0]["signal"], exits[0]["pid"]), (2, 9, victim["pid"]), "exit")


@suite.test
def busy_port():
    with Node() as n:
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("127.0.0.1", PORT[0] + 4 + 2))
        s.listen(1)
        n.launch(SLEEP, wait="refused")
        r = n.moed.note_list(1, 1, "refused")[0]
        equal(r["cause"], "port-busy", "cause")
        need(str(PORT[0] + 2) in r["text"], r["text"])
        n.moed.wait_note(1, 1, "gone")
        s.close()
        # a rank can listen on the port that was held for it
        code = "import os,socket\ns=socket.socket()\ns.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\ns.bind(('', int(os.environ['MASTER_PORT'])))\ns.listen(1)\nprint('listening', flush=True)"
        n.launch([sys.executable, "-c", code], attempt=2, wait="gone")
        equal(n.moed.note_list(1, 2, "exit")[0].get("code"), 0, "exit of the listener")


@suite.test
def ports_of_another_cluster():
    """Agents of two clusters on one host: a port is one step's until it is gone, also when nobody listens there; then it can be had at once."""
    with Node() as a, Node() as b:
        port = a.launch(SLEEP)
        for other in (port, port - 3, port + 3):
            b.launch(SLEEP, attempt=len(b.attempts) + 1, master_port=other, wait="refused")
            refused = b.moed.note_list(1, len(b.attempts), "refused")[0]
            equal(refused["cause"], "port-busy", "cause")
            need("port %d " % max(port, other) in refused["text"], refused["text"])
        os.kill(a.stepd_pid(), signal.SIGKILL)
        a.moed.wait_note(1, 1, "gone", deadline=20)
        b.launch(SLEEP, attempt=len(b.attempts) + 1, master_port=port)
        b.moed.order("kill", 1, len(b.attempts))
        b.moed.wait_note(1, len(b.attempts), "gone")
        a.launch(SLEEP, attempt=2, master_port=port)
        PORT[0] += 8


@suite.test
def exec_failures():
    with Node() as n:
        n.launch(["/no/such/program"], n=2, wait="refused")
        r = n.moed.note_list(1, 1, "refused")[0]
        equal((r["cause"], r["code"]), ("exec", 2), "cause, errno")
        need("/no/such/program" in r["text"] and "n0" in r["text"], r["text"])
        n.moed.wait_note(1, 1, "gone")
        n.launch(SLEEP, attempt=2, workdir="/no/such/dir", wait="refused")
        equal(n.moed.note_list(1, 2, "refused")[0]["cause"], "workdir", "cause")
        n.moed.wait_note(1, 2, "gone")
        n.launch(["nonesuch-program"], attempt=3, wait="refused")
        equal(n.moed.note_list(1, 3, "refused")[0]["cause"], "exec", "cause")
        n.launch(["echo-me"], attempt=4, env=[("PATH", n.dir + "/bin:/bin")], wait="refused")
        os.mkdir(n.dir + "/bin")
        with open(n.dir + "/bin/echo-me", "w") as f:
            f.write("#!/bin/sh\necho $0 found\n")
        os.chmod(n.dir + "/bin/echo-me", 0o755)
        n.launch(["echo-me"], attempt=5, env=[("PATH", n.dir + "/bin:/bin")], wait="gone")
        equal(n.moed.note_list(1, 5, "exit")[0]["tail"], [n.dir + "/bin/echo-me found"], "program of the rank's own PATH")
        n.launch(SLEEP, attempt=6, env=[], bind={"cpu": "numa", "memory": "preferred", "nic": "nearest", "smt": "auto", "verify": "strict", "reserve_cores": 0}, gpus=[77], wait="refused")
        equal(n.moed.note_list(1, 6, "refused")[0]["cause"], "bind", "cause")


@suite.test
def bad_users():
    with Node(options=["allow_root=false"] if os.geteuid() == 0 else []) as n:
        n.launch(SLEEP, user="nonesuch-user", wait="refused")
        r = n.moed.note_list(1, 1, "refused")[0]
        equal(r["cause"], "user", "cause")
        need("nonesuch-user" in r["text"], r["text"])
        if os.geteuid() == 0:
            n.launch(SLEEP, attempt=2, wait="refused")
            r = n.moed.note_list(1, 2, "refused")[0]
            equal(r["cause"], "user", "cause")
            need("allow_root" in r["text"], r["text"])
    if os.geteuid() != 0:
        return
    with Node() as n:
        n.launch(SLEEP, allow_root=False, wait="refused")
        r = n.moed.note_list(1, 1, "refused")[0]
        need("as root" in r["text"], "a job that may not runs as root: %s" % r["text"])


@suite.test
def another_user():
    if os.geteuid() != 0:
        raise Skipped("only root can start ranks of others")
    with Node() as n:
        for path in (n.dir,):
            os.chmod(path, 0o777)
        n.launch(["/bin/sh", "-c", "id -u; id -G; echo $HOME $USER; touch $TORCHELASTIC_ERROR_FILE && echo wrote; ls -d %s/run/steps/* 2>&1 | head -1; cat %s/launch.json 2>&1; "
                  "python3 -c 'import socket,os; s=socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM); s.sendto(b\"ITERATION=5\\nLOSS=1.5\", os.environ[\"MOE_NOTIFY_SOCKET\"])' && echo notified"
                  % (n.dir, n.step_dir())], user="daemon", env=[("PATH", "/usr/bin:/bin")], wait="gone")
        tail = n.moed.note_list(1, 1, "exit")[0]["tail"]
        equal(tail[0], "1", "uid")
        need("daemon" in tail[2] and "wrote" in tail and "notified" in tail, tail)
        need(sum("Permission denied" in t or "cannot access" in t for t in tail) >= 1, "launch.json must not be readable: %s" % tail)
        equal([s["sample"]["iteration"] for s in n.moed.note_list(1, 1, "sample")], [5], "iteration by notify")


@suite.test
def a_user_without_home_begins_in_the_root():
    if os.geteuid() != 0:
        raise Skipped("only root can start ranks of others")
    with Node() as n:
        n.launch(["/bin/pwd"], user="nobody", workdir=None, env=[("PATH", "/usr/bin:/bin")], wait="gone")
        equal(n.moed.note_list(1, 1, "exit")[0]["tail"], ["/"], "directory of nobody, whose home is /nonexistent")


@suite.test
def env_from_file():
    with Node() as n:
        with open(n.dir + "/secret", "w") as f:
            f.write("s3cr3t\n")
        item = {"name": "API_KEY", "value": None, "file": n.dir + "/secret", "reason": "r", "source": "s", "overrides": None, "layer": "recipe"}
        n.launch(["/bin/sh", "-c", "echo [$API_KEY]"], items=[item], wait="gone")
        equal(n.moed.note_list(1, 1, "exit")[0]["tail"], ["[s3cr3t]"], "value read on the node")
        need("s3cr3t" not in json.dumps(n.moed.hellos) and "s3cr3t" not in n.log(), "the value must stay on the node")
        n.launch(SLEEP, attempt=2, items=[dict(item, file=n.dir + "/missing")], wait="refused")
        r = n.moed.note_list(1, 2, "refused")[0]
        need("API_KEY" in r["text"] and "missing" in r["text"], r["text"])
        os.mkfifo(n.dir + "/fifo")
        n.launch(SLEEP, attempt=3, items=[dict(item, file=n.dir + "/fifo")], wait="refused")


@suite.test
def notify_and_rules():
    rules = [{"kind": "sample", "pattern": r"step (?<iteration>\d+) loss (?<loss>\S+)", "phase": None, "missing_loss_is_nan": False}]
    code = """
import os, socket, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
def say(t): s.sendto(t.encode(), os.environ["MOE_NOTIFY_SOCKET"])
say("READY=1\\nPHASE=load")
print("step 1 loss 2.5", flush=True)
time.sleep(0.3)
say("ITERATION=2\\nLOSS=2.25\\nSTEP_MS=171.2")
say("X" * 9000)
say("nonsense")
time.sleep(0.3)
say("CHECKPOINT=/ckpt/iter_2\\nITERATION=2\\nPHASE=train")
""".replace("\\\\", "\\")
    with Node() as n:
        n.launch([sys.executable, "-c", code], rules=rules, wait="gone")
        samples = [x["sample"] for x in n.moed.note_list(1, 1, "sample")]
        equal([(x["iteration"], x["loss"]) for x in samples], [(1, 2.5), (2, 2.25)], "samples")
        equal(samples[1]["step_ms"], 171.2, "step_ms")
        c = n.moed.note_list(1, 1, "checkpoint")[0]
        equal((c["iteration"], c["path"]), (2, "/ckpt/iter_2"), "checkpoint")
        equal([x["phase"] for x in n.moed.note_list(1, 1, "phase")], ["load", "train"], "phases")


@suite.test
def many_lines():
    code = "import sys\nfor i in range(40000): sys.stdout.write('line %d of the flood\\n' % i)\nsys.stdout.flush()"
    with Node() as n:
        n.launch([sys.executable, "-c", code], n=2, wait="gone", deadline=60)
        for rank in range(2):
            with open(n.dir + "/state/logs/j1/a1/rank-%d.log" % rank) as f:
                lines = f.read().splitlines()
            equal(len(lines), 40000, "lines of rank %d" % rank)
            equal(lines[-1], "line 39999 of the flood", "last line")
        equal(n.moed.note_list(1, 1, "exit")[0]["tail"][-1], "line 39999 of the flood", "tail")


@suite.test
def flood_without_newline():
    code = "import os\nb = b'x' * 65536\nfor i in range(200): os.write(1, b)\nos.write(1, b'\\nthe end\\n')"
    with Node() as n:
        n.launch([sys.executable, "-c", code], wait="gone", deadline=60)
        with open(n.dir + "/state/logs/j1/a1/rank-0.log", "rb") as f:
            data = f.read()
        equal(len(data), 65536 * 200 + 9, "bytes of the log")
        equal(n.moed.note_list(1, 1, "exit")[0]["tail"][-1], "the end", "tail after the flood")


@suite.test
def grandchild_holds_the_pipe():
    with Node() as n:
        n.launch(["/bin/sh", "-c", "(sleep 1003; echo late) & echo $! > child; echo last words; exit 4"], wait="gone", deadline=5)
        e = n.moed.note_list(1, 1, "exit")[0]
        equal((e["code"], e["tail"]), (4, ["last words"]), "exit")
        need(not alive(int(n.file("child"))), "what the rank left behind lives")


@suite.test
def logs_rotate_and_follow():
    code = "import time\nfor i in range(1, 3001):\n  print('line', i, flush=True)\n  if i % 500 == 0: time.sleep(0.05)\ntime.sleep(0.5)\nprint('end \\xff\\0 \\u00e9', flush=True)"
    with Node(options=["log_bytes=16k"]) as n:
        n.launch([sys.executable, "-c", code], wait="running", env=[("PYTHONIOENCODING", "utf-8")])
        text, offset, end = "", 0, False
        while not end:
            a = n.moed.query(1, 1, 0, offset=offset, wait_ms=2000)
            need(not a["error"], a["error"])
            text, offset, end = text + a["text"], a["offset"], a["end"]
        n.moed.wait_note(1, 1, "gone")
        files = sorted(os.listdir(n.dir + "/state/logs/j1/a1"))
        equal(files, ["rank-0.base", "rank-0.log", "rank-0.log.1"], "files")
        lines = text.splitlines()
        need(lines[-1].startswith("end ") and lines[-1].endswith("\u00e9"), lines[-1])
        numbers = [int(line.split()[1]) for line in lines[:-1] if line.startswith("line ") and len(line.split()) == 2]
        equal(numbers, sorted(numbers), "order")
        equal(numbers[-1], 3000, "last number")
        last = n.moed.query(1, 1, 0, offset=-1, lines=3)
        equal(last["text"].splitlines()[:2], ["line 2999", "line 3000"], "last lines")
        equal(last["end"], True, "end")
        need("no log of rank 9" in n.moed.query(1, 1, 9, offset=0)["error"], "error of a rank that is not there")


@suite.test
def controller_away():
    with Node() as n:
        n.launch([FAKE_RANK, "--steps", "100000", "--step-ms", "20", "--truth", n.dir], n=2)
        n.moed.wait(lambda: len(n.moed.note_list(1, 1, "sample")) > 3, 10, "samples")
        n.moed.refuse = 500
        wait_until(lambda: len(n.file("run/steps/j1.a1/notes.1").splitlines()) > 30, 20)
        n.moed.refuse = None
        last = n.moed.note_list(1, 1)[-1]["n"]
        n.moed.wait(lambda: n.moed.note_list(1, 1)[-1]["n"] > last + 10, 20, "notes after the absence")
        seen = [s["sample"]["iteration"] for s in n.moed.note_list(1, 1, "sample")]
        equal(seen, list(range(1, len(seen) + 1)), "iterations: none missing, none twice")


@suite.test
def hung_supervisor_is_reported_not_killed():
    with Node() as n:
        n.launch([FAKE_RANK, "--steps", "100000", "--step-ms", "20", "--truth", n.dir], n=1)
        stepd = n.stepd_pid()
        os.kill(stepd, signal.SIGSTOP)
        try:
            n.stop_agent(signal.SIGKILL)
            n.start()
            n.moed.wait(lambda: n.moed.steps.get((1, 1), {}).get("state") == "hung", 20, "state hung")
            need(alive(n.moed.note_list(1, 1, "started")[0]["pid"]), "the rank was killed")
        finally:
            os.kill(stepd, signal.SIGCONT)
        n.moed.wait(lambda: n.moed.steps.get((1, 1), {}).get("state") == "running", 20, "state running again")


@suite.test
def stale_orders():
    with Node() as n:
        n.launch(["/bin/true"], attempt=2, wait="gone")
        done = n.moed.order("forget", 1, 2)
        wait_until(lambda: not os.path.exists(n.step_dir(1, 2)), 10)
        done()
        n.attempts.clear()
        n.stop_agent(signal.SIGKILL)
        n.start()
        n.launch(SLEEP, attempt=1, wait="gone")
        equal(n.moed.note_list(1, 1, "refused")[0]["cause"], "stale", "an older attempt after a restart")
        need(not os.path.exists(n.step_dir(1, 1)), "a refused attempt leaves no directory")
        n.attempts.clear()
        n.moed.due.clear()
        n.moed.epoch = 0
        n.launch(SLEEP, job=2, attempt=1, wait="gone")
        equal(n.moed.note_list(2, 1, "refused")[0]["cause"], "stale", "an older epoch")
        n.moed.epoch = 1
        n.attempts.clear()


@suite.test
def other_boot():
    with Node(env={"MOE_BOOT_ID": "boot-one"}) as n:
        n.launch(["/bin/true"], wait="gone")
        n.stop_agent(signal.SIGKILL)
        n.moed.due.clear()
        n.env["MOE_BOOT_ID"] = "boot-two"
        n.start()
        equal((n.moed.hellos[-1]["boot_id"], n.moed.hellos[-1]["steps"]), ("boot-two", []), "hello after a reboot")
        wait_until(lambda: not os.path.exists(n.step_dir()), 10, "the old step's directory goes")
        n.attempts.clear()


@suite.test
def unwritable_spool():
    if os.geteuid() == 0:
        raise Skipped("permissions do not stop root")
    with Node() as n:
        os.chmod(n.dir + "/run/steps", 0o500)
        n.launch(SLEEP, wait="refused")
        equal(n.moed.note_list(1, 1, "refused")[0]["cause"], "spool", "cause")
        os.chmod(n.dir + "/run/steps", 0o700)


@suite.test
def scan_of_checkpoints():
    layout = {"entry": "(?<iteration>\\d+)$", "subdir": None, "tracker": None, "markers": ["COMPLETE"], "shard": None, "marker_last": False, "announced_is_complete": True}
    with Node() as n:
        ckpt = n.dir + "/ckpt"
        for name, marker in (("iter_0000010", b"{}\n"), ("iter_0000020", b"")):
            os.makedirs("%s/%s" % (ckpt, name))
            with open("%s/%s/rank_0.pt" % (ckpt, name), "wb") as f:
                f.write(b"data")
            with open("%s/%s/COMPLETE" % (ckpt, name), "wb") as f:
                f.write(marker)
        done = n.moed.order("scan", 1, 1, dir=ckpt, layout=layout, level="sizes", world=1, allow_root=True)
        result = n.moed.wait(lambda: n.moed.scans and n.moed.scans[-1], 10, "scan result")
        equal((result["job"], result["attempt"], result["error"], result["writable"]), (1, 1, None, True), "result")
        equal(sorted((i["iteration"], i["complete"]) for i in result["items"]), [(10, True), (20, False)], "items")
        done()
        if os.geteuid() == 0:     # an account with uid 0 that is not called root is one too: only what the launch may, the scan may
            n.moed.order("scan", 3, 1, dir=ckpt, layout=layout, level="sizes", world=1, user="root")
            result = n.moed.wait(lambda: [r for r in n.moed.scans if r["job"] == 3][-1:], 10, "scan result")[0]
            need(result["error"] and "as root" in result["error"], result)
        n.moed.order("scan", 2, 1, dir=n.dir + "/agent.log/x", layout=layout, level="sizes", world=1, allow_root=True)
        result = n.moed.wait(lambda: [r for r in n.moed.scans if r["job"] == 2][-1:], 10, "scan result")[0]
        need(result["error"] or not result["writable"], result)


@suite.test
def hung_scan():
    with Node(options=["scan_deadline=300ms"]) as n:
        n.stop_agent(signal.SIGTERM)
        n.own_helpers(**{"moe-ckpt": "#!/bin/sh\nexec sleep 1000\n"})
        n.start()
        n.moed.order("scan", 1, 1, dir=n.dir, layout={"entry": "x", "markers": []}, level="sizes", world=1, allow_root=True)
        result = n.moed.wait(lambda: n.moed.scans and n.moed.scans[-1], 10, "scan result")
        need("did not finish in time" in result["error"], result)


class Tmpfs:
    """A small file system of its own (root only)."""

    def __init__(self, path, kilobytes):
        self.path, self.kilobytes = path, kilobytes

    def __enter__(self):
        os.makedirs(self.path, exist_ok=True)
        r = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%dk,mode=755" % self.kilobytes, "tmpfs", self.path], stderr=subprocess.PIPE, text=True)
        if r.returncode:
            raise Skipped("no tmpfs can be mounted: " + r.stderr.strip())
        return self

    def __exit__(self, *exc):
        subprocess.run(["umount", "-l", self.path], check=True)

    def fill(self):
        with open(self.path + "/filler", "wb", buffering=0) as f:
            try:
                while f.write(b"x" * 4096):
                    pass
            except OSError as e:
                equal(e.errno, errno.ENOSPC, "errno of the filler")

    def free(self):
        os.unlink(self.path + "/filler")


@suite.test
def full_disk_of_logs():
    code = """
import fcntl, os, struct, termios, time
for i in range(400): print('x' * 4000, flush=True)
print('mid', flush=True)
while struct.unpack('i', fcntl.ioctl(1, termios.FIONREAD, b'1234'))[0]: time.sleep(0.01)
open('read', 'w').close()
while not os.path.exists('go'): time.sleep(0.01)
print('after', flush=True)
"""
    with Node() as n:
        n.stop_agent(signal.SIGTERM)
        with Tmpfs(n.dir + "/small", 512) as small:
            n.options.append("state_dir=" + small.path)
            n.start()
            n.launch([sys.executable, "-c", code])
            wait_until(lambda: "output is dropped" in n.log(), 10, "the supervisor says that the log cannot be written")
            wait_until(lambda: os.path.exists(n.dir + "/read"), 10, "all of it is read")
            os.truncate(small.path + "/logs/j1/a1/rank-0.log", 0)
            open(n.dir + "/go", "w").close()
            n.moed.wait_note(1, 1, "gone")
            equal(n.moed.note_list(1, 1, "exit")[0]["code"], 0, "the rank is not hurt")
            equal(n.moed.note_list(1, 1, "exit")[0]["tail"][-2:], ["mid", "after"], "last lines")
            text = n.file("small/logs/j1/a1/rank-0.log")
            need("bytes of output are missing here" in text and text.endswith("after\n"), text[-300:])
            small.fill()
            n.launch(SLEEP, attempt=2, wait="refused")
            r = n.moed.note_list(1, 2, "refused")[0]
            equal(r["cause"], "spool", "cause on a full state disk")
            need("fence.json" in r["text"] and "No space" in r["text"], r["text"])
            n.moed.due.clear()
            small.free()
            n.launch(["/bin/true"], attempt=3, wait="gone")
            equal(n.moed.note_list(1, 3, "exit")[0]["code"], 0, "exit")
            n.stop_agent(signal.SIGTERM)
            n.options.pop()


@suite.test
def full_disk_of_the_journal():
    with Node() as n:
        n.stop_agent(signal.SIGTERM)
        with Tmpfs(n.dir + "/small", 512) as small:
            n.options.append("runtime_dir=" + small.path)
            n.start()
            n.launch([FAKE_RANK, "--steps", "100000", "--step-ms", "10", "--truth", n.dir], n=1)
            n.moed.wait(lambda: len(n.moed.note_list(1, 1, "sample")) > 3, 10, "samples")
            small.fill()
            with open(small.path + "/steps/j1.a1/stepd.log") as log:
                wait_until(lambda: "the journal cannot be written" in log.read(), 30, "the supervisor says that the journal cannot be written")
            last = n.moed.note_list(1, 1, "sample")[-1]["sample"]["iteration"]
            small.free()
            n.moed.wait(lambda: n.moed.note_list(1, 1, "sample")[-1]["sample"]["iteration"] > last + 100, 20, "samples after there is space again")
            seen = [s["sample"]["iteration"] for s in n.moed.note_list(1, 1, "sample")]
            equal(seen, list(range(1, len(seen) + 1)), "iterations: none missing, none twice")
            n.moed.order("kill", 1, 1)
            n.moed.wait_note(1, 1, "gone")
            n.stop_agent(signal.SIGTERM)
            n.options.pop()
            n.attempts.clear()
            n.moed.due.clear()


@suite.test
def hung_discovery():
    with Node() as n:
        n.stop_agent(signal.SIGTERM)
        n.own_helpers(**{"moe-discover": "#!/bin/sh\nexec sleep 1000\n"})
        n.options.append("discover_deadline=300ms")
        n.start()
        equal(len(n.moed.hellos[-1]["info"]["gpus"]), 8, "GPUs that were found earlier in this boot")
        n.stop_agent(signal.SIGTERM)
        os.unlink(n.dir + "/state/nodeinfo.json")
        n.start()
        equal(n.moed.hellos[-1]["info"]["gpus"], [], "GPUs of a node that could not be looked at")
        need("did not finish in time" in n.log(), n.log())


def agent_error(*args):
    r = subprocess.run([os.path.join(BUILD, "moe-agent")] + list(args), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=20)
    return r.returncode, r.stdout, r.stderr


@suite.test
def configuration():
    with tempfile.TemporaryDirectory() as d:
        path = d + "/agent.yaml"

        def check(text):
            with open(path, "w") as f:
                f.write(text)
            return agent_error("--config", path, "--check-config")
        equal(check("---\n# a comment\nnode: 'n1'   # the name\ncontroller: \"http://h:7070\"\nlog_bytes: 1M\n")[0], 0, "a good file")
        code, _, err = check("node: n1\nlog_byte: 5\n")
        equal((code, err), (2, "moe-agent: %s:2:1: unknown key 'log_byte'; did you mean 'log_bytes'?\n" % path), "unknown key")
        code, _, err = check("node: n1\nnode: n2\n")
        need(code == 2 and "2:1: duplicate key" in err, err)
        code, _, err = check("gpus: many\n")
        need(code == 2 and "1:7: gpus: 'many' is not a whole number" in err, err)
        code, _, err = check("gpus:\n  a: 1\n")
        need(code == 2 and "2:3: a key must begin in column 1" in err, err)
        code, _, err = check("controller: ftp://x\n")
        need(code == 2 and "controller: 'ftp://x'" in err, err)
        code, _, err = agent_error("--config", d + "/missing.yaml")
        need(code != 0 and "missing.yaml" in err, err)
        need("moe-agent" in agent_error("--version")[1], "version")
        equal(agent_error("--example-config")[1], open(ROOT + "/config/agent.yaml").read(), "config/agent.yaml is what --example-config prints")


@suite.test
def one_agent_per_directory():
    with Node() as n:
        code, _, err = agent_error("--config", "/dev/null", "--set", "controller=unix:" + n.dir + "/moed.sock", "--set", "node=n1", "--set", "state_dir=" + n.dir + "/state2", "--set", "runtime_dir=" + n.dir + "/run")
        need(code == 1 and "belongs to another agent" in err, err)


@suite.test
def long_runtime_path():
    with Node(options=[]) as n:
        n.stop_agent(signal.SIGTERM)
        deep = n.dir + "/" + "d" * 100
        n.options.append("runtime_dir=" + deep)
        n.start()
        n.launch([FAKE_RANK, "--steps", "100000", "--step-ms", "20"], n=1)
        n.moed.wait(lambda: len(n.moed.note_list(1, 1, "sample")) > 3, 10, "samples through the notify socket")


@suite.test
def launch_to_main():
    """Prints how long it takes from the command to 8 ranks in main(); asserts nothing about time."""
    figures = []
    with Node() as n:
        for attempt in range(1, 12):
            stamps = n.dir + "/stamps-%d" % attempt
            n.launch([os.path.join(BUILD, "tests/fake/tiny"), stamps], n=8, attempt=attempt, wait="running")
            lines = wait_until(lambda: n.file(stamps).splitlines() if len(n.file(stamps).splitlines()) == 8 else None, 10)
            figures.append(max(int(line.split()[3]) for line in lines) / 1e6 - n.launched_wall * 1000)
            n.moed.order("kill", 1, attempt)
            n.moed.wait_note(1, attempt, "gone")
            n.moed.due.clear()
    print("     command -> 8 ranks in main(): median %.1f ms, min %.1f, max %.1f" % (sorted(figures)[len(figures) // 2], min(figures), max(figures)))


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
