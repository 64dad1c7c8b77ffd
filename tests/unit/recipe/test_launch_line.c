/* What people type to start a training, as a launch: what is kept, and that every other word is
 * said. */
#include "tests/unit/recipe/read.h"

#include <string.h>

#include "lib/base/buf.h"
#include "lib/recipe/launch_line.h"
#include "lib/recipe/launch_script.h"

static char *piped(char *const *words, size_t n)
{
	struct mo_buf b = { 0 };

	for (size_t i = 0; i < n; i++)
		mo_buf_printf(&b, "%s%s", i ? "|" : "", words[i]);
	return mo_buf_take(&b);
}

static struct launch_line script(const char *text)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct launch_line l;

	if (launch_line_script(text, NULL, &l, &err) < 0)
		fail_msg("%s: %s", text, mo_error_text(&err, -1));
	return l;
}

static void is(const char *text, int64_t nodes, int64_t per_node, const char *program,
	       const char *lost)
{
	_cleanup_(launch_line_done) struct launch_line l = script(text);
	_cleanup_(mo_freep) char *words = piped(l.program, l.n_program),
				 *said = piped(l.lost, l.n_lost);

	assert_string_equal(words ? words : "", program);
	assert_int_equal(l.nodes, nodes);
	assert_int_equal(l.per_node, per_node);
	if (!lost != !l.n_lost || (lost && !strstr(said, lost)))
		fail_msg("%s: lost is: %s", text, said ? said : "nothing");
}

static void torchrun(void **state)
{
	is("torchrun --nproc_per_node 8 train.py --lr 1e-4 -x", MO_NONE, 8, "train.py|--lr|1e-4|-x",
	   NULL);
	is("torchrun --nnodes=4 --nproc-per-node=8 --rdzv-backend=c10d --rdzv-endpoint=h:29500 -m "
	   "torchtitan.train --module llama3",
	   4, 8, "-m|torchtitan.train|--module|llama3", NULL);
	is("torchrun --nnodes 2:4 --max-restarts=3 t.py", 4, 1, "t.py",
	   "--max-restarts 3: moectl restarts by itself");
	is("python3 -m torch.distributed.run --standalone --nproc-per-node=2 t.py 'a b'", MO_NONE,
	   2, "t.py|a b", NULL);
	is("OMP_NUM_THREADS=4 torchrun --brand-new 3 t.py", MO_NONE, 1, "t.py",
	   "--brand-new 3: moectl does not know this word");
	is("torchrun --nproc_per_node gpu t.py", MO_NONE, MO_NONE, "t.py", NULL);
	is("torchrun --nproc_per_node cpu t.py", MO_NONE, MO_NONE, "t.py",
	   "--nproc_per_node cpu: one process for each core");
	is("srun '--gres=gpu:mi300x:4(S:0-1),nvme:1' -N 1-2 torchrun --nproc_per_node auto t.py", 2,
	   4, "t.py", NULL);
	is("python -X faulthandler -W ignore -m torch.distributed.run --nproc_per_node 2 -- t.py",
	   MO_NONE, 2, "t.py", "-X faulthandler: a word for python");
	is("flux run -N 2 -n 16 -g 1 -o mpi=none python t.py", 2, 8, "t.py",
	   "-o mpi=none: a word for Flux");
	is("CUDA_VISIBLE_DEVICES=0,1,2 torchrun --nproc_per_node auto t.py", MO_NONE, 3, "t.py",
	   "CUDA_VISIBLE_DEVICES: moectl chooses");
	is("HIP_VISIBLE_DEVICES=0,1 deepspeed --no_local_rank t.py", MO_NONE, 2, "t.py",
	   "HIP_VISIBLE_DEVICES: moectl chooses");
	is("/opt/venv/bin/python -u train.py", MO_NONE, MO_NONE, "train.py", NULL);
}

