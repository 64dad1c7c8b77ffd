/* The queue: recovering jobs first, then by priority, then by id. The first job that waits for
 * busy GPUs keeps all behind it waiting (large jobs do not starve); a job that could not run
 * even on an idle cluster, or waits for a person or for its checkpoint.dir, holds nobody up.
 * After a start nobody is placed before the nodes that were up are heard or suspect: the first of
 * them to come back are not the best ones, and not enough for the first of the queue.
 * Jobs that run and lack spares look for them where they would stand themselves (spares.h).
 * Before an attempt the job's checkpoint.dir is scanned from the first node it will get. Called
 * by act() when anything that matters here changed. */
#include "daemon/core/rules/schedule.h"

#include <string.h>

#include "daemon/core/rules/elsewhere.h"
#include "daemon/core/rules/events.h"
#include "daemon/core/rules/images.h"
#include "daemon/core/rules/incarnation.h"
#include "daemon/core/rules/place.h"
#include "daemon/core/rules/prefetch.h"
#include "daemon/core/rules/resume.h"
#include "daemon/core/state/slots.h"
#include "daemon/core/rules/spares.h"
#include "daemon/core/rules/transitions.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/rules/unread.h"
#include "daemon/core/state/checkpoint.h"
#include "daemon/core/state/waiting.h"
#include "daemon/core/update/claims.h"
#include "daemon/core/update/slots.h"
#include "daemon/core/update/wake.h"
#include "lib/base/assert.h"
#include "lib/base/buf.h"

static bool waiting(const struct job *j)
{
	return j && j->run.n_places == 0 &&
	       (j->state == JOB_QUEUED || j->state == JOB_RECOVERING) && !job_live(j);
}

/* at: where it stands in the queue of the core; of one that runs and lacks spares nowhere */
struct candidate {
	int64_t id, priority;
	bool recovering, runs;
	size_t at;
};

static int queue_order(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->recovering != y->recovering)
		return x->recovering ? -1 : 1;
	if (x->priority != y->priority)
		return x->priority > y->priority ? -1 : 1;
	return x->id < y->id ? -1 : 1;
}

bool scan_fresh(const struct job *j, int64_t now)
{
	return j->scan.attempt == job_next_attempt(j) && j->scan.at != MO_NONE &&
	       now - j->scan.at <= SCAN_FRESH_US;
}

/* The job waits for w, which is taken; image: places are kept for it until they have its image.
 * True when that is another reason than the recorded one. */
static bool waits_for(struct turn *t, const struct candidate *k, struct waiting *w, bool image)
{
	const struct job *j = job_find(&t->core->state, k->id);
	_cleanup_(mo_freep) char *reason = waiting_recorded(w);

	mo_assert(j && w);
	queue_set(&t->core->queue, k->at, w);
	bool same = !reason || mo_streq(j->reason, reason);

	if (same && j->image.waits == image)
		return false;
	job_reason(t, k->id, same ? j->reason : reason, image);
	return true;
}

static bool waits(struct turn *t, const struct candidate *k, struct waiting *w)
{
	return waits_for(t, k, w, false);
}

