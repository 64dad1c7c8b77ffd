/* Bad recipes: each with the place and the words of what is said. Lines of a case follow four lines
 * of a valid recipe, so they start on line 5. */
#include <stdio.h>
#include <string.h>

#include "tests/unit/recipe/read.h"

struct bad {
	const char *lines, *expected;
};

/* One key at a time. */
static const struct bad keys[] = {
	{ "stepps: 5\n", "5:1 unknown key 'stepps' [did you mean 'steps'?]" },
	{ "gpus: 5\n", "5:1 unknown key 'gpus' [it belongs to cluster]" },
	{ "zzz: 5\n", "5:1 unknown key 'zzz'\n" },
	{ "stop: {grace:5s}\n",
	  "5:8 stop.grace:5s: a blank is missing behind the colon [write 'grace: 5s']\n" },
	{ "checkpoint:\n  dir:/x\n",
	  "6:3 checkpoint.dir:/x: a blank is missing behind the colon [write 'dir: /x']\n" },
	{ "checkpoint:\n  every:3\n  dir: /x\n",
	  "6:3 not valid YAML: a blank is missing behind the colon [write 'every: 3']\n" },
	{ "checkpoint:\n  dir: /x\n  every:3\n",
	  "7:3 not valid YAML: a blank is missing behind the colon [write 'every: 3']\n" },
	{ "steps:5\n",
	  "5:1 not valid YAML: a blank is missing behind the colon [write 'steps: 5']\n" },
	{ "zzz:5: 1\n", "5:1 unknown key 'zzz:5'\n" },
	{ "a.b: 5\n", "5:1 unknown key 'a.b'" },
	{ "checkpoint: {dirr: /x}\n", "5:14 unknown key 'checkpoint.dirr' [did you mean 'dir'?]" },
	{ "steps: 1\nsteps: 2\n", "6:1 duplicate key 'steps': the first is on line 5" },
	{ "steps: abc\n", "5:8 steps: expected a whole number from 1 to 1000000000, got 'abc'" },
	{ "steps: \"12\"\n", "5:8 steps: expected a whole number from 1 to 1000000000, got the "
			     "text \"12\" [remove the quotes]" },
	{ "steps: 0\n", "5:8 steps: expected a whole number" },
	{ "steps: 1.5\n", "5:8 steps: expected a whole number" },
	{ "steps: 99999999999999999999\n", "5:8 steps: expected a whole number" },
	{ "steps: [1]\n", "5:8 steps: expected a whole number from 1 to 1000000000, got a list" },
	{ "steps:\n", "5:1 steps: has no value" },
	{ "steps:    # later\nname2: x\n", "5:1 steps: has no value" },
	{ "checkpoint: /x\n", "5:13 checkpoint: expected a mapping, got '/x'" },
	{ "checkpoint: {dir: relative/path}\n", "5:19 checkpoint.dir: expected an absolute path" },
	{ "checkpoint: {dir: /x, every: often}\n",
	  "5:30 checkpoint.every: expected a whole number from 1 to 1000000000, or auto" },
	{ "checkpoint: {dir: /x, verify: crcs}\n",
	  "5:31 checkpoint.verify: expected one of marker, sizes, crc, got 'crcs' [did you mean "
	  "'crc'?]" },
	{ "checkpoint: {dir: \"/c/$(date +%F)/x\"}\n",
	  "5:19 checkpoint.dir: '/c/$(date +%F)/x': no shell reads a recipe, and $(date +%F) stays "
	  "as it is [write it out; {user} is the name of the submitter]" },
	{ "checkpoint: {dir: /c/`whoami`}\n", "5:19 checkpoint.dir: '/c/`whoami`': no shell reads "
					      "a recipe, and `whoami` stays as it is" },
	{ "precision: bf15\n", "5:12 precision: expected one of bf16, fp16, fp8, mxfp8, nvfp4, got "
			       "'bf15' [did you mean 'bf16'?]" },
	{ "stop: {grace: soon}\n", "5:15 stop.grace: expected a time such as 90s" },
	{ "stop: {signal: KILLL}\n", "5:16 stop.signal: expected" },
	{ "stop: {signal: 9}\n", "5:16 stop.signal: '9' is not possible: ranks cannot catch it" },
	{ "stop: {signal: 019}\n", "5:16 stop.signal: '019' is not possible" },
	{ "stop: {signal: KILL}\n", "5:16 stop.signal: 'KILL' is not possible" },
	{ "stop: {signal: SIGSTOP}\n", "5:16 stop.signal: 'SIGSTOP' is not possible" },
	{ "stop: {signal: 32}\n", "5:16 stop.signal: expected a whole number from 1 to 31" },
	{ "labels: [vision]\n", "5:9 labels: expected names with values, such as {team: vision}" },
	{ "labels: {te am: vision}\n", "5:10 labels: 'te am' is not a name: letters, digits and" },
	{ "labels: {team: }\n", "5:10 labels.team: expected up to 63 letters, digits and" },
	{ "labels: {team: [a]}\n", "5:16 labels.team: expected up to 63 letters, digits and" },
	{ "labels: {team: \"a,b\"}\n", "5:16 labels.team: expected up to 63 letters, digits and" },
	{ "labels: {a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, i: 1, j: 1, k: 1, l: 1, m: 1, "
	  "n: 1, o: 1, p: 1, q: 1}\n",
	  "5:9 labels: at most 16, got 17" },
	{ "time_limit: 7 days\n", "5:13 time_limit: expected a time" },
	{ "priority: 101\n", "5:11 priority: expected a whole number from 0 to 100" },
	{ "bind: {verify: maybe}\n", "5:16 bind.verify: expected one of strict, warn, off" },
	{ "env: [A]\n", "5:6 env: expected a mapping" },
	{ "env: {1A: x}\n", "5:7 env: '1A' is not a variable's name" },
	{ "env: {A=B: x}\n", "5:7 env: 'A=B' is not a variable's name" },
	{ "env: {A: }\n", "5:7 env.A: has no value" },
	{ "env: {A: [1]}\n", "5:10 env.A: expected a text, got a list" },
	{ "env: {A: {filee: /x}}\n", "5:10 env.A: expected a value or {file: /absolute/path}" },
	{ "env: {A: {file: x}}\n", "5:17 env.A: expected a value or {file: /absolute/path}" },
	{ "env: {RANK: 3}\n", "5:7 env: RANK is set by the launcher and cannot be overridden" },
	{ "env: {MOE_JOB: 3}\n", "5:7 env: MOE_JOB is set by the launcher" },
	{ "env: {CUDA_VISIBLE_DEVICES: 3}\n",
	  "5:7 env: CUDA_VISIBLE_DEVICES is set by the launcher" },
	{ "env: {HIP_VISIBLE_DEVICES: 3}\n",
	  "5:7 env: HIP_VISIBLE_DEVICES is set by the launcher and cannot be overridden: remove "
	  "it; of the variables that hide GPUs exactly one may be set" },
	{ "env:\n  A: b\n  ROCR_VISIBLE_DEVICES: 4,5\n",
	  "7:3 env: ROCR_VISIBLE_DEVICES is set by the launcher" },
	{ "env: {HSA_KERNARG_POOL_SIZE: 12M}\n", "5:30 env.HSA_KERNARG_POOL_SIZE: expected a whole "
						 "number from 65536 to 268435456, got '12M'" },
	{ "env: {HSA_KERNARG_POOL_SIZE: 4096}\n",
	  "5:30 env.HSA_KERNARG_POOL_SIZE: expected a whole number from 65536" },
	{ "experiment: {files: \"\\e[31mcrc\"}\n",
	  "5:21 experiment.files: expected crc32c: and eight digits of a hash [remove it: moectl "
	  "writes it]" },
	{ "experiment: {files: 'crc32c:012345678'}\n",
	  "5:21 experiment.files: expected crc32c: and eight digits of a hash [remove it: moectl "
	  "writes it]" },
	{ "env: {NCCL_IB_TIMEOUT: 300}\n",
	  "5:24 env.NCCL_IB_TIMEOUT: expected a whole number from 0 to 31, got '300': the field of "
	  "a queue pair has 5 bits" },
	{ "env: {NCCL_IB_RETRY_CNT: 20}\n",
	  "5:26 env.NCCL_IB_RETRY_CNT: expected a whole number from 0 to 7, got '20': the field of "
	  "a queue pair has 3 bits" },
	{ "env: {NCCL_IB_TC: often}\n",
	  "5:19 env.NCCL_IB_TC: expected a whole number from -1 to 255, got 'often'" },
	{ "model: 3 4\n", "5:8 model: expected a name of the catalogue" },
	{ "model: mixtral-8x7\n", "5:8 model: unknown model 'mixtral-8x7': there is no "
				  "config/models/mixtral-8x7.yaml [did you mean 'mixtral-8x7b'?]" },
	{ "model: ../../etc/passwd\n", "5:8 model: expected a name of the catalogue" },
	{ "model: {layers: 2}\n", "5:8 missing key 'model.hidden'" },
	{ "parallelism: fast\n", "5:14 parallelism: expected auto or a mapping" },
	{ "!!int steps: 5\n", "5:7 tags (!name) are not used here" },
	{ "<<: 5\n", "5:5 <<: expected a mapping" },
	{ "[a]: 5\n", "5:1 a key must be a plain word" },
	{ "? [a]\n: 5\n", "5:1 a '?' by itself" },
	{ "env: *nothing\n", "5:6 unknown anchor 'nothing'" },
	{ "env: &x {A: *x}\n", "5:13 unknown anchor 'x'" },
};

