"""Rows of the public measurements (../shared/data/planner/truth.json) as the planner's words: what
is known of each published stack, never of a row.

A stack's properties come from its software: Megatron-LM of 2021-2022 (vTrain, Korthikanti,
Narayanan) has neither flash attention nor overlapped gradient reduction; llm-foundry and torchtitan
shard everything (FSDP); NeMo and Megatron-Core of 2024 on fuse the loss, bind processes and use
DeepEP or HybridEP where their recipes (planner_recipes.txt) say so. PLANNER_TRUTH=FILE: other rows
of the same kind.
"""
import json, os, re, subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TRUTH = os.environ.get("PLANNER_TRUTH") or os.path.join(
    ROOT, "..", "shared", "data", "planner", "truth.json"
)
OWN = os.path.join(ROOT, "tests", "bench", "planner_own.json")  # measured by ourselves
# models outside the catalogue, as their authors configure them
OTHERS = {
    "gpt_oss_20b": "layers=24 hidden=2880 heads=64 kv_heads=8 head_dim=64 vocab=201088 experts=32 "
    "topk=4 expert_ffn=2880 bias=1",
    "gpt_oss_120b": "layers=36 hidden=2880 heads=64 kv_heads=8 head_dim=64 vocab=201088 "
    "experts=128 topk=4 expert_ffn=2880 bias=1",
    "qwen2_57b_a14b": "layers=28 hidden=3584 heads=28 kv_heads=4 head_dim=128 vocab=151936 "
    "experts=64 topk=8 expert_ffn=2560 shared_ffn=20480",
    "qwen3_32b": "layers=64 hidden=5120 heads=64 kv_heads=8 head_dim=128 ffn=25600 vocab=151936 "
    "qk_norm=1",
    "llama3_8x70b": "layers=80 hidden=8192 heads=64 kv_heads=8 head_dim=128 vocab=128256 "
    "experts=8 topk=2 expert_ffn=28672",
    "mixtral_8x22b_g8t8": "layers=56 hidden=6144 heads=48 kv_heads=8 head_dim=128 vocab=32768 "
    "experts=64 topk=8 expert_ffn=2048",
    "mpt_1b": "layers=24 hidden=2048 heads=16 ffn=8192",
    "mpt_3b": "layers=32 hidden=2560 heads=32 ffn=10240",
    "mpt_7b": "layers=32 hidden=4096 heads=32 ffn=16384",
    "mpt_13b": "layers=40 hidden=5120 heads=40 ffn=20480",
    "mpt_30b": "layers=48 hidden=7168 heads=56 ffn=28672",
    "mpt_70b": "layers=80 hidden=8192 heads=64 ffn=32768",
}
GPUS = {
    f[:-5].upper(): f[:-5]
    for f in sorted(os.listdir(os.path.join(ROOT, "config", "gpus")))
    if f.endswith(".yaml")
} | {"A100": "a100-80"}
MEGATRON_2022 = ("vtrain", "narayanan", "korthikanti")


def precision(name):
    """The planner's precision for what a row calls it, or None: FP8-CS, FP8-rowwise, FP8-MX, MXFP8,
    NVFP4."""
    name = str(name).upper()
    return {"BF16": "bf16", "FP16": "fp16", "NVFP4": "nvfp4"}.get(
        name, "mxfp8" if name in ("MXFP8", "FP8-MX") else "fp8" if name.startswith("FP8") else None
    )


def peak(gpu):
    """TFLOP/s in BF16."""
    with open(os.path.join(ROOT, "config", "gpus", gpu + ".yaml")) as f:
        return float(re.search(r"^bf16_tflops: ([0-9.]+)", f.read(), re.M).group(1))


RELEASES = []


