/* What a user will read: one sentence with what, where and what to do. Pure.
 *
 * Functions return 0, a negative errno (fatal for this request, passed up untouched) or a positive
 * result named in their header; a `struct mo_error *err` (may be NULL) receives the sentence. It is
 * made where the cause is known, and printed once by who was asked: a main, an on_* handler, the
 * answer to a request. Libraries and cores never log.
 *
 * First error wins: mo_error_set() on a set error keeps the old one, so that a caller may add what
 * he knows without hiding the cause. */
#pragma once
#include "lib/base/util.h"

struct mo_error {
	char *text;   /* the sentence, NULL = none */
	char *hint;   /* near-miss or remedy, may be NULL */
	int64_t line; /* 1-based place in a document, 0 = none */
	int64_t column;
};

void mo_error_done(struct mo_error *err);
/* Sets the text and returns code, so that `return mo_error_set(err, -EINVAL, "...")` reads well.
 * err may be NULL. */
int mo_error_set(struct mo_error *err, int code, const char *fmt, ...) _printf_(3, 4);
int mo_error_set_at(struct mo_error *err, int code, int64_t line, int64_t column, const char *fmt,
		    ...) _printf_(5, 6);
void mo_error_hint(struct mo_error *err, const char *fmt, ...) _printf_(2, 3);
/* The text, or strerror of code when there is none. Never NULL. */
const char *mo_error_text(const struct mo_error *err, int code);
