/* From a launch to a recipe, by the engines' own data: which engine it is, which words a recipe
 * says otherwise, and that the text reads back as what went in. */
#include <string.h>

#include "lib/base/buf.h"
#include "lib/recipe/draft.h"
#include "lib/recipe/engine_file.h"
#include "lib/recipe/launch_script.h"
#include "tests/unit/recipe/read.h"
#include "lib/recipe/draft_text.h"
#include "lib/recipe/draft_kind.h"
#include "lib/recipe/engine_load.h"

static void draft_of(const char *line, struct draft *d, struct engine *e)
{
	static const char *kinds[] = {
		"maxtext-multiprocess", "megatron-lm", "torchtitan", "deepspeed", "maxtext",
		"primus-megatron"
	};
	_cleanup_(launch_line_done) struct launch_line l;
	size_t used;
	int entry;

	draft_init(d);
	assert_int_equal(launch_line_script(line, NULL, &l, NULL), 0);
	const char *kind = draft_kind(&l, (char *const *)kinds, ELEMENTSOF(kinds), &used, &entry);
	d->kind = mo_strdup(kind ? kind : "torch");
	d->name = mo_strdup("t");
	d->gpus = 8;
	d->entry = mo_strdup(entry >= 0 ? l.program[entry] : NULL);
	for (size_t i = used; i < l.n_program; i++)
		mo_strs_add(&d->args, &d->n_args, l.program[i]);
	mo_desc_init(&engine_desc, e);
	assert_int_equal(engine_load(d->kind, e, NULL), 0);
	draft_values(d, e);
}

static char *all(char *const *words, size_t n)
{
	struct mo_buf b = { 0 };

	for (size_t i = 0; i < n; i++)
		mo_buf_printf(&b, "%s%s", i ? "|" : "", words[i]);
	mo_buf_add(&b, "", 1);
	return mo_buf_take(&b);
}

static void is(const char *line, const char *kind, const char *values, const char *args,
	       const char *lost)
{
	struct draft d;
	struct engine e;
	struct mo_buf b = { 0 };

	draft_of(line, &d, &e);
	for (size_t i = 0; i < d.n_values; i++)
		mo_buf_printf(&b, "%s%s=%s", i ? " " : "", d.values[i].key, d.values[i].value);
	_cleanup_(mo_freep) char *left = all(d.args, d.n_args), *gone = all(d.lost, d.n_lost);
	assert_string_equal(d.kind, kind);
	assert_string_equal(b.data ? b.data : "", values);
	assert_string_equal(left, args);
	if (!strstr(gone, lost) || (!*lost && *gone))
		fail_msg("%s: lost: %s", line, gone);
	mo_buf_done(&b);
	draft_done(&d);
	mo_desc_done(&engine_desc, &e);
}

static void engines(void **state)
{
	is("torchrun train.py --lr 1", "torch", "", "train.py|--lr|1", "");
	is("torchrun ./x/pretrain_gpt.py --num-layers 4", "megatron-lm", "", "--num-layers|4", "");
	is("torchrun -m torchtitan.train --module m", "torchtitan", "", "--module|m", "");
	is("deepspeed t.py --x", "deepspeed", "", "--x", "");
	is("python primus/cli/main.py train pretrain --config e.yaml --train-iters 7 --lr 1 "
	   "lr-warmup-iters=3",
	   "primus-megatron", "", "--lr|1",
	   "--train-iters 7: Primus does not know it and drops it; train_iters is the key|"
	   "--lr-warmup-iters 3: Primus does not know it");
	is("python primus/cli/main.py train pretrain --config e.yaml --tokenizer_model lr-decay=1 "
	   "--tensor-board a",
	   "primus-megatron", "", "--tokenizer_model|lr-decay=1|--tensor-board|a", "");
	is("torchrun pretrain_gpt.py --lr-warmup-iters 3", "megatron-lm", "", "--lr-warmup-iters|3",
	   "");
	is("python primus/cli/main.py train pretrain --config e.yaml a.b=1", "primus-megatron", "",
	   "a.b=1", "");
	is("python3 -m MaxText.train a/base.yml run_name=x", "maxtext", "", "run_name=x", "");
	is("python3 -m MaxText.train a/base.yml hardware=gpu x=1", "maxtext", "", "x=1", "");
}

