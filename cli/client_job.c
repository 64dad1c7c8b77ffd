/* The job that a person names: by its id, its name, a file of its recipe. */
#include "cli/client_job.h"

#include <json-c/json.h>
#include <string.h>

#include "cli/client.h"
#include "cli/options.h"
#include "cli/value.h"
#include "lib/base/parse.h"

#define IDS_NAMED 8
#define SAME_NAME_MAX 20 /* jobs of a name that are read */

bool is_job_id(const char *word)
{
	return word[0] == 'j' && word[1] == '-' && word[2] &&
	       strspn(word + 2, "0123456789") == strlen(word + 2);
}

/* The name among those of the document's items that is most like this word; NULL none. */
static const char *nearest(struct json_object *items, const char *word)
{
	_cleanup_(mo_freep) const char **names = mo_alloc_array(js_len(items) + 1, sizeof(*names));
	size_t n = 0;
	for (size_t i = 0; i < js_len(items); i++)
		if (js_str(js_at(items, i), "name"))
			names[n++] = js_str(js_at(items, i), "name");
	return mo_near_miss(word, names, n);
}

/* No job has this name, and where a node may stand, no node either. */
/* What else than a job a word may be. */
enum beside { BESIDE_NOTHING, BESIDE_NODE, BESIDE_FILE };

static int nothing_named(struct cli *cli, const char *word, enum beside beside)
{
	_cleanup_(answer_done) struct answer jobs = { 0 }, nodes = { 0 };
	const struct request all_jobs = { .path = "/v1/jobs?limit=1000&last=1" };
	const struct request all_nodes = { .path = "/v1/nodes?limit=1000" };
	int r = client_send(cli, &all_jobs, &jobs);

	if (!r && beside == BESIDE_NODE)
		r = client_send(cli, &all_nodes, &nodes);
	if (r)
		return r;
	const char *near = nearest(js_items(nodes.doc), word);

	if (!near)
		near = nearest(js_items(jobs.doc), word);
	_cleanup_(mo_freep) char *mean =
		near ? mo_printf(": did you mean %s?", near) : mo_strdup("");

	switch (beside) {
	case BESIDE_NODE:
		return cli_fail(CLI_NOT_FOUND,
				"%s: neither a node nor a job%s; `moectl nodes` and `moectl list "
				"--all` show them",
				word, mean);
	case BESIDE_FILE:
		return cli_fail(CLI_NOT_FOUND,
				"%s: neither a recipe's file here nor a job%s; check the path, "
				"`moectl list --all` shows the jobs",
				word, mean);
	default:
		return cli_fail(CLI_NOT_FOUND,
				"job %s: no job has this id or name%s; `moectl list --all` shows "
				"them",
				word, mean);
	}
}

/* Unfinished ones of the name beside the one that is taken: whoever meant one of them looks at
 * the wrong job. */
static void tell_others(const struct cli *cli, struct json_object *items)
{
	size_t n = js_len(items), reported = 0;
	_cleanup_(mo_buf_done) struct mo_buf others = { 0 };

	for (size_t i = 0; i + 1 < n; i++) {
		struct json_object *job = js_at(items, i);

		const char *state = js_str(job, "state");

		if (state && strstr(JOBS_UNFINISHED, state) && reported++ < IDS_NAMED)
			mo_buf_printf(&others, "%s%s (%s)", reported > 1 ? ", " : "",
				      js_str(job, "id"), state);
	}
	if (!reported || cli->json)
		return;
	fprintf(stderr,
		"moectl: %s: note: %s is the newest job of this name; %s%s %s it too and %s named "
		"by id\n",
		cli->verb->name, js_str(js_at(items, n - 1), "id"), others.data,
		reported > IDS_NAMED ? ", ..." : "", reported > 1 ? "have" : "has",
		reported > 1 ? "are" : "is");
}

static int job_of(struct cli *cli, const char *word, enum beside beside, char **ret)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	if (is_job_id(word)) {
		*ret = mo_strdup(word);
		return 0;
	}
	_cleanup_(mo_freep) char *name = url_quote(word);
	int r = client_get(cli, NULL, &a, "/v1/jobs?name=%s&limit=%d&last=1", name, SAME_NAME_MAX);
	if (r)
		return r;
	struct json_object *items = js_items(a.doc);

	*ret = js_len(items) ? mo_strdup(js_str(js_at(items, js_len(items) - 1), "id")) : NULL;
	if (*ret)
		tell_others(cli, items);
	return *ret ? 0 : nothing_named(cli, word, beside);
}

int client_job(struct cli *cli, const char *word, char **ret)
{
	return job_of(cli, word, BESIDE_NOTHING, ret);
}

int client_job_or_file(struct cli *cli, const char *word, char **ret)
{
	return job_of(cli, word, BESIDE_FILE, ret);
}

int client_job_to_act_on(struct cli *cli, const char *word, char **ret)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf ids = { 0 };
	_cleanup_(mo_freep) char *name = url_quote(word);
	if (is_job_id(word))
		return client_job(cli, word, ret);
	int r = client_get_all(cli, NULL, &a, "/v1/jobs?name=%s&state=" JOBS_UNFINISHED, name);
	if (r)
		return r;
	size_t n = js_len(js_items(a.doc));
	if (n == 0)
		/* a finished one: the controller says what state forbids it */
		return client_job(cli, word, ret);
	for (size_t i = 0; i < n && i < IDS_NAMED; i++)
		mo_buf_printf(&ids, "%s%s", i ? ", " : "", js_str(js_at(js_items(a.doc), i), "id"));
	if (n > 1)
		return cli_fail(CLI_USAGE,
				"job %s: %zu unfinished jobs have this name (%s%s); say which by "
				"its id",
				word, n, ids.data, n > IDS_NAMED ? ", ..." : "");
	*ret = mo_strdup(ids.data);
	return 0;
}

int client_subject(struct cli *cli, const char *word, char **ret_job)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_freep) char *quoted = url_quote(word),
				 *path = mo_printf("/v1/nodes/%s", quoted);
	*ret_job = NULL;
	int r = is_job_id(word) ? 0 : client_send(cli, &(struct request){ .path = path }, &a);
	if (r)
		return r;
	if (is_job_id(word) || a.status == 404)
		return job_of(cli, word, BESIDE_NODE, ret_job);
	return client_judge(cli, word, &a);
}
