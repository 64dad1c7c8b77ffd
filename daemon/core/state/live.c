/* See live.h: ordered lists of ids, and the part of a node that is never stored. */
#include "daemon/core/state/live.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/core/state/heard.h"
#include "daemon/core/state/robust.h"
#include "lib/base/assert.h"

/* First position whose id is not below. */
static size_t ids_place(const int64_t *ids, size_t n, int64_t id)
{
	size_t low = 0, high = n;

	if (n == 0 || ids[n - 1] < id)
		return n;
	mo_assert(ids[0] <= ids[n - 1]); /* ascending */
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (ids[mid] < id)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

bool ids_has(const int64_t *ids, size_t n, int64_t id)
{
	size_t at = ids_place(ids, n, id);

	return at < n && ids[at] == id;
}

void ids_add(int64_t **ids, size_t *n, int64_t id)
{
	size_t at = ids_place(*ids, *n, id);

	if (at < *n && (*ids)[at] == id)
		return;
	mo_ints_add(ids, n, id);
	memmove(*ids + at + 1, *ids + at, (*n - 1 - at) * sizeof(**ids));
	(*ids)[at] = id;
	mo_assert(at == 0 || (*ids)[at - 1] < id);
	mo_assert(at + 1 == *n || (*ids)[at + 1] > id);
}

void ids_remove(int64_t *ids, size_t *n, int64_t id)
{
	size_t at = ids_place(ids, *n, id);

	if (at >= *n || ids[at] != id)
		return;
	memmove(ids + at, ids + at + 1, (*n - at - 1) * sizeof(*ids));
	(*n)--;
}

void core_touch(struct core *c, int64_t job)
{
	ids_add(&c->dirty, &c->n_dirty, job);
}

bool job_is_out(const struct state *s, int64_t job)
{
	return ids_has(s->aside, s->n_aside, job);
}

struct live *core_live(struct core *c, const char *node)
{
	size_t at;

	return node_at(&c->owned, node, &at) ? c->lives[at] : NULL;
}

const struct live *live_of(const struct core *c, const char *node)
{
	size_t at;

	return node_at(&c->owned, node, &at) ? c->lives[at] : NULL;
}

void live_waits_clear(struct live *l)
{
	for (size_t i = 0; i < l->n_waits; i++)
		free(l->waits[i].text);
	free(l->waits);
	l->waits = NULL;
	l->n_waits = 0;
}

static void live_free(struct live *l)
{
	free(l->jobs);
	free(l->strays);
	free(l->tellers);
	free(l->scans);
	free(l->pulls);
	free(l->prefetches);
	mo_vec_clear(&image_report_desc, (void **)&l->images, &l->n_images);
	live_waits_clear(l);
	free(l->checks);
	node_slots_done(&l->slots);
	mo_vec_clear(&gpu_sensors_desc, (void **)&l->sensors, &l->n_sensors);
	mo_vec_clear(&nic_sensors_desc, (void **)&l->nics, &l->n_nics);
	mo_desc_free(&agent_hello_desc, l->candidate);
	free(l);
}

struct live *core_live_insert(struct core *c, size_t at, size_t n_lives)
{
	struct live *l = mo_alloc(sizeof(*l));
	size_t n = n_lives;

	assert(at <= n_lives);
	MO_GROW(c->lives, n);
	memmove(&c->lives[at + 1], &c->lives[at], (n_lives - at) * sizeof(*c->lives));
	c->lives[at] = l;
	MO_GROW(c->slots.nodes, c->slots.n);
	memmove(&c->slots.nodes[at + 1], &c->slots.nodes[at],
		(n_lives - at) * sizeof(*c->slots.nodes));
	c->slots.nodes[at] = &l->slots;
	l->node = c->owned.nodes[at];
	l->health_seen = MO_NONE;
	c->owned.lives = c->lives;
	return l;
}

static void seen_clear(struct job_beats *b)
{
	free(b->seen);
	b->seen = NULL;
	mo_strs_clear(&b->evidence, &b->n_evidence);
}

static void ranks_free(struct job_beats *b)
{
	seen_clear(b);
	for (size_t i = 0; i < b->n_ranks; i++)
		mo_desc_free(&rank_recorder_desc, b->ranks[i].recorder);
	free(b->ranks);
}

void core_lives_clear(struct core *c)
{
	mo_assert(c->lives || c->owned.n_nodes == 0);
	for (size_t i = 0; i < c->owned.n_nodes; i++)
		live_free(c->lives[i]);
	free(c->lives);
	c->lives = NULL;
	memset(c->watches, 0, sizeof(c->watches));
	slots_done(&c->slots);
	free(c->stale);
	c->stale = NULL;
	c->tally = (struct tally){ 0 };
	c->n_wake_nodes = 0;
	free(c->askers);
	c->askers = NULL;
	c->n_askers = 0;
	for (size_t i = 0; i < c->n_beats; i++)
		ranks_free(&c->beats[i]);
	free(c->beats);
	c->beats = NULL;
	c->n_beats = 0;
	c->owned.lives = NULL;
	c->owned.tally = NULL;
	c->owned.beats = NULL;
	c->owned.n_beats = 0;
}

static void beats_begin(struct job_beats *b, const struct job *j)
{
	ranks_free(b);
	*b = (struct job_beats){ .job = j->id,
				 .attempt = j->attempt,
				 .advanced_at = MO_NONE,
				 .word_at = MO_NONE,
				 .recorder_at = MO_NONE,
				 .odd = MO_NONE,
				 .act_odd = MO_NONE };
	for (size_t i = 0; i < j->run.n_ranks; i++)
		*MO_GROW(b->ranks, b->n_ranks) = (struct rank_beat){ .iteration = MO_NONE,
								     .step_ms = MO_NONE_F,
								     .motion_at = MO_NONE,
								     .recorder_at = MO_NONE,
								     .own_at = MO_NONE,
								     .usual_ms = MO_NONE_F,
								     .phase = PHASE_NONE,
								     .doing = -1 };
}

/* Of this attempt; made when there is none. */
static struct job_beats *beats_get(struct core *c, const struct job *j)
{
	size_t at = beats_place(c->beats, c->n_beats, j->id);

	if (at == c->n_beats || c->beats[at].job != j->id) {
		MO_GROW(c->beats, c->n_beats);
		memmove(&c->beats[at + 1], &c->beats[at],
			(c->n_beats - 1 - at) * sizeof(*c->beats));
		c->beats[at] = (struct job_beats){ .job = j->id, .attempt = MO_NONE };
		c->owned.beats = c->beats;
		c->owned.n_beats = c->n_beats;
	}
	if (c->beats[at].attempt != j->attempt || c->beats[at].n_ranks != j->run.n_ranks)
		beats_begin(&c->beats[at], j);
	mo_assert(at == 0 || c->beats[at - 1].job < j->id);
	mo_assert(c->beats[at].n_ranks == j->run.n_ranks);
	return &c->beats[at];
}

bool core_beat(struct core *c, const struct job *j, int64_t rank, int64_t iteration, double step_ms,
	       int64_t now)
{
	struct job_beats *b = beats_get(c, j);
	assert(rank >= 0 && (size_t)rank < j->run.n_ranks);
	struct rank_beat *k = &b->ranks[rank];

	if (step_ms != MO_NONE_F)
		k->step_ms = step_ms;
	int64_t newest = MO_MAX(k->iteration, j->run.ranks[rank].iteration);

	if (iteration >= newest)
		/* of the iteration that a record has too: step_ms is its newest word */
		k->iteration = iteration;
	if (iteration <= newest)
		return false;
	b->advanced_at = now;
	return true;
}

/* Its own past: windows that do not overlap; the best of them, so that one that becomes slower by
 * and by is held against what it was. */
static void learn_usual(struct rank_beat *k)
{
	double median = rank_own_ms(k), ms[OWN_WINDOW];

	if (median == MO_NONE_F || (k->usual_ms != MO_NONE_F && median >= k->usual_ms))
		return;
	memcpy(ms, k->own_ms, sizeof(ms));
	k->usual_ms = median;
	k->usual_sigma = robust_sigma(ms, OWN_WINDOW, median);
}

void core_own(struct core *c, const struct job *j, const struct rank_progress *p)
{
	struct job_beats *b = beats_get(c, j);
	struct rank_beat *k;
	double own;

	assert(p->rank >= 0 && (size_t)p->rank < j->run.n_ranks);
	k = &b->ranks[p->rank];
	bool busy = p->busy_ms != MO_NONE_F;
	own = busy ? p->busy_ms : p->step_ms;
	/* no rank takes nothing, nor longer; !: NaN too */
	if (!(own > 0 && own <= OWN_MS_MAX) || p->iteration <= k->own_at)
		return;
	if (busy != k->own_busy) { /* of another agent: one does not tell of the other */
		k->n_own = 0;
		k->usual_ms = MO_NONE_F;
		k->own_busy = busy;
	}
	k->own_at = p->iteration;
	k->own_ms[k->n_own++ % OWN_WINDOW] = own;
	if (k->n_own % OWN_WINDOW == 0)
		learn_usual(k);
}

void core_phase(struct core *c, const struct job *j, const struct rank_progress *p)
{
	assert(p->rank >= 0 && (size_t)p->rank < j->run.n_ranks);
	beats_get(c, j)->ranks[p->rank].phase = p->phase;
}

void core_doing(struct core *c, const struct job *j, const int *doing, int64_t until)
{
	struct job_beats *b = beats_get(c, j);

	for (size_t i = 0; i < b->n_ranks; i++)
		b->ranks[i].doing = doing[i];
	b->doing_until = until;
}

void core_hang_seen(struct core *c, const struct job *j, char *text, char **evidence, size_t n)
{
	struct job_beats *b = beats_get(c, j);

	seen_clear(b);
	b->seen = text;
	b->evidence = evidence;
	b->n_evidence = n;
}

void core_motion(struct core *c, const struct job *j, const struct rank_motion *m, int64_t now)
{
	struct job_beats *b = beats_get(c, j);

	assert(m->rank >= 0 && (size_t)m->rank < j->run.n_ranks);
	b->ranks[m->rank].motion = *m;
	b->ranks[m->rank].motion_at = now;
}

void core_recorder(struct core *c, const struct job *j, const struct rank_recorder *k, int64_t now)
{
	struct job_beats *b = beats_get(c, j);

	assert(k->rank >= 0 && (size_t)k->rank < j->run.n_ranks);
	mo_desc_free(&rank_recorder_desc, b->ranks[k->rank].recorder);
	b->ranks[k->rank].recorder = mo_desc_dup(&rank_recorder_desc, k);
	b->ranks[k->rank].recorder_at = b->recorder_at = now;
}

void core_activity(struct core *c, const struct job *j, const struct rank_activity *a, bool usual,
		   int64_t now)
{
	struct job_beats *b = beats_get(c, j);

	assert(a->rank >= 0 && (size_t)a->rank < j->run.n_ranks);
	if (acts_take(&b->ranks[a->rank].acts, a, usual, now))
		b->acted = true;
}

void core_word(struct core *c, const struct job *j, int64_t now)
{
	beats_get(c, j)->word_at = now;
}

bool core_judge(struct core *c, const struct job *j, int64_t now, int64_t every)
{
	struct job_beats *b = beats_get(c, j);

	if (b->judged_at && now - b->judged_at < every)
		return false;
	b->judged_at = now;
	return true;
}

bool core_search_room(struct core *c, const struct job *j)
{
	struct job_beats *b = beats_get(c, j);

	if (!c->queue_dirty && b->room_pass == c->passes && b->room_at == j->straggler.at)
		return false;
	b->room_pass = c->passes; /* of before this turn's, which may see more */
	b->room_at = j->straggler.at;
	return true;
}

struct job_beats *core_pace(struct core *c, const struct job *j, int64_t now, int64_t every)
{
	size_t at = beats_place(c->beats, c->n_beats, j->id);
	struct job_beats *b = at < c->n_beats ? &c->beats[at] : NULL;

	if (!b || b->job != j->id || b->attempt != j->attempt || b->n_ranks != j->run.n_ranks ||
	    (b->paced_at && now - b->paced_at < every))
		return NULL;
	return b;
}

void core_beats_drop(struct core *c, int64_t job)
{
	size_t at = beats_place(c->beats, c->n_beats, job);

	if (at == c->n_beats || c->beats[at].job != job)
		return;
	ranks_free(&c->beats[at]);
	memmove(&c->beats[at], &c->beats[at + 1], (c->n_beats - 1 - at) * sizeof(*c->beats));
	c->owned.n_beats = --c->n_beats;
	mo_assert(at == 0 || c->beats[at - 1].job < job);
}

void core_live_shift(struct core *c, int64_t shift)
{
	for (size_t i = 0; i < c->owned.n_nodes; i++) {
		struct live *l = c->lives[i];

		l->heard_at += shift;
		l->clock = (struct node_clock){ 0 };
		for (size_t k = 0; k < l->n_waits; k++)
			l->waits[k].since += shift;
	}
	for (size_t i = 0; i < c->n_beats; i++)
		if (c->beats[i].advanced_at != MO_NONE)
			c->beats[i].advanced_at += shift;
	for (size_t i = 0; i < c->n_beats; i++) {
		c->beats[i].judged_at = c->beats[i].paced_at = 0;
		c->beats[i].odd = c->beats[i].act_odd = MO_NONE;
		c->beats[i].acted_at = c->beats[i].doing_until = 0;
		if (c->beats[i].word_at != MO_NONE)
			c->beats[i].word_at += shift;
		c->beats[i].recorder_at = MO_NONE;
		for (size_t k = 0; k < c->beats[i].n_ranks; k++) {
			c->beats[i].ranks[k].motion_at = c->beats[i].ranks[k].recorder_at = MO_NONE;
			c->beats[i].ranks[k].acts.at += shift;
		}
	}
}
