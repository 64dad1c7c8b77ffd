#!/usr/bin/python3
"""A run of booted machines that is ended by a signal leaves none of them behind, and the next one
begins with what it finds. Run by tests/suites.d/68-booted: test_interrupted.py DIR."""
import glob
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))
from lib import ROOT, Failed, Suite, equal, need, wait_until  # noqa: E402

suite = Suite()
DIR = sys.argv.pop(1)


def marked(mark):
    """Cgroups of the run's machines, and the processes in them."""
    groups = glob.glob("/sys/fs/cgroup/**/%s-*" % mark, recursive=True)
    pids = set()
    for g in groups:
        for at, _, _ in os.walk(g):
            try:
                with open(at + "/cgroup.procs") as f:
                    pids |= {int(p) for p in f.read().split()}
            except OSError:
                pass
    return groups, pids


def namespaces(pid):
    return {os.readlink("/proc/%s/ns/%s" % (pid, kind)) for kind in ("mnt", "pid", "net")}


def started(pid):
    """In seconds of CLOCK_BOOTTIME."""
    with open("/proc/%s/stat" % pid) as f:
        return int(f.read().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")


def users(spaces, before):
    """Processes in one of these namespaces: without any, its mounts, machines and network devices
    are gone. Started before that time: the kernel gives the numbers of what is gone to the
    namespaces of others."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if namespaces(pid) & spaces and started(pid) <= before:
                found.append(pid)
        except OSError:
            pass
    return found


def devices():
    return sorted(os.listdir("/sys/class/net"))


class Run:
    """A machine of it is up."""

    def __init__(self):
        self.process = subprocess.Popen(
            [
                "setpriv",
                "--pdeathsig",
                "KILL",
                "tests/booted/run",
                DIR,
                "/usr/bin/python3",
                "tests/booted/hold.py",
                DIR,
            ],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        line = self.process.stdout.readline()
        if line != "up\n":
            raise Failed("the machine is not up: %s" % (line + self.process.communicate("", 60)[0]))
        with open("/proc/%d/task/%d/children" % (self.process.pid, self.process.pid)) as f:
            unshare = f.read().split()[0]
        with open("/proc/%s/task/%s/children" % (unshare, unshare)) as f:
            self.held = f.read().split()[0]
        with open("/proc/%s/environ" % self.held) as f:
            self.mark = re.search(r"BOOTED_GROUP=([^\0]+)", f.read()).group(1)
        self.groups, pids = marked(self.mark)
        self.spaces = set().union(*(namespaces(p) for p in pids | {int(self.held)})) - namespaces(
            "self"
        )
        need(len(pids) > 5, "a machine of %d processes" % len(pids))

    def end(self, number):
        """By this signal; None: in order."""
        self.ended = time.clock_gettime(time.CLOCK_BOOTTIME)
        if number:
            self.process.send_signal(number)
        else:
            self.process.stdin.close()
        equal(self.process.wait(60), -number if number else 0, "how the run ended")

    def left(self):
        return sorted(marked(self.mark)[1]) + users(self.spaces, self.ended)


@suite.test
def nothing_is_left_of_a_run_that_a_signal_ends(_):
    before = devices()
    for number in (signal.SIGTERM, signal.SIGKILL):
        run = Run()
        need(len(run.spaces) >= 5, "namespaces of the run and its machine: %s" % run.spaces)
        run.end(number)
        wait_until(
            lambda: need(not run.left(), "%s" % run.left()) or True,
            30,
            "nothing is left after %s" % number.name,
        )
        equal(devices(), before, "network devices")
        with open("/proc/self/mounts") as f:
            need(DIR not in f.read(), "something of it is mounted")


@suite.test
def the_next_run_ends_what_it_finds(_):
    """At once after a kill; and what was left in a cgroup of an earlier run, however it came to be
    left."""
    run = Run()
    group = os.path.join(os.path.dirname(run.groups[0]), run.mark + "-lost")
    os.mkdir(group)
    lost = subprocess.Popen(["sleep", "1000"])
    try:
        with open(group + "/cgroup.procs", "w") as f:
            f.write(str(lost.pid))
        run.end(signal.SIGKILL)
        following = Run()
        equal(lost.wait(30), -signal.SIGKILL, "how a process of the earlier run ended")
    finally:
        lost.kill()
        lost.wait()
        if os.path.exists(group):
            os.rmdir(group)
    equal(users(run.spaces, run.ended), [], "processes of the earlier run")
    following.end(None)
    equal((following.left(), marked(run.mark)[0]), ([], []), "processes and cgroups that are left")


sys.exit(1 if suite.main(None) else 0)
