/* engine.prepare: what its lines change, and the step core around it. */
#include <signal.h>
#include <string.h>

#include "agent/core/stepd/hooks.h"
#include "agent/core/stepd/stepd_core.h"
#include "lib/base/buf.h"
#include "lib/model/launch.h"
#include "lib/model/recipe.h"
#include "tests/unit/unit.h"

static void test_hooks(void **state)
{
	/* clang-format off */
	static const char *const lines[] = {
		"env.NCCL_DEBUG=INFO", "env.EMPTY=", "env.A=b=c", "env.1X=1", "env.=x", "env.A B=c",
		"env.NO", "extra.training.steps=10", "extra.moe-x=", "extra.-x=1", "extra.=1",
		" env.X=1", "environment=1", "", "env.",
	};
	/* clang-format on */
	struct hooks h = { 0 };
	struct launch l;

	mo_desc_init(&launch_desc, &l);
	mo_strs_add(&l.argv, &l.n_argv, "train");
	for (size_t i = 0; i < ELEMENTSOF(lines); i++)
		hooks_line(&h, lines[i], strlen(lines[i]));
	hooks_line(&h, "env.Z=a\0b", 9);
	assert_int_equal(h.refused, 7);
	hooks_apply(&h, &l);
	assert_int_equal(l.n_env, 3);
	assert_string_equal(l.env[0].name, "NCCL_DEBUG");
	assert_string_equal(l.env[0].value, "INFO");
	assert_string_equal(l.env[0].source, "prepare");
	assert_string_equal(l.env[1].value, "");
	assert_string_equal(l.env[2].value, "b=c");
	assert_int_equal(l.n_argv, 4);
	assert_string_equal(l.argv[1], "--training.steps");
	assert_string_equal(l.argv[2], "10");
	assert_string_equal(l.argv[3], "--moe-x");
	for (int i = 0; i < 2 * HOOKS_MAX; i++)
		hooks_line(&h, "env.A=1", 7);
	assert_int_equal(h.n_env, HOOKS_MAX);
	hooks_done(&h);
	mo_desc_done(&launch_desc, &l);
}

/* Primus' main takes --data_path for itself, also cut short: as one word with `=` it reaches
 * training. */
static void test_main_words(void **state)
{
	static const char *const lines[] = { "extra.data_path=/d/a b", "extra.data=/x",
					     "extra.lr=1",
					     "extra.exp=", "extra.backend_path=/same" };
	static const char *const wanted[] = { "train",
					      "backend_path=/same",
					      "--config",
					      "exp.yaml",
					      "data_path=/d/a b",
					      "data=/x",
					      "--lr",
					      "1",
					      "exp=" };
	struct hooks h = { 0 };
	struct launch l;

	mo_desc_init(&launch_desc, &l);
	mo_strs_add(&l.main_words, &l.n_main_words, "data_path");
	mo_strs_add(&l.main_words, &l.n_main_words, "backend_path");
	mo_strs_add(&l.main_words, &l.n_main_words, "exp");
	for (size_t i = 0; i < 4; i++)
		mo_strs_add(&l.argv, &l.n_argv, wanted[i]);
	for (size_t i = 0; i < ELEMENTSOF(lines); i++)
		hooks_line(&h, lines[i], strlen(lines[i]));
	hooks_apply(&h, &l);
	assert_int_equal(l.n_argv, ELEMENTSOF(wanted));
	for (size_t i = 0; i < ELEMENTSOF(wanted); i++)
		assert_string_equal(l.argv[i], wanted[i]);
	hooks_done(&h);
	mo_desc_done(&launch_desc, &l);
}

static void own(struct launch *l, const char *flag, const char *instead)
{
	struct kv *pair = MO_ADD(l, owned, &kv_desc);

	mo_str_set(&pair->key, flag);
	mo_str_set(&pair->value, instead);
}

