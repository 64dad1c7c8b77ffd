/* The dry-run document for people: the exact command and environment of every rank, what is
 * equal said once. What differs is said per node where it is the same for all ranks of each,
 * else per rank. Called by submit.c. */
#include "cli/dryrun.h"

#include <stdio.h>
#include <string.h>

#include "cli/output.h"
#include "cli/text.h"
#include "cli/value.h"
#include "lib/base/buf.h"

enum spread { ALL_RANKS, BY_NODE, BY_RANK };
struct variable {
	const char *name;
	enum spread spread;
};

/* A word as a shell takes it. */
void dryrun_word(struct mo_buf *b, const char *word)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:=,@%+-";
	if (*word && strspn(word, plain) == strlen(word)) {
		mo_buf_str(b, word);
		return;
	}
	mo_buf_str(b, "'");
	for (; *word; word++)
		if (*word == '\'')
			mo_buf_str(b, "'\\''");
		else
			mo_buf_add(b, word, 1);
	mo_buf_str(b, "'");
}

static char *command_of(struct json_object *rank)
{
	struct json_object *argv = js_get(rank, "argv");
	struct mo_buf b = { 0 };
	for (size_t i = 0; i < js_len(argv); i++) {
		mo_buf_str(&b, i ? " " : "");
		dryrun_word(&b, json_object_get_string(js_at(argv, i)));
	}
	return b.data ? mo_buf_take(&b) : mo_strdup("");
}

/* NULL = the rank does not get it; json_object_get_string() of {"file": F} would be JSON. */
static struct json_object *value_of(struct json_object *rank, const char *name)
{
	struct json_object *v = NULL;
	json_object_object_get_ex(js_get(rank, "env"), name, &v);
	return v;
}

static void add_pair(struct mo_buf *b, const char *name, struct json_object *value)
{
	const char *file =
		json_object_is_type(value, json_type_object) ? js_str(value, "file") : NULL;
	mo_buf_printf(b, "%s=", name);
	if (file)
		mo_buf_printf(b, "<what %s on the node holds>", file);
	else
		dryrun_word(b, json_object_get_string(value));
}

static enum spread spread_of(struct json_object *ranks, const char *name)
{
	enum spread spread = ALL_RANKS;
	for (size_t i = 1; i < js_len(ranks); i++) {
		struct json_object *a = js_at(ranks, i - 1), *b = js_at(ranks, i);
		if (json_object_equal(value_of(a, name), value_of(b, name)))
			continue;
		if (mo_streq(js_str(a, "node"), js_str(b, "node")))
			return BY_RANK;
		spread = BY_NODE;
	}
	return spread;
}

/* Every name that some rank has, once. */
static struct variable *variables_of(struct json_object *ranks, size_t *ret_n)
{
	struct json_object *seen = json_object_new_object();
	struct variable *list = NULL;
	size_t n = 0;
	for (size_t i = 0; i < js_len(ranks); i++) {
		struct json_object *env = js_get(js_at(ranks, i), "env");
		json_object_object_foreach(env, name, value) {
			(void)value;
			if (json_object_object_get_ex(seen, name, NULL))
				continue;
			json_object_object_add(seen, name, NULL);
			*MO_GROW(list, n) = (struct variable){ name, spread_of(ranks, name) };
		}
	}
	json_object_put(seen);
	*ret_n = n;
	return list;
}

static void print_variables(struct json_object *rank, const struct variable *list, size_t n,
			    enum spread spread, const char *before)
{
	for (size_t i = 0; i < n; i++) {
		_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
		struct json_object *value =
			list[i].spread == spread ? value_of(rank, list[i].name) : NULL;
		if (!value)
			continue;
		add_pair(&b, list[i].name, value);
		printf("%s%s", before, b.data);
	}
	puts("");
}

static bool any(const struct variable *list, size_t n, enum spread spread)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].spread == spread)
			return true;
	return false;
}

/* Said once for each run of ranks that have the same. */
static void print_commands(const struct cli *cli, struct json_object *ranks)
{
	size_t n = js_len(ranks), next;
	for (size_t i = 0; i < n; i = next) {
		_cleanup_(mo_freep) char *command = command_of(js_at(ranks, i));
		for (next = i + 1; next < n; next++) {
			_cleanup_(mo_freep) char *other = command_of(js_at(ranks, next));
			if (!mo_streq(command, other))
				break;
		}
		_cleanup_(mo_freep) char *whose = i == 0 && next == n ? mo_strdup("every rank")
						  : next == i + 1
							  ? mo_printf("rank %zu", i)
							  : mo_printf("ranks %zu-%zu", i, next - 1);
		printf("%s of %s:\n  %s\n", paint(cli, "1", "command"), whose, command);
	}
}

void dryrun_print(const struct cli *cli, struct json_object *ranks)
{
	size_t n = 0;
	struct variable *list = variables_of(ranks, &n);
	print_commands(cli, ranks);
	printf("%s of every rank:", paint(cli, "1", "environment"));
	print_variables(js_at(ranks, 0), list, n, ALL_RANKS, "\n  ");
	if (any(list, n, BY_NODE)) {
		printf("%s, by node:\n", paint(cli, "1", "environment"));
		for (size_t i = 0; i < js_len(ranks); i++) {
			const char *node = js_str(js_at(ranks, i), "node");
			if (i > 0 && mo_streq(node, js_str(js_at(ranks, i - 1), "node")))
				continue;
			printf("  %s:", text_or(node));
			print_variables(js_at(ranks, i), list, n, BY_NODE, " ");
		}
	}
	if (any(list, n, BY_RANK)) {
		printf("%s, by rank:\n", paint(cli, "1", "environment"));
		for (size_t i = 0; i < js_len(ranks); i++) {
			printf("  rank %lld:", (long long)js_int(js_at(ranks, i), "rank"));
			print_variables(js_at(ranks, i), list, n, BY_RANK, " ");
		}
	}
	free(list);
	puts("");
}
