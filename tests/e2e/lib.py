"""For end-to-end tests: a local cluster of real daemons in a directory of its own, moectl as a
function, waiting on conditions with a deadline. A test file makes a Suite, registers functions
with @suite.test, and ends with `suite.main()`, whose last line is "N passed, N failed"."""
import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

from schemas import Watch

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
MOECTL = os.path.join(BUILD, "moectl")


# A deadline only ends the wait for what never comes; where it comes late, on a slow or loaded
# machine, that is no failure. So each is this many times what its test says.
PATIENCE = 4


class Failed(Exception):
    """A check did not hold; its text says what was seen."""


class Skipped(Exception):
    """This machine cannot show it; the text says why."""


def wait_until(condition, deadline, what="the condition"):
    """Calls condition() until it is true and returns its value. Failed after deadline (times
    PATIENCE) seconds; an exception of the last call is shown with it."""
    deadline *= PATIENCE
    end, last = time.monotonic() + deadline, None
    while True:
        try:
            value = condition()
            if value:
                return value
            last = None
        except Exception as e:  # the condition may fail while things come up
            last = e
        if time.monotonic() > end:
            raise Failed("%s: not within %g s%s" % (what, deadline, ": %s" % last if last else ""))
        time.sleep(0.02)


class Daemon(subprocess.Popen):
    """A program whose end is looked at: one that a signal ended, other than the SIGKILL of a test,
    fails the suite, whatever the test looks at."""

    started = []

    def __init__(self, *args, **kw):
        super().__init__(*args, **kw)
        Daemon.started.append(self)

    @classmethod
    def crashed(cls):
        """What ended by a signal since the last call."""
        ended = [p for p in cls.started if p.poll() is not None]
        cls.started = [p for p in cls.started if p not in ended]
        return [
            "%s was ended by signal %d" % (" ".join(p.args)[:200], -p.returncode)
            for p in ended
            if p.returncode < 0 and p.returncode != -signal.SIGKILL
        ]


def clean_env(**extra):
    """The caller's environment without anything that would change what moectl does."""
    env = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith("MOE_") and k not in ("XDG_CONFIG_HOME",)
    }
    env["HOME"] = os.environ.get("HOME", "/")
    env["MOE_DATA_DIR"] = os.environ.get("TEST_DATA_DIR", os.path.join(ROOT, "config"))
    env.update({k: v for k, v in extra.items() if v is not None})
    return env


def moectl(*args, env=None, check=True, timeout=120, stdin=None):
    """Runs moectl; the result has returncode, stdout, stderr (texts). check: a non-zero status is
    Failed; an end by a signal always is."""
    r = subprocess.run(
        [MOECTL] + [str(a) for a in args],
        env=env or clean_env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=timeout * PATIENCE,
        input=stdin,
        text=True,
    )
    if (check and r.returncode != 0) or r.returncode < 0:
        raise Failed(
            "moectl %s: exit status %d\n%s%s"
            % (" ".join(map(str, args)), r.returncode, r.stdout[-2000:], r.stderr[-2000:])
        )
    return r


# of which route moectl prints the answer as it came, lists with all of their pages
ANSWERS = dict(
    {verb: "/v1/jobs/j/" + verb for verb in "ranks metrics events checkpoints report".split()},
    list="/v1/jobs",
    nodes="/v1/nodes",
    node="/v1/nodes/n",
)