static void place_job(struct turn *t, int64_t id, struct place *places, size_t n_places,
		      int64_t resume)
{
	const struct state *s = &t->core->state;
	const struct job *j = job_find(s, id);
	int64_t attempt = job_next_attempt(j);
	_cleanup_(mo_buf_done) struct mo_buf data = { 0 };
	struct record r;

	assert(n_places > 0 && resume >= -1);
	spares_placed(t, j, places, n_places);
	record_init(&r, REC_PLACE);
	r.job = id;
	r.attempt = attempt;
	r.place->port = port_next(t->core);
	r.place->resume = resume;
	r.place->is_restart = j->after_failure;
	for (size_t i = 0; i < n_places; i++) {
		mo_desc_copy(&place_desc, MO_ADD(r.place, places, &place_desc), &places[i]);
		mo_strs_add(&r.place->boot_ids, &r.place->n_boot_ids,
			    node_find(s, places[i].node)->boot.id);
	}
	turn_emit(t, &r);
	job_move(t, id, T_PLACED, false, 0, NULL);
	data_int(&data, "resume", resume);
	data_int(&data, "nodes", (int64_t)n_places);
	data_int(&data, "port", j->run.port);
	event_emit(t, EVENT_JOB_STARTED, id, places[0].node, MO_NONE, attempt, data_end(&data),
		   "attempt %lld of %s on %zu node%s from %s, %s%lld", (long long)attempt,
		   j->spec.recipe.name, n_places, n_places == 1 ? "" : "s", places[0].node,
		   resume >= 0 ? "resuming from iteration " : "port ",
		   (long long)(resume >= 0 ? resume : j->run.port));
}

/* The job waits because of files that nothing reads: once, when it begins to wait or they are
 * others. */
static void tell_unread(struct turn *t, int64_t id)
{
	const struct job *j = job_find(&t->core->state, id);
	_cleanup_(mo_freep) char *names = checkpoint_unread_names(j);
	_cleanup_(mo_buf_done) struct mo_buf data = { 0 };

	if (!names || checkpoint_newest_at_most(j, INT64_MAX, false) != MO_NONE)
		return;
	data_str(&data, "dir", j->spec.recipe.checkpoint.dir);
	data_str(&data, "files", names);
	event_emit(t, EVENT_CHECKPOINT_UNREAD, id, NULL, MO_NONE,
		   j->attempt > 0 ? j->attempt : MO_NONE, data_end(&data),
		   "%s waits: %s cannot be read with checkpoint.dir %s, and is not passed over",
		   j->spec.recipe.name, names, j->spec.recipe.checkpoint.dir);
}

static void want_scan(struct turn *t, int64_t id, const char *node)
{
	struct live *l = core_live(t->core, node);

	t->core->n_scanning -= l->n_scans;
	ids_add(&l->scans, &l->n_scans, id);
	t->core->n_scanning += l->n_scans;
	wake_node(t->core, node);
}

/* What was found in checkpoint.dir keeps it: files that nothing reads, or anything else. */
static struct waiting found_wrong(const struct job *j, const struct mo_error *err)
{
	_cleanup_(mo_freep) char *names = checkpoint_unread_names(j);
	bool unread = names && strstr(err->text, names);
	struct waiting w = waiting_make(unread ? WAITING_UNREAD : WAITING_CHECKPOINT);

	w.text = mo_strdup(err->text);
	return w;
}

static bool scan(struct turn *t, const struct candidate *k, const char *node)
{
	const struct job *j = job_find(&t->core->state, k->id);
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	bool again = j->scan.attempt == job_next_attempt(j);
	struct waiting w = waiting_make(WAITING_SCAN);
	int64_t resume;

	want_scan(t, k->id, node);
	if (again && checkpoint_choose(j, &resume, &err) == 1) {
		w = found_wrong(j, &err);
	} else {
		w.dir = mo_strdup(j->saves.dir);
		w.node = mo_strdup(node);
	}
	if (!again || j->image.waits)
		return waits(t, k, &w);
	queue_set(&t->core->queue, k->at, &w); /* judged before: what was recorded then stays */
	return false;
}

/* Nobody else gets them in this pass; whose they are then, the state says. */
static void set_aside(struct core *c, const struct place *places, size_t n_places)
{
	slots_take(&c->slots, &c->state, places, n_places);
	for (size_t i = 0; i < n_places; i++)
		slots_touch(c, places[i].node);
}

/* Places fit: the job starts, has its checkpoints scanned, or waits for a person. Takes its slots
 * unless it waits for a person. */
