"""Rows of the public measurements (../shared/data/planner/truth.json) as the planner's words: what is known of each published stack, never of a row.

A stack's properties come from its software: Megatron-LM of 2021-2022 (vTrain, Korthikanti, Narayanan) has neither flash attention nor overlapped gradient reduction; llm-foundry and
torchtitan shard everything (FSDP); NeMo and Megatron-Core of 2024 on fuse the loss, bind processes and use DeepEP or HybridEP where their recipes say so.
"""
import json, os, re, subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TRUTH = os.path.join(ROOT, "..", "shared", "data", "planner", "truth.json")
OWN = os.path.join(ROOT, "tests", "bench", "planner_own.json")      # measured by ourselves
CATALOGUE = {"deepseek_v2": "deepseek-v2", "deepseek_v2_lite": "deepseek-v2-lite", "deepseek_v3": "deepseek-v3", "llama31_405b": "llama3.1-405b", "llama3_70b": "llama3-70b",
             "llama3_8b": "llama3-8b", "mixtral_8x22b": "mixtral-8x22b", "qwen3_235b_a22b": "qwen3-235b-a22b", "qwen3_30b_a3b": "qwen3-30b-a3b", "moe_1t": "moe-1t", "moe_2t": "moe-2t",
             "moe_515b": "moe-515b"}
# models outside the catalogue, as their authors configure them
OTHERS = {
    "gpt_oss_120b": "layers=36 hidden=2880 heads=64 kv_heads=8 head_dim=64 vocab=201088 experts=128 topk=4 expert_ffn=2880",
    "qwen2_57b_a14b": "layers=28 hidden=3584 heads=28 kv_heads=4 head_dim=128 vocab=151936 experts=64 topk=8 expert_ffn=2560 shared_ffn=20480",
    "qwen3_32b": "layers=64 hidden=5120 heads=64 kv_heads=8 head_dim=128 ffn=25600 vocab=151936 qk_norm=1",
    "llama3_8x70b": "layers=80 hidden=8192 heads=64 kv_heads=8 head_dim=128 vocab=128256 experts=8 topk=2 expert_ffn=28672",
    "mixtral_8x22b_g8t8": "layers=56 hidden=6144 heads=48 kv_heads=8 head_dim=128 vocab=32768 experts=64 topk=8 expert_ffn=2048",
    "mpt_1b": "layers=24 hidden=2048 heads=16 ffn=8192", "mpt_3b": "layers=32 hidden=2560 heads=32 ffn=10240", "mpt_7b": "layers=32 hidden=4096 heads=32 ffn=16384",
    "mpt_13b": "layers=40 hidden=5120 heads=40 ffn=20480", "mpt_30b": "layers=48 hidden=7168 heads=56 ffn=28672", "mpt_70b": "layers=80 hidden=8192 heads=64 ffn=32768",
}
GPUS = {"A100-80": "a100-80", "A100": "a100-80", "A100-40": "a100-40", "H100": "h100", "H100-500W": "h100-500w", "H200": "h200", "H800": "h800", "B200": "b200", "B300": "b300",
        "GB200": "gb200", "GB300": "gb300", "MI300X": "mi300x", "MI325X": "mi325x", "MI355X": "mi355x"}
PEAK = {"h100": 989, "a100-80": 312, "a100-40": 312}
PRECISION = {"BF16": "bf16", "FP16": "fp16", "FP8": "fp8", "FP8-CS": "fp8", "FP8-rowwise": "fp8", "FP8-MX": "mxfp8", "MXFP8": "mxfp8", "NVFP4": "nvfp4"}
MOE = ("nemo_moe", "mpf_h100_moe", "mpf_h100_scaling", "amd_v2lite_mi355x", "amd_v2_mi355x", "deepseek", "other_moe")


def model(point):
    name, tags = point["model"], (point["extra"] or {}).get("tags") or []
    if name == "deepseek_v3" and "w/o MTP" in tags:
        return "model=deepseek-v3-no-mtp"
    if "shape" in (point["extra"] or {}):
        return point["extra"]["shape"]
    if name in CATALOGUE:
        return "model=" + CATALOGUE[name]
    if name in OTHERS:
        return OTHERS[name] + (" vocab=50368 gated=0 tied=1" if name.startswith("mpt") else "")
    m = re.fullmatch(r"gpt_h(\d+)_l(\d+)_a(\d+)(?:_v(\d+))?", name)
    if not m:
        return None
    h, layers, heads, vocab = m.groups()
    return f"layers={layers} hidden={h} heads={heads} ffn={4 * int(h)} vocab={vocab or (point['extra'] or {}).get('vocab') or 51200} gated=0 tied=1 attention=" \
        + ("flash" if point["family"].startswith("mcore") else "unfused")


