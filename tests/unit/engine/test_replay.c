/* The shipped engine files against output as the engines print it:
 * tests/fixtures/engines/KIND/NAME.log and what its lines say, NAME.facts ("LINE kind key=value
 * ..."), written after the documented grammar of each engine or, where a version and a machine are
 * named, recorded (docs/measured.md); and over recorded logs where there are some beside the
 * repository. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/core/text/lines.h"
#include "lib/base/fd.h"
#include "lib/model/limits.h"
#include "lib/recipe/engine_file.h"
#include "tests/unit/unit.h"
#include "lib/recipe/engine_load.h"

#define RANKS 8

static struct engine load(const char *kind)
{
	struct mo_error err = { 0 };
	struct engine e;

	mo_desc_init(&engine_desc, &e);
	if (engine_load(kind, &e, &err) < 0)
		fail_msg("%s", err.text);
	return e;
}

struct heard {
	struct mo_buf text;
	size_t line, samples, saved;
	double last_loss, mfu_max;
	int64_t last;
};

static void real(struct mo_buf *b, const char *name, double v)
{
	if (v != MO_NONE_F)
		mo_buf_printf(b, " %s=%.9g", name, isnan(v) ? NAN : v);
}

static void number(struct mo_buf *b, const char *name, int64_t v)
{
	if (v != MO_NONE)
		mo_buf_printf(b, " %s=%lld", name, (long long)v);
}

static void on_fact(void *arg, const struct line_fact *f)
{
	struct heard *h = arg;
	const struct sample *s = &f->sample;

	mo_buf_printf(&h->text, "%zu %s", h->line, line_kind_names[f->kind]);
	if (f->phase > PHASE_NONE)
		mo_buf_printf(&h->text, " %s", phase_names[f->phase]);
	number(&h->text, "iteration", f->kind == LINE_SAMPLE ? s->iteration : f->iteration);
	real(&h->text, "loss", s->loss);
	real(&h->text, "grad_norm", s->grad_norm);
	real(&h->text, "lr", s->lr);
	real(&h->text, "step_ms", s->step_ms);
	number(&h->text, "tokens", s->tokens);
	real(&h->text, "tokens_per_s_per_gpu", s->tokens_per_s_per_gpu);
	real(&h->text, "tflops_per_gpu", s->tflops_per_gpu);
	real(&h->text, "mfu", s->mfu);
	real(&h->text, "mem_gb", s->mem_gb);
	number(&h->text, "skipped", s->skipped);
	number(&h->text, "nan", s->nan);
	number(&h->text, "consumed_samples", s->consumed_samples);
	number(&h->text, "batch_samples", s->batch_samples);
	if (f->path[0])
		mo_buf_printf(&h->text, " path=%s", f->path);
	mo_buf_str(&h->text, "\n");
	h->samples += f->kind == LINE_SAMPLE && s->loss != MO_NONE_F;
	h->saved += f->kind == LINE_SAVED;
	if (f->kind == LINE_SAMPLE) {
		h->last = s->iteration;
		if (s->loss != MO_NONE_F)
			h->last_loss = s->loss;
	}
}

/* Every line of a text through the rules of an engine. steps: those of the recipe, by which a bar
 * is known. */
static struct heard hear(const char *kind, const char *text, size_t n, int64_t steps)
{
	struct engine e = load(kind);
	_cleanup_(lines_freep) struct lines *l = NULL;
	struct heard h = { .last_loss = MO_NONE_F, .last = MO_NONE };

	assert_int_equal(lines_new(e.rules, e.n_rules, &l, NULL), 0);
	lines_steps(l, steps);
	for (const char *p = text, *end = text + n; p < end; h.line++) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t len = (size_t)((nl ? nl : end) - p);

		h.line += h.line == 0;
		lines_feed(l, p, MO_MIN(len, (size_t)MO_LINE_MAX), RANKS, on_fact, &h);
		p += len + 1;
	}
	if (lines_gave_up(l))
		fail_msg("%s: a pattern gave up on %lld lines", kind, (long long)lines_gave_up(l));
	mo_desc_done(&engine_desc, &e);
	return h;
}

static void compare(const char *path, const char *said)
{
	_cleanup_(mo_freep) char *facts = mo_printf("%.*s.facts", (int)(strlen(path) - 4), path);
	_cleanup_(mo_buf_done) struct mo_buf expected = { 0 };

	if (getenv("MOE_WRITE_FACTS")) {
		assert_int_equal(mo_write_file(facts, said, strlen(said), 0644, false), 0);
		return;
	}
	if (mo_read_file(facts, 1 << 20, &expected) < 0)
		fail_msg("%s is missing", facts);
	if (strcmp(expected.data ? expected.data : "", said) != 0)
		fail_msg("%s\nexpected:\n%s\ngot:\n%s", path, expected.data, said);
}

static size_t replay_dir(const char *kind)
{
	_cleanup_(mo_freep) char *dir = mo_printf("tests/fixtures/engines/%s", kind);
	DIR *d = opendir(dir);
	size_t n = 0;

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));) {
		_cleanup_(mo_freep) char *path = mo_printf("%s/%s", dir, e->d_name);
		_cleanup_(mo_buf_done) struct mo_buf text = { 0 };

		if (strlen(e->d_name) < 4 || !mo_streq(e->d_name + strlen(e->d_name) - 4, ".log"))
			continue;
		assert_int_equal(mo_read_file(path, 1 << 20, &text), 0);
		struct heard h = hear(kind, text.data, text.len,
				      strstr(e->d_name, "-steps400") ? 400 : 1000);
		compare(path, h.text.data ? h.text.data : "");
		mo_buf_done(&h.text);
		n++;
	}
	closedir(d);
	return n;
}

