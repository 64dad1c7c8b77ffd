/* See fabric_tell.h. */
#include "cli/fabric_tell.h"

#include "cli/output.h"
#include "cli/text.h"
#include "cli/value.h"
#include "lib/base/assert.h"
#include "lib/plan/curve.h"

static bool takes_part(const struct fabric *f, size_t run, size_t node)
{
	return run > 0 && (f->runs[run].a == node || f->runs[run].b == node);
}

char *fabric_evidence(const struct fabric_found *f, size_t node)
{
	const struct fabric *x = f->fabric;
	struct mo_buf b = { 0 };
	const char *why = NULL, *job = NULL;

	for (size_t i = 1; i < x->n_runs; i++) {
		const struct fabric_run *r = &x->runs[i];

		if (!takes_part(x, i, node))
			continue;
		if (r->failed)
			mo_buf_str(&b, "fails");
		else
			mo_buf_printf(&b, "%.1f GB/s", r->gbs);
		mo_buf_printf(&b, " with %s (%s); ", f->nodes[r->a == node ? r->b : r->a],
			      f->jobs[i].id);
		job = r->failed && !why ? f->jobs[i].id : job;
		why = r->failed && !why ? r->failed : why;
	}
	mo_buf_printf(&b, "pairs reach %.1f", fabric_reference(x));
	if (why)
		mo_buf_printf(&b, "; %s: %s", job, why);
	return mo_buf_take(&b);
}

static void add_str(struct json_object *o, const char *key, const char *value)
{
	json_object_object_add(o, key, value ? json_object_new_string(value) : NULL);
}

static struct json_object *run_document(const struct fabric_found *f, size_t i)
{
	const struct fabric *x = f->fabric;
	const struct fabric_run *r = &x->runs[i];
	struct json_object *o = json_object_new_object(), *nodes = json_object_new_array();

	for (size_t k = 0; k < x->n_nodes; k++)
		if (i == 0 || takes_part(x, i, k))
			json_object_array_add(nodes, json_object_new_string(f->nodes[k]));
	json_object_object_add(o, "round", json_object_new_int64(r->round));
	json_object_object_add(o, "nodes", nodes);
	add_str(o, "job", f->jobs[i].id);
	json_object_object_add(o, "gbs", r->failed ? NULL : json_object_new_double(r->gbs));
	add_str(o, "failed", r->failed);
	json_object_object_add(o, "slow",
			       json_object_new_boolean(i > 0 ? fabric_is_slow(x, r)
							     : r->failed != NULL));
	return o;
}

static struct json_object *curve_document(const struct fabric_job *all)
{
	struct json_object *rows = json_object_new_array();
	struct curve c = { 0 };

	if (all->out.data)
		curve_parse(all->out.data, &c);
	for (size_t i = 0; i < c.n; i++) {
		struct json_object *row = json_object_new_object();

		json_object_object_add(row, "bytes",
				       json_object_new_int64((int64_t)c.points[i].bytes));
		json_object_object_add(row, "gbs", json_object_new_double(c.points[i].gbs));
		json_object_array_add(rows, row);
	}
	return rows;
}

static struct json_object *nodes_document(const struct fabric_found *f,
					  bool (*is)(const struct fabric *f, size_t node))
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < f->fabric->n_nodes; i++) {
		if (!is(f->fabric, i))
			continue;
		_cleanup_(mo_freep) char *why = fabric_evidence(f, i);
		struct json_object *o = json_object_new_object();

		add_str(o, "node", f->nodes[i]);
		add_str(o, "evidence", why);
		json_object_array_add(list, o);
	}
	return list;
}

/* The first of the two measurements by which a link is told. */
static bool tells_link(const struct fabric *x, size_t run)
{
	const struct fabric_run *r = &x->runs[run];

	for (size_t i = 1; i < run; i++)
		if (takes_part(x, i, r->a) && takes_part(x, i, r->b))
			return false;
	return fabric_is_link(x, r);
}

