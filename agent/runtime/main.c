/* moe-runtime: puts the questions of config/runtimes/NAME.yaml to a container runtime of the
 * site's. Its images are used where they lie; no rank is ever its process (decision 021). Started
 * by moe-namespace and moe-agent, as root, and gone after some seconds:
 *
 * moe-runtime hold NAME IMAGE STEP: keeps the image from being removed, by a container of the
 *   step's that is never started, and says what the image is: JSON of struct runtime_image.
 * moe-runtime digest NAME IMAGE [DIR]: which image that name is here; keeps nothing but the answer,
 *   in DIR.
 * moe-runtime start NAME IMAGE STEP DIR: starts a container of it for the step, whose only process
 *   is moe-hold and ends with DIR/life (decision 023), and says the same without directories. What
 *   `digest` was answered a moment ago (in DIR/../..) is not asked again.
 * moe-runtime release NAME STEP: ends either. No process of the step is left.
 * moe-runtime sweep NAME NODE STEPSDIR: the same for all steps of the node that have no directory
 *   there: what an agent before this one did not come to. A step has its directory before
 *   something is kept for it, so one that begins meanwhile is not met.
 *
 * Exit status 0; 1 and one line on standard output, "ERRNO WHAT", as moe-namespace has it; 2 for
 * bad arguments. What the runtime says is never believed to prove the end of anything. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/core/stepd/runtime_image.h"
#include "agent/runtime/memory.h"
#include "agent/runtime/run.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/line.h"
#include "lib/recipe/runtime_file.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

/* below that of moe-stepd for moe-namespace, so that what hangs is named */
#define HOLD_DEADLINE_US 20000000
#define RELEASE_DEADLINE_US 60000000

/* One runtime, asked until a time. */
struct asking {
	struct runtime runtime;
	struct runtime_words words;
	int64_t end_us;
	struct mo_buf answer; /* of the last command */
};

static int ask(struct asking *a, char *const *words, size_t n, struct mo_error *err)
{
	char **argv = runtime_command(words, n, &a->words);
	size_t n_argv = n + 1;

	mo_buf_consume(&a->answer, a->answer.len);
	int r = run_command(argv, a->end_us, &a->answer, err);

	mo_strs_clear(&argv, &n_argv);
	return r;
}
#define ASK(a, f, err) ask(a, (a)->runtime.f, (a)->runtime.n_##f, err)

static int read_config(const struct asking *a, const char *text, struct runtime_image *ret,
		       struct mo_error *err)
{
	_cleanup_(runtime_config_done) struct runtime_config c;
	_cleanup_(mo_error_done) struct mo_error why = { 0 };

	mo_desc_init(&runtime_config_desc, &c);
	int r = wire_decode(&runtime_config_desc, text, strlen(text), false, &c, &why);

	if (r < 0)
		return mo_error_set(err, -EBADMSG, "%s says of the image what is no JSON: %s",
				    a->runtime.name, mo_error_text(&why, r));
	for (size_t i = 0; i < c.n_env; i++)
		mo_strs_add(&ret->env, &ret->n_env, c.env[i]);
	if (c.workdir && *c.workdir)
		mo_str_set(&ret->workdir, c.workdir);
	return 0;
}

/* What a runtime that answers has refused is the image's name; all else is this node's. */
static int ask_image(struct asking *a, struct mo_error *err)
{
	_cleanup_(mo_error_done) struct mo_error why = { 0 };
	int r = ASK(a, image, &why);

	if (r == -EREMOTEIO) {
		r = ASK(a, kept, err);
		if (r < 0)
			return r;
		return mo_error_set(err, -ENOENT, "%s has no image %s on this node (%s)",
				    a->runtime.name, a->words.image,
				    mo_error_text(&why, -EREMOTEIO));
	}
	if (r < 0)
		return mo_error_set(err, r == -ENOENT ? -ENOPKG : r, "%s", mo_error_text(&why, r));
	return 0;
}

static int start(struct asking *a, struct mo_error *err)
{
	_cleanup_(mo_freep) char *program = mo_libexec("moe-hold");

	if (!program)
		return mo_error_set(err, -ENOPKG, "moe-hold is missing");
	if (a->runtime.n_start == 0)
		return mo_error_set(err, -ENOTSUP,
				    "the file runtimes/%s.yaml of this node has no `start`",
				    a->runtime.name);
	a->words.hold = program;
	int r = ASK(a, start, err);

	a->words.hold = NULL;
	return r;
}

/* Of the image that the answer names. Its directories are of the image that is kept then: its id is
 * a digest of them. */
static int hold(struct asking *a, struct mo_error *err)
{
	_cleanup_(runtime_image_done) struct runtime_image image;
	_cleanup_(mo_buf_done) struct mo_buf out = { 0 };
	struct runtime_answer said;

	mo_desc_init(&runtime_image_desc, &image);
	runtime_answer_read(a->answer.data, &said);
	int r = runtime_image_names(said.names, &image, err);

	if (r == 0)
		r = read_config(a, said.config, &image, err);
	if (r == 0 && !a->words.dir)
		r = runtime_image_layers(said.layers, &image, err);
	a->words.id = image.id;
	if (r == 0)
		r = a->words.dir ? start(a, err) : ASK(a, keep, err);
	a->words.id = NULL;
	if (r < 0)
		return r;
	wire_encode(&runtime_image_desc, &image, &out);
	printf("%s\n", out.data);
	return 0;
}

