"""The short-lived helpers alone: moe-ckpt on directories as engines leave them, moe-discover on
this machine and on bad options."""
import functools
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "fake")]
import recorder as fake_recorder  # noqa: E402
from lib import BUILD, PATIENCE, ROOT, Skipped, Suite, equal, need  # noqa: E402

suite = Suite()


def in_directory(fn):
    """A test that gets a fresh directory."""

    @functools.wraps(fn)
    def run():
        with tempfile.TemporaryDirectory() as top:
            fn(top)

    return suite.test(run)


TORCH = {"entry": r"(?<iteration>\d+)$", "markers": ["COMPLETE"], "announced_is_complete": True}
MEGATRON = {
    "entry": r"^iter_(?<iteration>\d{7,})$",
    "tracker": "latest_checkpointed_iteration.txt",
    "markers": [".metadata", "metadata.json"],
    "shard": r"\.distcp$",
    "marker_last": True,
}


def program(name, *args, stdin=None, user=None):
    def demote():
        os.setgroups([])
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)

    return subprocess.run(
        [os.path.join(BUILD, name)] + list(args),
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE * 60,
        preexec_fn=demote if user else None,
    )


def scan(directory, layout=TORCH, level="sizes", world=None, job=None, user=None, **kw):
    order = {
        "kind": "scan",
        "dir": directory,
        "layout": layout,
        "level": level,
        "world": world,
        "job": job,
        "attempt": 1,
        "user": user,
    }
    r = program("moe-ckpt", "--scan", "-", "--allow-root", stdin=json.dumps(order), **kw)
    need(r.returncode == 0, "moe-ckpt: %s" % r.stderr)
    need(r.stdout.count("\n") == 1, "more than one line: %r" % r.stdout)
    return json.loads(r.stdout)


def write(path, data, mtime=None):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())
    if mtime:
        os.utime(path, (mtime, mtime))


def tiny(top, iteration, world=2):
    d = os.path.join(top, "iter_%07d" % iteration)
    for r in range(world):
        write("%s/rank_%d.pt" % (d, r), b"x" * (100 + r))
    write(
        d + "/COMPLETE",
        json.dumps(
            {
                "iteration": iteration,
                "world": world,
                "ep": 2,
                "files": {"rank_%d.pt" % r: 100 + r for r in range(world)},
            }
        ),
    )
    return d


def megatron(top, iteration):
    d = os.path.join(top, "iter_%07d" % iteration)
    write(d + "/__0_0.distcp", b"x" * 50, 1000)
    write(d + "/__1_0.distcp", b"x" * 50, 1001)
    write(d + "/.metadata", b"\x80\x04abc.", 1002)
    write(d + "/metadata.json", '{"sharded_backend": "torch_dist"}', 1003)
    write(top + "/latest_checkpointed_iteration.txt", str(iteration))
    return d


def states(result):
    return {i["iteration"]: None if i["complete"] else i["reason"] for i in result["items"]}


@in_directory
def tiny_moe_layout(top):
    for i in (20, 40, 60, 80, 100):
        tiny(top, i)
    write(top + "/iter_0000040/rank_1.pt", b"x")
    os.unlink(top + "/iter_0000060/COMPLETE")
    write(
        top + "/iter_0000080/COMPLETE", '{"iteration": 80, "world": 2, "files": {"rank_0.pt": 100'
    )
    write(top + "/iter_0000100/COMPLETE", "")
    write(top + "/notes.txt", "x")
    os.symlink("iter_0000020", top + "/latest_120")
    r = scan(top, world=2)
    seen = states(r)
    equal([i["iteration"] for i in r["items"]], [120, 100, 80, 60, 40, 20], "newest first")
    need("symbolic link" in seen[120], seen)
    equal(seen[20], None)
    equal(seen[40], "rank_1.pt has 1 bytes of 101")
    equal(seen[60], "COMPLETE is missing")
    need("no whole JSON" in seen[80], seen[80])
    equal(seen[100], "COMPLETE is empty")
    equal(r["items"][5]["path"], top + "/iter_0000020")
    need(r["items"][5]["bytes"] > 201 and r["items"][5]["saved_at"].endswith("Z"), r["items"][5])
    equal(states(scan(top, level="marker", world=2))[40], None, "marker level of a cut file")
    equal(states(scan(top, world=4))[20], "2 ranks wrote it, the job has 4")


