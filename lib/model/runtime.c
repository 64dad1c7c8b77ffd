/* See runtime.h. */
#include "lib/model/runtime.h"

#include <ctype.h>
#include <string.h>

#include "lib/base/assert.h"
#include "lib/base/buf.h"

#define IMAGE_BYTES_MAX 512

static const struct mo_field runtime_fields[] = {
	MO_D(runtime, name, MO_STR, "of the runtime, and of its file"),
	MO_D_LIST(runtime, image, MO_STRS, "says an image's id, directories, variables"),
	MO_D_LIST(runtime, keep, MO_STRS, "keeps it from being removed"),
	MO_D_LIST(runtime, kept, MO_STRS, "says the steps for which something is kept"),
	MO_D_LIST(runtime, release, MO_STRS, "ends that, and a container that was started"),
	MO_D_LIST(runtime, start, MO_STRS, "starts a container that holds the image"),
};
const struct mo_desc runtime_desc = MO_DESC(runtime, runtime_fields);

/* The value for the n bytes at name. False: no such word. */
static bool find(const char *name, size_t n, const struct runtime_words *known, const char **ret)
{
	const struct {
		const char *name, *value;
	} rows[] = { { "image", known->image },
		     { "id", known->id },
		     { "step", known->step },
		     { "dir", known->dir },
		     { "hold", known->hold } };

	for (size_t i = 0; i < ELEMENTSOF(rows); i++)
		if (strlen(rows[i].name) == n && memcmp(rows[i].name, name, n) == 0) {
			*ret = rows[i].value;
			return true;
		}
	return false;
}

/* Appends the word to b. What is wrong with it is returned, as by runtime_word_problem(). */
static char *expand(const char *word, const struct runtime_words *known, struct mo_buf *b)
{
	for (const char *at = word, *end; *at; at = end) {
		const char *value = NULL;
		bool own = mo_starts_with(at, "{{"); /* the runtime's */

		end = at + MO_MAX(strcspn(at, "{"), 1U);
		if (own) {
			const char *close = strstr(at, "}}");
			if (!close)
				return mo_strdup("{{ is not closed by }}");
			end = close + strlen("}}");
		} else if (*at == '{') {
			size_t n = strcspn(at + 1, "}");
			if (!at[1 + n])
				return mo_strdup("{ is not closed by }");
			if (!find(at + 1, n, known, &value))
				return mo_printf("{%.*s} is none of {image}, {id}, {step}, "
						 "{dir}, {hold}",
						 (int)MO_MIN(n, 64U), at + 1);
			if (!value)
				return mo_printf("{%.*s} is not known to this command", (int)n,
						 at + 1);
			end = at + n + 2;
		}
		if (value)
			mo_buf_str(b, value);
		else
			mo_buf_add(b, at, (size_t)(end - at));
	}
	return NULL;
}

char *runtime_word_problem(const char *word, const struct runtime_words *known)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	return *word ? expand(word, known, &b) : mo_strdup("an empty word");
}

char **runtime_command(char *const *words, size_t n, const struct runtime_words *known)
{
	char **argv = mo_alloc_array(n + 1, sizeof(*argv));

	for (size_t i = 0; i < n; i++) {
		struct mo_buf b = { 0 };
		_cleanup_(mo_freep) char *problem = expand(words[i], known, &b);

		mo_assert(!problem);
		mo_buf_str(&b, "");
		argv[i] = mo_buf_take(&b);
	}
	return argv;
}

const char *const runtime_names[] = { "docker", "podman", NULL };

const char *runtime_of_image(const char *image, const char **ret_name)
{
	for (size_t i = 0; runtime_names[i]; i++) {
		size_t n = strlen(runtime_names[i]);

		/* docker:// is a registry */
		if (mo_starts_with(image, runtime_names[i]) && image[n] == ':' &&
		    !mo_starts_with(image + n, "://")) {
			*ret_name = image + n + 1;
			return runtime_names[i];
		}
	}
	return NULL;
}

void runtime_list(const char *list, char ***ret, size_t *n_ret)
{
	for (size_t n; list && *list; list += n + strspn(list + n, ", ")) {
		n = strcspn(list, ", ");
		_cleanup_(mo_freep) char *name = mo_strndup(list, n);

		if (n)
			mo_strs_add(ret, n_ret, name);
	}
}

bool runtime_image_valid(const char *text)
{
	size_t n = strlen(text);

	if (n == 0 || n > IMAGE_BYTES_MAX || !isalnum((unsigned char)text[0]))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("._/:@-", text[i]))
			return false;
	return true;
}
