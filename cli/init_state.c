/* What init works on, and what its parts say alike (init_state.h): knows none of them. */

#include "cli/init_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cli/visible.h"

void init_done(struct init *i)
{
	draft_done(&i->draft);
	launch_line_done(&i->line);
	config_value_free(i->toml);
	mo_strs_clear(&i->differ, &i->n_differ);
	mo_strs_clear(&i->notes, &i->n_notes);
	free(i->label);
}

int init_refuse(const struct init *i, const char *what, const char *next)
{
	_cleanup_(mo_freep) char *shown = visible(what);
	size_t n = strcspn(shown, ":"), len = strlen(i->label);
	/* A place in the file that the label is: x.toml:3 of /a/x.toml. */
	const char *end = i->label + len - MO_MIN(n, len);
	bool same = n && shown[n] == ':' && strncmp(end, shown, n) == 0 &&
		    (end == i->label || end[-1] == '/');

	return cli_fail(CLI_USAGE, "init: %s%s%s; %s", i->label, same ? "" : ": ",
			same ? shown + n : shown, next);
}

static char *valid_name(const char *text)
{
	struct mo_buf b = { 0 };

	for (const char *p = text; *p && b.len < 60; p++)
		if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", *p) ||
		    (b.len && strchr("._-", *p)))
			mo_buf_add(&b, p, 1);
		else if (b.len)
			mo_buf_str(&b, "-");
	return mo_buf_take(&b);
}

void init_name(struct init *i, const char *text)
{
	char *name = i->draft.name ? NULL : valid_name(text);

	if (name && *name)
		i->draft.name = name;
	else
		free(name);
}

int init_no_out(const char *out, int why)
{
	if (why == -EEXIST)
		return cli_fail(CLI_USAGE,
				"init: %s: it is there already, and nothing was changed; --force "
				"overwrites it",
				out);
	return cli_fail(CLI_USAGE,
			"init: --out %s: %s; nothing was written: give a file that can be made",
			out, strerror(-why));
}
