/* engine.argv that leads to a container client or another launcher. What that starts is no child of
 * the rank: it is not bound, its lines are its own, and after the rank's death it runs on beside
 * the next attempt. It is searched as the program, behind programs that only run another one
 * (env, nice, timeout), and as a command in the text of a shell. Quotes of a shell are understood,
 * its variables and functions are not: what hides there is the user's own affair. */
#include "lib/recipe/launchers.h"

#include <string.h>

#include "lib/base/buf.h"

#define IMAGE_INSTEAD \
	"start the program itself, in the image that engine.container names (docs/recipe.md)"
#define IMAGE_HARMLESS \
	" pull images image login logout info version ps inspect build load " \
	"tag --version "

/* harmless: first words, between blanks, with which it starts nothing that lasts; they count in the
 * text of a shell only, where they stand beside the program. */
struct launcher {
	const char *name, *harmless, *instead;
};
static const struct launcher launchers[] = {
	{ "docker", IMAGE_HARMLESS, IMAGE_INSTEAD },
	{ "podman", IMAGE_HARMLESS, IMAGE_INSTEAD },
	{ "nerdctl", IMAGE_HARMLESS, IMAGE_INSTEAD },
	{ "apptainer", " pull build inspect cache version --version ", IMAGE_INSTEAD },
	{ "singularity", " pull build inspect cache version --version ", IMAGE_INSTEAD },
	{ "enroot", " import create list version ", IMAGE_INSTEAD },
	{ "srun", " --version ",
	  "start the program itself: moectl places one per GPU by cluster.gpus" },
};

/* Programs that run another one. valued: options that take the next word; operands: words of their
 * own before the program. */
struct wrapper {
	const char *name, *valued;
	size_t operands;
};
static const struct wrapper wrappers[] = {
	{ "env", " -u -C --unset --chdir ", 0 },
	{ "sudo", " -u -g -C -h -p ", 0 },
	{ "nice", " -n --adjustment ", 0 },
	{ "ionice", " -c -n ", 0 },
	{ "nohup", "", 0 },
	{ "setsid", "", 0 },
	{ "timeout", " -s -k --signal --kill-after ", 1 },
	{ "stdbuf", " -i -o -e ", 0 },
	{ "time", " -f -o ", 0 },
	{ "exec", " -a ", 0 },
	{ "command", "", 0 },
	{ "numactl", " -N -m -C -i -p ", 0 },
	{ "taskset", "", 1 },
};
static const char *const shells[] = { "sh", "bash", "dash", "ksh", "zsh" };
/* Words of a shell behind which a command begins. */
static const char *const openers[] = {
	"then", "do", "else", "elif", "if", "while", "until", "!", "{",
};

static const char *base_name(const char *program)
{
	const char *slash = strrchr(program, '/');

	return slash ? slash + 1 : program;
}

static const struct launcher *launcher_of(const char *program)
{
	for (size_t i = 0; i < ELEMENTSOF(launchers); i++)
		if (mo_streq(base_name(program), launchers[i].name))
			return &launchers[i];
	return NULL;
}

static bool among(const char *words, const char *word)
{
	_cleanup_(mo_freep) char *whole = mo_printf(" %s ", word);

	return strstr(words, whole);
}

static bool is_assignment(const char *word)
{
	size_t n = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");

	return n > 0 && word[n] == '=';
}

static const struct wrapper *wrapper_of(const char *program)
{
	for (size_t i = 0; i < ELEMENTSOF(wrappers); i++)
		if (mo_streq(base_name(program), wrappers[i].name))
			return &wrappers[i];
	return NULL;
}

/* Where the program stands that words[0] runs in the end; n = there is none. */
static size_t program_at(char *const *words, size_t n)
{
	size_t at = 0;

	while (at < n && is_assignment(words[at]))
		at++;
	for (const struct wrapper *w; at < n && (w = wrapper_of(words[at]));) {
		size_t operands = w->operands;

		for (at++; at < n; at++) {
			if (words[at][0] != '-' && !is_assignment(words[at]) && operands == 0)
				break;
			if (words[at][0] == '-')
				at += among(w->valued, words[at]);
			else
				operands -= !is_assignment(words[at]);
		}
	}
	return MO_MIN(at, n);
}

