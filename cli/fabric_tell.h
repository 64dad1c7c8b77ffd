/* What a check found: its document, the same for people, and the words by which a node is
 * drained. */
#pragma once
#include <json-c/json.h>
#include "cli/fabric_run.h"
#include "lib/plan/fabric.h"

struct fabric_found {
	const struct fabric *fabric;
	char *const *nodes;
	const struct fabric_job *jobs; /* of its runs */
};
/* Caller frees. */
char *fabric_evidence(const struct fabric_found *f, size_t node);
struct json_object *fabric_document(const struct fabric_found *f);
void fabric_print(const struct cli *cli, const struct fabric_found *f, struct json_object *doc);
