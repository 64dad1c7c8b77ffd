/* See waiting.h. */
#include "daemon/core/state/waiting.h"

#include "lib/base/assert.h"
#include "lib/base/parse.h"

const char *const waiting_code_names[_WAITING_N] = {
	[WAITING_NOT] = "queue",
	[WAITING_GRACE] = "grace",
	[WAITING_PAUSE] = "pause",
	[WAITING_RESTORED] = "restored",
	[WAITING_UNHEARD] = "nodes-unheard",
	[WAITING_BEHIND] = "behind",
	[WAITING_DIRECTORY] = "checkpoint-in-use",
	[WAITING_TOO_LARGE] = "too-large",
	[WAITING_STACK] = "stack-differs",
	[WAITING_IMAGES] = "no-images",
	[WAITING_NODES] = "nodes-away",
	[WAITING_CAPACITY] = "capacity",
	[WAITING_IMAGE] = "image",
	[WAITING_SCAN] = "checkpoint-scan",
	[WAITING_CHECKS] = "health-checks",
	[WAITING_UNREAD] = "checkpoint-unread",
	[WAITING_CHECKPOINT] = "checkpoint",
	[WAITING_SILENT] = "node-silent",
	[WAITING_NOT_GONE] = "not-gone",
};

const struct waiting_kind waiting_kinds[] = {
	[WAITING_NOT] = { "it is about to be placed", "it starts when the reasons above are gone" },
	[WAITING_GRACE] = { "not before TIME (recovery.grace)",
			    "the next attempt starts by itself then" },
	[WAITING_PAUSE] = { "next attempt in 14 s: what happened, and how often in a row",
			    "the next attempt starts by itself then; 'moectl restart' does not "
			    "wait, recovery.backoff is the longest pause" },
	[WAITING_RESTORED] = { "the state was restored from a backup and NODE was not heard since "
			       "...",
			       "it starts when each node of the backup was heard, or is fenced "
			       "('moectl fence NODE --confirmed'), and no step runs that is not "
			       "known ('moectl doctor', 'moectl resolve')" },
	[WAITING_UNHEARD] = { "the controller has just started: 3 nodes that were up are not heard "
			      "yet",
			      "it starts when they are heard; one that is silent for as long as "
			      "makes it suspect is not waited for" },
	[WAITING_BEHIND] = { "behind j-2, which needs 64 GPUs, 16 are free",
			     "it starts when the job ahead has its GPUs, or is gone; one with a "
			     "higher priority goes first" },
	[WAITING_DIRECTORY] = { "checkpoint.dir is held by j-3",
				"it starts when that job has ended ('moectl cancel' ends it), and "
				"goes on from what lies there" },
	[WAITING_TOO_LARGE] = { "needs 64 GPUs; the cluster has 32",
				"it starts when more nodes join; a smaller cluster.gpus in a new "
				"submit needs none" },
	[WAITING_STACK] = { "needs 64 GPUs on nodes with the same software (stack.same); only 32 "
			    "of 64 are, on nodes that take work now",
			    "it starts when more nodes have the same software, which 'moectl why' "
			    "compares; without stack.same in health.preflight it takes any" },
	[WAITING_IMAGES] = { "needs 64 GPUs on nodes that can run an image (engine.container); "
			     "only 32 of 64 are, on nodes that take work now",
			     "it starts when more nodes can: their agents must be of this version "
			     "and run as root; 'moectl why' names those that cannot" },
	[WAITING_NODES] = { "needs 64 GPUs; only 56 of 64 are on nodes that take work now",
			    "it starts when enough of the nodes that 'moectl why' names take work "
			    "again" },
	[WAITING_CAPACITY] = { "waits for 64 GPUs, 16 are free",
			       "it starts when so many are free at once; no job behind it goes "
			       "before" },
	[WAITING_IMAGE] = { "image 12.4 of 31.0 GB on NODE, 3 more nodes need it",
			    "it starts when all of its nodes have the image; one that cannot be "
			    "had is said with the line of the node" },
	[WAITING_SCAN] = { "looks for checkpoints in DIR from node NODE",
			   "it starts when the node has answered" },
	[WAITING_CHECKS] = { "waits for on-failure checks of NODE",
			     "the next attempt starts by itself, without what they find broken" },
	[WAITING_UNREAD] = { "DIR holds what looks like a model's state, and engine E cannot read "
			     "it ...",
			     "one of the three ways that 'moectl why' names" },
	[WAITING_CHECKPOINT] = { "every checkpoint in DIR is damaged ..., checkpoint.dir DIR: ...",
				 "mend what it names: checkpoint.dir is looked at again every 30 "
				 "s; or 'moectl restart JOB --from 0' starts afresh" },
	[WAITING_SILENT] = { "node NODE is silent and no iteration advances: waiting for its agent "
			     "...",
			     "it runs on when the node's agent is back; after a power-off say "
			     "'moectl fence NODE --confirmed'" },
	[WAITING_NOT_GONE] = { "waits for proof that every rank is dead: attempt 2 on NODE: being "
			       "ended",
			       "it goes on when every rank is proved gone; after a power-off say "
			       "'moectl fence NODE --confirmed'" },
};
static_assert(ELEMENTSOF(waiting_kinds) == _WAITING_N, "a row per code");

