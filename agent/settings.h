/* The agent's own part of the node's fingerprint (settings.c). */
#pragma once
#include "agent/core/health/health.h"

struct manager;
/* Checks and limits as they were read, as a short text; caller frees. */
char *settings_checks(const struct health_checks *checks);
/* Appended. checks: settings_checks(); h: which of them are off. */
void settings_items(const struct manager *m, const char *checks, const struct health *h,
		    struct stack_item **ret, size_t *n_ret);
