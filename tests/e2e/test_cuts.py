#!/usr/bin/python3
"""Every file that moed writes, cut at every length (at page borders, the large ones): it says in
one line what is wrong, or goes on and has all that it acknowledged. It never crashes, and never
begins anew without a word."""
import os
import shutil
import signal
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from controller import MOED, checksum, each_with_a_controller
from lib import PATIENCE, Suite, clean_env, equal, need, wait_until

suite = Suite()
test = each_with_a_controller(suite)


def options(m, **other):
    return [o for k, v in dict(m.options, **other).items() for o in ("--set", "%s=%s" % (k, v))]


def documents(m):
    """Over the socket: whoever runs moed needs no token."""
    jobs = m.get("/v1/jobs", unix=True, token=None)["items"]
    return [(j["id"], j["name"], j["state"]) for j in jobs], sorted(
        t["id"]
        for t in m.get("/v1/tokens", unix=True, token=None)["items"]
        if t["role"] == "viewer"
    )


def one_line(said, path):
    lines = said.strip().splitlines()
    need(len(lines) == 1 and lines[0].startswith("moed: "), "%d lines: %s" % (len(lines), said))
    need(os.path.dirname(path) in said, "no word of where: %s" % said)


def starts(m):
    """What it says when it does not; None: it serves."""
    address = os.path.join(m.state, "address")
    if os.path.exists(address):
        os.unlink(address)
    m.process = subprocess.Popen(
        [MOED] + options(m),
        env=clean_env(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(
        lambda: m.process.poll() is not None or os.path.exists(address), 20, "moed listening"
    )
    if m.process.poll() is None:
        return None
    out, said = m.process.communicate()
    need(m.process.returncode == 1, "status %d: %s" % (m.process.returncode, said))
    return said


def ends(m):
    m.process.send_signal(signal.SIGTERM)
    _, said = m.process.communicate(timeout=PATIENCE * 20)
    equal(m.process.returncode, 0, "exit status: %s" % said)
    return said


def filled(m, how=signal.SIGTERM):
    for _ in range(3):
        equal(m.submit().status, 201, "submit")
    equal(m.ask("POST", "/v1/jobs/j-2/cancel", {"now": True}).status, 200, "cancel")
    m.token("viewer", user="eve")
    seen = documents(m)
    m.stop(how)
    m.log.close()
    saved = os.path.join(m.dir, "saved")
    shutil.copytree(m.state, saved)
    shutil.copytree(os.path.join(m.dir, "tokens"), os.path.join(m.dir, "saved-tokens"))
    return seen


def again(m):
    for name, saved in ((m.state, "saved"), (os.path.join(m.dir, "tokens"), "saved-tokens")):
        shutil.rmtree(name)
        shutil.copytree(os.path.join(m.dir, saved), name)


def each_cut(m, path, lengths=None):
    with open(path, "rb") as f:
        whole = f.read()
    for n in lengths or range(len(whole)):
        again(m)
        with open(path, "r+b") as f:
            f.truncate(n)
        yield n, whole
    again(m)


def done(m):
    """As each_with_a_controller finds it."""
    again(m)
    m.start()


@test
def test_what_is_made_anew(m):
    """The key of sessions, the tokens that it hands out, its address, its ballast: all else is as
    it was."""
    before = filled(m)
    for path, step in (
        (os.path.join(m.state, "session.key"), 1),
        (os.path.join(m.dir, "tokens", "admin.token"), 3),
        (os.path.join(m.dir, "tokens", "agent.token"), 9),
    ):
        size = os.path.getsize(path)
        for n, whole in each_cut(m, path, sorted(set(range(0, size, step)) | {size - 2, size - 1})):
            said = starts(m)
            need(said is None, "%d bytes of %s: %s" % (n, path, said))
            equal(documents(m), before, "with %d bytes of %s" % (n, path))
            log = ends(m)
            with open(path, "rb") as f:
                now = f.read()
            need(
                len(now) == len(whole) or now == whole[:-1],
                "%s is not whole again: %d bytes of %d" % (path, len(now), len(whole)),
            )
            if path.endswith("session.key"):
                need(
                    now != whole and "session.key" in log and "sign in again" in log,
                    "sessions ended without a word: %s" % log,
                )
    done(m)


@test
def test_what_says_which_database_it_is(m):
    before = filled(m)
    path = os.path.join(m.state, "store.id")
    for n, whole in each_cut(m, path):
        said = starts(m)
        if said is None:
            equal(documents(m), before, "with %d bytes of it" % n)
            ends(m)
        else:
            one_line(said, path)
            need("store.id" in said and "backup" in said, said)
    done(m)


@test
def test_the_database(m):
    before = filled(m)
    path = os.path.join(m.state, "moe.db")
    size = os.path.getsize(path)
    for n, _ in each_cut(
        m,
        path,
        sorted(
            {0, 1, 15, 16, 99, 100, 511}
            | set(range(0, size, 4096))
            | {max(at - 1, 0) for at in range(0, size, 4096)}
            | {size - 1}
        ),
    ):
        said = starts(m)
        need(said is not None, "it began with %d of %d bytes" % (n, size))
        one_line(said, path)
        need("moe.db" in said, said)
    done(m)


@test
def test_the_log_of_the_database(m):
    """Killed, it has everything in the log. Whatever is missing of that, it does not begin
    without."""
    before = filled(m, signal.SIGKILL)
    path = os.path.join(m.state, "moe.db-wal")
    with open(path, "rb") as f:
        used = len(f.read().rstrip(b"\0"))
    frame = 4096 + 24
    for n, _ in each_cut(
        m,
        path,
        sorted(
            {0, 1, 31, 32, 33}
            | {32 + i * frame + d for i in range(1, used // frame + 1) for d in (-1, 0, 1)}
        ),
    ):
        said = starts(m)
        need(said is not None, "it began with %d bytes of it" % n)
        one_line(said, path)
        need("moe.db-wal: it was cut: %d bytes" % n in said and "backup" in said, said)
    os.unlink(path)
    said = starts(m)
    need(said is not None and "moe.db-wal: it is gone" in said, "without it: %s" % said)
    done(m)
    equal(documents(m), before, "all of it")


@test
def test_a_database_that_only_lies_there(m):
    """Stopped, it has no log: neither is one missed, nor is a database taken in which nothing
    begins."""
    before = filled(m)
    need(
        not [f for f in os.listdir(m.state) if f.startswith("moe.db-")],
        "what is left of it: %s" % os.listdir(m.state),
    )
    again(m)
    need(starts(m) is None, "it does not start")
    equal(documents(m), before, "all of it")
    ends(m)
    db = sqlite3.connect(os.path.join(m.state, "moe.db"))
    db.execute("delete from records")
    db.commit()
    db.close()
    said = starts(m)
    one_line(said, os.path.join(m.state, "moe.db"))
    need("it holds no record" in said, said)
    done(m)


def restored(m, text, n):
    path = os.path.join(m.dir, "backup")
    with open(path, "wb") as f:
        f.write(text[:n])
    state = os.path.join(m.dir, "restored")
    r = subprocess.run(
        [MOED] + options(m, state_dir=state) + ["--restore", path],
        env=clean_env(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE * 60,
    )
    if r.returncode == 0:
        shutil.rmtree(state)
    else:
        need(
            r.returncode == 1 and not os.path.exists(state),
            "status %d with %d bytes: %s" % (r.returncode, n, r.stderr),
        )
        one_line(r.stderr, path)
    return r.returncode == 0


@test
def test_a_backup(m):
    for _ in range(2):
        equal(m.submit().status, 201, "submit")
    text = m.ask("GET", "/v1/backup").body
    head = text.index(b"\n")
    for n in sorted(
        set(range(head + 3))
        | set(range(head, len(text), max(len(text) // 60, 1)))
        | {len(text) - 1}
    ):
        need(not restored(m, text, n), "%d of %d bytes were restored" % (n, len(text)))
    need(restored(m, text, len(text)), "the whole")


@test
def test_a_file_of_the_quarantine(m):
    """A job without its last records is not put back as if it were whole."""
    before = filled(m)
    db = sqlite3.connect(os.path.join(m.state, "moe.db"))
    seq, text = [
        (s, bytes(t))
        for s, t in db.execute("select seq, text from records order by seq")
        if b'"type":"job"' in bytes(t) and b'"job":2' in bytes(t)
    ][0]
    text = text.replace(b'"type":"job"', b'"type":"jobs"')
    db.execute("update records set text=?, sum=? where seq=?", (text, checksum(text), seq))
    db.commit()
    db.close()
    r = subprocess.run(
        [MOED] + options(m) + ["--quarantine"],
        env=clean_env(),
        capture_output=True,
        text=True,
        timeout=PATIENCE * 60,
    )
    equal(r.returncode, 0, "--quarantine: %s" % r.stderr)
    path = os.path.join(m.state, "quarantine", os.listdir(os.path.join(m.state, "quarantine"))[0])
    with open(path, "rb") as f:
        whole = f.read().replace(b'"type":"jobs"', b'"type":"job"')
    with open(path, "wb") as f:
        f.write(whole)
    shutil.rmtree(os.path.join(m.dir, "saved"))
    shutil.copytree(m.state, os.path.join(m.dir, "saved"))
    ends_of_lines = [i + 1 for i, c in enumerate(whole) if c == 10]
    for n, _ in each_cut(
        m,
        path,
        sorted(
            set(range(0, len(whole), max(len(whole) // 80, 1)))
            | set(ends_of_lines[:-1])
            | {e - 1 for e in ends_of_lines[:-1]}
            | {len(whole) - 2}
        ),
    ):
        r = subprocess.run(
            [MOED] + options(m) + ["--put-back", path],
            env=clean_env(),
            capture_output=True,
            text=True,
            timeout=PATIENCE * 60,
        )
        need(
            r.returncode == 1 and os.path.exists(path),
            "status %d with %d of %d bytes: %s%s"
            % (r.returncode, n, len(whole), r.stdout, r.stderr),
        )
        one_line(r.stderr, path)
        need("nothing was changed" in r.stderr, r.stderr)
    r = subprocess.run(
        [MOED] + options(m) + ["--put-back", path],
        env=clean_env(),
        capture_output=True,
        text=True,
        timeout=PATIENCE * 60,
    )
    equal(r.returncode, 0, "the whole: %s" % r.stderr)
    m.start()
    equal(documents(m), before, "all of it")


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
