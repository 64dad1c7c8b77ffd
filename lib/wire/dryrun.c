/* JSON of the dry-run document: the environment becomes an object, which the descriptions of
 * lib/base cannot say. Called by moed (?dry_run=1) and moectl. */
#include "lib/wire/dryrun.h"

#include "lib/wire/encode.h"

static void member(const char *name, const char *text, struct mo_buf *b)
{
	mo_buf_printf(b, ",\"%s\":", name);
	if (text)
		wire_string(text, b);
	else
		mo_buf_str(b, "null");
}

static void number(const char *name, int64_t v, struct mo_buf *b)
{
	if (v == MO_NONE)
		mo_buf_printf(b, ",\"%s\":null", name);
	else
		mo_buf_printf(b, ",\"%s\":%lld", name, (long long)v);
}

static void environment(const struct dryrun_rank *k, struct mo_buf *b)
{
	size_t n = 0;

	mo_buf_str(b, ",\"env\":{");
	for (size_t i = 0; i < k->n_env; i++) {
		const struct env_item *e = &k->env[i];
		if (!e->value && !e->file)
			continue; /* unset */
		mo_buf_str(b, n++ ? "," : "");
		wire_string(e->name, b);
		mo_buf_str(b, e->value ? ":" : ":{\"file\":");
		wire_string(e->value ? e->value : e->file, b);
		mo_buf_str(b, e->value ? "" : "}");
	}
	mo_buf_str(b, "}");
}

static void one_rank(const struct dryrun_rank *k, struct mo_buf *b)
{
	mo_buf_printf(b, "{\"rank\":%lld", (long long)k->rank);
	member("node", k->node, b);
	number("local_rank", k->local_rank, b);
	mo_buf_str(b, ",\"argv\":[");
	for (size_t i = 0; i < k->n_argv; i++) {
		mo_buf_str(b, i ? "," : "");
		wire_string(k->argv[i], b);
	}
	mo_buf_str(b, "]");
	environment(k, b);
	member("cpus", k->cpus, b);
	number("numa_node", k->numa_node, b);
	number("gpu", k->gpu, b);
	member("nic", k->nic, b);
	mo_buf_str(b, "}");
}

void wire_dryrun_head(const char *name, const char *plan, char *const *resume, size_t n_resume,
		      struct mo_buf *b)
{
	mo_buf_str(b, "{\"name\":");
	wire_string(name ? name : "", b);
	mo_buf_printf(b, ",\"plan\":%s,\"resume_args\":[", plan ? plan : "null");
	for (size_t i = 0; i < n_resume; i++) {
		mo_buf_str(b, i ? "," : "");
		wire_string(resume[i], b);
	}
	mo_buf_str(b, "],\"ranks\":[");
}

void wire_dryrun_ranks(const struct dryrun_rank *ranks, size_t n, bool first, struct mo_buf *b)
{
	for (size_t i = 0; i < n; i++) {
		mo_buf_str(b, first && i == 0 ? "" : ",");
		one_rank(&ranks[i], b);
	}
}

void wire_dryrun_end(const char *placed_on, struct mo_buf *b)
{
	mo_buf_str(b, "]");
	member("placed_on", placed_on, b);
	mo_buf_str(b, "}");
}
