#!/usr/bin/python3
"""The worst that a peer can send, of each kind, while another client asks: no callback of the
controller takes more than 50 ms of CPU time (of a good core), and its memory does not grow by
64 MB. CPU time of the thread, as moed itself measures it (moe_loop_longest_callback_seconds),
hardly depends on what else the machine does. Figures are printed for docs/measured.md."""
import contextlib
import json
import os
import re
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import Suite, equal, need, wait_until  # noqa: E402
from rig import MOED, Rig, Unix, command_of  # noqa: E402

suite = Suite()
KB = 1024
PEAK_KB = 64 * KB
PATIENT = {"suspect_ms": 60000, "down_ms": 600000}  # with agents that say nothing meanwhile
with open(MOED, "rb") as program:
    SANITIZED = b"__asan_init" in program.read()


def slowness():
    """How often a core that nobody else uses would do what this one does once: a loop that takes
    40 ms there. Cores of clouds differ by half from one day to the next."""
    times = []
    for _ in range(9):
        begin, n = time.process_time(), 0
        for i in range(1000000):
            n += i * i
        times.append(time.process_time() - begin)
    return max(1, sorted(times)[4] / 0.040)


def longest_allowed_ms():
    """4: the same work takes up to twice the CPU time on a core whose caches others use too, and a
    hypervisor's stolen time counts as this core's. What is sought costs seconds: work that grows
    with the square of what somebody sends."""
    return 50 * (20 if SANITIZED else 4) * slowness()


LONGEST_MS = [longest_allowed_ms()]
BASE = "recipe: 1\nname: worst\nengine: {kind: command, argv: [x]}\ncluster: {gpus: 1}\n"
MEGATRON = (
    "recipe: 1\nname: worst\nengine:\n  kind: megatron-lm\n  entry: a.py\n  workdir: /w\n"
    "  args: %s\ncluster: {gpus: 8}\nsteps: 10\n"
)


