#!/usr/bin/python3
"""Commands beside ranks (`moectl exec`): whose they are, where they run, and that nothing of one
outlives its end, its deadline or the step."""
import json
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from controller import FakeAgent, Moed
from lib import Skipped, Suite, command_recipe, equal, need, wait_until
from node_rig import SLEEP, Node, alive
from rig import Rig
from test_container import container, image_of

suite = Suite()
QUERY = [1000]
# leaves its command: a session of its own, no parent, no environment
DAEMON = [
    sys.executable,
    "-c",
    "import os\n"
    "if os.fork() == 0:\n"
    "    os.setsid()\n"
    "    if os.fork() == 0:\n"
    "        os.execve('/bin/sh', ['sh', '-c', 'echo $$ >> escaped; exec sleep 1003'], {})\n"
    "    os._exit(0)\n"
    "os.wait()\n",
]
STAY = DAEMON[:2] + [DAEMON[2] + "import time\ntime.sleep(1000)\n"]


def ask(n, argv, rank=0, ms=30000, **over):
    """Asks as a controller does; returns the id of the question."""
    QUERY[0] += 1
    fields = dict(what="exec", query=QUERY[0], rank=rank, argv=argv, wait_ms=ms)
    n.moed.order("query", over.pop("job", 1), over.pop("attempt", 1), **dict(fields, **over))
    return QUERY[0]


def answer(n, query, deadline=30):
    return n.moed.wait(lambda: n.moed.answers.get(query), deadline, "answer of the command")


def run(n, argv, **over):
    a = answer(n, ask(n, argv, **over))
    need(a["error"] is None, a)
    return json.loads(a["text"])


def refused(n, argv, **over):
    a = answer(n, ask(n, argv, **over))
    return a["error"] or json.loads(a["text"])["error"]


def rank_pid(n, attempt=1):
    return n.moed.note_list(1, attempt, "started")[0]["pid"]


def pids(n, name="escaped"):
    try:
        return [int(line) for line in n.file(name).split()]
    except FileNotFoundError:
        return []


@suite.test
def output_and_status():
    with Node() as n:
        n.launch(SLEEP, n=2, env=[("COLOUR", "blue"), ("SOME_TOKEN", "hidden")])
        got = run(n, ["/bin/sh", "-c", "echo out; echo err >&2; exit 7"])
        equal((got["out"], got["err"], got["code"]), ("out\n", "err\n", 7), "what it wrote")
        equal(run(n, ["/bin/sh", "-c", "kill -9 $$"])["signal"], 9, "signal")
        got = run(n, ["env"], rank=1)["out"].splitlines()
        need("RANK=1" in got and "COLOUR=blue" in got, got)
        need(any(v.startswith("MOE_STEP=j1.a1.n0.") for v in got), got)
        need(not [v for v in got if "MOE_NOTIFY_SOCKET" in v or "SOME_TOKEN" in v], got)
        equal(run(n, ["pwd"])["out"].strip(), n.dir, "where it runs")
        equal(run(n, ["printf", "a\\0b\\377"])["out"], "a\ufffdb\ufffd", "bytes that are no text")


@suite.test
def where_it_runs():
    """In the namespace and the control group of the ranks, with no rights to gain, bound to
    nothing, without any descriptor of ours; and it is no rank."""
    with Node() as n:
        n.launch(SLEEP, n=1)
        look = "readlink /proc/self/ns/mnt; cat /proc/self/cgroup; ls /proc/self/fd | wc -l"
        got = run(n, ["/bin/sh", "-c", look])["out"].splitlines()
        pid = rank_pid(n)
        equal(got[0], os.readlink("/proc/%d/ns/mnt" % pid), "mount namespace")
        with open("/proc/%d/cgroup" % pid) as f:
            equal(got[1:-1], f.read().splitlines(), "control group")
        equal(got[-1], "4", "descriptors: 0, 1, 2 and the directory that ls reads")
        got = run(n, ["grep", "-E", "NoNewPrivs|Cpus_allowed_list", "/proc/self/status"])["out"]
        need("NoNewPrivs:\t1" in got, got)
        with open("/proc/self/status") as f:
            mine = [line for line in f if line.startswith("Cpus_allowed_list")][0]
        need(mine in got, (mine, got))
        equal(len(n.moed.note_list(1, 1, "started")), 1, "ranks that started")
        equal(n.moed.note_list(1, 1, "exit"), [], "ranks that ended")


