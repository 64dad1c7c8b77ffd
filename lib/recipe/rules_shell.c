/* What only a shell replaces. No shell reads a recipe: `$WORK/x` would be a directory of that very
 * name on the nodes, which nobody means, and the job dies there long after the submit. In a path it
 * is an error; in a variable's value or a word of the engine, which may mean it, a warning. */
#include "lib/recipe/rules_shell.h"

#include <string.h>

#include "lib/recipe/keys.h"
#include "lib/recipe/shell.h"

/* "$NAME", "${..}", "$(..)" or "`..`" as it stands in the text, "~/" at its beginning. NULL = there
 * is none; else *ret_n bytes. */
static const char *shell_word(const char *text, size_t *ret_n)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_",
			  digits[] =
				  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";

	if (mo_starts_with(text, "~/")) {
		*ret_n = 1;
		return text;
	}
	for (const char *p = text; (p = strpbrk(p, "$`")); p++) {
		char close = p[0] == '`' ? '`' : p[1] == '{' ? '}' : p[1] == '(' ? ')' : 0;
		const char *end = close ? strchr(p + 1 + (p[0] == '$'), close) : NULL;

		*ret_n = end ? (size_t)(end + 1 - p) : 1 + strspn(p + 1, digits);
		if (end || (p[0] == '$' && strspn(p + 1, letters)))
			return p;
	}
	return NULL;
}

static void check_path(struct rules *k, const char *path, const char *text)
{
	size_t n = 0;
	const char *word = text ? shell_word(text, &n) : NULL;

	if (word)
		errors_at(k->errors, PLACE(k, path),
			  mo_streq(path, "checkpoint.dir")
				  ? "write it out; {user} is the name of the submitter"
				  : "write it out",
			  "%s: '%.200s': no shell reads a recipe, and %.*s stays as it is", path,
			  text, (int)MO_MIN(n, 100u), word);
}

static void check_list(struct rules *k, const char *path)
{
	const struct ynode *list = ynode_find(k->root, path);
	size_t n = 0;

	for (size_t i = 0; list && list->kind != YAML_SCALAR && i < list->n; i++) {
		const struct ynode *v = list->items[i].value;
		const char *word = v->kind == YAML_SCALAR && !ynode_is_null(v)
					   ? shell_word(v->text, &n)
					   : NULL;

		if (word)
			rules_warn(k, v,
				   "%s: '%.100s': no shell reads a recipe, and %.*s stays as it "
				   "is: write it out, unless the engine replaces it",
				   path, v->text, (int)MO_MIN(n, 100u), word);
	}
}

static const struct ynode *word_at(const struct ynode *list, size_t i)
{
	const struct ynode *v =
		list && list->kind == YAML_LIST && i < list->n ? list->items[i].value : NULL;

	return v && v->kind == YAML_SCALAR && !ynode_is_null(v) ? v : NULL;
}

static bool among(const char *const *names, size_t n, const char *word)
{
	for (size_t i = 0; i < n; i++)
		if (mo_streq(names[i], word))
			return true;
	return false;
}

/* Words between which a shell would begin another command, or another file: whatever is started
 * gets them as they are. */
static void check_operators(struct rules *k, const char *path)
{
	static const char *const operators[] = { "&&", "||", "|",  ";",  "&",   ">",
						 ">>", "<",  "2>", "&>", "2>&1" };
	const struct ynode *list = ynode_find(k->root, path);

	for (size_t i = 0; list && list->kind == YAML_LIST && i < list->n; i++) {
		const struct ynode *v = word_at(list, i);

		if (!v || !v->text || !among(operators, ELEMENTSOF(operators), v->text))
			continue;
		rules_warn(k, v,
			   "%s: no shell reads a recipe, and the program gets '%s' as a word: %s",
			   path, v->text,
			   mo_streq(path, "engine.argv")
				   ? "write [/bin/sh, -c, \"...\"] where it is meant"
				   : "leave it out");
		return;
	}
}

