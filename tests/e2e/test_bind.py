#!/usr/bin/python3
"""Binding is read back from the kernel: a binding that silently did nothing fails the launch
(verify: strict), is reported (warn), or is not checked (off)."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import BUILD, Daemon, Suite, clean_env, command_recipe, equal, need, wait_until
from rig import AGENT, Rig, write_config

NO_AFFINITY = os.path.join(BUILD, "tests/fake/noaffinity")
suite = Suite()


class Deaf(Rig):
    """Agents on whose machine binding cpus answers success and does nothing."""

    def spawn(self, program, name, options, **env):
        if program != AGENT:
            return super().spawn(program, name, options, **env)
        config = write_config(os.path.join(self.dir, name + ".yaml"), options)
        with open(os.path.join(self.dir, "log", name + ".log"), "ab") as log:
            return Daemon(
                [NO_AFFINITY, AGENT, "--config", config],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=clean_env(**env),
                start_new_session=True,
            )


def run(rig, name, verify):
    """The job, once it runs or has failed: verification has decided then, whatever it decided."""
    job = rig.submit(
        command_recipe(name, ["/bin/sleep", "1000"], 2, bind={"cpu": "numa", "verify": verify})
    )
    return (
        job,
        wait_until(
            lambda: [d for d in [rig.job(job)] if d["state"] in ("running", "failed")],
            60,
            "verdict on %s" % name,
        )[0],
    )


@suite.test
def each_rank_on_its_own_core(_):
    with Rig(nodes=1, gpus_per_node=2) as rig:
        job, doc = run(rig, "own", "strict")
        equal(doc["state"], "running", "state (%s)" % doc["reason"])
        ranks = rig.json("ranks", job)["items"]
        seen = [sorted(os.sched_getaffinity(r["pid"])) for r in ranks]
        need(
            seen[0] and seen[1] and not set(seen[0]) & set(seen[1]), "the ranks' cpus are %s" % seen
        )
        equal([r["bind_verified"] for r in ranks], [True, True], "bind_verified")


@suite.test
def silent_no_op_fails_the_launch(rig):
    job = run(rig, "strict", "strict")[1]
    equal(job["state"], "failed", "state (%s)" % job["reason"])
    need("bind" in job["reason"] and "cpus" in job["reason"], "reason: %s" % job["reason"])
    equal(job["attempt"], 1, "attempts")


@suite.test
def silent_no_op_is_reported(rig):
    job, doc = run(rig, "warn", "warn")
    equal(doc["state"], "running", "state (%s)" % doc["reason"])
    ranks = rig.json("ranks", job)["items"]
    equal([r["bind_verified"] for r in ranks], [False, False], "bind_verified")
    need(
        all("asked for cpus" in r["bind_note"] for r in ranks),
        "bind_note: %s" % [r["bind_note"] for r in ranks],
    )
    rig.run("cancel", job, "--now")
    rig.wait_state(job, "cancelled")


def main():
    if len(os.sched_getaffinity(0)) < 2:
        print("0 passed, 0 failed, 3 skipped")
        print(
            "skipped: each_rank_on_its_own_core silent_no_op_fails_the_launch "
            "silent_no_op_is_reported (one cpu: every binding is the whole machine)"
        )
        return 0
    rig = Deaf(nodes=1, gpus_per_node=2)
    rig.up()
    try:
        return suite.main(rig)
    finally:
        rig.down()


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
