#!/usr/bin/python3
"""Verbs of moectl: acting on jobs and nodes, exit statuses, error lines, offline verbs. Usage:
test_cli.py [TEST...]"""
import fcntl
import glob
import json
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cli_world import CHECKPOINT, error_line, fake, JOB, keys, main, place
from lib import (
    MOECTL,
    PATIENCE,
    ROOT,
    Cluster,
    Failed,
    Suite,
    clean_env,
    command_recipe,
    equal,
    moectl,
    need,
    wait_until,
)

suite = Suite()


# ---------------------------------------------------------------- acting


@suite.test
def watch_exit_statuses(w):
    good, bad = place("good.yaml"), place("bad.yaml")
    open(good, "w").write(fake("watch-good", "--steps", 30, "--step-ms", 10, steps=30))
    open(bad, "w").write(command_recipe("watch-bad", ["false"]))
    r = w.c.run("submit", good, "--watch")
    need("completed" in r.stdout and "iteration" in r.stdout, lambda: "watch prints %r" % r.stdout)
    equal(
        w.c.run("submit", bad, "--watch", check=False).returncode, 10, "exit status of a failed job"
    )
    docs = [
        json.loads(x)
        for x in w.c.run(
            "submit", good, "--watch", "--json", "--name", "watch-json"
        ).stdout.splitlines()
    ]
    equal(sorted(docs[0]), ["id", "name", "state"], "answer of the submit")
    equal((docs[0]["name"], docs[-1]["state"]), ("watch-json", "completed"), "documents of watch")
    keys(docs[-1], JOB, "document of watch")
    job = w.c.submit(command_recipe("watch-cancel", ["sleep", "1000"]))
    p = w.c.popen("watch", job)
    w.c.wait_state(job, "running")
    equal(
        sorted(json.loads(w.c.run("cancel", job, "--json").stdout))[:2],
        sorted(w.c.job(job))[:2],
        "answer of cancel",
    )
    equal(p.wait(PATIENCE * 30), 11, "exit status of a cancelled job")


@suite.test
def interrupted_watch_leaves_the_job(w):
    p = w.c.popen("watch", w.jobs["running"])
    wait_until(lambda: p.stdout.readline(), 10, "the first line")
    p.send_signal(signal.SIGINT)
    equal(p.wait(PATIENCE * 10), 130, "exit status")
    need("runs on" in p.stderr.read(), "it does not say that the job runs on")
    equal(w.c.job(w.jobs["running"])["state"], "running", "state afterwards")


def line_with(p, words, what):
    """Reads what a program prints until a line has the words; on_time ends it when none comes."""
    seen = []
    for line in p.stdout:
        seen.append(line)
        if words in line:
            return line
    raise Failed("%s: no line with %r in %s" % (what, words, seen))


@suite.test
def watch_tells_a_changed_reason(w):
    job = w.c.submit(command_recipe("waits", ["true"], gpus=16))
    p = w.c.popen("watch", job)
    timer = threading.Timer(120, p.kill)
    timer.start()
    try:
        line_with(p, "queued  (waits for 16 GPUs, ", "the first reason")
        w.c.run("drain", "node-0", "--reason", "another fan")
        # It stays so until the node is taken back, and the job is queued all the time.
        need(
            "queued" in line_with(p, "on nodes that take work now", "the changed reason"),
            "its state",
        )
    finally:
        timer.cancel()
        w.c.run("undrain", "node-0")
        w.c.run("cancel", job)
        p.kill()
        p.wait(PATIENCE * 60)


@suite.test
def a_waiting_job_names_who_is_ahead(w):
    """list, status, why and REST say code and cause alike; how many GPUs are free, and whether a
    slow node counts, is of the moment of each question."""
    big, behind = [
        w.c.submit(command_recipe(name, ["true"], gpus=16)) for name in ("ahead", "behind")
    ]
    says = r"behind %s, which needs 16 GPUs, \d+ (is|are) free" % big

    def rest():
        doc = w.c.json("status", behind)
        return doc if re.fullmatch(says, doc["reason"] or "") else None

    def why():
        found = w.c.json("why", behind)["reasons"][0]
        return found if found["code"] == "behind" else None

    try:
        doc = wait_until(rest, 60, "the reason of the Job document")
        equal(
            {k: doc["waiting"][k] for k in ("code", "text", "job", "needs")},
            {"code": "behind", "text": doc["reason"], "job": big, "needs": 16},
            "waiting",
        )
        reason = wait_until(why, 60, "the reason of why")
        need(re.fullmatch(says, reason["text"]), reason)
        need("%s (ahead) is queued" % big in reason["evidence"][0], reason)
        for verb in (["list"], ["status", behind], ["why", behind]):
            wait_until(lambda: re.search(says, w.c.run(*verb).stdout), 60, " ".join(verb))
        wait_until(
            lambda: w.c.json("status", big)["waiting"]["code"] == "capacity", 60, "the job ahead"
        )
    finally:
        w.c.run("cancel", big)
        w.c.run("cancel", behind)


@suite.test
def a_run_that_never_saves_is_reported(w):
    """Every 2 iterations and none is saved: status, why and watch say so, with what is known."""
    os.makedirs(place("never"), exist_ok=True)
    job = w.c.submit(
        fake(
            "never",
            "--steps",
            1000000,
            "--step-ms",
            20,
            steps=1000000,
            checkpoint={"dir": place("never"), "every": 2},
        )
    )
    p = w.c.popen("watch", job)
    timer = threading.Timer(120, p.kill)
    timer.start()
    try:
        said = "%s  no complete checkpoint in %s since the start: " % (job, place("never"))
        need("no save was announced" in line_with(p, said, "watch"), "what is known")
        need(" save intervals of 2" in w.c.job(job)["checkpoint_late"], w.c.job(job))
        why = [r for r in w.c.json("why", job)["reasons"] if r["code"] == "checkpoint-late"]
        need(
            len(why) == 1
            and "moectl checkpoints --dir %s --engine command" % place("never")
            in why[0]["evidence"][0],
            why,
        )
        need(
            re.search(r"^saves +no complete checkpoint in ", w.c.run("status", job).stdout, re.M),
            w.c.run("status", job).stdout,
        )
    finally:
        timer.cancel()
        w.c.run("cancel", job, "--now")
        p.kill()
        p.wait(PATIENCE * 60)


@suite.test
def watch_survives_a_controller_restart(w):
    job = w.c.submit(fake("watch-on", "--steps", 200, "--step-ms", 20, steps=200))
    p = w.c.popen("watch", job)
    need(p.stdout.readline(), "watch says nothing")
    w.c.wait_iteration(job, 5)
    os.kill(w.c.status()["moed"]["pid"], signal.SIGKILL)
    wait_until(
        lambda: "no answer" in p.stderr.readline(), 20, "the message that the controller is away"
    )
    w.c.up()
    equal(p.wait(PATIENCE * 60), 0, "exit status of watch")
    equal(w.c.job(job)["attempt"], 1, "attempt")


@suite.test
def forbidden_verbs(w):
    for verb, state in (
        ("pause", "completed"),
        ("resume", "running"),
        ("cancel", "completed"),
        ("cancel", "failed"),
        ("restart", "cancelled"),
        ("pause", "queued"),
        ("resume", "completed"),
    ):
        if verb == "pause" and state == "queued":
            continue
        r = w.c.run(verb, w.jobs[state], check=False)
        error_line(r, 1, "%s of a %s job" % (verb, state))
        equal(w.c.job(w.jobs[state])["state"], state, "state after a refused %s" % verb)
        doc = json.loads(w.c.run(verb, w.jobs[state], "--json", check=False).stdout)
        equal(doc["status"], 409, "status of the problem")


@suite.test
def pause_resume_restart(w):
    job = w.c.submit(
        fake(
            "prr",
            "--steps",
            100000,
            "--step-ms",
            10,
            "--save-every",
            10,
            steps=100000,
            checkpoint={"dir": place("prr-ckpt"), "every": 10},
        )
    )
    wait_until(lambda: w.c.job(job)["checkpoint"], 30, "a checkpoint that the controller knows")
    out = w.c.run("pause", job).stdout
    need("`moectl resume` continues from the newest checkpoint\n" in out, out)
    w.c.wait_state(job, "paused")
    w.c.run("resume", job)
    doc = w.c.wait_state(job, "running")
    need(doc["resume"] >= 10 and doc["restarts"] == 0, lambda: "after resume: %s" % doc)
    w.c.wait_iteration(job, doc["resume"] + 5)
    w.c.run("restart", job, "--from", 10)
    wait_until(
        lambda: w.c.job(job)["attempt"] == 3 and w.c.job(job)["state"] == "running",
        30,
        "third attempt",
    )
    doc = w.c.job(job)
    equal((doc["resume"], doc["restarts"]), (10, 0), "resume and restarts after restart --from 10")
    w.c.run("cancel", job, "--now")
    w.c.wait_state(job, "cancelled")


@suite.test
def a_pause_without_a_checkpoint_says_so(w):
    job = w.c.submit(fake("pnc", "--steps", 100000, "--step-ms", 10, steps=100000))
    w.c.wait_iteration(job, 12)
    out = w.c.run("pause", job).stdout
    need(
        re.search(
            r"no checkpoint of it is known: .*`moectl resume` begins at 0 \(\d+ iterations are "
            r"lost\)\n",
            out,
        ),
        out,
    )
    w.c.wait_state(job, "paused")
    came = w.c.job(job)
    equal(came["resumes_at"], 0, came)
    need(
        re.search(
            r"^resume +begins at iteration 0: no checkpoint of it is known; it had come to %s\n"
            % came["iteration"],
            w.c.run("status", job).stdout,
            re.M,
        ),
        w.c.run("status", job).stdout,
    )
    w.c.run("cancel", job)


@suite.test
def drain_undrain_fence(w):
    error_line(w.c.run("drain", "node-1", check=False), 2, "drain without a reason")
    doc = json.loads(w.c.run("drain", "node-1", "--reason", "new fan", "--json").stdout)
    equal((doc["name"], doc["reason"]), ("node-1", "new fan"), "answer of drain")
    wait_until(
        lambda: w.c.json("node", "node-1")["state"] in ("drained", "draining"), 10, "drained node"
    )
    need("new fan" in w.c.run("nodes").stdout, "nodes does not show the reason")
    w.c.run("undrain", "node-1")
    wait_until(lambda: w.c.json("node", "node-1")["state"] == "up", 10, "node up again")
    error_line(w.c.run("fence", "node-1", check=False), 2, "fence without --confirmed")
    error_line(
        w.c.run("fence", "node-9", "--confirmed", check=False), 5, "fence of an unknown node"
    )