static const struct mo_field waiting_fields[] = {
	MO_D_ENUM(waiting, code, waiting_code_names, "what it waits for"),
	MO_D(waiting, text, MO_STR, "the same in words"),
	MO_D_ID(waiting, job, job_prefix, "the job that is ahead, or has what it needs",
		.omit = true),
	MO_D(waiting, attempt, MO_INT, "attempt whose end is awaited", .omit = true),
	MO_D(waiting, needs, MO_INT, "GPUs that it needs", .omit = true),
	MO_D(waiting, free, MO_INT, "GPUs that are free for it", .omit = true),
	MO_D(waiting, spares, MO_INT, "GPUs on nodes that are kept as spares of other jobs",
	     .omit = true),
	MO_D(waiting, usable, MO_INT, "GPUs on nodes that take work", .omit = true),
	MO_D(waiting, total, MO_INT, "GPUs of the cluster that it could have", .omit = true),
	MO_D(waiting, until, MO_TIME, "when the wait ends", .omit = true),
	MO_D(waiting, left, MO_INT, "seconds until then", .omit = true),
	MO_D(waiting, node, MO_STR, "first of the nodes that it waits for", .omit = true),
	MO_D(waiting, nodes, MO_INT, "how many nodes it waits for", .omit = true),
	MO_D(waiting, gpu, MO_STR, "GPU model that it asks for", .omit = true),
	MO_D(waiting, dir, MO_STR, "its checkpoint.dir", .omit = true),
	MO_D(waiting, image, MO_STR, "image that is brought to its nodes", .omit = true),
	MO_D(waiting, done, MO_INT, "bytes of it that the node has, or has unpacked", .omit = true),
	MO_D(waiting, size, MO_INT, "bytes of all of it", .omit = true),
	MO_D(waiting, unpacking, MO_BOOL, "it is being unpacked there", .omit = true),
	MO_D(waiting, error, MO_STR, "why the node does not have it yet", .omit = true),
};
const struct mo_desc waiting_desc = MO_DESC(waiting, waiting_fields);

struct waiting waiting_make(int code)
{
	mo_assert(code >= 0 && code < _WAITING_N);
	return (struct waiting){ .code = code,
				 .job = MO_NONE,
				 .attempt = MO_NONE,
				 .needs = MO_NONE,
				 .free = MO_NONE,
				 .usable = MO_NONE,
				 .total = MO_NONE,
				 .until = MO_NONE,
				 .left = MO_NONE,
				 .nodes = MO_NONE,
				 .spares = MO_NONE,
				 .done = MO_NONE,
				 .size = MO_NONE };
}

void waiting_done(struct waiting *w)
{
	free(w->text);
	free(w->node);
	free(w->gpu);
	free(w->dir);
	free(w->image);
	free(w->error);
	*w = waiting_make(WAITING_NOT);
}

static struct waiting copy_of(const struct waiting *w)
{
	struct waiting copy = *w;

	copy.text = mo_strdup(w->text);
	copy.node = mo_strdup(w->node);
	copy.gpu = mo_strdup(w->gpu);
	copy.dir = mo_strdup(w->dir);
	copy.image = mo_strdup(w->image);
	copy.error = mo_strdup(w->error);
	return copy;
}

/* ---- in words ---- */

static const char *plural(int64_t n)
{
	return n == 1 ? "" : "s";
}

static const char *are(int64_t n)
{
	return n == 1 ? "is" : "are";
}

static char *capacity_text(const struct waiting *w)
{
	_cleanup_(mo_freep) char *kept =
		w->spares != MO_NONE ? mo_printf(", %lld %s kept as spares of other jobs",
						 (long long)w->spares, are(w->spares))
				     : NULL;

	return mo_printf("waits for %lld GPU%s, %lld %s free%s", (long long)w->needs,
			 plural(w->needs), (long long)w->free, are(w->free), kept ? kept : "");
}

