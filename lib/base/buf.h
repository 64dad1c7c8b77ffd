/* A growable byte string: the one way in which texts are put together and bytes are collected.
 * Pure.
 *
 * Zeroed is empty; mo_buf_done() frees, mo_buf_take() gives the string away. Always NUL-terminated
 * after the first append; `data` may be NULL while len is 0. Bytes may be any, also NUL.
 *
 * What never happens: an append fails (out of memory ends the program: what comes from outside is
 * limited before it gets here); `data` stays where it is over an append. */
#pragma once
#include "lib/base/util.h"

struct mo_buf {
	char *data;
	size_t len, cap;
};

void mo_buf_done(struct mo_buf *b);
void mo_buf_reset(struct mo_buf *b); /* len = 0, storage kept */
void mo_buf_add(struct mo_buf *b, const void *data, size_t n);
void mo_buf_str(struct mo_buf *b, const char *s);
void mo_buf_printf(struct mo_buf *b, const char *fmt, ...) _printf_(2, 3);
void mo_buf_consume(struct mo_buf *b, size_t n); /* drops n bytes from the front */
/* the string ("" when empty), caller frees; b is empty afterwards */
char *mo_buf_take(struct mo_buf *b);