# Megatron's recompute_modules, as bits (enum recompute_module), by their names and by those of DeepSeek's report
MODULES = {"core_attn": 1, "moe_act": 2, "layernorm": 4, "mla_up_proj": 8, "mlp": 16, "moe": 32, "shared_experts": 64, "mla_up": 8, "rmsnorm": 4, "swiglu": 2}
# what Megatron-Bridge's performance recipes (src/megatron/bridge/perf_recipes) recompute where they do, and layers whose activations they keep in the host's memory: (model, GPU) -> modules;
# (model, GPU, precision) of those with FSDP -> layers
RECOMPUTED = {("deepseek_v3", "B200"): "mla_up_proj", ("deepseek_v3", "B300"): "mla_up_proj", ("deepseek_v3", "GB200"): "mla_up_proj", ("deepseek_v3", "GB300"): "mla_up_proj",
              ("deepseek_v3", "H100"): "mla_up_proj mlp", ("gpt_oss_120b", "B200"): "layernorm moe_act", ("gpt_oss_120b", "H100"): "layernorm moe_act", ("gpt_oss_120b", "GB200"): "layernorm moe_act"}
OFFLOADED = {("llama3_70b", "GB300", "FP8"): 20, ("llama3_70b", "GB200", "FP8"): 40, ("llama3_70b", "B200", "FP8"): 5, ("llama31_405b", "GB200", "FP8"): 95}


def modules(names):
    return sum(MODULES[n] for n in names)


def recipe_memory(p):
    words = ""
    if (p["model"], p["gpu"]) in RECOMPUTED:
        words += f" features.recompute_modules={modules(RECOMPUTED[p['model'], p['gpu']].split())}"
    if (p["fsdp"] or "").startswith("zero3"):
        words += f" features.offload_layers={OFFLOADED.get((p['model'], p['gpu'], PRECISION[p['precision']].upper()), 0)}"
    if p["model"] == "deepseek_v3":
        words += " features.small_master=1 features.moment_bytes=4"
    return words + (" features.cached_weights=1" if p["precision"] == "NVFP4" else "")     # no fp8_param_gather in these


def stack(p):
    """Properties of the software of a family of rows."""
    f, extra, words = p["family"], p["extra"] or {}, []
    if f in ("vtrain_a100_single", "vtrain_a100_multi", "narayanan_a100", "korthikanti_a100"):
        words.append("features.late_reduce=1" + (" features.no_sequence_parallel=1" if "sp" not in (p["recompute"] or "") else ""))
    if f.startswith("nemo"):    # gradients are reduced in 16 bits: _benchmark_common() of Megatron-Bridge's recipes, examples/llama of Megatron-LM
        words.append("features.fused_loss=1 features.bound=1 features.grad_bytes=2" + recipe_memory(p))
        if f == "nemo_moe":
            words.append("features.deepep=1" + (" features.sync_free=1" if "tokendrop" in (extra.get("tags") or []) else ""))
    if f.startswith("mpt") or "titan" in f:     # FSDP shards FP32 weights; llm-foundry's loss is one kernel of flash-attn, torchtitan compiles its loss since April 2025 and keeps a pipeline's results until October 2025
        words.append("features.eager=1 features.shard_bytes=4 features.keeps_outputs=1" + (" features.fused_loss=1" if f.startswith("mpt") or f == "torchtitan_h200" else ""))
    if f.startswith("mpt"):
        words.append("features.triton_attention=1")
    if f == "own_h200":
        words.append("features.eager=1 features.shard_bytes=4" + "".join(f" features.{x}=1" for x in ("compiled", "fused_loss") if extra[x]))
    if "titan" in f and not f.startswith("cvs") and extra.get("compile") is not False:     # those of the CI are untuned, without compilation
        words.append("features.compiled=1" + (" features.async_tp=1" if extra.get("async_tp") else ""))
    if p["a2a"] == "deepep":
        words.append("features.deepep=1")
    stage = extra.get("feature_stage") or ""
    if f.startswith("amd_v2"):
        words.append("features.expert_launches=1")
        order = ["base", "+lossfusion", "+deepep", "+syncfree1", "+launchopt"] if "lite" in f else ["base", "+lossfusion", "+deepep", "+launchopt", "+vpp3", "+syncfree1", "+vpp5"]
        at = next(i for i, s in enumerate(order) if stage.startswith(s))
        for step, word in (("+lossfusion", "fused_loss"), ("+launchopt", "bound"), ("+syncfree1", "sync_free")):
            if at >= order.index(step):
                words.append(f"features.{word}=1")
    if f == "deepseek":      # DeepSeek-V3 report: moments in BF16, SwiGLU's inputs kept in FP8
        words.append(f"features.small_master=0 features.moment_bytes=4 features.narrow_activation=1 features.recompute_modules={modules(p['recompute'].split('+'))}")
    return " ".join(words)


def software(p):
    return (p["extra"] or {}).get("release") or p["family"]


