/* Who may have a plan search run, and who waits: two run at once, one of each user, and of viewers
 * one. Of those who wait, submits come first and viewers last, of one kind who came first. The
 * shell (daemon/helper.c) has the processes and the time. Pure. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEARCHES_AT_ONCE 2
#define SEARCHES_OF_VIEWERS 1
#define SEARCHES_WAITING 64
#define SEARCHES_WAITING_OF_VIEWERS 16
#define SEARCHES_WAITING_OF_USER 8

/* For a submit or dry run; a question of a user, operator or admin; one of a viewer. */
enum search_kind { SEARCH_SUBMIT, SEARCH_PLAN, SEARCH_VIEWER };
/* number: ascending in the order in which they came. */
struct search {
	uint64_t number;
	const char *user;
	enum search_kind kind;
	bool runs;
};

/* The one that is to be started now; NULL: none. */
const struct search *search_next(const struct search *all, size_t n);
/* One more would be started at once, or may wait. */
bool search_admit(const struct search *all, size_t n, const char *user, enum search_kind kind);
