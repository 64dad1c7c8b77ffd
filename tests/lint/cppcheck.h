/* What cppcheck does not know by itself: typeof in statement expressions, the loops of uthash and
 * utlist, whose headers it does not look for. Only the linter includes this. */
#pragma once
#define __typeof__(x) void *
#define HASH_ITER(hh, head, el, tmp) for ((el) = (head), (tmp) = (head); (el); (el) = (tmp))
#define HASH_FIND(hh, head, key, len, out) ((out) = (head))
#define DL_FOREACH(head, el) for ((el) = (head); (el); (el) = (el)->next)
#define DL_FOREACH_SAFE(head, el, tmp) for ((el) = (head), (tmp) = (head); (el); (el) = (tmp))
/* these end the program or the test */
#define assert_non_null(p) ((p) ? (void)0 : abort())
#define assert_true(x) ((x) ? (void)0 : abort())
#define sim_violation(...) abort()
