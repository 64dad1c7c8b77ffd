/* What only a shell replaces. No shell reads a recipe: `$WORK/x` would be a directory of that very
 * name on the nodes, which nobody means, and the job dies there long after the submit. In a path it
 * is an error; in a variable's value or a word of the engine, which may mean it, a warning. */
#include <string.h>

#include "lib/recipe/rules.h"

/* "$NAME", "${..}", "$(..)" or "`..`" as it stands in the text, "~/" at its beginning. NULL = there
 * is none; else *ret_n bytes. */
static const char *shell_word(const char *text, size_t *ret_n)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_",
			  digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
				     "0123456789";

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

void rules_shell(struct rules *k)
{
	const struct recipe *r = k->recipe;

	check_path(k, "engine.workdir", r->engine.workdir);
	check_path(k, "engine.entry", r->engine.entry);
	check_path(k, "engine.python", r->engine.python);
	check_path(k, "checkpoint.dir", r->checkpoint.dir);
	check_list(k, "env");
	check_list(k, "engine.args");
}
