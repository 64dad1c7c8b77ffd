/* The one table of all routes. */
#pragma once
#include "lib/base/desc.h"
#include "lib/http/server.h"

/* query: names of the query string, separated by blanks; a capital in front: a header. NULL
 * none. */
struct api_route {
	struct http_route route;
	const char *summary;
	const char *tag;
	const char *query;
	/* what is taken (JSON); NULL: a recipe, or nothing */
	const struct mo_desc *body;
	/* what is answered, of a list its items; NULL: no described struct */
	const struct mo_desc *answer;
	const struct mo_desc *beside; /* of a list: what it has beside items and next */
	/* member of query with which it is another document; what describes that, NULL: no
	 * struct */
	const char *other;
	const struct mo_desc *other_answer;
	const char *media; /* NULL = application/json */
	bool list;
};
extern const struct api_route api_routes[];
extern const size_t n_api_routes;
