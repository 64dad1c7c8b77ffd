/* The rows of fit_judge(), by what they look at. */
#pragma once
#include "agent/core/image/fit.h"

/* Appends one: text is the evidence, next what to do about it, NULL where nothing is to be done. */
void fit_say(struct image_checks *to, const char *check, int state, const char *next,
	     const char *fmt, ...) _printf_(5, 6);
static inline const char *fit_known(const char *s)
{
	return s ? s : "unknown";
}
void fit_image_rows(const struct fit *f, const struct image_fits *fits, struct image_checks *to);
void fit_node_rows(const struct fit *f, struct image_checks *to);
