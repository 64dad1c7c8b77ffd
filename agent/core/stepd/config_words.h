/* What moe-config is asked about the engine's own configuration, and what its answer means for the
 * step. Pure; who asks it is agent/stepd/config.c. */
#pragma once
#include "agent/core/bind/env.h"
#include "lib/base/buf.h"
#include "lib/model/launch.h"

/* Its words: FORMAT, what is to be looked for, the command. dir: of the ranks in their image, whose
 * root it gets as descriptor 3; NULL: none. The caller frees the list, which ends
 * with NULL, and its texts. */
char **config_question(const struct launch *l, const char *dir);
/* Its environment: that of a rank, without what it reads from files: they are secrets whatever the
 * variable's name is, and what moe-config says leaves the node. Libraries and data files are found
 * where this program found its own (NULL: nowhere in particular). Caller frees as above. */
char **config_environment(const struct env_item *items, size_t n, const char *user,
			  const char *own_libraries, const char *own_data);
/* Why no rank can start by what it answered; NULL: they can. code: of its exit, -1 killed; said:
 * its last words, NULL none. Caller frees. */
char *config_refusal(const struct launch *l, const char *node, int code, const char *said);
/* Why its output is not stored with the job; NULL: it is. json_bytes: as a record would write it;
 * is_text: it can be read as one. */
const char *config_unstored(int code, const struct mo_buf *out, bool is_text, size_t json_bytes,
			    const char *said);
/* Why it could not be read: a negative errno, in words of the file system that is asked. */
const char *config_unread(int error);