static char *too_large_text(const struct waiting *w)
{
	return mo_printf("%sneeds %lld GPUs%s%s; the cluster has %lld%s",
			 w->total == 0 && w->nodes > 0 ? "no node of the cluster would ever do: "
						       : "",
			 (long long)w->needs, w->gpu ? " of type " : "", w->gpu ? w->gpu : "",
			 (long long)w->total,
			 w->among      ? " in cluster.nodes"
			 : w->excludes ? " outside cluster.exclude"
				       : "");
}

static char *nodes_text(const struct waiting *w)
{
	const char *on = w->code == WAITING_STACK    ? "with the same software (stack.same)"
			 : w->code == WAITING_IMAGES ? "that can run an image (engine.container)"
						     : NULL;

	if (on)
		return mo_printf("needs %lld GPUs on nodes %s; only %lld of %lld are, on nodes "
				 "that take work now",
				 (long long)w->needs, on, (long long)w->usable,
				 (long long)w->total);
	return mo_printf("needs %lld GPUs; only %lld of %lld are on nodes that take work now",
			 (long long)w->needs, (long long)w->usable, (long long)w->total);
}

static char *and_more(const struct waiting *w)
{
	return w->nodes > 1 ? mo_printf(" and %lld more", (long long)w->nodes - 1) : mo_strdup("");
}

static char *checks_text(const struct waiting *w)
{
	_cleanup_(mo_freep) char *more = and_more(w);

	return mo_printf("waits for on-failure checks of %s%s", w->node, more);
}

static double gigabytes(int64_t bytes)
{
	return (double)bytes / 1e9;
}

static char *image_text(const struct waiting *w)
{
	_cleanup_(mo_freep) char *more =
		w->nodes > 1 ? mo_printf(", %lld more node%s need it", (long long)w->nodes - 1,
					 plural(w->nodes - 1))
			     : mo_strdup("");

	if (w->error)
		return mo_printf("image %s on %s: %s%s", w->image, w->node, w->error, more);
	if (w->size == MO_NONE || w->done == MO_NONE)
		return mo_printf("image %s on %s%s", w->image, w->node, more);
	return mo_printf("image %s%.1f of %.1f GB on %s%s", w->unpacking ? "unpacked " : "",
			 gigabytes(w->done), gigabytes(w->size), w->node, more);
}

static char *not_gone_text(const struct waiting *w)
{
	_cleanup_(mo_freep) char *more = and_more(w);

	return mo_printf("waits for proof that every rank is dead: attempt %lld on %s: %s%s%s",
			 (long long)w->attempt, w->node, w->how, *more ? ";" : "", more);
}

char *waiting_text(const struct waiting *w)
{
	char time[32];

	switch (w->code) {
	case WAITING_GRACE:
		return mo_printf("not before %s (recovery.grace)", mo_time_format(w->until, time));
	case WAITING_PAUSE:
		return mo_printf("next attempt in %lld s", (long long)MO_MAX(w->left, 0));
	case WAITING_UNHEARD:
		return mo_printf("the controller has just started: %lld node%s that %s up %s not "
				 "heard yet",
				 (long long)w->nodes, plural(w->nodes),
				 w->nodes == 1 ? "was" : "were", are(w->nodes));
	case WAITING_BEHIND:
		return mo_printf("behind j-%lld, which needs %lld GPU%s, %lld %s free",
				 (long long)w->job, (long long)w->needs, plural(w->needs),
				 (long long)w->free, are(w->free));
	case WAITING_DIRECTORY:
		return mo_printf("checkpoint.dir is held by j-%lld", (long long)w->job);
	case WAITING_TOO_LARGE: return too_large_text(w);
	case WAITING_STACK:
	case WAITING_IMAGES:
	case WAITING_NODES: return nodes_text(w);
	case WAITING_CAPACITY: return capacity_text(w);
	case WAITING_SCAN:
		return mo_printf("looks for checkpoints in %s from node %s", w->dir, w->node);
	case WAITING_IMAGE: return image_text(w);
	case WAITING_CHECKS: return checks_text(w);
	case WAITING_SILENT:
		return mo_printf("node %s is silent and no iteration advances: waiting for its "
				 "agent, a new boot, or 'moectl fence %s --confirmed'",
				 w->node, w->node);
	case WAITING_NOT_GONE: return not_gone_text(w);
	default: return mo_strdup(w->text ? w->text : waiting_kinds[w->code].sentence);
	}
}

char *waiting_recorded(const struct waiting *w)
{
	switch (w->code) {
	case WAITING_GRACE:
	case WAITING_PAUSE:
	case WAITING_UNHEARD: return NULL;
	case WAITING_BEHIND: return mo_strdup("waits behind a job ahead of it in the queue");
	case WAITING_CAPACITY:
		return mo_printf("waits for %lld free GPU%s", (long long)w->needs,
				 plural(w->needs));
	case WAITING_IMAGE: return mo_printf("waits for the image %s", w->image);
	case WAITING_CHECKS:
		return mo_printf("waits for on-failure checks of %s%s", w->node,
				 w->nodes > 1 ? " and others" : "");
	default: return waiting_text(w);
	}
}

