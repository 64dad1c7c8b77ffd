/* The commands of a script (launch_line.h), one after the other: what sets variables and
 * directories is followed, what starts something is read as a launch, what runs another
 * script is gone into, and everything else is named as not run. Nothing is run here. */
#include "lib/recipe/launch_script.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/recipe/launch_builtin.h"
#include "lib/recipe/launch_envs.h"
#include "lib/recipe/launch_found.h"
#include "lib/recipe/launch_options.h"
#include "lib/recipe/launch_run.h"
#include "lib/recipe/launch_slurm.h"
#include "lib/recipe/launch_wrapper.h"
#include "lib/recipe/shell_test.h"
#include "lib/recipe/shell_vars.h"

#define DEPTH_MAX 8 /* scripts that run scripts */
#define COMMANDS_MAX 20000

static void run_text(struct run *r, const char *text);

/* ---- commands that change what later ones mean ---- */

/* ---- scripts of scripts ---- */

static char *text_of(struct run *r, const char *path)
{
	_cleanup_(mo_freep) char *whole = shell_path(&r->shell, path);

	return r->world && r->world->read ? r->world->read(r->world->arg, whole ? whole : path)
					  : NULL;
}

/* A text of its own, behind the words that lead to it. */
static void go_into(struct run *r, const char *text, char *const *before, size_t n)
{
	size_t had = r->before.n;
	size_t first = r->blocks.first;
	enum shell_truth last = r->blocks.last;
	int op = r->blocks.op;

	for (size_t i = 0; i < n; i++) {
		size_t name = launch_assigned(before[i]);

		mo_strs_add(&r->before.items, &r->before.n, before[i]);
		if (name)
			shell_set_text(&r->shell, before[i], name, before[i] + name + 1, false);
	}
	r->blocks.first = r->blocks.n;
	r->blocks.op = 0;
	char *plain = mo_strdup(text);
	shell_plain(plain); /* what is not known stays so when it is read again */
	*MO_GROW(r->texts.items, r->texts.n) = plain; /* functions of it may be called later */
	run_text(r, plain);
	while (r->blocks.n > r->blocks.first)
		blocks_drop(&r->blocks);
	r->blocks.first = first;
	r->blocks.last = last;
	r->blocks.op = op;
	while (r->before.n > had)
		free(r->before.items[--r->before.n]);
}

static bool is_shell(const char *word)
{
	const char *slash = strrchr(word, '/'), *name = slash ? slash + 1 : word;

	return mo_streq(name, "bash") || mo_streq(name, "sh") || mo_streq(name, "zsh");
}

static bool is_script_name(const char *word)
{
	static const char *const ends[] = { ".sh", ".bash", ".slurm", ".sbatch", ".job" };
	size_t n = strlen(word);

	for (size_t i = 0; i < ELEMENTSOF(ends); i++)
		if (n > strlen(ends[i]) && mo_streq(word + n - strlen(ends[i]), ends[i]))
			return true;
	return false;
}

/* source X/bin/activate, . env.sh: what they set is set here. */
static bool take_source(struct run *r, const struct shell_command *c)
{
	const struct shell_words *w = &c->words;
	static const char end[] = "/bin/activate";

	if (w->n < 2 || (!mo_streq(w->items[0], "source") && !mo_streq(w->items[0], ".")))
		return false;
	const char *path = w->items[1];
	size_t n = strlen(path), m = strlen(end);

	if (n > m && mo_streq(path + n - m, end) && !shell_unknown(path)) {
		_cleanup_(mo_freep) char *venv = mo_strndup(path, n - m),
					 *whole = shell_path(&r->shell, venv);

		free(r->python);
		r->python = mo_printf("%s/bin/python3", whole ? whole : venv);
		return true;
	}
	static const char conda[] = "/etc/profile.d/conda.sh";
	size_t k = strlen(conda);

	if (n > k && mo_streq(path + n - k, conda) && !shell_unknown(path)) {
		_cleanup_(mo_freep) char *base = mo_strndup(path, n - k);

		free(r->conda);
		r->conda = shell_path(&r->shell, base);
		return true;
	}
	_cleanup_(mo_freep) char *text = r->depth < DEPTH_MAX ? text_of(r, path) : NULL;

	if (text)
		go_into(r, text, NULL, 0);
	return text;
}