/* What it answered a moment ago may be no longer so: what a runtime refuses by that is asked for
 * anew. */
static int hold_known(struct asking *a, struct mo_error *err)
{
	_cleanup_(mo_freep) char *dir = a->words.dir ? mo_path(a->words.dir, "../..") : NULL;
	_cleanup_(mo_error_done) struct mo_error why = { 0 };

	if (dir && memory_read(dir, a->runtime.name, a->words.image, &a->answer)) {
		int r = hold(a, &why);

		if (r != -EREMOTEIO)
			return r < 0 ? mo_error_set(err, r, "%s", mo_error_text(&why, r)) : 0;
		(void)ASK(a, release, NULL); /* or the name is taken, and the next says so */
	}
	int r = ask_image(a, err);

	return r < 0 ? r : hold(a, err);
}

static int digest(struct asking *a, const char *dir, struct mo_error *err)
{
	_cleanup_(runtime_image_done) struct runtime_image image;
	struct runtime_answer said;

	mo_desc_init(&runtime_image_desc, &image);
	int r = ask_image(a, err);

	if (r < 0)
		return r;
	if (dir) /* an agent that runs on over an upgrade names none */
		memory_write(dir, a->runtime.name, a->words.image, a->answer.data);
	runtime_answer_read(a->answer.data, &said);
	r = runtime_image_names(said.names, &image, err);
	if (r == 0)
		printf("%s\n", image.digest);
	return r;
}

/* Surely: a directory that cannot be looked at counts as there. */
static bool is_left(const char *step, const char *node, const char *steps)
{
	_cleanup_(mo_freep) char *name = runtime_step_dir(step, node);
	_cleanup_(mo_freep) char *dir = name ? mo_path(steps, "%s", name) : NULL;

	return dir && mo_access(dir, F_OK) < 0 && errno == ENOENT;
}

static int sweep(struct asking *a, const char *node, const char *steps, struct mo_error *err)
{
	int r = ASK(a, kept, err);
	_cleanup_(mo_freep) char *all = r == 0 ? mo_strdup(a->answer.data) : NULL;

	for (const char *at = all; r == 0 && *at;) {
		size_t length = strcspn(at, "\n");
		_cleanup_(mo_freep) char *step = mo_strndup(at, length);

		a->words.step = step;
		if (is_left(step, node, steps))
			r = ASK(a, release, err);
		at += length + (at[length] == '\n');
	}
	return r;
}

static int run(char *argv[], struct mo_error *err)
{
	struct asking a = { 0 };
	const char *verb = argv[1];
	bool starts = mo_streq(verb, "start"), holds = starts || mo_streq(verb, "hold"),
	     tells = mo_streq(verb, "digest");

	a.end_us = mo_clock_boot_us() + (holds || tells ? HOLD_DEADLINE_US : RELEASE_DEADLINE_US);
	mo_desc_init(&runtime_desc, &a.runtime);
	int r = runtime_load(argv[2], &a.runtime, err);

	if (r == 0 && holds) {
		a.words = (struct runtime_words){ .image = argv[3],
						  .step = argv[4],
						  .dir = starts ? argv[5] : NULL };
		r = hold_known(&a, err);
	} else if (r == 0 && tells) {
		a.words.image = argv[3];
		r = digest(&a, argv[4], err);
	} else if (r == 0 && mo_streq(verb, "release")) {
		a.words.step = argv[3];
		r = ASK(&a, release, err);
	} else if (r == 0)
		r = sweep(&a, argv[3], argv[4], err);
	mo_buf_done(&a.answer);
	mo_desc_done(&runtime_desc, &a.runtime);
	return r;
}

static bool are_good(int argc, char *argv[])
{
	static const struct {
		const char *verb;
		int argc;
		bool image;
	} rows[] = { { "hold", 5, true },   { "start", 6, true },    { "digest", 5, true },
		     { "digest", 4, true }, { "release", 4, false }, { "sweep", 5, false } };

	for (size_t i = 0; argc > 1 && i < ELEMENTSOF(rows); i++)
		if (mo_streq(argv[1], rows[i].verb) && argc == rows[i].argc)
			return !rows[i].image || runtime_image_valid(argv[3]);
	return false;
}

int main(int argc, char *argv[])
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };

	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		printf("moe-runtime %s\n", MO_VERSION);
		return 0;
	}
	if (!are_good(argc, argv)) {
		fprintf(stderr,
			"usage: moe-runtime hold NAME IMAGE STEP | start NAME IMAGE STEP DIR "
			"| digest NAME IMAGE [DIR] | release NAME STEP | sweep NAME NODE STEPSDIR "
			"(the "
			"agent starts "
			"it)\n");
		return 2;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	int r = run(argv, &err);

	if (r < 0) {
		_cleanup_(mo_freep) char *all = mo_strdup(mo_error_text(&err, r));
		size_t n = mo_line_plain(all, strlen(all), all);

		printf("%d %.*s\n", -r, (int)n, all);
	}
	return r < 0 ? 1 : 0;
}