static void others(void **state)
{
	is("torchrun --nproc_per_node 8 --nnodes 2 --node_rank 0 --master_addr h --master_port "
	   "1234 "
	   "--local-ranks-filter 0 --no-python runner/helpers/numa_bind.sh primus/cli/main.py "
	   "train "
	   "pretrain --config e.yaml lr=1.0e-5",
	   2, 8, "primus/cli/main.py|train|pretrain|--config|e.yaml|lr=1.0e-5",
	   "numa_bind.sh: moectl binds each rank");
	is("srun -N4 --gpus-per-node=8 -p gpu torchrun --nproc_per_node=8 t.py", 4, 8, "t.py",
	   "-p gpu: a word for Slurm");
	is("runner/primus-cli direct --numa -- train pretrain --config x.yaml --lr 1", MO_NONE,
	   MO_NONE, "primus/cli/main.py|train|pretrain|--config|x.yaml|--lr|1",
	   "--numa: moectl binds");
	is("primus-cli slurm srun -N 2 -- container --image rocm/primus:v26 -- direct --env A=1 -- "
	   "train pretrain --config x.yaml",
	   2, MO_NONE, "primus/cli/main.py|train|pretrain|--config|x.yaml",
	   "--image rocm/primus:v26: unpack the image");
	is("deepspeed --num_gpus=4 t.py --deepspeed_config ds.json", MO_NONE, 4,
	   "t.py|--deepspeed_config|ds.json", "--local_rank=N: its launcher adds this word");
	is("deepspeed --no_local_rank --include localhost:0,3 t.py", MO_NONE, MO_NONE, "t.py",
	   "--include localhost:0,3: moectl places");
	is("python -m torch.distributed.launch --nproc_per_node=2 t.py", MO_NONE, 2, "t.py",
	   "--local-rank=N: its launcher");
	is("python -m torch.distributed.launch --use_env --nproc_per_node=2 t.py", MO_NONE, 2,
	   "t.py", NULL);
	is("srun -N2 --ntasks-per-node=4 python t.py", 2, 4, "t.py", "a rank gets RANK");
	is("srun -N2 -n 8 python t.py", 2, 4, "t.py", "a rank gets RANK");
	is("srun -N2 python t.py", 2, 1, "t.py", "a rank gets RANK");
	is("timeout -k 5 24h numactl --membind 0 torchrun --nproc_per_node 2 t.py", MO_NONE, 2,
	   "t.py", "timeout -k 5 24h: time_limit in");
	is("conda run -n env torchrun --nproc_per_node 2 t.py", MO_NONE, 2, "t.py",
	   "conda run -n env: engine.python");
	is("accelerate launch --num_machines 2 --config_file a.yaml -m pkg.train --x 1", 2, MO_NONE,
	   "-m|pkg.train|--x|1", "--config_file a.yaml: it cannot be read here");
}

/* What is counted otherwise than by nodes, and the interpreter beside a launcher. */
static void counts_and_interpreters(void **state)
{
	_cleanup_(launch_line_done) struct launch_line a = script(
		"/opt/venv/bin/accelerate launch --num_processes 6 --mixed_precision bf16 t.py");
	_cleanup_(launch_line_done) struct launch_line b =
		script("mpirun -np 4 -x A=1 python t.py");
	_cleanup_(launch_line_done) struct launch_line c = script("venv/bin/python3.11 t.py");

	assert_int_equal(a.total, 6);
	assert_string_equal(a.python, "/opt/venv/bin/python3");
	assert_string_equal(a.env[0].key, "ACCELERATE_MIXED_PRECISION");
	assert_int_equal(b.total, 4);
	assert_string_equal(b.env[0].value, "1");
	assert_string_equal(c.python, "venv/bin/python3.11");
	assert_false(c.spread);

	_cleanup_(launch_line_done) struct launch_line d =
		script("torchrun --nproc_per_node gpu t.py");
	assert_string_equal(d.all, "--nproc_per_node gpu");

	_cleanup_(launch_line_done) struct launch_line e =
		script("deepspeed --include a:0,3@b:1 t.py");
	assert_int_equal(e.total, 3);
}