/* What is moectl's, in any spelling, keeps the ranks from starting; what the command says already
 * is not said again. */
static void test_owned(void **state)
{
	static const struct {
		const char *line, *refusal;
	} cases[] = {
		{ "extra.load=/elsewhere", "extra.load=/elsewhere, which is not its to decide: use "
					   "checkpoint.dir; engine.args_unchecked: [load]" },
		{ "extra.ckpt-step=7", "extra.ckpt-step=7" },
		{ "extra.auto_continue_train=true", "extra.auto_continue_train=true" },
		{ "extra.save=/c", NULL },
		{ "extra.save=/d", "extra.save=/d" },
		{ "extra.offset=-1", NULL },
		{ "extra.save_x=1", NULL },
		{ "extra.sav=1", NULL },
		{ "extra.no_load_optim=", "extra.no_load_optim=," },
		{ "extra.bar=--save=/d", "extra.bar=--save=/d, which is not its to decide: i; "
					 "engine.args_unchecked: [save]" },
		{ "extra.bar=-2", NULL },
	};
	static const char *const argv[] = { "train", "--save",   "/old", "--auto_continue_train",
					    "false", "--offset", "-1",   "--save=/c" };

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		struct hooks h = { 0 };
		struct launch l;

		mo_desc_init(&launch_desc, &l);
		for (size_t k = 0; k < ELEMENTSOF(argv); k++)
			mo_strs_add(&l.argv, &l.n_argv, argv[k]);
		own(&l, "load", "use checkpoint.dir");
		own(&l, "ckpt_step", "i");
		own(&l, "save", "i");
		own(&l, "offset", "i");
		own(&l, "auto_continue_train", "i");
		own(&l, "no-load-optim", NULL);
		hooks_line(&h, cases[i].line, strlen(cases[i].line));
		_cleanup_(mo_freep) char *said = hooks_refusal(&h, &l);

		if (!said != !cases[i].refusal || (said && !strstr(said, cases[i].refusal)))
			fail_msg("%s: %s", cases[i].line, said);
		if (mo_streq(cases[i].line, "extra.save=/c") ||
		    mo_streq(cases[i].line, "extra.offset=-1")) {
			hooks_apply(&h, &l);
			assert_int_equal(l.n_argv, ELEMENTSOF(argv));
		}
		hooks_done(&h);
		mo_desc_done(&launch_desc, &l);
	}
}

/* Feeds one event; returns its effects as "prepare fork note:refused:TEXT kill ...". */
static char *feed(struct stepd_core *s, int type, bool ok, const char *text, int64_t now)
{
	static const char *const names[] = { "hold", "fork", "release", "signal", "kill",
					     "note", "done", "prepare", "config", "namespace" };
	struct stepd_out out = { 0 };
	struct stepd_event e = { .type = type, .ok = ok };
	struct mo_buf b = { 0 };

	mo_desc_init(&note_desc, &e.note);
	e.note.text = mo_strdup(text);
	stepd_core_decide(s, &e, now, &out);
	for (size_t i = 0; i < out.n_effects; i++) {
		const struct stepd_effect *x = &out.effects[i];

		mo_buf_printf(&b, "%s%s", i ? " " : "", names[x->type]);
		if (x->type == SX_NOTE)
			mo_buf_printf(&b, ":%s:%s:%s", note_kind_names[x->note.kind],
				      x->note.cause ? x->note.cause : "",
				      x->note.text ? x->note.text : "");
	}
	stepd_out_done(&out);
	mo_desc_done(&note_desc, &e.note);
	return b.data ? mo_buf_take(&b) : mo_strdup("");
}

static void expect(struct stepd_core *s, int type, bool ok, const char *text, int64_t now,
		   const char *wanted)
{
	_cleanup_(mo_freep) char *seen = feed(s, type, ok, text, now);

	assert_string_equal(seen, wanted);
}

static struct stepd_core *make_core(bool ports, bool own_namespace)
{
	struct launch l;

