#!/usr/bin/python3
"""moe-agent as a systemd unit: steps are transient services, in a booted container. Not part of
make check: it needs root, systemd-nspawn and a root file system made by
    debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,libjson-c5,libpcre2-8-0,\
libcurl4,libsystemd0,libhwloc15,libnuma1,procps bookworm ROOT http://deb.debian.org/debian
Usage: agent_systemd.py ROOT. The controller is scripted and runs outside; its socket is bound into
the container."""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fake_moed import FakeMoed
from lib import BUILD, PATIENCE, ROOT, Suite, equal, need, wait_until

suite = Suite()
FAKE_RANK = ["/usr/local/bin/fake-rank", "--steps", "100000", "--step-ms", "20", "--truth", "/tmp"]


container = None


def first():
    """Pid of our container's PID 1: the child of systemd-nspawn that is first in its pid namespace.
    Other containers may run on this machine."""
    with open("/proc/%d/task/%d/children" % (container.pid, container.pid)) as f:
        for pid in f.read().split():
            with open("/proc/%s/status" % pid) as status:
                if re.search(r"^NSpid:.*\s1$", status.read(), re.M):
                    return int(pid)
    raise AssertionError("the container does not run")


def inside(name):
    """Pids of processes of our container whose command line holds name."""
    found, ours = [], os.readlink("/proc/%d/ns/pid" % first())
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid) as f:
                if name in f.read() and os.readlink("/proc/%s/ns/pid" % pid) == ours:
                    found.append(int(pid))
        except OSError:
            pass
    return sorted(found)


def install(root):
    libexec = root + "/usr/local/libexec/moe"
    os.makedirs(libexec, exist_ok=True)
    for name in ("moe-agent", "moe-stepd", "moe-discover", "moe-ckpt", "moe-config", "moe-probe"):
        shutil.copy(os.path.join(BUILD, name), libexec)
    shutil.copy(os.path.join(BUILD, "tests/fake/rank"), root + "/usr/local/bin/fake-rank")
    for name in ("moe-agent.service", "moe.slice"):
        shutil.copy(os.path.join(ROOT, "units", name), root + "/etc/systemd/system/")
    shutil.copy(os.path.join(ROOT, "units/moe.tmpfiles.conf"), root + "/etc/tmpfiles.d/moe.conf")
    os.makedirs(root + "/etc/moe", exist_ok=True)
    with open(root + "/etc/group", "r+") as f:  # as moe.sysusers.conf makes it
        if "\nmoe:" not in f.read():
            f.write("moe:x:999:\n")
    with open(root + "/etc/moe/agent.yaml", "w") as f:
        f.write(
            "controller: unix:/shared/moed.sock\nnode: n0\ngpus: 4\nonly_fake_gpus: true\n"
            "allow_root: true\n"
        )
    os.makedirs(root + "/etc/systemd/system/moe-agent.service.d", exist_ok=True)
    # as a network is there until the agent has ended
    with open(root + "/etc/systemd/system/moe-agent.service.d/shared.conf", "w") as f:
        f.write("[Unit]\nRequiresMountsFor=/shared\n")
    wants = root + "/etc/systemd/system/multi-user.target.wants"
    os.makedirs(wants, exist_ok=True)
    if not os.path.lexists(wants + "/moe-agent.service"):
        os.symlink("/etc/systemd/system/moe-agent.service", wants + "/moe-agent.service")


def systemctl(*args):
    return subprocess.run(
        ["nsenter", "-t", str(first()), "-m", "-p", "-i", "-r", "-w", "systemctl", "--no-pager"]
        + list(args),
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE * 60,
    ).stdout


def launch(moed, attempt, argv, n, wait, user=None, grace=3):
    order = {
        "job": 1,
        "attempt": attempt,
        "name": "t",
        "user": user,
        "allow_root": True,
        "first_rank": 0,
        "n_local": n,
        "world": n,
        "node_rank": 0,
        "n_nodes": 1,
        "gpus": list(range(n)),
        "master_addr": "127.0.0.1",
        "master_port": 25000 + attempt * 4,
        "hold_ports": True,
        "argv": argv,
        "workdir": "/tmp",
        "env": [],
        "bind": {
            "cpu": "numa",
            "memory": "preferred",
            "nic": "nearest",
            "smt": "auto",
            "verify": "strict",
            "reserve_cores": 0,
        },
        "checkpoint_dir": None,
        "resume": -1,
        "steps": None,
        "stop_signal": 15,
        "stop_grace_us": grace * 1000000,
        "metrics_rank": "first",
        "rules": [],
        "announced_is_complete": True,
    }
    done = moed.order("launch", 1, attempt, launch=order)
    moed.wait_note(1, attempt, wait, deadline=30)
    done()


@suite.test
def step_is_a_unit_of_its_own(moed):
    launch(moed, 1, FAKE_RANK + ["--child"], 4, "running")
    stepd, ranks = inside("moe-stepd")[0], inside("fake-rank")
    with open("/proc/%d/cgroup" % stepd) as f:
        need("/moe.slice/moe-step-j1.a1.n0." in f.read(), "stepd's cgroup")
    for pid in ranks:
        with open("/proc/%d/cgroup" % pid) as f:
            need(f.read().strip().endswith(".service/ranks"), "cgroup of rank %d" % pid)