/* Not built yet: said so, with what to do instead. */
static const struct bad refused[] = {
	{ "features: {a2a: deepep}\n",
	  "5:17 features.a2a: engine torch knows no features: give its program a flag of its own "
	  "in engine.args, e.g. with the value {features.a2a}" },
	{ "features: {a2a: deeepp}\n", "5:17 features.a2a: expected one of deepep, uccl, alltoall, "
				       "got 'deeepp' [did you mean 'deepep'?]" },
	{ "features: {grouped_gemm: true}\n",
	  "5:26 features.grouped_gemm: expected one of turbo, native, legacy, none, got 'true'" },
	{ "features: {sync_free: 4}\n",
	  "5:23 features.sync_free: expected a whole number from 0 to 3, got '4'" },
	{ "features: {sync_free: \"1\"}\n",
	  "5:23 features.sync_free: expected a whole number from 0 to 3, got the text \"1\"" },
	{ "features: {loss_fusion: yes}\n",
	  "5:25 features.loss_fusion: expected true or false, got 'yes'" },
	{ "features: {manual_gc: -1}\n",
	  "5:23 features.manual_gc: expected a whole number from 0 to 1000000" },
	{ "features: {recompute_layers: 3}\n", "5:30 features.recompute_layers: expected a list of "
					       "layer numbers, got '3' [write it as [0, 1, 2]]" },
	{ "features: {recompute_layers: [1, x]}\n",
	  "5:34 features.recompute_layers: expected a whole number from 0 to 10000, got 'x'" },
	{ "features: {recompute_layers: [1, 1]}\n",
	  "5:34 features.recompute_layers: 1 behind 1: give each layer once, in rising order" },
	{ "features: {pipeline_layout: [E, t]}\n",
	  "5:29 features.pipeline_layout: expected auto or a layout, got a list" },
	{ "features: {pipeline_layout: \"Etx|tL\"}\n",
	  "5:29 features.pipeline_layout: 'x' is no layer" },
	{ "features: {pipeline_layout: \"t|EtL\"}\n",
	  "5:29 features.pipeline_layout: the embedding, E, must stand once" },
	{ "features: {pipeline_layout: \"Et|t\"}\n",
	  "5:29 features.pipeline_layout: the loss, L, must stand once" },
	{ "features: {pipeline_layout: \"Et*99999|tL\"}\n",
	  "5:29 features.pipeline_layout: '*' is no layer" },
	{ "features: {pipeline_layout: \"E(t*9999)*9999L\"}\n",
	  "5:29 features.pipeline_layout: longer than 20000 layers" },
	{ "features: [a2a]\n", "5:11 features: expected a mapping" },
	{ "features: {gruped_gemm: turbo}\n",
	  "5:12 unknown key 'features.gruped_gemm' [did you mean 'grouped_gemm'?]" },
	{ "recovery: {on_node_loss: shrink}\n",
	  "5:26 recovery.on_node_loss: 'shrink' is not supported by this version" },
	{ "recovery: {on_node_loss: weit}\n", "5:26 recovery.on_node_loss: expected one of wait, "
					      "spare, shrink, got 'weit' [did you mean 'wait'?]" },
	{ "recovery: {hang: 300s}\n",
	  "5:18 recovery.hang: expected one of auto, report, off, got '300s'" },
	{ "recovery: {policy: {oom: retry}}\n",
	  "5:26 recovery.policy.oom: there is no such class of failures; they are user_error, "
	  "transient, suspect, node_fault, hang, numerical, storage, collateral, preempted" },
	{ "recovery: {policy: {storage: pray}}\n",
	  "5:30 recovery.policy.storage: expected one of stop, retry, elsewhere, wait, cordon, got "
	  "'pray'" },
	{ "recovery: {loss_spike: rollback}\n",
	  "5:24 recovery.loss_spike: expected none, or a mapping such as {action: rollback}" },
	{ "recovery: {loss_spike: [none]}\n", "5:24 recovery.loss_spike: expected none" },
	{ "recovery: {loss_spike: {action: rolback}}\n",
	  "5:33 recovery.loss_spike.action: expected one of none, report, rollback, got 'rolback' "
	  "[did you mean 'rollback'?]" },
	{ "recovery: {loss_spike: {factor: 0.5}}\n", "5:33 recovery.loss_spike.factor: " },
	{ "recovery: {loss_spike: {facter: 2}}\n",
	  "5:25 unknown key 'recovery.loss_spike.facter' [did you mean 'factor'?]" },
	{ "recovery: {loss_spike: {skip: 11}}\n",
	  "5:31 recovery.loss_spike.skip: expected a whole number from 0 to 10, got '11'" },
	{ "recovery: {loss_spike: {skip: 2}}\n",
	  "5:31 recovery.loss_spike.skip: engine torch has no option by which it leaves data out" },
	{ "health: {preflight: [gpu.ras_eu]}\n",
	  "5:22 health.preflight: there is no check 'gpu.ras_eu' [did you mean 'gpu.ras_ue'?]" },
	{ "health: {preflight: [gpu.ras_ue, stack.sam]}\n",
	  "5:34 health.preflight: there is no check 'stack.sam' [did you mean 'stack.same'?]" },
	{ "health: {preflight: [standard]}\n",
	  "5:22 health.preflight: expected the id of a check" },
	{ "health: {preflight: [[nic.state]]}\n",
	  "5:22 health.preflight: expected the id of a check" },
	{ "health: {preflight: thorough}\n",
	  "5:21 health.preflight: expected standard, none, or a list of checks" },
};

