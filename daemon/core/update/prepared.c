/* engine.prepare: how long it took on each node of the newest attempt, as its supervisor
 * measured it (note.prepare_ms), and what it cost in all: a part of the ledger's `launch`.
 * Called by update_notes.c; shown by view/prepare.c. */
#include "daemon/core/update/prepared.h"

#define US_MAX (1LL << 60)
#define NODES_RETAINED 256 /* the slowest ones: of thousands that work alike nobody reads all */

static int64_t gpus_of(const struct job *j, const char *node)
{
	for (size_t i = 0; i < j->run.n_places; i++)
		if (mo_streq(j->run.places[i].node, node))
			return (int64_t)j->run.places[i].n_gpus;
	return 0;
}

/* Where it goes: behind those that took longer. */
static size_t rank_by_time(const struct job *j, int64_t ms)
{
	size_t at = j->run.n_prepared;

	while (at > 0 && j->run.prepared[at - 1].ms < ms)
		at--;
	return at;
}

void prepared_add(struct job *j, struct step *st, const struct note *n)
{
	size_t at;

	if (n->prepare_ms == MO_NONE || n->prepare_ms < 0 || st->prepared)
		return; /* reported once: of many nodes not all are in the list */
	st->prepared = true;
	for (size_t i = 0; i < j->run.n_prepared; i++)
		if (mo_streq(j->run.prepared[i].node, st->node))
			return; /* a record of before says so alone */
	if (j->prepare_us < US_MAX)
		j->prepare_us =
			MO_MAX(j->prepare_us, 0) + n->prepare_ms * 1000 * gpus_of(j, st->node);
	at = rank_by_time(j, n->prepare_ms);
	if (at >= NODES_RETAINED)
		return;
	MO_ADD(&j->run, prepared, &prepared_desc);
	for (size_t i = j->run.n_prepared - 1; i > at; i--)
		j->run.prepared[i] = j->run.prepared[i - 1];
	j->run.prepared[at] = (struct prepared){ mo_strdup(st->node), n->prepare_ms };
	if (j->run.n_prepared > NODES_RETAINED)
		mo_vec_remove(&prepared_desc, j->run.prepared, &j->run.n_prepared, NODES_RETAINED);
}
