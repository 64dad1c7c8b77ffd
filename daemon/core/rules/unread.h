/* What looks like a model's state in checkpoint.dir and that nothing reads; see unread.c. Pure
 * questions about a job. Texts are the caller's to free. */
#pragma once
#include "daemon/core/state/state.h"

/* Whether this one forbids a fresh start. */
bool checkpoint_unread(const struct job *j, const struct unread_state *u);
char *checkpoint_unread_path(const struct unread_state *u);
/* The first of them by name and size; NULL = none. */
char *checkpoint_unread_names(const struct job *j);
/* Why the job waits, with the ways on; NULL: it does not. */
char *checkpoint_unread_text(const struct job *j);
const char *checkpoint_unread_next(const struct job *j);
/* As the recipe named the directory, where the engine's own was added to it; NULL. */
char *checkpoint_named(const struct job *j);
/* How a fresh start is asked for. */
char *checkpoint_afresh(const struct job *j);
