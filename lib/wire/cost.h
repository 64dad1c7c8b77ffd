/* What reading a JSON text will take, before it is read. */
#pragma once
#include "lib/base/error.h"

/* For what a peer has sent, before anything else: may it be read within 50 ms of one core and 64
 * MB? Else -E2BIG. It says nothing about its form. */
int wire_affordable(const char *text, size_t n, struct mo_error *err);