char *waiting_reason(const struct waiting *w, const struct job *j)
{
	_cleanup_(mo_freep) char *text = NULL;

	if (j->reason && w->code == WAITING_NOT_GONE)
		return mo_strdup(j->reason);
	text = waiting_text(w);
	if (j->reason && w->code == WAITING_GRACE)
		return mo_printf("%s, %s", j->reason, text);
	if (j->reason && w->code == WAITING_PAUSE)
		return mo_printf("%s: %s", text, j->reason);
	return TAKE_PTR(text);
}

/* ---- for what ---- */

const char *step_not_dead(const struct node *n, const struct step *st)
{
	if (st->hung)
		return "its supervisor does not answer";
	if (n && n->state != NODE_UP)
		return "the node is silent";
	return st->accepted ? "being ended" : "the launch was not acknowledged";
}

static bool not_gone(const struct state *s, const struct job *j, struct waiting *ret)
{
	*ret = waiting_make(WAITING_NOT_GONE);
	ret->nodes = 0;
	for (size_t i = 0; i < j->n_steps; i++) {
		const struct step *st = &j->steps[i];

		if (step_dead(st) || ret->nodes++ > 0)
			continue;
		ret->node = mo_strdup(st->node);
		ret->attempt = st->attempt;
		ret->how = step_not_dead(node_find(s, st->node), st);
	}
	return ret->nodes > 0;
}

static bool silent(const struct state *s, const struct job *j, struct waiting *ret)
{
	*ret = waiting_make(WAITING_SILENT);
	ret->nodes = 0;
	for (size_t i = 0; i < j->n_steps; i++) {
		const struct step *st = &j->steps[i];
		const struct node *n = step_dead(st) ? NULL : node_find(s, st->node);

		if (st->attempt == j->attempt && n && n->state == NODE_DOWN && ret->nodes++ == 0)
			ret->node = mo_strdup(n->name);
	}
	return ret->nodes > 0;
}

bool waiting_of(const struct state *s, const struct job *j, int64_t now, struct waiting *ret)
{
	const struct waiting *found;

	*ret = waiting_make(WAITING_NOT);
	switch (j->state) {
	case JOB_STOPPING: return not_gone(s, j, ret);
	case JOB_QUEUED:
	case JOB_RECOVERING: break;
	default: return false;
	}
	if (j->failure.waiting_node && !j->failure.decided && j->run.n_places > 0)
		return silent(s, j, ret);
	if (j->failure.decided || j->run.n_places == 0)
		if (not_gone(s, j, ret))
			return true;
	*ret = waiting_make(WAITING_NOT);
	found = j->run.n_places == 0 && s->queue ? queue_find(s->queue, j->id) : NULL;
	if (!found || found->code == WAITING_NOT ||
	    ((found->code == WAITING_GRACE || found->code == WAITING_PAUSE) && now >= found->until))
		return false;
	*ret = copy_of(found);
	if (ret->until != MO_NONE)
		ret->left = (ret->until - now + 999999) / 1000000;
	return true;
}

/* ---- what the last pass found ---- */

void queue_clear(struct queue *q)
{
	for (size_t i = 0; i < q->n_items; i++)
		waiting_done(&q->items[i]);
	free(q->items);
	*q = (struct queue){ 0 };
}

size_t queue_add(struct queue *q, int64_t id)
{
	struct waiting *w = MO_GROW(q->items, q->n_items);

	*w = waiting_make(WAITING_NOT);
	w->waiter = id;
	assert(q->n_items == 1 || w[-1].waiter < id);
	return q->n_items - 1;
}

void queue_set(struct queue *q, size_t at, struct waiting *w)
{
	int64_t id = q->items[at].waiter;

	assert(at < q->n_items && q->items[at].waiter != MO_NONE);
	waiting_done(&q->items[at]);
	q->items[at] = *w;
	q->items[at].waiter = id;
	*w = waiting_make(WAITING_NOT);
}

struct waiting *queue_edit(struct queue *q, int64_t id)
{
	return (struct waiting *)(uintptr_t)queue_find(q, id);
}

const struct waiting *queue_find(const struct queue *q, int64_t id)
{
	size_t low = 0, high = q->n_items;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (q->items[mid].waiter < id)
			low = mid + 1;
		else
			high = mid;
	}
	return low < q->n_items && q->items[low].waiter == id ? &q->items[low] : NULL;
}
