/* See bundle.h. Each document is asked for by the route that a person would ask, with that person's
 * token, and put into the archive without what looks like a credential; what could not be had is
 * said in bundle.txt beside the rest. Bounded: of lists a page. */
#include "cli/bundle.h"

#include <stdio.h>
#include <string.h>

#include "cli/client.h"
#include "cli/client_job.h"
#include "cli/options.h"
#include "cli/scrub.h"
#include "cli/tar.h"
#include "cli/text.h"
#include "cli/value.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/model/mask.h"

#define LOG_LINES 1000 /* the newest of the rank */
#define WRITTEN (JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE)

static const struct part {
	const char *name, *path; /* %s: the job */
} parts[] = {
	{ "job.json", "/v1/jobs/%s" },
	{ "why.json", "/v1/jobs/%s/why" },
	{ "report.json", "/v1/jobs/%s/report" },
	{ "ranks.json", "/v1/jobs/%s/ranks?limit=1000" },
	{ "events.json", "/v1/jobs/%s/events?last=1000" },
	{ "checkpoints.json", "/v1/jobs/%s/checkpoints?last=1" },
	{ "metrics.json", "/v1/jobs/%s/metrics?last=1" },
	{ "env.json", "/v1/jobs/%s/env?rank=0" },
	{ "bind.json", "/v1/jobs/%s/bind?rank=0" },
	{ "config.json", "/v1/jobs/%s/config" },
	{ "records.json", "/v1/jobs/%s/records?limit=1000" },
	{ "nodes.json", "/v1/nodes?limit=1000" },
	{ "drift.json", "/v1/drift" },
	{ "cluster.json", "/v1/cluster" },
};

struct bundle {
	struct cli *cli;
	struct mo_buf tar, told; /* told: bundle.txt */
	int64_t time_s;
	size_t n_files;
	int64_t rank; /* whose log: that failed first, or 0 */
};

static void bundle_done(struct bundle *b)
{
	mo_buf_done(&b->tar);
	mo_buf_done(&b->told);
}

static void add(struct bundle *b, const char *name, const char *text, size_t n)
{
	tar_add(&b->tar, name, text, n, b->time_s);
	b->n_files++;
}

static void add_document(struct bundle *b, const char *name, struct json_object *doc)
{
	struct json_object *shown = scrubbed(doc);
	const char *text = json_object_to_json_string_ext(shown, WRITTEN);

	add(b, name, text, strlen(text));
	if (js_items(doc) && js_get(doc, "next"))
		mo_buf_printf(&b->told, "%s: the first page of several\n", name);
	json_object_put(shown);
}

static void add_log(struct bundle *b, const char *name, const struct mo_buf *body)
{
	_cleanup_(mo_freep) char *text = mo_mask_text(body->data ? body->data : "");

	add(b, name, text, strlen(text));
}

/* 0, or an exit status: there is no controller any more, or no such job. */
static int ask(struct bundle *b, const char *name, const char *path)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	const struct request q = { .path = path };
	int r = client_send(b->cli, &q, &a);

	/* without the job itself there is nothing to report */
	if (!r && (!a.status || (!b->n_files && a.status != 200)))
		r = client_judge(b->cli, NULL, &a);
	if (r)
		return r;
	if (a.status != 200) {
		_cleanup_(mo_freep) char *why = mo_mask_text(text_or(js_str(a.doc, "detail")));

		mo_buf_printf(&b->told, "%s: not here: %d %s\n", name, a.status, why);
	} else if (a.doc && strstr(name, ".json")) {
		int64_t first = js_int(js_at(js_get(a.doc, "incidents"),
					     js_len(js_get(a.doc, "incidents")) - 1),
				       "first_rank");

		b->rank = first > 0 ? first : b->rank;
		add_document(b, name, a.doc);
	} else {
		add_log(b, name, &a.body);
	}
	return CLI_OK;
}

static int collect(struct bundle *b, const char *id)
{
	for (size_t i = 0; i < ELEMENTSOF(parts); i++) {
		const char *at = strstr(parts[i].path, "%s");
		_cleanup_(mo_freep) char *path =
			at ? mo_printf("%.*s%s%s", (int)(at - parts[i].path), parts[i].path, id,
				       at + 2)
			   : mo_strdup(parts[i].path);
		int r = ask(b, parts[i].name, path);

		if (r)
			return r;
	}
	_cleanup_(mo_freep) char *name = mo_printf("log-of-rank-%lld.txt", (long long)b->rank);
	_cleanup_(mo_freep) char *path =
		mo_printf("/v1/jobs/%s/logs?rank=%lld&lines=%d", id, (long long)b->rank, LOG_LINES);
	return ask(b, name, path);
}

int bundle_write(struct cli *cli, const char *job, const char *file)
{
	_cleanup_(bundle_done) struct bundle b = { .cli = cli,
						   .time_s = mo_clock_wall_us() / 1000000 };
	_cleanup_(mo_freep) char *id = NULL;
	char time[32];
	int r = client_job(cli, job, &id);

	if (r)
		return r;
	_cleanup_(mo_freep) char *path = file ? mo_strdup(file) : mo_printf("%s-bundle.tar", id);
	if (mo_access(path, F_OK) == 0)
		return cli_fail(CLI_FAILED,
				"debug bundle: %s is there already: name another file with --out",
				path);
	mo_buf_printf(&b.told,
		      "%s, by moectl " MO_VERSION
		      " at %s\nWhat looks like a credential is " MO_MASKED
		      ". Names of users, nodes and paths are as they are.\n",
		      id, mo_time_format(b.time_s * 1000000, time));
	if ((r = collect(&b, id)))
		return r;
	add(&b, "bundle.txt", b.told.data, b.told.len);
	tar_end(&b.tar);
	if ((r = mo_write_file(path, b.tar.data, b.tar.len, 0600, false)) < 0)
		return cli_fail(CLI_FAILED, "debug bundle: %s: %s; name another file with --out",
				path, strerror(-r));
	fprintf(stderr,
		"moectl: debug bundle: %s: %zu files, %zu kB; credentials are %s, names of users, "
		"nodes and paths are in it\n",
		path, b.n_files, b.tar.len / 1000, MO_MASKED);
	return CLI_OK;
}
