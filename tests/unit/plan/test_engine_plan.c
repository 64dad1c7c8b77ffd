/* `plan:` of engine files: what its rows make of engine.args and of the engine's own configuration,
 * what is wrong with a row, and whose rows a file without the section has. */
#include "tests/unit/recipe/read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/fd.h"
#include "lib/model/traits.h"
#include "lib/plan/features.h"
#include "lib/plan/plan.h"
#include "lib/recipe/engine_file.h"
#include "lib/recipe/engine_plan.h"

static const char head[] = "engine: 1\nkind: toy\nsource: here\nargv: ['{args}']\n";

static char *error_of(const char *lines)
{
	_cleanup_(mo_freep) char *text = mo_printf("%s%s", head, lines);
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	struct engine e;

	mo_desc_init(&engine_desc, &e);
	int r = engine_parse(text, strlen(text), &e, &errors);
	char *said = errors_text(&errors);

	assert_int_equal(r, *said ? -EINVAL : 0);
	mo_desc_done(&engine_desc, &e);
	return said;
}

static void test_bad_rows(void **state)
{
	static const struct {
		const char *lines, *expected;
	} bad[] = {
		{ "plan: 4\n", "5:7 plan: expected a mapping such as" },
		{ "plan: {recomputte: a}\n", "5:8 plan: 'recomputte' is no trait that plans know "
					     "[did you mean 'recompute'?]" },
		{ "plan: {colour: a}\n", "5:8 plan: 'colour' is no trait that plans know [the "
					 "traits are listed in docs/engines.md]" },
		{ "plan: {recompute=often: a=b}\n",
		  "5:8 plan: recompute: 'often' is no value of it" },
		{ "plan: {grad_bytes=8: a=b}\n", "5:8 plan: grad_bytes: '8' is no value of it" },
		{ "plan: {graph_modules=attention|tail: a}\n",
		  "5:8 plan: graph_modules: 'attention|tail' is no value of it" },
		{ "plan: {eager: maybe or}\n", "5:15 plan: eager: expected conditions such as" },
		{ "plan: {eager: a=}\n", "5:15 plan: eager: expected conditions such as" },
		{ "plan: {eager: '=x'}\n", "5:15 plan: eager: expected conditions such as" },
		{ "plan: {eager: a!b}\n", "5:15 plan: eager: expected conditions such as" },
		{ "plan: {shard_bytes: =9}\n",
		  "5:21 plan: shard_bytes: expected 'KEY|KEY|=VALUE if CONDITIONS'" },
		{ "plan: {shard_bytes: a b}\n",
		  "5:21 plan: shard_bytes: expected 'KEY|KEY|=VALUE if CONDITIONS'" },
		{ "plan: {shard_bytes: a if }\n", "5:21 plan: shard_bytes: expected" },
		{ "plan: {shard_bytes: [a, {}]}\n", "5:25 plan: expected a text, got a mapping" },
		{ "plan: {eager: {a: b}}\n", "5:15 plan: expected a text, got a mapping" },
		{ "plan: {like: [a b]}\n",
		  "5:14 plan.like: 'a b': expected the kind of another engine file" },
		{ "plans: {}\n", "5:1 unknown key 'plans' [did you mean 'plan'?]" },
	};

	for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
		_cleanup_(mo_freep) char *said = error_of(bad[i].lines);

		if (strncmp(said, bad[i].expected, strlen(bad[i].expected)) != 0)
			fail_msg("%s\nexpected: %s\n     got: %s", bad[i].lines, bad[i].expected,
				 said);
	}
	_cleanup_(mo_freep) char *none = error_of("plan: {}\n");

	assert_string_equal(none, "");
}

/* Traits of a recipe with these words in engine.args ("a=b c", NULL value without '=') and in the
 * files. */
static struct engine_traits *traits_by(const char *plan, const char *args, const char *own)
{
	_cleanup_(mo_freep) char *text = mo_printf("%s%s", head, plan);
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	struct recipe r;
	struct engine e;