static bool start_or_scan(struct turn *t, const struct candidate *k, struct place *places,
			  size_t n_places)
{
	const struct job *j = job_find(&t->core->state, k->id);
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct waiting w;
	bool emitted;
	int64_t resume;
	int result;

	switch (images_wait(t, j, places, n_places, &w)) {
	case IMAGES_READY: break;
	case IMAGES_WAIT: set_aside(t->core, places, n_places); return waits_for(t, k, &w, true);
	case IMAGES_STAY: return waits(t, k, &w);
	case IMAGES_NEVER:
		job_move(t, k->id, T_GIVE_UP, false, 0, w.error);
		waiting_done(&w);
		return true;
	}
	if (j->spec.recipe.checkpoint.dir && !scan_fresh(j, t->now)) {
		set_aside(t->core, places, n_places);
		return scan(t, k, places[0].node);
	}
	if (j->checks.n_nodes) {
		set_aside(t->core, places, n_places);
		t->core->n_checking++;
		w = waiting_make(WAITING_CHECKS);
		w.node = mo_strdup(j->checks.nodes[0]);
		w.nodes = (int64_t)j->checks.n_nodes;
		return waits(t, k, &w);
	}
	result = checkpoint_choose(j, &resume, &err);
	if (result == 0) {
		set_aside(t->core, places, n_places);
		place_job(t, k->id, places, n_places, resume);
		return true;
	}
	if (result == 2) {
		job_move(t, k->id, T_GIVE_UP, false, 0, err.text);
		return true;
	}
	turn_deadline(t, j->scan.at + SCAN_FRESH_US + 1);
	w = found_wrong(j, &err);
	emitted = waits(t, k, &w);
	if (emitted)
		tell_unread(t, k->id);
	return emitted;
}

static const struct job *dir_holder(const struct core *c, const struct job *j)
{
	size_t n;
	const struct claim *same = claims_of(&c->dirs, j->saves.dir, &n);

	for (size_t i = 0; i < n; i++)
		if (checkpoint_dir_held(job_find(&c->state, same[i].job), j))
			return job_find(&c->state, same[i].job);
	return NULL;
}

/* What keeps the job from being given places before any are searched, in this order. False:
 * nothing. */
static bool held(struct turn *t, const struct job *j, struct waiting *ret)
{
	struct core *c = t->core;
	const struct waiting *ahead = c->blocked ? queue_find(&c->queue, c->blocked_id) : NULL;
	const struct job *holder;
	int64_t until = 0;

	if (t->now < j->not_before) {
		turn_deadline(t, j->not_before);
		*ret = waiting_make(j->not_before - j->waterfall.gone_at >
						    MO_MAX(j->spec.recipe.grace_us, 0)
					    ? WAITING_PAUSE
					    : WAITING_GRACE);
		ret->until = j->not_before;
		return true;
	}
	*ret = waiting_make(WAITING_RESTORED);
	ret->text = incarnation_holds(&c->state, j, t->now, &until);
	if (until > t->now)
		turn_deadline(t, until);
	if (ret->text)
		return true;
	if (c->tally.awaited > 0 && job_gpus(j) <= c->tally.gpus) {
		*ret = waiting_make(WAITING_UNHEARD);
		ret->nodes = c->tally.awaited;
		return true;
	}
	if (c->blocked) {
		*ret = waiting_make(WAITING_BEHIND);
		ret->job = c->blocked_id;
		ret->needs = ahead ? ahead->needs : MO_NONE;
		ret->free = ahead ? ahead->free : MO_NONE;
		return true;
	}
	holder = dir_holder(c, j);
	*ret = waiting_make(WAITING_DIRECTORY);
	ret->job = holder ? holder->id : MO_NONE;
	return holder;
}