def words(p):
    """Lines of the planner for a row (several where the number of virtual stages is not published), or [] when the row has no such inputs."""
    m = model(p)
    if not m or p["gpu"] not in GPUS or p["precision"] not in PRECISION or not all(p[k] for k in ("n_gpus", "tp", "pp", "dp", "gbs", "seq", "mbs")):
        return []
    sharding, shard = (p["fsdp"] or "none"), 0
    if ":" in sharding:
        sharding, shard = sharding.split(":")
    recompute = p["recompute"] or "none"
    recompute = "full" if recompute == "full" else "none" if recompute == "none" and (p["model"], p["gpu"]) not in RECOMPUTED else "selective"
    layers = int(re.search(r"layers=(\d+)", m).group(1)) if "layers=" in m else None
    if p["vpp"]:
        versions = [p["vpp"]]
    elif p["schedule"] == "interleaved" and "titan" in p["family"]:
        versions = [2]          # torchtitan's stages per rank where nothing is said
    else:
        per = {"mixtral-8x22b": 56, "llama3.1-405b": 126}.get(m[6:], layers) // p["pp"]
        versions = [v for v in range(1, per + 1) if per % v == 0 and (v == 1 or p["pp"] > 1)]
    nic = (p["extra"] or {}).get("inter_node_gbps_per_node")
    fabric = f" nic_gbps={nic / 8}" if nic else " nic_gbps=200" if p["family"] == "mpt_fsdp_a100" else ""
    out = []
    for v in versions:
        schedule = p["schedule"] if p["schedule"] in ("dualpipe", "zb1p", "zbv", "v-half", "v-min") else "interleaved" if v > 1 else "1f1b"
        out.append(f"{m} gpu={GPUS[p['gpu']]} precision={PRECISION[p['precision']]} schedule={schedule} recompute={recompute} sharding={sharding} shard={shard} gpus={p['n_gpus']} tp={p['tp']} "
                   f"pp={p['pp']} vpp={v} ep={p['ep'] or 1} etp={p['etp'] or 1} cp={p['cp'] or 1} dp={p['dp']} micro={p['mbs']} global={p['gbs']} seq={p['seq']}{fabric} {stack(p)} software={software(p)} named={p['model']}")
    return out


class Row:
    def __init__(self, point, first, n):
        self.p, self.first, self.n, self.id, self.family = point, first, n, point["id"], point["family"]
        self.moe = self.family in MOE
        self.own = self.family.startswith("own")       # fitted with the others and printed, but no part of what is said of public rows
        self.stack = (software(point), point["gpu"], point["precision"], point["model"])

    def measured(self, flops, attention):
        """Seconds per step: stated, or from the stated rate in the counting that the source uses (Megatron-Core's folding paper counts attention in full)."""
        p = self.p
        if p["step_time_s"]:
            return p["step_time_s"]
        tokens = p["gbs"] * p["seq"] / p["n_gpus"]
        if p["tflops_per_gpu"]:
            return tokens * flops / (p["tflops_per_gpu"] * 1e12)
        if p["mfu"]:
            return tokens * flops * (1 + attention * self.family.startswith("mpf")) / (p["mfu"] * PEAK[GPUS[p["gpu"]]] * 1e12)
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
        self.rows, lines = [], []
        for p in points():
            w = words(p) if p["regression"] in classes and (select is None or select(p)) else []
            if w:
                self.rows.append(Row(p, len(lines), len(w)))
                lines += w
        path = os.path.join(ROOT, build, "tests", "bench", f"planner-rows.{os.getpid()}")
        with open(path, "w") as f:
            f.write("\n".join(lines) + "\n")
        program = os.path.join(ROOT, build, "tests", "bench", "planner")
        self.process = subprocess.Popen([program, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        self.constants = [(n, float(v), kind == "fitted") for n, v, kind in (line.split() for line in subprocess.check_output([program, "--constants"], text=True).splitlines())]
        first = self.raw({})
        os.unlink(path)
        self.rows = [r for r in self.rows if r.measured(first[r.first][2], first[r.first][3])]
        for r in self.rows:
            r.truth = r.measured(first[r.first][2], first[r.first][3])

    def raw(self, vector):
        self.process.stdin.write(" ".join(f"{k}={v!r}" for k, v in vector.items()) + "\n")
        self.process.stdin.flush()
        return [tuple(float(x) for x in cell.split(",")) for cell in self.process.stdout.readline().split()]

    def anchored(self, row, runs):
        """What measured runs [(row, measured / planned)] say of another row: factor on its plan, share of its error that is left."""
        self.process.stdin.write(f"anchor {row.first} " + " ".join(f"{r.first}:{x!r}" for r, x in runs) + "\n")
        self.process.stdin.flush()
        return tuple(float(x) for x in self.process.stdout.readline().split())

    def steps(self, vector=None):
        """Predicted seconds of each row: the fastest of its versions."""
        cells = self.raw(vector or {})
        return [min(c[0] for c in cells[r.first:r.first + r.n]) for r in self.rows]

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()
