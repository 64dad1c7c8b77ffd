/* The agent's world (tests/unit/seams/world.h). Messages to the controller lie there until the test
 * answers them; a supervisor is a few lines of the test's own, started by seam_on_start. */
#pragma once
#include "tests/unit/seams/world.h"

#include "lib/base/desc.h"

/* controller.c: what the agent sent and was not answered or given up; *ret_path: what for. 0: there
 * is nothing. */
uint64_t seam_message(const char **ret_path, const char **ret_json);
/* NULL body: nobody answers. The message is gone. */
void seam_answer(uint64_t id, int status, const struct mo_desc *desc, const void *body);
void seam_controller_done(void);

/* machine.c: the agent's helpers answer with this (moe-discover's output); NULL: never */
extern const char *seam_found;
/* a supervisor shall start in this step directory */
extern void (*seam_on_start)(const char *dir, int64_t job, int64_t attempt);
/* Helpers and supervisors that were started have answered by now. */
void seam_machine_answers(void);
void seam_machine_done(void);
