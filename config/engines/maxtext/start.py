"""Starts MaxText so that it resumes from the step that was chosen, and not from the newest that
lies there.

MaxText looks for the newest step below its directory, and no flag says another; saves of steps that
are there already it leaves out. So whatever is newer than the chosen step is moved out of its sight
first, to set-aside/ATTEMPT beside checkpoints; nothing is deleted, and a fresh start sets all of it
aside. Process 0 does it before it hosts JAX's coordinator, for which all others wait.

start.py -m MaxText.train CONFIG WORDS: that module and the base configuration as the tree has them;
start.py MAIN.py WORDS: that script.
"""
import importlib.util
import os
import re
import runpy
import sys

MODULES = ("maxtext.trainers.pre_train.train", "MaxText.train")  # since v26.4, and before
CONFIGS = (
    "src/maxtext/configs/base.yml",
    "src/MaxText/configs/base.yml",
    "MaxText/configs/base.yml",
)


def set_aside(directory, resume, attempt):
    """Names of the steps that were moved."""
    checkpoints = os.path.join(directory, "moe", "checkpoints")
    names = os.listdir(checkpoints) if os.path.isdir(checkpoints) else []
    # a save that never ended has a suffix behind its step, and would be in the way of the next one
    newer = [
        name
        for name in names
        if re.match(r"\d+(\.orbax-checkpoint-tmp.*)?$", name) and int(name.split(".")[0]) > resume
    ]
    if newer:
        # a controller begun anew counts its jobs from 1 again: nothing is put over what an earlier
        # one set aside
        aside = first = os.path.join(directory, "moe", "set-aside", attempt)
        again = 1
        while os.path.isdir(aside):
            again += 1
            aside = "%s-%d" % (first, again)
        os.makedirs(aside)
        for name in newer:
            os.rename(os.path.join(checkpoints, name), os.path.join(aside, name))
        print(
            "set aside before resuming from %s: %s, now in %s"
            % (
                resume if resume >= 0 else "nothing",
                " ".join(sorted(newer, key=lambda n: int(n.split(".")[0]))),
                aside,
            ),
            flush=True,
        )
    return newer


def module():
    """The training loop of this version of MaxText."""
    for name in MODULES:
        try:
            if importlib.util.find_spec(name):
                return name
        except ModuleNotFoundError:
            pass
    sys.exit(
        "start.py: neither %s can be imported; engine.workdir must be a checkout of MaxText, or "
        "engine.python have it installed" % " nor ".join(MODULES)
    )


def main(words):
    if os.environ.get("RANK", "0") == "0" and os.environ.get("MOE_CHECKPOINT_DIR"):
        set_aside(
            os.environ["MOE_CHECKPOINT_DIR"],
            int(os.environ.get("MOE_RESUME_ITERATION", "-1")),
            "%s.%s" % (os.environ.get("MOE_JOB", "job"), os.environ.get("MOE_ATTEMPT", "0")),
        )
    if words and words[0].endswith(".py"):
        sys.argv = list(words)
        sys.path[0] = os.path.dirname(os.path.abspath(words[0]))
        runpy.run_path(words[0], run_name="__main__")
        return
    if words[:1] == ["-m"]:
        words = words[2:]
    if os.path.isdir("src"):
        sys.path.insert(0, os.path.abspath("src"))
    sys.path[1:2] = [os.getcwd()]
    if words and words[0] in CONFIGS and not os.path.exists(words[0]):
        words = [next((c for c in CONFIGS if os.path.exists(c)), words[0])] + words[1:]
    sys.argv = ["start.py"] + list(words)
    runpy.run_module(module(), run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
