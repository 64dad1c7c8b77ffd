#!/usr/bin/python3
"""What a controller may believe of its own past: a wall clock that was wrong, a state directory
that is not there, a state that was put back from a backup. Jobs train on through all of it."""
import calendar
import http.server
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import (
    PATIENCE,
    BUILD,
    Failed,
    Suite,
    clean_env,
    command_recipe,
    equal,
    moectl,
    need,
    wait_equal,
    wait_until,
)  # noqa: E402
from rig import MOED, RANK, SILENT_SOON, Rig, alive  # noqa: E402

HOUR = 3600
suite = Suite()


def train(rig, name="train", gpus=2):
    """A job that runs on; its id."""
    job = rig.submit(
        command_recipe(
            name, [RANK, "--steps", "1000000", "--step-ms", "20"], gpus=gpus, steps=1000000
        )
    )
    rig.wait_iteration(job, 3)
    return job


def pids(rig, job):
    return sorted(r["pid"] or 0 for r in rig.json("ranks", job)["items"])


def trains_on(rig, job, before):
    """The same processes in the same attempt get on."""
    now = rig.job(job)
    rig.wait_iteration(job, (now["iteration"] or 0) + 3)
    wait_equal(lambda: pids(rig, job), before, "pids of the ranks")
    equal(rig.job(job)["attempt"], 1, "attempt")


def without_gaps(rig, job):
    """Whether the samples known are of one run of iterations (the newest word may be there before
    the journal's)."""
    seen = [i["iteration"] for i in rig.json("metrics", job)["items"]]
    return bool(seen) and all(b - a <= 2 for a, b in zip(seen, seen[1:]))


class Clock:
    """The wall clock that the rig's moed sees."""

    def __init__(self, rig):
        self.rig, self.file = rig, os.path.join(rig.dir, "clock")

    def says(self, offset, synced):
        with open(self.file + ".new", "w") as f:
            f.write("%d %d\n" % (offset, synced))
        os.rename(self.file + ".new", self.file)

    def start(self, boot=None):
        san = os.environ.get("ASAN_OPTIONS", "")
        self.rig.moed = self.rig.spawn(
            MOED,
            "moed",
            self.rig.moed_options,
            LD_PRELOAD=os.path.join(BUILD, "tests/fake/preload/wallclock.so"),
            FAKE_CLOCK=self.file,
            MOE_BOOT_ID=boot,
            ASAN_OPTIONS=san + ":verify_asan_link_order=0",
        )
        wait_until(lambda: self.rig.http("GET", "/healthz").status == 200, 30, "moed serves")

    def restart(self, boot=None):
        self.rig.kill(self.rig.moed, signal.SIGTERM)
        self.start(boot)


def seconds(time_text):
    return calendar.timegm(time.strptime(time_text[:19], "%Y-%m-%dT%H:%M:%S"))


def same_time(seen, wanted, what):
    """A minute more or less is no wrong clock: the time that a reboot took is not known when nobody
    vouches for the clock."""
    need(abs(seconds(seen) - seconds(wanted)) < 60, "%s is %s, not %s" % (what, seen, wanted))


def charged(rig, job):
    return rig.json("report", job)["gpu_seconds"]["total"]