/* Whole recipes. */
static const struct bad whole[] = {
	{ "", "1:1 this is no recipe: it is empty [is it the file that was meant?]\n" },
	{ "root: x\nbin: y\n", "1:1 this is no recipe: it has none of the keys recipe, name, "
			       "engine and cluster [is it the file that was meant?]\n" },
	{ "work_group: a\nmodules:\n  pre_trainer:\n    framework: megatron\n",
	  "1:1 an experiment of Primus: moectl init FILE makes a recipe of it\n" },
	{ "extends: [low.yaml]\nlr: 1\n",
	  "1:1 an experiment of Primus: moectl init FILE makes a recipe of it\n" },
	{ "modules: [framework]\nroot: x\n", "1:1 this is no recipe: it has none of the keys" },
	{ "recipe: 1\nname: t\nengine: {kind: command, argv: [a]}\ncluster: {gpus:8, gpu: "
	  "mi300x}\n",
	  "4:11 cluster.gpus:8: a blank is missing behind the colon [write 'gpus: 8']\n" },
	{ "recipe: 1\nname: t\nengine: {kind: command, argv: [a]}\ncluster:\n  gpus:8\n",
	  "5:3 cluster.gpus:8: a blank is missing behind the colon [write 'gpus: 8']\n" },
	{ "recipi: 1\n",
	  "1:1 unknown key 'recipi' [did you mean 'recipe'?]\n1:1 missing key 'name'\n" },
	{ "- 1\n", "1:1 a recipe is a mapping of keys to values [begin with 'recipe: 1']" },
	{ "recipe: 2\nname: a\nengine: {kind: command, argv: [x]}\ncluster: {gpus: 1}\n",
	  "1:9 recipe: this version reads format 1" },
	{ "recipe: 1\nname: -a\nengine: {kind: command, argv: [x]}\ncluster: {gpus: 1}\n",
	  "2:7 name: expected a name" },
	{ "recipe: 1\nname: a\nengine: {argv: [x]}\ncluster: {}\n",
	  "3:9 missing key 'engine.kind'\n4:10 missing key 'cluster.gpus'\n" },
	{ "recipe: 1\nnmae: a\nengine: {knd: command, argv: [x]}\ncluster: {gups: 2}\n",
	  "2:1 unknown key 'nmae' [did you mean 'name'?]\n3:10 unknown key 'engine.knd' [did you "
	  "mean 'kind'?]\n4:11 unknown key 'cluster.gups' [did you mean 'gpus'?]\n" },
	{ "recipe: 1\nname: a\nengine: {kind: command}\ncluster: {gpus: 1}\n",
	  "3:9 missing key 'engine.argv'" },
	{ "recipe: 1\nname: a\nengine: {kind: torch}\ncluster: {gpus: 1}\n",
	  "3:9 missing key 'engine.entry'" },
	{ "recipe: 1\nname: a\nengine: {kind: command, argv: x}\ncluster: {gpus: 1}\n",
	  "3:31 engine.argv: expected a list, got 'x' [write it as [a, b]]" },
	{ "recipe: 1\nname: a\nengine: {kind: torch, entry: ../../x.py, workdir: /w}\ncluster: "
	  "{gpus: 1}\n",
	  "3:30 engine.entry: '../../x.py' may lead out of workdir" },
	{ "recipe: 1\nname: a\nengine: {kind: torch, entry: a/../x.py, workdir: /w}\ncluster: "
	  "{gpus: 1}\n",
	  "3:30 engine.entry: 'a/../x.py' may lead out of workdir" },
	{ "recipe: 1\nname: a\nengine: {kind: torch, entry: x.py, workdir: '/w/{user}'}\ncluster: "
	  "{gpus: 1}\n",
	  "3:45 engine.workdir: nothing replaces {user} [write there what it stands for]" },
	{ "recipe: 1\nname: a\nengine: {kind: torch, entry: x.py, workdir: /w/$HOME}\ncluster: "
	  "{gpus: 1}\n",
	  "3:45 engine.workdir: '/w/$HOME': no shell reads a recipe, and $HOME stays as it is "
	  "[write it out]" },
	{ "recipe: 1\nname: a\nengine: {kind: torch, entry: \"${A:-b}/x.py\", workdir: "
	  "/w}\ncluster: {gpus: 1}\n",
	  "3:30 engine.entry: '${A:-b}/x.py': no shell reads a recipe, and ${A:-b} stays as it is "
	  "[write it out]" },
	{ "recipe: 1\nname: a\nengine: {kind: torch, entry: ~/x.py, workdir: /w}\ncluster: {gpus: "
	  "1}\n",
	  "3:30 engine.entry: '~/x.py': no shell reads a recipe, and ~ stays as it is [write it "
	  "out]" },
	{ "recipe: 1\nname: a\nengine: {kind: torch, entry: x, python: $V/bin/python3}\ncluster: "
	  "{gpus: 1}\n",
	  "3:41 engine.python: '$V/bin/python3': no shell reads a recipe, and $V stays as it is "
	  "[write it out]" },
	{ "recipe: 1\nname: a\nengine: {kind: command, argv: [x], entry: y}\ncluster: {gpus: 1}\n",
	  "3:43 engine.entry: engine command has no use for it: its program" },
	{ "recipe: 1\nname: a\nengine: {kind: torchtitan, entry: y}\ncluster: {gpus: 1}\nsteps: "
	  "1\n",
	  "3:35 engine.entry: engine torchtitan has no use for it: it starts its own program, "
	  "whose words are engine.args" },
	{ "recipe: 1\nname: a\nengine: {kind: primus-megatron, workdir: /w, entry: y, argv: "
	  "[z]}\ncluster: {gpus: 1}\nsteps: 1\n",
	  "3:62 engine.argv: engine primus-megatron has no use for it: it starts its own program, "
	  "with engine.entry and engine.args" },
	{ "recipe: 1\nname: a\nengine: {kind: torch, entry: y, argv: [z]}\ncluster: {gpus: 1}\n",
	  "3:39 engine.argv: engine torch has no use for it: its program is engine.entry, its "
	  "words engine.args" },
	{ "recipe: 1\nname: a\nengine: {kind: commandd, argv: [x]}\ncluster: {gpus: 1}\n",
	  "3:16 engine.kind: unknown engine 'commandd': there is no config/engines/commandd.yaml "
	  "[did you mean 'command'? there are: " },
	{ "recipe: 1\nname: a\nengine: {kind: torch, entry: x, container: {image: "
	  "'-y'}}\ncluster: "
	  "{gpus: 1}\n",
	  "3:52 engine.container.image: -y is no name of an image; write HOST/NAME:TAG or" },
	{ "recipe: 1\nname: a\nengine: {kind: torch, entry: x, prepare: {y: z}}\ncluster: {gpus: "
	  "1}\n",
	  "3:42 engine.prepare: expected" },
	{ "recipe: 1\nname: a\nengine: {kind: torch, entry: x, workdir: y}\ncluster: {gpus: 1}\n",
	  "3:42 engine.workdir: expected an absolute path" },
	{ "recipe: 1\nname: a\nengine: {kind: torch, entry: x}\ncluster: {gpus: 1, gpu: mi300}\n",
	  "4:25 cluster.gpu: unknown GPU type 'mi300': there is no config/gpus/mi300.yaml [did you "
	  "mean 'mi300x'?]" },
	{ "recipe: 1\nname: a\nengine: {kind: torch, entry: x}\ncluster: {gpus: 1, exclude: [\"a "
	  "b\"]}\n",
	  "4:30 cluster.exclude: 'a b' is no node name" },
	{ "recipe: 1\nname: a\nengine: {kind: torch, entry: x}\ncluster: {gpus: 1, nodes: [\"a "
	  "b\"]}\n",
	  "4:28 cluster.nodes: 'a b' is no node name" },
	{ "recipe: 1\nname: a\nengine: {kind: command, argv: [A=1, python3, x.py]}\ncluster: "
	  "{gpus: 1}\n",
	  "3:32 engine.argv: 'A=1' sets a variable, as a shell has it, and is no program [give it "
	  "under `env:`]" },
	{ "recipe: 1\nname: a\nengine: {kind: command, argv: [python3 x.py]}\ncluster: {gpus: 1}\n",
	  "3:32 engine.argv: 'python3 x.py' as a whole is the name of the program [write each word "
	  "by itself: [python3, train.py]]" },
	{ "recipe: 1\nname: a\nengine: {kind: torch, entry: x.py --lr 1}\ncluster: {gpus: 1}\n",
	  "3:30 engine.entry: 'x.py --lr 1' is more than the name of a script [give its words as "
	  "engine.args]" },
	{ "recipe: 1\nname: a\nengine: {kind: command, argv: [\"\", x]}\ncluster: {gpus: 1}\n",
	  "3:31 engine.argv: its first word, the program, is empty" },
	{ "recipe: 1\nname: j-7\nengine: {kind: torch, entry: x}\ncluster: {gpus: 1}\n",
	  "2:7 name: 'j-7' has the form of a job's id" },
	{ "recipe: 1\nname: a\nengine: {kind: megatron}\ncluster: {gpus: 1}\n",
	  "3:16 engine.kind: unknown engine 'megatron': there is no config/engines/megatron.yaml "
	  "[did you mean 'megatron-lm'? there are: command, " },
	{ "recipe: 1\nname: a\nengine: {kind: torch, entry: x}\ncluster: {gpus: 8, gpu: 16}\n",
	  "4:25 cluster.gpu: '16' is no type of GPU; how many there are is cluster.gpus [did you "
	  "mean 'gpus'?]" },
	{ "recipe: 1\nname: a\nengine: {kind: torch, entry: x}\ncluster: {gpus: 1.5}\n",
	  "4:17 cluster.gpus: expected a whole number from 1 to 131072, got '1.5'" },
	{ "recipe: 1\nname: a\nengine: {kind: torch, entry: x}\ncluster: {gpus: 1e99}\n",
	  "4:17 cluster.gpus: expected a whole number from 1 to 131072, got '1e99'" },
	{ "recipe: 1\nname: a\nengine: {kind: torch, entry: x}\ncluster: {gpus: inf}\n",
	  "4:17 cluster.gpus: expected a whole number from 1 to 131072, got 'inf'" },
	{ "recipe: 1\nname: a\nengine: {kind: torch, entry: x}\ncluster: {gpus: \"8.0\"}\n",
	  "4:17 cluster.gpus: expected a whole number from 1 to 131072, got the text \"8.0\" "
	  "[remove the quotes]" },
	{ "recipe: 1\nname: a\nengine: {kind: torch, entry: x}\ncluster: {gpus: 200000}\n",
	  "4:17 cluster.gpus: expected a whole number from 1 to 131072, got '200000'" },
	{ "recipe: 1\nname: a\nengine: {kind: torch, entry: x, args: {a: {b: 1}}}\ncluster: {gpus: "
	  "1}\n",
	  "3:43 engine.args.a: expected one value, got a mapping" },
	{ "recipe: 1\nname: a\nengine: {kind: torch, entry: x, args: {a: }}\ncluster: {gpus: 1}\n",
	  "3:40 engine.args.a: has no value" },
	{ "recipe: 1\nname: a\nengine: {kind: torch, entry: x, args: {s: '{steps}'}}\ncluster: "
	  "{gpus: 1}\n",
	  "3:43 engine.args: '{steps}' needs steps, which the recipe does not give" },
	{ "recipe: 1\nname: a\nengine: {kind: torch, entry: x, args: 5}\ncluster: {gpus: 1}\n",
	  "3:39 engine.args: expected a mapping or a list" },
	{ "recipe: 1\nname: a\nengine: {kind: megatron-lm}\ncluster: {gpus: 1}\n",
	  "1:1 missing key 'steps': engine megatron-lm" },
	{ "recipe: 1\nname: a\nengine: {k: 1}\nengine: {kind: nono}\ncluster: {gpus: 1}\ncluster: "
	  "{gpus: 1, gpu: nono}\n",
	  "1:1 engine.kind: unknown engine 'nono'" },
	{ "recipe: 1\nname: a\n---\nb: 1\n", "3:1 a second document: a recipe is one document" },
	{ "recipe: 1\n\tname: a\n", "2:1 a tab indents this line: YAML allows only spaces" },
	{ "recipe: [1\nname: a\n", "3:1 not valid YAML: flow sequence without a closing bracket" },
	{ "recipe: \"\\q\"\n", "1:10 not valid YAML: invalid escape" },
};

