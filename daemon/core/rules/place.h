/* Which GPU slots a job would get of the nodes that take work. Pure: state in, places out.
 * Called by schedule.c, whose slots shrink as it goes through the queue, and by views and dry
 * runs, which ask for one job alone. Nothing is taken here: a job has its GPUs by the record of
 * its placement. */
#pragma once
#include "daemon/core/state/slots.h"
#include "daemon/core/state/waiting.h"
#include "lib/base/error.h"

struct core;

/* 0, or 1 when they do not fit now; then *ret_why, unless it is NULL, is made anew and the
 * caller's. */
int place_in(const struct state *s, const struct slots *slots, const struct recipe *r,
	     struct place **ret, size_t *n_ret, struct waiting *ret_why);
/* The same with all slots of the given nodes that are free now; the reason in err. */
int place_find(const struct state *s, const struct recipe *r, struct place **ret, size_t *n_ret,
	       struct mo_error *err);
/* Ranks of places that were just found: as many as GPUs, or one per node. */
void place_processes(const struct engine *e, struct place *places, size_t n);
/* GPUs that would do; free ones of one node of state.nodes. */
size_t place_room_on(const struct state *s, const struct slots *slots, const struct recipe *r,
		     size_t node);
int64_t place_room(const struct state *s, const struct slots *slots, const struct recipe *r,
		   bool even_busy);
/* health.preflight: [stack.same]: what of the group of nodes that was taken differs on others;
 * caller frees; NULL = nothing, or not asked for. */
char *place_stack_note(const struct state *s, const struct slots *slots, const struct recipe *r);
/* Four ports in a row that no job has. */
int64_t port_next(const struct core *c);
/* GPUs of the whole cluster, busy or away, that would ever do for the recipe; *ret_largest: of
 * one node. */
int64_t place_suited(const struct state *s, const struct recipe *r, int64_t *ret_largest);
/* These are as many as it asks for; looks at no more nodes than give it those. */
bool place_suits(const struct state *s, const struct recipe *r);
