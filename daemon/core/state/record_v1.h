/* Records of version 1, which a log may begin with: one flat struct for all types, whose fields
 * meant something else in each. Nothing here is written any more, and none of it is ever
 * changed: a store of 2026 is read with it. */
#pragma once
#include "daemon/core/state/record.h"

struct record_v1 {
	int64_t version;
	int type;
	int64_t time;
	int64_t job, attempt, rank, value, iteration;
	int state;
	bool flag;
	char *node, *text, *cause;
	char **texts;
	size_t n_texts;
	struct place *places;
	size_t n_places;
	struct note *notes;
	size_t n_notes;
	struct submit *submit;
	struct agent_hello *hello;
	struct scan_result *scan;
	struct incident *incident;
	struct checkpoint *checkpoint;
	struct token *token;
	struct event *event;
	struct node_health *health;
	struct measured *measured;
	struct config_read *config;
};
extern const struct mo_desc record_v1_desc;

/* Takes what old holds, which is then as after mo_desc_init(). *ret need not be initialised; it
 * is one of now, and not whole where old left out what its type needs. */
void record_from_v1(struct record_v1 *old, struct record *ret);
