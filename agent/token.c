/* See token.h. */
#include "agent/token.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "lib/base/desc.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/secret.h"
#include "lib/base/util.h"

#define JOIN_PREFIX "moej_"

struct node_token {
	const struct agent_config *config;
	char *path, *path_before;
	/* before: the own one before this: a controller that was restored from a backup may know
	 * that one alone */
	char *own, *given, *before;
	bool unsynced; /* what is in state_dir may be gone when power is lost */
	char *spoken;
	char **refused;
	size_t n_refused;                  /* those that the controller does not know */
	char *vain;                        /* a given one that could not be traded */
	char *own_trouble, *given_trouble; /* as last logged */
};

struct node_token *node_token_new(const struct agent_config *config)
{
	struct node_token *t = mo_alloc(sizeof(*t));
	t->config = config;
	t->path = mo_path(config->state_dir, "agent.token");
	t->path_before = mo_path(config->state_dir, "agent.token.before");
	return t;
}

static void forget_refused(struct node_token *t)
{
	while (t->n_refused > 0)
		free(t->refused[--t->n_refused]);
	free(t->refused);
	t->refused = NULL;
}

struct node_token *node_token_free(struct node_token *t)
{
	if (!t)
		return NULL;
	free(t->path);
	free(t->path_before);
	free(t->own);
	free(t->given);
	free(t->before);
	free(t->spoken);
	forget_refused(t);
	free(t->vain);
	free(t->own_trouble);
	free(t->given_trouble);
	free(t);
	return NULL;
}

/* Trouble that lasts is said once, not at each try. */
static void load(const char *what, const char *path, char **token, char **logged)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	char *got = NULL;
	int r = path ? mo_token_read(path, &got, &err) : 0;
	if (r < 0 && !mo_streq(*logged, err.text))
		mo_log(MO_ERR, NULL, NULL, "%s %s", what, err.text);
	mo_str_set(logged, r < 0 ? err.text : NULL);
	free(*token);
	*token = got;
}

/* One that was not kept may be there by name: spoken with, it would end the one before, and a
 * loss of power could still take it. So it is synced before it is read; until that works, those
 * that were read before stay. */
static void load_own(struct node_token *t)
{
	if (t->unsynced && mo_sync_dir(t->config->state_dir) < 0)
		return;
	t->unsynced = false;
	load("this node's token", mo_access(t->path, F_OK) == 0 ? t->path : NULL, &t->own,
	     &t->own_trouble);
	free(t->before);
	t->before = NULL;
	if (mo_access(t->path_before, F_OK) == 0)
		(void)mo_token_read(t->path_before, &t->before, NULL);
}

void node_token_load(struct node_token *t)
{
	load_own(t);
	load("token_file",
	     t->config->token_file && *t->config->token_file ? t->config->token_file : NULL,
	     &t->given, &t->given_trouble);
}

static const char *first_good(const struct node_token *t)
{
	const char *const tokens[] = { t->own, t->given, t->before };
	for (size_t i = 0; i < ELEMENTSOF(tokens); i++)
		if (tokens[i] &&
		    mo_enum_parse((const char *const *)t->refused, t->n_refused, tokens[i]) < 0)
			return tokens[i];
	return NULL;
}

const char *node_token_choose(struct node_token *t)
{
	node_token_load(t);
	if (!first_good(t))
		/* all over again: the controller may know them one day */
		forget_refused(t);
	mo_str_set(&t->spoken, first_good(t));
	return t->spoken;
}

const char *node_token(const struct node_token *t)
{
	return t->spoken;
}

const char *node_token_where(const struct node_token *t)
{
	return !t->spoken                       ? "there is none"
	       : mo_streq(t->spoken, t->own)    ? t->path
	       : mo_streq(t->spoken, t->before) ? t->path_before
						: t->config->token_file;
}

bool node_token_is_join(const char *token)
{
	return token && mo_starts_with(token, JOIN_PREFIX);
}

void node_token_refused(struct node_token *t, const char *token)
{
	if (token && mo_enum_parse((const char *const *)t->refused, t->n_refused, token) < 0)
		mo_strs_add(&t->refused, &t->n_refused, token);
}

const char *node_token_other(const struct node_token *t)
{
	return t->given && !mo_streq(t->given, t->spoken) && !mo_streq(t->given, t->vain) ? t->given
											  : NULL;
}

void node_token_in_vain(struct node_token *t, const char *token)
{
	mo_str_set(&t->vain, token);
}

static int write_token(const char *path, const char *token)
{
	_cleanup_(mo_freep) char *line = mo_printf("%s\n", token);
	return mo_write_file(path, line, strlen(line), 0600, true);
}

int node_token_keep(struct node_token *t, const char *token)
{
	int r = t->own ? write_token(t->path_before, t->own) : 0;
	if (r == 0)
		r = write_token(t->path, token);
	t->unsynced = r < 0;
	if (r < 0)
		return r;
	mo_str_set(&t->before, t->own);
	mo_str_set(&t->own, token);
	mo_str_set(&t->spoken, token);
	forget_refused(t);
	return 0;
}

const char *node_token_path(const struct node_token *t)
{
	return t->path;
}