/* Rules between keys, with the model and sizes of the case on 8 GPUs. */
static const struct bad rules[] = {
	{ "parallelism: {tp: 3}\n", "5:19 parallelism.tp: tp 3 does not divide cluster.gpus 8: tp "
				    "x pp x cp x dp must be the number of GPUs" },
	{ "parallelism: {tp: 4, pp: 4}\n",
	  "5:26 parallelism.pp: tp 4 x pp 4 does not divide cluster.gpus 8" },
	{ "parallelism: {tp: 2, dp: 2}\n", "5:26 parallelism.dp: tp 2 x pp 1 x cp 1 x dp 2 = 4 is "
					   "not cluster.gpus 8: dp must be 4, or auto" },
	{ "parallelism: {dp: \"8\"}\n", "5:19 parallelism.dp: expected a whole number from 1 to "
					"131072, or auto, got the text \"8\" [remove the quotes]" },
	{ "parallelism: {ep: 3}\n",
	  "5:19 parallelism.ep: 3 does not divide the 8 GPUs of a pipeline stage (tp x cp x dp)" },
	{ "parallelism: {ep: 16}\n", "5:19 parallelism.ep: 16 does not divide the 8 GPUs" },
	{ "parallelism: {pp: 2, ep: 8}\n", "5:26 parallelism.ep: 8 does not divide the 4 GPUs" },
	{ "parallelism: {etp: 2, ep: 8}\n", "5:27 parallelism.ep: 8 does not divide the 4 GPUs of "
					    "a pipeline stage (tp x cp x dp) by etp" },
	{ "model: llama3-8b\nparallelism: {ep: 2}\n",
	  "6:19 parallelism.ep: the model has no experts: use 1" },
	{ "model: {layers: 4, hidden: 64, heads: 4, vocab: 100, moe: {experts: 6, topk: 2, ffn: "
	  "32}}\nparallelism: {ep: 4}\n",
	  "6:19 parallelism.ep: 4 does not divide the model's 6 experts" },
	{ "parallelism: {vpp: 2}\n", "5:20 parallelism.vpp: 2 virtual stages need a pipeline" },
	{ "parallelism: {pp: 2, schedule: interleaved}\n",
	  "5:32 parallelism.schedule: interleaved needs vpp above 1" },
	{ "model: {layers: 5, hidden: 64, heads: 8, ffn: 64, vocab: 100}\nparallelism: {pp: 8}\n",
	  "6:19 parallelism.pp: pp 8 x vpp 1 = 8 stages are more than the model's 5 layers + 2" },
	{ "model: {layers: 13, hidden: 64, heads: 8, ffn: 64, vocab: 100}\nparallelism: {pp: 8, "
	  "vpp: 2}\n",
	  "6:27 parallelism.vpp: pp 8 x vpp 2 = 16 stages are more than the model's 13 layers + "
	  "2" },
	{ "model: {layers: 4, hidden: 64, heads: 4, ffn: 64, vocab: 100}\nparallelism: {tp: 8}\n",
	  "6:19 parallelism.tp: 8 does not divide the model's 4 attention heads" },
	{ "model: {layers: 4, hidden: 64, heads: 8, kv_heads: 2, ffn: 64, vocab: "
	  "100}\nparallelism: {tp: 4}\n",
	  "6:19 parallelism.tp: 4 does not divide the model's 2 key-value heads" },
	{ "model: {layers: 4, hidden: 64, heads: 8, ffn: 60, vocab: 100}\nparallelism: {tp: 8}\n",
	  "6:19 parallelism.tp: 8 does not divide the model's feed-forward width 60" },
	{ "model: {layers: 4, hidden: 66, heads: 8, ffn: 64, vocab: 100}\n",
	  "5:39 model.heads: 8 does not divide hidden 66" },
	{ "model: {layers: 4, hidden: 64, heads: 8, kv_heads: 3, ffn: 64, vocab: 100}\n",
	  "5:52 model.kv_heads: 3 does not divide heads 8" },
	{ "model: {layers: 4, hidden: 64, heads: 8, vocab: 100}\n",
	  "5:8 model: missing key 'ffn'" },
	{ "model: {layers: 4, hidden: 64, heads: 8, vocab: 100, moe: {experts: 4, topk: 5, ffn: "
	  "32}}\n",
	  "5:78 model.moe.topk: 5 is more than the 4 experts" },
	{ "model: {layers: 4, hidden: 64, heads: 8, ffn: 8, vocab: 100, moe: {experts: 4, topk: 2, "
	  "ffn: 32, dense_layers: 5}}\n",
	  "5:112 model.moe.dense_layers: 5 is more than the 4 layers" },
	{ "model: {layers: 4, hidden: 64, heads: 8, vocab: 100, moe: {experts: 6, topk: 2, ffn: "
	  "32, groups: 4, topk_groups: 2}}\n",
	  "5:98 model.moe.groups: 4 does not divide the 6 experts" },
	{ "model: {layers: 4, hidden: 64, heads: 8, vocab: 100, moe: {experts: 8, topk: 2, ffn: "
	  "32, groups: 4, topk_groups: 5}}\n",
	  "5:114 model.moe.topk_groups: 5 of 4 groups: give both" },
	{ "model: {layers: 4, hidden: 64, heads: 8, vocab: 100, moe: {experts: 8, topk: 2, ffn: "
	  "32, groups: 4}}\n",
	  "5:98 model.moe.topk_groups: 0 of 4 groups" },
	{ "model: {layers: 4, hidden: 64, heads: 8, vocab: 100, moe: {experts: 4, ffn: 32}}\n",
	  "5:59 missing key 'model.moe.topk'" },
	{ "batch: {global: 12}\n", "5:17 batch.global: 12 is no multiple of micro 1 x dp 8 = 8" },
	{ "batch: {micro: 3, global: 32}\n",
	  "5:27 batch.global: 32 is no multiple of micro 3 x dp 8 = 24" },
	{ "batch: {global_tokens: 4096}\n", "5:24 batch.global_tokens: it needs batch.seq" },
	{ "batch: {seq: 1000, global_tokens: 4096}\n",
	  "5:35 batch.global_tokens: 4096 is no multiple of batch.seq 1000" },
	{ "batch: {seq: 1024, global_tokens: 8192, global: 16}\n",
	  "5:49 batch.global: 16 sequences are not global_tokens 8192 / seq 1024" },
	{ "batch: {seq: 1024, global_tokens: 4096}\n",
	  "5:35 batch.global: 4 is no multiple of micro 1 x dp 8 = 8" },
	{ "batch: {seq: 1025}\nparallelism: {cp: 2}\n",
	  "6:19 parallelism.cp: 2 does not divide batch.seq 1025" },
	{ "checkpoint: {every: 5}\n", "5:21 checkpoint.every: it needs checkpoint.dir" },
	{ "checkpoint: {keep: 5}\n", "5:20 checkpoint.keep: it needs checkpoint.dir" },
	{ "checkpoint: {resume: 5}\n", "5:22 checkpoint.resume: it needs checkpoint.dir" },
	{ "checkpoint: {every: auto}\n", "5:21 checkpoint.every: it needs checkpoint.dir" },
	{ "checkpoint: {dir: '/ckpt/{name}'}\n",
	  "5:19 checkpoint.dir: nothing replaces {name}: {user} is the only word of a directory "
	  "[write there what it stands for]" },
	{ "checkpoint: {dir: '/ckpt/{user}/{engine.kind}'}\n",
	  "5:19 checkpoint.dir: nothing replaces {engine.kind}" },
	{ "checkpoint: {dir: //}\n", "5:19 checkpoint.dir: / is all of the machine's files [name a "
				     "directory for this job's checkpoints alone]" },
	{ "model: mixtral-8x7b\nparallelism: auto\n",
	  "6:14 parallelism: auto needs batch.global to choose the sharding" },
	{ "model: mixtral-8x7b\nparallelism: auto\nbatch: {global: 8}\n",
	  "6:14 parallelism: auto needs batch.seq" },
	{ "model: mixtral-8x7b\nparallelism: auto\nbatch: {seq: 8, global: 8}\n",
	  "6:14 parallelism: auto needs cluster.gpu" },
};

