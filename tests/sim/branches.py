#!/usr/bin/python3
"""Which branches of the rules (daemon/core/rules) no seed of the simulator met: a build of its own
with gcc's counters, the seeds, and a line for each file. A branch is a way out of a condition, as
the compiler has it: `a && b` has four. Those of assertions are left out: they are there to be never
taken.

Usage: branches.py [--list] FIRST-LAST   (make sim-branches SEEDS=1-300)
--list: each line of which a branch was not met, too. The counts are of all seeds together."""
import collections
import gzip
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = "build-branches"
RULES = "daemon/core/rules"


def run(*command, **more):
    subprocess.run(command, cwd=ROOT, check=True, **more)


def build():
    # one optimisation, for the checks of the C library want it
    flags = ["BUILD=" + BUILD, "OPT=-O1 -g", "CFLAGS=--coverage", "LDFLAGS=--coverage"]
    run("make", "--no-print-directory", "-j%d" % os.cpu_count(), *flags, BUILD + "/sim")


def forget_counts():
    for dir, _, files in os.walk(os.path.join(ROOT, BUILD)):
        for name in files:
            if name.endswith(".gcda"):
                os.unlink(os.path.join(dir, name))


def counts(source):
    """{line: [how often each branch was taken]} of one file."""
    stem = os.path.join(BUILD, source[:-2])
    out = subprocess.run(
        ["gcov", "--json-format", "--stdout", "--branch-probabilities", stem + ".o"],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ).stdout
    text = gzip.decompress(out) if out[:2] == b"\x1f\x8b" else out
    ret = collections.defaultdict(list)
    for file in json.loads(text)["files"]:
        for line in file["lines"] if file["file"] == source else ():
            ret[line["line_number"]] += [b["count"] for b in line["branches"]]
    return ret


def main():
    args = [a for a in sys.argv[1:] if a != "--list"]
    if len(args) != 1:
        sys.exit(__doc__)
    build()
    forget_counts()
    # how often the rest came is sim's to judge
    seen = subprocess.run(
        [BUILD + "/sim", "--seeds", args[0]], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ).stdout
    if "no violation" not in seen:
        sys.exit("branches: the seeds %s do not pass" % args[0])
    total = met = 0
    unmet = []
    print("| file | branches | met | not met |\n|--|--|--|--|")
    for name in sorted(os.listdir(os.path.join(ROOT, RULES))):
        if not name.endswith(".c"):
            continue
        source = os.path.join(RULES, name)
        with open(os.path.join(ROOT, source), encoding="utf-8") as f:
            lines = f.read().split("\n")
        n = taken = 0
        for at, branches in sorted(counts(source).items()):
            if "assert(" in lines[at - 1]:
                continue
            n += len(branches)
            taken += sum(1 for b in branches if b)
            if branches and not all(branches):
                unmet.append("%s:%d: %s" % (source, at, lines[at - 1].strip()))
        total += n
        met += taken
        if n:
            print("| %s | %d | %d | %d |" % (name, n, taken, n - taken))
    print("| all | %d | %d (%.1f %%) | %d |" % (total, met, 100 * met / total, total - met))
    if "--list" in sys.argv:
        print("\n".join(unmet))


if __name__ == "__main__":
    main()
