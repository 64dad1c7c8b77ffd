/* The description of the state, and finding things in it. Called by everyone; changes nothing. */
#include "daemon/core/state/state.h"

#include <string.h>

static const struct mo_field idem_fields[] = {
	MO_D(idem, caller, MO_STR, "who submitted"),
	MO_D(idem, key, MO_STR, "that the caller chose for the submit"),
	MO_D(idem, digest, MO_STR, "SHA-256 of the request's body, hex"),
	MO_D(idem, job, MO_INT, "number of the job that came of it"),
	MO_D(idem, time, MO_INT, "when it was submitted, us"),
};
const struct mo_desc idem_desc = MO_DESC(idem, idem_fields);

/* A snapshot is our own text: its lists may be as long as the limits of limits.h let them grow. */
static const struct mo_field state_fields[] = {
	MO_D(state, epoch, MO_INT,
	     "one more at each start of the controller; every command carries it"),
	MO_D(state, next_job, MO_INT, "number of the next job"),
	MO_D(state, next_port, MO_INT, "where the search for free ports goes on"),
	MO_D(state, next_event_seq, MO_INT, "number of the next event"),
	MO_D(state, time, MO_INT, "of the last record, us"),
	MO_D_APART(state, jobs, &job_desc, "in ascending order of their numbers",
		   .max = UINT32_MAX),
	MO_D_APART(state, nodes, &node_desc, "in ascending order of their names",
		   .max = UINT32_MAX),
	MO_D_VEC(state, events, &event_desc, "the newest, oldest first", .max = UINT32_MAX),
	MO_D_VEC(state, tokens, &token_desc, "of people, agents and nodes that want to join",
		 .max = UINT32_MAX),
	MO_D_VEC(state, idems, &idem_desc, "submits that a repeated key finds again",
		 .max = UINT32_MAX),
	MO_D_VEC(state, anchors, &anchor_desc, "measured runs that calibrate plans, oldest first",
		 .omit = true),
	MO_D_LIST(state, aside, MO_INTS,
		  "jobs taken out by moed --quarantine: nodes keep what they hold of them",
		  .omit = true, .max = UINT32_MAX),
	MO_D(state, clock_boot_id, MO_STR, "boot of the controller's machine that clock_boot is of",
	     .omit = true),
	MO_D(state, clock_time, MO_INT, "moed's time when the clocks were compared, us",
	     .omit = true),
	MO_D(state, clock_boot, MO_INT, "CLOCK_BOOTTIME at that moment, us", .omit = true),
	MO_D(state, clock_doubt, MO_INT,
	     "since when no time service vouches for the clock, us; MO_NONE: one does",
	     .omit = true),
	MO_D(state, clock_leapt, MO_INT,
	     "when moed's time was last set ahead by a day or more, us; MO_NONE: never",
	     .omit = true),
	MO_D(state, restored_jobs, MO_INT,
	     "jobs with lower numbers are of a backup; MO_NONE: never restored", .omit = true),
	MO_D(state, restored_wait, MO_INT,
	     "until when those get no attempt, us; MO_NONE: set at the next start", .omit = true),
	MO_D(state, born, MO_INT,
	     "start of the first incarnation, seconds since 2020; MO_NONE: the epoch tells it",
	     .omit = true),
};
const struct mo_desc state_desc = MO_DESC(state, state_fields);

bool job_at(const struct state *s, int64_t id, size_t *ret)
{
	size_t low = 0, high = s->n_jobs;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (s->jobs[mid]->id < id)
			low = mid + 1;
		else
			high = mid;
	}
	*ret = low;
	return low < s->n_jobs && s->jobs[low]->id == id;
}

const struct job *job_find(const struct state *s, int64_t id)
{
	size_t at;

	return job_at(s, id, &at) ? s->jobs[at] : NULL;
}

size_t state_n_holders(const struct state *s)
{
	return s->holders ? s->n_holders : s->n_jobs;
}

const struct job *state_holder(const struct state *s, size_t i)
{
	return s->holders ? job_find(s, s->holders[i]) : s->jobs[i];
}

static bool asked_again(const struct state *s, const char *name)
{
	return name && s->node_last && *s->node_last < s->n_nodes &&
	       strcmp(s->nodes[*s->node_last]->name, name) == 0;
}

bool node_at(const struct state *s, const char *name, size_t *ret)
{
	size_t low = 0, high = s->n_nodes;

	if (asked_again(s, name)) {
		*ret = *s->node_last;
		return true;
	}
	while (name && low < high) {
		size_t mid = low + (high - low) / 2;
		int order = strcmp(s->nodes[mid]->name, name);

		if (order == 0) {
			*ret = mid;
			if (s->node_last)
				*s->node_last = mid;
			return true;
		}
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	*ret = low;
	return false;
}

const struct node *node_find(const struct state *s, const char *name)
{
	size_t at;

	return node_at(s, name, &at) ? s->nodes[at] : NULL;
}