/* Megatron-LM: its flags against the recipe. */
static const char megatron[] = "recipe: 1\nname: t\nengine: {kind: megatron-lm, args: "
			       "{%s}}\ncluster: {gpus: 8}\nmodel: mixtral-8x7b\nsteps: 10\n%s";
static const struct {
	const char *args, *lines, *expected;
} flags[] = {
	{ "tensor-model-parallel-size: 2", "",
	  "3:64 engine.args: tensor-model-parallel-size 2: give it as parallelism.tp: 2" },
	{ "tensor_model_parallel_size: 2", "parallelism: {tp: 1}\n",
	  "3:64 engine.args: tensor_model_parallel_size 2 contradicts parallelism.tp 1: give it "
	  "there only" },
	{ "--train-iters: 11", "", "3:51 engine.args: --train-iters 11 contradicts steps 10" },
	{ "fp16: true", "precision: bf16\n", "3:42 engine.args: fp16 contradicts precision bf16" },
	{ "num-layers: 3", "", "3:48 engine.args: num-layers 3 contradicts model.layers 32" },
	{ "max-position-embeddings: 9", "batch: {seq: 8}\n",
	  "3:61 engine.args: max-position-embeddings 9 contradicts batch.seq 8" },
	{ "", "precision: mxfp4\n",
	  "7:12 precision: 'mxfp4' is not supported by this version: no plan counts it; leave it "
	  "out" },
	{ "", "parallelism: {sharding: zero3}\n",
	  "7:25 parallelism.sharding: engine megatron-lm has no setting for zero3" },
	{ "", "parallelism: {pp: 2, schedule: zb1p}\n",
	  "7:32 parallelism.schedule: engine megatron-lm has no setting for zb1p" },
	{ "", "precision: nvfp4\n", "7:12 precision: engine megatron-lm has no setting for nvfp4" },
	{ "iterations-to-skip: 5", "recovery: {loss_spike: {skip: 2}}\n",
	  "7:31 recovery.loss_spike.skip: the command has --iterations-to-skip of its own" },
};

