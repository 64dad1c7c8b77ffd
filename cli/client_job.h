/* The job that a person names; see client_job.c. */
#pragma once
#include "cli/client.h"

bool is_job_id(const char *word); /* "j-7" */
/* JOB argument -> "j-7": ids as they are; of a name the newest job. Caller frees *ret. */
int client_job(struct cli *cli, const char *word, char **ret);
/* The same of a word that is no file: where no job has the name either, both are said. */
int client_job_or_file(struct cli *cli, const char *word, char **ret);
/* The same for verbs that change the job: of a name its only unfinished job; an error when there
 * are several. */
int client_job_to_act_on(struct cli *cli, const char *word, char **ret);
/* JOB|NODE argument: *ret_job is NULL for a node. Caller frees it. */
int client_subject(struct cli *cli, const char *word, char **ret_job);
