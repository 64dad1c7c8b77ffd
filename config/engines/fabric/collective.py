#!/usr/bin/env python3
"""Measures one collective over the ranks of a job, and prints what rccl-tests print.

rccl-tests need MPI to start on more than one node. This is started once per rank, as a training is
(RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT), and goes through the same PyTorch and RCCL
as the training: `moectl fabric check` runs it over nodes and pairs of nodes.

  --collective all_reduce | all_to_all
  --max BYTES             largest buffer of a rank; sizes are 1 MiB and four times the one before

Bandwidths are those of rccl-tests: 10^9 bytes/s, busbw = algbw times 2(n-1)/n of an all_reduce and
(n-1)/n of an all_to_all. #wrong counts elements that came out wrong, of all ranks.
"""
import argparse
import os
import sys
import time

MIN_BYTES = 1 << 20
WARM, TIMED = 5, 20


def synchronize(torch, device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def all_reduce(torch, x, _out):
    torch.distributed.all_reduce(x)


def all_to_all(torch, x, out):
    torch.distributed.all_to_all_single(out, x)


def wrong_of_all_reduce(torch, n, rank, world, device):
    x = torch.full((n,), float(rank + 1), device=device)
    all_reduce(torch, x, None)
    return (x != world * (world + 1) / 2).sum()


def wrong_of_all_to_all(torch, n, rank, world, device):
    x, out = torch.full((n,), float(rank), device=device), torch.zeros(n, device=device)
    all_to_all(torch, x, out)
    wanted = torch.arange(world, device=device).repeat_interleave(n // world)
    return (out != wanted).sum()


# what is run, what of it came out wrong, share of the bytes that crosses a link
COLLECTIVES = {
    "all_reduce": (all_reduce, wrong_of_all_reduce, lambda n: 2 * (n - 1) / n),
    "all_to_all": (all_to_all, wrong_of_all_to_all, lambda n: (n - 1) / n),
}


def seconds(torch, run, n, device):
    """Of one, of the slowest rank."""
    x, out = torch.zeros(n, device=device), torch.zeros(n, device=device)
    for i in range(WARM + TIMED):
        if i == WARM:
            synchronize(torch, device)
            torch.distributed.barrier()
            began = time.perf_counter()
        run(torch, x, out)
    synchronize(torch, device)
    took = torch.tensor([(time.perf_counter() - began) / TIMED], device=device)
    torch.distributed.all_reduce(took, op=torch.distributed.ReduceOp.MAX)
    return took.item()


def main():
    p = argparse.ArgumentParser(description="Measures one collective over all ranks.")
    p.add_argument("--collective", choices=sorted(COLLECTIVES), default="all_reduce")
    p.add_argument("--max", type=int, help="bytes; default 1 GiB, on processors 16 MiB")
    args = p.parse_args()
    try:
        import torch
        import torch.distributed  # noqa: F401
    except ImportError as e:
        sys.exit("%s: engine.python, or engine.container, must have PyTorch" % e)
    gpu = torch.cuda.is_available()
    device = torch.device("cuda:%s" % os.environ.get("LOCAL_RANK", "0") if gpu else "cpu")
    if gpu:
        torch.cuda.set_device(device)
    torch.distributed.init_process_group("nccl" if gpu else "gloo")
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    run, wrong_of, share = COLLECTIVES[args.collective]
    if rank == 0:
        print("# %s of %d ranks, PyTorch %s" % (args.collective, world, torch.__version__))
        print("# size count type redop root time(us) algbw(GB/s) busbw(GB/s) #wrong")
    size, largest = MIN_BYTES, args.max or (1 << 30 if gpu else 1 << 24)
    while size <= largest:
        n = size // 4 // world * world
        wrong = wrong_of(torch, n, rank, world, device)
        torch.distributed.all_reduce(wrong)
        took = seconds(torch, run, n, device)
        alg = n * 4 / took / 1e9
        if rank == 0:
            print(
                "%12d %12d  float  sum  -1  %.1f  %.3f  %.3f  %d"
                % (n * 4, n, took * 1e6, alg, alg * share(world), wrong.item()),
                flush=True,
            )
        size *= 4
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