static void check(const char *name, const char *text, const char *expected)
{
	_cleanup_(parsed_done) struct parsed p = parse(text, NULL);
	_cleanup_(mo_freep) char *errors = errors_text(&p.errors);

	if (strncmp(errors, expected, strlen(expected)) != 0)
		fail_msg("%s:\n%s\nexpected: %s\n     got: %s", name, text, expected, errors);
}

static void check_table(const char *name, const struct bad *table, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		_cleanup_(mo_freep) char *text = recipe_with(table[i].lines);

		check(name, text, table[i].expected);
	}
}

static void test_keys(void **state)
{
	check_table("keys", keys, ELEMENTSOF(keys));
}

static void test_refused(void **state)
{
	check_table("refused", refused, ELEMENTSOF(refused));
}

static void test_rules(void **state)
{
	check_table("rules", rules, ELEMENTSOF(rules));
}

static void test_whole(void **state)
{
	for (size_t i = 0; i < ELEMENTSOF(whole); i++)
		check("whole", whole[i].lines, whole[i].expected);
}

static void test_engine_flags(void **state)
{
	for (size_t i = 0; i < ELEMENTSOF(flags); i++) {
		_cleanup_(mo_freep) char *text = mo_printf(megatron, flags[i].args, flags[i].lines);

		check("flags", text, flags[i].expected);
	}
}