class Unix(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Cluster:
    """moed and agents below `dir`, started by `moectl local up`."""

    def __init__(self, dir=None, nodes=2, gpus_per_node=2, extra=()):
        self.dir = dir or tempfile.mkdtemp(prefix="moe-")
        self.nodes, self.gpus_per_node, self.extra = nodes, gpus_per_node, list(extra)
        self.env = clean_env(MOE_URL="unix:" + os.path.join(self.dir, "moed.sock"))

    def __enter__(self):
        self.up()
        return self

    def __exit__(self, *exc):
        self.down()

    def up(self):
        """Also starts again what was killed."""
        done = moectl(
            "local",
            "up",
            "--dir",
            self.dir,
            "--nodes",
            self.nodes,
            "--gpus-per-node",
            self.gpus_per_node,
            "--port",
            0,
            *self.extra,
            env=self.env,
        )
        Watch.learn(self.description)
        return done

    def description(self):
        """Of the REST interface, as the controller serves it."""
        c = Unix(os.path.join(self.dir, "moed.sock"), PATIENCE * 20)
        with contextlib.closing(c):
            c.request("GET", "/openapi.json")
            return json.loads(c.getresponse().read())

    def down(self, check=True):
        return moectl("local", "down", "--dir", self.dir, env=self.env, check=check)

    def status(self):
        """{dir,url,tcp_url,token_file,moed{pid},agents[]{node,pid},
        steps[]{job,attempt,node,pid}}"""
        return json.loads(
            moectl("local", "status", "--dir", self.dir, "--json", env=self.env).stdout
        )

    def run(self, *args, check=True, timeout=120, stdin=None):
        return moectl(*args, env=self.env, check=check, timeout=timeout, stdin=stdin)

    def json(self, *args, timeout=120):
        """A verb's document, which is what the controller answered."""
        document = json.loads(self.run(*args, "--json", timeout=timeout).stdout)
        options = [a for a in args[1:] if str(a).startswith("-")]
        if args[0] in ANSWERS and len(args) <= 2 and options in ([], ["--all"]):
            Watch.show_document(ANSWERS[args[0]], document)
        return document

    def popen(self, *args):
        return subprocess.Popen(
            [MOECTL] + [str(a) for a in args],
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def submit(self, recipe_text, *args):
        """Submits a recipe given as text; the job's id."""
        r = self.run("submit", "-", "--json", *args, stdin=recipe_text)
        return json.loads(r.stdout)["id"]

    def job(self, job):
        return self.json("status", job)

    def explain_env(self, job, *words):
        """What the rank's own node says: the controller guesses when that does not answer at once,
        as on a busy machine."""
        return wait_until(
            lambda: [
                d for d in [self.json("explain", "env", job, *words)] if d["source"] == "node"
            ],
            30,
            "the node's own word on the environment of %s" % job,
        )[0]

    def wait_state(self, job, states, deadline=60):
        """Waits until the job is in one of these states; the Job document."""
        states = [states] if isinstance(states, str) else states
        seen = {}

        def there():
            seen.update(self.job(job))
            return seen["state"] in states

        try:
            wait_until(there, deadline, "%s in %s" % (job, "/".join(states)))
        except Failed as e:
            raise Failed("%s; it is %s: %s" % (e, seen.get("state"), seen.get("reason")))
        return seen

    def wait_iteration(self, job, iteration, deadline=60):
        """Waits until the job reached the iteration, and its ranks are known; one that ended before
        is a failure at once."""

        def there():
            seen = self.job(job)
            if (seen["iteration"] or 0) >= iteration:
                return [seen["iteration"], None]
            return seen["state"] in ("completed", "failed", "cancelled") and [None, seen]

        reached, ended = wait_until(there, deadline, "%s at iteration %d" % (job, iteration))
        if ended:
            raise Failed(
                "%s is %s before iteration %d: %s"
                % (job, ended["state"], iteration, ended["reason"])
            )
        # a beat tells how far it is; the journal, which says who the ranks are, may come behind it
        wait_until(
            lambda: self.job(job)["state"] != "running"
            or all(r["pid"] for r in self.json("ranks", job)["items"]),
            30,
            "the pids of all ranks of %s" % job,
        )
        return reached

    def log(self, name):
        """Text of a daemon's log: moed, node-0, ..."""
        with open(os.path.join(self.dir, "log", name + ".log"), errors="replace") as f:
            return f.read()


def command_recipe(name, argv, gpus=1, **top):
    """A recipe of kind command as text, without pauses between attempts; top: further top-level
    keys (JSON is YAML)."""
    doc = {
        "recipe": 1,
        "name": name,
        "engine": {"kind": "command", "argv": argv},
        "cluster": {"gpus": gpus},
    }
    doc.update(top)
    doc["recovery"] = dict({"backoff": 0}, **top.get("recovery", {}))
    return json.dumps(doc)


def wait_equal(look, wanted, what="value", deadline=20):
    """As equal() of what look() returns, once it is: for what follows from a thing that was seen
    already, and may come a moment later."""
    seen = []

    def same():
        seen[:] = [look()]
        return seen[0] == wanted

    try:
        wait_until(same, deadline, what)
    except Failed as e:
        raise Failed("%s; it is %r, not %r" % (e, seen[0] if seen else None, wanted))


def need(condition, text):
    if not condition:
        raise Failed(text() if callable(text) else text)


def equal(seen, wanted, what="value"):
    if seen != wanted:
        raise Failed("%s is %r, not %r" % (what, seen, wanted))


class Suite:
    def __init__(self):
        self.tests = []

    def test(self, fn):
        self.tests.append(fn)
        return fn

    def main(self, *args):
        """Runs all tests (or those named on the command line), each with args; exits non-zero when
        one failed."""
        names, passed, failed, skipped = sys.argv[1:], 0, 0, 0
        for fn in self.tests:
            if names and fn.__name__ not in names:
                continue
            begin = time.monotonic()
            try:
                fn(*args)
                crashed = Daemon.crashed()
                need(not crashed, "; ".join(crashed))
                need(not (wrong := Watch.take()), lambda: "\n".join(wrong[:5]))
                passed += 1
                print("ok   %s (%.1f s)" % (fn.__name__, time.monotonic() - begin), flush=True)
            except Skipped as e:
                skipped += 1
                print("SKIP %s: %s" % (fn.__name__, e), flush=True)
            except Exception as e:
                failed += 1
                if not isinstance(e, Failed):
                    traceback.print_exc()
                print(
                    "FAIL %s (%.1f s): %s" % (fn.__name__, time.monotonic() - begin, e), flush=True
                )
        print("%d passed, %d failed, %d skipped" % (passed, failed, skipped), flush=True)
        return failed
