/* The queue: recovering jobs first, then by priority, then by id. The first job that waits for busy GPUs keeps all behind it waiting (large jobs do not starve); a job that
 * could not run even on an idle cluster, or waits for a person or for its checkpoint.dir, holds nobody up. Before an attempt the job's checkpoint.dir is scanned from the first node it will get.
 * Called by act() when anything that matters here changed. */
#include "daemon/core/rules/incarnation.h"
#include "daemon/core/inner.h"

#include "lib/base/buf.h"

static bool waiting(const struct job *j)
{
	return j && j->n_places == 0 && (j->state == JOB_QUEUED || j->state == JOB_RECOVERING) && !job_live(j);
}

struct candidate { int64_t id, priority; bool recovering; };

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
	return j->scan_attempt == job_next_attempt(j) && j->scan_at != MO_NONE && now - j->scan_at <= SCAN_FRESH_US;
}

static bool set_reason(struct turn *t, const struct job *j, const char *reason)
{
	if (mo_streq(j->reason, reason))
		return false;
	job_reason(t, j->id, reason);
	return true;
}

static void place_job(struct turn *t, int64_t id, struct place *places, size_t n_places, int64_t resume)
{
	const struct state *s = &t->core->state;
	const struct job *j = job_find(s, id);
	int64_t attempt = job_next_attempt(j);
	_cleanup_(mo_buf_done) struct mo_buf data = { 0 };
	struct record r;

	record_init(&r, REC_PLACE);
	r.job = id;
	r.attempt = attempt;
	r.value = port_next(t->core);
	r.iteration = resume;
	r.flag = j->after_failure;
	for (size_t i = 0; i < n_places; i++) {
		mo_desc_copy(&place_desc, MO_ADD(&r, places, &place_desc), &places[i]);
		mo_strs_add(&r.texts, &r.n_texts, node_find(s, places[i].node)->boot_id);
	}
	turn_emit(t, &r);
	job_move(t, id, T_PLACED, false, 0, NULL);
	j = job_find(s, id);
	data_int(&data, "resume", resume);
	data_int(&data, "nodes", (int64_t)n_places);
	data_int(&data, "port", j->port);
	event_emit(t, EVENT_JOB_STARTED, id, places[0].node, MO_NONE, attempt, data_end(&data), "attempt %lld of %s on %zu node%s from %s, %s%lld", (long long)attempt, j->spec.recipe.name,
		n_places, n_places == 1 ? "" : "s", places[0].node, resume >= 0 ? "resuming from iteration " : "port ", (long long)(resume >= 0 ? resume : j->port));
}

/* The job waits because of files that nothing reads: once, when it begins to wait or they are others. */
static void tell_unread(struct turn *t, int64_t id)
{
	const struct job *j = job_find(&t->core->state, id);
	_cleanup_(mo_freep) char *names = checkpoint_unread_names(j);
	_cleanup_(mo_buf_done) struct mo_buf data = { 0 };

	if (!names || checkpoint_newest_at_most(j, INT64_MAX, false) != MO_NONE)
		return;
	data_str(&data, "dir", j->spec.recipe.checkpoint.dir);
	data_str(&data, "files", names);
	event_emit(t, EVENT_CHECKPOINT_UNREAD, id, NULL, MO_NONE, j->attempt > 0 ? j->attempt : MO_NONE, data_end(&data), "%s waits: %s cannot be read with checkpoint.dir %s, and is not passed over", j->spec.recipe.name, names,
		j->spec.recipe.checkpoint.dir);
}

static void want_scan(struct turn *t, int64_t id, const char *node)
{
	struct live *l = core_live(t->core, node);

	t->core->n_scanning -= l->n_scans;
	ids_add(&l->scans, &l->n_scans, id);
	t->core->n_scanning += l->n_scans;
	wake_node(t->core, node);
}

