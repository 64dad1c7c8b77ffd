/* See image_config.h. */
#include "agent/core/stepd/image_config.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "lib/base/utf8.h"

static const struct mo_field image_variable_fields[] = {
	MO_D(image_variable, name, MO_STR, "name"),
	MO_D(image_variable, value, MO_STR, "value"),
};
const struct mo_desc image_variable_desc = MO_DESC(image_variable, image_variable_fields);

static const struct mo_field image_config_fields[] = {
	MO_D_VEC(image_config, env, &image_variable_desc, "variables that its programs expect"),
	MO_D(image_config, workdir, MO_STR, "directory that they are started in"),
	MO_D(image_config, digest, MO_STR, "of its manifest, or id: and its id", .omit = true),
};
const struct mo_desc image_config_desc = MO_DESC(image_config, image_config_fields);

static const struct mo_field image_process_fields[] = {
	MO_D_LIST(image_process, env, MO_STRS, "NAME=VALUE"),
	MO_D(image_process, cwd, MO_STR, "directory that it is started in"),
};
static const struct mo_desc image_process_desc = MO_DESC(image_process, image_process_fields);
static const struct mo_field image_bundle_fields[] = {
	MO_D_SUB(image_bundle, process, MO_OPT, &image_process_desc, "what it would run"),
};
const struct mo_desc image_bundle_desc = MO_DESC(image_bundle, image_bundle_fields);

/* Length of the name that s, of n bytes, begins with; 0: it begins with none. */
static size_t name_length(const char *s, size_t n)
{
	size_t i = 0;

	while (i < n && (s[i] == '_' || isalpha((unsigned char)s[i]) ||
			 (i > 0 && isdigit((unsigned char)s[i]))))
		i++;
	return i;
}

static struct image_variable *find(const struct image_config *c, const char *name, size_t n)
{
	for (size_t i = 0; i < c->n_env; i++)
		if (strlen(c->env[i].name) == n && memcmp(c->env[i].name, name, n) == 0)
			return &c->env[i];
	return NULL;
}

/* name_length(s) is n_name and `=` follows; the value is of n bytes. */
static int take(struct image_config *c, const char *s, size_t n_name, const char *value, size_t n,
		struct mo_error *err)
{
	struct image_variable *v = find(c, s, n_name);

	if (!mo_utf8_valid(value, n))
		return mo_error_set(err, -EINVAL, "the value of %.*s is no UTF-8",
				    mo_utf8_shown(s, (int)MO_MIN(n_name, 64)), s);
	if (!v && c->n_env == IMAGE_VARIABLES_MAX)
		return mo_error_set(err, -E2BIG, "it has more than %d variables",
				    IMAGE_VARIABLES_MAX);
	if (!v) {
		v = MO_ADD(c, env, &image_variable_desc);
		v->name = mo_strndup(s, n_name);
	}
	free(v->value);
	v->value = mo_strndup(value, n);
	return 0;
}

int image_config_bundle(const struct image_bundle *b, struct image_config *ret,
			struct mo_error *err)
{
	const struct image_process *p = b->process;
	int r = 0;

	for (size_t i = 0; p && r == 0 && i < p->n_env; i++) {
		const char *s = p->env[i];
		size_t n = s ? strlen(s) : 0, name = s ? name_length(s, n) : 0;

		if (name > 0 && s[name] == '=')
			r = take(ret, s, name, s + name + 1, n - name - 1, err);
	}
	if (r == 0 && p && p->cwd && p->cwd[0] != '/')
		return mo_error_set(err, -EINVAL, "process.cwd is no absolute path: %.*s",
				    mo_utf8_shown(p->cwd, 200), p->cwd);
	if (r == 0 && p)
		mo_str_set(&ret->workdir, p->cwd);
	return r;
}

static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static int take_line(struct image_config *c, const char *s, size_t n, struct mo_error *err)
{
	static const char export[] = "export ";
	size_t name;

	for (; n > 0 && blank(*s); n--)
		s++;
	while (n > 0 && blank(s[n - 1]))
		n--;
	if (n >= strlen(export) && memcmp(s, export, strlen(export)) == 0) {
		s += strlen(export);
		n -= strlen(export);
	}
	name = name_length(s, n);
	if (name == 0 || name == n || s[name] != '=')
		return 0;
	const char *value = s + name + 1;

	n -= name + 1;
	if (n >= 2 && (*value == '"' || *value == '\'') && value[n - 1] == *value) {
		value++;
		n -= 2;
	}
	return take(c, s, name, value, n, err);
}

int image_config_environment(const char *text, size_t n, struct image_config *ret,
			     struct mo_error *err)
{
	if (memchr(text, 0, n))
		return mo_error_set(err, -EINVAL, "it holds a NUL byte");
	for (size_t at = 0, end; at < n; at = end + 1) {
		const char *newline = memchr(text + at, '\n', n - at);

		end = newline ? (size_t)(newline - text) : n;
		int r = take_line(ret, text + at, end - at, err);

		if (r < 0)
			return r;
	}
	return 0;
}
