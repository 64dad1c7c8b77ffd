/* See token.h. */
#include "agent/token.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/secret.h"
#include "lib/base/util.h"

#define JOIN_PREFIX "moej_"

struct node_token {
	const struct agent_config *config;
	char *path;
	char *own, *given, *spoken;
	char *refused;                       /* an own one that the controller does not know (any more) */
	char *vain;                          /* a given one that could not be traded */
	char *own_trouble, *given_trouble;   /* told */
};

struct node_token *node_token_new(const struct agent_config *config) {
	struct node_token *t = mo_alloc(sizeof(*t));
	t->config = config;
	t->path = mo_path(config->state_dir, "agent.token");
	return t;
}

struct node_token *node_token_free(struct node_token *t) {
	if (!t)
		return NULL;
	free(t->path);
	free(t->own);
	free(t->given);
	free(t->spoken);
	free(t->refused);
	free(t->vain);
	free(t->own_trouble);
	free(t->given_trouble);
	free(t);
	return NULL;
}

/* Trouble that lasts is said once, not at each try. */
static void load(const char *what, const char *path, char **token, char **told) {
	_cleanup_(mo_error_done) struct mo_error err = {0};
	char *got = NULL;
	int r = path ? mo_token_read(path, &got, &err) : 0;
	if (r < 0 && !mo_streq(*told, err.text))
		mo_log(MO_ERR, NULL, NULL, "%s %s", what, err.text);
	mo_str_set(told, r < 0 ? err.text : NULL);
	free(*token);
	*token = got;
}

void node_token_load(struct node_token *t) {
	load("this node's token", access(t->path, F_OK) == 0 ? t->path : NULL, &t->own, &t->own_trouble);
	load("token_file", t->config->token_file && *t->config->token_file ? t->config->token_file : NULL, &t->given, &t->given_trouble);
}

const char *node_token_choose(struct node_token *t) {
	node_token_load(t);
	mo_str_set(&t->spoken, t->own && !(t->given && mo_streq(t->own, t->refused)) ? t->own : t->given);
	return t->spoken;
}

const char *node_token(const struct node_token *t) { return t->spoken; }

bool node_token_is_join(const char *token) {
	return token && mo_starts_with(token, JOIN_PREFIX);
}

void node_token_refused(struct node_token *t, const char *token) {
	if (mo_streq(token, t->own))
		mo_str_set(&t->refused, token);
}

const char *node_token_other(const struct node_token *t) {
	return t->given && !mo_streq(t->given, t->spoken) && !mo_streq(t->given, t->vain) ? t->given : NULL;
}

void node_token_in_vain(struct node_token *t, const char *token) {
	mo_str_set(&t->vain, token);
}

int node_token_keep(struct node_token *t, const char *token) {
	_cleanup_(mo_freep) char *line = mo_printf("%s\n", token);
	int r = mo_write_file(t->path, line, strlen(line), 0600, true);
	if (r < 0)
		return r;
	mo_str_set(&t->own, token);
	mo_str_set(&t->spoken, token);
	mo_str_set(&t->refused, NULL);
	return 0;
}

const char *node_token_path(const struct node_token *t) { return t->path; }