def recipes():
    """Lines of planner_recipes.txt: (model, releases, gpus, precisions, sizes, global batches,
    properties)."""
    out = []
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "planner_recipes.txt")) as f:
        lines = [line.split() for line in f if line.strip() and line[0] != "#"]
    RELEASES.extend(
        sorted(
            {r for words in lines for span in words[1].split(",") for r in span.split("-")},
            key=lambda r: [int(x) for x in r.split(".")],
        )
    )
    for name, releases, gpus, precisions, *rest in lines:
        spans = [
            (RELEASES.index(span.split("-")[0]), RELEASES.index(span.split("-")[-1]))
            for span in releases.split(",")
        ]
        out.append(
            (
                name,
                spans,
                gpus.split(","),
                precisions.split(","),
                [int(x) for x in rest[:6]],
                [int(x) for x in rest[6].split(",")],
                rest[7:],
            )
        )
    return out


RECIPES = recipes()


def recipe(p):
    """Properties that the recipe of a row has: that of its model, GPU and precision whose sizes are
    the row's, then the closest release."""
    name, release, best = str(p["model"]), str((p["extra"] or {}).get("release")), None
    if release not in RELEASES:
        return []
    at, kind = RELEASES.index(release), {"MXFP8": "MX", "FP8": "CS"}.get(
        p["precision"], str(p["precision"]).replace("FP8-", "")
    )
    for model_name, spans, gpus, precisions, sizes, batches, words in RECIPES:
        if model_name != name or p["gpu"] not in gpus:
            continue
        far = min(max(first - at, at - last, 0) for first, last in spans)
        others = sum(
            (p[key] or 1) != size
            for key, size in zip(("tp", "pp", "vpp", "cp", "ep", "mbs"), sizes)
        )
        key = (kind not in precisions, far > 1, others, far, p["gbs"] not in batches)
        if best is None or key < best[0]:
            best = (key, words)
    return best[1] if best else []


def canonical(name):
    return re.sub(r"[^a-z0-9]", "", str(name).lower())


CATALOGUE = {
    canonical(f[:-5]): f[:-5]
    for f in sorted(os.listdir(os.path.join(ROOT, "config", "models")))
    if f.endswith(".yaml")
}


def model(point):
    name, tags = str(point["model"]), (point["extra"] or {}).get("tags") or []
    if name == "deepseek_v3" and "w/o MTP" in tags:
        return "model=deepseek-v3-no-mtp"
    if isinstance((point["extra"] or {}).get("shape"), str):
        return point["extra"]["shape"]
    if name in OTHERS:
        return OTHERS[name] + (" vocab=50368 gated=0 tied=1" if name.startswith("mpt") else "")
    if canonical(name) in CATALOGUE:
        return "model=" + CATALOGUE[canonical(name)]
    m = re.fullmatch(r"gpt_h(\d+)_l(\d+)_a(\d+)(?:_v(\d+))?", name)
    if not m:
        return None
    h, layers, heads, vocab = m.groups()
    return (
        f"layers={layers} hidden={h} heads={heads} ffn={4 * int(h)} "
        f"vocab={vocab or number((point['extra'] or {}).get('vocab'), True) or 51200} gated=0 "
        f"tied=1 attention=" + ("unfused" if point["family"].startswith(MEGATRON_2022) else "flash")
    )


# Megatron's recompute_modules, as bits (enum recompute_module), by their names and by those of
# DeepSeek's report
MODULES = {
    "core_attn": 1,
    "moe_act": 2,
    "layernorm": 4,
    "mla_up_proj": 8,
    "mlp": 16,
    "moe": 32,
    "shared_experts": 64,
    "mla_up": 8,
    "rmsnorm": 4,
    "swiglu": 2,
}
# parts of a layer in a graph (enum graph)
GRAPHS = {"attn": 1, "mlp": 2, "moe_router": 4, "moe_preprocess": 8, "moe": 16}


def modules(names):
    """Bits of modules in a list; 0: these are none."""
    return sum(MODULES.get(n, 0) for n in re.split("[+,]", names))