@suite.test
def as_the_user_of_the_job():
    """Its account and groups, no capability, also none that it could gain."""
    if os.getuid() != 0:
        raise Skipped("only root runs ranks of others")
    with Node() as n:
        os.chmod(n.dir, 0o777)
        n.launch(SLEEP, user="nobody", workdir="/")
        got = run(n, ["/bin/sh", "-c", "id; grep Cap /proc/self/status"])["out"]
        with open("/proc/%d/status" % rank_pid(n)) as f:
            caps = [line for line in f if line.startswith("Cap")]
        need(got.startswith("uid=65534(nobody)") and "root" not in got, got)
        equal(got.splitlines(True)[1:], caps, "capabilities, as the rank's")
        need("CapEff:\t0000000000000000\n" in got and "CapPrm:\t0000000000000000\n" in got, got)
        need("Permission denied" in run(n, ["cat", "/etc/shadow"])["err"], "what is root's")


@suite.test
def in_the_image():
    """What the command sees, and the program itself, are the image's; all of it ends with the
    step."""
    for how in ("kill", "stepd"):
        with Node() as n:
            root = image_of(n, environment="OF_IMAGE=yes\n")
            os.makedirs(n.dir + "/out")
            mounts = [(n.dir + "/out", "/out", False)]
            n.launch(SLEEP, workdir="/out", container=container(root, mounts))
            look = "cat /of_image; echo $OF_IMAGE; pwd; ls %s/agent.log 2>&1" % n.dir
            got = run(n, ["sh", "-c", look])
            need(got["out"].startswith("of the image\nyes\n/out\n"), got)
            need("cannot access" in got["out"] and got["code"], "the node's files: %s" % got)
            ask(n, STAY, ms=600000)
            wait_until(lambda: pids(n, "out/escaped"), 20, "it has left a process")
            if how == "kill":
                n.moed.order("kill", 1, 1)
            else:
                os.kill(n.stepd_pid(), signal.SIGKILL)
            n.moed.wait_note(1, 1, "gone")
            equal([p for p in pids(n, "out/escaped") if alive(p)], [], "of what it left live")


@suite.test
def deadline():
    with Node() as n:
        n.launch(SLEEP, n=1)
        got = run(n, STAY, ms=1500)
        need(got["late"] and got["signal"] == signal.SIGKILL, got)
        wait_until(lambda: pids(n), 10, "it has left a process")
        equal([p for p in pids(n) if alive(p)], [], "of what it left live")
        need(alive(rank_pid(n)), "the rank lives on")


@suite.test
def leaves_nothing():
    with Node() as n:
        n.launch(SLEEP, n=1)
        equal(run(n, DAEMON)["code"], 0, "its status")
        equal([p for p in pids(n) if alive(p)], [], "of what it left live")


@suite.test
def output_is_bounded():
    with Node() as n:
        n.launch(SLEEP, n=1)
        got = run(n, ["/bin/sh", "-c", "head -c 5000000 /dev/zero | tr '\\0' x; echo end >&2"])
        equal((len(got["out"]), got["out_cut"], got["err"]), (256 * 1024, True, "end\n"), "output")
        equal((got["code"], got.get("err_cut")), (0, None), "it is not disturbed")


@suite.test
def ends_with_its_step():
    """Its supervisor is killed; also what has left the command, with no environment, is gone when
    the step is."""
    for options in ([], ["use_cgroup=no"]):
        with Node(options=options) as n:
            n.launch(SLEEP, n=1)
            query = ask(n, STAY, ms=600000)
            wait_until(lambda: len(pids(n)) == 1, 20, "it has left a process")
            os.kill(n.stepd_pid(), signal.SIGKILL)
            n.moed.wait_note(1, 1, "gone")
            if os.getuid() == 0:  # the namespace finds it
                equal([p for p in pids(n) if alive(p)], [], "of what it left live")
            a = answer(n, query)
            need(a["error"] or json.loads(a["text"])["signal"] == signal.SIGKILL, a)


@suite.test
def ends_with_a_kill():
    for options in ([], ["use_cgroup=no"]):
        with Node(options=options) as n:
            n.launch(SLEEP, n=1)
            query = ask(n, STAY, ms=600000)
            wait_until(lambda: len(pids(n)) == 1, 20, "it has left a process")
            n.moed.order("kill", 1, 1)
            n.moed.wait_note(1, 1, "gone")
            equal([p for p in pids(n) if alive(p)], [], "of what it left live")
            need(answer(n, query), "it is answered")


