/* What cppcheck cannot parse by itself: typeof in statement expressions, and the loops of uthash and utlist, whose headers it does not look for. Only the linter includes this. */
#pragma once
#define __typeof__(x) void *
#define HASH_ITER(hh, head, el, tmp) for ((el) = (head), (tmp) = (head); (el); (el) = (tmp))
#define HASH_FIND(hh, head, key, len, out) ((out) = (head))
#define DL_FOREACH(head, el) for ((el) = (head); (el); (el) = (el)->next)
#define DL_FOREACH_SAFE(head, el, tmp) for ((el) = (head), (tmp) = (head); (el); (el) = (tmp))
