/* See notify.h. */
#include "agent/core/text/notify.h"

#include <errno.h>
#include <string.h>

#include "lib/model/engine.h"

#define NOTIFY_MAX 8192
#define BUSY_MS_MAX 1e9

/* Other names of the notify protocol; the rest are the fields in capitals. */
static const struct {
	const char *key, *field;
} notify_names[] = { { "TFLOPS", "tflops_per_gpu" } };

static const struct line_field *notify_field(const char *key, size_t n)
{
	char name[32];

	for (size_t i = 0; i < ELEMENTSOF(notify_names); i++)
		if (strlen(notify_names[i].key) == n && memcmp(notify_names[i].key, key, n) == 0)
			return line_field_find(notify_names[i].field);
	if (n >= sizeof(name))
		return NULL;
	for (size_t i = 0; i < n; i++) {
		if ((key[i] < 'A' || key[i] > 'Z') && key[i] != '_')
			return NULL;
		name[i] = key[i] == '_' ? '_' : (char)(key[i] - 'A' + 'a');
	}
	name[n] = 0;
	const struct line_field *f = line_field_find(name);
	return f && f->target != FIELD_PATH && f->offset != SIZE_MAX ? f : NULL;
}

static bool is(const char *key, size_t n, const char *name)
{
	return strlen(name) == n && memcmp(key, name, n) == 0;
}

static void copy_text(char *to, size_t size, const char *from, size_t n)
{
	n = MO_MIN(n, size - 1);
	memcpy(to, from, n);
	to[n] = 0;
}

/* One KEY=VALUE; true when it was understood. *metric: it is more than an iteration number. */
static bool notify_pair(const char *key, size_t n, const char *value, size_t len,
			struct line_fact *f, struct line_rates *x, bool *metric)
{
	char word[16];
	struct number number;

	if (is(key, n, "READY")) {
		f->ready = is(value, len, "1");
		return f->ready;
	}
	if (is(key, n, "PHASE")) {
		copy_text(word, sizeof(word), value, len);
		f->phase = mo_enum_parse(phase_names, _PHASE_N, word);
		return f->phase >= 0;
	}
	if (is(key, n, "CHECKPOINT")) {
		if (!len || len >= sizeof(f->path))
			return false;
		copy_text(f->path, sizeof(f->path), value, len);
		f->checkpoint = true;
		return true;
	}
	if (is(key, n, "STATUS")) {
		copy_text(f->status, sizeof(f->status), value, len);
		return true;
	}
	if (is(key, n, "BUSY_MS")) {
		if (!number_read((struct text){ value, len }, true, &number) ||
		    !(number.v >= 0 && number.v <= BUSY_MS_MAX))
			return false;
		f->busy_ms = number.v;
		return true;
	}
	const struct line_field *field = notify_field(key, n);
	if (!field || !number_read((struct text){ value, len }, true, &number))
		return false;
	int refused = f->refused;
	line_fact_set(field, (struct text){ value, len }, true, f, x);
	*metric |= field->target != FIELD_ITERATION && f->refused == refused;
	return true;
}

int notify_read(const char *data, size_t n, int64_t world, struct line_fact *ret)
{
	struct sample none;
	bool understood = false, metric = false;
	struct line_fact f;
	struct line_rates x;

	if (n > NOTIFY_MAX)
		return -EINVAL;
	mo_desc_init(&sample_desc, &none);
	line_fact_init(&f, &x, &none);
	for (const char *p = data, *end = data + n; p < end;) {
		const char *eol = memchr(p, '\n', (size_t)(end - p));
		size_t len = (size_t)((eol ? eol : end) - p);
		const char *eq = memchr(p, '=', len);
		if (eq && !memchr(p, 0, len)) {
			size_t key = (size_t)(eq - p);
			understood |= notify_pair(p, key, eq + 1, len - key - 1, &f, &x, &metric);
		}
		p += len + 1;
	}
	if (!understood)
		return -EINVAL;
	line_fact_finish(&f, &x, world);
	bool other = f.ready || f.checkpoint || f.phase >= 0 || f.status[0];
	if (metric || (f.sample.iteration != MO_NONE && !other))
		f.kind = LINE_SAMPLE;
	else if (f.phase >= 0 || f.ready)
		f.kind = LINE_PHASE;
	*ret = f;
	return 0;
}