static void rows_backwards(void **state)
{
	is("torchrun pretrain_gpt.py --tensor-model-parallel-size 2 "
	   "--pipeline-model-parallel-size=4 --micro-batch-size 1 --train-iters 9",
	   "megatron-lm", "parallelism.tp=2 parallelism.pp=4 batch.micro=1 steps=9", "", "");
	/* two flags of one value: only where both say it */
	is("torchrun pretrain_gpt.py --seq-length 64 --max-position-embeddings 64", "megatron-lm",
	   "batch.seq=64", "", "");
	is("torchrun pretrain_gpt.py --seq-length 64 --max-position-embeddings 128", "megatron-lm",
	   "", "--seq-length|64|--max-position-embeddings|128", "");
	is("torchrun pretrain_gpt.py --seq-length 64", "megatron-lm", "", "--seq-length|64", "");
	/* the row that says most */
	is("torchrun pretrain_gpt.py --bf16", "megatron-lm", "precision=bf16", "", "");
	is("torchrun pretrain_gpt.py --bf16 --fp8-format hybrid", "megatron-lm", "precision=fp8",
	   "", "");
	is("torchrun pretrain_gpt.py --bf16 --fp8-format hybrid --fp8-recipe mxfp8", "megatron-lm",
	   "precision=mxfp8", "", "");
	is("torchrun pretrain_gpt.py --bf16 --fp8-format e4m3", "megatron-lm", "precision=bf16",
	   "--fp8-format|e4m3", "");
	/* said twice: the last stands */
	is("torchrun pretrain_gpt.py --train-iters 5 --train-iters 7", "megatron-lm", "steps=7", "",
	   "");
}

static void what_moectl_decides_is_lost_with_a_reason(void **state)
{
	is("torchrun pretrain_gpt.py --save /c --save-interval 10 --load /d --lr 1", "megatron-lm",
	   "checkpoint.dir=/c checkpoint.every=10", "--lr|1",
	   "--load /d: a job resumes from where it saves, which is /c: use checkpoint.dir");
	is("torchrun pretrain_gpt.py --load /d/ --save /d", "megatron-lm", "checkpoint.dir=/d", "",
	   "");
	is("torchrun pretrain_gpt.py --load /d", "megatron-lm", "", "",
	   "--load /d: a job resumes from where it saves, and the original saves nothing: use");
	is("torchrun -m torchtitan.train --checkpoint.enable --checkpoint.folder /c "
	   "--checkpoint.keep_latest_k 3 --training.steps 4",
	   "torchtitan", "steps=4 checkpoint.dir=/c", "",
	   "--checkpoint.keep_latest_k 3: moectl says --checkpoint.keep_latest_k 0 with "
	   "checkpoint.dir");
}

/* Whatever a word is, the recipe's word is the same. */
static void the_text_reads_back(void **state)
{
	static const char *const words[] = {
		"--a",       "1e-4", "true",  "null",        "~",      "",           "a b",
		"x: y",      "#c",   "\"q\"", "back\\slash", "[1, 2]", "{x}",        "-5",
		"--",        "-",    "0x10",  ".5",          "+1",     "on",         "tab\there",
		"new\nline", "é",    "a,b",   "'",           "%x",     "@y",         "&z",
		"*w",        "!t",   "|",     ">",           "1:30",   "2026-01-01", "yes"
	};
	struct draft d;
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	struct recipe r;

	draft_init(&d);
	d.kind = mo_strdup("torch");
	d.name = mo_strdup("t");
	d.entry = mo_strdup("a b.py");
	d.workdir = mo_strdup("/w x");
	d.gpus = 8;
	for (size_t i = 0; i < ELEMENTSOF(words); i++)
		mo_strs_add(&d.args, &d.n_args, words[i]);
	static const char *const comments[] = { "one\ntwo: {", "three" };
	_cleanup_(mo_freep) char *text = draft_text(&d, (char *const *)comments, 2);
	mo_desc_init(&recipe_desc, &r);
	if (recipe_parse(text, strlen(text), NULL, 0, &r, NULL, NULL, NULL, &errors) < 0)
		fail_msg("%s\n%s", mo_error_text(&errors.items[0], -1), text);
	assert_int_equal(r.engine.n_args, ELEMENTSOF(words));
	for (size_t i = 0; i < ELEMENTSOF(words); i++)
		assert_string_equal(r.engine.args[i].key, words[i]);
	assert_string_equal(r.engine.entry, "a b.py");
	assert_string_equal(r.engine.workdir, "/w x");
	mo_desc_done(&recipe_desc, &r);
	draft_done(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(engines),
		cmocka_unit_test(rows_backwards),
		cmocka_unit_test(what_moectl_decides_is_lost_with_a_reason),
		cmocka_unit_test(the_text_reads_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
