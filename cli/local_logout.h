/* What a logout does to a local cluster. */
#pragma once
#include <stdbool.h>

/* Why a logout would end a cluster that is started now; NULL = it goes on. */
const char *local_logout_note(void);
/* The same of the text of /proc/self/cgroup; kills: logind ends the user's sessions. */
const char *logout_note(const char *cgroup, bool lingers, bool kills);