@suite.test
def labels(w):
    """Jobs are found by them, whatever their state, and shown with them."""
    of = {"vision": {"team": "vision", "study": "lr-3"}, "text": {"team": "text"}}
    recipe = os.path.join(w.c.dir, "labelled.yaml")
    ids = {}
    for name, wanted in of.items():
        with open(recipe, "w") as f:
            f.write(command_recipe(name, ["/bin/true"], labels=wanted))
        ids[name] = w.c.json("submit", recipe)["id"]
    found = lambda text: [j["id"] for j in w.c.json("list", "--all", "--label", text)["items"]]
    equal(found("team"), [ids["vision"], ids["text"]], "of any value")
    equal(found("team=vision"), [ids["vision"]], "of one value")
    equal(found("study=lr-3,team=vision"), [ids["vision"]], "of both")
    equal(found("study,team=text"), [], "one is lacking")
    shown = w.c.json("status", ids["vision"])["labels"]
    equal({p["key"]: p["value"] for p in shown}, of["vision"], "in the document")
    need(
        "labels       team=vision, study=lr-3\n" in w.c.run("status", ids["vision"]).stdout, "seen"
    )
    equal(w.c.run("list", "--label", "team=nobody").stdout, "no such jobs\n", "of nobody")
    error_line(w.c.run("list", "--label", "team=", check=False), 2, "no value")
    with open(recipe, "w") as f:
        f.write(command_recipe("bad", ["/bin/true"], labels={"team": "a, b"}))
    refused = w.c.run("submit", recipe, check=False)
    need(refused.returncode == 2 and "labels.team: expected" in refused.stderr, refused.stderr)


@suite.test
def tokens(w):
    doc = w.c.json("token", "create", "--role", "viewer", "--user", "eve", "--ttl", "1h")
    equal(
        sorted(k for k in doc if k != "created_at"),
        ["expires_at", "id", "role", "token", "user"],
        "keys of a new token",
    )
    tcp = w.c.status()["tcp_url"]
    env = clean_env(MOE_URL=tcp, MOE_TOKEN=doc["token"])
    equal(moectl("list", env=env).returncode, 0, "reading with a viewer's token")
    error_line(
        moectl("cancel", w.jobs["running"], env=env, check=False), 4, "cancel with a viewer's token"
    )
    who = "eve, role viewer, by token %s at %s\n" % (doc["id"], tcp)
    equal(moectl("token", "whoami", env=env).stdout, who, "who has a token")
    me = w.c.json("token", "whoami")
    equal((me["role"], me["token_id"], me["session"]), ("admin", None, False), "on the socket")
    need("role admin, by the UNIX socket at unix:" in w.c.run("token", "whoami").stdout, "words")
    mine = w.c.json("list", "--all", "--user", me["user"])["items"]
    equal(mine, [j for j in w.c.json("list", "--all")["items"] if j["user"] == me["user"]], "mine")
    need(len(mine) >= len(w.jobs), "jobs of %s" % me["user"])
    equal(w.c.run("list", "--user", "eve").stdout, "no such jobs\n", "jobs of nobody")
    failed = w.c.json("list", "--state", "failed", "--user", me["user"])["items"]
    equal({j["state"] for j in failed}, {"failed"}, "user and state")
    listed = [t for t in w.c.json("token", "list")["items"] if t["id"] == doc["id"]]
    equal(("token" in listed[0], listed[0]["user"]), (False, "eve"), "the token in the list")
    w.c.run("token", "revoke", doc["id"])
    error_line(moectl("list", env=env, check=False), 4, "a revoked token")
    error_line(w.c.run("token", "revoke", "t-nothing", check=False), 5, "revoking an unknown token")
    for text, env, words in (
        (
            doc["token"],
            {"MOE_TOKEN": doc["token"]},
            "the token (MOE_TOKEN) is wrong, was revoked or has expired",
        ),
        ("", {}, "none was given"),
    ):
        r = moectl("list", env=clean_env(MOE_URL=tcp, **env), check=False)
        error_line(r, 4, "credential %r" % text)
        need(words in r.stderr, r.stderr)
    for name, text in (("token-bad", "moe_wrong"), ("token-empty", "")):
        open(place(name), "w").write(text)
        os.chmod(place(name), 0o600)
    r = moectl("list", "--token-file", place("token-bad"), env=clean_env(MOE_URL=tcp), check=False)
    need(r.returncode == 4 and "(--token-file %s)" % place("token-bad") in r.stderr, r.stderr)
    error_line(
        moectl(
            "list", env=clean_env(MOE_URL=tcp, MOE_TOKEN_FILE=place("token-empty")), check=False
        ),
        2,
        "an empty token file",
    )
    r = moectl("list", env=clean_env(MOE_URL=tcp.replace("http:", "https:")), check=False)
    error_line(r, 3, "https to a port without it")
    need("does not speak TLS" in r.stderr, r.stderr)
    path = place("token")
    w.c.run("token", "create", "--role", "operator", "--out", path)
    equal(
        moectl(
            "drain", "node-1", "--reason", "x", env=clean_env(MOE_URL=tcp, MOE_TOKEN_FILE=path)
        ).returncode,
        0,
        "drain with an operator's token from a file",
    )
    w.c.run("undrain", "node-1")


# ---------------------------------------------------------------- errors


@suite.test
def not_found(w):
    for words in (
        ["status", "j-999999"],
        ["watch", "j-999999"],
        ["logs", "j-999999"],
        ["events", "j-999999"],
        ["metrics", "j-999999"],
        ["ranks", "j-999999"],
        ["checkpoints", "j-999999"],
        ["report", "j-999999"],
        ["cancel", "j-999999"],
        ["pause", "j-999999"],
        ["resume", "j-999999"],
        ["restart", "j-999999"],
        ["why", "j-999999"],
        ["why", "nobody"],
        ["explain", "env", "j-999999"],
        ["explain", "bind", "j-999999"],
        ["status", "no-such-name"],
        ["node", "nobody"],
        ["drain", "nobody", "--reason", "x"],
        ["undrain", "nobody"],
        ["logs", w.jobs["running"], "--attempt", "99"],
        ["logs", w.jobs["running"], "--rank", "99"],
    ):
        error_line(w.c.run(*words, check=False), 5, "moectl " + " ".join(words))
    for words, near in (
        (["status", "w-runing"], "w-running"),
        (["logs", "w-runnign"], "w-running"),
        (["cancel", "w-queud"], "w-queued"),
        (["node", "nod-0"], "node-0"),
        (["undrain", "node-00"], "node-0"),
        (["why", "nodd-1"], "node-1"),
        (["why", "w-runing"], "w-running"),
        (["events", "nod-1"], "node-1"),
        (["explain", "config", "w-runing"], "w-running"),
    ):
        r = w.c.run(*words, check=False)
        error_line(r, 5, "moectl " + " ".join(words))
        need("did you mean %s?" % near in r.stderr, r.stderr)
    need(
        "did you mean" not in w.c.run("status", "no-such-name", check=False).stderr,
        "a near miss for a name that is nowhere near",
    )


@suite.test
def usage_errors(w):
    for words in (
        [],
        ["statsu", "j-1"],
        ["status"],
        ["status", "j-1", "j-2"],
        ["status", "--jsno", "j-1"],
        ["metrics", "j-1", "--since", "x"],
        ["submit"],
        ["submit", "a", "--priority", "101"],
        ["submit", "a", "--set", "x"],
        ["drain", "n", "--reason", "x", "--when", "never"],
        ["explain", "me", "j-1"],
        ["explain", "env"],
        ["explain", "event", "job.exploded"],
        ["explain", "event", "job.failed", "--rank", "1"],
        ["explain", "event", "--key", "x"],
        ["token"],
        ["token", "create"],
        ["token", "steal"],
        ["classify"],
        ["classify", "--exit", "signal:99"],
        ["checkpoints"],
        ["checkpoints", "--dir", "/"],
        ["checkpoints", "j-1", "--dir", "/"],
        ["checkpoints", "--dir", "/", "--engine", "torch", "--verify", "hard"],
        ["local"],
        ["local", "up", "--nodes", "x"],
        ["plan"],
        ["validate"],
        ["metrics", "j-1", "--csv", "--json"],
        ["logs", "j-1", "-n"],
        ["help", "statsu"],
        ["--url"],
        ["--url", "unix:/x"],
        ["--rank", "1", "list"],
        ["--token-file=/x", "--jsno", "list"],
    ):
        r = w.c.run(*words, check=False)
        equal(r.returncode, 2, "exit status of moectl %s (%s)" % (" ".join(words), r.stderr[:200]))
        if words and words != ["--url", "unix:/x"]:
            error_line(r, 2, "moectl " + " ".join(words))
        equal(r.stdout, "", "stdout of a usage error")
    need("did you mean status" in w.c.run("statsu", check=False).stderr, "no near miss for a verb")
    need(
        "did you mean" not in w.c.run("bogus", check=False).stderr,
        "a near miss for a word that is nowhere near",
    )
    error_line(w.c.run("token", "create", "--role", "amdin", check=False), 2, "a role that is none")
    for words, near in (
        (["local", "stauts"], "status"),
        (["list", "--state", "runing"], "running"),
        (["explain", "conifg", "j-1"], "config"),
        (["token", "craete"], "create"),
    ):
        need(
            "did you mean %s?" % near in w.c.run(*words, check=False).stderr,
            "no near miss for the second word of " + " ".join(words),
        )
    need(
        "did you mean --json" in w.c.run("status", "--jsno", "j-1", check=False).stderr,
        "no near miss for an option",
    )
    for words, status, said in (
        (["plan"], 2, "RECIPE is missing; `moectl help plan` shows"),
        (["fence"], 2, "NODE is missing; usage: moectl fence NODE"),
        (["local"], 2, "it needs one of up, down, status;"),
        (["explain", "config"], 2, "RECIPE or JOB is missing"),
        (["explain", "j-1"], 2, "j-1 is none of env, bind, config, event"),
        (["--hlep"], 2, "did you mean --help?"),
        (["--url", "http://127.0.0.1:1", "list"], 3, "correct the address: it is from --url"),
    ):
        r = w.c.run(*words, check=False)
        error_line(r, status, "moectl " + " ".join(words))
        need(said in r.stderr and len(r.stderr) < 200, "%s: %s" % (words, r.stderr))