def of_recipe(p, words):
    """The planner's words for a recipe's properties. Gradients are reduced in 16 bits:
    _benchmark_common() of Megatron-Bridge's recipes, examples/llama of Megatron-LM."""
    out, told = [
        "features.fused_loss=1 features.bound=1 features.grad_bytes=2 features.narrow_gather=1 "
        "features.expandable=1"
    ], dict(w.partition("=")[::2] for w in words)
    if p["model"] == "deepseek_v3":
        out.append("features.small_master=1 features.moment_bytes=4")
    if p["precision"] == "NVFP4":  # no fp8_param_gather in these
        out.append("features.cached_weights=1")
    if "offload" in told:
        out.append(f"features.offload_layers={told['offload']}")
    if told.get("a2a") in ("deepep", "hybridep"):
        out.append("features.deepep=1")
    if "graph" in told:
        parts = told['graph'].partition(':')[2].split('+')
        out.append(f"features.graphs={sum(GRAPHS[m] for m in parts if m) or 31}")
    for word, feature in (
        ("overlap_a2a", "overlap_a2a"),
        ("fused_experts", "fused_experts"),
        ("fp8_attention", "narrow_attention"),
        ("tp_overlap", "async_tp"),
    ):
        if word in told:
            out.append(f"features.{feature}=1")
    return " ".join(out), told.get("recompute")


def stack(p):
    """Properties of the software of a family of rows, and the recomputation that its recipe has
    where the row says nothing."""
    f, extra, words, recompute = p["family"], p["extra"] or {}, [], None
    if f.startswith(MEGATRON_2022):
        words.append(
            "features.late_reduce=1"
            + (" features.no_sequence_parallel=1" if "sp" not in (p["recompute"] or "") else "")
        )
    if f.startswith("nemo"):
        told, recompute = of_recipe(p, recipe(p))
        words.append(told)
    # FSDP shards FP32 weights; llm-foundry's loss is one kernel of flash-attn, torchtitan compiles
    # its loss since April 2025 and keeps a pipeline's results until October 2025
    if f.startswith("mpt") or "titan" in f:
        words.append(
            "features.eager=1 features.shard_bytes=4 features.keeps_outputs=1"
            + (" features.fused_loss=1" if f.startswith("mpt") or f == "torchtitan_h200" else "")
            + (" features.expandable=1" if "titan" in f else "")
        )
    if f.startswith("mpt"):
        words.append("features.triton_attention=1")
    if f == "own_h200":
        words.append(
            "features.eager=1 features.shard_bytes=4"
            + "".join(f" features.{x}=1" for x in ("compiled", "fused_loss") if extra.get(x))
        )
    # those of the CI are untuned, without compilation
    if "titan" in f and not f.startswith("cvs") and extra.get("compile") is not False:
        words.append(
            "features.compiled=1" + (" features.async_tp=1" if extra.get("async_tp") else "")
        )
    if p["a2a"] == "deepep":
        words.append("features.deepep=1")
    stage = str(extra.get("feature_stage") or "")
    if f.startswith("amd_v2"):
        words.append("features.expert_launches=1")
        order = (
            ["base", "+lossfusion", "+deepep", "+syncfree1", "+launchopt"]
            if "lite" in f
            else ["base", "+lossfusion", "+deepep", "+launchopt", "+vpp3", "+syncfree1", "+vpp5"]
        )
        at = next((i for i, s in enumerate(order) if stage.startswith(s)), 0)
        for step, word in (
            ("+lossfusion", "fused_loss"),
            ("+launchopt", "bound"),
            ("+syncfree1", "sync_free"),
        ):
            if at >= order.index(step):
                words.append(f"features.{word}=1")
    if f == "deepseek":  # DeepSeek-V3 report: moments in BF16, SwiGLU's inputs kept in FP8
        words.append("features.small_master=0 features.moment_bytes=4 features.narrow_activation=1")
    return " ".join(words), recompute


def software(p):
    return str((p["extra"] or {}).get("release") or p["family"])


INPUTS = ("n_gpus", "tp", "pp", "dp", "gbs", "seq", "mbs")
OPTIONAL = ("vpp", "ep", "etp", "cp")
MEASURED = ("step_time_s", "tflops_per_gpu", "mfu")
TASKS = ("pretrain", "sft")  # all weights are trained; lora trains others than it runs


