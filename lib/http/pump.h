/* Runs MHD: see pump.c. */
#pragma once
#include "lib/http/internal.h"

int pump_begin(struct http_server *s);
int pump_watch(struct http_server *s, struct listener *l);
/* This pump took as long as one callback of the loop should. */
bool pump_spent(const struct http_server *s);
/* Its handler runs in a later pump, when it has its turn. */
void pump_wait(struct http_request *r);
/* MHD has work that its epoll descriptor does not show (a resumed connection). */
void pump_later(struct http_server *s);
/* Now, and whatever waits for its turn too. */
void pump_all(struct http_server *s);
void pump_end(struct http_server *s);
