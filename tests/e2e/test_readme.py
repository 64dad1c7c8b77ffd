#!/usr/bin/python3
"""The commands of README's first job, as they stand there, by somebody new; then all of them once
more. Usage: test_readme.py [TEST...]"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import MOECTL, ROOT, Suite, clean_env, need

suite = Suite()
WORK = tempfile.mkdtemp(prefix="moe-readme-")


def commands():
    """Those that call moectl, here with checkpoints in a directory that is ours (the recipe names
    one of the user's in /tmp)."""
    with open(os.path.join(ROOT, "README.md")) as f:
        block = re.search(r"^## Your first job\n\n((?:    .*\n)+)", f.read(), re.M).group(1)
    for line in block.splitlines():
        line = line.split("#")[0].strip().split("&& ")[-1].replace("build/moectl", MOECTL)
        yield line.replace(
            "submit config/", "submit --set checkpoint.dir=%s/ckpt config/" % WORK
        ) if "submit" in line else line


@suite.test
def first_job_twice():
    env = clean_env(HOME=WORK)
    env.pop("XDG_STATE_HOME", None)
    env.pop("MOE_DATA_DIR")
    told = []
    for turn in (1, 2):
        for line in commands():
            r = subprocess.run(
                ["/bin/sh", "-c", line],
                cwd=ROOT,
                env=env,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                timeout=600,
                stdin=subprocess.DEVNULL,
            )
            need(
                r.returncode == 0,
                lambda: "%s (time %d): exit status %d\n%s%s"
                % (line, turn, r.returncode, r.stdout[-1500:], r.stderr[-1500:]),
            )
            if " submit " in line:
                told.append(r.stdout)
    need(len(told) == 4, "submits: %d" % len(told))
    # its digits are this machine's
    losses = [float(x) for x in re.findall(r"\bloss (\d\.\d+)", told[0])]
    need(
        "nothing was left to do" not in told[0] and losses and losses[-1] < 3.1,
        "the first submit trains: " + told[0][-500:],
    )
    for text in told[1:]:
        need(
            re.search(r"nothing was left to do: j-\d+ had come to iteration 120 of 120", text)
            and "checkpoint.resume=never" in text,
            text[-500:],
        )


if __name__ == "__main__":
    try:
        failed = suite.main()
    finally:
        subprocess.run(
            [MOECTL, "local", "down", "--dir", os.path.join(WORK, ".local/state/moe/local")],
            env=clean_env(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        shutil.rmtree(WORK, ignore_errors=True)
    sys.exit(failed)