	mo_desc_init(&engine_desc, &e);
	mo_desc_init(&recipe_desc, &r);
	if (engine_parse(text, strlen(text), &e, &errors) < 0)
		fail_msg("%s: %s", plan, errors.items[0].text);
	for (int files = 0; files < 2; files++)
		for (const char *s = files ? own : args; *s; s += strspn(s, " ")) {
			size_t n = strcspn(s, " "), key = MO_MIN(strcspn(s, "="), n);
			struct kv *pair = files ? MO_ADD(&r.engine, own, &kv_desc)
						: MO_ADD(&r.engine, args, &kv_desc);

			pair->key = mo_strndup(s, key);
			pair->value = key < n ? mo_strndup(s + key + 1, n - key - 1) : NULL;
			s += n;
		}
	engine_plan_apply(&e, &r);
	struct engine_traits *ret = r.engine.traits;

	r.engine.traits = NULL;
	mo_desc_done(&recipe_desc, &r);
	mo_desc_done(&engine_desc, &e);
	return ret;
}

static void traits_free(struct engine_traits *t)
{
	mo_desc_free(&engine_traits_desc, t);
}
MO_DEFINE_CLEANUP(struct engine_traits, traits_free)

static void test_rows(void **state)
{
	static const char plan[] = "plan:\n"
				   "  recompute: [level, =selective if light=true]\n"
				   "  schedule=zbv: pipe=zb|zero or pipe=v on\n"
				   "  compiled: fast.mode>1\n"
				   "  eager: true\n"
				   "  xla: [never=1, 'false', 'true']\n"
				   "  shard_bytes: bytes|width|=4\n"
				   "  optimizer_offload: part|=1 if offload=true\n"
				   "  graph_modules=router: list=r\n"
				   "  graph_modules=attention|mlp: list=am\n"
				   "  remat_saved: names\n"
				   "  recompute_ids: ids\n"
				   "  fp4: tiny!=null\n";
	_cleanup_(traits_freep) struct engine_traits *none = traits_by(plan, "", "");

	assert_true(!none->recompute && !none->schedule && !none->compiled && none->eager &&
		    !none->xla);
	assert_true(none->shard_bytes == 4 && none->optimizer_offload == MO_NONE_F && !none->fp4);
	assert_true(!none->n_graph_modules && !none->n_remat_saved && !none->recompute_ids);
	/* Dashes are underscores, the last word wins, and words of the command win over the
	 * files. */
	_cleanup_(traits_freep) struct engine_traits *some =
		traits_by(plan,
			  "--level=Full pipe=x pipe=v on --fast.mode=2 never=1 bytes=9 width=2 "
			  "offload",
			  "level=none part=0.25 list=[am,'r'] names=(qkv,unknown,up) ids=none "
			  "tiny=e2m1");

	assert_string_equal(some->recompute, "full");
	assert_string_equal(some->schedule, "zbv");
	assert_true(some->compiled && some->xla && some->shard_bytes == 2); /* 9 is no width */
	assert_true(some->optimizer_offload == 0.25 && !some->recompute_ids);
	assert_int_equal(trait_bits(trait_find("graph_modules"), some->graph_modules,
				    some->n_graph_modules),
			 GRAPH_ATTENTION | GRAPH_MLP | GRAPH_ROUTER);
	assert_int_equal(trait_bits(trait_find("remat_saved"), some->remat_saved,
				    some->n_remat_saved),
			 REMAT_QKV | REMAT_UP);
	/* the recipe has a precision of its own: the files say nothing above it */
	assert_false(some->fp4);
	_cleanup_(traits_freep) struct engine_traits *more =
		traits_by(plan, "light=true level=often part=7 offload=true ids=3,4 tiny=e2m1", "");

	assert_string_equal(more->recompute, "selective"); /* "often" is no level */
	assert_true(more->optimizer_offload == 1 && more->fp4);
	assert_string_equal(more->recompute_ids, "3,4");
}