def number(value, whole):
    """What a row states as a number, or None."""
    try:
        value = float(value)
    except (TypeError, ValueError):
        return None
    return (
        None
        if not 0 < value < 1e18 or (whole and value != int(value))
        else int(value)
        if whole
        else value
    )


def reason(p):
    """Why a row cannot be planned, or None."""
    if str(p["task"] or "pretrain") not in TASKS:
        return f"task {p['task']}"
    if not model(p):
        return "model without description"
    if p["gpu"] not in GPUS:
        return "GPU without description"
    if not precision(p["precision"]):
        return "precision unknown"
    if not re.fullmatch(r"none|zero[123](:\d+)?", p["fsdp"] or "none"):
        return "sharding unknown"
    missing = [key for key in INPUTS if p[key] is None]
    if missing:
        return "input missing: " + ", ".join(missing)
    if p["tp"] * p["pp"] * p["dp"] * (p["cp"] or 1) != p["n_gpus"] or p["gbs"] % (
        p["dp"] * p["mbs"]
    ):
        return "sizes that do not multiply"
    return None if any(p[key] for key in MEASURED) else "nothing measured"


WORDS = (
    "id",
    "family",
    "task",
    "model",
    "gpu",
    "precision",
    "recompute",
    "a2a",
    "schedule",
    "fsdp",
    "regression",
    "mem_unit",
)


def plain(point):
    """A row with words as words, numbers as numbers and None for all else."""
    p = {key: point.get(key) if isinstance(point.get(key), str) else None for key in WORDS}
    p["family"], p["extra"] = (
        p["family"] or "unknown",
        point["extra"] if isinstance(point.get("extra"), dict) else None,
    )
    p.update({key: number(point.get(key), True) for key in INPUTS + OPTIONAL})
    p.update(
        {
            key: number(point.get(key), False)
            for key in MEASURED + ("tokens_per_s_per_gpu", "mem_gb")
        }
    )
    return p


def recomputation(given, told):
    """Planner's words for what a row states, else for what its recipe has: full:N the first N
    layers of each virtual stage, names of modules separated by "+"."""
    told = given or told or "none"
    kind, _, layers = told.partition(":")
    if kind in ("full", "none"):
        return f"recompute={kind}" + (f" features.recompute_layers={layers}" if layers else "")
    return "recompute=selective" + (
        f" features.recompute_modules={modules(kind)}" if modules(kind) else ""
    )


def words(p):
    """Lines of the planner for a row, several where the number of virtual stages is not
    published."""
    m = model(p)
    sharding, _, shard = (p["fsdp"] or "none").partition(":")
    layers = int(re.search(r"layers=(\d+)", m).group(1)) if "layers=" in m else None
    if p["vpp"]:
        versions = [p["vpp"]]
    elif p["schedule"] == "interleaved" and "titan" in p["family"]:
        versions = [2]  # torchtitan's stages per rank where nothing is said
    else:
        if layers is None:
            with open(os.path.join(ROOT, "config", "models", m[6:] + ".yaml")) as f:
                layers = int(re.search(r"^  layers: (\d+)", f.read(), re.M).group(1))
        per = layers // p["pp"]
        versions = [v for v in range(1, per + 1) if per % v == 0 and (v == 1 or p["pp"] > 1)] or [1]
    nic = number((p["extra"] or {}).get("inter_node_gbps_per_node"), False)
    fabric = (
        f" nic_gbps={nic / 8}" if nic else " nic_gbps=200" if p["family"] == "mpt_fsdp_a100" else ""
    )
    told, recompute = stack(p)
    out = []
    for v in versions:
        schedule = (
            p["schedule"]
            if p["schedule"] in ("dualpipe", "zb1p", "zbv", "v-half", "v-min")
            else "interleaved"
            if v > 1
            else "1f1b"
        )
        out.append(
            f"{m} gpu={GPUS[p['gpu']]} precision={precision(p['precision'])} schedule={schedule} "
            f"{recomputation(p['recompute'], recompute)} sharding={sharding} shard={shard or 0} "
            f"gpus={p['n_gpus']} "
            f"tp={p['tp']} pp={p['pp']} vpp={v} ep={p['ep'] or 1} etp={p['etp'] or 1} "
            f"cp={p['cp'] or 1} dp={p['dp']} micro={p['mbs']} global={p['gbs']} "
            f"seq={p['seq']}{fabric} {told} "
            f"software={canonical(software(p))} named={canonical(p['model'])}"
        )
    return out


