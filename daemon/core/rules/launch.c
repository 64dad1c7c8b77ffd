/* The launch order of one node: its own rank range only, so its size does not grow with the job.
 * Called by commands.c and by the dry run. */
#include "daemon/core/rules/launch.h"

#include <string.h>

#include "lib/base/assert.h"
#include "lib/base/buf.h"
#include "lib/model/recipe.h"

#define PREPARE_LIMIT_US (600 * 1000000LL)

/* {iteration} and {dir} of the engine's resume and fresh words. */
static void word(const struct job *j, const char *template, char ***argv, size_t *n)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	for (const char *p = template; *p;) {
		if (mo_starts_with(p, "{iteration}")) {
			mo_buf_printf(&b, "%lld", (long long)j->run.resume);
			p += strlen("{iteration}");
		} else if (mo_starts_with(p, "{dir}")) {
			mo_buf_str(&b, j->spec.recipe.checkpoint.dir ? j->spec.recipe.checkpoint.dir
								     : "");
			p += strlen("{dir}");
		} else {
			mo_buf_add(&b, p++, 1);
		}
	}
	mo_strs_add(argv, n, b.data ? b.data : "");
}

/* One of the template's words with the interval in it. */
static char *every_word(const char *template, size_t n, int64_t every)
{
	static const char hole[] = "{checkpoint.every}";
	_cleanup_(mo_freep) char *word = mo_strndup(template, n);
	char *at = strstr(word, hole);

	return at ? mo_printf("%.*s%lld%s", (int)(at - word), word, (long long)every,
			      at + strlen(hole))
		  : mo_strdup(word);
}

/* Word k of the command as it is now: checkpoint.every: auto follows what was measured since the
 * command was made. NULL: it is not about that. */
static char *every_now(const struct job *j, size_t k)
{
	int64_t planned = j->spec.recipe.checkpoint.every;
	_cleanup_(mo_freep) char *number = mo_printf("%lld", (long long)planned);

	for (size_t i = 0; i < j->spec.engine.n_flags; i++) {
		const struct kv *f = &j->spec.engine.flags[i];

		if (!mo_streq(f->key, "checkpoint.every"))
			continue;
		for (const char *p = f->value; *p; p += strcspn(p, " "), p += *p == ' ') {
			_cleanup_(mo_freep) char *old = every_word(p, strcspn(p, " "), planned),
						 *pair = mo_printf("%s=%s", old, number);

			if (mo_streq(j->spec.argv[k], pair))
				return mo_printf("%s=%lld", old, (long long)j->saves.every);
			if (strstr(f->value, "{checkpoint.every}")
				    ? mo_streq(j->spec.argv[k], old)
				    : k > 0 && mo_streq(j->spec.argv[k - 1], old) &&
					      mo_streq(j->spec.argv[k], number))
				return strstr(f->value, "{checkpoint.every}")
					       ? every_word(p, strcspn(p, " "), j->saves.every)
					       : mo_printf("%lld", (long long)j->saves.every);
		}
	}
	return NULL;
}

/* The same for a word that the recipe itself writes as {checkpoint.every}: a value of
 * engine.args, or one of its words. before: the word in front of it, NULL = any. */
static char *given_now(const struct job *j, size_t k, const char *template, const char *before)
{
	_cleanup_(mo_freep) char *old =
		template && strstr(template, "{checkpoint.every}")
			? every_word(template, strlen(template), j->spec.recipe.checkpoint.every)
			: NULL;

	if (!old || !mo_streq(j->spec.argv[k], old) ||
	    (before && (k == 0 || !mo_streq(j->spec.argv[k - 1] + strspn(j->spec.argv[k - 1], "-"),
					    before + strspn(before, "-")))))
		return NULL;
	return every_word(template, strlen(template), j->saves.every);
}

static char *word_now(const struct job *j, size_t k)
{
	const struct recipe_engine *e = &j->spec.recipe.engine;
	char *now = every_now(j, k);

	mo_assert(k < j->spec.n_argv);
	for (size_t i = 0; i < e->n_args && !now; i++) {
		_cleanup_(mo_freep) char *pair =
			mo_printf("%s=%s", e->args[i].key,
				  e->args[i].value ? e->args[i].value : "");

		now = e->args_list
			      ? given_now(j, k, e->args[i].key, i > 0 ? e->args[i - 1].key : NULL)
			      : given_now(j, k,
					  j->spec.engine.args_equals ? pair : e->args[i].value,
					  j->spec.engine.args_equals ? NULL : e->args[i].key);
	}
	for (size_t i = 0; i < e->n_argv && !now; i++)
		now = given_now(j, k, e->argv[i], i > 0 ? e->argv[i - 1] : NULL);
	return now;
}

