/* Heads that mean one thing only. */
#pragma once
#include "lib/http/internal.h"

/* What is wrong with the head: it could be understood in two ways, by us and by a proxy before us.
 * NULL: nothing. */
const char *strict_head(struct http_request *r, const char *version);
/* MHD's unescaping: in place, to the length of the result. */
size_t strict_unescape(void *cls, struct MHD_Connection *mhd, char *s);
/* MHD's callback for the request line before it is taken apart; NULL. */
void *strict_line(void *cls, const char *uri, struct MHD_Connection *mhd);
