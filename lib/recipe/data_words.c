/* See data_words.h. */
#include "lib/recipe/data_words.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/fd.h"
#include "lib/recipe/errors.h"

#define BEGIN "{data:"

void data_words(char **argv, size_t n, const struct ynode *at, struct recipe_errors *errors)
{
	for (size_t i = 0; i < n; i++) {
		const char *word = argv[i], *name_at = word + strlen(BEGIN);

		if (!mo_starts_with(word, BEGIN) || word[strlen(word) - 1] != '}')
			continue;
		_cleanup_(mo_freep) char *name = mo_strndup(name_at, strlen(name_at) - 1);
		_cleanup_(mo_freep) char *found = mo_data_file(name);
		_cleanup_(mo_freep) char *path = found ? realpath(found, NULL) : NULL;

		if (path)
			mo_str_set(&argv[i], path);
		else
			errors_at(errors, at, NULL,
				  "argv: %s is not installed: reinstall the data files", name);
	}
}
