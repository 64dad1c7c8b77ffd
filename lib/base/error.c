/* The sentence a user will read. The first one set wins, because it is nearest to the cause. */
#include "lib/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/assert.h"

void mo_error_done(struct mo_error *err)
{
	free(err->text);
	free(err->hint);
	*err = (struct mo_error){ 0 };
}

int mo_error_set(struct mo_error *err, int code, const char *fmt, ...)
{
	va_list ap;

	if (!err || err->text)
		return code;
	va_start(ap, fmt);
	err->text = mo_vprintf(fmt, ap);
	va_end(ap);
	return code;
}

int mo_error_set_at(struct mo_error *err, int code, int64_t line, int64_t column, const char *fmt,
		    ...)
{
	va_list ap;

	mo_assert(line >= 0 && column >= 0);
	if (!err || err->text)
		return code;
	va_start(ap, fmt);
	err->text = mo_vprintf(fmt, ap);
	va_end(ap);
	err->line = line;
	err->column = column;
	return code;
}

void mo_error_hint(struct mo_error *err, const char *fmt, ...)
{
	va_list ap;

	if (!err || err->hint)
		return;
	va_start(ap, fmt);
	err->hint = mo_vprintf(fmt, ap);
	va_end(ap);
}

const char *mo_error_text(const struct mo_error *err, int code)
{
	if (err && err->text)
		return err->text;
	return strerror(code < 0 ? -code : code);
}
