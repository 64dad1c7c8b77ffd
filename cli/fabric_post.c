/* See fabric_post.h. */
#include "cli/fabric_post.h"

#include <stdio.h>
#include <string.h>

#include "cli/client.h"
#include "cli/value.h"
#include "daemon/core/state/fabric_check.h"
#include "lib/base/utf8.h"

static void add_str(struct json_object *o, const char *key, const char *value)
{
	json_object_object_add(o, key, json_object_new_string(value));
}

/* As much of it as the controller takes. */
static void add_evidence(struct json_object *o, const char *text)
{
	json_object_object_add(o, "evidence",
			       json_object_new_string_len(text,
							  mo_utf8_shown(text,
									FABRIC_EVIDENCE_MAX)));
}

static void add_node(struct json_object *odd, struct json_object *of)
{
	struct json_object *o = json_object_new_object();

	add_str(o, "node", js_str(of, "node"));
	add_evidence(o, js_str(of, "evidence"));
	json_object_array_add(odd, o);
}

/* A run of two nodes, slow or failed. */
static void add_link(struct json_object *odd, struct json_object *run)
{
	struct json_object *o = json_object_new_object(), *nodes = js_get(run, "nodes");
	const char *failed = js_str(run, "failed"), *job = js_str(run, "job");
	_cleanup_(mo_freep) char *evidence =
		failed ? mo_printf("%s: %s", job, failed)
		       : mo_printf("%.1f GB/s (%s); both are fast with others", js_real(run, "gbs"),
				   job);

	add_str(o, "node", json_object_get_string(js_at(nodes, 0)));
	add_str(o, "peer", json_object_get_string(js_at(nodes, 1)));
	add_evidence(o, evidence);
	json_object_array_add(odd, o);
}

static struct json_object *odd_of(struct json_object *doc)
{
	struct json_object *odd = json_object_new_array(), *nodes = js_get(doc, "odd"),
			   *links = js_get(doc, "links");

	for (size_t i = 0; i < js_len(nodes) && js_len(odd) < FABRIC_ODD_MAX; i++)
		add_node(odd, js_at(nodes, i));
	for (size_t i = 0; i < js_len(links) && js_len(odd) < FABRIC_ODD_MAX; i++)
		add_link(odd, js_at(links, i));
	return odd;
}

int fabric_post(struct cli *cli, const char *job, struct json_object *doc)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	struct json_object *body = json_object_new_object(), *all = js_at(js_get(doc, "runs"), 0);
	int r;

	json_object_object_add(body, "verdict", json_object_get(js_get(doc, "verdict")));
	json_object_object_add(body, "nodes",
			       json_object_new_int64((int64_t)js_len(js_get(all, "nodes"))));
	json_object_object_add(body, "all_gbs", json_object_get(js_get(all, "gbs")));
	json_object_object_add(body, "pair_gbs", json_object_get(js_get(doc, "pair_gbs")));
	json_object_object_add(body, "odd", odd_of(doc));
	json_object_object_add(body, "curve", json_object_get(js_get(doc, "curve")));
	r = client_call(cli, "POST", job, json_object_to_json_string(body), &a,
			"/v1/jobs/%s/fabric", job);
	json_object_put(body);
	if (!r && !cli->json)
		printf("%-10s in %s: `moectl why %s` has it\n", "recorded", job, job);
	return r;
}