static const char *const kinds[] = {
	"primus-megatron",      "megatron-lm", "torchtitan", "maxtext",
	"maxtext-multiprocess", "deepspeed",   "torch",      "command"
};

static void test_fixtures(void **state)
{
	for (size_t i = 0; i < ELEMENTSOF(kinds); i++)
		assert_true(replay_dir(kinds[i]) > 0);
}

/* What nobody wrote for us: no rule gives up, nothing is read into it that is not there. */
static void test_garbage(void **state)
{
	static const char *const parts[] = {
		"step 1 ",
		"iteration 5/10 | ",
		"loss ",
		"x",
		"iteration 1/2 | elapsed time per iteration (ms): 3 | ",
		"step 3/9 loss 1.5 ",
		"step: 1  loss: ",
		"completed step: 1, ",
		"\x1b[31m",
		"\x1b]8;;",
		"\xff\xfe\x80",
		"|||::==",
		"global_step=1,",
		"[Rank 0] step=1,"
	};

	for (size_t k = 0; k < ELEMENTSOF(kinds); k++) {
		for (size_t i = 0; i < ELEMENTSOF(parts); i++) {
			_cleanup_(mo_buf_done) struct mo_buf line = { 0 };

			while (line.len + strlen(parts[i]) < MO_LINE_MAX)
				mo_buf_str(&line, parts[i]);
			struct heard h = hear(kinds[k], line.data, line.len, 1000);
			mo_buf_done(&h.text);
		}
		char noise[MO_LINE_MAX];
		for (size_t i = 0, v = 1; i < sizeof(noise);
		     i++, v = v * 6364136223846793005u + 1442695040888963407u)
			noise[i] = (char)(v >> 33);
		struct heard h = hear(kinds[k], noise, sizeof(noise), 1000);
		assert_int_equal(h.samples, 0);
		mo_buf_done(&h.text);
	}
}

/* Recorded logs beside the repository. */
static void test_recorded(void **state)
{
	static const struct {
		const char *kind, *file;
		size_t samples, saved;
		int64_t last;
	} logs[] = {
		{ "megatron-lm", "engines/logs/megatron-01-ok-h200x2.log", 30, 3, 30 },
		{ "megatron-lm", "engines/logs/megatron-04-notimestamp-epfllm11.log", 4, 0, 125 },
		{ "megatron-lm", "engines/logs/megatron-05-startup-oldtimers-nccl743.log", 1, 0,
		  10 },
		{ "primus-megatron", "engines/logs/primus-01-training-line-unit-test.log", 1, 0,
		  2 },
		{ "primus-megatron", "primus/primus_megatron_iteration.log", 6, 0, 50 },
		{ "primus-megatron", "primus/primus_megatron_iteration_ansi.log", 1, 0, 4273 },
		{ "torchtitan", "engines/logs/torchtitan-01-steps-pr3393.log", 5, 0, 20 },
		{ "torchtitan", "engines/logs/torchtitan-02-asyncckpt-pr1287.log", 3, 0, 40 },
		{ "torchtitan", "engines/logs/torchtitan-04-oldformat-warning-pr950.log", 2, 0,
		  24 },
		{ "torchtitan", "engines/logs/torchtitan-06-ansi-synthetic.log", 1, 0, 14 },
		{ "torchtitan", "engines/logs/primus-03-titan-megatron-style.log", 1, 0, 1 },
		{ "torchtitan", "primus/primus_torchtitan_step.log", 3, 0, 4 },
		{ "maxtext", "engines/logs/maxtext-01-steps-docs.log", 7, 0, 10 },
		{ "maxtext", "engines/logs/maxtext-04-orbax-ckpt-cvs.log", 0, 2, MO_NONE },
		{ "maxtext", "engines/logs/maxtext-05-elastic-docs.log", 2, 0, 102 },
		{ "maxtext", "primus/primus_maxtext_step.log", 5, 0, 50 },
		{ "deepspeed", "engines/logs/deepspeed-01-overflow-issue931.log", 0, 0, 510 },
	};

	for (size_t i = 0; i < ELEMENTSOF(logs); i++) {
		_cleanup_(mo_freep) char *path = mo_printf("../shared/data/%s", logs[i].file);
		_cleanup_(mo_buf_done) struct mo_buf text = { 0 };

		if (mo_read_file(path, 1 << 20, &text) < 0)
			continue;
		struct heard h = hear(logs[i].kind, text.data, text.len, 1000);
		if (h.samples != logs[i].samples || h.saved != logs[i].saved ||
		    h.last != logs[i].last)
			fail_msg("%s: %zu samples with a loss, %zu saves, last iteration %lld\n%s",
				 path, h.samples, h.saved, (long long)h.last,
				 h.text.data ? h.text.data : "");
		mo_buf_done(&h.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_fixtures),
					    cmocka_unit_test(test_garbage),
					    cmocka_unit_test(test_recorded) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