struct json_object *fabric_document(const struct fabric_found *f)
{
	const struct fabric *x = f->fabric;
	struct json_object *doc = json_object_new_object(), *runs = json_object_new_array(),
			   *links = json_object_new_array();
	double pair = fabric_reference(x);

	for (size_t i = 0; i < x->n_runs; i++) {
		json_object_array_add(runs, run_document(f, i));
		if (tells_link(x, i))
			json_object_array_add(links, run_document(f, i));
	}
	add_str(doc, "verdict", fabric_verdict_names[fabric_verdict(x)]);
	json_object_object_add(doc, "odd", nodes_document(f, fabric_is_odd));
	json_object_object_add(doc, "links", links);
	json_object_object_add(doc, "untold", nodes_document(f, fabric_is_untold));
	json_object_object_add(doc, "pair_gbs", pair > 0 ? json_object_new_double(pair) : NULL);
	json_object_object_add(doc, "runs", runs);
	json_object_object_add(doc, "curve", curve_document(&f->jobs[0]));
	return doc;
}

static void nodes_cell(struct table *t, struct json_object *run)
{
	struct json_object *nodes = js_get(run, "nodes");

	if (js_int(run, "round") == 0 && js_len(nodes) > 2)
		table_cell(t, "all %zu nodes", js_len(nodes));
	else
		table_cell(t, "%s%s%s", json_object_get_string(js_at(nodes, 0)),
			   js_len(nodes) > 1 ? " " : "",
			   js_len(nodes) > 1 ? json_object_get_string(js_at(nodes, 1)) : "");
}

static void found_cell(struct table *t, struct json_object *run)
{
	const char *failed = js_str(run, "failed");

	table_cell(t, "%s",
		   failed                                         ? failed
		   : json_object_get_boolean(js_get(run, "slow")) ? "slow"
								  : "");
}

static void print_nodes(struct json_object *list, const char *word)
{
	for (size_t i = 0; i < js_len(list); i++)
		printf("%-10s %s: %s\n", word, js_str(js_at(list, i), "node"),
		       js_str(js_at(list, i), "evidence"));
}

static const char *const sentences[] = {
	[FABRIC_FINE] = "no node and no link stands out",
	[FABRIC_ODD] = "what stands out is named below",
	[FABRIC_TOGETHER] = "each pair is well, all nodes together are not: look at the switches",
	[FABRIC_UNTOLD] = "something is slow or fails, and no node is fast that could tell which",
	[FABRIC_NOTHING] = "nothing could be measured: look at the recipe before the fabric",
};
static_assert(ELEMENTSOF(sentences) == _FABRIC_VERDICT_N, "a verdict has no sentence");

void fabric_print(const struct cli *cli, const struct fabric_found *f, struct json_object *doc)
{
	static const struct column columns[] = {
		{ ">ROUND", "round", CELL_INT },  { "NODES", .cell = nodes_cell },
		{ ">GB/S", "gbs", CELL_REAL, 1 }, { "JOB", "job" },
		{ "FOUND", .cell = found_cell },
	};
	int verdict = fabric_verdict(f->fabric);
	struct json_object *links = js_get(doc, "links"), *odd = js_get(doc, "odd");

	print_table(cli, columns, ELEMENTSOF(columns), js_get(doc, "runs"));
	printf("%-10s %s: %s\n", "verdict", paint(cli, "1", fabric_verdict_names[verdict]),
	       sentences[verdict]);
	print_nodes(odd, "odd");
	if (verdict != FABRIC_NOTHING)
		print_nodes(js_get(doc, "untold"), "untold");
	for (size_t i = 0; i < js_len(links); i++)
		printf("%-10s between %s and %s, which are fast with others (%s)\n", "link",
		       json_object_get_string(js_at(js_get(js_at(links, i), "nodes"), 0)),
		       json_object_get_string(js_at(js_get(js_at(links, i), "nodes"), 1)),
		       js_str(js_at(links, i), "job"));
}
