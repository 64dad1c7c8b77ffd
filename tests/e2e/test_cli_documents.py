#!/usr/bin/python3
"""What moectl says of a job in each state: documents, lists, stories, human output, logs and events
as they grow. Usage: test_cli_documents.py [TEST...]"""
import json
import os
import re
import signal
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cli_world import CHECKPOINT, error_line, JOB, keys, main, place
from lib import PATIENCE, Suite, command_recipe, equal, need, wait_until

suite = Suite()

RANK_KEYS = (
    "rank node local_rank pid state cpus numa_node gpu nic bind_verified iteration step_ms coords "
    "exit".split()
)
SAMPLE = (
    "iteration time loss grad_norm lr step_ms tokens tokens_per_s_per_gpu tflops_per_gpu mfu "
    "mem_gb skipped nan phase attempt".split()
)
EVENT = "seq time type job node rank attempt message data".split()
ENV = "name value reason source overrides".split()
WHY = "verdict since reasons next".split()
REPORT = (
    "wall_s gpu_seconds ettr ettr_hour ettr_saving_each overdue_s goodput mfu restarts "
    "restart_parts incidents"
).split()
LEDGER = (
    "total productive queue image launch init load recompute save hang detect drain idle".split()
)
INCIDENT = (
    "time attempt class first_rank node cause evidence action lost_iterations waterfall_ms".split()
)
NODE = "name state reason gpus cpus numa_nodes jobs heartbeat_age_ms checks lemon_score".split()
TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")


def check_status(c, job, state):
    doc = c.json("status", job)
    keys(doc, JOB, "status")
    equal((doc["id"], doc["state"]), (job, state), "status")
    need(TIME.match(doc["created_at"]), lambda: "created_at %r" % doc["created_at"])
    need(
        (doc["ended_at"] is not None) == (state in ("completed", "failed", "cancelled")),
        lambda: "ended_at of a %s job: %r" % (state, doc["ended_at"]),
    )
    if doc["checkpoint"] is not None:
        keys(doc["checkpoint"], ["iteration", "path", "verified"], "checkpoint of a job")


def check_lists(c, job, state):
    for verb, wanted, words in (
        ("ranks", RANK_KEYS, []),
        ("metrics", SAMPLE, []),
        ("metrics", SAMPLE, ["--since", "3"]),
        ("events", EVENT, []),
        ("checkpoints", CHECKPOINT, []),
    ):
        doc = c.json(verb, job, *words)
        equal(
            sorted(doc),
            sorted(["items", "next"] + {"metrics": ["left_out"], "events": ["gone"]}.get(verb, [])),
            "keys of %s" % verb,
        )
        for item in doc["items"]:
            keys(item, wanted, "%s of a %s job" % (verb, state))
            need(
                "time" not in item or TIME.match(item["time"]),
                lambda: "time of %s: %s" % (verb, item),
            )
        if words:
            need(
                all(i["iteration"] >= 3 for i in doc["items"]),
                "metrics --since shows earlier iterations",
            )
    keys(c.json("explain", "bind", job), ["items", "next"], "explain bind")
    env = c.json("explain", "env", job)
    for item in env["items"]:
        keys(item, ENV, "explain env")
    values = {i["name"]: i["value"] for i in env["items"]}
    equal(
        (values.get("MOE_JOB"), values.get("RANK")),
        (job, "0"),
        "MOE_JOB and RANK of a %s job" % state,
    )
    need("hush-hush" not in json.dumps(env), "explain env tells a secret")


def check_stories(c, job, state):
    why = c.json("why", job)
    keys(why, WHY, "why")
    need(
        why["verdict"] and why["reasons"], lambda: "why of a %s job says nothing: %s" % (state, why)
    )
    for reason in why["reasons"]:
        keys(reason, ["code", "text", "evidence"], "reason")
    report = c.json("report", job)
    keys(report, REPORT, "report")
    keys(report["gpu_seconds"], LEDGER, "gpu_seconds")
    parts = sum(report["gpu_seconds"][k] for k in LEDGER if k not in ("total", "queue"))
    need(
        abs(parts - report["gpu_seconds"]["total"]) < 1e-3,
        lambda: "categories add up to %s of %s" % (parts, report["gpu_seconds"]["total"]),
    )
    for incident in report["incidents"]:
        keys(incident, INCIDENT, "incident")
        keys(
            incident["waterfall_ms"],
            "detect stop place launch init load recompute".split(),
            "waterfall",
        )


