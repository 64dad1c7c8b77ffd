#!/usr/bin/python3
"""Nothing leaves the controller before its records are synced: the system calls of moed during
submits, cancels and launches are recorded (strace), and between the request and its answer or
launch command the very records that it caused must be written, and then synced: a sync of other
records is none."""
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
    tracer = subprocess.Popen(
        [
            "strace",
            "-f",
            "-qq",
            "-s",
            "100000",
            "-e",
            "trace=fsync,fdatasync,recvfrom,recvmsg,read,pwrite64,sendto,sendmsg,write,writev",
            "-o",
            path,
            "-p",
            str(pid),
        ],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(
            lambda: "TracerPid:\t0\n" not in open("/proc/%d/status" % pid).read(),
            10,
            "strace attached",
        )
        act()
    finally:
        tracer.terminate()
        tracer.wait()
    return open(path, errors="replace").read().splitlines()


WRITES, SYNC, SENDS = (
    re.compile(r"\bpwrite64\("),
    re.compile(r"\bf(data)?sync\(.*= 0"),
    re.compile(r"\b(sendto|sendmsg|write|writev)\("),
)
READS = re.compile(r"\b(recvfrom|recvmsg|read)\(")


def synced_before(lines, cause, record, answer):
    """Whether the answer was seen; between its cause and itself the record must be written and
    synced. The words are as JSON has them."""
    cause, record, answer = (
        re.compile(word.replace('"', r'\\"')) for word in (cause, record, answer)
    )
    asked = written = synced = False
    for line in lines:
        if READS.search(line) and cause.search(line):
            asked, written, synced = True, False, False
        elif asked and WRITES.search(line) and record.search(line):
            written, synced = True, False
        elif SYNC.search(line):
            synced = True
        elif asked and SENDS.search(line) and answer.search(line):
            need(
                written and synced,
                "left before its records were %s: %s"
                % ("synced" if written else "written", line[:200]),
            )
            return True
    return False


@suite.test
def answers_and_commands_leave_after_the_sync(cluster):
    jobs = []

    def act():
        for i in range(6):
            jobs.append(
                cluster.submit(
                    command_recipe("order-%d" % i, [TINY, os.path.join(DIR, "out-%d" % i)], 1)
                )
            )
            cluster.wait_state(jobs[-1], "running")
            cluster.run("cancel", jobs[-1], "--now")
            cluster.wait_state(jobs[-1], "cancelled")

    lines = record(cluster, os.path.join(DIR, "trace.txt"), act)
    for i, job in enumerate(jobs):
        n = job.split("-")[1]
        asked = r"POST /v1/jobs HTTP.*\"order-%d\"" % i
        what = {
            "submit": (asked, r"order-%d\b" % i, r"HTTP/1\.1 201.*\"%s\"" % job),
            "launch": (
                asked,
                r"attempt 1 of order-%d\b|\"place\",\"t\":\d+,\"job\":%s," % (i, n),
                r"\"launch\":\{\"job\":%s," % n,
            ),
            "cancel": (
                r"POST /v1/jobs/%s/cancel HTTP" % job,
                r"\"job\.stopping\",\"job\":\"%s\"|\"intent\",\"t\":\d+,\"job\":%s," % (job, n),
                r"HTTP/1\.1 20.*\"%s\"" % job,
            ),
        }
        for name, words in what.items():
            need(
                synced_before(lines, *words), "the %s of %s is not seen in the trace" % (name, job)
            )


def main():
    subprocess.run(["rm", "-rf", DIR], check=True)
    os.makedirs(DIR)
    with Cluster(os.path.join(DIR, "cluster"), nodes=1, gpus_per_node=2) as c:
        return suite.main(c)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
