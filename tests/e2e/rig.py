"""A cluster whose daemons a test starts by itself, with the options it needs (`moectl local up`
takes none), and raw HTTP to the controller."""
import contextlib
import http.client
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time

from lib import BUILD, PATIENCE, Cluster, Daemon, Failed, Unix, clean_env, equal, wait_until
from schemas import Watch

MOED, AGENT, RANK = (os.path.join(BUILD, p) for p in ("moed", "moe-agent", "tests/fake/rank"))
# a quick cluster: what takes seconds in life takes a part of one here. Only where silence is what
# is tried, few seconds of it are enough: an agent of a loaded machine may be that late.
QUICK = {"beat_ms": 200, "suspect_ms": 20000, "down_ms": 60000, "idle_timeout": "2s"}
SILENT_SOON = {"suspect_ms": 1500, "down_ms": 4000}


class Answer:
    def __init__(self, response):
        self.status, self.headers, self.body = (
            response.status,
            dict((k.lower(), v) for k, v in response.getheaders()),
            response.read(),
        )

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def detail(self):
        """The problem's text; a problem without one, or of another content type, is a failure."""
        if self.headers.get("content-type") != "application/problem+json":
            raise Failed(
                "answer %d has content type %s: %s"
                % (self.status, self.headers.get("content-type"), self.body[:200])
            )
        return self.json["detail"]


def write_config(path, options):
    with open(path, "w") as f:
        for k, v in options.items():
            f.write(
                "%s: %s\n" % (k, "" if v is None else str(v).lower() if isinstance(v, bool) else v)
            )
    return path


def processes_with(text):
    """Pids of living processes whose environment holds text."""
    found = []
    for p in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/environ" % p, "rb") as f:
                if text.encode() in f.read() and alive(int(p)):
                    found.append(int(p))
        except OSError:
            continue
    return found


def command_of(pid):
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as f:
            return f.read().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return "(ended)"


