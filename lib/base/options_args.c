/* Options of a command line (options.h). */
#include "lib/base/options_args.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/base/options.h"

static int args_set(const struct mo_options *o, void *obj, const char *text, struct mo_error *err)
{
	const char *eq = strchr(text, '=');
	if (!eq || eq == text)
		return mo_error_set(err, -EINVAL, "--set %s: expected --set key=value", text);
	_cleanup_(mo_freep) char *key = mo_strndup(text, (size_t)(eq - text));
	_cleanup_(mo_error_done) struct mo_error e = { 0 };
	int r = mo_options_set(o, obj, key, eq + 1, &e);
	return r < 0 ? mo_error_set(err, r, "--set %s: %s", text, mo_error_text(&e, r)) : 0;
}

static bool is_part(const char *name)
{
	size_t n = strlen(name);
	return name[0] != '.' && n > 5 && mo_streq(name + n - 5, ".yaml");
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The *.yaml files of the directory beside file, X.d for X.yaml, in the order of their names. */
static int args_parts(const struct mo_options *o, void *obj, const char *file, struct mo_error *err)
{
	size_t n = strlen(file), stem = n > 5 && mo_streq(file + n - 5, ".yaml") ? n - 5 : n;
	_cleanup_(mo_freep) char *dir = mo_printf("%.*s.d", (int)stem, file);
	_cleanup_(mo_dir_freep) struct mo_dir *d = mo_dir_open(AT_FDCWD, dir, 0);
	char **parts = NULL;
	size_t n_parts = 0;
	int r = 0;
	if (!d)
		return errno == ENOENT || errno == ENOTDIR
			       ? 0
			       : mo_error_set(err, -errno, "%s: %s", dir, strerror(errno));
	for (const char *name; (name = mo_dir_next(d));)
		if (is_part(name))
			*MO_GROW(parts, n_parts) = mo_strdup(name);
	if (n_parts > 1)
		qsort(parts, n_parts, sizeof(*parts), by_bytes);
	for (size_t i = 0; i < n_parts; i++) {
		_cleanup_(mo_freep) char *path = mo_path(dir, "%s", parts[i]);
		if (r >= 0)
			r = mo_options_file(o, obj, path, err);
		free(parts[i]);
	}
	free(parts);
	return r;
}

static int args_file(const struct mo_options *o, void *obj, const char *given,
		     const char *default_file, struct mo_error *err)
{
	const char *file = given ? given : default_file;
	if (file[0] == '\0')
		return 0;
	int r = given || mo_access(file, F_OK) == 0 ? mo_options_file(o, obj, file, err) : 0;
	return r < 0 ? r : args_parts(o, obj, file, err);
}

#define OPT_ACTION 2000
#define ACTIONS_MAX 8

static void print_help(const struct mo_options *o, const char *program)
{
	printf("usage: %s [--config FILE] [--set key=value]... [--check-config] [--example-config] "
	       "[--version]\n",
	       program);
	for (size_t i = 0; i < o->n_actions; i++)
		printf("       %s --%s%s%s: %s\n", program, o->actions[i].name,
		       o->actions[i].value_name ? " " : "",
		       o->actions[i].value_name ? o->actions[i].value_name : "", o->actions[i].doc);
}

int mo_options_args(const struct mo_options *o, const char *program, const char *default_file,
		    int argc, char *const *argv, void *obj, struct mo_error *err)
{
	enum { OPT_CONFIG = 1000, OPT_SET, OPT_CHECK, OPT_EXAMPLE, OPT_VERSION, OPT_HELP };
	struct option longs[6 + ACTIONS_MAX + 1] = {
		{ "config", required_argument, NULL, OPT_CONFIG },
		{ "set", required_argument, NULL, OPT_SET },
		{ "check-config", no_argument, NULL, OPT_CHECK },
		{ "example-config", no_argument, NULL, OPT_EXAMPLE },
		{ "version", no_argument, NULL, OPT_VERSION },
		{ "help", no_argument, NULL, OPT_HELP },
	};
	assert(o->n_actions <= ACTIONS_MAX);
	for (size_t i = 0; i < o->n_actions; i++)
		longs[6 + i] =
			(struct option){ o->actions[i].name,
					 o->actions[i].value_name ? required_argument : no_argument,
					 NULL, OPT_ACTION + (int)i };
	const char *file = NULL;
	bool check = false;
	mo_options_init(o, obj);
	optind = 1;
	opterr = 0;
	for (int pass = 0; pass < 2; pass++) { /* the file first, then --set in order */
		int c;
		optind = 1;
		while ((c = getopt_long(argc, argv, ":", longs, NULL)) != -1) {
			if (c == OPT_CONFIG)
				file = optarg;
			else if (c == OPT_CHECK)
				check = true;
			else if (c == OPT_VERSION) {
				printf("%s %s\n", program, MO_VERSION);
				return MO_ARGS_DONE;
			} else if (c == OPT_EXAMPLE) {
				_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
				_cleanup_(mo_freep) char *head =
					mo_printf("Configuration of %s.", program);
				mo_options_example(o, head, &b);
				fputs(b.data, stdout);
				return MO_ARGS_DONE;
			} else if (c == OPT_HELP) {
				print_help(o, program);
				return MO_ARGS_DONE;
			} else if (c >= OPT_ACTION) {
				mo_str_set(mo_options_action_at(obj, &o->actions[c - OPT_ACTION]),
					   o->actions[c - OPT_ACTION].value_name ? optarg : "");
			} else if (c == ':')
				return mo_error_set(err, -EINVAL,
						    "%s: a value is missing; see --help",
						    argv[optind - 1]);
			else if (c == '?')
				return mo_error_set(err, -EINVAL, "%s: unknown option; see --help",
						    argv[optind - 1]);
			else if (pass == 1) {
				int r = args_set(o, obj, optarg, err);
				if (r < 0)
					return r;
			}
		}
		if (optind < argc)
			return mo_error_set(err, -EINVAL, "%s: unexpected argument; see --help",
					    argv[optind]);
		if (pass == 0) {
			int r = args_file(o, obj, file, default_file, err);
			if (r < 0)
				return r;
		}
	}
	return check ? MO_ARGS_CHECK : MO_ARGS_RUN;
}