/* "{checkpoint.dirr}" */
static void check_braces(struct rules *k, const char *path)
{
	const struct ynode *list = ynode_find(k->root, path);

	for (size_t i = 0; list && list->kind != YAML_SCALAR && i < list->n; i++) {
		const struct ynode *v = list->items[i].value;
		const char *s = v->kind == YAML_SCALAR && v->text ? strchr(v->text, '{') : NULL;

		for (; s; s = strchr(s + 1, '{')) {
			size_t n = strspn(s + 1, "abcdefghijklmnopqrstuvwxyz_.");
			_cleanup_(mo_freep) char *word =
				s[n + 1] == '}' ? mo_strndup(s + 1, n) : NULL;
			bool is_path = word && strchr(word, '.') && !recipe_path_known(word);
			const char *near = is_path ? recipe_path_near(word) : NULL;

			if (near)
				rules_warn(k, v, "%s: nothing replaces {%s}; did you mean {%s}?",
					   path, word, near);
		}
	}
}

/* NAME=value, as a shell takes it in front of a command. */
static bool is_assignment(const char *word)
{
	size_t n = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");

	return n && word[n] == '=' && !(*word >= '0' && *word <= '9');
}

/* What starts processes of its own for the GPUs of a node, once for each of them. */
static bool starts_ranks(const char *program, const struct ynode *dash, const struct ynode *module)
{
	static const char *const launchers[] = { "torchrun", "accelerate", "deepspeed", "mpirun",
						 "mpiexec" };
	static const char *const modules[] = { "torch.distributed.run",
					       "torch.distributed.launch" };
	const char *slash = strrchr(program, '/'), *name = slash ? slash + 1 : program;

	return among(launchers, ELEMENTSOF(launchers), name) ||
	       (mo_starts_with(name, "python") && dash && mo_streq(dash->text, "-m") && module &&
		among(modules, ELEMENTSOF(modules), module->text));
}

static void check_program(struct rules *k)
{
	const struct ynode *list = ynode_find(k->root, "engine.argv"), *first = word_at(list, 0);
	const char *program = first && first->text ? first->text : "";
	size_t blank = strcspn(program, " \t");

	if (is_assignment(program))
		errors_at(k->errors, first, "give it under `env:`",
			  "engine.argv: '%.100s' sets a variable, as a shell has it, and is no "
			  "program",
			  program);
	else if (program[blank] && !memchr(program, '/', blank))
		errors_at(k->errors, first, "write each word by itself: [python3, train.py]",
			  "engine.argv: '%.100s' as a whole is the name of the program", program);
	else if (k->recipe->gpus > 1 && starts_ranks(program, word_at(list, 1), word_at(list, 2)))
		rules_warn(k, first,
			   "engine.argv: each of the %lld ranks is this command, which starts "
			   "ranks of its own: `moectl init -- COMMAND` makes the recipe that "
			   "starts one for each GPU",
			   (long long)k->recipe->gpus);
}

/* "train.py --lr 1" */
static void check_entry_words(struct rules *k)
{
	static const char *const ends[] = { ".py -", ".sh -" };
	const char *entry = k->recipe->engine.entry;

	for (size_t i = 0; entry && i < ELEMENTSOF(ends); i++)
		if (strstr(entry, ends[i]))
			errors_at(k->errors, PLACE(k, "engine.entry"),
				  "give its words as engine.args",
				  "engine.entry: '%.100s' is more than the name of a script",
				  entry);
}

void rules_shell(struct rules *k)
{
	const struct recipe *r = k->recipe;

	check_path(k, "engine.workdir", r->engine.workdir);
	check_path(k, "engine.entry", r->engine.entry);
	check_path(k, "engine.python", r->engine.python);
	check_path(k, "checkpoint.dir", r->checkpoint.dir);
	check_list(k, "engine.container.mounts");
	check_list(k, "env");
	check_list(k, "engine.args");
	check_program(k);
	check_entry_words(k);
	check_operators(k, "engine.argv");
	check_operators(k, "engine.args");
	check_braces(k, "engine.argv");
	check_braces(k, "engine.args");
}
