/* Who may come in now: see door.c. */
#pragma once
#include "lib/http/internal.h"

void doors_new(struct http_server *s);
/* After its head was found good. False after 503: too many of its route wait for their answer. */
bool door_open(struct http_request *r);
/* It came whole; it is answered, or its client has left. Both are harmless when repeated. */
void door_enter(struct http_request *r);
void door_leave(struct http_request *r);
/* It waited, or has come with many, and the agent that sent it has closed its connection by now. */
bool door_left_behind(const struct http_request *r);
