#!/usr/bin/python3
"""A store that an earlier version wrote, with every type of record (tests/fixtures/store-v1): moed
opens it, says of it what that version said, goes on, and is the same after a start.
`test_store_v1.py --record` wrote documents.json, with the moed of that version as BUILD."""
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from controller import MOED, Moed, checksum
from lib import PATIENCE, Suite, clean_env, equal, need

FIXTURE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fixtures/store-v1")
# what passing time or a clock that was set changes; times themselves are compared by the unit test
VOLATILE = ("_at", "_age_ms", "lemon_score", "waterfall")
LAST_EVENT = 97
suite = Suite()


def texts(name):
    """A text of the store: lines of parts, and the line after them."""
    begun, all = [], []
    with open(os.path.join(FIXTURE, name), "rb") as f:
        for line in f.read().splitlines():
            begun.append(line)
            if line.startswith(b"{"):
                all.append(b"\n".join(begun))
                begun = []
    return all


def make_store(state, log):
    """As that version left it, in an empty directory."""
    subprocess.run(
        [MOED, "--set", "state_dir=" + state, "--set", "port=0", "--init"],
        env=clean_env(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        check=True,
        timeout=PATIENCE * 60,
    )
    db = sqlite3.connect(os.path.join(state, "moe.db"))
    db.execute("delete from records")
    db.executemany(
        "insert into records(seq, sum, text) values(?, ?, ?)",
        [(i + 1, checksum(t), t) for i, t in enumerate(log)],
    )
    db.commit()
    db.close()


def steady(doc):
    """Without what time changes by itself."""
    if isinstance(doc, dict):
        return {k: steady(v) for k, v in doc.items() if not k.endswith(VOLATILE)}
    return [steady(v) for v in doc] if isinstance(doc, list) else doc


def documents(m):
    seen = {}
    jobs = ["j-%d" % i for i in range(1, 8)]
    for path in (
        ["/v1/jobs/" + j + rest for j in jobs for rest in ("", "/ranks", "/checkpoints")]
        + ["/v1/jobs/j-3/metrics"]
        + ["/v1/nodes/n%d" % i for i in range(5)]
    ):
        seen[path] = steady(m.get(path))
    seen["/v1/tokens"] = [
        steady(t) for t in m.get("/v1/tokens")["items"] if t["id"].startswith("aa0000")
    ]
    events, since = [], 0
    while since < LAST_EVENT:
        page = m.get("/v1/events?after=%d&limit=50" % since)["items"]
        events += page
        since = page[-1]["seq"]
    seen["/v1/events"] = [e for e in events if e["seq"] <= LAST_EVENT]
    return seen


def holds(was, now, where):
    """Whatever it said is said still; a later version may say more."""
    if isinstance(was, dict):
        need(isinstance(now, dict), "%s: %r, was %r" % (where, now, was))
        for k in was:
            need(k in now, "%s.%s is not there any more; it was %r" % (where, k, was[k]))
            holds(was[k], now[k], "%s.%s" % (where, k))
    elif isinstance(was, list):
        equal(len(now), len(was), "%s: its length" % where)
        for i, one in enumerate(was):
            holds(one, now[i], "%s[%d]" % (where, i))
    else:
        equal(now, was, where)


def with_store(log):
    d = tempfile.mkdtemp(prefix="moe-v1-")
    make_store(os.path.join(d, "state"), log)
    return Moed(dir=d, suspect_ms=600000, down_ms=1200000)


@suite.test
def test_it_opens_and_says_what_it_said():
    with open(os.path.join(FIXTURE, "documents.json")) as f:
        was = json.load(f)
    with with_store(texts("log.txt")) as m:
        holds(was, documents(m), "")
        a = m.submit()
        equal(a.status, 201, "a submit: %s" % a.body)
        equal(a.json["id"], "j-8", "the next number")
        for how in (signal.SIGKILL, signal.SIGTERM):
            m.stop(how)
            m.start()
            holds(was, documents(m), "after %s" % how.name)
            equal(m.get("/v1/jobs/j-8")["name"], "rest", "the new job")


if __name__ == "__main__":
    if sys.argv[1:] == ["--record"]:
        with with_store(texts("log.txt")) as moed, open(
            os.path.join(FIXTURE, "documents.json"), "w"
        ) as out:
            lines = [
                "%s: %s"
                % (json.dumps(path), json.dumps(doc, sort_keys=True, separators=(",", ":")))
                for path, doc in documents(moed).items()
            ]
            out.write("{\n%s\n}\n" % ",\n".join(lines))
    else:
        sys.exit(1 if suite.main() else 0)
