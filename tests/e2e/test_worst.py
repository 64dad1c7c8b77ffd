#!/usr/bin/python3
"""The worst that a peer can send, of each kind, while another client asks: nobody waits for it, and the controller's memory does not grow by it.
What is measured is compared with the same client's answers before, in the same run; figures are printed for docs/measured.md."""
import json
import os
import re
import signal
import statistics
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import Suite, equal, need, wait_until  # noqa: E402
from rig import Rig, Unix, command_of  # noqa: E402

suite = Suite()
SLOWEST = 10000         # unloaded answers; one takes 60 us here, and what the worst took before there were limits are 40,000 to 350,000
DEAREST = 20000         # times the CPU of one (10 to 40 us)
PEAK_KB = 64 * 1024
KB = 1024
BASE = "recipe: 1\nname: worst\nengine: {kind: command, argv: [x]}\ncluster: {gpus: 1}\n"
MEGATRON = "recipe: 1\nname: worst\nengine:\n  kind: megatron-lm\n  entry: a.py\n  workdir: /w\n  args: %s\ncluster: {gpus: 8}\nsteps: 10\n"


def fill(head, unit, size, tail=""):
    return head + unit * ((size - len(head) - len(tail)) // len(unit)) + tail


def flags(fmt, n):
    return MEGATRON % ("[" + ",".join(fmt % i for i in range(n)) + "]")


RECIPES = {
    "directives": "%" * (250 * KB), "directive of 128 kB": "%" * (127 * KB), "blanks": fill("{b: ", "\n", 127 * KB), "blanks and tabs": fill("- ", " \t", 127 * KB),
    "a tag": fill("a: !", "%20", 127 * KB), "brackets": "[" * (127 * KB), "pairs without a key": fill("{ ", ": ", 127 * KB), "a list of lists": fill("", "- [a, a, a]\n", 127 * KB),
    "aliases of a long text": fill("t: &a \"%s\"\n%senv: {A: [" % ("x" * 20000, BASE), "*a , ", 127 * KB, "*a ]}\n"),
    "anchors": BASE + "env: {A: [" + ",".join("&a%d x" % i for i in range(5000)) + "]}\n", "what kills libfyaml": BASE + "? a:\t|\n" * 1000,
    "words": flags("--w%d", 14000), "flags": flags("--w%d", 1000), "flags that are nearly some": flags("--moe-router-%03x", 1000), "one flag": MEGATRON % fill("[", "--a,", 4000, "--c]"),
    "pairs of flags": MEGATRON % ("{" + ",".join("k%d: %s" % (i, "v" * 230) for i in range(500)) + "}"), "braces": BASE.replace("[x]", fill("[", '"' + "{}" * 2000 + '",', 127 * KB, "x]")),
    "keys that are none": BASE + "".join("gpus%d: 1\n" % i for i in range(490)), "sizes": BASE + "batch: {micro: 1048576, global: 1073741823}\n",
}
BODIES = {
    "lists as JSON": fill("[", "[],", 1000 * KB, "[]]"), "objects as JSON": fill("[", "{},", 1000 * KB, "{}]"),
}
AGENT = {
    "empty steps": ('{"node":"n","steps":[', "{},", "{}]}"), "steps": ('{"node":"n","steps":[', '{"job":1,"attempt":1},', "{}]}"), "lists": ('{"node":"n","steps":[', "[],", "[]]}"),
    "keys": ('{"node":"n"', ',"a":1', "}"), "texts": ('{"node":"n","steps":[', '"",', '""]}'), "one long text": ('{"node":"', "n", '"}'), "escapes": ('{"node":"', "\\n", '"}'),
    "no end": ('{"node":"n","steps":[', "[", ""), "blanks": ("{", " ", "}"),
}


class Asker(threading.Thread):
    """Another client: asks all the time, on one connection, and keeps how long each answer took."""

    def __init__(self, rig):
        super().__init__(daemon=True)
        self.connection, self.took, self.done = Unix(rig.moed_options["unix_socket"], 120), [], False

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
        self.done = True
        self.join()
        self.connection.close()
        return max(self.took)


def status_kb(rig, name):
    with open("/proc/%d/status" % rig.moed.pid) as f:
        return int(re.search(name + r":\s+(\d+)", f.read()).group(1))


def cpu_ms(rig):
    with open("/proc/%d/schedstat" % rig.moed.pid) as f:
        return int(f.read().split()[0]) / 1e6


def unloaded(rig):
    """Seconds and ms of CPU that an answer takes when nobody else asks."""
    asker, before = Asker(rig), cpu_ms(rig)
    for _ in range(300):
        asker.ask()
    asker.connection.close()
    return statistics.median(asker.took), (cpu_ms(rig) - before) / 300


def one(rig, usual, what, path, body, **headers):
    """Sends it twice while another client asks, the second time a little different: what was read a moment ago is not read again."""
    usual_s, usual_ms = usual
    with open("/proc/%d/clear_refs" % rig.moed.pid, "w") as f:
        f.write("5")                      # peak memory counts from here
    asker = Asker(rig)
    asker.start()
    cost = []
    for text in (body, body + " "):
        before = cpu_ms(rig)
        answer = rig.http("POST", path, text, timeout=300, **headers)
        cost.append(cpu_ms(rig) - before)
        need(answer.status in (200, 400, 409, 413, 422), "%s: %d %s" % (what, answer.status, answer.body[:200]))
    slowest, grown = asker.end(), status_kb(rig, "VmHWM") - rig.rss_before
    print("     %-28s %9d bytes: %3d; %6.1f ms of CPU with the other client's, who waited %5.1f ms (usually %.2f); %5.1f MB" % (what, len(body), answer.status, max(cost), slowest * 1000, usual_s * 1000, grown / 1024))
    need(slowest < SLOWEST * usual_s, "%s: another client waited %.0f ms, as long as %d answers take without it" % (what, slowest * 1000, slowest / usual_s))
    need(max(cost) < DEAREST * usual_ms, "%s: %.0f ms of CPU, as much as %d answers take" % (what, max(cost), max(cost) / usual_ms))
    need(grown < PEAK_KB, "%s: the controller grew by %d kB" % (what, grown))


@suite.test
def recipes(rig):
    usual = unloaded(rig)
    for what, text in RECIPES.items():
        one(rig, usual, what, "/v1/validate", text, content_type="application/yaml")
    one(rig, usual, "a dry run", "/v1/jobs?dry_run=1", RECIPES["pairs of flags"], content_type="application/yaml")
    for what, text in BODIES.items():
        one(rig, usual, what, "/v1/validate", text)


@suite.test
def agents(rig):
    usual, token = unloaded(rig), rig.token("agent")
    for what, (head, unit, tail) in AGENT.items():
        for size in (4 << 20, 15 << 20):
            one(rig, usual, what, "/v1/agent/%s" % ("sync" if size == 4 << 20 else "hello"), fill(head, unit, size, tail), token=token)


MANY = BASE.replace("gpus: 1", "gpus: 8192")


def forks(rig):
    """Children of the controller that are forks of it."""
    with open("/proc/%d/task/%d/children" % (rig.moed.pid, rig.moed.pid)) as f:
        return [int(p) for p in f.read().split() if command_of(int(p)) == command_of(rig.moed.pid)]


class Asked(threading.Thread):
    """A dry run of many ranks by somebody of that name."""

    def __init__(self, rig, user, text=MANY):
        super().__init__(daemon=True)
        self.rig, self.text, self.answer = rig, text, None
        self.token = rig.json("token", "create", "--role", "user", "--user", user)["token"]
        self.start()

    def run(self):
        self.answer = self.rig.http("POST", "/v1/jobs?dry_run=1", self.text, timeout=300, token=self.token, content_type="application/yaml")

    def end(self):
        self.join()
        return self.answer


def stopped(rig, n):
    """n forks, which do not go on."""
    wait_until(lambda: len(forks(rig)) == n, 30, "%d dry runs under way" % n)
    for pid in forks(rig):
        os.kill(pid, signal.SIGSTOP)
    return forks(rig)


@suite.test
def many_ranks(rig):
    """They are shown by a child, whose memory does not grow with them; one of each user, two at once; whatever ends it is said."""
    a = Asked(rig, "ada").end()
    equal((a.status, len(a.json["ranks"]), a.json["ranks"][8191]["env"]["RANK"]), (200, 8192, "8191"), "a dry run of many ranks")
    need("8193 ranks" in Asked(rig, "ada", MANY.replace("8192", "8193")).end().detail, "more than one document shows")
    wide = MEGATRON.replace("gpus: 8", "gpus: 8192") % ("[" + ",".join(["v" * 4000] * 3) + "]")
    need("more than 64 MB" in Asked(rig, "ada", wide).end().detail, "a document of 100 MB")
    first = Asked(rig, "ada")
    stopped(rig, 1)
    again = Asked(rig, "ada").end()
    equal((again.status, "or one of yours" in again.detail), (429, True), "a second one of the same user")
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
    with Rig(nodes=1) as rig:
        rig.rss_before = status_kb(rig, "VmRSS")
        return suite.main(rig)


sys.exit(1 if main() else 0)
