/* See config_words.h. */
#include "agent/core/stepd/config_words.h"

#include <errno.h>
#include <string.h>

#include "lib/base/desc.h"
#include "lib/model/limits.h"
#include "lib/model/mask.h"

/* moe-config's exit statuses */
enum { READ_IT, REFUSED = 2, COULD_NOT = 3, MISSES_A_FILE = 4 };

char **config_question(const struct launch *l, const char *dir)
{
	char **argv = NULL;
	size_t n = 0;

	mo_strs_add(&argv, &n, "moe-config");
	mo_strs_add(&argv, &n, l->config_words ? l->config_words : "primus");
	if (dir)
		*MO_GROW(argv, n) = mo_printf("root:%s", dir);
	if (l->entry)
		*MO_GROW(argv, n) = mo_printf("entry:%s", l->entry);
	if (l->config_variables)
		*MO_GROW(argv, n) = mo_printf("variables:%s", l->config_variables);
	for (size_t i = 0; i < l->n_inputs; i++)
		*MO_GROW(argv, n) = mo_printf("input:%s=%s", l->inputs[i].key, l->inputs[i].value);
	for (size_t i = 0; i < l->n_config_files; i++)
		*MO_GROW(argv, n) =
			mo_printf("file:%s=%s", l->config_files[i].key, l->config_files[i].value);
	for (size_t i = 0; i < l->n_argv; i++)
		mo_strs_add(&argv, &n, l->argv[i]);
	*MO_GROW(argv, n) = NULL;
	return argv;
}

char **config_environment(const struct env_item *items, size_t n_items, const char *user,
			  const char *own_libraries, const char *own_data)
{
	const char *ranks = NULL;
	char **env = NULL;
	size_t n = 0;

	for (size_t i = 0; i < n_items; i++) {
		const struct env_item *item = &items[i];

		if (own_libraries && mo_streq(item->name, "LD_LIBRARY_PATH"))
			ranks = item->value;
		else if (own_data && mo_streq(item->name, "MOE_DATA_DIR"))
			continue;
		else if (item->file || item->value)
			*MO_GROW(env, n) = mo_printf("%s=%s", item->name,
						     item->file ? MO_MASKED : item->value);
	}
	if (own_libraries)
		*MO_GROW(env, n) = mo_printf("LD_LIBRARY_PATH=%s%s%s", own_libraries,
					     ranks ? ":" : "", ranks ? ranks : "");
	if (user)
		*MO_GROW(env, n) = mo_printf("MOE_SUBMITTED_BY=%s", user);
	if (own_data)
		*MO_GROW(env, n) = mo_printf("MOE_DATA_DIR=%s", own_data);
	*MO_GROW(env, n) = NULL;
	return env;
}

char *config_refusal(const struct launch *l, const char *node, int code, const char *said)
{
	if (code == MISSES_A_FILE && l->n_inputs)
		return mo_printf("the engine's configuration on %s: %s: put it there, or name "
				 "another",
				 node, said ? said : "a file is not there");
	if (code == REFUSED && !l->config && l->recipe)
		return mo_printf("the engine's configuration on %s: %s", node,
				 said ? said : "it is refused");
	if (code == REFUSED && l->config)
		return mo_printf("the experiment on %s: %s", node,
				 said ? said : "it cannot be loaded");
	return NULL;
}

const char *config_unstored(int code, const struct mo_buf *out, bool is_text, size_t json_bytes,
			    const char *said)
{
	if (code != READ_IT || !out->len)
		return code == COULD_NOT && said ? said : "moe-config did not end as it should";
	if (!is_text || json_bytes > MO_CONFIG_BYTES_MAX)
		return "it is no text, or larger than a record may be";
	return NULL;
}

const char *config_unread(int error)
{
	return error == -EFBIG       ? "it is larger than a record may be"
	       : error == -ETIMEDOUT ? "its files were not read within 10 s: their file system "
				       "does not answer, or it is slow"
				     : strerror(-error);
}
