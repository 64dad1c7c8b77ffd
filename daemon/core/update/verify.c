/* Verification of a checkpoint after its save, by helpers on the job's nodes: what the engine
 * said is whole, is it? One at a time per job, the newest first. At level crc its files are read
 * in parts spread over the nodes, then put together on one; at other levels one scan is all.
 * Which node does what follows from the state: a node that is down passes its part on. An answer
 * that is no judgement (the helper failed, was late) leaves the checkpoint as it was announced:
 * it is judged before the next attempt. One that attempts died of is read once more, all of it, and
 * compared with the checksums of after its save, or those that its files carry themselves. Changes
 * are made by update.c's calls only. */
#include "daemon/core/update/verify.h"

#include <string.h>

#include "daemon/core/state/checkpoint.h"
#include "daemon/core/update/doubt.h"
#include "daemon/core/update/edit.h"
#include "lib/base/assert.h"
#include "lib/base/utf8.h"
#include "lib/model/limits.h"

/* bounds what one save costs the storage: parts x the agents' verify_bandwidth */
#define PARTS_MAX 16
/* ids of one verification: its parts and the one that joins them */
#define ORDERS 32

int64_t verify_id(const struct job *j, int64_t part)
{
	mo_assert(part >= 0 && part < ORDERS);
	return j->verify.serial * ORDERS + part;
}

/* It was announced by this attempt, and nobody tried yet. */
static bool wanted(const struct job *j, const struct checkpoint *c)
{
	return c->state == CKPT_COMPLETE && c->attempt == j->attempt && c->verified_at == MO_NONE &&
	       !c->reason;
}

static void begin(struct job *j, int64_t iteration, bool in_parts)
{
	j->verify.iteration = iteration;
	j->verify.serial++;
	j->verify.parts = in_parts ? MO_MIN((int64_t)j->run.n_places, PARTS_MAX) : 1;
	j->verify.done = 0;
}

void verify_begin(struct job *j)
{
	if (j->spec.engine.layout.unnumbered)
		/* whoever announced it has read it; now it may be written over */
		return;
	if (j->verify.iteration != MO_NONE || j->run.n_places == 0 || j->failure.decided ||
	    !j->saves.dir)
		return;
	if (j->saves.doubt) {
		begin(j, j->saves.doubt_at, false);
		return;
	}
	for (size_t i = j->n_checkpoints; i > 0; i--)
		if (wanted(j, &j->checkpoints[i - 1])) {
			begin(j, j->checkpoints[i - 1].iteration,
			      mo_streq(j->spec.recipe.checkpoint.verify, "crc"));
			return;
		}
	for (size_t i = j->n_checkpoints; i > 0; i--)
		if (checkpoint_compares(&j->checkpoints[i - 1])) {
			begin(j, j->checkpoints[i - 1].iteration, true);
			return;
		}
	mo_assert(j->verify.iteration == MO_NONE); /* nothing is wanted */
}

void verify_end(struct job *j)
{
	j->verify.iteration = MO_NONE;
}

/* Whether this part is still to be done now; part verify_parts joins them, when there are
 * several and all are done. */
static bool open_part(const struct job *j, int64_t part)
{
	int64_t all = (1LL << j->verify.parts) - 1;

	mo_assert(j->verify.parts > 0 && j->verify.parts <= PARTS_MAX);
	if (part == j->verify.parts)
		return j->verify.parts > 1 && j->verify.done == all;
	return !(j->verify.done >> part & 1);
}

static const char *part_node(const struct state *s, const struct job *j, int64_t part)
{
	size_t first = (size_t)(part % j->verify.parts) * j->run.n_places / (size_t)j->verify.parts;

	mo_assert(first < j->run.n_places);
	for (size_t i = 0; i < j->run.n_places; i++) {
		const struct node *n =
			node_find(s, j->run.places[(first + i) % j->run.n_places].node);

		if (n && n->state == NODE_UP)
			return n->name;
	}
	return NULL;
}

const char *verify_node(const struct state *s, const struct job *j, int64_t part)
{
	return j->verify.iteration != MO_NONE && part <= j->verify.parts && open_part(j, part)
		       ? part_node(s, j, part)
		       : NULL;
}

int64_t verify_next(const struct state *s, const struct job *j, const char *node, int64_t part)
{
	for (; j->verify.iteration != MO_NONE && part <= j->verify.parts; part++)
		if (open_part(j, part) && mo_streq(part_node(s, j, part), node))
			return part;
	return -1;
}

