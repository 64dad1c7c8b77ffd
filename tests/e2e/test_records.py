#!/usr/bin/python3
"""Whatever an agent says, the controller starts again with what it stored of it."""
import json
import os
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from controller import MOED, FakeAgent, Moed, checksum, each_with_a_controller
from lib import PATIENCE, Skipped, Suite, clean_env, equal, need, wait_until

FAR = "9999-12-31T23:59:59.999Z"
suite = Suite()
test = each_with_a_controller(suite)


def restart(m, how=signal.SIGKILL):
    m.stop(how)
    m.start()  # fails with the log when it does not start


def info(*gpus):
    numa = [
        {
            "id": 0,
            "cpus": "0-1",
            "cores": "0;1",
            "l3": "0-1",
            "mem_bytes": 1 << 30,
            "distances": "10",
        }
    ]
    return {"hostname": "n1", "gpus": list(gpus), "numa": numa, "cpus": 2, "mem_bytes": 1 << 30}


def slot(**what):
    return dict({"vendor": "fake", "model": "fake", "numa_node": 0}, **what)


def launched(m):
    """An agent to which a job was given: it, and what it was sent to launch."""
    a = FakeAgent(m)
    equal(a.hello().status, 200, "hello")
    equal(m.submit().status, 201, "submit")
    wait_until(
        lambda: a.sync().status == 200 and [c for c in a.commands if c["kind"] == "launch"],
        20,
        "a launch",
    )
    return a, a.commands[-1]["launch"]


def tell(a, k, notes):
    doc = {
        "job": k["job"],
        "attempt": k["attempt"],
        "state": "running",
        "written": notes[-1]["n"],
        "notes": notes,
        "progress": [],
    }
    equal(a.sync("news", steps=[doc]).status, 200, "news")


def snapshots(m):
    return [f for f in os.listdir(m.state) if f.startswith("snapshot-") and not f.endswith(".new")]


def fill_until_snapshot(a, k, n):
    """A record for each time that a message names the step."""
    while not snapshots(a.moed):
        notes = [
            {
                "job": k["job"],
                "attempt": k["attempt"],
                "state": "running",
                "written": n + i,
                "notes": [{"n": n + i, "kind": "phase", "phase": "train"}],
            }
            for i in range(2000)
        ]
        equal(a.sync("news", steps=notes).status, 200, "news")
        n += 2000
        need(n < 100000, "no snapshot after %d notes" % n)
        if n > 10000:
            wait_until(lambda: snapshots(a.moed), 30, "a snapshot")


@test
def test_slots_without_a_number_of_their_own_are_refused(m):
    a = FakeAgent(m)
    for gpus, words in (
        ([slot(index=0), slot()], "info.gpus[1].index: is missing"),
        ([slot(index=-1)], "info.gpus[0].index: is out of range"),
        ([slot(index=3), slot(index=3)], "info.gpus[1].index: 3, as info.gpus[0] has it"),
    ):
        refused = a.hello(info=info(*gpus))
        equal(refused.status, 422, "hello with %s: %s" % (gpus, refused.body))
        need(words in refused.json["detail"], refused.json["detail"])
    equal(m.get("/v1/nodes")["items"], [], "nodes")
    equal(m.submit().status, 201, "submit")
    equal(a.hello().status, 200, "a good hello")
    wait_until(
        lambda: a.sync().status == 200 and [c for c in a.commands if c["kind"] == "launch"],
        20,
        "a launch",
    )
    equal(a.commands[-1]["launch"]["gpus"], [0, 1], "slots")
    restart(m)


@test
def test_a_process_without_a_number_that_cannot_be_killed(m):
    a, k = launched(m)
    tell(
        a,
        k,
        [
            {"n": 1, "kind": "started", "rank": 0},
            {"n": 2, "kind": "started", "rank": 1},
            {"n": 3, "kind": "running"},
            {"n": 4, "kind": "unkillable"},
            {"n": 5, "kind": "unkillable", "pid": -7},
        ],
    )
    equal(m.get("/v1/jobs/j-1")["state"], "running", "a job of which nothing is proved dead")
    fill_until_snapshot(a, k, 6)
    restart(m)
    equal(m.get("/v1/jobs/j-1")["state"], "running", "the job after the start")
    restart(m, signal.SIGTERM)


