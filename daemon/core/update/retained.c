/* What a job's record keeps of what was asked for: the recipe as it was submitted, which may
 * hold what was read of an experiment, what its node read of it (job.config), and the words and
 * variables that were made of them. It is tens of kB each, a MB at most, and a hundred thousand
 * finished jobs are kept. Those of finished jobs are kept up to MO_RETAINED_TEXTS_MAX bytes
 * together: the one that ended first gives its own up, all else of it stays. Small ones always
 * stay. Those of unfinished jobs may be MO_ACTIVE_TEXTS_MAX bytes: one more submit is refused
 * then (verbs.c), and what a node reads beyond is not kept. Called by update.c alone, so that a
 * replay ends where the controller was. */
#include "daemon/core/update/retained.h"

#include <string.h>

#include "daemon/core/state/shared_words.h"
#include "daemon/core/update/edit.h"
#include "lib/base/assert.h"
#include "lib/base/desc_fit.h"
#include "lib/model/limits.h"

#define SMALL 4096
#define PER_TEXT 40 /* of memory, beside what is in it */

static size_t text_bytes(const char *s)
{
	return s ? strlen(s) + PER_TEXT : 0;
}

static size_t texts_bytes(char *const *texts, size_t n)
{
	size_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += text_bytes(texts[i]);
	return sum;
}

static size_t pairs_bytes(const struct kv *pairs, size_t n)
{
	size_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += text_bytes(pairs[i].key) + text_bytes(pairs[i].value);
	return sum;
}

/* The recipe's own; what an engine file gives is the same for many, and small. Each stands there
 * twice. */
static size_t env_bytes(const struct recipe *r)
{
	size_t sum = 0;

	for (size_t i = 0; i < r->n_env; i++)
		sum += 2 * (text_bytes(r->env[i].name) + text_bytes(r->env[i].value));
	return sum;
}

static size_t own_bytes(const struct submit *s)
{
	const struct engine *e = &s->engine;
	size_t sum =
		s->owns ? texts_bytes(e->resume, e->n_resume) + pairs_bytes(e->owned, e->n_owned)
			: 0;

	for (size_t i = 0; s->owns && i < e->n_rules; i++)
		sum += sizeof(e->rules[i]) + mo_desc_text_bytes(&line_rule_desc, &e->rules[i]);
	return sum;
}

static size_t bytes_of(const struct job *j)
{
	const struct submit *s = &j->spec;
	const struct recipe *r = &s->recipe;
	const struct recipe_engine *e = &r->engine;

	return (s->recipe_text ? strlen(s->recipe_text) : 0) +
	       (j->config.text ? strlen(j->config.text) : 0) + texts_bytes(s->argv, s->n_argv) +
	       texts_bytes(s->prepare, s->n_prepare) + texts_bytes(s->warnings, s->n_warnings) +
	       texts_bytes(r->nodes, r->n_nodes) + texts_bytes(r->exclude, r->n_exclude) +
	       texts_bytes(r->checkpoint.resume_args, r->checkpoint.n_resume_args) +
	       texts_bytes(e->argv, e->n_argv) + texts_bytes(e->prepare_argv, e->n_prepare_argv) +
	       texts_bytes(e->args_off, e->n_args_off) +
	       texts_bytes(e->args_unchecked, e->n_args_unchecked) +
	       pairs_bytes(e->args, e->n_args) + pairs_bytes(e->own, e->n_own) +
	       pairs_bytes(r->experiment_args, r->n_experiment_args) +
	       pairs_bytes(r->labels, r->n_labels) + env_bytes(r) + own_bytes(s);
}

int64_t retained_bytes_of(const struct job *j)
{
	size_t bytes = bytes_of(j);

	return job_state_final(j->state) && bytes <= SMALL ? 0 : (int64_t)bytes;
}

/* Of the first entry that is not of a job before this one. */
static size_t place_of_texts(const struct core *c, int64_t job)
{
	size_t from = 0, to = c->n_texts;

	while (from < to) {
		size_t at = from + (to - from) / 2;

		if (c->texts[at].job < job)
			from = at + 1;
		else
			to = at;
	}
	return from;
}

int64_t retained_of(const struct core *c, int64_t job)
{
	size_t at = place_of_texts(c, job);

	return at < c->n_texts && c->texts[at].job == job ? c->texts[at].bytes : 0;
}

static void retained_set(struct core *c, int64_t job, int64_t bytes)
{
	size_t at = place_of_texts(c, job);
	bool there = at < c->n_texts && c->texts[at].job == job;

	mo_assert(bytes >= 0);
	if (!bytes && there) {
		c->n_texts--;
		memmove(&c->texts[at], &c->texts[at + 1], (c->n_texts - at) * sizeof(*c->texts));
	}
	if (bytes && !there) {
		MO_GROW(c->texts, c->n_texts);
		memmove(&c->texts[at + 1], &c->texts[at],
			(c->n_texts - 1 - at) * sizeof(*c->texts));
	}
	if (bytes)
		c->texts[at] = (struct job_texts){ .job = job, .bytes = bytes };
}