static void test_list_args_contradict(void **state)
{
	check("list",
	      "recipe: 1\nname: t\nengine: {kind: megatron-lm, args: [--train-iters, "
	      "11]}\ncluster: {gpus: 8}\nsteps: 10\n",
	      "3:51 engine.args: --train-iters 11 contradicts steps 10");
	check("list",
	      "recipe: 1\nname: t\nengine: {kind: megatron-lm, args: [--train-iters=11]}\ncluster: "
	      "{gpus: 8}\nsteps: 10\n",
	      "3:36 engine.args: --train-iters 11 contradicts");
}

/* Sizes that the planner chooses may be said in engine.args, which it follows; stages laid out
 * there are not its own. */
static void test_args_beside_auto(void **state)
{
	static const char rest[] =
		"cluster: {gpus: 8, gpu: mi300x}\nmodel: mixtral-8x7b\nparallelism: auto\nbatch: "
		"{seq: 4096, global: 512}\nsteps: 10\n";
	_cleanup_(mo_freep) char *sizes =
		mo_printf("recipe: 1\nname: t\nengine: {kind: megatron-lm, args: "
			  "{tensor-model-parallel-size: 8, micro-batch-size: 4}}\n%s",
			  rest);
	_cleanup_(mo_freep) char *stages =
		mo_printf("recipe: 1\nname: t\nengine: {kind: megatron-lm, args: "
			  "{decoder-first-pipeline-num-layers: 3}}\n%s",
			  rest);
	static const char maxtext[] =
		"recipe: 1\nname: t\nengine: {kind: maxtext, workdir: /x}\ncluster: {gpus: 8, gpu: "
		"mi300x}\nmodel: mixtral-8x7b\nparallelism: auto\nbatch: {seq: 4096%s}\nsteps: "
		"10\n";
	_cleanup_(mo_freep) char *without = mo_printf(maxtext, ""),
				 *with = mo_printf(maxtext, ", micro: 2");
	_cleanup_(parsed_done) struct parsed p = parse(sizes, NULL), q = parse(with, NULL);

	assert_int_equal(p.result, 0);
	assert_int_equal(q.result, 0);
	check("one micro-batch", without,
	      "6:14 parallelism: auto needs batch.micro to choose the sharding");
	check("stages", stages,
	      "3:36 engine.args: decoder-first-pipeline-num-layers: parallelism: auto may choose "
	      "other stages: give pp and vpp [engine.args_unchecked: [FLAG] lets it pass]");
}