@suite.test
def test_a_clock_that_was_ahead():
    with Rig(nodes=2) as rig:
        clock = Clock(rig)
        clock.says(0, 1)
        rig.kill(rig.moed, signal.SIGTERM)
        clock.start("one")
        job = train(rig)
        before, created, began = pids(rig, job), rig.job(job)["created_at"], time.monotonic()
        token = rig.json("token", "create", "--role", "viewer", "--user", "ada", "--ttl", "12h")[
            "token"
        ]
        # the controller's machine boots with a clock half a day and a little ahead
        clock.says(13 * HOUR, 0)
        clock.restart("two")
        trains_on(rig, job, before)
        need(
            charged(rig, job) < 2 * (time.monotonic() - began + 60),
            "%g GPU seconds" % charged(rig, job),
        )
        rig.json("token", "create", "--role", "viewer", "--user", "tomorrow", "--ttl", "12h")
        equal(
            rig.http("GET", "/v1/jobs", token=token, tcp=True).status,
            401,
            "a token of 12 h, 13 h later as far as the controller knows",
        )
        # the time service finds it out while the controller runs
        clock.says(0, 1)
        wait_until(
            lambda: rig.http("GET", "/v1/jobs", token=token, tcp=True).status == 200,
            30,
            "the token is good again",
        )
        trains_on(rig, job, before)
        same_time(rig.job(job)["created_at"], created, "created_at")
        need(
            charged(rig, job) < 2 * (time.monotonic() - began + 60),
            "%g GPU seconds" % charged(rig, job),
        )
        need("ahead of the synchronised wall clock" in rig.log("moed"), "the log does not name it")
        limit = time.time() + 12 * HOUR + 60
        for t in rig.json("token", "list")["items"]:
            need(
                t["user"] not in ("ada", "tomorrow") or seconds(t["expires_at"]) < limit,
                "token %s" % t,
            )
        # and the same is true of the records
        clock.restart("two")
        same_time(rig.job(job)["created_at"], created, "created_at after a restart")
        trains_on(rig, job, before)
        # ahead again, found out at a start
        clock.says(13 * HOUR, 0)
        clock.restart("three")
        clock.says(0, 1)
        clock.restart("four")
        trains_on(rig, job, before)
        need(
            charged(rig, job) < 2 * (time.monotonic() - began + 60),
            "%g GPU seconds" % charged(rig, job),
        )


@suite.test
def test_a_clock_of_1970():
    with Rig(nodes=1) as rig:
        clock = Clock(rig)
        rig.kill(rig.moed, signal.SIGTERM)
        shutil.rmtree(rig.state_dir)
        rig.init_state()
        clock.says(-int(time.time()) + 100, 0)
        clock.start("one")
        job = train(rig)
        before = pids(rig, job)
        need(rig.job(job)["created_at"].startswith("1970"), "it is %s" % rig.job(job)["created_at"])
        clock.says(0, 1)
        wait_until(
            lambda: not rig.job(job)["created_at"].startswith("1970"), 30, "the time is right"
        )
        trains_on(rig, job, before)
        need(charged(rig, job) < 3600, "%g GPU seconds" % charged(rig, job))
        # back in 1970, and no time service: never below the last record, and said
        clock.says(-int(time.time()) + 100, 0)
        clock.restart("two")
        trains_on(rig, job, before)
        need(not rig.job(job)["created_at"].startswith("1970"), "it is 1970 again")
        need(
            "is not synchronised" in rig.log("moed"),
            "the log does not say that it waits for the time service",
        )