/* ---- the text of a shell ---- */

struct simple {
	char **words;
	size_t n;
};

static void simple_done(struct simple *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->words[i]);
	free(c->words);
	*c = (struct simple){ 0 };
}

/* The next word of the text, quotes taken away; *ret_end: a command ends behind it. NULL: the text
 * is over. */
static const char *next_word(const char *s, char **ret, bool *ret_end)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	char quote = 0;
	bool any = false;

	s += strspn(s, " \t");
	if (*s == '#')
		s += strcspn(s, "\n");
	for (; *s && (quote || !strchr(" \t\n;&|()", *s)); s++) {
		any = true;
		if (quote ? *s == quote : *s == '\'' || *s == '"')
			quote = quote ? 0 : *s;
		else if (*s == '\\' && s[1] && quote != '\'')
			mo_buf_add(&b, ++s, 1);
		else
			mo_buf_add(&b, s, 1);
	}
	*ret = any ? mo_strdup(b.data ? b.data : "") : NULL;
	s += strspn(s, " \t");
	*ret_end = !*s || strchr("\n;&|()", *s);
	return *s && *ret_end ? s + 1 : s;
}

/* The program of this command, when it is a launcher that starts something. */
static char *launcher_in(const struct simple *c)
{
	size_t at = 0;

	while (at < c->n && mo_enum_parse(openers, ELEMENTSOF(openers), c->words[at]) >= 0)
		at++;
	at += program_at(c->words + at, c->n - at);
	const struct launcher *l = at < c->n ? launcher_of(c->words[at]) : NULL;

	if (!l || (at + 1 < c->n && among(l->harmless, c->words[at + 1])))
		return NULL;
	return mo_strdup(c->words[at]);
}

/* The first launcher that the text runs, NULL = none (caller frees). */
static char *launcher_in_text(const char *text)
{
	struct simple c = { 0 };
	char *found = NULL;

	while (*text && !found) {
		_cleanup_(mo_freep) char *word = NULL;
		bool end;

		text = next_word(text, &word, &end);
		if (word)
			mo_strs_add(&c.words, &c.n, word);
		if (!end)
			continue;
		found = launcher_in(&c);
		simple_done(&c);
	}
	simple_done(&c);
	return found;
}

/* The word of a shell's words that is its text (-c, also among other letters); n = none. */
static size_t text_at(char *const *words, size_t n)
{
	for (size_t i = 1; i < n && words[i][0] == '-' && words[i][1] != '-'; i++)
		if (strchr(words[i], 'c'))
			return MO_MIN(i + 1, n);
	return n;
}

static void refuse(struct rules *k, size_t at, const struct launcher *launcher, const char *program)
{
	const struct ynode *argv = ynode_find(k->root, "engine.argv");
	const struct ynode *place = argv && argv->kind == YAML_LIST && at < argv->n
					    ? argv->items[at].value
					    : PLACE(k, "engine.argv", "engine");

	errors_at(k->errors, place, launcher->instead,
		  "engine.argv: '%s': what it starts is no child of the rank: it is not bound, "
		  "moectl cannot prove it dead, and its processes outlive the job",
		  program);
}

void launchers_check(struct rules *k)
{
	char *const *argv = k->recipe->engine.argv;
	size_t n = k->recipe->engine.n_argv, at = program_at(argv, n), text = n;
	const struct launcher *launcher;
	_cleanup_(mo_freep) char *found = NULL;

	launcher = at < n ? launcher_of(argv[at]) : NULL;
	if (launcher) {
		refuse(k, at, launcher, argv[at]);
		return;
	}
	for (size_t i = 0; at < n && i < ELEMENTSOF(shells) && text == n; i++)
		if (mo_streq(base_name(argv[at]), shells[i]))
			text = at + text_at(argv + at, n - at);
	found = text < n ? launcher_in_text(argv[text]) : NULL;
	launcher = found ? launcher_of(found) : NULL;
	if (launcher)
		refuse(k, text, launcher, found);
}
