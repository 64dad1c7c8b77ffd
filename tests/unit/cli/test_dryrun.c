/* daemon/core/rules/dryrun.h with agent/core/bind/preview.h and its document: placement, words and
 * environment without a cluster, on a busy one, on one that is too small. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "agent/core/bind/preview.h"
#include "cli/value.h"
#include "daemon/core/rules/dryrun.h"
#include "lib/recipe/argv.h"
#include "lib/recipe/env_file.h"
#include "lib/recipe/recipe_file.h"
#include "lib/wire/dryrun.h"
#include "lib/recipe/env_layers.h"

static void spec_of(const char *text, struct submit *spec)
{
	struct recipe_errors errors = { 0 };
	char **warnings = NULL;
	size_t n = 0;
	mo_desc_init(&submit_desc, spec);
	if (recipe_parse(text, strlen(text), NULL, 0, &spec->recipe, &spec->engine, &warnings, &n,
			 &errors) < 0)
		fail_msg("%s", errors.items[0].text);
	engine_argv(&spec->engine, &spec->recipe, &spec->argv, &spec->n_argv);
	env_layers(&spec->recipe, &spec->engine, &spec->env, &spec->n_env);
	assert_int_equal(env_profiles(&spec->recipe, &spec->profiles, &spec->n_profiles, NULL), 0);
	for (size_t i = 0; i < n; i++)
		free(warnings[i]);
	free(warnings);
	recipe_errors_done(&errors);
}

static int add_node(void *arg, const struct nodeinfo *info, const struct dryrun_rank *ranks,
		    size_t n, struct mo_error *err)
{
	struct mo_buf *b = arg;

	wire_dryrun_ranks(ranks, n, b->data[b->len - 1] == '[', b);
	return 0;
}

static struct json_object *document(const struct state *s, const struct submit *spec)
{
	struct mo_buf b = { 0 };
	struct mo_error err = { 0 };
	const struct dryrun_walk walk = {
		.ranks = preview_ranks, .node = add_node, .arg = &b, .to = MO_NONE
	};
	wire_dryrun_head(spec->recipe.name, NULL, spec->engine.resume, spec->engine.n_resume, &b);
	int placed = dryrun_walk(s, spec, &walk, &err);

	if (placed < 0) {
		fail_msg("%s", mo_error_text(&err, -1));
		return NULL;
	}
	wire_dryrun_end(dryrun_placed_names[placed], &b);
	struct json_object *doc = json_tokener_parse(b.data);
	assert_non_null(doc);
	mo_buf_done(&b);
	return doc;
}

#define RECIPE \
	"recipe: 1\nname: dry\nengine: {kind: command, argv: [prog, \"a \\\"b\\\"\"]}\ncluster: " \
	"{gpus: %s}\nenv: {API_TOKEN: x, F: {file: /etc/hostname}, WORD: w}\n"

static void without_a_cluster(void **state)
{
	struct submit spec;
	struct state s;
	char text[512];
	snprintf(text, sizeof(text), RECIPE, "12, gpu: mi325x");
	spec_of(text, &spec);
	mo_desc_init(&state_desc, &s);
	struct json_object *doc = document(&s, &spec), *ranks = js_get(doc, "ranks"),
			   *first = js_at(ranks, 0), *last = js_at(ranks, 11);
	assert_int_equal(js_len(ranks), 12);
	assert_null(js_get(doc, "plan"));
	assert_string_equal(js_str(doc, "name"), "dry");
	assert_string_equal(json_object_get_string(js_at(js_get(first, "argv"), 1)), "a \"b\"");
	assert_string_equal(js_str(first, "env.RANK"), "0");
	assert_string_equal(js_str(last, "env.RANK"), "11");
	assert_string_equal(js_str(last, "env.NODE_RANK"), "1");
	assert_string_equal(js_str(first, "env.API_TOKEN"), "***");
	assert_string_equal(js_str(first, "env.F.file"), "/etc/hostname");
	assert_string_equal(js_str(first, "env.WORD"), "w");
	assert_string_not_equal(js_str(first, "cpus"), js_str(js_at(ranks, 1), "cpus"));
	assert_int_equal(js_int(first, "numa_node"), 0);
	assert_int_equal(js_int(js_at(ranks, 7), "numa_node"), 1);
	assert_string_not_equal(js_str(first, "node"), js_str(last, "node"));
	/* nobody may take it for a machine of his */
	assert_string_equal(js_str(doc, "placed_on"), "example");
	assert_string_equal(js_str(first, "node"), "example-00000");
	json_object_put(doc);
	mo_desc_done(&state_desc, &s);
	mo_desc_done(&submit_desc, &spec);
}

static void on_the_nodes_there_are(void **state)
{
	struct submit spec;
	struct state s;
	char text[512];
	snprintf(text, sizeof(text), RECIPE, "4");
	spec_of(text, &spec);
	mo_desc_init(&state_desc, &s);
	dryrun_cluster(&spec.recipe, &s);
	mo_str_set(&s.nodes[0].name, "mine");
	struct json_object *doc = document(&s, &spec);
	assert_string_equal(js_str(js_at(js_get(doc, "ranks"), 0), "node"), "mine");
	assert_string_equal(js_str(doc, "placed_on"), "nodes");
	json_object_put(doc);
	/* taken by another job */
	struct job *other = MO_ADD(&s, jobs, &job_desc);
	struct place *p = MO_ADD(&other->run, places, &place_desc);
	other->id = 1;
	other->state = JOB_RUNNING;
	p->node = mo_strdup("mine");
	p->n_ranks = 4;
	for (int64_t i = 0; i < 4; i++)
		mo_ints_add(&p->gpus, &p->n_gpus, i);
	doc = document(&s, &spec);
	assert_string_equal(js_str(js_at(js_get(doc, "ranks"), 0), "node"), "mine");
	assert_string_equal(js_str(doc, "placed_on"), "idle-nodes");
	json_object_put(doc);
	mo_vec_clear(&job_desc, (void **)&s.jobs, &s.n_jobs);
	/* down: nothing can be placed there, so the recipe's own shape is shown; the state is not
	 * touched */
	s.nodes[0].state = NODE_DOWN;
	doc = document(&s, &spec);
	assert_string_not_equal(js_str(js_at(js_get(doc, "ranks"), 0), "node"), "mine");
	assert_string_equal(js_str(doc, "placed_on"), "example");
	assert_int_equal(s.n_nodes, 1);
	assert_int_equal(s.n_jobs, 0);
	json_object_put(doc);
	mo_desc_done(&state_desc, &s);
	mo_desc_done(&submit_desc, &spec);
}

static void too_many_ranks(void **state)
{
	struct submit spec;
	struct state s;
	struct mo_error err = { 0 };
	char text[512];
	snprintf(text, sizeof(text), RECIPE, "8193");
	spec_of(text, &spec);
	mo_desc_init(&state_desc, &s);
	const struct dryrun_walk walk = { .ranks = preview_ranks, .node = add_node, .to = MO_NONE };
	assert_int_equal(dryrun_walk(&s, &spec, &walk, &err), -E2BIG);
	assert_non_null(strstr(err.text, "8193"));
	mo_error_done(&err);
	mo_desc_done(&state_desc, &s);
	mo_desc_done(&submit_desc, &spec);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(without_a_cluster),
					    cmocka_unit_test(on_the_nodes_there_are),
					    cmocka_unit_test(too_many_ranks) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
