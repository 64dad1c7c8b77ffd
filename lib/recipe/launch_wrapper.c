/* What stands before a launcher and only runs it: assignments, nohup and its like, srun with its
 * options. */
#include "lib/recipe/launch_wrapper.h"

#include <errno.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/recipe/launch_line.h"
#include "lib/recipe/launch_options.h"
#include "lib/recipe/launch_tables.h"

const char *launch_base_name(const char *word)
{
	const char *slash = strrchr(word, '/');

	return slash ? slash + 1 : word;
}

/* Programs that run another one. valued: options that take the next word; operands: words of
 * their own before the program; why: what becomes of them, NULL = nothing is lost. */
struct wrapper {
	const char *name, *valued;
	size_t operands;
	const char *why;
};

#define AS_IT_IS "a rank is the program itself"
#define OWN_PYTHON "engine.python names the interpreter with the packages that it needs"
static const struct wrapper wrappers[] = {
	{ "env", "-u --unset -C --chdir", 0, NULL },
	{ "exec", "-a", 0, NULL },
	{ "nohup", "", 0, NULL },
	{ "time", "-f -o", 0, NULL },
	{ "command", "", 0, NULL },
	{ "setsid", "", 0, NULL },
	{ "stdbuf", "-i -o -e", 0, NULL },
	{ "unbuffer", "", 0, NULL },
	{ "screen", "-S -dmS -Logfile -t -h", 0, NULL },
	{ "nice", "-n", 0, AS_IT_IS },
	{ "ionice", "-c -n", 0, AS_IT_IS },
	{ "chrt", "", 1, AS_IT_IS },
	{ "sudo", "-u -g", 0, "ranks run as the user who submits" },
	{ "timeout", "-s -k", 1, "time_limit in docs/recipe.md ends a job" },
	{ "numactl",
	  "-N -m -C -i -p --membind --cpunodebind --physcpubind --interleave --preferred", 0,
	  BINDS },
	{ "taskset", "", 1, BINDS },
	{ "conda", "-n -p --name --prefix", 1, OWN_PYTHON },
	{ "mamba", "-n -p --name --prefix", 1, OWN_PYTHON },
	{ "poetry", "", 1, OWN_PYTHON },
	{ "pipenv", "", 1, OWN_PYTHON },
	{ "uv", "-p --python --with --extra", 1, OWN_PYTHON },
};

const struct wrapper *launch_wrapper_of(const char *word)
{
	for (size_t i = 0; i < ELEMENTSOF(wrappers); i++)
		if (mo_streq(launch_base_name(word), wrappers[i].name))
			return &wrappers[i];
	return NULL;
}

/* Behind a program that only runs another one, its options and operands. */
static size_t skip_wrapper(struct launch_line *l, const struct wrapper *w, char *const *words,
			   size_t n)
{
	size_t at = 1, operands = w->operands;
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };

	while (at < n && (operands || (words[at][0] == '-' && words[at][1]))) {
		bool option = words[at][0] == '-';

		at += option && launch_among(w->valued, words[at], strlen(words[at]));
		operands -= !option;
		at++;
	}
	at = MO_MIN(at, n);
	for (size_t i = 0; i < at; i++)
		mo_buf_printf(&text, "%s%s", i ? " " : "", words[i]);
	if (w->why)
		launch_lose(l, text.data, NULL, w->why);
	return at;
}

size_t launch_line_head(struct launch_line *l, char *const *words, size_t n)
{
	size_t at = 0, len;
	bool module = false;

	while (at < n) {
		const char *name = launch_base_name(words[at]);
		const struct wrapper *w = launch_wrapper_of(words[at]);

		if ((len = launch_assigned(words[at]))) {
			launch_env(l, words[at], len, words[at] + len + 1);
			at++;
		} else if (w) {
			at += skip_wrapper(l, w, words + at, n - at);
		} else if (mo_streq(name, "srun") || mo_streq(name, "sbatch")) {
			l->spread = mo_streq(name, "srun");
			at++;
			launch_options(l, &launch_slurm, words, n, &at, &module);
		} else if (mo_streq(name, "flux") && at + 1 < n &&
			   launch_among("run submit batch", words[at + 1], strlen(words[at + 1]))) {
			l->spread = !mo_streq(words[at + 1], "batch");
			at += 2;
			launch_options(l, &launch_flux, words, n, &at, &module);
		} else if (mo_streq(name, "mpirun") || mo_streq(name, "mpiexec") ||
			   mo_streq(name, "aprun")) {
			l->spread = true;
			at++;
			launch_options(l, &launch_mpi, words, n, &at, &module);
		} else {
			break;
		}
	}
	return at;
}