@test
def test_numbers_and_times_at_every_end(m):
    """What cannot be kept is unknown, the rest of the message counts, and the same is there after a
    start."""
    a, k = launched(m)
    most, least = 9223372036854775807, -9223372036854775807
    tell(
        a,
        k,
        [
            {
                "n": 1,
                "kind": "started",
                "rank": 0,
                "pid": most,
                "start_time": least,
                "numa_node": least,
                "cpus": "0",
                "time": "0001-01-01T00:00:00Z",
            },
            {"n": 2, "kind": "started", "rank": 1, "pid": 7, "bind_verified": True, "time": FAR},
            {"n": 3, "kind": "running", "time": "0001-01-01T00:00:00.000001Z"},
            {
                "n": 4,
                "kind": "sample",
                "rank": 0,
                "time": "0001-01-01T00:00:00Z",
                "sample": {
                    "iteration": most,
                    "time": FAR,
                    "loss": "NaN",
                    "step_ms": 1e308,
                    "tokens": most,
                },
            },
            {
                "n": 5,
                "kind": "sample",
                "rank": 0,
                "time": FAR,
                "sample": {"iteration": 7, "loss": 2.5, "step_ms": -1e308, "tokens": least},
            },
            {"n": 6, "kind": "checkpoint", "iteration": most, "path": "/" + "p" * 9000},
            {"n": 7, "kind": "saving", "iteration": least},
            {"n": 8, "kind": "resumed", "iteration": most},
            {
                "n": 9,
                "kind": "sample",
                "sample": {"iteration": 8},
                "left_out": most,
                "time": "1969-12-31T23:59:59Z",
            },
        ],
    )

    def seen():
        job, ranks = m.get("/v1/jobs/j-1"), m.get("/v1/jobs/j-1/ranks")["items"]
        return (
            job["state"],
            job["iteration"],
            [r["pid"] for r in ranks],
            m.get("/v1/jobs/j-1/metrics"),
            m.get("/v1/jobs/j-1/checkpoints"),
        )

    before = seen()
    equal(before[:3], ("running", 8, [None, 7]), "what counts of it")
    need(all(s["time"] > "2020" for s in before[3]["items"]), "samples are of now: %s" % before[3])
    restart(m)
    equal(seen(), before, "what was kept")
    equal(a.hello().status, 200, "hello")
    tell(
        a,
        k,
        [
            {
                "n": 10,
                "kind": "exit",
                "rank": 0,
                "code": most,
                "signal": most,
                "mono_ns": least,
                "cause": "c" * 5000,
                "tail": ["t" * 100000, None],
            },
            {"n": 11, "kind": "exit", "rank": 1, "code": 0, "mono_ns": most},
            {"n": 12, "kind": "gone"},
        ],
    )
    wait_until(
        lambda: m.get("/v1/jobs/j-1")["state"] in ("failed", "recovering", "queued", "starting"),
        20,
        "a verdict",
    )
    restart(m)


@test
def test_a_node_speaks_for_itself_only(m):
    """What lies in a checkpoint.dir is the word of the node that was asked."""
    recipe = {
        "recipe": 1,
        "name": "c",
        "engine": {"kind": "command", "argv": ["/bin/true"]},
        "cluster": {"gpus": 2},
        "checkpoint": {"dir": "/ckpt/c"},
        "steps": 100,
    }
    a, other = FakeAgent(m, "n1"), FakeAgent(m, "n2")
    for agent in (a, other):
        equal(agent.hello().status, 200, "hello")
    equal(m.ask("POST", "/v1/jobs", recipe).status, 201, "submit")
    wait_until(
        lambda: a.sync().status == 200 and [c for c in a.commands if c["kind"] == "scan"],
        20,
        "an order to scan",
    )
    scan = {
        "job": 1,
        "attempt": 1,
        "writable": True,
        "items": [{"iteration": 77, "path": "/ckpt/evil/77", "complete": True, "bytes": 1}],
    }
    for _ in range(3):
        equal(other.sync("news", scans=[scan]).status, 200, "news")
    equal(m.get("/v1/jobs/j-1")["state"], "queued", "the job")
    equal(m.get("/v1/jobs/j-1/checkpoints")["items"], [], "checkpoints")
    equal(a.sync("news", scans=[dict(scan, items=[])]).status, 200, "news")
    wait_until(lambda: m.get("/v1/jobs/j-1")["state"] == "starting", 20, "the attempt")


