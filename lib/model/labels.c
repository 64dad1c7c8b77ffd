/* See labels.h. */
#include "lib/model/labels.h"

#include <string.h>

static bool is_one_of(char c, const char *more)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr(more, c));
}

/* The n bytes there. */
static bool valid(const char *s, size_t n)
{
	if (n == 0 || n > LABEL_BYTES_MAX || !is_one_of(*s, ""))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!is_one_of(s[i], "._/@:+-"))
			return false;
	return true;
}

bool label_valid(const char *s)
{
	return valid(s, strlen(s));
}

/* One wanted of the list: its name and, behind '=', its value; NULL: whatever value. */
struct one {
	const char *name, *value;
	size_t n_name, n_value;
};

/* The one that begins there; returns where the next does, NULL: there is none. */
static const char *next_one(const char *p, struct one *ret)
{
	size_t n = strcspn(p, ","), name = strcspn(p, ",=");

	*ret = (struct one){ .name = p, .n_name = name };
	if (p[name] == '=') {
		ret->value = p + name + 1;
		ret->n_value = n - name - 1;
	}
	return p[n] ? p + n + 1 : NULL;
}

bool labels_wanted_valid(const char *wanted)
{
	struct one w;

	for (const char *p = wanted; p;) {
		p = next_one(p, &w);
		if (!valid(w.name, w.n_name) || (w.value && !valid(w.value, w.n_value)))
			return false;
	}
	return true;
}

static bool is_text(const char *s, const char *bytes, size_t n)
{
	return strlen(s) == n && memcmp(s, bytes, n) == 0;
}

static bool has(const struct kv *labels, size_t n, const struct one *w)
{
	for (size_t i = 0; i < n; i++)
		if (is_text(labels[i].key, w->name, w->n_name))
			return !w->value || is_text(labels[i].value, w->value, w->n_value);
	return false;
}

bool labels_match(const struct kv *labels, size_t n, const char *wanted)
{
	struct one w;

	for (const char *p = wanted; p;) {
		p = next_one(p, &w);
		if (!has(labels, n, &w))
			return false;
	}
	return true;
}
