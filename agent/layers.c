/* See layers.h. What is to be removed is renamed to gone.XXXX first: so it is never taken for that
 * of a new step of the same name, and an agent that comes after this one goes on with it. */
#include "agent/layers.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "agent/helper.h"
#include "agent/manager.h"
#include "agent/paths.h"
#include "agent/service.h"
#include "agent/step_dir.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/parse.h"
#include "lib/base/rooted.h"

#define GONE "gone."
#define SHELL "/bin/sh"
/* Who is not root enters a directory of its own only where its mode lets it: that of overlayfs has
 * none. */
#define RM \
	"[ \"$(id -u)\" = 0 ] || chmod -R u+rwx -- \"$@\"; " \
	"exec rm -rf --one-file-system -- \"$@\""
#define RM_DEADLINE_US (INT64_C(3600) * 1000000)
#define RM_OUT_MAX 4096
#define RM_NAMES_MAX 256

struct layers {
	struct manager *m;
	char *dir;
	struct helper *rm;
	bool again; /* something was renamed since it was started */
};

static void warn(const char *what, const char *why)
{
	mo_log(MO_WARNING, NULL, NULL,
	       "%s cannot be removed: %s; it is tried again with the next "
	       "one, and at the agent's next start",
	       what, why);
}

static void begin(struct layers *l);

static void on_end(void *arg, int status, const char *out, size_t n, const char *problem)
{
	struct layers *l = arg;

	l->rm = NULL; /* frees itself */
	if (problem)
		warn(l->dir, problem);
	if (l->again)
		begin(l);
}

/* The names that are to be removed, behind the words of the command. */
static void list_gone(const struct layers *l, char ***argv, size_t *n)
{
	_cleanup_(mo_dir_freep) struct mo_dir *d = mo_dir_open(AT_FDCWD, l->dir, 0);
	size_t names = 0;

	for (const char *name; names < RM_NAMES_MAX && (name = mo_dir_next(d));) {
		_cleanup_(mo_freep) char *path = mo_path(l->dir, "%s", name);

		if (!mo_starts_with(name, GONE))
			continue;
		mo_strs_add(argv, n, path);
		names++;
	}
}

static void begin(struct layers *l)
{
	static const char *const words[] = { "-c", RM, "sh" };
	char **argv = NULL;
	size_t n = 0, n_words;
	int r = 0;

	if (l->rm) {
		l->again = true;
		return;
	}
	l->again = false;
	service_words(l->m, SHELL, &argv, &n);
	for (size_t i = 0; i < ELEMENTSOF(words); i++)
		mo_strs_add(&argv, &n, words[i]);
	n_words = n;
	list_gone(l, &argv, &n);
	if (n > n_words) {
		*MO_GROW(argv, n) = NULL;
		r = helper_start(l->m->loop, service_path(l->m, SHELL), argv, RM_DEADLINE_US,
				 RM_OUT_MAX, on_end, l, &l->rm);
	}
	for (size_t i = 0; i < n; i++)
		free(argv[i]);
	free(argv);
	if (r < 0)
		warn(l->dir, strerror(-r));
}

/* 0, or a negative errno; there need not be one. */
static int put_away(struct layers *l, const char *path)
{
	_cleanup_(mo_freep) char *random = mo_random_hex(8);
	_cleanup_(mo_freep) char *gone = mo_path(l->dir, GONE "%s", random);

	return mo_rename(path, gone) < 0 && errno != ENOENT ? -errno : 0;
}

int layers_make(struct layers *l, int64_t job, int64_t attempt)
{
	_cleanup_(mo_freep) char *path = path_layer(l->m->config, job, attempt);
	int r = mo_mkdir_p(l->dir, 0700, false);

	if (r == 0)
		r = put_away(l, path);
	if (r == 0 && mo_mkdir(path, 0700) < 0)
		r = -errno;
	return r;
}

void layers_remove(struct layers *l, int64_t job, int64_t attempt)
{
	_cleanup_(mo_freep) char *path = path_layer(l->m->config, job, attempt);
	int r = put_away(l, path);

	if (r < 0)
		warn(path, strerror(-r));
	begin(l);
}

bool layers_hold(const struct layers *l, int64_t job, int64_t attempt, const char *path)
{
	_cleanup_(mo_freep) char *layer = path_layer(l->m->config, job, attempt);
	_cleanup_(mo_freep) char *files = mo_path(layer, "files");
	_cleanup_(mo_closep) int root =
		mo_open_at(AT_FDCWD, files, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	_cleanup_(mo_closep) int there = root < 0 ? -1 : mo_open_in_fs(root, path, O_PATH);

	return there >= 0;
}

/* jN.aM of a step that is not here. */
static bool is_left(const struct layers *l, const char *name)
{
	const char *dot = name[0] == 'j' ? strstr(name, ".a") : NULL;
	_cleanup_(mo_freep) char *first =
		dot ? mo_strndup(name + 1, (size_t)(dot - name) - 1) : NULL;
	int64_t job, attempt;

	return first && mo_parse_i64(first, 1, INT64_MAX, &job) == 0 &&
	       mo_parse_i64(dot + 2, 1, INT64_MAX, &attempt) == 0 &&
	       !step_dir_find(l->m, job, attempt);
}

void layers_sweep(struct layers *l)
{
	_cleanup_(mo_dir_freep) struct mo_dir *d = mo_dir_open(AT_FDCWD, l->dir, 0);
	char **names = NULL;
	size_t n = 0;

	for (const char *name; (name = mo_dir_next(d));)
		if (is_left(l, name))
			mo_strs_add(&names, &n, name);
	for (size_t i = 0; i < n; i++) {
		_cleanup_(mo_freep) char *path = mo_path(l->dir, "%s", names[i]);
		int r = put_away(l, path);

		if (r < 0)
			warn(path, strerror(-r));
		free(names[i]);
	}
	free(names);
	begin(l);
}

struct layers *layers_free(struct layers *l)
{
	if (!l)
		return NULL;
	helper_free(l->rm);
	free(l->dir);
	free(l);
	return NULL;
}

int layers_new(struct manager *m, struct layers **ret)
{
	struct layers *l = *ret = mo_alloc(sizeof(*l));

	l->m = m;
	l->dir = path_layers(m->config);
	return 0;
}