@test
def test_a_noisy_node_leaves_room_for_others(m):
    a, k = launched(m)
    first = m.get("/v1/events?limit=1")["items"][0]
    n = 1
    for _ in range(8):
        tell(a, k, [{"n": n + i, "kind": "resumed", "iteration": i} for i in range(2000)])
        n += 2000
    equal(m.get("/v1/events?limit=1")["items"][0], first, "the oldest event")
    equal(len(m.get("/v1/events?type=node.noisy")["items"]) > 0, True, "events of type node.noisy")
    # sensors of more devices than a node can have cost nothing that stays
    for i in range(4):
        equal(
            a.sync(
                sensors=[{"slot": 256 * i + s, "temp_c": 1e308} for s in range(256)],
                nics=[{"name": "x%d" % (256 * i + s)} for s in range(256)],
            ).status,
            200,
            "sync",
        )
    # samples that come far too late move nothing
    tell(
        a,
        k,
        [
            {"n": n + i, "kind": "sample", "rank": 0, "sample": {"iteration": 5000 - i}}
            for i in range(2000)
        ],
    )
    equal(
        len(m.get("/v1/jobs/j-1/metrics?limit=1000")["items"]),
        513,
        "samples that were kept: the newest, and 512 behind it",
    )
    restart(m)


@test
def test_agents_that_begin_all_the_time(m):
    a = FakeAgent(m)
    equal(a.hello().status, 200, "hello")
    statuses = []
    for i in range(80):
        a.instance = "i-%d" % i
        statuses.append(a.hello().status)
    equal((statuses[0], statuses[-1]), (200, 429), "answers to hellos of ever other agents")
    need(written(m) < 30, "%d records of it" % written(m))
    equal(
        a.hello(info=dict(info(slot(index=0)), driver="d" * 3000000)).status, 413, "a hello of 3 MB"
    )


def written(m):
    return [
        int(line.split()[1])
        for line in m.ask("GET", "/metrics").body.decode().splitlines()
        if line.startswith("moe_store_records_total ")
    ][0]


@suite.test
def test_findings_that_nobody_waits_for_are_stored_by_their_rate():
    with Moed(beat_ms=50, suspect_ms=1500, down_ms=4000) as m:
        a, _ = launched(m)
        before = written(m)
        for i in range(60):
            result = {"check": "c%d" % i, "object": "o", "state": "warn", "action": "report"}
            health = {
                "version": i + 1,
                "ok": 1,
                "preflight_done": True,
                "results": [result],
                "checked": [{"job": 1, "attempt": 1000 + i}],
            }
            equal(a.sync(health=health).status, 200, "sync")
        need(written(m) - before < 45, "%d records of 60 findings" % (written(m) - before))


# ---- a store with a record that cannot be taken: made by hand, since no agent can make one any
# more


def records(m):
    db = sqlite3.connect(os.path.join(m.state, "moe.db"))
    folded = db.execute("select ifnull(max(seq),0) from snapshot").fetchone()[0]
    rows = [
        (seq, bytes(text))
        for seq, text in db.execute(
            "select seq, text from records where seq>? order by seq", (folded,)
        )
    ]
    db.close()
    return rows


def put_record(m, seq, text):
    db = sqlite3.connect(os.path.join(m.state, "moe.db"))
    db.execute("update records set text=?, sum=? where seq=?", (text, checksum(text), seq))
    db.commit()
    db.close()


def put_snapshot(m, change):
    """change: bytes of the snapshot's text -> bytes."""
    path = os.path.join(m.state, snapshots(m)[0])
    with open(path, "rb") as f:
        magic, seq, _, _ = struct.unpack("<8sqqq", f.read(32))
        text = change(f.read())
    with open(path, "wb") as f:
        f.write(struct.pack("<8sqqq", magic, seq, len(text), checksum(text)) + text)
    db = sqlite3.connect(os.path.join(m.state, "moe.db"))
    db.execute("update snapshot set sum=?", (checksum(text),))
    db.commit()
    db.close()