@in_directory
def megatron_layout(top):
    megatron(top, 100)
    d = megatron(top, 200)
    equal(states(scan(top, MEGATRON)), {100: None, 200: None})
    write(d + "/__1_0.distcp", b"x" * 50, 2000)
    need(
        "newer than" in states(scan(top, MEGATRON))[200], "a half replaced save counts as complete"
    )
    write(d + "/__1_0.distcp", b"", 1000)
    equal(states(scan(top, MEGATRON))[200], "__1_0.distcp is empty")
    write(d + "/__1_0.distcp", b"x", 1000)
    write(d + "/.metadata", b"\x80\x04abc", 1002)
    equal(states(scan(top, MEGATRON))[200], ".metadata: it is cut short")
    write(d + "/.metadata", b"\x80\x04abc.", 1002)
    write(d + "/metadata.json", "{", 1002)
    need("no whole JSON" in states(scan(top, MEGATRON))[200], states(scan(top, MEGATRON)))
    write(top + "/latest_checkpointed_iteration.txt", "150")
    megatron(top, 300)
    write(top + "/latest_checkpointed_iteration.txt", "150")
    seen = states(scan(top, MEGATRON))
    equal(seen[100], None)
    need("says 150" in seen[300], seen[300])
    write(top + "/latest_checkpointed_iteration.txt", b"\0\0\0")
    need(
        all("damaged" in (v or "") for i, v in states(scan(top, MEGATRON)).items() if i != 200),
        "a torn tracker is not reported",
    )
    os.unlink(top + "/latest_checkpointed_iteration.txt")
    need("missing" in states(scan(top, MEGATRON))[100], "a missing tracker is not reported")


@in_directory
def nothing_leads_out_of_the_directory(top):
    outside = tempfile.mkdtemp(dir=top)
    write(outside + "/rank_0.pt", b"x" * 100)
    write(outside + "/COMPLETE", "ok")
    inside = top + "/ckpt"
    os.makedirs(inside)
    os.symlink(outside, inside + "/iter_0000010")
    d = tiny(inside, 20, world=1)
    os.unlink(d + "/rank_0.pt")
    os.symlink(outside + "/rank_0.pt", d + "/rank_0.pt")
    d = tiny(inside, 30, world=1)
    os.unlink(d + "/COMPLETE")
    os.symlink(outside + "/COMPLETE", d + "/COMPLETE")
    os.mkfifo(tiny(inside, 40, world=1) + "/pipe")
    os.unlink(inside + "/iter_0000040/COMPLETE")
    os.mkfifo(inside + "/iter_0000040/COMPLETE")
    seen = states(scan(inside))
    equal(sorted(seen), [10, 20, 30, 40])
    equal(seen[10], "it is a symbolic link, which is not followed")
    equal(seen[20], "rank_0.pt: it is a symbolic link, which is not followed")
    equal(seen[30], "COMPLETE is missing")
    equal(seen[40], "COMPLETE is missing")


@in_directory
def one_entry_per_iteration(top):
    tiny(top, 20)
    write(top + "/events.out.20", "x")
    write(top + "/aaa_20/x", "x")
    equal(states(scan(top)), {20: None})
    write(top + "/plain_30", "x" * 7)
    r = scan(top)
    equal(r["items"][0]["bytes"], 7)
    need("single file" in r["items"][0]["reason"], r["items"][0])


