/* The nodes that a check is to look at: only such as are free, so that it disturbs nobody. */
#pragma once
#include "cli/cli.h"
#include "lib/base/util.h"

struct fabric_nodes {
	char **names; /* ascending, each once */
	size_t n;
	int64_t gpus; /* of each */
	char *job;    /* id of the one whose nodes they are; NULL: of none */
};
void fabric_nodes_done(struct fabric_nodes *f);
/* "a,b,c" */
void fabric_nodes_add(struct fabric_nodes *f, const char *list);
/* Those on which the job ran last. 0 or an exit status (printed). */
int fabric_nodes_of_job(struct cli *cli, const char *job, struct fabric_nodes *f);
/* Sorts them, and asks whether each is there, free, and as large as the others. 0 or an exit
 * status (printed). */
int fabric_nodes_check(struct cli *cli, struct fabric_nodes *f);