def moed(m, *args):
    options = [o for k, v in m.options.items() for o in ("--set", "%s=%s" % (k, v))]
    return subprocess.run(
        [MOED] + options + list(args),
        env=clean_env(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE * 60,
    )


def does_not_start(m, *words):
    """It ends by itself, and says all of this."""
    r = moed(m)
    need(
        r.returncode == 1 and all(w in r.stderr for w in words),
        "status %d: %s" % (r.returncode, r.stderr),
    )
    need("Sanitizer" not in r.stderr and "runtime error" not in r.stderr, r.stderr)


def aside(m):
    d = os.path.join(m.state, "quarantine")
    return (
        sorted(os.path.join(d, f) for f in os.listdir(d) if not f.endswith(".put-back"))
        if os.path.isdir(d)
        else []
    )


def quarantine(m):
    r = moed(m, "--quarantine")
    equal(r.returncode, 0, "moed --quarantine: %s" % r.stderr)
    return r.stdout


def put_back(m, path):
    r = moed(m, "--put-back", path)
    equal(r.returncode, 0, "moed --put-back: %s" % r.stderr)
    need(not os.path.exists(path) and os.path.exists(path + ".put-back"), "the file is still there")


def rewrite(path, old, new):
    with open(path) as f:
        text = f.read()
    need(old in text, "%s is not in %s: %s" % (old, path, text[:2000]))
    with open(path, "w") as f:
        f.write(text.replace(old, new))


def documents(m):
    """What people see of jobs; not what time changes by itself."""
    seen = {}
    for j in m.get("/v1/jobs")["items"]:
        job = m.get("/v1/jobs/" + j["id"])
        ranks = [
            (r["rank"], r["node"], r["gpu"], r["pid"], r["state"])
            for r in m.get("/v1/jobs/%s/ranks" % j["id"])["items"]
        ]
        seen[j["id"]] = (
            job["name"],
            job["state"],
            job["attempt"],
            job["iteration"],
            ranks,
            m.get("/v1/jobs/%s/metrics" % j["id"]),
        )
    return seen


def running(m):
    """A job that trains, one that waits for its GPUs, a token, a drain that is over, an ended
    job."""
    a, k = launched(m)
    equal(m.submit().status, 201, "another submit")
    equal(m.submit().status, 201, "a third one")
    equal(m.ask("POST", "/v1/jobs/j-3/cancel", {"now": True}).status, 200, "cancel")
    m.token("viewer", user="eve")
    equal(m.ask("POST", "/v1/nodes/n1/drain", {"reason": "test"}).status, 200, "drain")
    equal(m.ask("POST", "/v1/nodes/n1/undrain", {}).status, 200, "undrain")
    tell(
        a,
        k,
        [
            {"n": 1, "kind": "started", "rank": 0, "pid": 101},
            {"n": 2, "kind": "started", "rank": 1, "pid": 102},
            {"n": 3, "kind": "running"},
        ],
    )
    tell(a, k, [{"n": 4, "kind": "sample", "rank": 0, "sample": {"iteration": 5, "loss": 2.0}}])
    return a, k


def report(k, state="running"):
    return [
        {
            "job": k["job"],
            "attempt": k["attempt"],
            "state": state,
            "written": 4,
            "notes": [],
            "progress": [],
        }
    ]


@test
def test_a_record_that_cannot_be_taken_goes_aside_with_its_job(m):
    a, k = running(m)
    before = documents(m)
    equal(m.stop(), 0, "exit status")
    seq, text = [(s, t) for s, t in records(m) if b'"pid":101' in t][0]
    put_record(m, seq, text.replace(b'"pid":101', b'"pid":"x"'))
    does_not_start(
        m,
        "stored record %d cannot be read (type notes of j-1): notes[0].pid: expected an integer"
        % seq,
        "moed --quarantine",
        "backup",
    )
    said = quarantine(m)
    files = aside(m)
    equal(len(files), 1, "files: %s" % files)
    need(
        "stored record %d (notes of j-1): notes[0].pid: expected an integer" % seq in said
        and files[0] in said,
        said,
    )
    equal(os.stat(files[0]).st_mode & 0o777, 0o600, "mode of the file")
    need("every stored record can be read" in quarantine(m), "a second run")
    m.start()
    gone = m.ask("GET", "/v1/jobs/j-1")
    need(gone.status == 404 and "quarantine" in gone.json["detail"], gone.body)
    left = documents(m)
    equal(
        {i: left[i] for i in left}, {i: before[i] for i in before if i != "j-1"}, "the other jobs"
    )
    need(
        [
            e
            for e in m.get("/v1/events")["items"]
            if e["type"] == "store.quarantine" and e["job"] == "j-1" and files[0] in e["message"]
        ],
        "no event tells of it",
    )
    # its ranks run on: their GPUs go to nobody else, and what they left behind is kept
    equal(a.hello(steps=report(k)).status, 200, "hello")
    a.commands.clear()
    for _ in range(3):
        equal(a.sync(steps=report(k)).status, 200, "sync")
    need(
        [
            e
            for e in m.get("/v1/events")["items"]
            if e["type"] == "step.unknown" and "quarantine" in e["message"]
        ],
        "no event of its step",
    )
    equal(a.commands, [], "orders to a node that holds a step in quarantine")
    m.submit()
    equal(m.get("/v1/jobs/j-4")["state"], "queued", "a number that was not used before")
    m.stop()
    # as it is it cannot be put back, and nothing changes by the attempt
    r = moed(m, "--put-back", files[0])
    need(
        r.returncode == 1
        and "line %d: notes[0].pid: expected an integer: nothing was changed" % seq in r.stderr,
        r.stderr,
    )
    rewrite(files[0], '"pid":"x"', '"pid":101')
    put_back(m, files[0])
    m.start()
    after = documents(m)
    after.pop("j-4")
    equal(after, before, "jobs")
    equal(a.hello(steps=report(k)).status, 200, "hello")
    tell(a, k, [{"n": 5, "kind": "sample", "rank": 0, "sample": {"iteration": 6}}])
    equal(m.get("/v1/jobs/j-1")["iteration"], 6, "it goes on")


@test
def test_each_record_of_a_store(m):
    """Whichever of them cannot be taken: the start names it, goes on without it, and what is of
    people is as it was when it was put back."""
    running(m)
    before = documents(m)
    tokens = len(m.get("/v1/tokens")["items"])
    m.stop()
    saved = os.path.join(m.dir, "saved")
    shutil.copytree(m.state, saved)
    types = set()
    for seq, text in records(m):
        shutil.rmtree(m.state)
        shutil.copytree(saved, m.state)
        head, _, last = text.rpartition(b"\n")
        doc = json.loads(last)
        types.add(doc["type"])
        put_record(
            m, seq, (head + b"\n" if head else b"") + last.replace(b'"t":', b'"t":[],"was":', 1)
        )
        whose = " of j-%d" % doc["job"] if "job" in doc else ""
        does_not_start(
            m,
            "stored record %d cannot be read (type %s%s): t: expected an integer"
            % (seq, doc["type"], whose),
        )
        quarantine(m)
        need(aside(m), "record %d went nowhere" % seq)
        m.start()
        equal(
            {i: d for i, d in documents(m).items() if i != "j-%d" % doc.get("job", 0)},
            {i: d for i, d in before.items() if i != "j-%d" % doc.get("job", 0)},
            "other jobs without record %d" % seq,
        )
        need(
            doc["type"] not in ("token",)
            or len(m.get("/v1/tokens", unix=True, token=None)["items"]) >= tokens - 1,
            "tokens",
        )
        m.stop()
        for path in aside(m):
            if doc["type"] == "node" and '"type":"node"' not in open(path).read():
                continue  # a drain of the node that is not there: put back when it has said hello
            rewrite(path, '"t":[],"was":', '"t":')
            if "job" in doc or doc["type"] in ("token", "drain"):
                put_back(m, path)
            else:
                r = moed(m, "--put-back", path)
                need(
                    r.returncode == 1
                    and "reported again by itself: nothing was changed" in r.stderr,
                    r.stderr,
                )
        m.start()
        equal(documents(m), before, "jobs with record %d (%s) put back" % (seq, doc["type"]))
        m.stop()
    need(
        types
        >= {"controller", "token", "node", "submit", "place", "notes", "job", "event", "drain"},
        "only %s" % types,
    )
    m.start()


@test
def test_a_snapshot_of_which_a_part_cannot_be_read(m):
    a, k = running(m)
    fill_until_snapshot(a, k, 5)
    before = documents(m)
    wait_until(
        lambda: "moe_store_snapshots_total 1" in m.ask("GET", "/metrics").body.decode(),
        20,
        "the snapshot taken over",
    )
    m.stop()
    put_snapshot(
        m,
        lambda t: t.replace(
            b'"first_rank":0,"n_ranks":2', b'"first_rank":0,"n_ranks":"two"'
        ).replace(b'"type":"node.up"', b'"type":7'),
    )
    does_not_start(
        m,
        "the stored snapshot cannot be read: jobs[0].places[0].n_ranks: expected an integer",
        "moed --quarantine",
    )
    said = quarantine(m)
    need("the snapshot of j-1: jobs[0]: places[0].n_ranks: expected an integer" in said, said)
    m.start()
    left = documents(m)
    equal(left, {i: before[i] for i in before if i != "j-1"}, "the other jobs")
    m.stop()
    path = [p for p in aside(m) if "/j-1." in p][0]
    rewrite(path, '"n_ranks":"two"', '"n_ranks":2')
    put_back(m, path)
    m.start()
    equal(documents(m), before, "all jobs")


@test
def test_an_unknown_record_and_a_damaged_one(m):
    """Of one log: the start names the first that it meets, and one run of --quarantine goes on
    without both."""
    a, k = running(m)
    before = documents(m)
    m.stop()
    seq, text = [(s, t) for s, t in records(m) if b'"pid":101' in t][0]
    put_record(m, seq, text.replace(b'"type":"notes"', b'"type":"prophecy"'))
    last, text = records(m)[-1]
    damage(m, last, text[:-1] + b"]")
    does_not_start(
        m, "stored record %d cannot be read" % seq, "prophecy", "moed --quarantine", "backup"
    )
    said = quarantine(m)
    need("stored record %d" % seq in said and "as if it were restored from a backup" in said, said)
    equal(len(aside(m)), 2, "files: %s" % aside(m))
    need("every stored record can be read" in quarantine(m), "a second run")
    m.start()
    equal(m.ask("GET", "/v1/jobs/j-1").status, 404, "the job of the unknown record")
    left = documents(m)
    equal(left, {i: before[i] for i in before if i != "j-1"}, "the other jobs")


@test
def test_root_writes_as_the_owner_of_the_state(m):
    if os.geteuid() != 0:
        raise Skipped("needs root")
    m.submit()
    m.stop()
    seq, text = [(s, t) for s, t in records(m) if b'"type":"submit"' in t][0]
    put_record(m, seq, text.replace(b'"t":', b'"t":[],"was":', 1))
    os.chmod(m.dir, 0o755)
    subprocess.run(["chown", "-R", "65534:65534", m.state], check=True)
    quarantine(m)
    rewrite(aside(m)[0], '"t":[],"was":', '"t":')
    put_back(m, aside(m)[0])
    owners = {
        os.lstat(os.path.join(base, f)).st_uid for base, _, names in os.walk(m.state) for f in names
    }
    equal(owners, {65534}, "owners of the files")
    subprocess.run(["chown", "-R", "0:0", m.state], check=True)
    m.start()
    equal(m.get("/v1/jobs/j-1")["state"], "queued", "the job")


def damage(m, seq, text):
    """As a disk would: the checksum is that of what was written."""
    db = sqlite3.connect(os.path.join(m.state, "moe.db"))
    db.execute(
        "update records set text=? where seq=?" if text else "delete from records where seq=?",
        (text, seq) if text else (seq,),
    )
    db.commit()
    db.close()


@test
def test_a_record_that_could_be_of_any_job(m):
    """Damaged, missing, or nothing at all: the state goes back to the moment before it, in a new
    incarnation. What ran then is adopted, what is not known any more is kept."""
    a, k = running(m)
    later, before = m.submit().json["id"], documents(m)["j-1"]
    m.stop()
    saved = os.path.join(m.dir, "saved")
    shutil.copytree(m.state, saved)
    seq, text = [(s, t) for s, t in records(m) if b'"type":"submit"' in t][-1]
    for how, words in (
        (
            lambda: damage(m, seq, text[:-9] + b"0" + text[-8:]),
            "record %d is damaged or missing" % seq,
        ),
        (lambda: damage(m, seq, None), "record %d is damaged or missing" % seq),
        (
            lambda: put_record(m, seq, b"hello"),
            "stored record %d cannot be read (type unknown)" % seq,
        ),
    ):
        shutil.rmtree(m.state)
        shutil.copytree(saved, m.state)
        how()
        does_not_start(m, words, "moed --quarantine", "backup")
        said = quarantine(m)
        path = os.path.join(m.state, "quarantine", "from-%d" % seq)
        need(
            "as if it were restored from a backup" in said and path in said and aside(m) == [path],
            said,
        )
        need("every stored record can be read" in quarantine(m), "a second run")
        r = moed(m, "--put-back", path)
        need(
            r.returncode == 1 and "there is nothing in it: nothing was changed" in r.stderr,
            r.stderr,
        )
        m.start()
        equal(m.ask("GET", "/v1/jobs/" + later).status, 404, "a job of which nothing is left")
        equal(
            a.hello(steps=report(k)).status, 200, "hello: the epoch is above what the agent obeyed"
        )
        a.sync(steps=report(k))
        equal(documents(m)["j-1"], before, "the job that runs")
        need(int(m.submit().json["id"][2:]) > 1000000, "a number that was not used before")
        m.stop()
    m.start()


def shown(m, job="j-1", limit=1000, **kw):
    """What `moectl debug records` gets: all pages, how many they were, and the log's first."""
    items, after, pages = [], 0, 0
    while after is not None:
        doc = m.get("/v1/jobs/%s/records?limit=%d&after=%d" % (job, limit, after), **kw)
        items, after, pages = items + doc["items"], doc["next"], pages + 1
    return items, pages, doc["first"]


@test
def test_the_records_of_a_job_are_shown(m):
    """In the order of the log, each complete but for what looks like a credential."""
    a = FakeAgent(m)
    equal(a.hello().status, 200, "hello")
    user = m.token("user", user="ada")["token"]
    recipe = {
        "recipe": 1,
        "name": "shown",
        "engine": {"kind": "command", "argv": ["sh", "--api-key", "hunter2", "-c", "exit 3"]},
        "cluster": {"gpus": 1},
        "env": {"WANDB_API_KEY": "hunter2", "PLAIN": "seen", "URL": "http://u:hunter2@h/"},
    }
    equal(m.ask("POST", "/v1/jobs", recipe, token=user).status, 201, "submit")
    for _ in range(2):  # of another job, between the first and the last of this one
        equal(m.submit().status, 201, "submit")
    wait_until(
        lambda: a.sync().status == 200 and [c for c in a.commands if c["kind"] == "launch"],
        20,
        "a launch",
    )
    items, pages, first = shown(m, token=user)
    # not for others, and nothing of a job that is not there
    eve = m.token("user", user="eve")["token"]
    r = m.ask("GET", "/v1/jobs/j-1/records", token=eve)
    equal(r.status, 403, "another user's: %s" % r.body)
    equal(m.ask("GET", "/v1/jobs/j-9/records").status, 404, "no such job")
    equal(m.ask("GET", "/v1/jobs/j-1/records?after=x").status, 400, "no number")
    # page by page
    equal(shown(m, limit=1)[:2], (items, len(items)), "pages of one")
    m.stop()
    stored = [(seq, json.loads(text[text.index(b"{\"v\"") :])) for seq, text in records(m)]
    mine = [(seq, doc) for seq, doc in stored if doc.get("job") == 1]
    equal([i["seq"] for i in items], [seq for seq, doc in mine], "the records of the job")
    equal((pages, first), (1, min(seq for seq, doc in stored)), "pages, and where the log begins")
    need("submit" in mine[0][1] and len(mine) > 2, mine)
    for item, (seq, doc) in zip(items[1:], mine[1:]):
        equal(item["record"], doc, "record %d" % seq)
    submit = items[0]["record"]["submit"]
    need("hunter2" not in json.dumps(items) and "seen" in json.dumps(items), submit)
    equal(submit["recipe"]["env"][0], {"name": "WANDB_API_KEY", "value": "***", "file": None}, "")
    need("bytes" in submit["recipe_text"], submit["recipe_text"])
    equal([i["record"]["v"] for i in items], [2] * len(items), "versions")


@test
def test_a_page_of_records_looks_through_some_of_them(m):
    """A long log takes several answers, each a short turn; a snapshot says where it begins."""
    a, k = launched(m)
    equal(m.submit().status, 201, "submit")  # j-2: it has few of the many records
    before = m.get("/v1/jobs/j-2/records")
    fill_until_snapshot(a, k, 1)
    m.ask("POST", "/v1/jobs/j-2/cancel", {})
    items, pages, first = shown(m, "j-2")
    need(pages > 1 and items[-1]["record"]["type"] == "job", "%d pages, %s" % (pages, items[-1:]))
    need(first >= before["first"], (first, before["first"]))
    env = clean_env(MOE_URL="unix:" + os.path.join(m.dir, "sock"))
    words = [os.path.join(os.path.dirname(MOED), "moectl"), "debug", "records", "j-2"]
    said = subprocess.check_output(words + ["--json"], env=env, text=True)
    equal([json.loads(line) for line in said.splitlines()], items, "what moectl prints")
    said = subprocess.check_output(words, env=env, text=True)
    need('"state":"cancelled"' in said, "the end of j-2 for people: " + said)
    need(not re.search(r"[:,](null|\[\]|{})", said), "what is unknown, for people: " + said)


@test
def test_a_page_of_large_records_is_bounded(m):
    """By bytes, not only by their number: an answer is a short turn however large they are."""
    a, k = launched(m)
    many = 4000  # of 1 KiB
    for at in range(1, many, 100):
        notes = [
            {"n": n, "kind": "phase", "phase": "train", "text": "word " * 200}
            for n in range(at, at + 100)
        ]
        step = {"state": "running", "written": at + 99, "notes": notes}
        step.update(job=k["job"], attempt=k["attempt"])
        equal(a.sync("news", steps=[step]).status, 200, "sync")
    whole, after, pages = 0, 0, 0
    while after is not None:
        r = m.ask("GET", "/v1/jobs/j-1/records?limit=1000&after=%d" % after)
        equal(r.status, 200, r.body[:200])
        need(len(r.body) < 600 << 10, "%d bytes in an answer" % len(r.body))
        need(r.json["next"] is None or r.json["next"] > after, "no progress at %d" % after)
        whole, after, pages = whole + len(r.body), r.json["next"], pages + 1
    need(whole > 500 << 10 and pages > 1, "%d bytes in %d answers" % (whole, pages))


@test
def test_a_record_of_the_past_is_shown_or_named(m):
    """One of version 1 as one of version 2; one that cannot be read with the reason."""
    m.submit()
    m.ask("POST", "/v1/jobs/j-1/cancel", {})
    m.stop()
    rows = [(s, t) for s, t in records(m) if b'"job":1,' in t and b'"type":"job"' in t]
    seq = rows[-1][0]
    doc = json.loads(rows[-1][1])
    old = {"v": 1, "type": "job", "t": doc["t"], "job": 1}
    put_record(m, seq, json.dumps(dict(old, state="cancelled"), separators=(",", ":")).encode())
    m.start()
    items, pages, first = shown(m)
    equal(items[-1]["record"]["v"], 2, "version")
    equal(items[-1]["record"]["transition"]["state"], "cancelled", "what it says")


@test
def test_what_cannot_be_helped(m):
    """Nothing is changed by a run that cannot help, and each says what to do."""
    m.submit()
    running_too = moed(m, "--quarantine")
    need(running_too.returncode == 1 and "another moed" in running_too.stderr, running_too.stderr)
    m.stop()
    seq, text = [(s, t) for s, t in records(m) if b'"type":"submit"' in t][0]
    put_record(m, seq, re.sub(rb'"v":\d+,', b'"v":99,', text, count=1))
    does_not_start(m, "start the newer moed that wrote it")
    r = moed(m, "--quarantine")
    need(r.returncode == 1 and "start the newer moed that wrote it" in r.stderr, r.stderr)
    put_record(m, seq, text)
    equal(aside(m), [], "files")
    for args, words in (
        (("--put-back", "/nowhere"), "/nowhere: No such file"),
        (("--put-back", "/dev/null"), "there is nothing in it"),
        (("--quarantine", "--put-back", "/x"), "only one of them"),
    ):
        r = moed(m, *args)
        need(r.returncode == 1 and words in r.stderr, "%s: %s" % (args, r.stderr))
    with tempfile.NamedTemporaryFile("w") as f:
        f.write("7 {\"v\":1,\"type\":\"job\",\"t\":1,\"job\":1,\"state\":\"completed\"}\n")
        f.flush()
        r = moed(m, "--put-back", f.name)
        need(r.returncode == 1 and "nothing was changed" in r.stderr, r.stderr)
    m.start()
    equal(m.get("/v1/jobs/j-1")["state"], "queued", "the job")


sys.exit(1 if suite.main() else 0)