def fill(head, unit, size, tail=""):
    return head + unit * ((size - len(head) - len(tail)) // len(unit)) + tail


def flags(fmt, n):
    return MEGATRON % ("[" + ",".join(fmt % i for i in range(n)) + "]")


RECIPES = {
    "directives": "%" * (250 * KB),
    "directive of 256 kB": "%" * (255 * KB),
    "blanks": fill("{b: ", "\n", 255 * KB),
    "blanks and tabs": fill("- ", " \t", 255 * KB),
    "a tag": fill("a: !", "%20", 255 * KB),
    "brackets": "[" * (255 * KB),
    "pairs without a key": fill("{ ", ": ", 255 * KB),
    "a list of lists": fill("", "- [a, a, a]\n", 255 * KB),
    "aliases of a long text": fill(
        "t: &a \"%s\"\n%senv: {A: [" % ("x" * 20000, BASE), "*a , ", 255 * KB, "*a ]}\n"
    ),
    "anchors": BASE + "env: {A: [" + ",".join("&a%d x" % i for i in range(5000)) + "]}\n",
    "what kills libfyaml": BASE + "? a:\t|\n" * 1000,
    "words": flags("--w%d", 14000),
    "flags": flags("--w%d", 1000),
    "flags that are nearly some": flags("--moe-router-%03x", 1000),
    "one flag": MEGATRON % fill("[", "--a,", 4000, "--c]"),
    "pairs of flags": MEGATRON
    % ("{" + ",".join("k%d: %s" % (i, "v" * 230) for i in range(500)) + "}"),
    "braces": BASE.replace("[x]", fill("[", '"' + "{}" * 2000 + '",', 255 * KB, "x]")),
    "keys that are none": BASE + "".join("gpus%d: 1\n" % i for i in range(490)),
    "sizes": BASE + "batch: {micro: 1048576, global: 1073741823}\n",
}
HERE = 63 * KB  # above 64 kB a recipe is read by a child
RECIPES |= {
    "a little less of pairs without a key": fill("{ ", ": ", HERE),
    "a little less of pairs of flags": MEGATRON
    % ("{" + ",".join("k%d: %s" % (i, "v" * 110) for i in range(500)) + "}"),
    "a little less of lists": fill("", "- [a, a, a]\n", HERE),
    "a little less of braces": BASE.replace("[x]", fill("[", '"' + "{}" * 2000 + '",', HERE, "x]")),
    "a little less of texts": BASE
    + "env: {"
    + ",".join("V%d: %s" % (i, "v" * 110) for i in range(500))
    + "}\n",
}
BODIES = {
    "lists as JSON": fill("[", "[],", 1000 * KB, "[]]"),
    "objects as JSON": fill("[", "{},", 1000 * KB, "{}]"),
}
AGENT = {
    "empty steps": ('{"node":"n","steps":[', "{},", "{}]}"),
    "steps": ('{"node":"n","steps":[', '{"job":1,"attempt":1},', "{}]}"),
    "lists": ('{"node":"n","steps":[', "[],", "[]]}"),
    "keys": ('{"node":"n"', ',"a":1', "}"),
    "texts": ('{"node":"n","steps":[', '"",', '""]}'),
    "one long text": ('{"node":"', "n", '"}'),
    "escapes": ('{"node":"', "\\n", '"}'),
    "no end": ('{"node":"n","steps":[', "[", ""),
    "blanks": ("{", " ", "}"),
}


class Asker(threading.Thread):
    """Another client: asks all the time, on one connection, and keeps how long each answer took."""

    def __init__(self, rig):
        super().__init__(daemon=True)
        self.connection, self.took, self.done = (
            Unix(rig.moed_options["unix_socket"], 120),
            [],
            False,
        )

    def ask(self):
        began = time.monotonic()
        self.connection.request("GET", "/v1/cluster")
        answer = self.connection.getresponse()
        answer.read()
        need(answer.status == 200, "the other client got %d" % answer.status)
        self.took.append(time.monotonic() - began)

    def run(self):
        while not self.done:
            self.ask()

    def end(self):
        """The longest that it waited, in ms."""
        self.done = True
        self.join()
        self.connection.close()
        return max(self.took) * 1000


def status_kb(rig, name):
    with open("/proc/%d/status" % rig.moed.pid) as f:
        return int(re.search(name + r":\s+(\d+)", f.read()).group(1))


def longest_ms(rig):
    """The longest callback since the controller began."""
    return (
        float(
            re.search(
                r"^moe_loop_longest_callback_seconds (\S+)",
                rig.http("GET", "/metrics").body.decode(),
                re.M,
            ).group(1)
        )
        * 1000
    )


def costs(rig, what, do, allowed=(200, 201, 400, 404, 409, 413, 422)):
    """Does it while another client asks; answers: one, or a list. What it cost is within the
    limits."""
    before, kept = longest_ms(rig), status_kb(rig, "VmRSS")
    with open("/proc/%d/clear_refs" % rig.moed.pid, "w") as f:
        f.write("5")  # peak memory counts from here
    asker = Asker(rig)
    asker.start()
    answers = do()
    waited, grown, longest = asker.end(), status_kb(rig, "VmHWM") - kept, longest_ms(rig)
    answers = answers if isinstance(answers, list) else [answers]
    for a in answers:
        need(a.status in allowed, "%s: %d %s" % (what, a.status, a.body[:200]))
    print(
        "     %-34s %s; longest callback %s%5.1f ms of CPU; another client waited %5.1f ms; %5.1f "
        "MB"
        % (
            what,
            sorted({a.status for a in answers}),
            "" if longest > before else "<= ",
            longest,
            waited,
            grown / KB,
        )
    )
    if longest > before and longest >= LONGEST_MS[0]:
        LONGEST_MS[0] = max(LONGEST_MS[0], longest_allowed_ms())  # the core may be slower by now
    need(
        longest < LONGEST_MS[0],
        "%s: one callback took %.1f ms of CPU of at most %.1f" % (what, longest, LONGEST_MS[0]),
    )
    need(SANITIZED or grown < PEAK_KB, "%s: the controller grew by %d kB" % (what, grown))
    return answers


def one(rig, what, path, body, **headers):
    """Sent twice, the second time a little different: what was read a moment ago is not read
    again."""
    return costs(
        rig,
        "%s, %d kB" % (what, len(body) / KB),
        lambda: [
            rig.http("POST", path, text, timeout=300, **headers) for text in (body, body + " ")
        ],
    )


@suite.test
def recipes(rig):
    for what, text in RECIPES.items():
        one(rig, what, "/v1/validate", text, content_type="application/yaml")
    for what in ("pairs of flags", "flags that are nearly some", "one flag", "braces"):
        for path in ("/v1/jobs?dry_run=1", "/v1/jobs"):
            one(
                rig,
                what + (" tried" if "dry" in path else " submitted"),
                path,
                RECIPES[what],
                content_type="application/yaml",
            )
    for what, text in BODIES.items():
        one(rig, what, "/v1/validate", text)


@suite.test
def plans(rig):
    """What does not fit is compared with its neighbours, each of which the recipe's own checks
    judge."""
    large = {
        "recipe": 1,
        "name": "planned",
        "model": "llama3-8b",
        "cluster": {"gpus": 8, "gpu": "mi300x"},
        "batch": {"seq": 131072, "micro": 8, "global": 64},
        "precision": "bf16",
        "steps": 10,
        "parallelism": {"tp": 1},
        "engine": {
            "kind": "megatron-lm",
            "workdir": "/x",
            "entry": "a.py",
            "args": ["--w%d" % i for i in range(1000)],
        },
    }
    one(rig, "a job that does not fit", "/v1/jobs", json.dumps(large))
    one(rig, "tried", "/v1/jobs?dry_run=1", json.dumps(large))
    one(
        rig,
        "planned",
        "/v1/plan?top=10&scale=" + ",".join(str(8 << i) for i in range(12)),
        json.dumps(large | {"engine": {"kind": "command", "argv": ["/bin/true"]}}),
    )
    for gpus in (8192, 131072):
        one(
            rig,
            "of %d GPUs" % gpus,
            "/v1/jobs",
            json.dumps(
                large
                | {
                    "model": "deepseek-v3",
                    "cluster": {"gpus": gpus, "gpu": "mi355x"},
                    "batch": {"seq": 65536, "micro": 4, "global": gpus * 64},
                    "parallelism": {"ep": 8},
                    "engine": {"kind": "command", "argv": ["/bin/true"]},
                }
            ),
        )


@suite.test
def verbs(rig):
    job = rig.http(
        "POST", "/v1/jobs", BASE.replace("gpus: 1", "gpus: 8192"), content_type="application/yaml"
    ).json["id"]
    for body in (
        fill('{"reason":"', "\\u0001", 16 * KB - 8, '"}'),
        fill('{"reason":', "[", 16 * KB, ""),
        fill('{"when":[', "{},", 16 * KB - 8, "{}]}"),
        fill("{", '"a":1,', 16 * KB - 8, '"b":1}'),
    ):
        for path in (
            "/v1/jobs/%s/pause",
            "/v1/jobs/%s/restart",
            "/v1/nodes/node-0/drain",
            "/v1/nodes/node-0/ack",
            "/v1/nodes/node-0/fence",
            "/v1/tokens",
            "/v1/session/link",
            "/v1/steps/j1.a1/resolve",
        ):
            one(rig, path.replace("%s", "JOB"), path.replace("%s", job), body)
    rig.http("POST", "/v1/nodes/node-0/undrain", "{}")
    for path in (
        "",
        "/ranks",
        "/why",
        "/env?rank=8191",
        "/bind",
        "/bind?rank=8191",
        "/report",
        "/metrics",
        "/checkpoints",
        "/logs",
    ):
        costs(
            rig,
            "GET a queued job of 8192 ranks" + path,
            lambda: rig.http("GET", "/v1/jobs/%s%s" % (job, path)),
        )
    rig.http("POST", "/v1/jobs/%s/cancel" % job, "{}")


@suite.test
def a_crowd(rig):
    """Many at the same moment: each is below the limit, and they are not answered in one
    callback."""
    texts = [RECIPES["flags that are nearly some"] + " " * i for i in range(12)]

    def send():
        answers = []
        threads = [
            threading.Thread(
                target=lambda t=t: answers.append(
                    rig.http(
                        "POST", "/v1/validate", t, timeout=300, content_type="application/yaml"
                    )
                )
            )
            for t in texts
        ]
        for stop in (signal.SIGSTOP, signal.SIGCONT):  # they arrive together
            os.kill(rig.moed.pid, stop)
            for t in threads if stop == signal.SIGSTOP else ():
                t.start()
            wait_until(
                lambda: stop == signal.SIGCONT or unread(rig) >= len(texts),
                30,
                "requests that wait",
            )
        for t in threads:
            t.join()
        return answers

    costs(rig, "12 recipes at once", send)


def unread(rig):
    """Connections to the controller's socket, accepted or not, that it can know of."""
    with open("/proc/net/unix") as f:
        return sum(line.rstrip().endswith(rig.moed_options["unix_socket"]) for line in f) - 1


class Agent:
    """Says hello with many slots and holds whatever it is told to start. Starts nothing."""

    def __init__(self, rig, name, slots=256):
        self.rig, self.name, self.token, self.beat, self.told = rig, name, rig.token("agent"), 0, {}
        self.slots = [
            {"index": i, "vendor": "amd", "model": "mi325x", "bdf": "0000:%02x:00.0" % i}
            for i in range(slots)
        ]
        self.epoch = self.hello().json["epoch"]

    def post(self, path, body):
        return self.rig.http(
            "POST",
            "/v1/agent/" + path,
            json.dumps({"node": self.name, "boot_id": "b", "instance": "i"} | body),
            token=self.token,
            timeout=300,
        )

    def hello(self, **more):
        return self.post(
            "hello",
            {
                "protocol": 1,
                "version": "toy",
                "address": "127.0.0.1",
                "health": False,
                "info": {"hostname": self.name, "gpus": self.slots, "cpus": 8},
                "steps": [],
            }
            | more,
        )

    def sync(self, steps=(), **more):
        self.beat += 1
        return self.post(
            "sync",
            {
                "epoch": self.epoch,
                "beat": self.beat,
                "mono_ns": self.beat,
                "steps": list(steps),
                "scans": [],
            }
            | more,
        )

    def wait_command(self, kind):
        found = []

        def there():
            found[:] = [c for c in self.sync().json["commands"] if c["kind"] == kind]
            return found

        wait_until(there, 30, "command " + kind)
        return found[0]

    def start(self, recipe):
        """A job with a rank on each slot; its step is here now."""
        job = self.rig.http("POST", "/v1/jobs", recipe, content_type="application/yaml").json["id"]
        c = self.wait_command("scan")
        self.sync(
            scans=[
                {
                    "job": c["job"],
                    "attempt": c["attempt"],
                    "error": None,
                    "writable": True,
                    "items": [],
                }
            ]
        )
        c = self.wait_command("launch")
        self.step, self.written, self.through = (c["job"], c["attempt"]), 0, 0
        return job

    def notes(self, make, count):
        """Tells so many until all are acknowledged, as an agent does; answers of all messages, and
        how many it took."""
        first, self.written, answers = self.written + 1, self.written + count, []
        while self.through < self.written:
            notes = [
                make(n - first) | {"n": n}
                for n in range(max(first, self.through + 1), self.written + 1)
            ]
            a = self.sync(
                [
                    {
                        "job": self.step[0],
                        "attempt": self.step[1],
                        "state": "running",
                        "written": self.written,
                        "notes": notes,
                    }
                ]
            )
            answers.append(a)
            if a.status != 200:
                self.written = self.through
                break
            acked = [k["through"] for k in a.json["acks"] if (k["job"], k["attempt"]) == self.step][
                0
            ]
            need(acked > self.through, "nothing of %d notes was taken" % len(notes))
            self.through = acked
        return answers


NOTES = {
    "samples": (
        2000,
        lambda k: {
            "kind": "sample",
            "rank": k % 256,
            "sample": {
                "iteration": k + 1,
                "loss": 1.0,
                "step_ms": 3.0,
                "tokens_per_s_per_gpu": 3.5,
            },
        },
    ),
    "saves": (
        2000,
        lambda k: {
            "kind": "checkpoint",
            "rank": k % 256,
            "iteration": k + 1,
            "path": "/ckpt/x/%d" % k + "p" * 1900,
        },
    ),
    "saves elsewhere": (
        2000,
        lambda k: {
            "kind": "checkpoint",
            "rank": k % 256,
            "iteration": k + 1,
            "path": "/other/%d" % k,
        },
    ),
    "starts": (
        256,
        lambda k: {
            "kind": "started",
            "rank": k,
            "pid": 1000 + k,
            "start_time": 5,
            "cpus": "0-3",
            "numa_node": 0,
            "bind_verified": True,
            "bind_note": "x" * 4000,
        },
    ),
    "phases": (
        2000,
        lambda k: {"kind": "phase", "rank": k % 256, "phase": ("train", "save")[k % 2]},
    ),
    "processes that cannot be killed": (
        2000,
        lambda k: {"kind": "unkillable", "rank": k % 256, "pid": k + 1},
    ),
    "texts": (1300, lambda k: {"kind": "stopping", "text": "z" * 8000}),
    "control characters": (100, lambda k: {"kind": "stopping", "text": "\x1b" * 8000}),
    "quotes": (300, lambda k: {"kind": "stopping", "text": '"' * 8000}),
    "letters of two bytes": (300, lambda k: {"kind": "stopping", "text": "\u00e9" * 4000}),
    "last lines": (
        256,
        lambda k: {
            "kind": "exit",
            "rank": k,
            "pid": 5,
            "code": 1,
            "cause": "exited",
            "mono_ns": 5,
            "tail": ["Traceback %d " % k + "t" * 1900] * 20,
        },
    ),
    "many last lines": (
        2000,
        lambda k: {
            "kind": "exit",
            "rank": k % 256,
            "pid": 5,
            "code": 1,
            "cause": "exited",
            "mono_ns": 5,
            "tail": ["Traceback %d " % k + "t" * 90] * 20,
        },
    ),
}


def results(n, text, evidence=(), version=1):
    return {
        "version": version,
        "ok": 1,
        "preflight_done": True,
        "stack": [],
        "results": [
            {
                "check": "c%d" % (k % 60),
                "object": "gpu%d" % k,
                "state": "crit",
                "action": "cordon",
                "when": 1,
                "text": text,
                "next": "n" * 100,
                "evidence": list(evidence),
                "since": None,
                "at": None,
            }
            for k in range(n)
        ],
    }


@suite.test
def agents(rig):
    token = rig.token("agent")
    for what, (head, unit, tail) in AGENT.items():
        for path, size in (
            ("sync", 4 << 20),
            ("news", 12 << 20),
            ("hello", 15 << 20),
            ("answer", 12 << 20),
        ):
            one(
                rig,
                "agent's %s: %s" % (path, what),
                "/v1/agent/" + path,
                fill(head, unit, size, tail),
                token=token,
            )


@contextlib.contextmanager
def nobody():
    """A controller without agents."""
    rig = Rig(nodes=0, moed=PATIENT)
    try:
        rig.start_moed()
        yield rig
        rig.kill(rig.moed, signal.SIGTERM)
        equal(rig.sanitizer_reports(), [], "what sanitizers found")
    finally:
        rig.down(check=False)


@suite.test
def notes(_):
    """As many and as large as a message may have them: what one turn does not take is sent again,
    and nothing is lost."""
    with nobody() as rig:
        tell(rig, Agent(rig, "many"))


def tell(rig, agent):
    agent.start(
        BASE.replace("gpus: 1", "gpus: 256, gpu: mi325x")
        + "checkpoint: {dir: /ckpt/x, every: 5}\nsteps: 100\n"
    )
    for what, (count, make) in NOTES.items():
        costs(rig, "%d %s" % (count, what), lambda: agent.notes(make, count))
        agent.through = agent.written
    known = {"job": agent.step[0], "attempt": agent.step[1], "written": agent.written}
    costs(
        rig,
        "4096 steps nobody knows",
        lambda: [
            agent.sync(
                [
                    {"job": 100000 + r * 5000 + k, "attempt": 1, "state": "running", "written": 5}
                    for k in range(4096)
                ]
            )
            for r in range(2)
        ],
    )
    costs(
        rig,
        "4096 times the same step",
        lambda: agent.sync([known | {"state": ("hung", "running")[k % 2]} for k in range(4096)]),
    )
    costs(
        rig,
        "4096 results of checks",
        lambda: [agent.sync(health=results(4096, "d" * 250, version=v)) for v in (1, 2)],
    )
    costs(
        rig,
        "long results of checks",
        lambda: agent.sync(health=results(1800, "d" * 4000, version=3)),
    )
    costs(
        rig,
        "evidence of checks",
        lambda: agent.sync(health=results(70, "d" * 4000, ["e" * 3900] * 32, 4)),
    )
    costs(rig, "no result of any check", lambda: agent.sync(health=results(0, "", version=5)))
    costs(
        rig,
        "a hello of 2 MB",
        lambda: agent.hello(
            instance="j",
            info={
                "hostname": "many",
                "cpus": 8,
                "gpus": [s | {"model": "x" * 7000} for s in agent.slots],
            },
        ),
    )
    costs(
        rig,
        "a hello of 8192 links",
        lambda: agent.hello(
            instance="k",
            info={
                "hostname": "many",
                "cpus": 8,
                "gpus": agent.slots,
                "links": [
                    {"from": k % 64, "to": k // 64, "type": "xgmi", "weight": 1}
                    for k in range(8192)
                ],
            },
        ),
    )
    costs(
        rig,
        "a hello of 4096 steps",
        lambda: agent.hello(
            instance="l",
            steps=[
                {"job": 100000 + k, "attempt": 1, "state": "running", "written": 5}
                for k in range(4096)
            ],
        ),
    )


@suite.test
def a_scan(_):
    """A list of checkpoints with names of megabytes is an answer like another, and is named as what
    it is."""
    with nobody() as rig:
        agent = Agent(rig, "scans", 4)
        job = rig.http(
            "POST",
            "/v1/jobs",
            BASE.replace("gpus: 1", "gpus: 4")
            + "checkpoint: {dir: /ckpt/y, every: 5}\nsteps: 100\n",
            content_type="application/yaml",
        ).json["id"]
        c = agent.wait_command("scan")
        items = [
            {
                "iteration": k + 1,
                "path": "/ckpt/y/%d" % k + "p" * 4000,
                "bytes": 5,
                "complete": False,
                "reason": "r" * 4000,
                "saved_at": None,
            }
            for k in range(1000)
        ]
        costs(
            rig,
            "a scan of 8 MB",
            lambda: agent.sync(
                scans=[
                    {
                        "job": c["job"],
                        "attempt": c["attempt"],
                        "error": None,
                        "writable": True,
                        "items": items,
                    }
                ]
            ),
        )
        need(
            "longer than 1.5 MiB" in rig.http("GET", "/v1/jobs/%s/why" % job).body.decode(),
            "why does not say what is wrong with the directory",
        )


MANY = BASE.replace("gpus: 1", "gpus: 8192")


def forks(rig):
    """Children of the controller that are forks of it."""
    with open("/proc/%d/task/%d/children" % (rig.moed.pid, rig.moed.pid)) as f:
        return [int(p) for p in f.read().split() if command_of(int(p)) == command_of(rig.moed.pid)]


class Asked(threading.Thread):
    """A request by somebody of that name; a dry run of many ranks, if nothing else is said."""

    def __init__(self, rig, user, text=MANY, path="jobs?dry_run=1"):
        super().__init__(daemon=True)
        self.rig, self.text, self.path, self.answer = rig, text, path, None
        self.token = rig.json("token", "create", "--role", "user", "--user", user)["token"]
        self.start()

    def run(self):
        self.answer = self.rig.http(
            "POST",
            "/v1/" + self.path,
            self.text,
            timeout=300,
            token=self.token,
            content_type="application/yaml",
        )

    def end(self):
        self.join()
        return self.answer


def stopped(rig, n):
    """n forks, which do not go on."""
    end = time.monotonic() + 30
    while len(forks(rig)) < n:  # without a pause: some are quick
        need(time.monotonic() < end, "%d children are not under way" % n)
    for pid in forks(rig):
        os.kill(pid, signal.SIGSTOP)
    return forks(rig)


def long_one(more="", size=200 * KB):
    return BASE + more + fill("", "# what this is about\n", size)


@suite.test
def large_recipes(rig):
    """Above 64 kB a child reads them: with the same answers; one of each user, two at once;
    whatever ends it is said."""
    for path, more in (
        ("validate", ""),
        ("validate", "batch: {micro: 1.5}\n"),
        ("validate", "gpus: 1\n"),
        ("plan?gpus=8", ""),
        ("plan?gpu=nosuch", ""),
        ("plan?gpus=7&gpu=mi300x", "model: llama3-8b\nparallelism: {tp: 3}\n"),
        ("jobs?dry_run=1", ""),
        ("jobs?dry_run=1", "model: deepseek-v3\nparallelism: {tp: 1}\n"),
    ):
        small, large = (
            rig.http("POST", "/v1/" + path, text, content_type="application/yaml")
            for text in (BASE + more, long_one(more))
        )
        equal(
            (large.status, large.body.replace(b'"j1.', b'"j2.')),
            (small.status, small.body.replace(b'"j1.', b'"j2.')),
            "%s of a long recipe %s" % (path, more),
        )
    bad = rig.http("POST", "/v1/validate", '{"recipe": 1,}' + " " * 100 * KB)
    equal(
        (bad.status, "not valid JSON" in bad.json["errors"][0]["message"]),
        (422, True),
        "a long text that is no JSON",
    )
    need(
        "larger than 262144 bytes"
        in rig.http(
            "POST", "/v1/validate", long_one(size=257 * KB), content_type="application/yaml"
        ).body.decode(),
        "more than 256 kB",
    )
    told = [
        rig.http(
            "POST", "/v1/jobs", long_one(), content_type="application/yaml", Idempotency_Key="long"
        )
        for _ in range(2)
    ]
    equal(
        ([a.status for a in told], told[0].json["id"]),
        ([201, 200], told[1].json["id"]),
        "the same submit twice",
    )
    rig.http("POST", "/v1/jobs/%s/cancel" % told[0].json["id"], "{}")
    if not SANITIZED:  # whose memory is not limited
        much = rig.http(
            "POST", "/v1/validate", RECIPES["pairs without a key"], content_type="application/yaml"
        )
        # 30 MB of its own are given back by requests of before: then it is read to its end, and
        # what it says is no recipe
        need(
            much.status == 422
            and (
                much.detail
                == "recipe: reading it needs more than 64 MB of memory: make it smaller; one of "
                "up to 64 kB is always read"
                or "missing comma" in much.json["errors"][0]["message"]
            ),
            "one that needs more memory than it may have: %s" % much.body[:300],
        )
    first = Asked(rig, "ada", RECIPES["pairs without a key"], "validate")
    children = stopped(rig, 1)
    again = Asked(rig, "ada", long_one("# two\n"), "validate").end()
    equal(
        (again.status, "or one of yours" in again.detail),
        (429, True),
        "a second one of the same user",
    )
    os.kill(children[0], signal.SIGKILL)
    killed = first.end()
    need(killed.status == 503 and "was killed" in killed.detail, killed.body[:200])


@suite.test
def many_ranks(rig):
    """They are shown by a child, whose memory does not grow with them; one of each user, two at
    once; whatever ends it is said."""
    a = costs(rig, "a dry run of 8192 ranks", Asked(rig, "ada").end)[0]
    equal(
        (a.status, len(a.json["ranks"]), a.json["ranks"][8191]["env"]["RANK"]),
        (200, 8192, "8191"),
        "a dry run of many ranks",
    )
    need(
        "8193 ranks" in Asked(rig, "ada", MANY.replace("8192", "8193")).end().detail,
        "more than one document shows",
    )
    wide = MEGATRON.replace("gpus: 8", "gpus: 8192") % ("[" + ",".join(["v" * 4000] * 3) + "]")
    need("more than 64 MB" in Asked(rig, "ada", wide).end().detail, "a document of 100 MB")
    first = Asked(rig, "ada")
    stopped(rig, 1)
    again = Asked(rig, "ada").end()
    equal(
        (again.status, "or one of yours" in again.detail),
        (429, True),
        "a second one of the same user",
    )
    second = Asked(rig, "bob")
    children = stopped(rig, 2)
    equal(Asked(rig, "cyd").end().status, 429, "a third one")
    os.kill(children[0], signal.SIGKILL)
    os.kill(children[1], signal.SIGCONT)
    killed, whole = sorted((first.end(), second.end()), key=lambda a: -a.status)
    need(killed.status == 503 and "was killed" in killed.detail, killed.body[:200])
    equal((whole.status, len(whole.json["ranks"])), (200, 8192), "the other one")
    gone = Unix(rig.moed_options["unix_socket"], 20)
    gone.request("POST", "/v1/jobs?dry_run=1", MANY, {"content-type": "application/yaml"})
    stopped(rig, 1)
    gone.close()
    os.kill(forks(rig)[0], signal.SIGCONT)
    wait_until(lambda: not forks(rig), 30, "the end of what nobody waits for")


@suite.test
def still_there(rig):
    need(rig.moed.poll() is None, "the controller ended")
    need(json.loads(rig.http("GET", "/v1/cluster").body), "no cluster")


def main():
    with Rig(nodes=1, moed=PATIENT) as rig:
        return suite.main(rig)


sys.exit(1 if main() else 0)
