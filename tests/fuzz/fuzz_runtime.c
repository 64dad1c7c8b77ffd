/* Any bytes as a file of a container runtime, refused with a place or usable, and as what a runtime
 * says.
 * ROOMS: acore recipe wire model base */
#include <stdlib.h>
#include <string.h>

#include "agent/core/stepd/runtime_image.h"
#include "lib/recipe/runtime_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void use(char *const *words, size_t n)
{
	const struct runtime_words all = { "image", "id", "step" };
	char **argv = runtime_command(words, n, &all);
	size_t n_argv = n + 1;

	if (!n || argv[n])
		abort();
	mo_strs_clear(&argv, &n_argv);
}

static void read_file(const char *text, size_t n)
{
	struct runtime runtime;
	struct recipe_errors errors = { 0 };

	mo_desc_init(&runtime_desc, &runtime);
	if (runtime_parse(text, n, &runtime, &errors) == 0) {
		use(runtime.image, runtime.n_image);
		use(runtime.keep, runtime.n_keep);
		use(runtime.release, runtime.n_release);
	} else if (!errors.n) {
		abort();
	}
	recipe_errors_done(&errors);
	mo_desc_done(&runtime_desc, &runtime);
}

static void read_answers(const char *text)
{
	struct mo_error err = { 0 };
	struct runtime_image image;
	struct runtime_answer answer;
	_cleanup_(mo_freep) char *lines = mo_strdup(text);

	runtime_answer_read(lines, &answer);
	mo_desc_init(&runtime_image_desc, &image);
	if (runtime_image_names(answer.names, &image, &err) == 0 && (!image.id || !image.digest))
		abort();
	if (runtime_image_layers(answer.layers, &image, &err) == 0 && !image.n_layers)
		abort();
	for (size_t i = 0; i < image.n_layers; i++)
		if (image.layers[i][0] != '/')
			abort();
	_cleanup_(mo_freep) char *dir = runtime_step_dir(text, "n");

	if (dir && strchr(dir, '/'))
		abort();
	mo_desc_done(&runtime_image_desc, &image);
	mo_error_done(&err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	_cleanup_(mo_freep) char *text = mo_strndup((const char *)data, n);

	read_file((const char *)data, n);
	read_answers(text);
	return 0;
}