def run_moed(rig, *args):
    """moed with the rig's options and something to do at once."""
    return subprocess.run(
        [MOED, "--config", os.path.join(rig.dir, "moed.yaml"), *args],
        env=clean_env(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE * 60,
    )


def lose(rig):
    """The controller dies and its disk with it; the directory is kept aside."""
    rig.kill(rig.moed)
    aside = rig.state_dir + ".lost"
    os.rename(rig.state_dir, aside)
    return aside


def restore(rig, file):
    r = run_moed(rig, "--restore", file)
    equal(r.returncode, 0, "moed --restore: %s%s" % (r.stdout, r.stderr))
    rig.start_moed()


def events(rig, kind):
    return rig.http("GET", "/v1/events?limit=1000&last=1&type=" + kind).json["items"]


def up(rig, node):
    return rig.json("node", node)["state"] == "up"


@suite.test
def test_no_state_is_no_start():
    with Rig(nodes=1) as rig:
        job = train(rig)
        before = pids(rig, job)
        aside = lose(rig)
        # gone with its parent's mount, or the empty directory below it
        for make in (lambda: None, lambda: os.mkdir(rig.state_dir)):
            make()
            r = run_moed(rig)
            need(
                r.returncode != 0
                and "no state of a controller" in r.stderr
                and "mounted" in r.stderr
                and "--restore" in r.stderr,
                "exit %d: %s" % (r.returncode, r.stderr),
            )
            need(
                not os.path.exists(rig.state_dir) or not os.listdir(rig.state_dir),
                "something was made",
            )
        os.rmdir(rig.state_dir)
        os.rename(aside, rig.state_dir)
        r = run_moed(rig, "--init")
        need(r.returncode != 0 and "already" in r.stderr, "exit %d: %s" % (r.returncode, r.stderr))
        rig.start_moed()
        trains_on(rig, job, before)


@suite.test
def test_a_beginning_that_was_cut_short_is_no_state():
    """kill -9 of --init at each of its syncs: no start takes what is there for a state, and --init
    said again makes one."""
    for n in range(1, 41):
        with Rig(nodes=1) as rig:
            rig.kill(rig.moed)
            shutil.rmtree(rig.state_dir)
            r = subprocess.run(
                [
                    "strace",
                    "-f",
                    "-qq",
                    "-o",
                    "/dev/null",
                    "-e",
                    "trace=fsync,fdatasync",
                    "-e",
                    "inject=fsync,fdatasync:signal=SIGKILL:when=%d" % n,
                    MOED,
                    "--config",
                    os.path.join(rig.dir, "moed.yaml"),
                    "--init",
                ],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=clean_env(),
                text=True,
            )
            whole = r.returncode == 0
            if not whole:
                r = run_moed(rig)
                need(
                    r.returncode != 0 and "--init" in r.stderr,
                    "a start after sync %d: exit %d: %s" % (n, r.returncode, r.stderr),
                )
                r = run_moed(rig, "--init")
                need(
                    r.returncode == 0,
                    "--init again after sync %d: exit %d: %s" % (n, r.returncode, r.stderr),
                )
            need(not os.path.exists(os.path.join(rig.state_dir, "beginning")), "the marker stayed")
            rig.start_moed()
        if whole:
            return
    raise Failed("--init did not end within %d syncs" % n)


class TooLarge(http.server.BaseHTTPRequestHandler):
    """What a controller answers whose state is larger than a backup may be."""

    detail = (
        "backup: the state has more than 1024 MiB, and moed --restore reads no more: stop moed, "
        "copy /var/lib/moe (cp -a) and start it again"
    )

    def do_GET(self):
        body = json.dumps(
            {
                "type": "about:blank",
                "title": "Insufficient Storage",
                "status": 507,
                "detail": self.detail,
            }
        ).encode()
        self.send_response(507)
        self.send_header("Content-Type", "application/problem+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@suite.test
def test_a_backup_that_is_refused_leaves_the_file_of_before():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), TooLarge)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with tempfile.TemporaryDirectory() as directory:
            file = os.path.join(directory, "backup")
            with open(file, "w") as f:
                f.write("of yesterday")
            r = moectl(
                "backup",
                file,
                "--url",
                "http://127.0.0.1:%d" % server.server_port,
                env=clean_env(MOE_TOKEN="moe_0a0b0c0d_" + "0" * 64),
                check=False,
            )
            equal(
                (r.returncode, r.stdout, r.stderr),
                (1, "", "moectl: %s\n" % TooLarge.detail),
                "refused",
            )
            equal(
                (os.listdir(directory), open(file).read()),
                (["backup"], "of yesterday"),
                "what lies there",
            )
    finally:
        server.shutdown()


