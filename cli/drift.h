/* Plan against actual of a job, for `status`. */
#pragma once
#include "cli/client.h"

/* Prints one or two lines when the job has made DRIFT_STEPS steps and its recipe has a model and a GPU; nothing otherwise. */
void drift_print(struct cli *cli, const char *id);
/* The lines from the anchor document of the job (`report --anchor`); NULL when it says too little. Caller frees. */
char *drift_text(struct json_object *anchor, const char *id);
#define DRIFT_STEPS 50
