/* Resolves one experiment and prints what came out as JSON, for tests/e2e/test_experiments.py:
 *   resolve ROOT [NAME=VALUE]... -- WORD...
 * The environment is only what is given. Exit 2 with one line on stderr: not to be loaded. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/fd.h"
#include "lib/recipe/experiment.h"

struct given {
	const char *root;
	char **variables;
	int n;
};

static int read_below(void *arg, const char *path, size_t most, struct mo_buf *ret)
{
	const struct given *g = arg;
	_cleanup_(mo_freep) char *whole =
		mo_printf("%s%s%s", *path == '/' ? "" : g->root, *path == '/' ? "" : "/", path);

	return mo_read_file(whole, most, ret);
}

static const char *variable(void *arg, const char *name)
{
	const struct given *g = arg;
	size_t n = strlen(name);

	for (int i = 0; i < g->n; i++)
		if (!strncmp(g->variables[i], name, n) && g->variables[i][n] == '=')
			return g->variables[i] + n + 1;
	return NULL;
}

static void text(const char *s, struct mo_buf *b)
{
	const struct config_value v = { .kind = CONFIG_TEXT, .text = (char *)s };

	config_json(&v, b);
}

static void list(const char *name, char *const *items, size_t n, struct mo_buf *b)
{
	mo_buf_printf(b, ",\"%s\":[", name);
	for (size_t i = 0; i < n; i++) {
		mo_buf_str(b, i ? "," : "");
		text(items[i], b);
	}
	mo_buf_str(b, "]");
}

static void values(const char *name, const struct config_value *map, bool sources, struct mo_buf *b)
{
	struct config_item *items = NULL;
	size_t n = 0;

	config_items(map, &items, &n);
	mo_buf_printf(b, "\"%s\":{", name);
	for (size_t i = 0; i < n; i++) {
		const struct config_place *p = &items[i].value->place;

		mo_buf_str(b, i ? "," : "");
		text(items[i].key, b);
		mo_buf_str(b, ":");
		if (!sources)
			config_json(items[i].value, b);
		else
			mo_buf_printf(b, "[%lld,%lld,%lld]", (long long)p->file, (long long)p->line,
				      (long long)p->word);
	}
	mo_buf_str(b, "}");
	config_items_free(items, n);
}

int main(int argc, char **argv)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct given given = { .root = argc > 1 ? argv[1] : "." };
	const struct experiment_world world = { &given, read_below, variable };
	struct experiment e;
	int at = 2;

	while (at < argc && strcmp(argv[at], "--") != 0)
		at++;
	if (at >= argc)
		return 64;
	given.variables = argv + 2;
	given.n = at - 2;
	if (experiment_resolve(&world, argv + at + 1, (size_t)(argc - at - 1), &e, &err) < 0) {
		fprintf(stderr, "%s%s%s\n", mo_error_text(&err, -EINVAL), err.hint ? "; " : "",
			err.hint ? err.hint : "");
		return 2;
	}
	mo_buf_str(&b, "{");
	values("merged", e.merged, false, &b);
	mo_buf_str(&b, ",");
	values("sources", e.merged, true, &b);
	mo_buf_str(&b, ",");
	values("names", e.names, false, &b);
	mo_buf_printf(&b, ",\"framework\":\"%s\",\"module\":\"%s\"", e.framework, e.module);
	list("files", e.files, e.n_files, &b);
	list("skipped", e.skipped, e.n_skipped, &b);
	list("idle", e.idle, e.n_idle, &b);
	mo_buf_str(&b, "}");
	puts(b.data);
	experiment_done(&e);
	return 0;
}