/* An engine whose stages hold equally many layers refuses others without a layout, and tells what
 * would do; one that divides them by itself is silent; of a script nobody knows. */
static void test_layers_that_do_not_divide(void **state)
{
	static const struct {
		const char *engine, *model, *sizes, *more, *said;
	} cases[] = {
		{ "megatron-lm", "deepseek-v3-no-mtp", "pp: 4", "",
		  "5:26 parallelism.pp: pp 4 x vpp 1 = 4 stages do not divide the model's 61 "
		  "layers, and the recipe has no layout [use pp 1, or features.pipeline_layout: "
		  "\"Et*16|(t*15|)*2t*15,L\"]\n" },
		{ "primus-megatron, entry: x, workdir: /x", "deepseek-v3", "pp: 4", "",
		  "[use pp 1, or features.pipeline_layout: \"Et*16|(t*15|)*2t*15,m,L\"]\n" },
		{ "megatron-lm", "mixtral-8x7b", "pp: 2, vpp: 3", "",
		  "5:34 parallelism.vpp: pp 2 x vpp 3 = 6 stages do not divide the model's 32 "
		  "layers, and the recipe has no layout [use vpp 2 or 4, or "
		  "features.pipeline_layout: \"Et*6|t*6|(t*5|)*3t*5,L\"]\n" },
		{ "maxtext, workdir: /x", "deepseek-v2-lite", "pp: 2", "",
		  "5:26 parallelism.pp: pp 2 x vpp 1 = 2 stages do not divide the model's 27 "
		  "layers, and the recipe has no layout [use pp 1]\n" },
		{ "megatron-lm, args: {decoder-last-pipeline-num-layers: 13}", "deepseek-v3-no-mtp",
		  "pp: 4", "", "" },
		{ "megatron-lm", "deepseek-v3-no-mtp", "pp: 4",
		  "features: {pipeline_layout: \"Et*16|(t*15|)*2t*15,L\"}\n", "" },
		{ "torchtitan, workdir: /x", "llama3-8b", "pp: 3, sharding: zero3", "", "" },
		{ "command, argv: [x]", "deepseek-v3-no-mtp", "pp: 4", "", "warning" },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(mo_freep) char *text =
			mo_printf("recipe: 1\nname: t\nengine: {kind: %s}\ncluster: {gpus: "
				  "%d}\nparallelism: {tp: 1, %s}\nmodel: %s\nbatch: {seq: 4096, "
				  "micro: 1, global: 768}\nsteps: 10\n%s",
				  cases[i].engine, i == 6 ? 24 : 8, cases[i].sizes, cases[i].model,
				  cases[i].more);
		_cleanup_(parsed_done) struct parsed p = parse(text, NULL);
		_cleanup_(mo_freep) char *said = errors_text(&p.errors);
		bool warned = false;

		for (size_t k = 0; k < p.n_warnings; k++)
			warned =
				warned || strstr(p.warnings[k],
						 "do not divide the model's 61 layers: the program "
						 "must have a layout of its own, or use pp 1");
		if (warned != mo_streq(cases[i].said, "warning") ||
		    (warned || !*cases[i].said ? *said != 0 : !strstr(said, cases[i].said)))
			fail_msg("case %zu: %s%s", i, said, warned ? "(warned)" : "");
	}
}

/* Several errors come in the order of the document; at most 20. */
static void test_order_and_limit(void **state)
{
	_cleanup_(mo_freep) char *text = recipe_with("steps: x\nzzz: 1\npriority: -1\n");
	_cleanup_(parsed_done) struct parsed p = parse(text, NULL);
	char many[2000] = "recipe: 1\n";
	size_t n = strlen(many);

	assert_int_equal(p.errors.n, 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(p.errors.items[i].line, 5 + (int)i);
	for (int i = 0; i < 100; i++)
		n += (size_t)snprintf(many + n, sizeof(many) - n, "k%d: 1\n", i);
	_cleanup_(parsed_done) struct parsed q = parse(many, NULL);

	assert_int_equal(q.errors.n, 20);
	assert_int_equal(q.errors.items[0].line, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_engine_flags),
		cmocka_unit_test(test_list_args_contradict),
		cmocka_unit_test(test_args_beside_auto),
		cmocka_unit_test(test_layers_that_do_not_divide),
		cmocka_unit_test(test_order_and_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