/* The words of each set stand in the order of the planner's bits. */
static void test_words_of_sets(void **state)
{
	static const struct {
		const char *trait, *word;
		int64_t bit;
	} rows[] = {
		{ "recompute_modules", "core_attention", MODULE_CORE_ATTENTION },
		{ "recompute_modules", "expert_activation", MODULE_EXPERT_ACTIVATION },
		{ "recompute_modules", "norms", MODULE_NORMS },
		{ "recompute_modules", "mla_up", MODULE_MLA_UP },
		{ "recompute_modules", "mlp", MODULE_MLP },
		{ "recompute_modules", "moe", MODULE_MOE },
		{ "recompute_modules", "shared_experts", MODULE_SHARED },
		{ "offload_modules", "attention_norm", OFFLOAD_ATTN_NORM },
		{ "offload_modules", "qkv", OFFLOAD_QKV },
		{ "offload_modules", "core_attention", OFFLOAD_CORE_ATTENTION },
		{ "offload_modules", "projection", OFFLOAD_PROJECTION },
		{ "offload_modules", "mlp_norm", OFFLOAD_MLP_NORM },
		{ "offload_modules", "expert_up", OFFLOAD_EXPERT_UP },
		{ "offload_modules", "expert_activation", OFFLOAD_EXPERT_ACTIVATION },
		{ "graph_modules", "attention", GRAPH_ATTENTION },
		{ "graph_modules", "mlp", GRAPH_MLP },
		{ "graph_modules", "router", GRAPH_ROUTER },
		{ "graph_modules", "preprocess", GRAPH_PREPROCESS },
		{ "graph_modules", "experts", GRAPH_EXPERTS },
		{ "remat_saved", "qkv", REMAT_QKV },
		{ "remat_saved", "out", REMAT_OUT },
		{ "remat_saved", "context", REMAT_CONTEXT },
		{ "remat_saved", "up", REMAT_UP },
		{ "remat_saved", "down", REMAT_DOWN },
	};
	size_t words = 0;

	for (size_t i = 0; i < n_traits; i++)
		words += traits[i].kind == TRAIT_SET ? trait_words(&traits[i]) : 0;
	assert_int_equal(words, ELEMENTSOF(rows));
	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		char *word[] = { (char *)rows[i].word };

		assert_int_equal(trait_bits(trait_find(rows[i].trait), word, 1), rows[i].bit);
	}
}

/* docs/engines.md has each trait, and each word that a trait may have. */
static void test_documented(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };

	assert_int_equal(mo_read_file(MO_SOURCE_DIR "/docs/engines.md", 1 << 20, &text), 0);
	const char *section = strstr(text.data, "\n## plan\n");
	_cleanup_(mo_freep) char *plan =
		section ? mo_strndup(section, (size_t)(strstr(section + 4, "\n## ") - section))
			: NULL;

	assert_non_null(plan);
	for (size_t i = 0; i < n_traits; i++)
		for (size_t w = 0; w <= trait_words(&traits[i]); w++) {
			const char *name = w ? traits[i].words[w - 1] : traits[i].name;
			_cleanup_(mo_freep) char *code = mo_printf("`%s`", name);

			if (!strstr(plan, code))
				fail_msg("docs/engines.md: plan: no %s of %s", code,
					 traits[i].name);
		}
}

static void write_engine(const char *dir, const char *kind, const char *lines)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "engines/%s.yaml", kind);
	_cleanup_(mo_freep) char *text =
		mo_printf("engine: 1\nkind: %s\nsource: here\nargv: ['{args}']\n%s", kind, lines);

	assert_int_equal(mo_write_file(path, text, strlen(text), 0600, false), 0);
}

static struct parsed with_engine(const char *kind)
{
	_cleanup_(mo_freep) char *text =
		mo_printf("recipe: 1\nname: x\nengine: {kind: %s, args: {recompute_granularity: "
			  "full, remat_policy: none}}\n"
			  "cluster: {gpus: 8}\n",
			  kind);

	return parse(text, NULL);
}