@suite.test
def global_options_before_the_verb(w):
    env = clean_env(MOE_URL="unix:" + place("no.sock"))
    for words in (
        ["--url", w.c.env["MOE_URL"], "--json", "list"],
        ["--json", "--url=" + w.c.env["MOE_URL"], "list"],
        ["--url", "unix:/nowhere", "list", "--json", "--url", w.c.env["MOE_URL"]],
    ):
        need(json.loads(moectl(*words, env=env).stdout)["items"], " ".join(words))
    need(
        "unix:/nowhere"
        in moectl("--url", "unix:/nowhere", "list", env=w.c.env, check=False).stderr,
        "--url before the verb counts more than the environment",
    )


@suite.test
def explain_bind_of_a_rank(w):
    need(
        w.c.run("explain", "env", w.jobs["running"], "--rank", 1).stdout.startswith(
            "rank 1 of %s, as its node started it:\n" % w.jobs["running"]
        ),
        "which rank it is",
    )
    for what in ("env", "bind"):
        need(
            w.c.run("explain", what, w.jobs["queued"]).stdout.startswith(
                "on an EXAMPLE, not on your machines:\n"
            ),
            "an invented machine",
        )
    need(
        w.c.run("explain", "bind", w.jobs["running"], "--rank", 0).stdout.splitlines()[1].split()[0]
        == "0",
        "rank 0",
    )
    for more in ([], ["--json"]):
        error_line(
            w.c.run("explain", "bind", w.jobs["running"], "--rank", 99, *more, check=False),
            5,
            "a rank that is not there",
        )


@suite.test
def where_no_local_cluster_is(_):
    """`down` has nothing to stop, `status` nothing to tell; both say where they looked."""
    env = clean_env(XDG_STATE_HOME=place("no-state"))
    for more, where in (
        ([], place("no-state/moe/local")),
        (["--dir", place("no-cluster")], place("no-cluster")),
    ):
        for verb, status in (("down", 0), ("status", 5)):
            r = moectl("local", verb, *more, env=env, check=False)
            error_line(r, status, "local " + verb)
            need("no cluster in %s" % where in r.stderr, r.stderr)


@suite.test
def explain_of_an_event(w):
    """What this moectl knows: without a controller, of every type that a controller sent."""
    env = clean_env(MOE_URL="unix:" + place("no.sock"))
    out = moectl("explain", "event", "node.down", env=env).stdout
    need(
        out.startswith("node.down  warning: A node is down\n")
        and "\nto do: " in out
        and "moectl fence NODE --confirmed" in out,
        out,
    )
    doc = json.loads(moectl("--json", "explain", "event", "job.started", env=env).stdout)
    equal(
        (doc["type"], doc["level"], doc["message_id"], doc["data"]),
        ("job.started", "info", None, "resume nodes port"),
        "its entry",
    )
    items = json.loads(moectl("--json", "explain", "event", env=env).stdout)["items"]
    known = {e["type"]: e["data"].split() for e in items}
    equal(
        moectl("explain", "event", env=env).stdout.split("\n")[:-1][-1].split()[0],
        items[-1]["type"],
        "one line for each",
    )
    told = json.loads(w.c.run("--json", "events").stdout)["items"]
    need(told, "nothing happened")
    for e in told:
        need(e["type"] in known, "%s is not in the registry" % e["type"])
        need(set(e["data"] or {}) <= set(known[e["type"]]), "data of %s" % e)
    r = moectl("explain", "event", "node.dwn", env=env, check=False)
    error_line(r, 2, "a type that is none")
    need("did you mean node.down?" in r.stderr, r.stderr)


@suite.test
def explain_of_a_recipe(w):
    """What env and bind tell is a job's; of a recipe the dry run tells it."""
    path = place("looks-like-a-job.yaml")
    with open(path, "w") as f:
        f.write(command_recipe("explained", ["true"]))
    for what in ("env", "bind"):
        r = w.c.run("explain", what, path, check=False)
        error_line(r, 2, "a recipe")
        need(
            "explain %s needs a JOB; for a recipe: moectl submit %s --dry-run" % (what, path)
            in r.stderr,
            r.stderr,
        )
    error_line(
        w.c.run("explain", "env", "nobody.yaml", check=False), 5, "a job that may have such a name"
    )
    # a job and a recipe that are there, of an engine without a configuration of its own
    for words in ([w.jobs["running"]], [path]):
        r = w.c.run("explain", "config", *words, check=False)
        error_line(r, 1, "an engine without a configuration")
        need("of engine command no configuration is read" in r.stderr, r.stderr)
    r = w.c.run("explain", "config", "nobody", check=False)
    error_line(r, 5, "neither")
    need("neither a recipe's file here nor a job" in r.stderr, r.stderr)
    error_line(
        w.c.run("explain", "config", place("nobody.yaml"), check=False),
        2,
        "a file that is not there",
    )