def check_human(c, job, state):
    for words in (
        ["status"],
        ["ranks"],
        ["metrics"],
        ["metrics", "--csv"],
        ["events"],
        ["checkpoints"],
        ["report"],
        ["report", "--csv"],
        ["why"],
        ["explain", "env"],
        ["explain", "bind"],
        ["logs"],
    ):
        if words == ["logs"] and state in ("queued", "starting"):
            continue
        r = c.run(*words, job)
        need(
            r.stdout or words == ["logs"],
            lambda: "moectl %s prints nothing for a %s job" % (" ".join(words), state),
        )
        need("\033" not in r.stdout, "colours in a pipe")
        need(
            "(null)" not in r.stdout and "-9223372036854775808" not in r.stdout,
            lambda: "moectl %s: %s" % (" ".join(words), r.stdout),
        )


def each_state(world, check):
    for state, job in list(world.jobs.items()):
        if state == "starting":
            continue
        check(world.c, job, state)


@suite.test
def starting_job_has_every_document(w):
    # each in the seconds until the node counts as down
    for check in (check_status, check_lists, check_stories, check_human):
        job = w.start_one()
        check(w.c, job, "starting")
        w.wake()
        w.c.wait_state(job, "running")
        w.c.run("cancel", job, "--now")
        w.c.wait_state(job, "cancelled")


@suite.test
def status_in_each_state(w):
    each_state(w, check_status)


@suite.test
def lists_in_each_state(w):
    each_state(w, check_lists)
    ranks = w.c.json("ranks", w.jobs["running"])["items"]
    need(
        all(r["bind_verified"] is True and r["pid"] and r["cpus"] for r in ranks),
        lambda: "ranks of a running job: %s" % ranks,
    )
    done = w.c.json("checkpoints", w.jobs["completed"])["items"]
    equal([c["iteration"] for c in done], [2, 4, 6], "checkpoints")
    wait_until(
        lambda: {c["state"] for c in w.c.json("checkpoints", w.jobs["completed"])["items"]}
        == {"verified"},
        30,
        "the end of an undisturbed job verifies its checkpoints",
    )
    equal(
        [m["iteration"] for m in w.c.json("metrics", w.jobs["completed"])["items"]],
        [1, 2, 3, 4, 5, 6],
        "iterations",
    )


@suite.test
def iterations_that_came_too_fast_are_counted(w):
    equal(
        (
            w.c.json("metrics", w.jobs["completed"])["left_out"],
            w.c.json("status", w.jobs["completed"]).get("samples_left_out"),
        ),
        (0, None),
        "of a job that tells each",
    )
    flood = "print('\\n'.join('step %d loss 1.5' % i for i in range(1, 100001)))"
    job = w.c.submit(command_recipe("flood", ["/usr/bin/python3", "-c", flood], steps=100000))
    w.c.wait_state(job, "completed")
    left_out = w.c.json("metrics", job)["left_out"]
    need(0 < left_out < 100000, lambda: "left_out of 100,000 iterations at once: %d" % left_out)
    equal(w.c.json("status", job)["samples_left_out"], left_out, "samples_left_out")
    said = "%d iterations" % left_out
    need(said in w.c.run("status", job).stdout, lambda: "status does not say: " + said)
    need(
        "(%s of the job came faster than 1,000 a second" % said in w.c.run("metrics", job).stderr,
        lambda: "metrics does not say: " + said,
    )


@suite.test
def stories_in_each_state(w):
    each_state(w, check_stories)
    need(
        "64" in json.dumps(w.c.json("why", w.jobs["queued"])),
        "why a job of 64 GPUs is queued does not name the number",
    )
    need(
        "no such flavour" in json.dumps(w.c.json("why", w.jobs["failed"])),
        "why of a failed job lacks its last lines",
    )


@suite.test
def human_output_in_each_state(w):
    each_state(w, check_human)


@suite.test
def logs_are_text_and_json(w):
    text = w.c.run("logs", w.jobs["failed"], "--rank", 0).stdout
    need("RuntimeError: no such flavour" in text, lambda: "logs: %r" % text)
    lines = [
        json.loads(x)
        for x in w.c.run("logs", w.jobs["failed"], "--rank", 0, "--json").stdout.splitlines()
    ]
    need(any("no such flavour" in x["line"] for x in lines), lambda: "logs --json: %s" % lines)
    running = ("logs", w.jobs["running"], "--rank", 0)
    wait_until(lambda: w.c.run(*running).stdout, 30, "a line of a running job")
    last = w.c.run(*running, "-n", 1).stdout.splitlines()
    equal(len(last), 1, "lines of logs -n 1: %s" % last)