/* What a site's file has that says nothing: what was known of it before there was the section. */
static void test_files_without_rows(void **state)
{
	static const struct {
		const char *kind, *lines, *recompute;
		bool eager, sharding_told;
		int64_t shard_bytes;
	} rows[] = {
		{ "own", "", "full", false, false, MO_NONE },
		{ "own2", "plan: {}\n", NULL, false, false, MO_NONE },
		{ "own3", "plan: {like: own4}\n", "none", true, false, 4 },
		{ "torchtitan-ours", "", "full", true, false, 4 },
		{ "maxtext-of-ours", "", "none", false, false, 4 },
		{ "torchtitan-0.1-ours", "", "full", true, false, 4 },
		{ "torchtitan-dev-ours", "like: torchtitan\nlines: ~\n", "full", true, false, 4 },
		/* it may shard otherwise: its jobs are warned of, and not refused */
		{ "megatron-lm-ours", "", "full", false, false, MO_NONE },
		{ "megatron-lm-2", "plan: {sharding_told: true, like: megatron-lm}\n", "full",
		  false, true, MO_NONE },
		{ "megatron-lm-3", "plan: {like: megatron-lm-ours}\n", "full", false, false,
		  MO_NONE },
		{ "megatron-lm", "", "full", false, true,
		  MO_NONE }, /* a copy of the one of an older version */
		{ "command", "", "full", false, false, MO_NONE },
	};
	char dir[] = "/tmp/moe-plan-XXXXXX";

	assert_non_null(mkdtemp(dir));
	_cleanup_(mo_freep) char *engines = mo_path(dir, "engines");
	assert_int_equal(mo_mkdir_p(engines, 0700, false), 0);
	setenv("MOE_DATA_DIR", dir, 1);
	write_engine(dir, "own4", "plan: {like: maxtext, eager: true, xla: false}\n");
	for (size_t i = 0; i < ELEMENTSOF(rows); i++)
		write_engine(dir, rows[i].kind, rows[i].lines);
	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		struct parsed p = with_engine(rows[i].kind);

		must(&p);
		const struct engine_traits *t = p.recipe.engine.traits;

		if (!mo_streq(t->recompute, rows[i].recompute) || t->eager != rows[i].eager ||
		    t->sharding_told != rows[i].sharding_told ||
		    t->shard_bytes != rows[i].shard_bytes)
			fail_msg("%s: %s %d %d %lld", rows[i].kind,
				 t->recompute ? t->recompute : "-", t->eager, t->sharding_told,
				 (long long)t->shard_bytes);
		parsed_done(&p);
	}
	write_engine(dir, "own4", "plan: {like: own3}\n");
	struct parsed p = with_engine("own3");
	_cleanup_(mo_freep) char *said = errors_text(&p.errors);

	assert_int_equal(p.result, -EINVAL);
	assert_non_null(strstr(said, ": more than 4 engines in a row"));
	parsed_done(&p);
	write_engine(dir, "own4", "plan: {like: nobody}\n");
	p = with_engine("own4");
	_cleanup_(mo_freep) char *missing = errors_text(&p.errors);

	assert_non_null(strstr(missing, "unknown engine 'nobody'"));
	parsed_done(&p);
	unsetenv("MOE_DATA_DIR");
	mo_rm_rf(dir);
}

/* A record of a version without traits: they are made when a plan needs them. */
static void test_older_record(void **state)
{
	struct parsed p = parse("recipe: 1\nname: x\nengine: {kind: megatron-lm, workdir: /x, "
				"args: {recompute_granularity: full}}\n"
				"cluster: {gpus: 8}\nsteps: 3\n",
				NULL);

	must(&p);
	struct engine_traits *made = p.recipe.engine.traits;

	p.recipe.engine.traits = NULL;
	assert_null(plan_recompute_given(&p.recipe));
	assert_string_equal(shape_recompute_of(&p.recipe), "none");
	assert_false(shape_features_of(&p.recipe).cached_weights);
	assert_int_equal(recipe_traits_renew(&p.recipe, NULL), 0);
	assert_true(mo_desc_equal(&engine_traits_desc, made, p.recipe.engine.traits));
	assert_string_equal(plan_recompute_given(&p.recipe), "full");
	assert_true(shape_features_of(&p.recipe).cached_weights);
	traits_free(made);
	parsed_done(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_rows),      cmocka_unit_test(test_rows),
		cmocka_unit_test(test_words_of_sets), cmocka_unit_test(test_files_without_rows),
		cmocka_unit_test(test_older_record),  cmocka_unit_test(test_documented),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
