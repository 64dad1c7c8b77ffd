/* Readings of a probe (see reading.h). */
#include "agent/core/health/reading.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/core/health/sysfs_text.h"
#include "lib/base/assert.h"
#include "lib/model/limits.h"

#define PROBLEM_BYTES_MAX 3000 /* probe_desc takes 4096 */
#define KEY_BYTES_MAX 128      /* reading_desc */

static struct reading *add(struct probe *p, const char *key)
{
	if (p->n_readings >= MO_READINGS_MAX)
		return NULL;
	struct reading *r = MO_ADD(p, readings, &reading_desc);
	r->key = text_clean(key, strlen(key), KEY_BYTES_MAX - 3);
	return r;
}

void reading_add(struct probe *p, const char *key, double value)
{
	struct reading *r = value == MO_NONE_F ? NULL : add(p, key);

	mo_assert(key && *key);
	if (r)
		r->value = value;
}

void reading_add_int(struct probe *p, const char *key, int64_t value)
{
	reading_add(p, key, value == MO_NONE ? MO_NONE_F : (double)value);
}

void reading_add_text(struct probe *p, const char *key, const char *text)
{
	struct reading *r = text && *text ? add(p, key) : NULL;

	if (r)
		r->text = text_clean(text, strlen(text), READING_TEXT_MAX);
}

const struct reading *reading_find(const struct probe *p, const char *key)
{
	mo_assert(p->readings || p->n_readings == 0);
	for (size_t i = 0; i < p->n_readings; i++)
		if (mo_streq(p->readings[i].key, key))
			return &p->readings[i];
	return NULL;
}

void reading_drop(struct probe *p, const char *key)
{
	for (size_t i = p->n_readings; i-- > 0;)
		if (mo_streq(p->readings[i].key, key))
			mo_vec_remove(&reading_desc, p->readings, &p->n_readings, i);
}

double reading_value(const struct probe *p, const char *key)
{
	const struct reading *r = reading_find(p, key);
	return r ? r->value : MO_NONE_F;
}

const char *reading_text(const struct probe *p, const char *key)
{
	const struct reading *r = reading_find(p, key);
	return r ? r->text : NULL;
}

void probe_problem(struct probe *p, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	_cleanup_(mo_freep) char *clean = text_clean(text, strlen(text), sizeof(text));
	size_t n = p->problem ? strlen(p->problem) : 0;
	if (n >= 3 && mo_streq(p->problem + n - 3, "..."))
		return;
	char *whole = mo_printf("%s%s%s", n ? p->problem : "", n ? "; " : "",
				n + strlen(clean) > PROBLEM_BYTES_MAX ? "..." : clean);
	free(p->problem);
	p->problem = whole;
}