@suite.test
def logs_follow_until_the_end(w):
    job = w.c.submit(
        command_recipe("follow", ["sh", "-c", "for i in 1 2 3; do echo line $i; sleep 0.3; done"])
    )
    w.c.wait_state(job, ["running", "completed"])
    r = w.c.run("logs", job, "--rank", 0, "-f", timeout=30)
    equal(
        [x for x in r.stdout.splitlines() if "line" in x],
        ["line 1", "line 2", "line 3"],
        "followed lines",
    )


class Followed:
    """`moectl logs JOB -f` and what it printed so far."""

    def __init__(self, c, job, *words):
        self.lines, self.notices = [], []
        self.p = c.popen("logs", job, "-f", *words)
        self.threads = [
            threading.Thread(
                target=lambda f=f, to=to: to.extend(x.rstrip("\n") for x in f), daemon=True
            )
            for f, to in ((self.p.stdout, self.lines), (self.p.stderr, self.notices))
        ]
        for t in self.threads:
            t.start()

    def ended(self):
        status = self.p.wait(PATIENCE * 60)
        for t in self.threads:
            t.join(PATIENCE * 10)
        return status


def counter(name, ranks):
    """A job whose ranks print `n 0`, `n 1`, ... until the file counted-NAME is there, then `end
    COUNT`."""
    code = (
        "import os,time\ni=0\nwhile not os.path.exists(%r):\n  print('n', i, flush=True)\n  i+=1\n"
        "  time.sleep(0.005)\nprint('end', i)" % place("counted-" + name)
    )
    return command_recipe(name, [sys.executable, "-c", code], gpus=ranks)


@suite.test
def logs_follow_over_restarts(w):
    w.wake()
    job = w.c.submit(counter("counter", 4))
    f = Followed(w.c, job)
    wait_until(lambda: len(f.lines) > 100, 30, "the first lines")
    os.kill(w.c.status()["moed"]["pid"], signal.SIGKILL)
    wait_until(lambda: any("no answer" in x for x in f.notices), 10, "the notice")
    for up in range(2):
        seen = len(f.lines)
        w.c.up()
        wait_until(lambda: len(f.lines) > seen + 100, 30, "lines after the restart")
        for agent in w.c.status()["agents"] if up == 0 else []:
            os.kill(agent["pid"], signal.SIGKILL)
    open(place("counted-counter"), "w").close()
    equal(f.ended(), 0, "exit status (%s)" % f.notices)
    for rank in range(4):
        mine = [x for x in f.lines if x.startswith("[%d] " % rank)]
        equal(
            mine,
            ["[%d] n %d" % (rank, i) for i in range(len(mine) - 1)]
            + ["[%d] end %d" % (rank, len(mine) - 1)],
            "lines of rank %d; %d lines, notices %s" % (rank, len(f.lines), f.notices),
        )
    equal(len(f.notices), 1, "notices %s" % f.notices)


@suite.test
def logs_follow_the_attempts(w):
    job = w.c.submit(counter("attempts", 2))
    f = Followed(w.c, job, "--json")
    wait_until(lambda: len(f.lines) > 20, 30, "the first lines")
    w.c.run("pause", job)
    wait_until(lambda: any("paused" in x for x in f.notices), 30, "the notice")
    w.c.run("resume", job)
    wait_until(lambda: any('"attempt":2' in x for x in f.lines), 30, "lines of attempt 2")
    w.c.run("cancel", job, "--now")
    equal(f.ended(), 0, "exit status")
    docs = [json.loads(x) for x in f.lines]
    for attempt in (1, 2):
        for rank in (0, 1):
            mine = [
                x["line"]
                for x in docs
                if (x["attempt"], x["rank"]) == (attempt, rank) and x["line"].startswith("n ")
            ]
            equal(
                mine,
                ["n %d" % i for i in range(len(mine))],
                "lines of rank %d in attempt %d" % (rank, attempt),
            )
    equal([x["attempt"] for x in docs], sorted(x["attempt"] for x in docs), "order of the attempts")
    alone = Followed(w.c, job, "--attempt", "1", "--rank", "1", "-n", "3")
    equal((alone.ended(), len(alone.lines)), (0, 3), "one rank of one attempt")