@suite.test
def ends_with_its_ranks():
    """A rank does not wait for those who look at it."""
    for options in ([], ["use_cgroup=no"]):
        with Node(options=options) as n:
            n.launch(["/bin/sh", "-c", "until [ -e go ]; do sleep 0.05; done"])
            query = ask(n, STAY, ms=600000)
            wait_until(lambda: len(pids(n)) == 1, 20, "it has left a process")
            with open(n.dir + "/go", "w"):
                pass
            n.moed.wait_note(1, 1, "gone")
            equal(n.moed.note_list(1, 1, "exit")[0]["code"], 0, "how the rank ended")
            equal([p for p in pids(n) if alive(p)], [], "of what it left live")
            need(answer(n, query), "it is answered")


@suite.test
def once_in_spite_of_a_new_agent():
    """The agent is killed while the command runs: the next one is asked again, and tells what came
    of the one run."""
    with Node() as n:
        n.launch(SLEEP, n=1)
        query = ask(n, ["/bin/sh", "-c", "echo $$ >> runs; until [ -e go ]; do sleep 0.05; done"])
        wait_until(lambda: pids(n, "runs"), 20, "it runs")
        n.stop_agent()
        n.start()
        with open(n.dir + "/go", "w"):
            pass
        a = answer(n, query)
        equal((a["error"], json.loads(a["text"])["code"]), (None, 0), "answer of the new agent")
        equal(len(pids(n, "runs")), 1, "runs")


@suite.test
def many_one_after_another():
    """One that lasts is not forgotten over many that do not; what came of them is not piled up."""
    with Node() as n:
        n.launch(SLEEP, n=1)
        query = ask(n, ["/bin/sh", "-c", "until [ -e go ]; do sleep 0.05; done"])
        for i in range(40):
            equal(run(n, ["echo", str(i)])["out"], "%d\n" % i, "of one")
        with open(n.dir + "/go", "w"):
            pass
        equal(json.loads(answer(n, query)["text"])["code"], 0, "of the one that lasted")
        left = [f for f in os.listdir(n.step_dir()) if f.startswith("exec.")]
        need(len(left) <= 16, left)


@suite.test
def too_many_for_a_step():
    with Node() as n:
        n.launch(SLEEP, n=1)
        wait = ["/bin/sh", "-c", "until [ -e go ]; do sleep 0.05; done"]
        asked = [ask(n, wait) for _ in range(17)]
        got = json.loads(answer(n, asked[-1])["text"])
        need("too many" in got["error"], got)
        with open(n.dir + "/go", "w"):
            pass
        equal([json.loads(answer(n, q)["text"])["code"] for q in asked[:-1]], [0] * 16, "codes")


@suite.test
def the_process_that_runs_it_is_killed():
    """The command ends with it, and who asked hears of it at once; the rank does not."""
    with Node() as n:
        n.launch(SLEEP, n=1)
        query = ask(n, ["/bin/sh", "-c", "echo $$ >> runs; exec sleep 1000"], ms=600000)
        wait_until(lambda: pids(n, "runs"), 20, "it runs")
        command = pids(n, "runs")[0]
        with open("/proc/%d/stat" % command) as f:
            os.kill(int(f.read().rsplit(")", 1)[1].split()[1]), signal.SIGKILL)
        got = json.loads(answer(n, query)["text"])
        need("was killed" in got["error"], got)
        wait_until(lambda: not alive(command), 10, "the command ends")
        equal(run(n, ["true"])["code"], 0, "the next one")
        need(alive(rank_pid(n)), "the rank lives on")


@suite.test
def a_supervisor_that_does_not_take_it():
    """It is told, and the command does not run later either."""
    with Node() as n:
        n.launch(SLEEP, n=1)
        stepd = n.stepd_pid()
        os.kill(stepd, signal.SIGSTOP)
        try:
            a = answer(n, ask(n, ["touch", n.dir + "/late"]))
            need("does not take the command" in a["error"], a)
        finally:
            os.kill(stepd, signal.SIGCONT)
        equal(run(n, ["ls", n.dir + "/late"])["code"], 2, "status of a look for what it would do")


