#!/usr/bin/python3
"""What a controller may believe of its own past: a wall clock that was wrong, a state directory that is not there, a state that was put back from a backup. Jobs train on through all of it."""
import calendar
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import BUILD, Suite, command_recipe, equal, need, wait_until  # noqa: E402
from rig import MOED, RANK, Rig  # noqa: E402

HOUR = 3600
suite = Suite()


def train(rig, name="train", gpus=2):
    """A job that runs on; its id."""
    job = rig.submit(command_recipe(name, [RANK, "--steps", "1000000", "--step-ms", "20"], gpus=gpus, steps=1000000))
    rig.wait_iteration(job, 3)
    return job


def pids(rig, job):
    return sorted(r["pid"] for r in rig.json("ranks", job)["items"])


def trains_on(rig, job, before):
    """The same processes in the same attempt get on."""
    now = rig.job(job)
    rig.wait_iteration(job, (now["iteration"] or 0) + 3)
    equal(pids(rig, job), before, "pids of the ranks")
    equal(rig.job(job)["attempt"], 1, "attempt")


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
        self.rig.moed = self.rig.spawn(MOED, "moed", self.rig.moed_options, LD_PRELOAD=os.path.join(BUILD, "tests/fake/preload/wallclock.so"), FAKE_CLOCK=self.file, MOE_BOOT_ID=boot,
                                       ASAN_OPTIONS=san + ":verify_asan_link_order=0")
        wait_until(lambda: self.rig.http("GET", "/healthz").status == 200, 30, "moed serves")

    def restart(self, boot=None):
        self.rig.kill(self.rig.moed, signal.SIGTERM)
        self.start(boot)


def seconds(time_text):
    return calendar.timegm(time.strptime(time_text[:19], "%Y-%m-%dT%H:%M:%S"))


def same_time(seen, wanted, what):
    """A minute more or less is no wrong clock: the time that a reboot took is not known when nobody vouches for the clock."""
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
        token = rig.json("token", "create", "--role", "viewer", "--user", "ada", "--ttl", "12h")["token"]
        # the controller's machine boots with a clock half a day and a little ahead
        clock.says(13 * HOUR, 0)
        clock.restart("two")
        trains_on(rig, job, before)
        need(charged(rig, job) < 2 * (time.monotonic() - began + 60), "%g GPU seconds" % charged(rig, job))
        rig.json("token", "create", "--role", "viewer", "--user", "tomorrow", "--ttl", "12h")
        equal(rig.http("GET", "/v1/jobs", token=token, tcp=True).status, 401, "a token of 12 h, 13 h later as far as the controller knows")
        # the time service finds it out while the controller runs
        clock.says(0, 1)
        wait_until(lambda: rig.http("GET", "/v1/jobs", token=token, tcp=True).status == 200, 30, "the token is good again")
        trains_on(rig, job, before)
        same_time(rig.job(job)["created_at"], created, "created_at")
        need(charged(rig, job) < 2 * (time.monotonic() - began + 60), "%g GPU seconds" % charged(rig, job))
        need("ahead of the synchronised wall clock" in rig.log("moed"), "the log does not name it")
        limit = time.time() + 12 * HOUR + 60
        for t in rig.json("token", "list")["items"]:
            need(not t["expires_at"] or seconds(t["expires_at"]) < limit, "token %s" % t)
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
        need(charged(rig, job) < 2 * (time.monotonic() - began + 60), "%g GPU seconds" % charged(rig, job))


@suite.test
def test_a_clock_of_1970():
    with Rig(nodes=1) as rig:
        clock = Clock(rig)
        rig.kill(rig.moed, signal.SIGTERM)
        shutil.rmtree(rig.state_dir)
        clock.says(-int(time.time()) + 100, 0)
        clock.start("one")
        job = train(rig)
        before = pids(rig, job)
        need(rig.job(job)["created_at"].startswith("1970"), "it is %s" % rig.job(job)["created_at"])
        clock.says(0, 1)
        wait_until(lambda: not rig.job(job)["created_at"].startswith("1970"), 30, "the time is right")
        trains_on(rig, job, before)
        need(charged(rig, job) < 3600, "%g GPU seconds" % charged(rig, job))
        # back in 1970, and no time service: never below the last record, and said
        clock.says(-int(time.time()) + 100, 0)
        clock.restart("two")
        trains_on(rig, job, before)
        need(not rig.job(job)["created_at"].startswith("1970"), "it is 1970 again")
        need("is not synchronised" in rig.log("moed"), "the log does not say that it waits for the time service")


sys.exit(1 if suite.main() else 0)