@in_directory
def keep_removes_what_it_is_told(top):
    for i in (10, 20, 30):
        tiny(top, i)
    write(top + "/events.out.10", "x")
    outside = tempfile.mkdtemp()
    write(outside + "/precious", "x")
    os.symlink(outside, top + "/iter_0000010/link")
    order = {
        "kind": "scan",
        "dir": top,
        "layout": TORCH,
        "job": 7,
        "attempt": -21,
        "prune": [{"iteration": 10, "path": top + "/iter_0000010/COMPLETE"}, {"iteration": 20}],
    }
    r = program("moe-ckpt", "--scan", json.dumps(order), "--allow-root")
    need(r.returncode == 0, r.stderr)
    doc = json.loads(r.stdout)
    equal(doc["attempt"], -21)
    equal([(i["iteration"], i["complete"]) for i in doc["items"]], [(30, True), (10, False)])
    equal(sorted(os.listdir(top)), [".moe-manifests", "events.out.10", "iter_0000030"])
    need(os.path.exists(outside + "/precious"), "a link was followed")


@in_directory
def at_most_a_thousand(top):
    for i in range(1005):
        write("%s/step_%d/x" % (top, i), "x")
    r = scan(top)
    equal(len(r["items"]), 1000)
    equal(r["items"][0]["iteration"], 1004)


@in_directory
def missing_directory_and_probe(top):
    gone = top + "/not/yet"
    equal(scan(gone)["items"], [])
    need(not os.path.exists(top + "/not"), "a scan without a job made a directory")
    r = scan(gone, job=7)
    need(r["writable"] and r["error"] is None and r["job"] == 7 and r["attempt"] == 1, r)
    equal(os.listdir(gone), [], "left by the probe")
    write(top + "/file", "x")
    r = scan(top + "/file", job=7)
    need(not r["writable"] and r["error"], r)


@in_directory
def a_user_looks_with_his_own_rights(top):
    if os.geteuid() != 0:
        raise Skipped("needs root")
    nobody = pwd.getpwnam("nobody")
    os.chmod(top, 0o755)
    tiny(top, 20)
    os.mkdir(top + "/his")
    os.chown(top + "/his", nobody.pw_uid, nobody.pw_gid)
    r = scan(top, job=7, user="nobody")
    need(not r["writable"] and r["error"] is None, r)
    equal(states(r), {20: None})
    r = scan(top + "/his/deep", job=7, user="nobody")
    need(r["writable"], r)
    equal(os.stat(top + "/his/deep").st_uid, nobody.pw_uid)
    os.chmod(top + "/iter_0000020", 0o700)
    need(
        "cannot be opened: Permission" in states(scan(top, user="nobody"))[20],
        states(scan(top, user="nobody")),
    )


@in_directory
def refusals(top):
    good = {"kind": "scan", "dir": top, "layout": TORCH}
    for change, words in (
        ({"dir": ""}, "needs a dir"),
        ({"layout": None}, "needs a dir and a layout"),
        ({"level": "x"}, "unknown"),
        ({"user": "no-such-user"}, "does not exist on this node"),
        ({"layout": {"entry": "("}}, "correct the engine file"),
    ):
        r = program("moe-ckpt", "--scan", json.dumps({**good, **change}), "--allow-root")
        text = r.stderr if r.returncode else json.loads(r.stdout)["error"]
        need(text and words in text and text.count("\n") <= 1, "%s: %r" % (change, text))
    for args, status in (
        (["--scan", "{"], 1),
        (["--scan", ""], 1),
        (["--scan"], 2),
        ([], 2),
        (["x"], 2),
        (["--version"], 0),
    ):
        equal(program("moe-ckpt", *args).returncode, status, "exit status of %s" % args)
    if os.geteuid() == 0:
        r = program("moe-ckpt", "--scan", json.dumps(good))
        need(r.returncode == 1 and "root" in r.stderr, r.stderr)