@suite.test
def refusals():
    with Node() as n:
        n.launch(SLEEP, n=1)
        need("not on n0" in refused(n, ["true"], rank=1), "a rank of another node")
        need("name a program" in refused(n, []), "no command")
        need("too many" in refused(n, ["true", "x" * 9000]), "a long one")
        need("deadline" in refused(n, ["true"], ms=600001), "a long deadline")
        need("does not have this step" in refused(n, ["true"], attempt=2), "no such attempt")
        got = refused(n, ["/no/such"])
        need("could not execute /no/such: No such file" in got, got)


@suite.test
def after_a_rank_has_ended():
    with Node() as n:
        script = '[ "$RANK" = 0 ] && exit 0; exec sleep 1000'
        n.launch(["/bin/sh", "-c", script], n=2)
        n.moed.wait_note(1, 1, "exit")
        need("has ended" in refused(n, ["true"]), "a rank that ended")


# ---- through the controller


class Cluster(Rig):
    """With a job of two ranks that runs."""

    def __enter__(self):
        self.up()
        text = command_recipe("asked", SLEEP, cluster={"gpus": 2})
        a = self.http("POST", "/v1/jobs", text, content_type="application/yaml")
        equal(a.status, 201, a.body)
        self.asked = a.json["id"]
        self.wait_state(self.asked, "running", 30)
        return self

    def ask(self, body, token=None):
        path = "/v1/jobs/%s/exec" % self.asked
        return self.http("POST", path, json.dumps(body), token=token, tcp=bool(token))

    def look(self, exec_id, token=None, job=None):
        path = "/v1/jobs/%s/exec/%s" % (job or self.asked, exec_id)
        return self.http("GET", path, token=token, tcp=bool(token))

    def result(self, exec_id):
        wait_until(lambda: self.look(exec_id).json["result"], 30, "the command is over")
        return self.look(exec_id).json["result"]


@suite.test
def as_a_person_sees_it():
    """moectl exec: output, errors and status are the command's; the event says who and what."""
    with Cluster(nodes=1) as c:
        script = "echo $RANK; echo bad >&2; exit 7"
        r = c.run("exec", c.asked, "1", "--", "sh", "-c", script, check=False)
        equal((r.stdout, r.stderr, r.returncode), ("1\n", "bad\n", 7), "what it was")
        r = c.run("exec", "asked", "--", "sh", "-c", "kill -15 $$", check=False)
        equal((r.stdout, r.returncode), ("", 128 + 15), "a signal")
        r = c.run("exec", c.asked, "--timeout", "1", "--", "sleep", "1000", check=False)
        equal(r.returncode, 124, r.stderr)
        need("did not end in time" in r.stderr, r.stderr)
        said = c.run("exec", "--json", c.asked, "--", "echo", "--token", "verysecret").stdout
        doc = json.loads(said)
        equal(doc["result"]["out"], "--token verysecret\n", "what it wrote")
        e = c.events_of(c.asked, "job.exec")[-1]
        equal((e["rank"], e["data"]["rank"], e["data"]["command"]), (0, 0, "echo --token ***"), e)
        need("; it is: echo --token ***" in e["message"], e)
        r = c.run("exec", c.asked, "--", "/no/such", check=False)
        need(r.returncode == 1 and "could not execute /no/such" in r.stderr, r.stderr)


@suite.test
def bad_words():
    with Cluster(nodes=1) as c:
        for args, status, words in (
            (("exec", c.asked), 2, "command is missing"),
            (("exec", c.asked, "--"), 2, "command is missing"),
            (("exec", c.asked, "x", "--", "ls"), 2, "not the number of a rank"),
            (("exec", c.asked, "2", "--", "ls"), 5, "has no rank 2: ranks are 0 to 1"),
            (("exec", c.asked, "--timeout", "601", "--", "ls"), 2, "from 1 to 600"),
            (("exec", "j-99", "--", "ls"), 5, "j-99"),
        ):
            r = c.run(*args, check=False)
            need(r.returncode == status and words in r.stderr, (args, r.returncode, r.stderr))
        for body, words in (
            ({"command": []}, "name a program"),
            ({"command": ["ls"], "rank": -1}, "rank"),
            ({"command": ["ls"], "timeout_s": 0}, "timeout_s"),
            ({"command": "ls"}, "command"),
            ({"words": ["ls"]}, "words"),
        ):
            a = c.ask(body)
            need(a.status == 422 and words in a.detail, (body, a.status, a.body))
        equal(c.events_of(c.asked, "job.exec"), [], "events")
        equal(c.look("none").status, 404, "no such command")


