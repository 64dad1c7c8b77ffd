/* explain config: what the engine will really be configured with, and who said it. */
#include "cli/config.h"

#include <errno.h>
#include <string.h>

#include "cli/experiment.h"
#include "cli/output.h"
#include "cli/visible.h"
#include "lib/wire/json.h"

struct shown {
	const struct recipe_input *in;
	const struct experiment *x;
	const struct rank_command *command;
};

static void source_json(const struct shown *s, struct config_place place, struct mo_buf *b)
{
	struct config_source from = config_source(s->in, s->x, s->command, place);

	if (from.file) {
		mo_buf_str(b, "{\"file\":");
		wire_string(from.file, b);
		mo_buf_printf(b, ",\"line\":%lld}", (long long)from.line);
	} else {
		mo_buf_str(b, from.recipe ? "{\"recipe\":" : "{\"moectl\":");
		wire_string(from.recipe ? from.recipe : from.moectl, b);
		mo_buf_str(b, "}");
	}
	free(from.moectl);
}

static void item_json(const struct shown *s, const struct config_item *item, struct mo_buf *b)
{
	mo_buf_str(b, "{\"key\":");
	wire_string(item->key, b);
	mo_buf_str(b, ",\"value\":");
	config_json(item->value, b);
	mo_buf_str(b, ",\"source\":");
	source_json(s, item->value->place, b);
	if (item->value->variable) {
		mo_buf_str(b, ",\"variable\":");
		wire_string(item->value->variable, b);
	}
	mo_buf_str(b, ",\"overridden\":[");
	for (const struct config_value *v = item->value->over; v; v = v->over) {
		mo_buf_str(b, v == item->value->over ? "{\"value\":" : ",{\"value\":");
		config_json(v, b);
		mo_buf_str(b, ",\"source\":");
		source_json(s, v->place, b);
		mo_buf_str(b, "}");
	}
	mo_buf_str(b, "]}");
}

static char *source_text(const struct shown *s, struct config_place place)
{
	struct config_source from = config_source(s->in, s->x, s->command, place);

	if (from.file)
		return mo_printf("%s:%lld", from.file, (long long)from.line);
	return from.moectl ? from.moectl : mo_printf("recipe %s", from.recipe);
}

static void item_text(const struct cli *cli, const struct shown *s, const struct config_item *item)
{
	_cleanup_(mo_buf_done) struct mo_buf value = { 0 };
	_cleanup_(mo_freep) char *source = source_text(s, item->value->place),
				 *key = visible(item->key);

	config_json(item->value, &value);
	_cleanup_(mo_freep) char *text = visible(value.data), *where = visible(source);

	printf("%s = %s    %s%s%s\n", paint(cli, "1", key), text, where,
	       item->value->variable ? ", by the variable " : "",
	       item->value->variable ? item->value->variable : "");
	for (const struct config_value *v = item->value->over; v; v = v->over) {
		_cleanup_(mo_buf_done) struct mo_buf old = { 0 };
		_cleanup_(mo_freep) char *from = source_text(s, v->place);

		config_json(v, &old);
		_cleanup_(mo_freep) char *was = visible(old.data), *place = visible(from);

		printf("    instead of %s    %s\n", was, place);
	}
}

/* The key itself, or what is below it. */
static bool asked_for(const char *key, const char *item)
{
	size_t n = key ? strlen(key) : 0;

	return !key || (!strncmp(key, item, n) && (!item[n] || item[n] == '.'));
}

static int show(const struct cli *cli, const struct shown *s, const char *key)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct config_item *items = NULL;
	size_t n = 0, found = 0;

	config_items(s->x->merged, &items, &n);
	mo_buf_str(&b, "{\"engine\":");
	wire_string(s->in->recipe.engine.kind, &b);
	mo_buf_printf(&b, ",\"hash\":\"crc32c:%08x\",\"files\":[", s->x->crc);
	for (size_t i = 0; i < s->x->n_files; i++) {
		mo_buf_str(&b, i ? "," : "");
		wire_string(s->x->files[i], &b);
	}
	mo_buf_str(&b, "],\"names\":");
	config_json(s->x->names, &b);
	mo_buf_str(&b, ",\"items\":[");
	for (size_t i = 0; i < n; i++) {
		if (!asked_for(key, items[i].key))
			continue;
		mo_buf_str(&b, found++ ? "," : "");
		if (cli->json)
			item_json(s, &items[i], &b);
		else
			item_text(cli, s, &items[i]);
	}
	mo_buf_str(&b, "]}");
	config_items_free(items, n);
	if (cli->json)
		puts(b.data);
	return found || !key ? CLI_OK
			     : cli_fail(CLI_NOT_FOUND, "%s: no key '%s' in its configuration",
					s->in->file, key);
}

int explain_config(struct cli *cli, const char *file, const char *key, struct recipe_input *in)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(rank_command_done) struct rank_command command = { 0 };
	struct experiment x = { 0 };
	int r = recipe_input_read(in, file);

	if (r || (r = recipe_input_check(cli, in)))
		return r;
	if (!in->engine.experiment)
		return cli_fail(CLI_USAGE,
				"%s: engine %s has no configuration file that moectl reads; "
				"`moectl submit --dry-run` shows its command",
				in->file, in->recipe.engine.kind);
	r = experiment_of(in, &x, &command, &err);
	if (r < 0)
		return cli_fail_error(r == -EINVAL ? CLI_USAGE : CLI_FAILED, in->file, &err, r);
	r = show(cli, &(struct shown){ in, &x, &command }, key);
	experiment_done(&x);
	return r;
}