void verify_command(const struct job *j, int64_t part, struct command *ret)
{
	const struct checkpoint *c = checkpoint_find(j, j->verify.iteration);

	mo_assert(j->verify.iteration != MO_NONE && part >= 0 && part <= j->verify.parts);
	const char *level = j->spec.recipe.checkpoint.verify;

	/* Whether it lies in checkpoint.dir is asked first, and a job that has ended waits for
	 * it: no data is read. */
	mo_str_set(&ret->level, j->saves.doubt ? "marker" : level ? level : "sizes");
	ret->only = j->verify.iteration;
	ret->doubt = mo_strdup(j->saves.doubt);
	ret->path = mo_strdup(c && !j->saves.doubt ? c->path : NULL);
	ret->announced = true;
	ret->part = part;
	ret->parts = j->verify.parts;
	if (c && !j->saves.doubt && checkpoint_compares(c)) {
		struct found_checkpoint *f = MO_ADD(ret, known, &found_checkpoint_desc);

		/* an agent of before compares the manifest alone, and says no level */
		f->iteration = c->iteration;
		f->manifest = mo_strdup(c->manifest);
		f->level = mo_strdup(mo_streq(c->level, "crc") ? "crc" : "read");
	}
}

bool verify_awaits(const struct job *j, const struct scan_result *r)
{
	for (int64_t part = 0; j->verify.iteration != MO_NONE && part <= j->verify.parts; part++)
		if (r->order == ORDER_VERIFY && r->id == verify_id(j, part) && open_part(j, part))
			return true;
	return false;
}

static void failed(struct checkpoint *c, const char *why)
{
	free(c->reason);
	c->reason = mo_printf("not verified: %.*s", mo_utf8_shown(why, 300), why);
}

static void judged(struct checkpoint *c, const struct found_checkpoint *f, int64_t time)
{
	if (!f || !f->complete) {
		c->state = CKPT_TORN;
		mo_str_set(&c->reason, !f          ? "not found in checkpoint.dir"
				       : f->reason ? f->reason
						   : "incomplete");
		return;
	}
	c->state = CKPT_VERIFIED;
	c->verified_at = time;
	c->bytes = f->bytes;
	if (f->saved_at != MO_NONE)
		c->saved_at = c->seen_at = f->saved_at;
	mo_str_set(&c->path, f->path ? f->path : c->path);
	mo_str_set(&c->level, f->level);
	mo_str_set(&c->manifest, f->manifest);
	mo_str_set(&c->fixed, f->fixed);
}

/* What attempts died of that loaded it: its content, or not? */
static void was_compared(struct checkpoint *c, const struct scan_result *r,
			 const struct found_checkpoint *f)
{
	_cleanup_(mo_freep) char *before = c->reason;
	const char *why = r->error         ? r->error
			  : f && f->reason ? f->reason
					   : "its agent is of before";

	c->reason = NULL;
	c->compared = true;
	if (!r->error && (!f || !f->complete)) {
		/* what is gone or has other names, sizes and times each scan sees, also when
		 * somebody brought it back */
		c->compared = f && (!f->manifest || mo_streq(f->manifest, c->manifest));
		c->state = CKPT_TORN;
		mo_str_set(&c->reason, f && f->reason ? f->reason : "not found in checkpoint.dir");
	} else if (f && f->complete && mo_streq(f->level, "crc")) {
		c->reason = mo_printf("%s; its content is as it was verified (CRC32C)",
				      before ? before : "suspected");
	} else if (f && f->complete && mo_streq(f->level, "read")) {
		c->reason = mo_printf("%s; %.*s", before ? before : "suspected",
				      mo_utf8_shown(why, 300), why);
	} else {
		c->reason = mo_printf("%s; its content was not compared: %.*s",
				      before ? before : "suspected", mo_utf8_shown(why, 300), why);
	}
}

void verify_result(struct job *j, const struct scan_result *r, int64_t time)
{
	struct checkpoint *c = checkpoint_edit(j, j->verify.iteration);
	const struct found_checkpoint *f = r->n_items ? &r->items[0] : NULL;
	int64_t part = 0;

	if (!verify_awaits(j, r))
		return;
	if (j->saves.doubt) {
		verify_end(j);
		doubt_answer(j, r, time);
		verify_begin(j);
		return;
	}
	mo_assert(j->verify.parts <= PARTS_MAX);
	while (r->id != verify_id(j, part))
		part++;
	if (c && (c->state == CKPT_COMPLETE || (checkpoint_compares(c) && f && f->level)) &&
	    !r->error && f && f->complete && part < j->verify.parts && j->verify.parts > 1) {
		j->verify.done |= 1LL << part;
		return;
	}
	if (c && checkpoint_compares(c))
		was_compared(c, r, f);
	else if (c && c->state == CKPT_COMPLETE && r->error)
		failed(c, r->error);
	else if (c && c->state == CKPT_COMPLETE)
		judged(c, f, time);
	verify_end(j);
	verify_begin(j);
}