/* bash FILE WORD.., ./FILE.sh WORD.., sbatch FILE, bash -c TEXT, eval TEXT, bash << END. */
static bool take_script(struct run *r, const struct shell_command *c)
{
	const struct shell_words *w = &c->words;
	struct launch_line scratch;
	struct shell *s = &r->shell;

	launch_line_init(&scratch);
	size_t at = launch_line_head(&scratch, w->items, w->n), head = at;
	launch_line_done(&scratch);
	bool batch = at && mo_streq(w->items[at - 1], "sbatch");
	bool shell = at < w->n && is_shell(w->items[at]), text_is_word = false;

	for (size_t i = 0; i < head; i++)
		batch |= mo_streq(w->items[i], "sbatch");
	if (at < w->n && mo_streq(w->items[at], "eval")) {
		_cleanup_(mo_freep) char *text = run_joined(w->items + at + 1, w->n - at - 1);
		if (r->depth < DEPTH_MAX)
			go_into(r, text, w->items, head);
		return true;
	}
	for (at += shell; shell && at < w->n && w->items[at][0] == '-' && !text_is_word; at++)
		text_is_word = strchr(w->items[at], 'c') && w->items[at][1] != '-';
	if (r->depth >= DEPTH_MAX || (at >= w->n && !c->here))
		return false;
	if (text_is_word || at >= w->n) {
		if (at >= w->n && !shell && !batch)
			return false;
		go_into(r, at < w->n ? w->items[at] : c->here, w->items, head);
		return true;
	}
	if (!shell && !batch && !is_script_name(w->items[at]))
		return false;
	if (launch_is_pretrain_sh(w->items[at]) || strstr(w->items[at], "primus-cli"))
		return false; /* it is known by its name */
	_cleanup_(mo_freep) char *text = text_of(r, w->items[at]);

	if (!text) {
		mo_str_set(&r->missing, r->missing ? r->missing : w->items[at]);
		return false;
	}
	struct shell_words args = shell_take(&s->args);
	char *script = s->script, *dir = mo_strdup(s->dir);
	bool args_known = s->args_known;

	s->script = shell_path(s, w->items[at]);
	launch_set_words(s, w, at + 1);
	go_into(r, text, w->items, head);
	mo_strs_clear(&s->args.items, &s->args.n);
	s->args = args;
	s->args_known = args_known;
	free(s->script);
	s->script = script;
	free(s->dir);
	s->dir = dir;
	return true;
}

/* The output of a script is that of the launch in it. */
static bool run_script(struct run *r, const struct shell_command *c, const char *behind)
{
	int score = r->score;
	struct shell_command outer = *c;

	if (!take_script(r, c))
		return false;
	outer.here = NULL; /* it was the script */
	if (r->score > score)
		run_output(&r->best, &outer, behind);
	return true;
}

/* ---- all of them ---- */

/* Commands that only say or look at something. */
#define HARMLESS \
	"echo printf set shopt true false : date ls pwd wait sleep trap hostname nvidia-smi " \
	"rocm-smi " \
	"rocminfo amd-smi which type command tee cat grep head tail popd local continue break " \
	"test " \
	"scontrol tput clear uname whoami env printenv ps awk sed nproc free df lscpu"

static void one_command(struct run *r, const struct shell_command *c, const char **p)
{
	const struct shell_words *w = &c->words;
	struct blocks *b = &r->blocks;
	const char *word = w->items[0];

	enum shell_truth worked = blocks_asks(b) ? SHELL_EITHER : SHELL_TRUE;

	b->last = SHELL_TRUE;
	if (mo_streq(word, "[") || mo_streq(word, "test") || mo_streq(word, "[[")) {
		bool closed = !mo_streq(word, "test");

		b->last = shell_test(w->items + 1, w->n - 1 - (closed && w->n > 1));
	} else if (mo_streq(word, "((") && w->n == 2) {
		int64_t v;

		b->last = shell_number(&r->shell, w->items[1], &v) ? v ? SHELL_TRUE : SHELL_FALSE
								   : SHELL_EITHER;
	} else if (mo_streq(word, "false")) {
		b->last = SHELL_FALSE;
	} else if (mo_streq(word, "getopts") && w->n > 2) {
		b->last = shell_getopts(&r->shell, w->items[1], w->items[2]);
	} else if (!launch_take_builtin(r, c) && !launch_take_conda(r, c) &&
		   !launch_take_modules(r, c) && !blocks_call(b, c, 0, p) && !take_source(r, c) &&
		   !run_script(r, c, *p) && !run_launch(r, c, *p)) {
		_cleanup_(mo_freep) char *text = run_joined(w->items, w->n);
		const char *slash = strrchr(word, '/');

		b->last = mo_streq(word, "true") || mo_streq(word, ":") ? SHELL_TRUE : worked;
		if (r->shell.follow == SHELL_RUN &&
		    (!launch_among(HARMLESS, slash ? slash + 1 : word,
				   strlen(slash ? slash + 1 : word)) ||
		     (c->output && mo_streq(word, "cat") && c->here)))
			run_name(r->score ? &r->behind : &r->left, text);
	}
}

