#!/usr/bin/python3
"""Nothing leaves the controller before its records are synced: the system calls of moed during submits, cancels and launches are recorded (strace), and between the request that
causes records and each answer or launch command there must be a sync of the store."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import BUILD, Cluster, Suite, command_recipe, need, wait_until

suite = Suite()
TINY = os.path.join(BUILD, "tests/fake/tiny")
DIR = os.path.join(BUILD, "test-order")


def record(cluster, path, act):
    pid = cluster.status()["moed"]["pid"]
    tracer = subprocess.Popen(["strace", "-f", "-qq", "-s", "100000", "-e", "trace=fsync,fdatasync,recvfrom,recvmsg,read,sendto,sendmsg,write,writev", "-o", path, "-p", str(pid)],
                              stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: "TracerPid:\t0\n" not in open("/proc/%d/status" % pid).read(), 10, "strace attached")
        act()
    finally:
        tracer.terminate()
        tracer.wait()
    return open(path, errors="replace").read().splitlines()


def synced_before(lines, cause, answer):
    """Counts answers; each must have a sync between the latest cause and itself."""
    synced, asked, n = False, False, 0
    for line in lines:
        if re.search(r"\b(recvfrom|recvmsg|read)\(", line) and re.search(cause, line):
            asked, synced = True, False
        elif re.search(r"\b(fsync|fdatasync)\(.*= 0", line):
            synced = True
        elif asked and re.search(r"\b(sendto|sendmsg|write|writev)\(", line) and re.search(answer, line):
            need(synced, "left before the sync: " + line[:200])
            n += 1
            asked = False
    return n


@suite.test
def answers_and_commands_leave_after_the_sync(cluster):
    jobs = []

    def act():
        for i in range(6):
            jobs.append(cluster.submit(command_recipe("order-%d" % i, [TINY, os.path.join(DIR, "out-%d" % i)], 1)))
            cluster.wait_state(jobs[-1], "running")
            cluster.run("cancel", jobs[-1], "--now")
            cluster.wait_state(jobs[-1], "cancelled")
    lines = record(cluster, os.path.join(DIR, "trace.txt"), act)
    submits = synced_before(lines, r"POST /v1/jobs HTTP", r"HTTP/1\.1 201")
    need(submits >= 6, "only %d of 6 submits were seen in the trace" % submits)
    launches = synced_before(lines, r"POST /v1/jobs HTTP", r'\\"launch\\":\{')
    need(launches >= 6, "only %d of 6 launches were seen in the trace" % launches)
    cancels = synced_before(lines, r"POST /v1/jobs/j-\d+/cancel HTTP", r"HTTP/1\.1 20")
    need(cancels >= 6, "only %d of 6 cancels were seen in the trace" % cancels)


def main():
    subprocess.run(["rm", "-rf", DIR], check=True)
    os.makedirs(DIR)
    with Cluster(os.path.join(DIR, "cluster"), nodes=1, gpus_per_node=2) as c:
        return suite.main(c)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
