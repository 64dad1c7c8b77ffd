/* Questions to several nodes about the images that they have: `moectl image list` and `rm`. One is
 * answered when the last node has answered, or was silent too long. In memory only. */
#pragma once
#include "daemon/core/state/prefetch.h"
#include "daemon/manager.h"
#include "lib/model/image_stored.h"

/* A node of which nothing is known. */
struct image_silence {
	char *node, *why;
};
/* As it is shown. */
struct images_view {
	struct image_stored *items;
	size_t n_items;
	char *next; /* NULL: there is one page */
	struct image_silence *unasked;
	size_t n_unasked;
	struct prefetch **pulls; /* borrowed */
	size_t n_pulls;
};
extern const struct mo_desc images_view_desc;

struct image_questions;
void image_questions_new(struct manager *m);
struct image_questions *image_questions_free(struct image_questions *q);
/* The request will be answered. what: a digest or a name that goes; NULL: nothing does. nodes:
 * none, all. Its id; 0: too many are under way. */
int64_t image_questions_add(struct manager *m, uint64_t request, const char *what,
			    char *const *nodes, size_t n_nodes);
/* Its nodes are asked now. */
void image_questions_ask(struct manager *m, int64_t id);
void image_questions_drop(struct manager *m, int64_t id);