static bool judge_waiting(struct turn *t, const struct candidate *k)
{
	struct core *c = t->core;
	const struct job *j = job_find(&c->state, k->id);
	struct place *places = NULL;
	size_t n_places = 0;
	struct waiting w;
	bool emitted;

	if (held(t, j, &w))
		return waits(t, k, &w);
	c->looked += (int64_t)c->state.n_nodes;
	slots_for(&c->slots, &c->state, j);
	if (elsewhere_place(&c->state, &c->slots, j, &places, &n_places, &w) != 0) {
		c->blocked = w.usable >= job_gpus(j);
		c->blocked_id = k->id;
		c->blocked_priority =
			j->state == JOB_RECOVERING ? INT64_MAX : j->spec.recipe.priority;
		return waits(t, k, &w);
	}
	place_processes(&j->spec.engine, places, n_places);
	emitted = start_or_scan(t, k, places, n_places);
	mo_vec_clear(&place_desc, (void **)&places, &n_places);
	return emitted;
}

/* The whole queue, from the first to the last. A job that recovers will have its GPUs before
 * anybody keeps a spare, also while it waits for the end of a pause. */
static bool judge_all(struct turn *t, const struct candidate *queue, size_t n)
{
	bool emitted = false, recovers = false;

	slots_score(t->core);
	for (size_t i = 0; i < n; i++) {
		const struct job *j = job_find(&t->core->state, queue[i].id);

		if (!queue[i].runs)
			emitted |= judge_waiting(t, &queue[i]);
		recovers |= queue[i].recovering && j->run.n_places == 0;
		if (!t->core->blocked && !recovers && t->core->tally.awaited == 0 &&
		    spares_lacked(&t->core->state, j))
			emitted |= spares_fill(t, j->id, &t->core->slots);
	}
	return emitted;
}

/* Only submits since the last pass, behind everything that was judged: nothing else can have
 * changed. */
static bool only_fresh(const struct core *c)
{
	if (c->n_scanning || c->n_checking || c->n_pulling)
		/* slots are set aside for a job whose checkpoints are scanned or that waits for
		 * checks */
		return false;
	for (size_t i = 0; i < c->n_fresh; i++) {
		const struct job *j = job_find(&c->state, c->fresh[i]);

		if (c->blocked && j->spec.recipe.priority > c->blocked_priority)
			return false;
	}
	return true;
}

bool schedule(struct turn *t)
{
	struct core *c = t->core;
	bool all = c->queue_dirty || !only_fresh(c), emitted = false;
	size_t n_ids = all ? c->n_unfinished : c->n_fresh, n = 0;
	_cleanup_(mo_freep) struct candidate *queue = mo_alloc_array(n_ids + 1, sizeof(*queue));

	slots_refresh(c);
	if (all && spares_judge(t))
		return true; /* and once more */
	if (all)
		queue_clear(&c->queue);
	for (size_t i = 0; i < n_ids; i++) {
		const struct job *j = job_find(&c->state, all ? c->unfinished[i] : c->fresh[i]);

		if (waiting(j))
			queue[n++] = (struct candidate){ .id = j->id,
							 .priority = j->spec.recipe.priority,
							 .recovering = j->state == JOB_RECOVERING,
							 .at = queue_add(&c->queue, j->id) };
		else if (all && j && spares_lacked(&c->state, j))
			queue[n++] = (struct candidate){ .id = j->id,
							 .priority = j->spec.recipe.priority,
							 .runs = true };
	}
	c->looked += (int64_t)n_ids;
	c->n_fresh = 0;
	c->queue_dirty = false;
	c->passes++;
	for (size_t i = 0; all && c->n_scanning > 0 && i < c->state.n_nodes; i++) {
		c->n_scanning -= c->lives[i]->n_scans;
		c->lives[i]->n_scans = 0;
	}
	if (all)
		images_pass(c);
	c->blocked = c->blocked && !all;
	c->n_checking = all ? 0 : c->n_checking;
	if (n > 0) {
		qsort(queue, n, sizeof(*queue), queue_order);
		emitted = judge_all(t, queue, n);
	}
	if (all) { /* jobs come first, then their spares */
		spares_images(t);
		prefetch_pass(t);
	}
	return emitted;
}
