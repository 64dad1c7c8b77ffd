"""Stands for primus/cli/main.py of Primus' Megatron backend (of torchtitan's it knows no more than
the steps and the tokenizer) where no GPU and no Primus is: takes its words, prints its lines,
keeps its rules about where a checkpoint goes, saves in torch_dist's layout, resumes, and saves
when it is asked to stop. It computes nothing. Beside it lies tests/fixtures/checkpoints.py."""
import math
import os
import signal
import sys
import time

import checkpoints

STEP_S = float(os.environ.get("STAND_IN_STEP_S", "0.1"))
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def words(argv):
    """{key: value} of `--key value` and `key=value`; the last stands."""
    found, i = {}, 0
    while i < len(argv):
        key, eq, value = argv[i].lstrip("-").partition("=")
        if (
            not eq
            and argv[i].startswith("--")
            and i + 1 < len(argv)
            and not argv[i + 1].startswith("--")
        ):
            value, i = argv[i + 1], i + 1
        found[key], i = value, i + 1
    return found


def say(text):
    print(
        time.strftime("[%Y%m%d %H:%M:%S]")
        + "[rank-%d/%d][INFO ] [--------trainer.py:2488] : %s" % (RANK, WORLD, text),
        file=sys.stderr,
        flush=True,
    )


def where(args):
    """As Primus: whatever --save says, it is workspace/team/user/experiment/checkpoints; only where
    the environment gives none of the names is this stand-in, which reads no experiment, content
    with --save."""
    names = [os.environ.get("PRIMUS_" + n) for n in ("WORKSPACE", "TEAM", "USER", "EXP_NAME")]
    return (
        os.path.abspath(os.path.join(*names, "checkpoints"))
        if None not in names
        else args.get("save")
    )


def save(directory, iteration):
    if RANK != 0 or not directory:
        return
    say("saving checkpoint at iteration %7d to %s in torch_dist format" % (iteration, directory))
    checkpoints.OLD = time.time() - 70
    checkpoints.TorchDist().save(directory, iteration, WORLD)
    say("  successfully saved checkpoint from iteration %7d to %s" % (iteration, directory))


def main():
    args, stop = words(sys.argv[3:]), []
    signal.signal(signal.SIGTERM, lambda *a: stop.append(1))
    directory, every, steps = (
        where(args),
        int(args.get("save_interval", 0)),
        int(args.get("train_iters") or args["training.steps"]),
    )
    first = 0
    say("> initializing torch distributed ...")
    if args.get("ckpt_step"):
        first = int(args["ckpt_step"])
        os.stat(os.path.join(args["load"], "iter_%07d" % first, "metadata.json"))
        say(
            "successfully loaded checkpoint from %s [ t 1/1, p 1/1 ] at iteration %d"
            % (args["load"], first)
        )
    if args.get("train_data_path"):
        say(
            "> data of %s, %d bytes"
            % (args["train_data_path"], os.stat(args["train_data_path"] + ".bin").st_size)
        )
    if args.get("model.hf_assets_path"):
        say(
            "> tokenizer of %s, %d bytes"
            % (
                args["model.hf_assets_path"],
                os.stat(args["model.hf_assets_path"] + "/tokenizer.json").st_size,
            )
        )
    say("training ...")
    for i in range(first + 1, steps + 1):
        time.sleep(STEP_S)
        if RANK == WORLD - 1 or "training.steps" in args:  # torchtitan's ranks all print
            say(
                " iteration %8d/%8d | consumed samples: %12d | elapsed time per iteration (ms): "
                "%.1f/%.1f | hip mem usage/free/total/usage_ratio: "
                "170.10GB/21.90GB/192.00GB/88.59%% | "
                "throughput per GPU (TFLOP/s/GPU): 210.5/210.5 | tokens per GPU (tokens/s/GPU): "
                "12130.4/12130.4 | learning rate: 1.000000E-05 | global batch size:   128 | lm "
                "loss: %.6E | "
                "loss scale: 1.0 | grad norm: 0.912 | number of skipped iterations:   0 | number "
                "of nan iterations:   0 |"
                % (i, steps, i * 128, STEP_S * 1e3, STEP_S * 1e3, 2 + 9 * math.exp(-i / 40))
            )
        if stop:
            save(directory, i)
            say("exiting program after receiving SIGTERM.")
            return
        if every and i % every == 0 and i < steps:
            save(directory, i)
    save(directory, steps)
    say("[after training is done] datetime: %s" % time.strftime("%Y-%m-%d %H:%M:%S"))


main()
