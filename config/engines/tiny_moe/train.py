#!/usr/bin/env python3
"""tiny_moe: a small but true mixture-of-experts transformer, trained on the bytes of a text.

It is started once per rank, torchrun style: RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and
MASTER_PORT name the process group; with none of them it is a run of one process.

  dense parameters    one copy per rank, gradients all-reduced over the world
  expert parameters   sharded over the `ep` ranks of an expert-parallel group, gradients
                      all-reduced over the ranks that hold the same shard
  tokens              sent to the ranks that own their experts, and back, by all_to_all_single

CPU (gloo, PyTorch 1.13) and CUDA/ROCm (NCCL/RCCL, PyTorch 2.x) run the same code. On CPU a run
that is killed and resumed ends with the same digits as one left alone. README.md lists the
environment, the flags, the printed lines and the checkpoint's layout.
"""
import argparse
import io
import json
import math
import os
import re
import signal
import socket
import sys
import time

stop_requested = False


def on_sigterm(_signum, _frame):
    global stop_requested
    stop_requested = True


# ---------------------------------------------------------------- talking to the outside

notify_socket = None


def notify(**fields):
    """One datagram of KEY=VALUE lines to $MOE_NOTIFY_SOCKET. The receiver is a spectator: when it
    is missing, slow or broken the datagram is lost, and training neither waits nor fails."""
    global notify_socket
    path = os.environ.get("MOE_NOTIFY_SOCKET")
    if not path:
        return
    lines = ["%s=%s" % (key, str(value).replace("\n", " ")) for key, value in fields.items()]
    try:
        if notify_socket is None:
            notify_socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            notify_socket.setblocking(False)
        # sendto, not connect: a receiver that was restarted on the same path is found again.
        notify_socket.sendto("\n".join(lines).encode(), "\0" + path[1:] if path[0] == "@" else path)
    except (OSError, ValueError):
        pass


def say(text, fd=1):
    """Print one line by one write, so that lines of ranks that share a pipe never mix, and a
    reader that went away does not end the training."""
    try:
        os.write(fd, (text + "\n").encode())
    except OSError:
        pass


def fail(text):
    """An error that all ranks agree on: rank 0 says it, every rank exits 1 and nothing else: the
    interpreter's way out ends now and then in an abort while a group still has its threads."""
    if int(os.environ.get("RANK") or 0) == 0:
        say("error: " + text, fd=2)
        notify(STATUS="error: " + text)
    os._exit(1)


# Before `import torch`, which takes seconds: a SIGTERM meanwhile is remembered, not fatal.
signal.signal(signal.SIGTERM, on_sigterm)
notify(PHASE="init", STATUS="importing torch")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.nn as nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402

AUX_WEIGHT = 0.01  # of the load-balancing loss
CLIP_NORM = 1.0
WARMUP_STEPS = 10


def parse_args(world):
    here = os.path.dirname(os.path.abspath(__file__))
    p = argparse.ArgumentParser(description="train a tiny mixture-of-experts transformer")
    for flag, default, text in (
        ("--steps", 120, "iterations of the whole run"),
        ("--save-every", 20, "iterations between checkpoints; 0 = never"),
        ("--layers", 2, ""),
        ("--hidden", 24, ""),
        ("--heads", 2, ""),
        ("--experts", 8, ""),
        ("--topk", 2, "experts per token"),
        ("--ffn", 32, "inner width of one expert"),
        ("--seq", 32, "bytes per sequence"),
        ("--micro", 4, "sequences per rank and micro-batch"),
        ("--global-batch", 0, "sequences per iteration; 0 = one micro-batch per rank"),
        ("--ep", 0, "ranks that share one set of experts; 0 = gcd(world size, experts)"),
        ("--seed", 1, ""),
    ):
        p.add_argument(flag, type=int, default=default, help=text + " (%(default)s)")
    p.add_argument("--lr", type=float, default=1e-2)
    p.add_argument("--step-delay-ms", type=float, default=0, help="sleep in every iteration")
    p.add_argument("--corpus", default=os.path.join(here, "corpus.txt"))
    p.add_argument(
        "--dir",
        default=os.environ.get("MOE_CHECKPOINT_DIR") or None,
        help="checkpoint directory, shared by all ranks; none = no checkpoints",
    )
    p.add_argument(
        "--resume", metavar="auto|never|N", default=os.environ.get("MOE_RESUME_ITERATION") or "auto"
    )
    args = p.parse_args()

    # Only the flags and the world size are judged here, so all ranks come to the same end.
    args.ep = args.ep or math.gcd(world, args.experts)
    args.global_batch = args.global_batch or args.micro * world
    args.resume = {"-1": "never"}.get(args.resume, args.resume)
    if args.resume not in ("auto", "never") and not args.resume.isdigit():
        p.error("--resume or MOE_RESUME_ITERATION: %r is not auto, never or N" % args.resume)
    if args.resume.isdigit() and not args.dir:
        p.error("--resume %s needs --dir" % args.resume)
    if args.hidden % args.heads or not 1 <= args.topk <= args.experts:
        p.error("--heads must divide --hidden, and --topk lie between 1 and --experts")
    if world % args.ep or args.experts % args.ep:
        p.error("--ep %d must divide %d ranks and %d experts" % (args.ep, world, args.experts))
    if args.global_batch % (args.micro * world):
        p.error("--global-batch must be a multiple of --micro times %d ranks" % world)
    return args