def has_experts(words):
    if not words.startswith("model="):
        return "experts=" in words
    with open(os.path.join(ROOT, "config", "models", words[6:] + ".yaml")) as f:
        return re.search(r"^  moe:", f.read(), re.M) is not None


class Row:
    def __init__(self, point, first, n):
        self.p, self.first, self.n, self.id, self.family = (
            point,
            first,
            n,
            point["id"],
            point["family"],
        )
        self.moe = has_experts(model(point))
        # fitted with the others and printed, but no part of what is said of public rows
        self.own = self.family.startswith("own")
        self.stack = (software(point), point["gpu"], point["precision"], str(point["model"]))

    def measured(self, flops, attention):
        """Seconds per step: stated, or from the stated rate in the counting that the source uses
        (Megatron-Core's folding paper counts attention in full)."""
        p = self.p
        if p["step_time_s"]:
            return p["step_time_s"]
        tokens = p["gbs"] * p["seq"] / p["n_gpus"]
        if p["tflops_per_gpu"]:
            return tokens * flops / (p["tflops_per_gpu"] * 1e12)
        if p["mfu"]:
            return (
                tokens
                * flops
                * (1 + attention * self.family.startswith("mpf"))
                / (p["mfu"] * peak(GPUS[p["gpu"]]) * 1e12)
            )
        return None


def points():
    both = []
    for path in (TRUTH, OWN):
        with open(path) as f:
            both += json.load(f)["points"]
    return both


class Planner:
    """The program that plans many rows; constants of a vector instead of the library's."""

    def __init__(self, classes="AB", build=None, select=None):
        build = build or os.environ.get("BUILD", "build")
        self.rows, self.left, lines = [], {}, []
        for p in map(plain, points()):
            why = (
                reason(p)
                if (p["regression"] or "-") in classes
                else f"regression class {p['regression']}"
            )
            if why:
                self.left[why] = self.left.get(why, 0) + 1
            elif select is None or select(p):
                w = words(p)
                self.rows.append(Row(p, len(lines), len(w)))
                lines += w
        path = os.path.join(ROOT, build, "tests", "bench", f"planner-rows.{os.getpid()}")
        with open(path, "w") as f:
            f.write("\n".join(lines) + "\n")
        program = os.path.join(ROOT, build, "tests", "bench", "planner")
        self.process = subprocess.Popen(
            [program, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        self.constants = [
            (n, float(v), kind == "fitted")
            for n, v, kind in (
                line.split()
                for line in subprocess.check_output(
                    [program, "--constants"], text=True
                ).splitlines()
            )
        ]
        first = self.raw({})
        os.unlink(path)
        self.rows = [r for r in self.rows if r.measured(first[r.first][2], first[r.first][3])]
        for r in self.rows:
            r.truth = r.measured(first[r.first][2], first[r.first][3])

    def raw(self, vector):
        self.process.stdin.write(" ".join(f"{k}={v!r}" for k, v in vector.items()) + "\n")
        self.process.stdin.flush()
        return [
            tuple(float(x) for x in cell.split(","))
            for cell in self.process.stdout.readline().split()
        ]

    def anchored(self, row, runs):
        """What measured runs [(row, measured / planned)] say of another row: factor on its plan,
        share of its error that is left."""
        self.process.stdin.write(
            f"anchor {row.first} " + " ".join(f"{r.first}:{x!r}" for r, x in runs) + "\n"
        )
        self.process.stdin.flush()
        return tuple(float(x) for x in self.process.stdout.readline().split())

    def steps(self, vector=None):
        """Predicted seconds of each row: the fastest of its versions."""
        cells = self.raw(vector or {})
        return [min(c[0] for c in cells[r.first : r.first + r.n]) for r in self.rows]

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()