	mo_desc_init(&launch_desc, &l);
	l.n_local = l.world = 2;
	l.first_rank = 0;
	l.hold_ports = ports;
	l.prepare_limit_us = 600000000;
	mo_strs_add(&l.prepare, &l.n_prepare, "x");
	struct stepd_core *s = stepd_core_new(&l, own_namespace);

	mo_desc_done(&launch_desc, &l);
	return s;
}

static struct stepd_core *make(bool ports)
{
	return make_core(ports, false);
}

static struct stepd_core *make_in_namespace(void)
{
	return make_core(false, true);
}

static void test_step(void **state)
{
	struct stepd_core *s = make(true);

	expect(s, SE_LAUNCH, false, NULL, 0, "prepare");
	assert_int_equal(stepd_core_deadline(s), 600000000);
	expect(s, SE_PREPARED, true, NULL, 5, "hold");
	expect(s, SE_PREPARED, true, NULL, 6, "");
	expect(s, SE_PORTS, true, NULL, 7, "fork");
	stepd_core_free(s);

	s = make(false);
	expect(s, SE_LAUNCH, false, NULL, 0, "prepare");
	expect(s, SE_PREPARED, false, "exit code 3", 5, "note:refused:prepare:exit code 3 kill");
	expect(s, SE_EMPTY, false, NULL, 6, "note:gone::no rank was started done");
	stepd_core_free(s);

	s = make(false);
	expect(s, SE_LAUNCH, false, NULL, 0, "prepare");
	expect(s, SE_TICK, false, NULL, 600000000,
	       "note:refused:prepare:engine.prepare has not ended after 600 s and was killed kill");
	expect(s, SE_PREPARED, false, "signal 9", 600000001, "");
	expect(s, SE_EMPTY, false, NULL, 600000002, "note:gone::no rank was started done");
	stepd_core_free(s);

	s = make_in_namespace(); /* nothing of the job before it, made or not */
	expect(s, SE_LAUNCH, false, NULL, 0, "namespace");
	expect(s, SE_PREPARED, true, NULL, 1, "");
	expect(s, SE_NAMESPACE, true, NULL, 2, "prepare");
	expect(s, SE_NAMESPACE, true, NULL, 3, "");
	expect(s, SE_PREPARED, true, NULL, 4, "fork");
	stepd_core_free(s);

	s = make_in_namespace(); /* it is not what was asked: nothing of the job runs outside it */
	expect(s, SE_LAUNCH, false, NULL, 0, "namespace");
	expect(s, SE_NAMESPACE, false, "no such image", 1,
	       "note:refused:namespace:no such image kill");
	expect(s, SE_EMPTY, false, NULL, 2, "note:gone::no rank was started done");
	stepd_core_free(s);

	s = make_in_namespace(); /* who makes it is in the tree */
	expect(s, SE_LAUNCH, false, NULL, 0, "namespace");
	expect(s, SE_STOP, false, NULL, 1, "kill");
	expect(s, SE_NAMESPACE, false, NULL, 2, "");
	expect(s, SE_EMPTY, false, NULL, 3, "note:gone::no rank was started done");
	stepd_core_free(s);

	s = make(false); /* what it started must be gone before the step is */
	expect(s, SE_LAUNCH, false, NULL, 0, "prepare");
	expect(s, SE_STOP, false, NULL, 1, "kill");
	expect(s, SE_PREPARED, true, NULL, 2, "");
	expect(s, SE_EMPTY, false, NULL, 3, "note:gone::no rank was started done");
	stepd_core_free(s);

	s = make(false);
	expect(s, SE_LAUNCH, false, NULL, 0, "prepare");
	expect(s, SE_KILL, false, NULL, 1, "kill");
	stepd_core_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_hooks),
					    cmocka_unit_test(test_main_words),
					    cmocka_unit_test(test_owned),
					    cmocka_unit_test(test_step) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