static void add_word(const struct job *j, size_t k, char ***argv, size_t *n)
{
	_cleanup_(mo_freep) char *now =
		j->spec.recipe.checkpoint.automatic && j->saves.every > 0 ? word_now(j, k) : NULL;

	mo_strs_add(argv, n, now ? now : j->spec.argv[k]);
}

static void env_add(const struct env_item *items, size_t n_items, int layer, struct launch *ret)
{
	for (size_t i = 0; i < n_items; i++)
		if (items[i].layer == layer)
			mo_desc_copy(&env_item_desc, MO_ADD(ret, env, &env_item_desc), &items[i]);
}

/* Layers in the order of enum env_layer; of the profiles those that fit the node's GPUs and
 * NICs. */
static void environment(const struct job *j, const struct node *n, const struct place *p,
			struct launch *ret)
{
	for (int layer = ENV_BASE; layer < ENV_LAUNCH; layer++) {
		env_add(j->spec.env, j->spec.n_env, layer, ret);
		for (size_t i = 0; i < j->spec.n_profiles; i++) {
			const struct env_profile *profile = &j->spec.profiles[i];
			if (profile->layer == layer &&
			    env_profile_applies(profile, n ? &n->info : NULL, p->gpus, p->n_gpus))
				env_add(profile->items, profile->n_items, layer, ret);
		}
	}
}

static void prepare(const struct submit *spec, struct launch *ret)
{
	for (size_t k = 0; k < spec->n_prepare; k++)
		mo_strs_add(&ret->prepare, &ret->n_prepare, spec->prepare[k]);
	if (spec->n_prepare) {
		ret->prepare_limit_us = spec->engine.prepare_limit_us == MO_NONE
						? PREPARE_LIMIT_US
						: spec->engine.prepare_limit_us;
		ret->prepare_hooks = spec->engine.prepare_hooks;
		ret->times_prepare = true;
		for (size_t k = 0; ret->prepare_hooks && k < spec->engine.n_owned; k++)
			mo_desc_copy(&kv_desc, MO_ADD(ret, owned, &kv_desc),
				     &spec->engine.owned[k]);
		for (size_t k = 0; ret->prepare_hooks && k < spec->engine.n_main_words; k++)
			mo_strs_add(&ret->main_words, &ret->n_main_words,
				    spec->engine.main_words[k]);
	}
	if (!spec->heartbeat_dir)
		return;
	ret->heartbeat = mo_desc_dup(&engine_heartbeat_desc, &spec->engine.heartbeat);
	mo_str_set(&ret->heartbeat->dir, spec->heartbeat_dir);
}

/* What must be there, checked by one node: data lie where all nodes see them. */
static void inputs(const struct submit *spec, struct launch *ret)
{
	const struct engine *e = &spec->engine;
	const char *entry = spec->recipe.engine.entry;

	for (size_t k = 0; k < e->n_inputs; k++)
		mo_desc_copy(&kv_desc, MO_ADD(ret, inputs, &kv_desc), &e->inputs[k]);
	if (!e->n_inputs || e->experiment)
		return;
	ret->config_words = mo_strdup(e->config_words);
	ret->config_variables = mo_strdup(e->config_variables);
	ret->entry = mo_strdup(entry ? entry : e->entry);
	for (size_t k = 0; k < e->n_config_files; k++)
		mo_desc_copy(&kv_desc, MO_ADD(ret, config_files, &kv_desc), &e->config_files[k]);
}

/* A TOML that the submit did not read is judged where it lies, until the job has trained by it. */
static void judged_there(const struct job *j, struct launch *ret)
{
	if (ret->config_words && engine_has_values(&j->spec.engine) &&
	    !j->spec.recipe.experiment_hash && j->progress.watermark == MO_NONE)
		ret->recipe = mo_strdup(j->spec.recipe_text);
}

/* With checkpoint.dir in it, whether the recipe mounts it or not. */
static void container(const struct job *j, struct launch *ret)
{
	const struct recipe *r = &j->spec.recipe;
	const char *dir = r->checkpoint.dir;
	struct container_mount *m;

	if (!r->engine.container)
		return;
	ret->container = mo_desc_dup(&recipe_container_desc, r->engine.container);
	ret->container->digest = mo_strdup(j->image.digest);
	if (!dir || container_mount_of(ret->container, dir))
		return;
	m = MO_ADD(ret->container, mounts, &container_mount_desc);
	m->source = mo_strdup(dir);
	m->target = mo_strdup(dir);
}

