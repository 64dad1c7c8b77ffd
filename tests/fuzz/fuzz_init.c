/* Any bytes behind the first as a shell script that starts a training: it is read, or refused with
 * one line. What is read has a program, and every word that was lost has its reason; its recipe is
 * a text. ROOMS: recipe model base */
#include <stdlib.h>
#include <string.h>

#include "lib/recipe/draft.h"
#include "lib/recipe/json.h"
#include "lib/recipe/launch_script.h"
#include "lib/recipe/draft_text.h"

static void one_line(const struct mo_error *err)
{
	const char *text = mo_error_text(err, -1);

	if (!*text || strchr(text, '\n'))
		abort();
}

static void recipe_of(const struct launch_line *l)
{
	struct draft d;

	draft_init(&d);
	d.kind = mo_strdup("torch");
	d.name = mo_strdup("t");
	d.gpus = 1;
	for (size_t i = 0; i < l->n_program; i++)
		mo_strs_add(&d.args, &d.n_args, l->program[i]);
	char *text = draft_text(&d, l->lost, l->n_lost), *json = recipe_json(text, strlen(text));

	/* more words than a recipe may have, or bytes that no YAML has, are refused by its
	 * reader */
	free(json);
	free(text);
	draft_done(&d);
}

static void script(const char *text)
{
	struct mo_error err = { 0 };
	struct launch_line l;

	if (launch_line_script(text, NULL, &l, &err) < 0) {
		one_line(&err);
	} else {
		if (!l.n_program)
			abort();
		for (size_t i = 0; i < l.n_lost; i++)
			if (!strstr(l.lost[i], ": "))
				abort();
		recipe_of(&l);
		launch_line_done(&l);
	}
	mo_error_done(&err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = mo_strndup((const char *)data + (size > 0), size - (size > 0));

	script(text);
	free(text);
	return 0;
}
