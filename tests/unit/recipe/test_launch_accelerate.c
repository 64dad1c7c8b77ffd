/* What accelerate's words and its file make of the variables of a rank. */
#include "tests/unit/recipe/read.h"

#include <string.h>

#include "lib/base/buf.h"
#include "lib/recipe/launch_line.h"
#include "lib/recipe/launch_script.h"

static const struct {
	const char *path, *text;
} files[] = {
	{ "/w/ddp.yaml", "distributed_type: MULTI_GPU\ngradient_accumulation_steps: 4\n"
			 "mixed_precision: bf16\n" },
	{ "/w/ds.yaml", "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\n"
			"  gradient_accumulation_steps: 8\nmixed_precision: bf16\n" },
	{ "/w/fsdp.yaml", "distributed_type: FSDP\nfsdp_config:\n"
			  "  fsdp_sharding_strategy: FULL_SHARD\n" },
};

static char *read_file(void *arg, const char *path)
{
	(void)arg;
	for (size_t i = 0; i < ELEMENTSOF(files); i++)
		if (mo_streq(path, files[i].path))
			return mo_strdup(files[i].text);
	return NULL;
}

static const struct launch_world world = { .read = read_file, .dir = "/w" };

/* The variables in the order in which they are listed, and all that is lost. */
static void is(const char *text, const char *env, const char *lost)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(launch_line_done) struct launch_line l = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf vars = { 0 }, said = { 0 };

	if (launch_line_script(text, &world, &l, &err) < 0)
		fail_msg("%s: %s", text, mo_error_text(&err, -1));
	for (size_t i = 0; i < l.n_env; i++)
		mo_buf_printf(&vars, "%s%s=%s", i ? " " : "", l.env[i].key, l.env[i].value);
	for (size_t i = 0; i < l.n_lost; i++)
		mo_buf_printf(&said, "%s%s", i ? "|" : "", l.lost[i]);
	if (!mo_streq(vars.data ? vars.data : "", env))
		fail_msg("%s: env: %s", text, vars.data);
	if (!mo_streq(said.data ? said.data : "", lost))
		fail_msg("%s: lost: %s", text, said.data);
}

/* A rank reads the number of accumulated steps always, and takes it before its script's own. */
static void of_deepspeed_alone(void **state)
{
	is("accelerate launch --num_processes 8 --multi_gpu --gradient_accumulation_steps 4 t.py",
	   "", "--gradient_accumulation_steps 4: accelerate tells it to ranks of DeepSpeed alone");
	is("accelerate launch --use_deepspeed --gradient_accumulation_steps 4 t.py",
	   "ACCELERATE_USE_DEEPSPEED=true ACCELERATE_GRADIENT_ACCUMULATION_STEPS=4", "");
	is("accelerate launch --config_file ddp.yaml --zero_stage 2 t.py",
	   "ACCELERATE_MIXED_PRECISION=bf16",
	   "--zero_stage 2: accelerate tells it to ranks of DeepSpeed alone|"
	   "ddp.yaml:2 gradient_accumulation_steps 4: accelerate tells it to ranks of DeepSpeed "
	   "alone");
	is("accelerate launch --config_file fsdp.yaml t.py",
	   "ACCELERATE_USE_FSDP=true FSDP_SHARDING_STRATEGY=FULL_SHARD", "");
	is("accelerate launch --fsdp_version 2 t.py", "",
	   "--fsdp_version 2: accelerate tells it to ranks of FSDP alone");
	/* what the user sets goes to the ranks whatever the launcher adds */
	is("ACCELERATE_GRADIENT_ACCUMULATION_STEPS=2 accelerate launch --multi_gpu t.py",
	   "ACCELERATE_GRADIENT_ACCUMULATION_STEPS=2", "");
	is("ACCELERATE_MIXED_PRECISION=no accelerate launch --config_file ddp.yaml t.py",
	   "ACCELERATE_MIXED_PRECISION=bf16",
	   "ddp.yaml:2 gradient_accumulation_steps 4: accelerate tells it to ranks of DeepSpeed "
	   "alone");
}

/* Its file's distributed_type counts where no word of the line says one. */
static void of_the_line_and_of_the_file(void **state)
{
	is("accelerate launch --config_file ds.yaml t.py",
	   "ACCELERATE_USE_DEEPSPEED=true ACCELERATE_CONFIG_DS_FIELDS="
	   "zero_stage,gradient_accumulation_steps ACCELERATE_DEEPSPEED_ZERO_STAGE=3 "
	   "ACCELERATE_GRADIENT_ACCUMULATION_STEPS=8 ACCELERATE_MIXED_PRECISION=bf16",
	   "");
	is("accelerate launch --config_file ds.yaml --multi_gpu t.py",
	   "ACCELERATE_MIXED_PRECISION=bf16",
	   "ds.yaml:1 distributed_type DEEPSPEED: a word of the line says another one, which "
	   "accelerate takes|"
	   "ds.yaml:3 zero_stage 3: accelerate tells it to ranks of DeepSpeed alone|"
	   "ds.yaml:4 gradient_accumulation_steps 8: accelerate tells it to ranks of DeepSpeed "
	   "alone");
	is("accelerate launch --config_file fsdp.yaml --use-deepspeed t.py",
	   "ACCELERATE_USE_DEEPSPEED=true",
	   "fsdp.yaml:1 distributed_type FSDP: a word of the line says another one, which "
	   "accelerate takes|"
	   "fsdp.yaml:3 fsdp_sharding_strategy FULL_SHARD: accelerate tells it to ranks of FSDP "
	   "alone");
	is("accelerate launch --config_file fsdp.yaml --use_fsdp t.py",
	   "ACCELERATE_USE_FSDP=true FSDP_SHARDING_STRATEGY=FULL_SHARD", "");
	/* a word of the program is none of its launcher's */
	is("accelerate launch --config_file fsdp.yaml t.py --multi_gpu",
	   "ACCELERATE_USE_FSDP=true FSDP_SHARDING_STRATEGY=FULL_SHARD", "");
}

/* In 1.x a key of a section wins over a word of the line, and a key of no section loses to it. */
static void of_both(void **state)
{
	static const char over[] =
		"accelerate launch --config_file ds.yaml --zero_stage 2 --mixed_precision fp16 "
		"--gradient_accumulation_steps 8 t.py";

	is(over,
	   "ACCELERATE_DEEPSPEED_ZERO_STAGE=3 ACCELERATE_MIXED_PRECISION=fp16 "
	   "ACCELERATE_GRADIENT_ACCUMULATION_STEPS=8 ACCELERATE_USE_DEEPSPEED=true "
	   "ACCELERATE_CONFIG_DS_FIELDS=zero_stage,gradient_accumulation_steps",
	   "--zero_stage 2: accelerate 1.x takes ds.yaml:3 zero_stage 3 over it, and so does env: "
	   "write the one that you mean");
	is("accelerate launch --config_file fsdp.yaml --fsdp_sharding_strategy NO_SHARD t.py",
	   "FSDP_SHARDING_STRATEGY=FULL_SHARD ACCELERATE_USE_FSDP=true",
	   "--fsdp_sharding_strategy NO_SHARD: accelerate 1.x takes fsdp.yaml:3 "
	   "fsdp_sharding_strategy FULL_SHARD over it, and so does env: write the one that you "
	   "mean");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_deepspeed_alone),
		cmocka_unit_test(of_the_line_and_of_the_file),
		cmocka_unit_test(of_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
