/* What holds of each job after every turn (check.h). */
#pragma once

struct core;
struct job;

/* What is broken (the caller frees); NULL = everything holds. */
char *check_job(const struct core *c, const struct job *j);
/* The same of where the last turn placed it (state_check_placed()). */
char *check_job_placed(const struct core *c, const struct job *j);