@suite.test
def whose_it_is():
    """The owner and admins; another user and an operator are refused and see no command."""
    with Cluster(nodes=1) as c:
        tokens = {
            u: c.json("token", "create", "--role", role, "--user", u)["token"]
            for u, role in (("eve", "user"), ("oda", "operator"), ("ann", "admin"))
        }
        body = {"command": ["echo", "private"]}
        for u in ("eve", "oda"):
            a = c.ask(body, token=tokens[u])
            need(a.status == 403 and "owner" in a.detail, (u, a.body))
        a = c.ask(body, token=tokens["ann"])
        equal(a.status, 202, a.body)
        equal(c.result(a.json["id"])["out"], "private\n", "for an admin")
        for u in ("eve", "oda"):
            equal(c.look(a.json["id"], token=tokens[u]).status, 403, "what came of it, as " + u)
        seen = c.http("GET", "/v1/events?type=job.exec", token=tokens["eve"], tcp=True)
        equal(len(seen.json["items"]), 1, "events of commands")
        need(b"private" not in seen.body, seen.body)


@suite.test
def not_too_many():
    with Cluster(nodes=1) as c:
        wait = {"command": ["sh", "-c", "until [ -e %s/go ]; do sleep 0.05; done" % c.dir]}
        ids = [c.ask(wait).json["id"] for _ in range(4)]
        a = c.ask(wait)
        need(a.status == 429 and "four" in a.detail, a.body)
        with open(c.dir + "/go", "w"):
            pass
        equal([c.result(i)["code"] for i in ids], [0] * 4, "those that ran")
        equal(c.ask(wait).status, 202, "and there is room again")


@suite.test
def the_worst_output():
    """As much as is kept of bytes that take the most room on their way."""
    with Cluster(nodes=1) as c:
        for byte, seen in ((1, "\x01"), (0, "\ufffd"), (255, "\ufffd")):
            code = "import os; [os.write(f, bytes([%d]) * 300000) for f in (1, 2)]" % byte
            a = c.ask({"command": [sys.executable, "-c", code]})
            equal(a.status, 202, a.body)
            got = c.result(a.json["id"])
            equal(got["error"], None, byte)
            need(got["out"] == got["err"] == seen * (256 * 1024), "bytes of %d" % byte)
            need(got["out_cut"] and got["err_cut"], "it is said that there was more")


@suite.test
def a_controller_that_ends_meanwhile():
    """The command goes on to its end on its node; what came of it nobody knows, and that is
    said."""
    with Cluster(nodes=1) as c:
        script = "echo $$ > %s/runs; until [ -e %s/go ]; do sleep 0.05; done; touch %s/over"
        a = c.ask({"command": ["sh", "-c", script % (c.dir, c.dir, c.dir)]})
        wait_until(lambda: os.path.exists(c.dir + "/runs"), 20, "it runs")
        c.kill(c.moed)
        c.start_moed()
        gone = c.look(a.json["id"])
        need(gone.status == 404 and "start of the controller" in gone.detail, gone.body)
        with open(c.dir + "/go", "w"):
            pass
        wait_until(lambda: os.path.exists(c.dir + "/over"), 20, "its end")
        equal(len(c.events_of(c.asked, "job.exec")), 1, "the event is kept")


@suite.test
def where_nothing_runs():
    with Cluster(nodes=1) as c:
        c.run("cancel", c.asked, "--now")
        c.wait_state(c.asked, "cancelled", 30)
        a = c.ask({"command": ["ls"]})
        need(a.status == 409 and "cancelled" in a.detail, a.body)


@suite.test
def an_older_agent():
    """It says that it does not know the question; nothing waits for it."""

    class Older(FakeAgent):
        def answer(self, command):
            words = "this agent does not know what is asked: it is older than the controller"
            doc = {"node": self.node, "query": command["query"], "error": words}
            equal(self.post("answer", doc).status, 200, "answer")

    with Moed() as m:
        agent = Older(m)
        equal(agent.hello().status, 200, "hello")
        agent.loop()
        job = m.submit().json["id"]
        wait_until(lambda: m.get("/v1/jobs/" + job)["state"] == "running", 10, "the job runs")
        a = m.ask("POST", "/v1/jobs/%s/exec" % job, {"command": ["ls"]})
        equal(a.status, 202, a.body)
        path = "/v1/jobs/%s/exec/%s" % (job, a.json["id"])
        wait_until(lambda: m.get(path)["result"], 10, "an answer")
        need("older" in m.get(path)["result"]["error"], m.get(path))
        agent.running = False


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
