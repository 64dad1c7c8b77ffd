/* See complete.h. Verbs, ways and words are those of the usage and options those of the verb's own
 * table, so that nothing is written twice. */
#include "cli/complete.h"

#include <string.h>

#include "cli/client.h"
#include "cli/options.h"
#include "cli/usage.h"
#include "cli/value.h"

#define PATIENCE_MS 1000
#define JOBS_OFFERED 200

struct completion {
	struct cli *cli;
	const struct verb *verb;
	const char *prefix; /* of the word that is being typed */
};

/* about: n bytes, may be NULL. A word that a shell would have to quote is not offered. */
static void offer(const struct completion *c, const char *word, const char *about, size_t n)
{
	if (!word || !mo_starts_with(word, c->prefix) || strpbrk(word, " \t\n\\'\"$`"))
		return;
	fputs(word, stdout);
	if (about)
		printf("\t%.*s", (int)n, about);
	putchar('\n');
}

static void offer_verbs(const struct completion *c, const struct verb *const *verbs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		offer(c, verbs[i]->name, verbs[i]->summary, strlen(verbs[i]->summary));
}

/* ---- what the controller knows ---- */

/* The items of a list; NULL: there is no answer. a keeps them. */
static struct json_object *items_of(const struct completion *c, const char *path, struct answer *a)
{
	const struct request r = { .path = path, .timeout_ms = PATIENCE_MS };

	return client_send(c->cli, &r, a) == 0 && a->status == 200 ? js_items(a->doc) : NULL;
}

/* Names, the newest job of each; ids where one is being typed. */
static void offer_jobs(const struct completion *c)
{
	_cleanup_(mo_freep) char *path = mo_printf("/v1/jobs?last=1&limit=%d", JOBS_OFFERED);
	_cleanup_(answer_done) struct answer a = { 0 };
	struct json_object *items = items_of(c, path, &a);
	bool ids = mo_starts_with(c->prefix, "j-");

	for (size_t i = js_len(items); i-- > 0;) {
		struct json_object *job = js_at(items, i);
		const char *name = js_str(job, "name"), *state = js_str(job, "state");
		bool newer = false;

		for (size_t k = i + 1; k < js_len(items) && !newer; k++)
			newer = mo_streq(js_str(js_at(items, k), "name"), name);
		if (ids || !newer)
			offer(c, ids ? js_str(job, "id") : name, state, state ? strlen(state) : 0);
	}
}

static void offer_nodes(const struct completion *c)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	struct json_object *items = items_of(c, "/v1/nodes?limit=1000", &a);

	for (size_t i = 0; i < js_len(items); i++) {
		const char *state = js_str(js_at(items, i), "state");

		offer(c, js_str(js_at(items, i), "name"), state, state ? strlen(state) : 0);
	}
}

static void offer_webhooks(const struct completion *c)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	struct json_object *items = items_of(c, "/v1/webhooks", &a);

	for (size_t i = 0; i < js_len(items); i++) {
		const char *host = js_str(js_at(items, i), "host");

		offer(c, js_str(js_at(items, i), "name"), host, host ? strlen(host) : 0);
	}
}

/* ---- what the usage calls a word ---- */

/* "JOB|NODE", "idle|checkpoint|now", "create, list": small letters are the word itself. */
static void offer_kind(const struct completion *c, const char *kind)
{
	for (const char *s = kind; s && *s; s += strcspn(s, "|, "), s += strspn(s, "|, ")) {
		_cleanup_(mo_freep) char *one = mo_strndup(s, strcspn(s, "|, "));

		if (mo_streq(one, "JOB"))
			offer_jobs(c);
		else if (mo_streq(one, "NODE"))
			offer_nodes(c);
		else if (mo_streq(one, "WEBHOOK"))
			offer_webhooks(c);
		else if (*one >= 'a' && *one <= 'z' && !strchr(one, '='))
			offer(c, one, NULL, 0);
	}
}

/* ---- options ---- */

static void told_done(struct opts_told *t)
{
	free(t->items);
}

/* The table that the verb has for this way. */
static void ask_options(const struct completion *c, char *way, struct opts_told *ret)
{
	struct cli cli = *c->cli;

	cli.verb = c->verb;
	cli.told = ret;
	(void)c->verb->run(&cli, way ? 1 : 0, &way);
}

static const struct opt_told *told_find(const struct opts_told *t, const char *word)
{
	size_t n = strcspn(word + 1, "=");

	for (size_t i = 0; i < t->n; i++)
		if (word[1] == '-' ? strlen(t->items[i].name) == n - 1 &&
					     !strncmp(t->items[i].name, word + 2, n - 1)
				   : t->items[i].letter && t->items[i].letter == word[1])
			return &t->items[i];
	return NULL;
}

static void offer_options(const struct completion *c, const struct opts_told *told)
{
	for (size_t i = 0; i < told->n; i++) {
		const struct opt_told *o = &told->items[i];
		_cleanup_(mo_freep) char *word = mo_printf("--%s", o->name);
		size_t n = 0;
		const char *about = usage_about(c->verb->help, o->name, o->letter, &n);

		if (!about)
			about = usage_about(cli_common_help, o->name, o->letter, &n);
		offer(c, word, about, n);
	}
}

/* Takes the value of an option in the next word. */
static bool takes_next(const struct opt_told *o, const char *word)
{
	return o && o->valued && (word[1] == '-' ? !strchr(word, '=') : !word[2]);
}

/* argv: what follows the verb. */
static void offer_words(struct completion *c, int argc, char **argv)
{
	_cleanup_(told_done) struct opts_told told = { 0 };
	char *way = argc > 1 && argv[0][0] != '-' && strchr(c->verb->usage, '|') ? argv[0] : NULL;
	const struct opt_told *value_of = NULL;
	size_t at = 0;

	ask_options(c, way, &told);
	for (int i = 0; i + 1 < argc; i++) {
		const struct opt_told *o =
			!value_of && argv[i][0] == '-' ? told_find(&told, argv[i]) : NULL;

		if (!value_of && strcmp(argv[i], "--") == 0)
			return; /* words of somebody else */
		at += !value_of && argv[i][0] != '-';
		value_of = takes_next(o, argv[i]) ? o : NULL;
	}
	if (!value_of && c->prefix[0] == '-') {
		offer_options(c, &told);
		return;
	}
	_cleanup_(mo_freep) char *kind = value_of  ? usage_value(c->verb, value_of->name)
					 : at == 0 ? usage_ways(c->verb)
						   : usage_word(c->verb, way, at);

	offer_kind(c, kind);
}

int complete(struct cli *cli, const struct verb *const *verbs, size_t n, int argc, char **argv)
{
	struct completion c = { .cli = cli };
	int first = 0;

	if (argc == 0)
		return CLI_OK;
	c.prefix = argv[argc - 1];
	for (; first + 1 < argc && argv[first][0] == '-'; first++)
		first += strcmp(argv[first], "--url") == 0 ||
			 strcmp(argv[first], "--token-file") == 0;
	if (first + 1 < argc && strcmp(argv[first], "help") == 0)
		first++;
	if (first + 1 >= argc) {
		offer_verbs(&c, verbs, n);
		return CLI_OK;
	}
	for (size_t i = 0; i < n; i++)
		if (strcmp(verbs[i]->name, argv[first]) == 0)
			c.verb = verbs[i];
	if (c.verb)
		offer_words(&c, argc - first - 1, argv + first + 1);
	return CLI_OK;
}
