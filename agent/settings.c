/* What of this node's fingerprint the agent itself knows (the rest is read by `moe-probe
 * stack`): its version, options that are not the default and belong to no single machine, the
 * health checks in force, the environment profiles that are installed, and the network variables
 * that ranks on the whole node would get. Called by agent/health.c. */
#include "agent/settings.h"
#include <stdlib.h>
#include <string.h>
#include "agent/core/bind/env_nic.h"
#include "agent/manager.h"
#include "agent/options.h"
#include "lib/base/crc32c.h"
#include "lib/base/fd.h"
#include "lib/model/launch.h"
#include "lib/model/recipe.h"
#include "lib/wire/encode.h"

#define FILE_BYTES_MAX (1024 * 1024)
#define VALUE_BYTES_MAX 1000

/* Names, places and devices of one machine; several agents may share one. */
static const char *const own[] = {
	"controller", "token_file",  "ca_file",        "node",           "address",
	"state_dir",  "runtime_dir", "gpus",           "only_fake_gpus", "use_gpus",
	"topology",   "cpus",        "health_disable", "debug",
};

static void add(struct stack_item **items, size_t *n, const char *key, const char *value)
{
	struct stack_item *item = mo_vec_add(&stack_item_desc, (void **)items, n);
	item->key = mo_strdup(key);
	item->value = mo_strndup(value, MO_MIN(strlen(value), (size_t)VALUE_BYTES_MAX));
}

static char *option_text(const struct mo_option *o, const void *config)
{
	const char *at = (const char *)config + o->offset;
	int64_t n = 0;
	bool on = false;

	switch (o->type) {
	case MO_OPTION_BOOL: memcpy(&on, at, sizeof(on)); return mo_strdup(on ? "true" : "false");
	case MO_OPTION_INT:
	case MO_OPTION_DURATION:
	case MO_OPTION_SIZE:
	case MO_OPTION_RANGE:
		memcpy(&n, at, sizeof(n));
		if (o->type == MO_OPTION_SIZE && n == -1)
			return mo_strdup("unlimited");
		return o->type == MO_OPTION_DURATION ? mo_printf("%g s", (double)n / 1e6)
						     : mo_printf("%lld", (long long)n);
	default: {
		const char *text;
		memcpy(&text, at, sizeof(text));
		return mo_strdup(text ? text : "");
	}
	}
}

static void add_options(const struct agent_config *c, struct stack_item **items, size_t *n)
{
	struct agent_config normal = { 0 };
	mo_options_init(&agent_options, &normal);
	for (size_t i = 0; i < agent_options.n; i++) {
		const struct mo_option *o = &agent_options.items[i];
		_cleanup_(mo_freep) char *is = option_text(o, c), *was = option_text(o, &normal),
					 *key = mo_printf("config.%s", o->name);
		if (!mo_streq(is, was) && mo_enum_parse(own, ELEMENTSOF(own), o->name) < 0)
			add(items, n, key, is);
	}
	mo_options_done(&agent_options, &normal);
}

char *settings_checks(const struct health_checks *checks)
{
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };

	wire_encode(&health_checks_desc, checks, &text);
	return mo_printf("%08x (%zu checks)", mo_crc32c(0, text.data, text.len), checks->n_checks);
}

/* Those that are off: by agent.yaml, or because their programs are not installed. */
static void add_off(const struct health *h, struct stack_item **items, size_t *n)
{
	_cleanup_(mo_buf_done) struct mo_buf off = { 0 };
	const struct health_check *c;

	for (size_t i = 0; (c = health_check_at(h, i)); i++)
		if (!c->enabled)
			mo_buf_printf(&off, "%s%s", off.len ? "," : "", c->id);
	if (off.len)
		add(items, n, "health.off", off.data);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add_profiles(struct stack_item **items, size_t *n)
{
	char **names = NULL;
	size_t n_names = 0;
	uint32_t crc = 0;

	mo_data_names("env", &names, &n_names);
	if (n_names)
		qsort(names, n_names, sizeof(*names), by_name);
	for (size_t i = 0; i < n_names; i++) {
		_cleanup_(mo_freep) char *name = mo_printf("env/%s.yaml", names[i]),
					 *path = mo_data_file(name);
		_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
		crc = mo_crc32c(crc, names[i], strlen(names[i]) + 1);
		if (path && mo_read_file(path, FILE_BYTES_MAX, &b) == 0)
			crc = mo_crc32c(crc, b.data, b.len);
		free(names[i]);
	}
	free(names);
	_cleanup_(mo_freep) char *value = mo_printf("%08x (%zu profiles)", crc, n_names);
	if (n_names)
		add(items, n, "env.profiles", value);
}

/* As for a job on all of the node's GPUs whose profiles say nothing. */
static void add_network(const struct nodeinfo *info, struct stack_item **items, size_t *n)
{
	struct env_item *found = NULL;
	struct launch all;
	size_t n_found = 0;

	mo_desc_init(&launch_desc, &all);
	for (size_t i = 0; i < info->n_gpus; i++)
		mo_ints_add(&all.gpus, &all.n_gpus, info->gpus[i].index);
	env_nics(&all, info, NULL, NULL, &found, &n_found);
	for (size_t i = 0; i < n_found; i++) {
		_cleanup_(mo_freep) char *key = mo_printf("env.%s", found[i].name);
		add(items, n, key, found[i].value ? found[i].value : "unset");
	}
	mo_vec_clear(&env_item_desc, (void **)&found, &n_found);
	mo_desc_done(&launch_desc, &all);
}

void settings_items(const struct manager *m, const char *checks, const struct health *h,
		    struct stack_item **ret, size_t *n_ret)
{
	add(ret, n_ret, "agent", MO_VERSION);
	add_options(m->config, ret, n_ret);
	add(ret, n_ret, "health.checks", checks);
	add_off(h, ret, n_ret);
	add_profiles(ret, n_ret);
	add_network(&m->info, ret, n_ret);
}