static void pairs_clear(struct kv **pairs, size_t *n)
{
	mo_vec_clear(&kv_desc, (void **)pairs, n);
}

/* All that bytes_of() counts, and the rest of the environment. */
static void texts_clear(struct job *j)
{
	struct submit *s = &j->spec;
	struct recipe *r = &s->recipe;
	struct recipe_engine *e = &r->engine;

	submit_own_forget(s);
	words_own(s);
	mo_str_set(&s->recipe_text, NULL);
	mo_str_set(&j->config.text, NULL);
	mo_strs_clear(&s->argv, &s->n_argv);
	mo_strs_clear(&s->prepare, &s->n_prepare);
	mo_strs_clear(&s->warnings, &s->n_warnings);
	mo_strs_clear(&r->nodes, &r->n_nodes);
	mo_strs_clear(&r->exclude, &r->n_exclude);
	mo_strs_clear(&r->checkpoint.resume_args, &r->checkpoint.n_resume_args);
	mo_strs_clear(&e->argv, &e->n_argv);
	mo_strs_clear(&e->prepare_argv, &e->n_prepare_argv);
	mo_strs_clear(&e->args_off, &e->n_args_off);
	mo_strs_clear(&e->args_unchecked, &e->n_args_unchecked);
	pairs_clear(&e->args, &e->n_args);
	pairs_clear(&e->own, &e->n_own);
	pairs_clear(&r->experiment_args, &r->n_experiment_args);
	mo_vec_clear(&env_item_desc, (void **)&s->env, &s->n_env);
	mo_vec_clear(&recipe_env_desc, (void **)&r->env, &r->n_env);
	words_lend_all(s);
}

/* The place in c->retained of what ended then: at a start jobs come by their id. */
static size_t place_of_end(const struct core *c, const struct job *j)
{
	size_t from = 0, to = c->n_retained;

	mo_assert(job_state_final(j->state));
	while (from < to) {
		size_t at = from + (to - from) / 2;
		const struct job *k = job_find(&c->owned, c->retained[at]);

		if (k->ended_at < j->ended_at || (k->ended_at == j->ended_at && k->id < j->id))
			from = at + 1;
		else
			to = at;
	}
	return from;
}

static void let_go(struct job *j)
{
	j->let_go = (j->let_go == MO_NONE ? 0 : j->let_go) + (int64_t)bytes_of(j);
	texts_clear(j);
}

void retained_leave(struct core *c, struct job *j)
{
	int64_t bytes = retained_of(c, j->id);
	size_t at = 0;

	if (!bytes)
		return;
	while (at < c->n_retained && c->retained[at] != j->id)
		at++;
	if (at < c->n_retained) {
		memmove(c->retained + at, c->retained + at + 1,
			(--c->n_retained - at) * sizeof(*c->retained));
		c->retained_bytes -= bytes;
	} else {
		c->active_bytes -= bytes;
	}
	retained_set(c, j->id, 0);
	mo_assert(c->retained_bytes >= 0 && c->active_bytes >= 0);
}

/* The last lines of its ranks: those that tell why it ended are evidence of an incident by now,
 * and nobody is shown the others: 20 kB of each of thousands of ranks. */
static void tails_clear(struct job *j)
{
	for (size_t i = 0; i < j->run.n_ranks; i++)
		mo_strs_clear(&j->run.ranks[i].tail, &j->run.ranks[i].n_tail);
}

static void count_finished(struct core *c, struct job *j, int64_t bytes)
{
	size_t at = place_of_end(c, j);

	tails_clear(j);
	if (!bytes)
		return;
	mo_ints_add(&c->retained, &c->n_retained, j->id);
	assert(at < c->n_retained);
	memmove(c->retained + at + 1, c->retained + at,
		(c->n_retained - 1 - at) * sizeof(*c->retained));
	c->retained[at] = j->id;
	c->retained_bytes += bytes;
	while (c->retained_bytes > MO_RETAINED_TEXTS_MAX) {
		struct job *oldest = job_edit(&c->owned, c->retained[0]);

		retained_leave(c, oldest);
		let_go(oldest);
	}
	mo_assert(c->retained_bytes <= MO_RETAINED_TEXTS_MAX);
}

void retained_count(struct core *c, struct job *j)
{
	int64_t bytes = retained_bytes_of(j);

	retained_leave(c, j);
	retained_set(c, j->id, bytes);
	if (job_state_final(j->state)) {
		count_finished(c, j, bytes);
		return;
	}
	c->active_bytes += bytes;
	if (c->active_bytes > MO_ACTIVE_TEXTS_MAX && j->config.text) {
		size_t n = strlen(j->config.text);

		j->let_go = (int64_t)n;
		c->active_bytes -= (int64_t)n;
		retained_set(c, j->id, bytes - (int64_t)n);
		mo_str_set(&j->config.text, NULL);
	}
}
