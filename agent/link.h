/* The controller (link.c). */
#pragma once
#include "agent/manager.h"

int link_new(struct manager *m, struct link **ret, struct mo_error *err);
struct link *link_free(struct link *l);
void link_hello(struct link *l);
void link_sync(struct link *l);
void link_urgent(struct link *l);
void link_answer(struct link *l, const struct query_answer *a);