# ---------------------------------------------------------------- process groups


class Ranks:
    """This process's place in the job: its device and the groups it communicates over. A group of
    one process is None, and every helper below then does nothing."""

    def __init__(self, rank, world, ep):
        self.rank, self.world, self.ep = rank, world, ep
        self.ep_rank = rank % ep
        self.device = torch.device("cpu")
        if torch.cuda.is_available():  # ROCm builds answer to the same name
            local = int(os.environ.get("LOCAL_RANK") or rank) % torch.cuda.device_count()
            torch.cuda.set_device(local)
            self.device = torch.device("cuda", local)
        if world > 1:
            dist.init_process_group(
                "nccl" if self.device.type == "cuda" else "gloo",
                init_method="env://",
                rank=rank,
                world_size=world,
            )
        self.world_group = dist.group.WORLD if world > 1 else None
        # Expert-parallel groups are neighbours, so that the all-to-all stays on few machines.
        self.ep_group = self.own_group([range(g, g + ep) for g in range(0, world, ep)])
        self.edp_group = self.own_group([range(g, world, ep) for g in range(ep)])

    def own_group(self, families):
        if len(families[0]) in (1, self.world):
            return None if len(families[0]) == 1 else self.world_group
        # Every rank has to create every group, in the same order, also those it is not in.
        groups = [dist.new_group(list(ranks)) for ranks in families]
        return next(g for g, ranks in zip(groups, families) if self.rank in ranks)

    def all_reduce(self, tensor, group):
        if group is not None:
            dist.all_reduce(tensor, group=group)
        return tensor

    def share(self, value):
        """Every rank's integer, as a list indexed by rank. It is a barrier, too."""
        values = torch.zeros(self.world, dtype=torch.int64, device=self.device)
        values[self.rank] = value
        return self.all_reduce(values, self.world_group).tolist()


class AllToAll(torch.autograd.Function):
    """all_to_all_single that gradients flow through: backward sends every row to where it came
    from, which is the same exchange with the split sizes swapped."""

    @staticmethod
    def forward(ctx, rows, send, receive, group):
        ctx.send, ctx.receive, ctx.group = send, receive, group
        return AllToAll.exchange(rows, send, receive, group)

    @staticmethod
    def backward(ctx, grad):
        return AllToAll.exchange(grad, ctx.receive, ctx.send, ctx.group), None, None, None

    @staticmethod
    def exchange(rows, send, receive, group):
        if group is None:
            return rows
        out = rows.new_empty(sum(receive), rows.shape[1])
        dist.all_to_all_single(out, rows.contiguous(), receive, send, group=group)
        return out


# ---------------------------------------------------------------- the model