@in_directory
def discovery(top):
    r = program("moe-discover", "--only-fake", "--fake-gpus", "3")
    doc = json.loads(r.stdout)
    equal([g["vendor"] for g in doc["gpus"]], ["fake"] * 3)
    need(not doc["simulated"] and doc["cpus"] >= 1 and doc["numa"], doc)
    cpu = doc["numa"][0]["cpus"].split(",")[0].split("-")[0]
    one = json.loads(program("moe-discover", "--only-fake", "--cpus", cpu).stdout)
    equal(one["cpus"], 1)
    for args, status in (
        (["--cpus", "99999"], 1),
        (["--cpus", "x"], 1),
        (["--root", top + "/none"], 1),
        (["--xml", top], 1),
        (["--fake-gpus", "300"], 1),
        (["--fake-gpus", "x"], 2),
        (["--wrong"], 2),
        (["x"], 2),
        (["--version"], 0),
        (["--help"], 0),
    ):
        r = program("moe-discover", *args)
        equal(r.returncode, status, "exit status of %s" % args)
        need(status != 1 or r.stderr.count("\n") == 1, r.stderr)


@in_directory
def recorders_are_asked_by_pipes_alone(top):
    """What stands where a pipe should be is not written to, waited for or followed."""

    def at(name):
        return os.path.join(top, name)

    with open(at("rank0.pipe"), "w") as f:
        f.write("mine")
    os.mkfifo(at("other"))
    read = os.open(at("other"), os.O_RDWR | os.O_NONBLOCK)
    os.symlink("other", at("rank1.pipe"))
    os.mkdir(at("rank2.pipe"))
    os.mkfifo(at("rank3.pipe"))  # nobody reads it
    shutil.copy(os.path.join(ROOT, "tests/fixtures/recorder/host.1"), at("dump4"))  # an older one
    fake_recorder.serve(
        4, 2, lambda: (7, True), ("/job/train.py", 120), dict(PIPE=at("rank"), DUMP=at("dump"))
    )
    r = program("moe-recorder", "--allow-root", top, "0", "1", "2", "3", "4", "5")
    equal((r.returncode, r.stderr), (0, ""), "moe-recorder")
    [answer] = json.loads(r.stdout)["ranks"]
    [wait] = answer["waits"]
    equal((answer["rank"], answer["enqueued"]), (4, "0=8"), "who answered")
    equal((wait["op"], wait["seq"], wait["members"]), ("all_reduce", 8, "0-1"), "its wait")
    equal(open(at("rank0.pipe")).read(), "mine", "a file in place of a pipe")
    try:
        need(not os.read(read, 1), "a link was followed")
    except BlockingIOError:
        pass
    os.close(read)


@in_directory
def a_dump_may_be_anything(top):
    """A link, a pipe, no dump: said after a while, and nothing is read through it."""

    def at(name):
        return os.path.join(top, name)

    shutil.copy(os.path.join(ROOT, "tests/fixtures/recorder/host.1"), at("secret"))

    def leave(rank, make):
        os.mkfifo(at("rank%d.pipe" % rank))
        fd = os.open(at("rank%d.pipe" % rank), os.O_RDWR)

        def answer():
            os.read(fd, 1)
            make(at("dump%d" % rank))

        threading.Thread(target=answer, daemon=True).start()

    leave(0, lambda dump: os.symlink("secret", dump))
    leave(1, os.mkfifo)
    leave(2, lambda dump: shutil.copyfile("/dev/null", dump))
    leave(3, lambda dump: os.truncate(os.open(dump, os.O_CREAT | os.O_WRONLY), 1 << 40))
    r = program("moe-recorder", "--allow-root", top, "0", "1", "2", "3")
    equal((r.returncode, r.stderr), (0, ""), "moe-recorder")
    equal(
        [(k["rank"], k["silent"].split(" within ")[0]) for k in json.loads(r.stdout)["ranks"]],
        [
            (0, "no dump"),
            (1, "no dump"),
            (2, "its dump: it is cut short"),
            (3, "its dump: it is larger than 16 MiB"),
        ],
        "what is said",
    )


@suite.test
def moe_recorder_refuses_bad_options():
    for args in ([], ["/tmp"], ["1", "/tmp"], ["/tmp", "x"], ["/tmp", "-1"], ["--wrong"]):
        equal(program("moe-recorder", *args).returncode, 2, "exit status of %s" % args)
    equal(program("moe-recorder", "--allow-root", "/missing", "0").stdout, '{"ranks":[]}\n', "none")


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