@suite.test
def test_restore_while_a_job_trains_on():
    with Rig(nodes=2) as rig:
        job = train(rig)
        ended = rig.submit(command_recipe("ended", ["/bin/true"]))
        rig.wait_state(ended, "completed")
        before, file = pids(rig, job), os.path.join(rig.dir, "backup")
        said = rig.run("backup", file).stdout
        need("2 jobs, 2 nodes" in said, said)
        equal(os.stat(file).st_mode & 0o777, 0o600, "mode of the backup")
        later = train(rig, "later")  # the backup does not know it
        unknown = pids(rig, later)
        revoked = rig.json("token", "create", "--role", "viewer", "--user", "x")
        # acknowledged by the controller that is lost
        rig.wait_iteration(job, rig.job(job)["iteration"] + 100)
        lose(rig)
        r = run_moed(rig, "--restore", os.path.join(rig.dir, "moed.yaml"))
        need(
            r.returncode != 0 and "no backup" in r.stderr and not os.path.exists(rig.state_dir),
            "exit %d: %s" % (r.returncode, r.stderr),
        )
        with open(file, "rb") as f:
            whole = f.read()
        for name, broken in (
            ("cut", whole[:-1]),
            ("flipped", whole[:-40] + bytes([whole[-40] ^ 1]) + whole[-39:]),
        ):
            with open(file + "." + name, "wb") as f:
                f.write(broken)
            r = run_moed(rig, "--restore", file + "." + name)
            need(
                r.returncode != 0
                and "cut or damaged" in r.stderr
                and not os.path.exists(rig.state_dir),
                "exit %d: %s" % (r.returncode, r.stderr),
            )
        with open(file + ".large", "wb") as f:
            f.write(whole)
            f.truncate((1 << 30) + 65536)  # without a block for it
        r = run_moed(rig, "--restore", file + ".large")
        need(
            r.returncode != 0
            and "larger than any backup (1024 MiB)" in r.stderr
            and not os.path.exists(rig.state_dir),
            "exit %d: %s" % (r.returncode, r.stderr),
        )
        restore(rig, file)
        r = run_moed(rig, "--restore", file)
        need(
            r.returncode != 0 and "holds the state" in r.stderr,
            "exit %d: %s" % (r.returncode, r.stderr),
        )
        # what the backup knows is adopted
        wait_until(lambda: up(rig, "node-0"), 30, "node-0 back")
        trains_on(rig, job, before)
        wait_until(lambda: without_gaps(rig, job), 60, "samples of after the backup are sent again")
        equal(rig.job(ended)["state"], "completed", "the job that had ended")
        equal(
            rig.http("GET", "/v1/jobs", token=revoked["token"], tcp=True).status,
            401,
            "a token of after the backup",
        )
        need(events(rig, "controller.restored"), "no event says that the state was restored")
        # what it does not know is kept and named, and its node waits
        wait_until(
            lambda: [e["node"] for e in events(rig, "step.unknown")] == ["node-1"],
            30,
            "the unknown step is reported",
        )
        step = "%s.a1" % later
        need(step in json.dumps(rig.json("why", "node-1")), "why node-1 does not name it")
        equal(
            [n.get("unknown_steps") for n in rig.json("nodes")["items"]],
            [None, [step]],
            "unknown steps of the nodes",
        )
        doctor = rig.run("doctor", "node-1", check=False)
        need(
            doctor.returncode == 1 and "moectl resolve %s --kill" % step in doctor.stdout,
            doctor.stdout,
        )
        need(all(alive(p) for p in unknown), "ranks of the unknown step died")
        equal(
            rig.run("status", later, check=False).returncode,
            5,
            "status of the job that the backup does not know",
        )
        fresh = rig.submit(command_recipe("fresh", ["/bin/true"], gpus=2))
        need(int(fresh[2:]) > 1000000, "the first id after a restore: %s" % fresh)
        equal(rig.job(fresh)["state"], "queued", "a job that needs the node")
        # until somebody decides
        equal(
            rig.run("resolve", "j-77.a1", "--kill", check=False).returncode,
            1,
            "a step that nobody holds",
        )
        equal(
            rig.run("resolve", "%s.a1" % job, "--gone", check=False).returncode,
            1,
            "a step that its agent has",
        )
        rig.run("resolve", step, "--kill")
        wait_until(lambda: not any(alive(p) for p in unknown), 30, "the unknown ranks gone")
        rig.wait_state(fresh, "completed")
        trains_on(rig, job, before)
        # and a restart says the same
        rig.kill(rig.moed)
        rig.start_moed()
        wait_until(lambda: up(rig, "node-0") and up(rig, "node-1"), 30, "nodes back")
        trains_on(rig, job, before)