@suite.test
def lists_of_jobs_nodes_and_cluster(w):
    active = w.c.json("list")
    equal(sorted(active), ["items", "next"], "keys of list")
    need(
        all(j["state"] not in ("completed", "failed", "cancelled") for j in active["items"]),
        "list shows finished jobs",
    )
    everything = {j["id"]: j for j in w.c.json("list", "--all")["items"]}
    for state, job in w.jobs.items():
        keys(everything[job], JOB, "item of list")
        if state != "starting":
            equal(everything[job]["state"], state, "state in the list")
    for node in w.c.json("nodes")["items"]:
        keys(node, NODE, "node")
    one = w.c.json("node", "node-0")
    keys(one, NODE, "node")
    need(w.jobs["running"] in one["jobs"], lambda: "jobs of node-0: %s" % one["jobs"])
    keys(w.c.json("why", "node-0"), WHY, "why of a node")
    top = w.c.json("top")
    keys(top, "nodes gpus jobs epoch version".split(), "cluster")
    equal(
        sorted(top["nodes"]),
        sorted("up suspect down draining drained".split()),
        "nodes of the cluster",
    )
    equal(
        (top["gpus"]["total"], top["jobs"]["completed"] >= 1), (16, True), "figures of the cluster"
    )
    for words in (
        ["list"],
        ["list", "--all"],
        ["nodes"],
        ["node", "node-0"],
        ["why", "node-0"],
        ["top"],
        ["events"],
        ["events", "node-0"],
    ):
        need(w.c.run(*words).stdout, "moectl %s prints nothing" % " ".join(words))


@suite.test
def a_name_means_the_newest_job(w):
    equal(w.c.json("status", "w-running")["id"], w.jobs["running"], "job by name")
    first, second = (w.c.submit(command_recipe("twin", ["sleep", "1000"])) for _ in range(2))
    need(first != second, "two submits gave one job")
    for words in (["status", "twin"], ["why", "twin"], ["events", "twin"]):
        need(
            second in w.c.run(*words).stdout,
            "moectl %s does not speak of the newest" % " ".join(words),
        )
    r = w.c.run("cancel", "twin", check=False)
    error_line(r, 2, "acting on one of two unfinished jobs of a name")
    need(first in r.stderr and second in r.stderr, r.stderr)
    w.c.run("cancel", second, "--now")
    w.c.wait_state(second, "cancelled")
    need(
        first in w.c.run("cancel", "twin", "--now").stdout,
        "the only unfinished one is not acted on",
    )
    w.c.wait_state(first, "cancelled")
    r = w.c.run("pause", "twin", check=False)
    need(r.returncode == 1 and second in r.stderr, "acting on finished ones: " + r.stderr)


@suite.test
def events_of_the_cluster_follow(w):
    p = w.c.popen("events", "-f", "--json")
    seen = []
    threading.Thread(
        target=lambda: [seen.append(json.loads(x)) for x in p.stdout], daemon=True
    ).start()
    job = w.c.submit(command_recipe("seen", ["true"]))
    wait_until(
        lambda: any(e["type"] == "job.completed" and e["job"] == job for e in seen),
        30,
        "job.completed in the stream",
    )
    p.send_signal(signal.SIGINT)
    p.wait(PATIENCE * 10)
    for e in seen:
        keys(e, EVENT, "event of the stream")
    equal([e["seq"] for e in seen], sorted({e["seq"] for e in seen}), "sequence numbers")
    need(
        [e["type"] for e in seen if e["job"] == job][:2] == ["job.submitted", "job.started"],
        lambda: "events of the job: %s" % [e["type"] for e in seen if e["job"] == job],
    )
    equal(
        {e["job"] for e in w.c.json("events", job)["items"]}, {job}, "jobs in the events of one job"
    )


@suite.test
def stream_survives_a_controller_restart(w):
    p = w.c.popen("events", w.jobs["queued"], "-f", "--json")
    seen = []
    threading.Thread(
        target=lambda: [seen.append(json.loads(x)) for x in p.stdout], daemon=True
    ).start()
    wait_until(lambda: seen, 10, "the first event")
    os.kill(w.c.status()["moed"]["pid"], signal.SIGKILL)
    w.c.up()
    w.c.run("cancel", w.jobs["queued"])
    wait_until(
        lambda: any(e["type"] == "job.cancelled" for e in seen),
        30,
        "job.cancelled after the restart",
    )
    p.send_signal(signal.SIGTERM)
    p.wait(PATIENCE * 10)
    equal(p.stderr.read().count("no answer"), 1, "notices of a restart")
    numbers = [e["seq"] for e in seen]
    equal(numbers, sorted(set(numbers)), "sequence numbers over a restart")
    w.jobs["queued"] = w.c.submit(command_recipe("w-queued-2", ["true"], gpus=64))


if __name__ == "__main__":
    sys.exit(main(suite))
