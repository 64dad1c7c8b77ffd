/* See hangs.h: the controller of a bed, and one run from submit to end. */
#include "tests/hangs/bed_inner.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/core/state/job.h"
#include "daemon/core/update/check.h"
#include "lib/base/parse.h"
#include "tests/core_inside.h"

#define GIVE_UP (12 * 60 * MIN) /* a hang that is not seen by then is not seen */
#define AWAY (10 * MIN)

/* A number of its data; MO_NONE: null, or not there. */
static int64_t datum(const struct event *e, const char *key)
{
	const char *at = e->data ? strstr(e->data, key) : NULL;
	_cleanup_(mo_freep) char *word = NULL;
	int64_t ret;

	if (!at)
		return MO_NONE;
	at += strlen(key);
	word = mo_strndup(at, strspn(at, "-0123456789"));
	return mo_parse_i64(word, INT64_MIN, INT64_MAX, &ret) == 0 ? ret : MO_NONE;
}

static void verdict(struct bed *b, const struct event *e)
{
	struct verdicts *v = b->v;
	bool confirmed = mo_streq(e->type, "hang.confirmed");

	if (b->trace)
		printf("%9.1f  %s: %s %s\n", (double)b->now / 1e6, e->type, e->message,
		       e->data ? e->data : "");
	v->suspected += mo_streq(e->type, "hang.suspected");
	v->cleared += mo_streq(e->type, "hang.cleared");
	if (!confirmed)
		return;
	v->confirmed++;
	v->acts = datum(e, "\"acts\":") == 1;
	v->rank = datum(e, "\"rank\":");
	v->detected_at = b->now;
	snprintf(v->why, sizeof(v->why), "iteration %lld: %s", (long long)b->course.iteration,
		 e->message);
}

int64_t bed_decide(struct bed *b, const struct core_input *in)
{
	struct core_out out = { 0 };
	int64_t status = 0;

	((struct core_input *)in)->request = 1;
	core_turn(b->core, in, b->now, &out);
	for (size_t i = 0; i < out.n_effects; i++) {
		const struct effect *x = &out.effects[i];

		if (x->type == FX_EVENT)
			verdict(b, x->event->event);
		else if (x->type == FX_REPLY)
			status = x->reply->status;
	}
	core_out_done(&out);
	return status;
}

void bed_hello(struct bed *b, struct bed_node *n)
{
	struct agent_hello h;

	mo_desc_init(&agent_hello_desc, &h);
	h.node = mo_strdup(n->name);
	h.boot_id = mo_strdup(n->name);
	h.instance = mo_strdup(n->name);
	h.protocol = MO_PROTOCOL;
	h.address = mo_strdup("10.0.0.1");
	for (int64_t i = 0; i < LOCAL; i++) {
		struct gpu_slot *g = MO_ADD(&h.info, gpus, &gpu_slot_desc);

		g->index = i;
		g->vendor = mo_strdup("amd");
		g->model = mo_strdup("mi300x");
	}
	for (size_t i = 0; i < n->n_steps; i++) {
		struct step_report *r = MO_ADD(&h, steps, &step_report_desc);

		r->job = n->steps[i].job;
		r->attempt = n->steps[i].attempt;
		r->written = n->steps[i].written;
		r->state = n->steps[i].gone ? STEP_GONE : STEP_RUNNING;
	}
	bed_decide(b, &(struct core_input){ .type = IN_HELLO,
					    .hello = &(struct in_hello){ .message = &h } });
	mo_desc_done(&agent_hello_desc, &h);
}

static void input(struct bed *b, int type)
{
	bed_decide(b, &(struct core_input){ .type = type });
}

/* It starts again from what it stored. */
static void restart(struct bed *b)
{
	struct core *next = core_new(&core_config_default);
	struct state copy;

	mo_desc_init(&state_desc, &copy);
	mo_desc_copy(&state_desc, &copy, core_state(b->core));
	core_load(next, &copy);
	mo_desc_done(&state_desc, &copy);
	core_free(b->core);
	b->core = next;
	input(b, IN_START);
}

static void submit(struct bed *b)
{
	struct submit spec;

	mo_desc_init(&submit_desc, &spec);
	spec.user = mo_strdup("ann");
	spec.recipe.name = mo_strdup("job");
	spec.recipe.gpus = RANKS;
	spec.recipe.steps = b->s->steps;
	spec.recipe.hang = mo_strdup("auto");
	spec.recipe.stop_signal = 15;
	spec.recipe.stop_grace_us = MIN;
	spec.recipe.max_cycles = 3;
	spec.recipe.grace_us = spec.recipe.backoff_us = 0;
	spec.recipe.checkpoint.dir = mo_strdup("/ckpt");
	spec.recipe.checkpoint.resume = -1;
	spec.recipe.checkpoint.keep = 0;
	spec.engine.kind = mo_strdup(b->s->engine.name);
	spec.engine.metrics_rank = b->s->engine.last;
	mo_strs_add(&spec.argv, &spec.n_argv, "/bin/train");
	bed_decide(b, &(struct core_input){ .type = IN_SUBMIT, .submit = &spec });
	b->job = 1;
	mo_desc_done(&submit_desc, &spec);
}

static bool over(const struct bed *b)
{
	const struct job *j = job_find(core_state(b->core), b->job);

	return !j || job_state_final(j->state);
}

static void check(const struct bed *b)
{
	_cleanup_(mo_freep) char *broken = state_check(b->core);

	if (!broken)
		return;
	fprintf(stderr, "hangs: %s: %s\n", b->s->name, broken);
	abort();
}

static void away(struct bed *b, bool *ret_was)
{
	if (!*ret_was && b->s->away_at && b->course.iteration >= b->s->away_at) {
		*ret_was = true;
		b->away_until = b->now + AWAY;
	} else if (b->away_until && b->away_until <= b->now) {
		b->away_until = 0;
		restart(b);
	}
}

static void bed_done(struct bed *b)
{
	for (int i = 0; i < BEDS; i++) {
		struct bed_node *n = &b->nodes[i];

		for (size_t k = 0; k < n->n_steps; k++)
			mo_vec_clear(&note_desc, (void **)&n->steps[k].notes, &n->steps[k].n_notes);
		free(n->steps);
		mo_vec_clear(&scan_result_desc, (void **)&n->scans, &n->n_scans);
	}
	core_free(b->core);
}

void bed_run(const struct scenario *s, uint64_t seed, bool trace, struct verdicts *ret)
{
	struct bed b = { .s = s, .rng = seed, .trace = trace, .now = 1000 * S, .v = ret };
	bool was_away = false, stuck = s->stuck_in != NOT_STUCK;

	*ret = (struct verdicts){ .rank = MO_NONE };
	b.core = core_new(&core_config_default);
	input(&b, IN_START);
	for (int i = 0; i < BEDS; i++) {
		snprintf(b.nodes[i].name, sizeof(b.nodes[i].name), "n%d", i);
		bed_hello(&b, &b.nodes[i]);
	}
	submit(&b);
	while (!over(&b) && !(stuck && ret->confirmed) &&
	       !(ret->hung_at && b.now > ret->hung_at + GIVE_UP)) {
		bed_second(&b);
		away(&b, &was_away);
		if (!b.away_until && core_deadline(b.core) <= b.now)
			input(&b, IN_TICK);
	}
	ret->completed = over(&b) && job_find(core_state(b.core), b.job)->state == JOB_COMPLETED;
	check(&b);
	bed_done(&b);
}