@suite.test
def test_restore_of_what_was_before_a_restart():
    """After the backup the job's attempt died and another one runs: it is no other's to start a
    third beside it."""
    with Rig(nodes=1, moed=SILENT_SOON) as rig:
        job, file = train(rig), os.path.join(rig.dir, "backup")
        rig.run("backup", file)
        os.kill(pids(rig, job)[0], signal.SIGKILL)
        wait_until(
            lambda: rig.job(job)["attempt"] == 2 and (rig.job(job)["iteration"] or 0) >= 3,
            30,
            "attempt 2",
        )
        second = pids(rig, job)
        lose(rig)
        restore(rig, file)
        wait_until(
            lambda: "%s.a2 on node-0" % job in (rig.job(job)["reason"] or ""),
            60,
            "the job waits for the unknown attempt",
        )
        need(all(alive(p) for p in second), "the unknown attempt died")
        need("resolve" in json.dumps(rig.json("why", job)), "why names no way on")
        rig.run("resolve", "%s.a2" % job, "--kill")
        wait_until(
            lambda: (rig.job(job)["attempt"] or 0) > 1000 and (rig.job(job)["iteration"] or 0) >= 3,
            60,
            "the next attempt, above all that may have been",
        )
        need(not any(alive(p) for p in second), "attempt 2 lives on")


@suite.test
def test_restore_of_what_waited_then():
    """Queued in the backup, running in truth: nothing starts while a node of then is not heard, nor
    beside what it holds."""
    with Rig(nodes=1, moed=SILENT_SOON) as rig:
        rig.run("drain", "node-0", "--reason", "test")
        job, file = rig.submit(
            command_recipe(
                "train", [RANK, "--steps", "1000000", "--step-ms", "20"], gpus=2, steps=1000000
            )
        ), os.path.join(rig.dir, "backup")
        rig.run("backup", file)
        rig.run("undrain", "node-0")
        rig.wait_iteration(job, 3)
        first = pids(rig, job)
        rig.agents["node-0"].send_signal(signal.SIGSTOP)
        lose(rig)
        restore(rig, file)
        rig.run("undrain", "node-0")
        wait_until(
            lambda: "node-0 was not heard since" in (rig.job(job)["reason"] or ""),
            30,
            "the job waits for the node",
        )
        rig.agents["node-0"].send_signal(signal.SIGCONT)
        wait_until(
            lambda: "%s.a1 on node-0" % job in (rig.job(job)["reason"] or ""),
            30,
            "the job waits for the unknown attempt",
        )
        need(all(alive(p) for p in first), "the unknown attempt died")
        rig.run("resolve", "%s.a1" % job, "--kill")
        wait_until(
            lambda: (rig.job(job)["attempt"] or 0) > 1000, 60, "the attempt of the restored state"
        )


@suite.test
def test_an_old_copy_is_reported():
    with Rig(nodes=1, moed=SILENT_SOON) as rig:
        job = train(rig)
        before = pids(rig, job)
        rig.kill(rig.moed, signal.SIGTERM)
        copy = rig.state_dir + ".copy"
        shutil.copytree(rig.state_dir, copy)
        for _ in range(2):
            rig.start_moed()
            trains_on(rig, job, before)
            rig.kill(rig.moed, signal.SIGTERM)
        shutil.rmtree(rig.state_dir)
        os.rename(copy, rig.state_dir)
        rig.start_moed()
        wait_until(lambda: events(rig, "controller.stale"), 30, "the old copy is reported")
        need("old copy" in json.dumps(rig.json("why", "node-0")), "why node-0 is silent")
        waits = rig.submit(command_recipe("waits", ["/bin/true"]))
        equal(rig.job(waits)["state"], "queued", "state of a job that the node would have to take")
        need(all(alive(p) for p in before), "ranks died")
        # a backup of it begins an incarnation that agents obey
        file = os.path.join(rig.dir, "backup")
        rig.run("backup", file)
        lose(rig)
        restore(rig, file)
        wait_until(
            lambda: up(rig, "node-0") and "old copy" not in json.dumps(rig.json("why", "node-0")),
            30,
            "the node takes work",
        )
        trains_on(rig, job, before)
        rig.run("cancel", job)
        rig.wait_state(waits, "completed")


sys.exit(1 if suite.main() else 0)
