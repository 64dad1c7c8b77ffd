/* What follows from the word of agents about their nodes' health; see cordon.c. */
#pragma once
#include "daemon/core/state/state.h"

struct core;
struct live;
struct turn;

void health_reported(struct turn *t, const char *node, const struct node_health *h);
void health_more(struct turn *t, const char *node);
void health_cordon(struct turn *t, const char *node);
/* Room below the cap, for those that found none before. health_cordon_more(): as far as any is
 * known to have found none. */
void health_cordon_all(struct turn *t);
void health_cordon_more(struct turn *t);
/* One more event about its health; counts as one. */
bool may_tell_health(struct turn *t, struct live *l);

/* The wait of a failed job for the checks of its nodes. thorough: GPUs may have computed wrong, on
 * node `doubted`, or, NULL, on any. */
void health_check_begin(struct turn *t, int64_t id, bool thorough, const char *doubted);
/* True when the wait is over now. */
bool health_check_act(struct turn *t, int64_t id);
bool health_check_due(const struct core *c, const struct job *j, const char *node);
/* CRIT findings of the attempt's nodes. */
void health_evidence(const struct state *s, const struct job *j, char ***texts, size_t *n_texts);

/* One more node may be cordoned without a person: of those with hardware that is proved broken, or
 * of the others. */
bool cordon_room(const struct core *c, bool hardware);
/* The same, counted anew, for who has no core. */
bool cordon_room_in(const struct state *s, bool hardware);
/* Changes of findings that were not reported as events since the start. */
int64_t core_health_muted(const struct core *c);
/* Nodes that are drained because of a finding. */
int64_t core_cordoned(const struct core *c);
