/* Log of mains, managers and on_* handlers (libraries and cores never log): native journald
 * entries when stderr is the journal's, else "<level>text" lines on stderr. */
#pragma once
#include <stdint.h>
#include "lib/base/util.h"

enum mo_level { MO_ERR = 3, MO_WARNING = 4, MO_NOTICE = 5, MO_INFO = 6, MO_DEBUG = 7 };

/* err = someone must act; warning = worked around; notice = state change; info = served; debug =
 * off. */
/* zero/-1/NULL fields are left out; job 0 = none, rank is printed only when job is set and rank
 * >= 0 */
struct mo_log_where {
	int64_t job, attempt, rank;
	const char *node, *cause;
};

void mo_log_open(const char *identifier, enum mo_level max_level);
/* message_id: 32 hex digits of units/moe.catalog, or NULL */
void mo_log(enum mo_level level, const char *message_id, const struct mo_log_where *where,
	    const char *fmt, ...) _printf_(4, 5);