/* Places fit: the job starts, looks for its checkpoints, or waits for a person. Takes its slots unless it waits for a person. */
static bool start_or_scan(struct turn *t, int64_t id, struct slots *slots, struct place *places, size_t n_places)
{
	const struct job *j = job_find(&t->core->state, id);
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(mo_freep) char *reason = NULL;
	bool emitted;
	int64_t resume;
	int result;

	if (j->spec.recipe.checkpoint.dir && !scan_fresh(j, t->now)) {
		slots_take(slots, &t->core->state, places, n_places);
		want_scan(t, id, places[0].node);
		if (j->scan_attempt == job_next_attempt(j))
			return false;      /* looked before: the reason found then stays */
		reason = mo_printf("looks for checkpoints in %s from node %s", j->spec.recipe.checkpoint.dir, places[0].node);
		return set_reason(t, j, reason);
	}
	if (j->n_check_nodes) {
		slots_take(slots, &t->core->state, places, n_places);
		t->core->n_checking++;
		reason = mo_printf("waits for the checks of its nodes after the failure: %s%s", j->check_nodes[0], j->n_check_nodes > 1 ? " and others" : "");
		return set_reason(t, j, reason);
	}
	result = checkpoint_choose(j, &resume, &err);
	if (result == 0) {
		slots_take(slots, &t->core->state, places, n_places);
		place_job(t, id, places, n_places, resume);
		return true;
	}
	if (result == 2) {
		job_move(t, id, T_GIVE_UP, false, 0, err.text);
		return true;
	}
	turn_deadline(t, j->scan_at + SCAN_FRESH_US + 1);
	emitted = set_reason(t, j, err.text);
	if (emitted)
		tell_unread(t, id);
	return emitted;
}

static const struct job *dir_holder(const struct core *c, const struct job *j)
{
	for (size_t i = 0; j->checkpoint_dir && i < c->n_unfinished; i++) {
		const struct job *k = job_find(&c->state, c->unfinished[i]);

		if (checkpoint_dir_held(k, j))
			return k;
	}
	return NULL;
}

static bool look_at(struct turn *t, int64_t id, struct slots *slots)
{
	struct core *c = t->core;
	const struct job *j = job_find(&c->state, id), *holder;
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(mo_freep) char *held = NULL;
	struct place *places = NULL;
	size_t n_places = 0;
	int64_t until = 0;
	bool emitted;

	if (t->now < j->not_before) {
		turn_deadline(t, j->not_before);
		return false;
	}
	held = incarnation_holds(&c->state, j, t->now, &until);
	if (held) {
		if (until > t->now)
			turn_deadline(t, until);
		return set_reason(t, j, held);
	}
	if (c->blocked)
		return set_reason(t, j, "waits behind jobs of the same or a higher priority");
	holder = dir_holder(c, j);
	if (holder) {
		held = mo_printf("checkpoint.dir is in use by j-%lld; waits", (long long)holder->id);
		return set_reason(t, j, held);
	}
	if (place_in(&c->state, slots, &j->spec.recipe, &places, &n_places, &err) != 0) {
		c->blocked = place_room(&c->state, slots, &j->spec.recipe, true) >= job_gpus(j);
		c->blocked_id = id;
		c->blocked_priority = j->state == JOB_RECOVERING ? INT64_MAX : j->spec.recipe.priority;
		return set_reason(t, j, err.text);
	}
	place_processes(&j->spec.engine, places, n_places);
	emitted = start_or_scan(t, id, slots, places, n_places);
	mo_vec_clear(&place_desc, (void **)&places, &n_places);
	return emitted;
}

/* Only submits since the last look, behind everything that was looked at: nothing else can have changed. */
static bool only_fresh(const struct core *c)
{
	if (c->n_scanning || c->n_checking)
		return false;              /* slots are set aside for a job that looks for its checkpoints or waits for checks */
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
	struct slots slots;

	for (size_t i = 0; i < n_ids; i++) {
		const struct job *j = job_find(&c->state, all ? c->unfinished[i] : c->fresh[i]);

		if (waiting(j))
			queue[n++] = (struct candidate){ .id = j->id, .priority = j->spec.recipe.priority, .recovering = j->state == JOB_RECOVERING };
	}
	c->n_fresh = 0;
	c->queue_dirty = false;
	for (size_t i = 0; all && c->n_scanning > 0 && i < c->state.n_nodes; i++) {
		c->n_scanning -= c->lives[i].n_scans;
		c->lives[i].n_scans = 0;
	}
	c->blocked = c->blocked && !all;
	c->n_checking = all ? 0 : c->n_checking;
	if (n == 0)
		return false;
	qsort(queue, n, sizeof(*queue), queue_order);
	slots_init(&c->state, &slots);
	for (size_t i = 0; i < n; i++)
		emitted |= look_at(t, queue[i].id, &slots);
	slots_done(&slots);
	return emitted;
}
