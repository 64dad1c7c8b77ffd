/* Requests that are answered later, and streams. */
#pragma once
#include "lib/http/internal.h"

/* http_find() finds it from here on, */
void held_add(struct http_request *r);
/* until here. */
void held_remove(struct http_request *r);