def alive(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def searches(pid):
    """Children that are `moectl plan` by now: stopped earlier, between fork and exec, they would
    stop their parent."""
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return [int(p) for p in f.read().split() if " plan " in command_of(int(p))]


class Rig(Cluster):
    """nodes: how many agents. moed, agent: options on top of QUICK."""

    def __init__(self, nodes=2, gpus_per_node=2, moed=None, agent=None, state_dir=None):
        super().__init__(tempfile.mkdtemp(prefix="moe-"), nodes, gpus_per_node)
        self.tokens = os.path.join(self.dir, "tokens")
        self.state_dir = state_dir or os.path.join(self.dir, "moed")
        # what another cluster of this machine holds counts as busy
        ports = "%d-29999" % (20000 + 4 * random.randrange(2000))
        self.moed_options = dict(
            dict(QUICK, rank_ports=ports),
            state_dir=self.state_dir,
            unix_socket=os.path.join(self.dir, "moed.sock"),
            listen="127.0.0.1",
            port=0,
            bootstrap_tokens=self.tokens,
            **(moed or {}),
        )
        self.agent_options = dict(
            controller="unix:" + self.moed_options["unix_socket"],
            token_file=os.path.join(self.tokens, "agent.token"),
            address="127.0.0.1",
            gpus=gpus_per_node,
            only_fake_gpus=True,
            use_systemd="no",
            allow_root=os.geteuid() == 0,
            **(agent or {}),
        )
        # agent_env: on top of a clean environment
        self.moed, self.agents, self.agent_env = None, {}, {}
        os.makedirs(os.path.join(self.dir, "log"), exist_ok=True)

    def spawn(self, program, name, options, args=(), **env):
        config = write_config(os.path.join(self.dir, name + ".yaml"), options)
        with open(os.path.join(self.dir, "log", name + ".log"), "ab") as log:
            return Daemon(
                [program, "--config", config, *args],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=clean_env(**env),
                start_new_session=True,
            )

    def init_state(self):
        """A new controller's state; once, as `moectl local up` does it."""
        if not os.path.exists(os.path.join(self.state_dir, "store.id")):
            self.spawn(MOED, "moed", self.moed_options, args=["--init"]).wait(PATIENCE * 60)

    def start_moed(self):
        self.init_state()
        self.moed = self.spawn(MOED, "moed", self.moed_options)
        wait_until(lambda: self.http("GET", "/healthz").status == 200, 30, "moed serves")
        Watch.learn(lambda: self.http("GET", "/openapi.json").json)

    def start_agent(self, node, boot_id=None):
        """boot_id: as if the machine had been started anew."""
        dirs = {k: os.path.join(self.dir, k, node) for k in ("state", "run")}
        for d in dirs.values():
            os.makedirs(d, exist_ok=True)
        self.agents[node] = self.spawn(
            AGENT,
            node,
            dict(self.agent_options, node=node, state_dir=dirs["state"], runtime_dir=dirs["run"]),
            MOE_BOOT_ID=boot_id,
            **self.agent_env,
        )

    def states(self):
        return [n["state"] for n in self.json("nodes")["items"]]

    def ended(self):
        """The first agent that has ended and the last line of its log."""
        for name, agent in self.agents.items():
            if agent.poll() is not None:
                with open(os.path.join(self.dir, "log", name + ".log")) as f:
                    return name, (f.read().splitlines() or ["without a word"])[-1]
        return None

    def up(self):
        try:
            self.start_moed()
            for i in range(self.nodes):
                self.start_agent("node-%d" % i)
            wait_until(
                lambda: self.ended() or self.states() == ["up"] * self.nodes,
                30,
                "%d nodes up" % self.nodes,
            )
            if self.ended():
                raise Failed("%s ended: %s" % self.ended())
        except BaseException:
            self.down(check=False)
            raise

    def kill(self, daemon, sig=signal.SIGKILL):
        daemon.send_signal(sig)
        code = daemon.wait(PATIENCE * 20)
        if sig == signal.SIGTERM:
            equal(code, 0, "exit status of %s after SIGTERM" % daemon.args[0])

    def reset(self):
        """After a test that failed half-way: all agents run and no job does."""
        for node, p in list(self.agents.items()):
            p.send_signal(signal.SIGCONT)
            if p.poll() is not None:
                self.start_agent(node)
        for j in self.json("list")["items"]:
            self.run("cancel", j["id"], "--now", check=False)
        wait_until(
            lambda: all(
                j["state"] in ("completed", "failed", "cancelled")
                for j in self.json("list", "--all")["items"]
            ),
            30,
            "the end of all jobs",
        )

    def end_jobs(self):
        for j in self.json("list")["items"]:
            if j["state"] not in ("completed", "failed", "cancelled"):
                self.run("cancel", j["id"], "--now", check=False)
        # an attempt whose start was on its way when the job was cancelled has no process yet, and
        # would outlive its agent
        wait_until(
            lambda: all(
                j["state"] in ("completed", "failed", "cancelled")
                for j in self.json("list", "--all")["items"]
            ),
            60,
            "the end of all jobs",
        )
        wait_until(lambda: not processes_with(self.dir + "/run/"), 30, "the end of all ranks")

    def down(self, check=True):
        """Ends everything; processes of ours that are left are a failure."""
        for p in self.agents.values():
            p.send_signal(signal.SIGCONT)
        bad = []
        if self.moed and self.moed.poll() is None and check:
            try:
                self.end_jobs()
            except Failed as e:
                bad = [str(e)]
        for p in list(self.agents.values()) + [self.moed]:
            if p and p.poll() is None:
                p.terminate()
        for name, p in list(self.agents.items()) + [("moed", self.moed)]:
            if p:
                try:
                    p.wait(PATIENCE * 20)
                except subprocess.TimeoutExpired:
                    bad.append("%s did not stop within 20 s" % name)
                    p.kill()
                    p.wait(PATIENCE * 20)
        bad += [
            "%s ended with %s" % (name, p.returncode)
            for name, p in list(self.agents.items()) + [("moed", self.moed)]
            if p and p.returncode not in (0, -signal.SIGKILL)
        ]
        bad += self.sanitizer_reports()
        left = {p: command_of(p) for p in processes_with(self.dir + "/run/")}
        for p in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(p, signal.SIGKILL)
        if os.environ.get("KEEP") != "1":
            shutil.rmtree(self.dir, ignore_errors=True)
        if check and (left or bad):
            raise Failed("processes were left: %s; %s" % (left, "; ".join(bad)))

    def sanitizer_reports(self):
        found = []
        for base, _, names in os.walk(self.dir):
            for name in (n for n in names if n.endswith(".log")):
                with open(os.path.join(base, name), errors="replace") as f:
                    found += [
                        name + ": " + line.strip()
                        for line in f
                        if "Sanitizer" in line or "runtime error:" in line
                    ]
        return found

    def __exit__(self, *exc):
        self.down(check=exc[0] is None)

    @property
    def port(self):
        with open(os.path.join(self.state_dir, "address")) as f:
            return int(f.read().strip().rstrip("/").rsplit(":", 1)[1])

    def token(self, role):
        if role in ("admin", "agent"):
            with open(os.path.join(self.tokens, role + ".token")) as f:
                return f.read().strip()
        return self.json("token", "create", "--role", role, "--user", "somebody")["token"]

    def http(self, method, path, body=None, token=None, tcp=False, timeout=20, **headers):
        """One request; headers: content_type="..." and so on."""
        timeout *= PATIENCE
        c = (
            http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
            if tcp
            else Unix(self.moed_options["unix_socket"], timeout)
        )
        h = {k.replace("_", "-"): v for k, v in headers.items()}
        if token:
            h["Authorization"] = "Bearer " + token
        if body is not None and "content-type" not in h:
            h["content-type"] = "application/json"
        try:
            try:
                c.request(method, path, body.encode() if isinstance(body, str) else body, h)
            except (BrokenPipeError, ConnectionResetError):
                # refused by its head: the answer may be there already
                pass
            answer = Answer(c.getresponse())
        finally:
            c.close()
        Watch.show(method, path, answer)
        return answer

    def state(self):
        """What a refused request must leave as it was. (Nodes come, go and are slow by themselves;
        that something was refused is reported.)"""
        return {
            "jobs": self.json("list", "--all")["items"],
            "tokens": [t for t in self.json("token", "list")["items"] if "from" not in t],
            "events": [
                (e["type"], e["job"])
                for e in self.json("events")["items"]
                if not e["type"].startswith(("node.", "audit."))
            ],
        }

    def rank_pids(self, job):
        return {
            r["rank"]: r["pid"]
            for r in self.json("ranks", job)["items"]
            if r["pid"] and r["state"] == "running"
        }

    def stepd_of(self, job):
        """Pids of the job's supervisors: the parents of its ranks."""
        found = set()
        for pid in self.rank_pids(job).values():
            with open("/proc/%d/stat" % pid) as f:
                found.add(int(f.read().rsplit(")", 1)[1].split()[1]))
        return sorted(found)

    def events_of(self, job, kind=None):
        return [e for e in self.json("events", job)["items"] if kind is None or e["type"] == kind]

    def quiet(self, seconds, condition, what):
        """condition must hold all the time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not condition():
                raise Failed("%s did not last" % what)
            time.sleep(0.05)