/* What says how much data was consumed goes apart (lib/model/engine.h). */
static void line_rule(const struct line_rule *from, struct line_rule *ret)
{
	mo_desc_copy(&line_rule_desc, ret, from);
	for (size_t i = ret->n_fields; i-- > 0;) {
		const char *value = ret->fields[i].value;

		if (!mo_streq(value, "consumed_samples") && !mo_streq(value, "batch_samples"))
			continue;
		mo_desc_copy(&kv_desc, MO_ADD(ret, data_fields, &kv_desc), &ret->fields[i]);
		mo_vec_remove(&kv_desc, ret->fields, &ret->n_fields, i);
	}
}

void launch_make(const struct state *s, const struct job *j, size_t i, struct launch *ret)
{
	const struct place *p = &j->run.places[i];
	const struct node *n = node_find(s, p->node), *first = node_find(s, j->run.places[0].node);
	const struct recipe *r = &j->spec.recipe;

	assert(i < j->run.n_places && ret);
	ret->job = j->id;
	ret->attempt = j->attempt;
	ret->name = mo_strdup(r->name);
	ret->user = mo_strdup(j->spec.user);
	ret->allow_root = j->spec.allow_root;
	ret->first_rank = p->first_rank;
	ret->n_local = p->n_ranks;
	ret->world = job_world(j);
	ret->job_gpus = job_gpus(j);
	ret->node_rank = (int64_t)i;
	ret->n_nodes = (int64_t)j->run.n_places;
	for (size_t k = 0; k < p->n_gpus; k++)
		mo_ints_add(&ret->gpus, &ret->n_gpus, p->gpus[k]);
	ret->address = mo_strdup(n ? n->agent.address : NULL);
	ret->master_addr = mo_strdup(j->run.n_places == 1            ? "127.0.0.1"
				     : first && first->agent.address ? first->agent.address
								     : j->run.places[0].node);
	ret->master_port = j->run.port;
	ret->hold_ports = i == 0;
	for (size_t k = 0; k < j->spec.n_argv; k++)
		add_word(j, k, &ret->argv, &ret->n_argv);
	for (size_t k = 0; j->run.resume >= 0 && k < j->spec.engine.n_resume; k++)
		word(j, j->spec.engine.resume[k], &ret->argv, &ret->n_argv);
	for (size_t k = 0; j->run.resume < 0 && k < j->spec.engine.n_fresh; k++)
		word(j, j->spec.engine.fresh[k], &ret->argv, &ret->n_argv);
	skip_words(&j->spec.engine, j->skips, j->n_skips, &ret->argv, &ret->n_argv);
	prepare(&j->spec, ret);
	/* The files that count are those of the nodes: where nobody read them before, each node
	 * judges its own before its ranks start; else the first one's are held against what the
	 * submit read. A job that has trained is not judged there again, by rules that may be
	 * newer: they are only read, and what changed is judged here (config.c). */
	if (j->spec.engine.experiment && (i == 0 || !r->experiment_hash)) {
		ret->config = mo_strdup(j->spec.engine.experiment);
		ret->recipe =
			mo_strdup(j->progress.watermark == MO_NONE ? j->spec.recipe_text : NULL);
	}
	if (i == 0) {
		inputs(&j->spec, ret);
		judged_there(j, ret);
	}
	ret->workdir = mo_strdup(r->engine.workdir);
	container(j, ret);
	environment(j, n, p, ret);
	mo_desc_copy(&recipe_bind_desc, &ret->bind, &r->bind);
	ret->checkpoint_dir = mo_strdup(r->checkpoint.dir);
	ret->resume = j->run.resume;
	ret->steps = r->steps;
	ret->stop_signal = r->stop_signal;
	ret->stop_grace_us = r->stop_grace_us;
	ret->metrics_rank = j->spec.engine.metrics_rank;
	for (size_t k = 0; k < j->spec.engine.n_rules; k++)
		line_rule(&j->spec.engine.rules[k], MO_ADD(ret, rules, &line_rule_desc));
	ret->announced_is_complete = j->spec.engine.layout.announced_is_complete;
	if (i == 0 && r->checkpoint.dir && j->spec.engine.layout.unnumbered)
		ret->keep = mo_desc_dup(&ckpt_layout_desc, &j->spec.engine.layout);
}
