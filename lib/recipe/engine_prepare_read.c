/* What an engine file has moe-stepd run before the ranks: words or a script. */
#include "lib/recipe/engine_prepare_read.h"

#include <errno.h>
#include <string.h>

#include "lib/base/fd.h"
#include "lib/recipe/catalogue.h"
#include "lib/recipe/config_inputs.h"
#include "lib/recipe/schema_scalar.h"

#define PREPARE_SCRIPT_MAX (32 * 1024)

bool engine_prepare_given(struct reader *r, const struct key *k, const struct ynode *v)
{
	const struct engine *e = r->bases[0];

	if (e->n_prepare)
		errors_at(r->errors, v, "give one of them",
			  "%s: prepare.argv and prepare.script are both given", k->path);
	return e->n_prepare;
}

void engine_prepare_argv_read(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct engine *e = r->bases[0];

	if (!engine_prepare_given(r, k, v))
		value_list(r, k->path, v, &e->prepare, &e->n_prepare);
}

void engine_prepare_script_read(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct engine *e = r->bases[0];
	_cleanup_(mo_freep) char *file = NULL, *path = NULL, *name = NULL;
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };

	if (!value_text(r, k->path, v, &file))
		return;
	name = strchr(file, '/') ? NULL : mo_printf("engines/%s", file);
	path = name ? mo_data_file(name) : NULL;
	if (engine_prepare_given(r, k, v))
		return;
	if (!path || mo_read_file(path, PREPARE_SCRIPT_MAX, &text) < 0 || !text.len ||
	    memchr(text.data, 0, text.len)) {
		errors_at(r->errors, v, "name a text file beside the engine files",
			  "prepare.script: '%s' cannot be read from there, or is larger than %d "
			  "KiB",
			  file, PREPARE_SCRIPT_MAX / 1024);
		return;
	}
	const char *words[] = { "/bin/bash", "-c", text.data, file, "{argv}" };

	for (size_t i = 0; i < ELEMENTSOF(words); i++)
		mo_strs_add(&e->prepare, &e->n_prepare, words[i]);
}
