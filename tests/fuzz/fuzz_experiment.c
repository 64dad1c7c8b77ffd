/* Any bytes as the files of an experiment: the experiment, a file that it may extend, the presets
 * of its module and of its model, and words of the command, each ended by a NUL. It resolves, with
 * every value at a place that exists, or is refused with one line. ROOMS: recipe model base */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/recipe/config_toml.h"
#include "lib/recipe/experiment.h"
#include "lib/recipe/experiment_record.h"

#define PIECES 12
static const char *const paths[] = { "x/e.yaml", "x/low.yaml", "primus/configs/modules/m/c.yaml",
				     "primus/configs/models/m/d.yaml" };
static const char platform[] = "name: a\nworkspace: b\nnum_nodes_env_key: c\nnode_rank_env_key: "
			       "d\nmaster_addr_env_key: e\n"
			       "master_port_env_key: f\ngpus_per_node_env_key: g\n";

struct pieces {
	char *items[PIECES];
	size_t n;
};

static int read_piece(void *arg, const char *path, size_t most, struct mo_buf *ret)
{
	const struct pieces *p = arg;

	for (size_t i = 0; i < ELEMENTSOF(paths); i++)
		if (!strcmp(path, paths[i]) && i < p->n) {
			mo_buf_str(ret, p->items[i]);
			return ret->len > most ? -EFBIG : 0;
		}
	if (strcmp(path, "primus/configs/platforms/platform_azure.yaml") != 0)
		return -ENOENT;
	mo_buf_str(ret, platform);
	return 0;
}

static const char *variable(void *arg, const char *name)
{
	(void)arg;
	return strlen(name) == 1 ? name : NULL;
}

static void look_at(const struct experiment *e)
{
	struct config_item *items = NULL;
	size_t n = 0;
	struct mo_buf b = { 0 };

	config_items(e->merged, &items, &n);
	for (size_t i = 0; i < n; i++)
		for (const struct config_value *v = items[i].value; v; v = v->over) {
			if (v->place.file >= (int64_t)e->n_files ||
			    (v->place.file >= 0 && v->place.line < 1))
				abort();
			mo_buf_reset(&b);
			config_json(v, &b);
			if (!b.len)
				abort();
		}
	mo_buf_done(&b);
	config_items_free(items, n);
}

/* What a record keeps reads back as the same. */
static void there_and_back(const struct experiment *e)
{
	char *packed = experiment_pack(e), *text = mo_printf("experiment: {result: %s}\n", packed),
	     *again;
	struct experiment back;

	if (strlen(packed) < EXPERIMENT_RESULT_MAX &&
	    experiment_of_text(text, strlen(text), &back, NULL) == 0) {
		again = experiment_pack(&back);
		if (strlen(again) > strlen(packed))
			abort();
		free(again);
		experiment_done(&back);
	}
	free(packed);
	free(text);
}

static void as_toml(const char *text)
{
	struct mo_error err = { 0 };
	int64_t line = 0;
	struct config_value *v =
		config_toml(text, strlen(text), (struct config_place){ 0, 1, -1 }, &line, &err);
	struct mo_buf b = { 0 };

	if (!v && (!err.text || line < 1))
		abort();
	if (v)
		config_json(v, &b);
	mo_buf_done(&b);
	config_value_free(v);
	mo_error_done(&err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pieces p = { .n = 0 };
	const struct experiment_world world = { &p, read_piece, variable };
	struct mo_error err = { 0 };
	char *words[PIECES] = { (char *)"pretrain", (char *)"--config=x/e.yaml" };
	size_t n_words = 2;
	struct experiment e;

	for (size_t at = 0; at < size && p.n < PIECES; at += strlen(p.items[p.n++]) + 1)
		p.items[p.n] = mo_strndup((const char *)data + at, size - at);
	if (p.n)
		as_toml(p.items[0]);
	for (size_t i = ELEMENTSOF(paths); i < p.n; i++)
		words[n_words++] = p.items[i];
	if (experiment_resolve(&world, words, n_words, &e, &err) == 0) {
		look_at(&e);
		there_and_back(&e);
		experiment_done(&e);
	} else if (!err.text || e.files || e.merged) {
		abort();
	}
	mo_error_done(&err);
	for (size_t i = 0; i < p.n; i++)
		free(p.items[i]);
	return 0;
}
