/* See runtime_image.h. */
#include "agent/core/stepd/runtime_image.h"

#include <errno.h>
#include <string.h>

#include "lib/base/utf8.h"

#define HEX "0123456789abcdef"
#define DIGITS "0123456789"
#define BLANKS " \t\r\n"
#define SHA256 "sha256:"
#define SHA256_DIGITS 64
#define ID_DIGITS_MIN 12
#define STEP_DIGITS 16

static const struct mo_field runtime_image_fields[] = {
	MO_D(runtime_image, id, MO_STR, "the runtime's name of it"),
	MO_D(runtime_image, digest, MO_STR, "of its manifest, or id: and its id"),
	MO_D_LIST(runtime_image, layers, MO_STRS, "directories, the highest first"),
	MO_D_LIST(runtime_image, env, MO_STRS, "NAME=VALUE"),
	MO_D(runtime_image, workdir, MO_STR, "directory that its programs are started in"),
};
const struct mo_desc runtime_image_desc = MO_DESC(runtime_image, runtime_image_fields);

static const struct mo_field runtime_config_fields[] = {
	MO_DN(runtime_config, env, "Env", MO_STRS, "NAME=VALUE",
	      .count_offset = offsetof(struct runtime_config, n_env)),
	MO_DN(runtime_config, workdir, "WorkingDir", MO_STR, "directory that it is started in"),
};
const struct mo_desc runtime_config_desc = MO_DESC(runtime_config, runtime_config_fields);

static int no_answer(const char *expected, const char *line, struct mo_error *err)
{
	return mo_error_set(err, -EBADMSG, "expected %s, got '%.*s'", expected,
			    mo_utf8_shown(line, (int)MO_MIN(strlen(line), 200U)), line);
}

/* HEX of sha256:HEX, or all of it. */
static const char *digits_of(const char *word)
{
	return mo_starts_with(word, SHA256) ? word + strlen(SHA256) : word;
}

static bool is_hex(const char *s, size_t least, size_t most)
{
	size_t n = strspn(s, HEX);

	return !s[n] && n >= least && n <= most;
}

/* The next word of *at, which is moved behind it; NULL: there is none. Caller frees. */
static char *next_word(const char **at)
{
	*at += strspn(*at, BLANKS);
	return **at ? mo_part(at, BLANKS) : NULL;
}

/* The line at *at, which ends there; *at is moved behind it. */
static const char *next_line(char **at)
{
	char *line = *at, *end = strchr(line, '\n');

	if (end)
		*end++ = '\0';
	*at = end ? end : line + strlen(line);
	return line;
}

void runtime_answer_read(char *text, struct runtime_answer *ret)
{
	ret->names = next_line(&text);
	ret->layers = next_line(&text);
	ret->config = text;
}

int runtime_image_names(const char *line, struct runtime_image *ret, struct mo_error *err)
{
	_cleanup_(mo_freep) char *last = NULL, *digest = NULL;
	const char *at = line;

	for (char *word; (word = next_word(&at)); last = word) {
		const char *sign = last ? strrchr(last, '@') : NULL, *d = sign ? sign + 1 : last;

		if (!digest && d && mo_starts_with(d, SHA256) &&
		    is_hex(digits_of(d), SHA256_DIGITS, SHA256_DIGITS))
			digest = mo_strdup(d);
		free(last);
	}
	if (!last || !is_hex(digits_of(last), ID_DIGITS_MIN, SHA256_DIGITS))
		return no_answer("an image's digest and its id", line, err);
	mo_str_set(&ret->id, digits_of(last));
	free(ret->digest);
	ret->digest = digest ? TAKE_PTR(digest) : mo_printf("id:" SHA256 "%s", ret->id);
	return 0;
}

int runtime_image_layers(const char *line, struct runtime_image *ret, struct mo_error *err)
{
	const char *at = line;
	_cleanup_(mo_freep) char *driver = next_word(&at);

	at += strspn(at, " \t");
	if (!driver || !mo_starts_with(driver, "overlay") || *at != '/')
		return mo_error_set(err, -ENOTSUP,
				    "its store (%.*s) has no layers that can be used in place",
				    driver ? mo_utf8_shown(driver, 64) : 0, driver ? driver : "");
	while (*at) {
		_cleanup_(mo_freep) char *path = mo_part(&at, ":");

		if (path[0] != '/' || ret->n_layers == RUNTIME_LAYERS_MAX)
			return no_answer("absolute paths of at most 200 layers", line, err);
		mo_strs_add(&ret->layers, &ret->n_layers, path);
	}
	return 0;
}

char *runtime_step_dir(const char *step, const char *node)
{
	_cleanup_(mo_freep) char *middle = mo_printf(".%s.", node);
	size_t length = strlen(step), end = strlen(middle) + STEP_DIGITS;
	size_t n = length > end ? length - end : 0;

	if (n == 0 || strspn(step + length - STEP_DIGITS, HEX) < STEP_DIGITS ||
	    memcmp(step + n, middle, strlen(middle)) != 0)
		return NULL;
	size_t job = step[0] == 'j' ? strspn(step + 1, DIGITS) : 0;

	if (job == 0 || !mo_starts_with(step + 1 + job, ".a") ||
	    strspn(step + job + 3, DIGITS) != n - job - 3 || n == job + 3)
		return NULL;
	return mo_strndup(step, n);
}
