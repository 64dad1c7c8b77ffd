#!/usr/bin/python3
"""moe-agent as a systemd unit: steps are transient services, in a booted container. Not part of make check: it needs root, systemd-nspawn and a root file system made by
    debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,libjson-c5,libpcre2-8-0,libcurl4,libsystemd0,libhwloc15,libnuma1,procps bookworm ROOT http://deb.debian.org/debian
Usage: agent_systemd.py ROOT. The controller is scripted and runs outside; its socket is bound into the container."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fake_moed import FakeMoed
from lib import BUILD, ROOT, Suite, equal, need, wait_until

suite = Suite()
FAKE_RANK = ["/usr/local/bin/fake-rank", "--steps", "100000", "--step-ms", "20", "--truth", "/tmp"]


def inside(name):
    """Pids of processes of other pid namespaces than ours whose command line holds name."""
    found, own = [], os.readlink("/proc/self/ns/pid")
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid) as f:
                if name in f.read() and os.readlink("/proc/%s/ns/pid" % pid) != own:
                    found.append(int(pid))
        except OSError:
            pass
    return sorted(found)


def install(root):
    libexec = root + "/usr/local/libexec/moe"
    os.makedirs(libexec, exist_ok=True)
    for name in ("moe-agent", "moe-stepd", "moe-discover", "moe-ckpt", "moe-probe"):
        shutil.copy(os.path.join(BUILD, name), libexec)
    shutil.copy(os.path.join(BUILD, "tests/fake/rank"), root + "/usr/local/bin/fake-rank")
    for name in ("moe-agent.service", "moe.slice"):
        shutil.copy(os.path.join(ROOT, "units", name), root + "/etc/systemd/system/")
    shutil.copy(os.path.join(ROOT, "units/moe.tmpfiles.conf"), root + "/etc/tmpfiles.d/moe.conf")
    os.makedirs(root + "/etc/moe", exist_ok=True)
    with open(root + "/etc/moe/agent.yaml", "w") as f:
        f.write("controller: unix:/shared/moed.sock\nnode: n0\ngpus: 4\nonly_fake_gpus: true\nallow_root: true\n")
    wants = root + "/etc/systemd/system/multi-user.target.wants"
    os.makedirs(wants, exist_ok=True)
    if not os.path.lexists(wants + "/moe-agent.service"):
        os.symlink("/etc/systemd/system/moe-agent.service", wants + "/moe-agent.service")


def launch(moed, attempt, argv, n, wait, user=None):
    order = {
        "job": 1, "attempt": attempt, "name": "t", "user": user, "allow_root": True, "first_rank": 0, "n_local": n, "world": n, "node_rank": 0, "n_nodes": 1, "gpus": list(range(n)), "master_addr": "127.0.0.1",
        "master_port": 25000 + attempt * 4, "hold_ports": True, "argv": argv, "workdir": "/tmp", "env": [],
        "bind": {"cpu": "numa", "memory": "preferred", "nic": "nearest", "smt": "auto", "verify": "strict", "reserve_cores": 0}, "checkpoint_dir": None, "resume": -1, "steps": None,
        "stop_signal": 15, "stop_grace_us": 3000000, "metrics_rank": "first", "rules": [], "announced_is_complete": True}
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
    moed.wait(lambda: len(moed.hellos) > hellos, 30, "hello of the agent that systemd started again")
    equal([(s["job"], s["attempt"], s["state"]) for s in moed.hellos[-1]["steps"]], [(1, 1, "running")], "steps")
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
    equal([(e["code"], e["cause"]) for e in moed.note_list(1, 3, "exit")], [(0, "stopped")] * 2, "exits")
    wait_until(lambda: not inside("moe-stepd"), 10, "no stepd is left")


def main(root):
    install(root)
    shared = tempfile.mkdtemp(prefix="moe-systemd-")
    with FakeMoed(shared + "/moed.sock") as moed, open(shared + "/console", "wb") as console:
        container = subprocess.Popen(
            ["systemd-nspawn", "-D", root, "--register=no", "--keep-unit", "--volatile=overlay", "--private-network", "--bind=%s:/shared" % shared, "-b", "--console=pipe"],
            stdin=subprocess.DEVNULL, stdout=console, stderr=console, env=dict(os.environ, SYSTEMD_NSPAWN_UNIFIED_HIERARCHY="1"))
        try:
            moed.wait(lambda: moed.hellos, 120, "hello out of the container")
            return suite.main(moed)
        finally:
            for _ in range(2):  # the first asks for a shutdown, the second ends it
                container.send_signal(signal.SIGTERM)
                try:
                    container.wait(20)
                    break
                except subprocess.TimeoutExpired:
                    pass
            shutil.rmtree(shared)


if __name__ == "__main__":
    root_directory = sys.argv.pop(1)
    sys.exit(1 if main(root_directory) else 0)