static void run_command(struct run *r, const char *begin, struct shell_command *c, const char **p)
{
	struct blocks *b = &r->blocks;
	enum shell_truth last = b->last;
	int op = b->op;
	size_t n_blocks = b->n;
	size_t at = blocks_take(b, c, begin, p);
	bool asked =
		at && b->n >= n_blocks && at < c->words.n && mo_streq(c->words.items[at - 1], "!");
	struct shell_command rest = *c;

	rest.words = (struct shell_words){ at < c->words.n ? c->words.items + at : NULL,
					   c->words.n - at };
	r->shell.follow = blocks_follow(b);
	if (rest.words.n && r->shell.follow != SHELL_SKIP) {
		one_command(r, &rest, p);
		b->last = asked ? shell_not(b->last) : b->last;
		if (op == SHELL_AND)
			b->last = shell_and(last, b->last);
		else if (op == SHELL_OR)
			b->last = shell_or(last, b->last);
	}
	bool blank = c->words.n == 0 && !c->arrays && c->op == '\n'; /* behind an && */

	if (at < c->words.n || (c->words.n == 0 && !blank) || c->op == SHELL_AND ||
	    c->op == SHELL_OR)
		b->op = c->op;
	if (c->arrays && op != SHELL_AND && op != SHELL_OR)
		b->last = SHELL_TRUE;
}

static void run_text(struct run *r, const char *text)
{
	if (r->depth++ == 0) {
		r->text = text;
		r->end = text + strlen(text);
	}
	launch_read_sbatch(r, text);
	launch_set_slurm(r);
	launch_set_submitted(r, text);
	for (const char *p = text; *p && !r->ended && r->commands++ < COMMANDS_MAX;) {
		_cleanup_(shell_command_done) struct shell_command c = { 0 };
		const char *begin = p;

		if (blocks_pattern(&r->blocks, &p))
			continue;
		begin = p;
		if (r->depth == 1 && begin >= r->text && begin < r->end)
			r->at = begin; /* else in a function of another text */
		r->shell.follow = blocks_follow(&r->blocks);
		p = shell_read(&r->shell, p, &c);
		run_command(r, begin, &c, &p);
	}
	r->depth--;
}

static void run_done(struct run *r)
{
	shell_done(&r->shell);
	blocks_done(&r->blocks);
	mo_strs_clear(&r->before.items, &r->before.n);
	mo_strs_clear(&r->sbatch.items, &r->sbatch.n);
	mo_strs_clear(&r->left.items, &r->left.n);
	mo_strs_clear(&r->behind.items, &r->behind.n);
	mo_strs_clear(&r->others.items, &r->others.n);
	mo_strs_clear(&r->plain.items, &r->plain.n);
	mo_error_done(&r->why);
	free(r->called);
	mo_strs_clear(&r->activated.items, &r->activated.n);
	mo_strs_clear(&r->directives.items, &r->directives.n);
	mo_strs_clear(&r->texts.items, &r->texts.n);
	mo_strs_clear(&r->modules.items, &r->modules.n);
	free(r->python);
	free(r->conda);
	free(r->missing);
}

static int result(struct run *r, const char *text, struct launch_line *ret, struct mo_error *err)
{
	const struct launch_world *w = r->world;

	if (r->score) {
		run_finish(r, text);
		*ret = r->best;
		return 0;
	}
	if (r->missing) {
		shell_plain(r->missing);
		for (char *p = r->missing; *p; p++)
			*p = (unsigned char)*p < 0x20 || *p == 0x7f ? '?' : *p;
		return mo_error_set(err, -ENOENT, "%.200s: there is no such script in %s",
				    r->missing,
				    w && w->dir ? w->dir : "the directory in which it is started");
	}
	return -EINVAL;
}

int launch_line_script(const char *text, const struct launch_world *world, struct launch_line *ret,
		       struct mo_error *err)
{
	_cleanup_(run_done) struct run r = { .world = world };

	shell_init(&r.shell, world);
	r.blocks.shell = &r.shell;
	run_text(&r, text);
	int e = result(&r, text, ret, err);

	if (e == -EINVAL && r.contained)
		return mo_error_set(err, e, "%s", r.why.text);
	if (e == -EINVAL && r.shell.args_used)
		return mo_error_set(err, e,
				    "no line of it starts a training without the words that the "
				    "script is called with: moectl init -- bash SCRIPT WORDS");
	return e != -EINVAL ? e
			    : mo_error_set(err, -EINVAL,
					   "no line of it starts a training: expected torchrun, "
					   "primus-cli, deepspeed, accelerate launch, python, or "
					   "srun before one of them");
}

int launch_line_words(char *const *words, size_t n, const struct launch_world *world,
		      struct launch_line *ret, struct mo_error *err)
{
	_cleanup_(run_done) struct run r = { .world = world };
	struct shell_command c = { .words = { (char **)words, n } };
	const char *end = "";

	if (n == 0)
		return mo_error_set(err, -EINVAL, "there are no words");
	shell_init(&r.shell, world);
	r.blocks.shell = &r.shell;
	r.depth = 1;
	if (!take_source(&r, &c) && !take_script(&r, &c))
		run_launch(&r, &c, end);
	int e = result(&r, "", ret, err);

	if (e == -EINVAL && r.why.text)
		return mo_error_set(err, -EINVAL, "%s", r.why.text);
	return e != -EINVAL ? e : mo_error_set(err, -EINVAL, "no command of it starts a training");
}