class Attention(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.heads = args.heads
        self.qkv = nn.Linear(args.hidden, 3 * args.hidden, bias=False)
        self.out = nn.Linear(args.hidden, args.hidden, bias=False)
        self.register_buffer(
            "future", torch.ones(args.seq, args.seq).triu(1).bool(), persistent=False
        )

    def forward(self, x):
        b, t, h = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, h // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / math.sqrt(h // self.heads)
        scores = scores.masked_fill(self.future[:t, :t], float("-inf"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, h))


class MoE(nn.Module):
    """A router sends each token to its top-k experts; this rank owns experts / ep of them."""

    def __init__(self, args, ranks):
        super().__init__()
        self.experts, self.topk, self.ranks = args.experts, args.topk, ranks
        self.local = args.experts // ranks.ep
        self.router = nn.Linear(args.hidden, args.experts, bias=False)
        # Each rank draws all experts and keeps its own, so a model does not depend on ep, and the
        # dense parameters drawn after these are the same on every rank.
        mine = slice(ranks.ep_rank * self.local, (ranks.ep_rank + 1) * self.local)
        w1 = torch.randn(args.experts, args.hidden, args.ffn) / math.sqrt(args.hidden)
        w2 = torch.randn(args.experts, args.ffn, args.hidden) / math.sqrt(args.ffn)
        self.expert_w1 = nn.Parameter(w1[mine].clone())
        self.expert_w2 = nn.Parameter(w2[mine].clone())

    def forward(self, x):
        """x: [tokens, hidden] -> output, load-balancing loss, tokens routed to each expert"""
        tokens, hidden = x.shape
        probs = self.router(x).softmax(-1)
        gate, choice = probs.topk(self.topk)
        gate = gate / gate.sum(-1, keepdim=True)
        counts = torch.bincount(choice.flatten(), minlength=self.experts)
        # Smallest when both the tokens sent and the router's probabilities are spread evenly.
        aux = self.experts * (counts / counts.sum() * probs.mean(0)).sum()

        # Rows sorted by expert are sorted by the rank that owns it, as all-to-all wants them.
        order = choice.flatten().sort(stable=True).indices
        rows = x.repeat_interleave(self.topk, dim=0)[order]
        rows = self.run_experts(rows, counts)
        rows = rows[order.argsort()].view(tokens, self.topk, hidden)
        return (rows * gate.unsqueeze(-1)).sum(1), aux, counts

    def run_experts(self, rows, counts):
        """rows: this rank's rows in the order of their experts, counts: how many for each"""
        group = self.ranks.ep_group
        arriving = counts  # [source rank, local expert]: rows that come to me
        if group is not None:
            arriving = torch.empty_like(counts)
            dist.all_to_all_single(arriving, counts, group=group)
        arriving = arriving.view(-1, self.local)
        send = counts.view(-1, self.local).sum(1).tolist()
        receive = arriving.sum(1).tolist()
        rows = AllToAll.apply(rows, send, receive, group)
        # They come by source and, within a source, by expert; each expert wants all of its own.
        expert = torch.arange(self.local, device=rows.device).repeat(arriving.shape[0])
        order = expert.repeat_interleave(arriving.flatten()).sort(stable=True).indices
        parts = rows[order].split(arriving.sum(0).tolist())
        # An expert without rows computes on an empty part: its gradient is zero, not missing.
        parts = [
            F.gelu(part @ w1) @ w2
            for part, w1, w2 in zip(parts, self.expert_w1.unbind(), self.expert_w2.unbind())
        ]
        return AllToAll.apply(torch.cat(parts)[order.argsort()], receive, send, group)


class Block(nn.Module):
    def __init__(self, args, ranks):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(args.hidden), Attention(args)
        self.norm2, self.moe = nn.LayerNorm(args.hidden), MoE(args, ranks)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        y, aux, counts = self.moe(self.norm2(x).flatten(0, 1))
        return x + y.view_as(x), aux, counts


class TinyMoE(nn.Module):
    def __init__(self, args, ranks):
        super().__init__()
        self.byte = nn.Embedding(256, args.hidden)
        self.position = nn.Parameter(0.02 * torch.randn(args.seq, args.hidden))
        self.blocks = nn.ModuleList(Block(args, ranks) for _ in range(args.layers))
        self.norm, self.head = nn.LayerNorm(args.hidden), nn.Linear(args.hidden, 256, bias=False)

    def forward(self, text):
        x = self.byte(text) + self.position[: text.shape[1]]
        aux, counts = 0.0, 0
        for block in self.blocks:
            x, block_aux, block_counts = block(x)
            aux, counts = aux + block_aux, counts + block_counts
        return self.head(self.norm(x)), aux, counts


# ---------------------------------------------------------------- checkpoints


def write_durably(path, data):
    """The file is there whole or not at all, whatever happens meanwhile."""
    with open(path + ".tmp", "wb") as f:
        f.write(data)
        f.flush()
        os.fsync(f.fileno())
    os.rename(path + ".tmp", path)
    fsync_dir(os.path.dirname(path))


def fsync_dir(path):
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def iteration_dir(top, iteration):
    return os.path.join(top, "iter_%07d" % iteration)


def examine(top, iteration):
    """-> (contents of COMPLETE, None), or (None, why this is not a complete checkpoint)"""
    path = iteration_dir(top, iteration)
    try:
        with open(os.path.join(path, "COMPLETE")) as f:
            meta = json.load(f)
        if meta["iteration"] != iteration or len(meta["files"]) != meta["world"]:
            return None, "COMPLETE does not fit it"
        for name, size in meta["files"].items():
            have = os.stat(os.path.join(path, name)).st_size
            if have != size:
                return None, "%s has %d bytes of %d" % (name, have, size)
        return meta, None
    except FileNotFoundError as e:
        return None, "%s is missing" % os.path.basename(e.filename)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
        return None, "unreadable: %s" % e


def choose(args, ranks):
    """The iteration to resume from (0 = a fresh run). Rank 0 looks and all ranks follow, since two
    looks at a directory may differ; a refusal is rank 0's to explain."""
    found, why = 0, None
    if ranks.rank == 0 and args.dir and args.resume != "never":
        meta = None
        if args.resume == "auto":
            names = os.listdir(args.dir) if os.path.isdir(args.dir) else []
            iterations = [int(n[5:]) for n in names if re.fullmatch(r"iter_\d{7,}", n)]
            for found in sorted(iterations, reverse=True):
                meta, torn = examine(args.dir, found)
                if meta:
                    break
                say("ignored checkpoint %s: %s" % (iteration_dir(args.dir, found), torn))
            found = found if meta else 0
        elif int(args.resume) > 0:
            found = int(args.resume)
            meta, torn = examine(args.dir, found)
            if not meta:
                why = "cannot resume from iteration %d: no complete checkpoint %s (%s)" % (
                    found,
                    iteration_dir(args.dir, found),
                    torn,
                )
        here = {"world": ranks.world, "ep": args.ep}
        odd = [
            "%s %s (this run has %s)" % (k, meta.get(k), v)
            for k, v in here.items()
            if meta and meta.get(k) != v
        ]
        if odd:
            why = "checkpoint %s was written with %s" % (
                iteration_dir(args.dir, found),
                ", ".join(odd),
            )
    found = ranks.share(-1 if why else found)[0]
    if found < 0:
        fail(why)  # why is rank 0's; the others exit without a word
    return found


def save(args, ranks, iteration, state):
    """Write all ranks' files, then COMPLETE, which is what makes them a checkpoint. A full disk on
    one rank spoils this checkpoint on all, and the training goes on. -> whether it is there"""
    path = iteration_dir(args.dir, iteration)
    complete = os.path.join(path, "COMPLETE")

    def on_all(action):
        """Do it on every rank. -> their results, or None if it failed on one. Also a barrier."""
        try:
            result = action()
        except OSError as e:
            say("rank %d: checkpoint %d: %s" % (ranks.rank, iteration, e), fd=2)
            result = -1
        results = ranks.share(result)
        return results if min(results) >= 0 else None

    def prepare():
        os.makedirs(path, exist_ok=True)
        if ranks.rank == 0 and os.path.exists(complete):
            os.unlink(complete)  # an explicit resume came here again: it is no longer complete
            fsync_dir(path)
        return 0

    def write_mine():
        data = io.BytesIO()
        torch.save(state, data)
        write_durably(os.path.join(path, "rank_%d.pt" % ranks.rank), data.getbuffer())
        return data.tell()

    def write_complete():
        if ranks.rank == 0:
            meta = {
                "iteration": iteration,
                "world": ranks.world,
                "ep": args.ep,
                "files": {"rank_%d.pt" % r: size for r, size in enumerate(sizes)},
            }
            write_durably(complete, (json.dumps(meta, indent=1) + "\n").encode())
            fsync_dir(args.dir)  # the entry iter_N itself
        return 0

    notify(PHASE="save", ITERATION=iteration)
    sizes = on_all(prepare) and on_all(write_mine)
    done = bool(sizes and on_all(write_complete))
    if ranks.rank == 0:
        say("%s checkpoint %d %s" % ("saved" if done else "failed to save", iteration, path))
        if done:
            notify(CHECKPOINT=path, ITERATION=iteration)
    notify(PHASE="train", ITERATION=iteration)
    return done


# ---------------------------------------------------------------- training


class Trainer:
    def __init__(self, args, ranks):
        self.args, self.ranks = args, ranks
        with open(args.corpus, "rb") as f:
            text = f.read()
        if len(text) <= args.seq:
            fail("corpus %s is shorter than one sequence" % args.corpus)
        self.corpus = torch.frombuffer(bytearray(text), dtype=torch.uint8)
        # After the model is drawn, the order of the data is the only use of randomness. All ranks
        # draw the same order, and each takes its share of it.
        torch.manual_seed(args.seed)
        self.model = TinyMoE(args, ranks).to(ranks.device)
        self.data_rng = torch.Generator().manual_seed(args.seed + 1)
        named = list(self.model.named_parameters())
        self.dense = [p for n, p in named if "expert_" not in n]
        self.expert = [p for n, p in named if "expert_" in n]
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=args.lr, betas=(0.9, 0.95), weight_decay=0.01
        )
        self.iteration, self.loss = 0, float("nan")
        self.tokens_per_expert = [0] * args.experts  # over the whole run and all layers
        # For the FLOP estimate: a token passes through topk of the experts only.
        held = sum(p.numel() for p in self.expert) * ranks.ep
        self.active = sum(p.numel() for p in self.dense) + held * args.topk // args.experts

    def state(self):
        """All that a resumed run needs to go on with the same digits. Tensors only, since the safe
        loader of PyTorch 1.13 knows no floats; the optimizer's settings come from the flags."""
        return {
            "iteration": torch.tensor(self.iteration),
            "loss": torch.tensor(self.loss, dtype=torch.float64),
            "tokens_per_expert": torch.tensor(self.tokens_per_expert),
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict()["state"],
            "data_rng": self.data_rng.get_state(),
            "torch_rng": torch.get_rng_state(),
        }

    def load(self, iteration):
        path = os.path.join(iteration_dir(self.args.dir, iteration), "rank_%d.pt" % self.ranks.rank)
        state = torch.load(path, map_location="cpu", weights_only=True)
        self.iteration, self.loss = state["iteration"].item(), state["loss"].item()
        self.tokens_per_expert = state["tokens_per_expert"].tolist()
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(dict(self.optimizer.state_dict(), state=state["optimizer"]))
        self.data_rng.set_state(state["data_rng"])
        torch.set_rng_state(state["torch_rng"])

    def micro_batches(self):
        args, ranks = self.args, self.ranks
        starts = torch.randint(
            len(self.corpus) - args.seq, (args.global_batch,), generator=self.data_rng
        )
        for first in range(ranks.rank * args.micro, args.global_batch, ranks.world * args.micro):
            index = starts[first : first + args.micro, None] + torch.arange(args.seq + 1)
            yield self.corpus[index].long().to(ranks.device)

    def lr(self):
        """Linear warm-up, then a cosine down to a tenth."""
        warm = min(1.0, (self.iteration + 1) / WARMUP_STEPS)
        done = min(1.0, self.iteration / max(1, self.args.steps))
        return self.args.lr * warm * (0.55 + 0.45 * math.cos(math.pi * done))

    def reduce(self, params, group, extra=()):
        """Sum the parameters' gradients over the group and divide by the world: since the experts
        already hold the sum over the ranks that sent them tokens, this is right for both kinds.
        All go in one message, `extra` too, whose sums are returned."""
        buffer = torch.cat(
            [p.grad.flatten() for p in params]
            + [torch.as_tensor(extra, dtype=torch.float32, device=self.ranks.device)]
        )
        self.ranks.all_reduce(buffer, group)
        used = 0
        for p in params:
            p.grad.copy_(buffer[used : used + p.numel()].view_as(p)).div_(self.ranks.world)
            used += p.numel()
        return buffer[used:].tolist()

    def step(self):
        """One iteration: report it. -> whether some rank was asked to stop"""
        args, ranks, began = self.args, self.ranks, time.monotonic()
        time.sleep(args.step_delay_ms / 1000)
        accumulation = args.global_batch // (args.micro * ranks.world)
        loss_sum, counts_sum = 0.0, 0
        self.optimizer.zero_grad()
        for batch in self.micro_batches():
            logits, aux, counts = self.model(batch[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
            ((loss + AUX_WEIGHT * aux) / accumulation).backward()
            loss_sum, counts_sum = loss_sum + loss.item() / accumulation, counts_sum + counts
        self.reduce(self.expert, ranks.edp_group)
        square = sum(p.grad.square().sum() for p in self.expert).item()
        # With the dense gradients travel, to save messages, the loss, the wish to stop, the norm of
        # the experts (summed over the world: each shard once per rank holding it) and the routing.
        loss, stop, square, *counts = self.reduce(
            self.dense,
            ranks.world_group,
            [loss_sum, stop_requested, square * ranks.ep / ranks.world, *counts_sum.tolist()],
        )
        norm = math.sqrt(square + sum(p.grad.square().sum() for p in self.dense).item())
        if not math.isfinite(loss) or not math.isfinite(norm):
            fail("loss %s, gradient norm %s at iteration %d" % (loss, norm, self.iteration + 1))
        for p in self.model.parameters():
            p.grad.mul_(min(1.0, CLIP_NORM / (norm + 1e-6)))
        lr = self.optimizer.param_groups[0]["lr"] = self.lr()
        self.optimizer.step()

        self.iteration, self.loss = self.iteration + 1, loss / ranks.world
        self.tokens_per_expert = [a + int(b) for a, b in zip(self.tokens_per_expert, counts)]
        seconds, tokens = time.monotonic() - began, args.global_batch * args.seq
        tflops = 6e-12 * self.active * tokens / ranks.world / seconds  # of this rank
        notify(
            PHASE="train",
            ITERATION=self.iteration,
            LOSS="%.6f" % self.loss,
            STEP_MS="%.1f" % (seconds * 1e3),
            TOKENS=tokens,
            GRAD_NORM="%.4f" % norm,
            LR="%.3e" % lr,
            TFLOPS="%.6f" % tflops,
        )
        if ranks.rank == 0:
            say(
                "step %d/%d loss %.4f grad_norm %.2f lr %.2e step_ms %.1f tokens %d"
                " tokens_per_s %d"
                % (
                    self.iteration,
                    args.steps,
                    self.loss,
                    norm,
                    lr,
                    seconds * 1e3,
                    tokens,
                    tokens / seconds,
                )
            )
        return stop > 0

    def unigram_baseline(self):
        """Cross-entropy, in nats per byte, of guessing by the bytes' frequencies alone."""
        share = torch.bincount(self.corpus.long(), minlength=256).double() / len(self.corpus)
        return -(share * share.clamp_min(1e-12).log()).sum().item()


def main():
    rank, world = int(os.environ.get("RANK") or 0), int(os.environ.get("WORLD_SIZE") or 1)
    args = parse_args(world)
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    ranks = Ranks(rank, world, args.ep)
    trainer = Trainer(args, ranks)
    start = choose(args, ranks)
    if start:
        notify(PHASE="load", ITERATION=start)
        trainer.load(start)
        if rank == 0:
            say("resumed from iteration %d" % start)
    ranks.share(0)  # ready is when all are
    notify(READY=1, PHASE="train", ITERATION=start)
    if rank == 0:
        say(
            "training %d ranks, ep %d, %s, %d parameters active per token, iterations %d to %d"
            % (world, args.ep, ranks.device.type, trainer.active, start + 1, args.steps)
        )

    stopping, saved = False, True
    while trainer.iteration < args.steps and not stopping:
        stopping = trainer.step()
        n = trainer.iteration
        due = args.save_every > 0 and (n % args.save_every == 0 or n == args.steps)
        if args.dir and (due or stopping):
            saved = save(args, ranks, n, trainer.state())
    if rank == 0 and trainer.iteration < args.steps:
        say(
            "SIGTERM: stopped after iteration %d%s"
            % (trainer.iteration, "" if args.dir else ", without a checkpoint directory")
        )
    elif rank == 0:
        say("final loss %.6f unigram baseline %.4f" % (trainer.loss, trainer.unigram_baseline()))
        say("final loss repr %r" % trainer.loss)
        say("tokens per expert: %s" % trainer.tokens_per_expert)
    if world > 1:
        dist.destroy_process_group()
    notify(STATUS="finished")
    return 0 if saved else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Exception:  # most often a peer that died: the collective fails on all who wait for it
        import traceback

        say("rank %s: %s" % (os.environ.get("RANK") or 0, traceback.format_exc().rstrip()), fd=2)
        os._exit(1)  # not sys.exit: tearing down a group with dead peers can hang