static void scripts(void **state)
{
	const char *text =
		"#!/bin/bash\n#SBATCH --nodes=2 --gres=gpu:8\n#SBATCH --time=1-02:00:00 -J "
		"my-run\nset -e\nexport NCCL_DEBUG=INFO\nGPUS=8 # per node\ncd /work/x\n"
		"ARGS=(\n  --lr 1e-4   # rate\n  --name \"a b\"\n)\nMORE=\"--seed 7\"\nexport "
		"HF=${HF_HOME:-/cache}\n"
		"srun torchrun --nproc_per_node $GPUS --master_addr $(hostname) \\\n  train.py "
		"\"${ARGS[@]}\" $MORE --tag ${TAG} --q \"$UNSET\"\n";
	_cleanup_(launch_line_done) struct launch_line l = script(text);
	_cleanup_(mo_freep) char *words = piped(l.program, l.n_program),
				 *lost = piped(l.lost, l.n_lost);

	assert_string_equal(words,
			    "train.py|--lr|1e-4|--name|a b|--seed|7|--tag|${TAG}|--q|$UNSET");
	assert_int_equal(l.nodes, 2);
	assert_int_equal(l.per_node, 8);
	assert_string_equal(l.dir, "/work/x");
	assert_string_equal(l.name, "my-run");
	assert_string_equal(l.time_limit, "93600s");
	assert_int_equal(l.n_env, 2);
	assert_string_equal(l.env[0].key, "NCCL_DEBUG");
	assert_string_equal(l.env[1].value, "/cache");
	assert_int_equal(l.n_lost, 2);
	assert_non_null(strstr(lost, "${TAG}: only the shell"));
}

static void settings(void **state)
{
	const char *text =
		"#SBATCH -N 4\nexport EXP=a/b.yaml NNODES=2 HF_TOKEN=hf_1 HIP_VISIBLE_DEVICES=0,1 "
		"MASTER_PORT=${PORT:-\"6000\"} A='x y'\nB=1\n"
		"bash ./examples/run_slurm_pretrain.sh --lr $B --out $1 --nodes ${SLURM_NNODES}\n";
	_cleanup_(launch_line_done) struct launch_line l = script(text);
	_cleanup_(mo_freep) char *words = piped(l.program, l.n_program),
				 *lost = piped(l.lost, l.n_lost);

	assert_string_equal(words, "primus/cli/main.py|train|pretrain|--config|a/"
				   "b.yaml|--lr|1|--out|$1|--nodes|4");
	assert_int_equal(l.nodes, 4);
	assert_int_equal(l.n_env, 1); /* MASTER_PORT and NNODES are the launcher's */
	assert_string_equal(l.env[0].value, "x y");
	assert_non_null(strstr(lost, "HF_TOKEN: a secret"));
	assert_null(strstr(lost, "hf_1"));
	assert_non_null(strstr(lost, "HIP_VISIBLE_DEVICES: moectl chooses"));
	assert_non_null(strstr(lost, "$1: words that the script"));
	is("EXP=x.yaml NNODES=2 bash examples/run_pretrain.sh", 2, MO_NONE,
	   "primus/cli/main.py|train|pretrain|--config|x.yaml", NULL);
}

static void nothing_in_it(void **state)
{
	static const char *const bad[] = { "",
					   "echo hi\nls",
					   "torchrun --nproc_per_node=8",
					   "primus-cli direct -- benchmark gemm",
					   "primus-cli direct -- train --config x.yaml",
					   "primus-cli",
					   "torchrun --nnodes",
					   "x=(",
					   "'",
					   "$(",
					   "python -m torch.distributed.run --nproc_per_node=2",
					   "\\",
					   "srun",
					   "${",
					   "cd" };

	for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
		_cleanup_(mo_error_done) struct mo_error err = { 0 };
		struct launch_line l;

		if (launch_line_script(bad[i], NULL, &l, &err) == 0)
			fail_msg("taken: %s", bad[i]);
		assert_non_null(strstr(mo_error_text(&err, -1), "starts a training"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(torchrun),
		cmocka_unit_test(others),
		cmocka_unit_test(counts_and_interpreters),
		cmocka_unit_test(scripts),
		cmocka_unit_test(settings),
		cmocka_unit_test(nothing_in_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