@suite.test
def agent_killed_and_back(moed):
    ranks, hellos = inside("fake-rank"), len(moed.hellos)
    os.kill(inside("moe-agent")[0], signal.SIGKILL)
    moed.wait(
        lambda: len(moed.hellos) > hellos, 30, "hello of the agent that systemd started again"
    )
    equal(
        [(s["job"], s["attempt"], s["state"]) for s in moed.hellos[-1]["steps"]],
        [(1, 1, "running")],
        "steps",
    )
    equal(inside("fake-rank"), ranks, "ranks")


@suite.test
def stepd_killed(moed):
    os.kill(inside("moe-stepd")[0], signal.SIGKILL)
    moed.wait_note(1, 1, "gone", deadline=30)
    equal(moed.note_list(1, 1, "lost")[0]["cause"], "supervisor-lost", "cause")
    equal(inside("fake-rank"), [], "ranks")


@suite.test
def another_user(moed):
    launch(moed, 2, ["/bin/sh", "-c", "id -un; exit 3"], 2, "gone", user="daemon")
    for e in moed.note_list(1, 2, "exit"):
        equal((e["code"], e["tail"]), (3, ["daemon"]), "exit")


@suite.test
def planned_stop(moed):
    launch(moed, 3, FAKE_RANK, 2, "running")
    done = moed.order("stop", 1, 3, signal=15, grace_us=3000000)
    moed.wait_note(1, 3, "gone", deadline=30)
    done()
    equal(
        [(e["code"], e["cause"]) for e in moed.note_list(1, 3, "exit")],
        [(0, "stopped")] * 2,
        "exits",
    )
    wait_until(lambda: not inside("moe-stepd"), 10, "no stepd is left")


@suite.test
def stopped_from_outside(moed):
    """systemctl stop of the unit: reported at once, the ranks have all of stop.grace, and systemd
    waits for it."""
    launch(
        moed,
        4,
        ["/bin/sh", "-c", "trap 'sleep 2; exit 0' TERM; while :; do sleep 0.1; done"],
        1,
        "running",
        grace=120,
    )
    unit = systemctl("list-units", "--plain", "--no-legend", "moe-step-*").split()[0]
    equal(
        systemctl("show", "-p", "TimeoutStopUSec", "--value", unit).strip(),
        "2min 30s",
        "TimeoutStopUSec",
    )
    need(
        "moe-agent.service" in systemctl("show", "-p", "After", "--value", unit),
        "steps end before the agent in a shutdown",
    )
    systemctl("stop", "--no-block", unit)
    moed.wait_note(1, 4, "stopping", deadline=20)
    need(not moed.note_list(1, 4, "exit"), "reported before any rank ended")
    moed.wait_note(1, 4, "gone", deadline=30)
    equal(
        [(e["code"], e["cause"]) for e in moed.note_list(1, 4, "exit")], [(0, "stopped")], "exits"
    )
    equal(moed.leaving, [], "nobody said that the machine goes down")


@suite.test
def machine_goes_down(moed):
    """A shutdown: the controller hears that, what the step was sent, its exits and that it is gone,
    before the machine is."""
    launch(
        moed,
        5,
        ["/bin/sh", "-c", "trap 'sleep 2; exit 0' TERM; while :; do sleep 0.1; done"],
        1,
        "running",
    )
    systemctl("poweroff", "--no-block")
    moed.wait_note(1, 5, "gone", deadline=60)
    equal([e["cause"] for e in moed.note_list(1, 5, "exit")], ["stopped"], "exits")
    need(moed.note_list(1, 5, "stopping"), "the step says that it is stopped")
    equal(moed.leaving, [True], "the agent says that its machine goes down")


def main(root):
    global container
    install(root)
    shared = tempfile.mkdtemp(prefix="moe-systemd-")
    with FakeMoed(shared + "/moed.sock") as moed, open(shared + "/console", "wb") as console:
        container = subprocess.Popen(
            [
                "systemd-nspawn",
                "-D",
                root,
                "--register=no",
                "--keep-unit",
                "--volatile=overlay",
                "--private-network",
                "--bind=%s:/shared" % shared,
                "-b",
                "--console=pipe",
            ],
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
            env=dict(os.environ, SYSTEMD_NSPAWN_UNIFIED_HIERARCHY="1"),
        )
        try:
            moed.wait(lambda: moed.hellos, 120, "hello out of the container")
            return suite.main(moed)
        finally:
            for _ in range(2):  # the first asks for a shutdown, the second ends it
                container.send_signal(signal.SIGTERM)
                try:
                    container.wait(PATIENCE * 20)
                    break
                except subprocess.TimeoutExpired:
                    pass
            shutil.rmtree(shared)


if __name__ == "__main__":
    root_directory = sys.argv.pop(1)
    sys.exit(1 if main(root_directory) else 0)