def on_terminal(w, columns, *words, term="dumb", until=None):
    """What moectl writes on a terminal of so many columns; until: a text after which it is
    interrupted."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    p = subprocess.Popen(
        [MOECTL, *words],
        env=dict(w.c.env, TERM=term),
        stdin=subprocess.DEVNULL,
        stdout=slave,
        stderr=subprocess.PIPE,
    )
    os.close(slave)
    text = b""
    try:
        while chunk := os.read(master, 65536):
            text += chunk
            if until and until.encode() in text:
                p.send_signal(signal.SIGINT)
                until = None
    except OSError:
        pass  # the end of a terminal
    os.close(master)
    r = p.wait(PATIENCE * 30)
    equal(r in (0, 130), True, "exit status %s: %s" % (r, p.stderr.read()))
    p.stderr.close()
    return text.decode()


@suite.test
def watch_on_a_narrow_terminal(w):
    """80 columns show how far it is, the loss, the speed and when it will be over."""
    job = w.c.submit(
        fake(
            "narrow-watch",
            "--steps",
            1000000,
            "--step-ms",
            20,
            gpus=2,
            steps=1000000,
            batch={"seq": 32, "micro": 1, "global": 2},
        )
    )
    text = on_terminal(w, 80, "watch", job, term="xterm", until="eta ")
    w.c.run("cancel", job, "--now")
    lines = [
        x
        for x in re.sub("\033\\[[0-9;]*[mK]", "", text).replace("\n", "\r").split("\r")
        if "eta " in x
    ]
    need(
        lines and all(len(x) < 80 and "/1000000" in x and "loss " in x for x in lines),
        lambda: "lines: %r" % text[-600:],
    )


@suite.test
def top_shows_what_runs_first(w):
    """However many newer jobs wait, what runs is there, and how many are not shown is said."""
    waiting = [w.c.submit(command_recipe("crowd", ["true"], gpus=64)) for _ in range(30)]
    w.c.submit(command_recipe("crowd-paused", ["true"], gpus=64))
    try:
        for text in (w.c.run("top").stdout, on_terminal(w, 80, "top", term="xterm")):
            lines = re.sub("\033\\[[0-9;]*[mHJK]", "", text).replace("\r", "").splitlines()
            jobs = [x for x in lines if re.search(r" j-\d+  ", x)]
            need(any(w.jobs["running"] + "  running" in x for x in jobs), lambda: "\n".join(lines))
            states = [re.search(r" j-\d+  (\w+)", x).group(1) for x in jobs[: len(jobs)]]
            need(
                "queued" in states and "running" not in states[states.index("queued") :],
                lambda: "order: %s" % states,
            )
            more = [x for x in lines if x.startswith("and ")][0]
            c = w.c.json("top")["jobs"]
            unfinished = sum(
                c[s] for s in ("queued", "starting", "running", "recovering", "stopping", "paused")
            )
            need(
                more.startswith("and %d more (" % (unfinished - len(jobs))) or len(lines) > 30,
                lambda: "%s of %d, %d shown" % (more, unfinished, len(jobs)),
            )
    finally:
        for job in waiting:
            w.c.run("cancel", job)


@suite.test
def a_list_counts_what_it_leaves_out(w):
    def counted():
        """Jobs of tests before this one may end meanwhile."""
        counts = w.c.json("top")["jobs"]
        n = sum(counts[s] for s in ("completed", "failed", "cancelled"))
        need(n > 1, "the world has too few finished jobs: %s" % counts)
        return "%d finished jobs are not shown" % n in w.c.run("list").stdout

    wait_until(counted, 10, "list counts the finished ones")
    for words in (["--all"], ["--state", "running"]):
        need("not shown" not in w.c.run("list", *words).stdout, "list %s counts too" % words)


@suite.test
def the_newest_events(w):
    job = w.jobs["completed"]
    every = w.c.run("events", job).stdout.splitlines()
    equal(w.c.run("events", job, "-n", 3).stdout.splitlines(), every[-3:], "the newest three")
    equal(w.c.run("events", job, "-n", 1000).stdout.splitlines(), every, "more than there are")
    follows = w.c.popen("events", job, "-n", 2, "-f")
    equal([follows.stdout.readline().rstrip("\n") for _ in "12"], every[-2:], "those first")
    follows.send_signal(signal.SIGINT)
    follows.communicate(timeout=20)
    error_line(w.c.run("events", "-n", 0, check=False), 2, "no events")


@suite.test
def list_on_a_narrow_terminal(w):
    """The reason gets the rest of the line, and goes where a few letters would be left of it;
    where columns are missing a hint says so."""
    idle = w.c.submit(command_recipe("narrow", ["true"], gpus=64))
    reason = w.c.json("status", idle)["reason"]
    for columns in (80, 100, 400):
        lines = on_terminal(w, columns, "list").replace("\r", "").splitlines()
        mine = [x for x in lines if x.startswith(idle + " ")][0]
        need(all(len(x) <= columns for x in lines), lambda: "wider than %d: %s" % (columns, lines))
        hint = any("moectl why JOB" in x for x in lines[-2:])
        need(
            reason[:20] in mine if "REASON" in lines[0] else reason[:4] not in mine and hint,
            lambda: "%d columns: %s" % (columns, lines),
        )
        equal(hint, columns < 400 and "RANKS" not in lines[0], "%d columns: hint" % columns)
    need("REASON" in lines[0] and reason in mine, lambda: "400 columns: %s" % lines)
    w.c.run("cancel", idle)


@suite.test
def output_that_cannot_be_written(w):
    for words in (
        ["help"],
        ["--version"],
        ["help", "logs"],
        ["list", "--all"],
        ["status", w.jobs["running"], "--json"],
        ["logs", w.jobs["failed"]],
        ["logs", w.jobs["failed"], "-f"],
        ["events", "-f"],
    ):
        with open("/dev/full", "w") as full:
            r = subprocess.run(
                [MOECTL] + words,
                env=w.c.env,
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                timeout=PATIENCE * 30,
            )
        r.stdout = ""
        error_line(r, 1, "moectl %s on a full disk" % " ".join(words))


@suite.test
def acting_on_a_job_without_ranks(w):
    job = w.c.submit(command_recipe("idle", ["true"], gpus=64))
    for verb, state in (
        ("pause", "paused"),
        ("resume", "queued"),
        ("restart", "queued"),
        ("cancel", "cancelled"),
    ):
        text = w.c.run(verb, job).stdout
        need(
            text.startswith("%s %s: " % (job, state))
            and "save" not in text
            and "asked to stop" not in text,
            lambda: "%s of a job without ranks: %r" % (verb, text),
        )


@suite.test
def texts_of_others_do_not_steer_the_terminal(w):
    """What a rank says goes through logs, verdicts, events and tables: its control characters are
    shown as text everywhere, as they are only with --raw."""
    evil = "\\033]0;owned\\007\\033[2J\\302\\2331A\\302\\2350;x\\302\\234\\010\\177"
    job = w.c.submit(
        command_recipe(
            "evil",
            [
                "sh",
                "-c",
                "printf 'a\\tb %s\\rc\\n'; printf 'RuntimeError: %s\\n' >&2; test $RANK = 0 && "
                "exit 1; sleep 60" % (evil, evil),
            ],
            gpus=2,
        )
    )
    w.c.wait_state(job, "failed")
    log, forged = place("evil.log"), place("evil.yaml")
    with open(log, "wb") as f:
        f.write(b"RuntimeError: \x1b[2J\x9b2J \xc2\x9b2J\n")
    with open(forged, "wb") as f:
        f.write(command_recipe("x\\u001b[2J", ["true"]).replace("\\\\", "\\").encode())

    def steers(text, allowed="\n\t"):
        return [c for c in text if c not in allowed and (ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0)]

    for words in (
        ["logs", job],
        ["logs", job, "--rank", 0],
        ["why", job],
        ["report", job],
        ["events", job],
        ["status", job],
        ["list", "--all"],
        ["why", "evil"],
        ["classify", "--log", log],
        ["validate", forged],
        ["submit", forged],
        ["--json", "submit", forged],
        ["explain", "env", job],
        ["logs", job, "--json"],
        ["events", job, "--json"],
        ["list", "--all", "--json"],
        ["why", job, "--json"],
    ):
        r = w.c.run(*words, check=False)
        bad = steers(r.stdout, "\n\t\r" if words[0] == "logs" else "\n\t") + steers(r.stderr)
        need(not bad, lambda: "%s lets through %r: %r" % (words, bad, (r.stdout + r.stderr)[:600]))
    out = w.c.run("logs", job, "--rank", 0).stdout
    need(
        "a\tb \\x1b]0;owned\\x07\\x1b[2J\\u009b1A\\u009d0;x\\u009c\\x08\\x7f\nc\n"
        in out.replace("\r", "\n"),
        repr(out),
    )
    # colours are left out of reasons, the rest is text
    need("RuntimeError: \\u009b1A" in w.c.run("why", job).stdout, "the reason is not shown")
    need(
        "\x1b[2J\x9b1A" in w.c.run("logs", job, "--rank", 0, "--raw").stdout,
        "--raw does not show it as it is",
    )
    need(
        "\x1b[2J"
        in json.loads(w.c.run("logs", job, "--rank", 0, "--json").stdout.splitlines()[0])["line"],
        "--json changes it",
    )


@suite.test
def last_lines_of_a_long_log(w):
    """As many lines as are asked for, however many bytes they are; when fewer are left, that is
    said."""
    lines, asked = 30000, 29000
    job = w.c.submit(
        command_recipe("long", ["sh", "-c", "seq -f 'line %%.0f %s' 1 %d" % ("x" * 300, lines)])
    )
    w.c.wait_state(job, "completed")
    out = w.c.run("logs", job, "-n", asked).stdout.splitlines()
    equal(
        (len(out), out[0].split()[-2], out[-1].split()[-2]),
        (asked, str(lines - asked + 1), str(lines)),
        "the last lines",
    )
    equal(
        len(w.c.run("logs", job, "-n", 1000000).stdout.splitlines()),
        lines,
        "more lines than there are",
    )
    equal(w.c.run("logs", job, "-n", 1).stdout.split()[-2], str(lines), "the last line")
    equal(w.c.run("logs", job, "-n", 0).stdout, "", "no line")
    equal(w.c.run("logs", job, "-n", 1000000).stderr, "", "nothing is missing")
    logs = os.path.join(w.c.dir, "state", w.c.job(job)["nodes"][0], "logs/j%s/a1" % job[2:])
    # as after a rotation of which the old file is gone
    with open(os.path.join(logs, "rank-0.log"), "r+b") as f:
        kept = f.read()[-310 * 1000 :]
        f.seek(0)
        f.write(kept)
        f.truncate()
    with open(os.path.join(logs, "rank-0.base"), "w") as f:
        f.write("9000000\n")
    r = w.c.run("logs", job, "-n", asked)
    need("only its last %d lines are kept" % len(r.stdout.splitlines()) in r.stderr, r.stderr)
    equal(w.c.run("logs", job, "-n", 10).stderr, "", "all that was asked for is there")


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def fields(data):
    """(member, value) of a message in protocol buffers."""
    at = 0

    def varint():
        nonlocal at
        value, shift = 0, 0
        while True:
            at, byte = at + 1, data[at]
            value, shift = value | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        n = {1: 8, 5: 4}.get(key & 7) or varint()
        value, at = data[at : at + n], at + n
        if key & 7 != 2:
            value = struct.unpack("<d" if n == 8 else "<f", value)[0]
        yield key >> 3, value


def tfevents(path):
    """-> version, [(time, iteration, {tag: value})] of a file for TensorBoard"""
    data, events = open(path, "rb").read(), []

    def masked(piece):
        crc = crc32c(piece)
        return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF

    while data:
        n, crc = struct.unpack("<QI", data[:12])
        event, (after,) = data[12 : 12 + n], struct.unpack("<I", data[12 + n : 16 + n])
        equal((crc, after), (masked(data[:8]), masked(event)), "checksums of a record")
        events.append(dict(fields(event)))
        data = data[16 + n :]
    samples = []
    for (_, time_s), (_, iteration), (_, summary) in (list(e.items()) for e in events[1:]):
        values = [dict(fields(v)) for _, v in fields(summary)]
        samples.append((time_s, iteration, {v[1].decode(): v[2] for v in values}))
    return events[0][3], samples


@suite.test
def metrics_for_other_programs(w):
    """CSV, lines of JSON, and files of TensorBoard say what the samples say."""
    job, out = w.jobs["recovering"], place("tensorboard")
    items = w.c.json("metrics", job)["items"]
    lines = w.c.run("metrics", job, "--format", "jsonl").stdout.splitlines()
    equal([json.loads(x) for x in lines], items, "jsonl")
    csv = w.c.run("metrics", job, "--format", "csv").stdout
    equal(csv, w.c.run("metrics", job, "--csv").stdout, "both words for CSV")
    rows = [dict(zip(csv.splitlines()[0].split(","), x.split(","))) for x in csv.splitlines()[1:]]
    equal([int(x["iteration"]) for x in rows], [x["iteration"] for x in items], "CSV")
    equal(set(items[0]) - set(rows[0]), set(), "members that CSV has not")
    r = w.c.run("metrics", job, "--format", "tensorboard", "--out", out)
    need("%d iterations of 1 attempt" % len(items) in r.stderr, r.stderr)
    equal(os.listdir(out), ["attempt-1"], "runs")
    version, samples = tfevents(os.path.join(out, "attempt-1/events.out.tfevents.1.moectl"))
    equal(version, b"brain.Event:2", "version")
    equal([s[1] for s in samples], [x["iteration"] for x in items], "iterations")
    for (_, _, tags), item in zip(samples, items):
        close = {k for k in tags if abs(tags[k] - item[k]) <= 1e-6 * abs(item[k])}
        equal(close, set(tags), "%s for %s" % (tags, item))
        need({"loss", "step_ms"} <= close, tags)
    for words, text in (
        (["--format", "xml"], "xml is none of table, csv, jsonl, tensorboard"),
        (["--format", "tensorboard"], "name their directory with --out"),
        (["--out", out], "--out is for --format tensorboard"),
        (["--csv", "--json"], "exclude each other"),
        (["--format", "jsonl", "--json"], "exclude each other"),
        (["--format", "jsonl", "--csv"], "exclude each other"),
    ):
        r = w.c.run("metrics", job, *words, check=False)
        error_line(r, 2, words)
        need(text in r.stderr, r.stderr)
    r = w.c.run("metrics", job, "--format", "tensorboard", "--out", "/proc/x", check=False)
    error_line(r, 1, "a directory that cannot be made")


@suite.test
def metrics_are_followed_to_the_end(_):
    """While it trains, over a restart of it and an end of the controller: each iteration once, as
    the run has it, for programs that read on."""
    with Cluster(nodes=1, gpus_per_node=2) as c:
        job = c.submit(
            fake(
                "followed",
                *("--steps", 300, "--step-ms", 60, "--save-every", 10),
                gpus=2,
                steps=300,
                checkpoint={"dir": place("ckpt-followed"), "every": 10},
            )
        )
        out = place("runs-followed")
        lines = c.popen("metrics", job, "-f", "--format", "jsonl")
        board = c.popen("metrics", job, "-f", "--format", "tensorboard", "--out", out)
        c.wait_iteration(job, 12)
        wait_until(lambda: os.path.exists(out + "/attempt-1"), 20, "files before the end")
        os.kill(c.status()["moed"]["pid"], signal.SIGKILL)
        time.sleep(1)
        c.up()
        c.wait_iteration(job, 22)
        c.run("restart", job)
        c.wait_state(job, "completed")
        items = c.json("metrics", job)["items"]
        told = lines.communicate(timeout=30)
        equal([json.loads(x) for x in told[0].splitlines()], items, "all, and none twice")
        equal((lines.returncode, board.wait(30)), (0, 0), "exit status")
        attempts = sorted({x["attempt"] for x in items})
        for a in attempts:
            file = "%s/attempt-%d/events.out.tfevents.1.moectl" % (out, a)
            equal(
                [x[1] for x in tfevents(file)[1]],
                [x["iteration"] for x in items if x["attempt"] == a],
                "attempt %d" % a,
            )
        need(len(attempts) > 1, attempts)
        error_line(c.run("metrics", job, "-f", check=False), 2, "a table does not grow")


@suite.test
def metrics_of_one_who_lags(_):
    """More came meanwhile than one answer holds, and the job is over: all of it, and none twice."""
    with Cluster(nodes=1, gpus_per_node=1) as c:
        job = c.submit(fake("lagging", "--steps", 3000, "--step-ms", 2, gpus=1, steps=3000))
        lines = c.popen("metrics", job, "-f", "--format", "jsonl")
        c.wait_iteration(job, 50)
        os.kill(lines.pid, signal.SIGSTOP)
        c.wait_state(job, "completed")
        os.kill(lines.pid, signal.SIGCONT)
        told = [json.loads(x)["iteration"] for x in lines.communicate(timeout=60)[0].splitlines()]
        equal(told, list(range(1, 3001)), "each once")


@suite.test
def logs_of_some_ranks(_):
    """By number, by place in the mesh, by what they wrote, who failed first; more than one request
    may ask for."""
    wrote = place("wrote")
    os.mkdir(wrote)
    script = (
        "test $RANK = 2 || echo hello of $RANK, or an ERROR; : >%s/$RANK; "
        # the others are killed with it: not before they have written
        "test $RANK != 4 || { until [ $(ls %s | wc -l) = 8 ]; do sleep 0.05; done; "
        "echo last words >&2; exit 3; }; test $RANK != 2 || exec sleep 600"
    ) % (wrote, wrote)
    with Cluster(nodes=2, gpus_per_node=150) as c:
        job = c.submit(
            command_recipe(
                "some", ["sh", "-c", script], gpus=8, parallelism={"tp": 2, "pp": 2, "ep": 2}
            )
        )
        c.wait_state(job, "failed")

        def ranks(*words):
            out = c.run("logs", job, *words)
            return sorted(set(re.findall(r"hello of (\d)", out.stdout))), out.stderr

        mesh = {
            str(r["rank"])
            for r in c.json("ranks", job)["items"]
            if (r["coords"]["pp"], r["coords"]["tp"]) == (1, 1)
        }
        only = c.json("ranks", job, "--rank", "pp=1,tp=1")["items"]
        equal({str(r["rank"]) for r in only}, mesh, "ranks by place")
        equal(ranks("--rank", "0,5-7")[0], list("0567"), "by number")
        equal(ranks("--rank", "pp=1,tp=1")[0], sorted(mesh), "by place")
        equal(ranks("--grep", "of [67],")[0], list("67"), "by what they wrote")
        out = c.run("logs", job, "--grep", "WORD|last words", "--rank", "3-4").stdout
        equal(out, "[4] last words\n", "a line that matches")
        need("rank 2: nothing was written in attempt 1" in ranks()[1], ranks()[1])
        r = c.run("logs", job, "--failed")
        equal(r.stdout, "hello of 4, or an ERROR\nlast words\n", "who failed")
        need("rank 4, which failed first in attempt 1" in r.stderr, r.stderr)
        newest = c.job(job)["attempt"]
        r = c.run("logs", job, "--failed", "--since", "2m")
        equal(r.stdout, "hello of 4, or an ERROR\nlast words\n", "its last two minutes")
        r = c.run("logs", job, "--since", "1h", "--grep", "last words")
        equal(r.stdout, "[4] last words\n", "of the last hour")
        logs = c.dir + "/state/*/logs/j%s/a%s" % (job[2:], newest)
        for a in glob.glob(logs + "/rank-*.times"):
            at, byte = struct.unpack("<qq", open(a, "rb").read(16))
            with open(a, "wb") as f:  # as if it had been an hour ago
                f.write(struct.pack("<qq", at - 3600 * 10**6, byte))
        r = c.run("logs", job, "--since", "10m", "--grep", "hello")
        equal(r.stdout, "", "of the last ten minutes")
        need(
            "ranks 0-1,3-7: nothing was written in attempt %s since 10m" % newest in r.stderr,
            r.stderr,
        )
        equal(ranks("--since", "61m", "--rank", "0,5-7")[0], list("0567"), "of an hour")
        began = c.job(job)["created_at"]
        equal(ranks("--since", began, "--rank", "3")[0], [], "a time")
        for words, status, text in (
            (["--since", "soon"], 2, "since=soon: must be how long ago, such as 10m"),
            (["--since", "2999-01-01T00:00:00Z"], 2, "is in the future"),
            (["--rank", "8"], 5, "has no rank 8: ranks are 0 to 7"),
            (["--rank", "7-8"], 5, "has no rank 8: ranks are 0 to 7"),
            (["--rank", "pp=7"], 5, "no rank is at pp=7"),
            (["--rank", "qp=7"], 2, "neither ranks, such as 0-7,12, nor a place"),
            (["--rank", ""], 2, "neither ranks, such as 0-7,12, nor a place"),
            (["--rank", "3-1"], 2, "neither ranks, such as 0-7,12, nor a place"),
            (["--grep", "("], 2, "is no regular expression"),
            (["--failed", "-f"], 2, "remove --rank"),
        ):
            r = c.run("logs", job, *words, check=False)
            error_line(r, status, words)
            need(text in r.stderr, "%s: %s" % (words, r.stderr))
        many = c.submit(command_recipe("many", ["sh", "-c", "echo $RANK"], gpus=300))
        c.wait_state(many, "completed")
        error_line(c.run("logs", many, "--failed", check=False), 5, "nobody failed")
        out = c.run("logs", many, "-n", 1).stdout.splitlines()
        equal(sorted(out), sorted("[%d] %d" % (i, i) for i in range(300)), "300 ranks")
        same = c.submit(
            command_recipe(
                "same",
                ["sh", "-c", "echo start; test $RANK != 7 || echo own; test $RANK = 9 || echo end"],
                gpus=300,
            )
        )
        c.wait_state(same, "completed")
        folded = ["[0-299] start (x 300 ranks)", "[7] own", "[0-8,10-299] end (x 299 ranks)"]
        equal(c.run("logs", same).stdout.splitlines(), folded, "equal lines of more than a request")
        equal(c.run("logs", same, "-n", 1, "--rank", 7).stdout, "end\n", "of one rank")
        equal(
            c.run("logs", same, "--grep", "own|end").stdout.splitlines(), folded[1:], "with --grep"
        )
        plain = c.run("logs", same, "--plain").stdout.splitlines()
        equal(len(plain), 600, "lines of --plain")
        equal(set(plain[:2]), {"[0] start", "[0] end"}, "a line for each")
        items = c.run("logs", same, "--json", "--rank", "0-1").stdout.splitlines()
        equal(len(items), 4, "--json folds nothing")
        followed = c.run("logs", same, "-f", "--rank", "0-1").stdout.splitlines()
        equal(sorted(followed), ["[0] end", "[0] start", "[1] end", "[1] start"], "-f neither")
        error_line(c.run("logs", many, "-f", check=False), 2, "300 ranks to follow")


@suite.test
def help_texts(_):
    overview = moectl("--help").stdout
    verbs = (
        "submit validate plan list status watch top logs events metrics ranks checkpoints report "
        "cancel pause resume restart nodes node drain undrain ack fence why explain classify "
        "token local".split()
    )
    need(len(overview.splitlines()) <= 56, "the overview is longer than 56 lines")
    for verb in verbs:
        need(re.search(r"^  %s " % verb, overview, re.M), "the overview lacks %s" % verb)
        equal(moectl("help", verb).stdout, moectl(verb, "--help").stdout, "help of %s" % verb)
        need(
            moectl("help", verb).stdout.startswith("usage: moectl %s" % verb),
            "usage line of %s" % verb,
        )
    need(re.match(r"moectl \d+\.\d+", moectl("--version").stdout), "version")


@suite.test
def unreachable(_):
    for url in ("unix:" + place("no.sock"), "http://127.0.0.1:1"):
        begin = time.monotonic()
        env = clean_env(MOE_URL=url)
        for words in (
            ["list"],
            ["status", "j-1"],
            ["top"],
            ["nodes"],
            ["cancel", "j-1"],
            ["events"],
            ["events", "-f"],
            ["logs", "j-1"],
            ["why", "x"],
            ["token", "list"],
        ):
            error_line(moectl(*words, env=env, check=False), 3, "%s at %s" % (" ".join(words), url))
        path = place("hello.yaml")
        open(path, "w").write(command_recipe("hello", ["true"]))
        error_line(moectl("submit", path, env=env, check=False), 3, "submit at " + url)
        need(time.monotonic() - begin < 60 * PATIENCE, "it took minutes to say so")
    for url in ("ftp://x", "unix:relative", "http://"):
        error_line(moectl("list", env=clean_env(MOE_URL=url), check=False), 2, "MOE_URL=" + url)
    error_line(
        moectl(
            "list",
            env=clean_env(MOE_URL="http://127.0.0.1:1", MOE_TOKEN_FILE="/nonexistent"),
            check=False,
        ),
        2,
        "a missing token file",
    )


@suite.test
def configuration_file(w):
    home = place("home")
    os.makedirs(home + "/.config/moe", exist_ok=True)
    path = home + "/.config/moe/config.yaml"
    s = w.c.status()
    open(path, "w").write("# mine\nurl: %s\ntoken_file: %s\n" % (s["tcp_url"], s["token_file"]))
    equal(moectl("list", env=clean_env(HOME=home)).returncode, 0, "list by the configuration file")
    equal(
        moectl(
            "list", "--url", "unix:" + place("no.sock"), env=clean_env(HOME=home), check=False
        ).returncode,
        3,
        "--url beats the file",
    )
    open(path, "w").write("urk: x\n")
    r = moectl("list", env=clean_env(HOME=home), check=False)
    error_line(r, 2, "an unknown key")
    need("config.yaml:1:1" in r.stderr and "url" in r.stderr, lambda: r.stderr)


@suite.test
def recipe_errors(w):
    path = place("bad-recipe.yaml")
    cases = (
        (
            "recipe: 1\nname: x\nengine: {kind: command, argv: [a]}\ncluster: {gpsu: 2}\n",
            4,
            11,
            "gpus",
        ),
        (
            "recipe: 1\nname: x\nengine: {kind: command, argv: [a]}\ncluster: {gpus: two}\n",
            4,
            17,
            None,
        ),
        (
            "recipe: 1\nname: x\nname: y\nengine: {kind: command, argv: [a]}\ncluster: {gpus: 1}\n",
            3,
            1,
            None,
        ),
        (
            "recipe: 1\nname: x\nengine: {kind: torch, entry: a.py}\ncluster: {gpus: 4}\n"
            "parallelism: {tp: 3}\n",
            5,
            19,
            None,
        ),
    )
    for text, line, column, near in cases:
        open(path, "w").write(text)
        for words in (
            ["validate", path],
            ["submit", path],
            ["submit", path, "--dry-run"],
            ["plan", path],
        ):
            r = w.c.run(*words, check=False)
            equal(r.returncode, 2, "exit status of %s" % words[0])
            need(
                "%s:%d:%d: " % (path, line, column) in r.stderr,
                lambda: "%s: %r is not at %d:%d" % (words[0], r.stderr, line, column),
            )
            need(
                all(x.startswith(path + ":") for x in r.stderr.splitlines()),
                lambda: "%s: a line without a place: %r" % (words[0], r.stderr),
            )
            need(not near or near in r.stderr, lambda: "no near miss: %r" % r.stderr)
        doc = json.loads(w.c.run("validate", path, "--json", check=False).stdout)
        equal(doc["status"], 422, "status of the document")
        need(
            (line, column) in [(e["line"], e["column"]) for e in doc["errors"]],
            lambda: "errors: %s" % doc["errors"],
        )
        keys(doc["errors"][0], ["line", "column", "message", "hint"], "an error")
    open(path, "w").write(command_recipe("ok", ["true"]))
    equal(w.c.run("validate", path, "--json").stdout, '{"valid":true}\n', "validate --json")
    r = w.c.run("validate", path, "--set", "cluster.gpsu=2", check=False)
    need(
        r.returncode == 2 and "moectl: --set cluster.gpsu=2: unknown key" in r.stderr,
        lambda: r.stderr,
    )
    for words in (["--name", "j-4"], ["--priority", "7", "--set", "cluster.gpus=x"]):
        r = w.c.run("submit", path, *words, check=False)
        error_line(r, 2, "submit " + " ".join(words))
        need(
            "moectl: %s: " % (words[0] if len(words) == 2 else "--set cluster.gpus=x") in r.stderr
            and "\n%s:" % path not in r.stderr,
            r.stderr,
        )
    # a line of the file that is wrong only by what was set, found here and found by the controller
    # alone
    with open(path, "w") as f:
        f.write(
            "recipe: 1\nname: x\nengine: {kind: torch, entry: a.py}\ncluster: {gpus: 4}\n"
            "batch: {micro: 4, global: 16}\n"
        )
    r = w.c.run("submit", path, "--set", "cluster.gpus=64", check=False)
    need(
        r.returncode == 2
        and "%s:5:27: batch.global: 16 is no multiple" % path in r.stderr
        and r.stderr.endswith(
            "note: checked with --set cluster.gpus; without that the file may be right\n"
        ),
        r.stderr,
    )
    need(
        "note: checked with"
        not in w.c.run("validate", path, "--set", "cluster.gpsu=2", check=False).stderr,
        "a note where no line of the file is named",
    )
    error_line(w.c.run("submit", place("missing.yaml"), check=False), 2, "a missing file")
    before = len(w.c.json("list", "--all")["items"])
    w.c.run("submit", path, "--set", "cluster.gpus=-1", check=False)
    equal(len(w.c.json("list", "--all")["items"]), before, "jobs after refused submits")


class Once:
    """A controller that loses the connection `losses` times after it read the request, then
    answers. Records the headers."""

    def __init__(self, losses):
        self.path, self.seen, self.losses = place("once%d.sock" % losses), [], losses
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(8)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            s, _ = self.listener.accept()
            data = b""
            while b"\r\n\r\n" not in data:
                data += s.recv(65536)
            head = data.split(b"\r\n\r\n")[0].decode()
            self.seen.append(re.search(r"Idempotency-Key: (\S+)", head).group(1))
            if len(self.seen) > self.losses:
                body = b'{"id":"j-5","name":"x","state":"queued"}'
                s.sendall(
                    b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n"
                    b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
                )
            s.close()


@suite.test
def lost_answer_is_asked_for_again_with_the_same_key(_):
    once, path = Once(2), place("key.yaml")
    open(path, "w").write(command_recipe("x", ["true"]))
    r = moectl("submit", path, "--json", env=clean_env(MOE_URL="unix:" + once.path))
    equal(json.loads(r.stdout)["id"], "j-5", "job")
    equal((len(once.seen), len(set(once.seen))), (3, 1), "requests and keys")
    moectl("submit", path, env=clean_env(MOE_URL="unix:" + once.path))
    equal(len(set(once.seen)), 2, "keys after a second call")


@suite.test
def why_says_each_thing_once(w):
    for state, advice in (
        ("queued", "it starts when"),
        ("failed", "as it is, it fails again"),
        ("cancelled", "submit it again"),
    ):
        doc, text = w.c.json("why", w.jobs[state]), w.c.run("why", w.jobs[state]).stdout
        said = [r["text"] for r in doc["reasons"]] + [
            e for r in doc["reasons"] for e in r["evidence"]
        ]
        need(
            text.count(doc["verdict"]) == 1 and all(text.count(s) == 1 for s in set(said)),
            "%s:\n%s" % (said, text),
        )
        need(advice in doc["next"] and advice in text, doc["next"])
    for state in w.jobs:
        text = w.c.run("why", w.jobs[state]).stdout
        need(len(text.splitlines()) <= 12, "why of a %s job:\n%s" % (state, text))
    job = w.c.submit(
        command_recipe(
            "w-oom",
            [
                "sh",
                "-c",
                "echo torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB >&2; "
                "exit 1",
            ],
        )
    )
    w.c.wait_state(job, "failed")
    need(
        w.c.json("why", job)["next"].startswith("its GPU memory did not suffice: take less of it"),
        "what to change",
    )


@suite.test
def jobs_of_one_name(w):
    """A second submit of a recipe says that the name means the new job; whoever looks by the name
    hears which one he sees, and how to name the other."""
    path = place("twins.yaml")
    with open(path, "w") as f:
        f.write(command_recipe("twins", ["true"], gpus=1000))

    def submitted():
        r = w.c.run("submit", path, "--json")
        return json.loads(r.stdout)["id"], r.stderr

    first, said = submitted()
    need("name:" not in said, said)
    second, said = submitted()
    need(
        "warning: name: %s, which is queued, is called twins too: the name now means this job, "
        "and %s is that one" % (first, first) in said,
        said,
    )
    note = (
        "moectl: %%s: note: %s is the newest job of this name; %s (queued) has it too and is "
        "named by id\n" % (second, first)
    )
    for verb in ("status", "why"):
        r = w.c.run(verb, "twins")
        need(second in r.stdout, r.stdout)
        equal(r.stderr, note % verb, verb)
        equal(w.c.run(verb, first).stderr, "", "a job by its id")
        equal(w.c.run(verb, "twins", "--json").stderr, "", "--json")
    need((note % "logs") in w.c.run("logs", "twins", check=False).stderr, "logs")
    r = w.c.run("cancel", "twins", check=False)
    need(r.returncode == 2 and first in r.stderr and second in r.stderr, r.stderr)
    w.c.run("cancel", first)
    equal(w.c.run("status", "twins").stderr, "", "the other one has ended")
    w.c.run("cancel", second)


@suite.test
def what_is_not_on_this_machine(w):
    """Only what is certain is reported: a directory that is here and lacks the file. What the nodes
    may have otherwise is a warning, a file in the place of a directory an error."""
    top = place("tree")
    os.makedirs(os.path.join(top, "job/scripts"))
    for name in ("job/train.py", "job/scripts/a.py", "job/run.sh"):
        open(os.path.join(top, name), "w").close()
    path = place("here.yaml")
    job = os.path.join(top, "job")

    def said(engine, *args, more=""):
        with open(path, "w") as f:
            f.write("recipe: 1\nname: here\nengine: %s\ncluster: {gpus: 8}\n%s" % (engine, more))
        r = w.c.run("validate", path, *args, check=False)
        lines = [
            line.replace(path, "R").replace(top, "T")
            for line in r.stderr.split("\n")
            if re.search("no such (file|directory) here|no tree for", line)
        ]
        need(len(lines) < 2, r.stderr)
        return r.returncode, lines[0] if lines else ""

    torch = "{kind: torch, workdir: %s, entry: %%s}" % job
    fails = "where it is not on the nodes either, the job fails at its start"
    for entry, expected in (
        ("train.py", ""),
        ("scripts/a.py", ""),
        (job + "/train.py", ""),
        ("/nowhere/at/all.py", ""),
        ("trian.py", "no such file here in T/job; %s; did you mean 'train.py'?" % fails),
        ("script/a.py", "no such file here in T/job; %s; did you mean 'scripts/a.py'?" % fails),
        (job + "/trian.py", "no such file here; %s; did you mean 'T/job/train.py'?" % fails),
        ("other.py", "no such file here in T/job; %s" % fails),
    ):
        equal(
            said(torch % entry),
            (
                0,
                expected
                and "R:3:%d: warning: engine.entry: %s: %s"
                % (32 + len(job) + 9, entry.replace(top, "T"), expected),
            ),
            entry,
        )
    equal(
        said(torch % "train.py", "--set", "engine.entry=x.py"),
        (
            0,
            "R: warning: --set engine.entry=x.py: engine.entry: x.py: no such file here in T/job; "
            "%s" % fails,
        ),
        "a value that was set",
    )
    # a directory of the nodes, and one that is mistyped
    equal(
        said("{kind: torch, workdir: /nowhere/job, entry: x.py}"),
        (0, ""),
        "a directory of the nodes",
    )
    equal(
        said("{kind: torch, workdir: %s/jbo, entry: x.py}" % top),
        (
            0,
            "R:3:32: warning: engine.workdir: T/jbo: no such directory here; did you mean 'T/job'?",
        ),
        "a mistyped directory",
    )
    # ranks do not start where moectl is called
    with open(path, "w") as f:
        f.write(
            "recipe: 1\nname: here\nengine: {kind: torch, entry: train.py}\ncluster: {gpus: 1}\n"
        )
    r = subprocess.run(
        [MOECTL, "validate", path],
        cwd=job,
        env=w.c.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    equal(
        r.stderr.replace(path, "R").replace(top, "T"),
        "R:3:30: warning: engine.entry: train.py lies here, and ranks start in the user's home: "
        "give engine.workdir: T/job\n",
        "called from there",
    )
    # programs of kind command
    for argv, expected in (
        ("[./run.sh]", ""),
        ("[python3, train.py]", ""),
        ("[bash, -c, no.py]", ""),
        ("[/usr/bin/no-such, x]", ""),
        ("[prog, no.py]", ""),
        ("[python3, 'x-{steps}.py']", ""),
        ("[python3, no.py]", "no.py"),
        ("[./no.sh]", "./no.sh"),
        ("[/bin/bash, no.sh]", "no.sh"),
    ):
        status, line = said(
            "{kind: command, workdir: %s, argv: %s}" % (job, argv), more="steps: 5\n"
        )
        need(
            status == 0
            and (
                ("engine.argv: %s: no such file here" % expected) in line if expected else not line
            ),
            "%s: %s" % (argv, line),
        )
    # trees of engines
    for kind, lacks in (
        ("primus-megatron", "primus/configs"),
        ("primus-torchtitan", "primus/configs"),
        ("megatron-lm", "pretrain_gpt.py"),
    ):
        engine = "{kind: %s, workdir: %%s%s}" % (
            kind,
            ", entry: e.yaml" if "primus" in kind else "",
        )
        status, line = said(engine % job, more="steps: 5\n")
        need(
            status == 0
            and "engine.workdir: T/job has no %s here, so it is no tree for engine %s; "
            % (lacks, kind)
            in line,
            line,
        )
        equal(said(engine % "/nowhere", more="steps: 5\n"), (0, ""), "a tree of the nodes")
    # a file where a directory must be
    for key, value, expected in (
        ("checkpoint.dir", job + "/train.py", "T/job/train.py is a file"),
        ("checkpoint.dir", "/etc/passwd/x/y", "/etc/passwd is a file"),
        ("engine.workdir", "/etc/passwd", "/etc/passwd is a file"),
    ):
        for verb in (["validate"], ["submit"], ["submit", "--dry-run"]):
            r = w.c.run(*verb, path, "--set", "%s=%s" % (key, value), check=False)
            need(
                r.returncode == 2
                and "%s: %s, and a directory is needed here" % (key, expected)
                in r.stderr.replace(top, "T"),
                "%s %s" % (verb, r.stderr),
            )
    # a submit tells it too
    with open(path, "w") as f:
        f.write("recipe: 1\nname: here\nengine: %s\ncluster: {gpus: 1000}\n" % torch % "trian.py")
    r = w.c.run("submit", path, "--json")
    need("did you mean 'train.py'?" in r.stderr, r.stderr)
    w.c.run("cancel", json.loads(r.stdout)["id"])


# ---------------------------------------------------------------- offline verbs

DRY = "rank node local_rank argv env cpus numa_node gpu nic".split()


@suite.test
def dry_run_with_and_without_a_controller(w):
    path = place("dry.yaml")
    open(path, "w").write(
        command_recipe(
            "dry",
            ["/bin/echo", "a b"],
            gpus=12,
            cluster={"gpus": 12, "gpu": "mi300x"},
            env={"MY_SECRET": "hush", "COLOUR": "blue"},
        )
    )
    before = len(w.c.json("list", "--all")["items"])
    for env, nodes in ((w.c.env, None), (clean_env(MOE_URL="unix:" + place("no.sock")), 2)):
        doc = json.loads(moectl("submit", path, "--dry-run", "--json", env=env).stdout)
        equal(
            sorted(doc), ["name", "placed_on", "plan", "ranks", "resume_args"], "keys of a dry run"
        )
        # no node here has a mi300x, so neither answer is of a machine of theirs
        equal(doc["placed_on"], "example", "what the ranks were placed on")
        equal([r["rank"] for r in doc["ranks"]], list(range(12)), "ranks")
        for r in doc["ranks"]:
            equal(sorted(r), sorted(DRY), "keys of a rank")
        need(
            nodes is None or len({r["node"] for r in doc["ranks"]}) == nodes,
            "12 GPUs of 8 per node are not on 2 nodes",
        )
        first, last = doc["ranks"][0], doc["ranks"][-1]
        equal(first["argv"][:2], ["/bin/echo", "a b"], "argv")
        equal(
            [
                first["env"][k]
                for k in ("RANK", "WORLD_SIZE", "COLOUR", "MY_SECRET", "HSA_KERNARG_POOL_SIZE")
            ],
            ["0", "12", "blue", "***", "12582912"],
            "environment of rank 0",
        )
        equal(last["env"]["RANK"], "11", "RANK of the last rank")
        head = moectl("submit", path, "--dry-run", env=env).stdout.split("\n")
        need(
            head[0].startswith("dry: 12 ranks")
            and "EXAMPLE" in head[0]
            and ("no controller was asked" if nodes else "no nodes there can") in head[1],
            head[:4],
        )
        need(
            "paths in /run/moe-agent are examples" in " ".join(head[:6]),
            "what is guessed: %s" % head[:6],
        )
    equal(len(w.c.json("list", "--all")["items"]), before, "jobs after dry runs")


PLAN = (
    "parallelism batch recompute schedule memory_gb fits bubble step_time_s tokens_per_s_per_gpu "
    "tflops_per_gpu mfu error_pct notes".split()
)


@suite.test
def plans(_):
    recipe = os.path.join(ROOT, "config/recipes/deepseek-v2-lite-mi355x.yaml")
    env = clean_env(MOE_URL="unix:" + place("no.sock"))
    doc = json.loads(moectl("plan", recipe, "--json", env=env).stdout)
    equal(
        sorted(doc),
        ["hardware", "model", "plans", "reliability", "scaling"],
        "keys of a plan document",
    )
    equal(len(doc["plans"]), 1, "plans of an explicit recipe")
    keys(doc["plans"][0], PLAN, "plan")
    equal((doc["hardware"]["gpu"], doc["hardware"]["gpus"]), ("mi355x", 8), "hardware")
    other = json.loads(
        moectl("plan", recipe, "--json", "--gpu", "mi300x", "--scale", "8,16", env=env).stdout
    )
    equal(
        (other["hardware"]["gpu"], [s["gpus"] for s in other["scaling"]]),
        ("mi300x", [8, 16]),
        "--gpu and --scale",
    )
    best = json.loads(
        moectl(
            "plan",
            "-",
            "--json",
            "--top",
            "3",
            "--set",
            "parallelism=auto",
            env=env,
            stdin=open(recipe).read(),
        ).stdout
    )
    need(
        1 <= len(best["plans"]) <= 3 and best["plans"][0]["fits"],
        lambda: "--top 3 with parallelism auto: %d plans" % len(best["plans"]),
    )
    text = (
        "".join(line for line in open(recipe) if not line.lstrip().startswith("gpu:"))
        .replace("gpu: mi355x, ", "")
        .replace(", gpu: mi355x", "")
    )
    need("mi355x" not in text.split("cluster:")[1].split("\n")[0], text)
    auto = json.loads(
        moectl(
            "plan",
            "-",
            "--json",
            "--gpu",
            "mi300x",
            "--gpus",
            "16",
            "--set",
            "parallelism=auto",
            env=env,
            stdin=text,
        ).stdout
    )
    equal(
        (auto["hardware"]["gpu"], auto["hardware"]["gpus"]),
        ("mi300x", 16),
        "--gpu and --gpus with parallelism auto",
    )
    need(
        "--gpu: cluster.gpu"
        in moectl("plan", "-", "--gpu", "mi3", env=env, stdin=text, check=False).stderr,
        "an unknown GPU is named by its option",
    )
    svg = place("plan.svg")
    need("memory" in moectl("plan", recipe, "--svg", svg, env=env).stdout, "plan prints no memory")
    text = open(svg).read()
    need(
        text.startswith("<svg") and text.rstrip().endswith("</svg>") and text.count("<rect") > 10,
        "no picture",
    )
    error_line(
        moectl("plan", recipe, "--gpu", "mi3000x", env=env, check=False), 2, "an unknown GPU"
    )
    error_line(moectl("plan", recipe, "--scale", "8,x", env=env, check=False), 2, "a bad list")


@suite.test
def the_first_recipe_can_be_planned(_):
    """It names no GPU, as it trains on CPUs: one is assumed, and that is said."""
    recipe = os.path.join(ROOT, "config/recipes/tiny-moe.yaml")
    r = moectl("plan", recipe)
    said = (
        "the recipe names no GPU: planned for mi355x; another one: cluster.gpu, --gpu, over REST "
        "?gpu="
    )
    need(
        "fits      yes" in r.stdout and " ".join(r.stdout.split()).count(said) == 1,
        r.stdout + r.stderr,
    )
    need("model     42.0k parameters, 23.5k active" in r.stdout, r.stdout)
    need(not re.search(r"^memory .*e-", r.stdout, re.M), "memory: " + r.stdout)
    doc = json.loads(moectl("plan", recipe, "--json").stdout)
    equal((doc["hardware"]["gpu"], doc["plans"][0]["notes"][-1]), ("mi355x", said), "assumed GPU")
    r = moectl("plan", recipe, "--gpu", "mi300x", "--set", "parallelism=auto")
    equal(("4 x mi300x" in r.stdout, r.stderr), (True, ""), "a named one")
    r = moectl("plan", os.path.join(ROOT, "config/recipes/command-hello.yaml"), check=False)
    error_line(r, 2, "a recipe without a model")
    need("no model" in r.stderr, r.stderr)


@suite.test
def anchors_calibrate(_):
    recipe = os.path.join(ROOT, "config/recipes/deepseek-v2-lite-mi355x.yaml")
    plan = json.loads(moectl("plan", recipe, "--json").stdout)["plans"][0]
    anchor = place("anchor.json")
    import yaml

    run = {
        "recipe": yaml.safe_load(open(recipe)),
        "measured": {
            "step_time_s": plan["step_time_s"]["total"] * 1.25,
            "memory_gb": plan["memory_gb"]["total"],
        },
    }
    json.dump({"anchor": 1, "runs": [run]}, open(anchor, "w"))
    doc = json.loads(moectl("plan", recipe, "--anchor", anchor, "--json").stdout)["plans"][0]
    # one run moves the plan most of the way: runs of a stack scatter too
    ratio = doc["step_time_s"]["total"] / plan["step_time_s"]["total"]
    need(
        1.15 < ratio < 1.25,
        lambda: "step %s, uncalibrated %s" % (doc["step_time_s"], plan["step_time_s"]),
    )
    need(
        doc["error_pct"] < plan["error_pct"],
        lambda: "error %s %%, uncalibrated %s %%" % (doc["error_pct"], plan["error_pct"]),
    )
    need(any("calibrated" in n for n in doc["notes"]), "no note")
    json.dump({"runs": []}, open(anchor, "w"))
    error_line(
        moectl("plan", recipe, "--anchor", anchor, check=False), 2, "a file that is no anchor"
    )


@suite.test
def measured_bandwidth_replaces_the_catalogue(_):
    recipe, curve = os.path.join(ROOT, "config/recipes/deepseek-v2-lite-mi355x.yaml"), place(
        "alltoall.txt"
    )
    wide = (
        "plan",
        recipe,
        "--json",
        "--gpus",
        "16",
        "--set",
        "parallelism.ep=16",
        "--set",
        "features.a2a=alltoall",
    )
    with open(curve, "w") as f:
        f.write(
            "#       size         count      type   redop    root     time   algbw   busbw #wrong "
            "    time   algbw   busbw #wrong\n"
            "     1048576        262144     float    none      -1  10000.0    0.10    0.10      0 "
            " 10000.0    0.10    0.10      0\n"
            "   268435456      67108864     float    none      -1 250000.0    1.07    1.00      0 "
            "250000.0    1.07    1.00      0\n"
        )
    before, after = (
        json.loads(moectl(*wide, *more).stdout)["plans"][0]["step_time_s"]["a2a"]
        for more in ((), ("--alltoall", curve))
    )
    need(
        after > 5 * before > 0,
        lambda: "all-to-all %s s, with 1 GB/s between nodes %s s" % (before, after),
    )
    error_line(
        moectl("plan", recipe, "--reduce", recipe, check=False),
        2,
        "a file without rows of rccl-tests",
    )


@suite.test
def report_writes_anchors(w):
    doc = json.loads(w.c.run("report", w.jobs["completed"], "--anchor").stdout)
    equal(
        (doc["anchor"], len(doc["runs"]), doc["runs"][0]["recipe"]["name"]),
        (1, 1, "w-completed"),
        "anchor file",
    )
    need(
        doc["runs"][0]["measured"]["step_time_s"] > 0 and "memory_gb" in doc["runs"][0]["measured"],
        lambda: "measured: %s" % doc["runs"][0]["measured"],
    )
    need("hush-hush" not in json.dumps(doc), "the anchor file tells a secret of the recipe")
    error_line(
        w.c.run("report", w.jobs["queued"], "--anchor", check=False),
        1,
        "an anchor of a job without iterations",
    )


@suite.test
def checkpoints_of_a_directory(w):
    doc = json.loads(
        moectl("checkpoints", "--dir", place("ckpt"), "--engine", "command", "--json").stdout
    )
    equal(sorted(doc), ["items", "resume"], "keys of checkpoints --dir")
    equal(doc["resume"], {"iteration": 6}, "resume")
    for item in doc["items"]:
        keys(item, CHECKPOINT, "checkpoint")
    os.makedirs(place("empty"), exist_ok=True)
    equal(
        json.loads(
            moectl("checkpoints", "--dir", place("empty"), "--engine", "command", "--json").stdout
        ),
        {"resume": None, "items": []},
        "an empty directory",
    )
    for where in (place("not-there"), place("evil.log/x")):
        error_line(
            moectl("checkpoints", "--dir", where, "--engine", "command", check=False),
            5,
            "a directory that is not there",
        )
    newest = place("ckpt/%s" % sorted(os.listdir(place("ckpt")))[-1])
    for name in os.listdir(newest):
        os.truncate(os.path.join(newest, name), 0)
    doc = json.loads(
        moectl("checkpoints", "--dir", place("ckpt"), "--engine", "command", "--json").stdout
    )
    equal(doc["resume"], {"iteration": 4}, "resume with an emptied newest checkpoint")
    equal(
        [i["state"] for i in doc["items"] if i["iteration"] == 6],
        ["torn"],
        "state of the emptied one",
    )
    need(
        "4" in moectl("checkpoints", "--dir", place("ckpt"), "--engine", "command").stdout,
        "human output",
    )
    error_line(
        moectl("checkpoints", "--dir", place("ckpt"), "--engine", "torhc", check=False),
        2,
        "an unknown engine",
    )


@suite.test
def classification(_):
    log, kernel = place("rank.log"), place("dmesg")
    cases = (
        ("step: 1 loss: 2.0\nstep: 2 loss: 1.9\n", None, None, "ok", None),
        (
            "[rank3]: Traceback (most recent call last):\n[rank3]: ValueError: bad flavour\n"
            "[rank0]: RuntimeError: Connection closed by peer\n",
            None,
            "1",
            "user_error",
            3,
        ),
        (
            "HW Exception by GPU node-9 (Agent handle: 0x6) reason :GPU Hang\nAborted\n",
            None,
            "signal:6",
            "node_fault",
            None,
        ),
        (
            "RuntimeError: [../gloo/transport/tcp/pair.cc:598] Connection closed by peer "
            "[127.0.0.1]:40328\n",
            None,
            "1",
            "collateral",
            None,
        ),
        ("OSError: [Errno 28] No space left on device\n", None, "1", "storage", None),
        ("", None, "signal:9", "transient", None),
        ("", None, "signal:11", "suspect", None),
        ("", None, "0", "ok", None),
        ("", None, "137", "transient", None),
        (
            "step: 1 loss: 2.0\n",
            "[1.0] amdgpu 0000:c1:00.0: amdgpu: GPU reset begin!\n",
            None,
            "node_fault",
            None,
        ),
    )
    for text, dmesg, status, wanted, rank in cases:
        open(log, "w").write(text)
        words = ["classify", "--log", log, "--json"]
        if dmesg:
            open(kernel, "w").write(dmesg)
            words += ["--kernel", kernel]
        if status:
            words += ["--exit", status]
        doc = json.loads(moectl(*words).stdout)
        keys = ["class", "evidence", "first_rank"] + ["rule"] * (wanted != "ok") + ["why"]
        equal(sorted(doc), keys, "keys of classify")
        equal((doc["class"], doc["first_rank"]), (wanted, rank), "class of %r" % (text or status))
        for e in doc["evidence"]:
            equal(sorted(e), ["line", "source", "text"], "keys of evidence")
        need(wanted == "ok" or (doc["evidence"] and doc["why"]), "no evidence")
    equal(
        json.loads(moectl("classify", "--kernel", kernel, "--json").stdout)["class"],
        "node_fault",
        "class by the kernel's log alone",
    )
    need(moectl("classify", "--log", log).stdout.startswith("ok"), "human output")
    open(log, "w").write(
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total "
        "capacity of 191.98 GiB of which 1.20 GiB is free.\n"
    )
    r = moectl("classify", "--log", log, "--exit", "1")
    need(
        r.stdout.startswith(
            "user_error  the model does not fit the GPU's memory: take a smaller batch.micro"
        ),
        "what to change: " + r.stdout,
    )
    error_line(moectl("classify", "--log", "/nonexistent", check=False), 2, "a missing log")


@suite.test
def classification_of_known_logs(_):
    logs = os.path.join(ROOT, "..", "shared/data/engines/logs")
    if not os.path.isdir(logs):
        return
    wrong = []
    for case in json.load(open(os.path.join(logs, "manifest.json"))):
        option = "--kernel" if case["file"].startswith("kernel") else "--log"
        doc = json.loads(
            moectl("classify", option, os.path.join(logs, case["file"]), "--json").stdout
        )
        if doc["class"] != case["expected_class"] and doc["class"] not in case[
            "expected_class"
        ].split("_or_"):
            wrong.append((case["file"], case["expected_class"], doc["class"]))
    need(not wrong, lambda: "wrong classes: %s" % wrong)


@suite.test
def fabric_reads_what_plans_take(_):
    row = "  %d  32768  float  sum  -1  80.1  13.09  %.2f  %d\n"
    path = place("reduce.txt")
    with open(path, "w") as f:
        f.write("# size count\n" + row % (1048576, 11.25, 0) + row % (2097152, 21.5, 0))
    r = moectl("fabric", "read", "--json", path)
    points = [{"bytes": 1048576, "gbs": 11.25}, {"bytes": 2097152, "gbs": 21.5}]
    equal(json.loads(r.stdout), {"curve": points, "wrong": 0}, "curve")
    with open(path, "a") as f:
        f.write(row % (4194304, 30, 7))
    r = moectl("fabric", "read", path, check=False)
    equal(r.returncode, 1, "exit status with wrong values")
    need("7 values were wrong at 4194304 bytes" in r.stderr, r.stderr)


if __name__ == "__main__":
    sys.exit(main(suite))
