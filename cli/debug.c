/* debug JOB: what the store holds of it, for who has to know what moed wrote down, and
 * when. */
#include "cli/debug.h"

#include <string.h>

#include "cli/bundle.h"
#include "cli/client.h"
#include "cli/client_job.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/text.h"
#include "cli/value.h"
#include "cli/visible.h"

#define PLAIN (JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE)

/* Without what is unknown or empty, for people: a submit's record is three quarters of that. NULL:
 * nothing is left. The caller's reference. */
static struct json_object *what_is_known(struct json_object *o)
{
	bool list = json_object_is_type(o, json_type_array);

	if (!list && !json_object_is_type(o, json_type_object))
		return json_object_get(o);
	struct json_object *known = list ? json_object_new_array() : json_object_new_object();
	size_t n = 0;
	for (size_t i = 0; list && i < js_len(o); i++, n++)
		json_object_array_add(known, what_is_known(js_at(o, i)));
	if (!list) {
		json_object_object_foreach(o, key, value) {
			struct json_object *v = what_is_known(value);

			if (v)
				json_object_object_add(known, key, v);
			n += v != NULL;
		}
	}
	if (n)
		return known;
	json_object_put(known);
	return NULL;
}

/* The attempt and node that it is about, then what it says: its one member that is no value. */
static void says_cell(struct table *t, struct json_object *line)
{
	struct json_object *record = js_get(line, "record");
	const char *node = js_str(record, "node");
	struct json_object *says = NULL;
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	if (record) {
		json_object_object_foreach(record, key, value) {
			(void)key;
			if (json_object_is_type(value, json_type_object) ||
			    json_object_is_type(value, json_type_array))
				says = value;
		}
	}
	if (js_int(record, "attempt") != MO_NONE)
		mo_buf_printf(&b, "attempt %s ", text_int(js_int(record, "attempt")));
	if (node)
		mo_buf_printf(&b, "%s ", node);
	struct json_object *known = what_is_known(says);
	if (known)
		mo_buf_str(&b, json_object_to_json_string_ext(known, PLAIN));
	json_object_put(known);
	if (!record)
		mo_buf_printf(&b, "cannot be read: %s", text_or(js_str(line, "unreadable")));
	table_cell(t, "%s", b.data ? b.data : "");
}

static void time_cell(struct table *t, struct json_object *line)
{
	table_cell(t, "%s", text_clock(js_str(line, "time")));
}

static void print_lines(struct json_object *items)
{
	for (size_t i = 0; i < js_len(items); i++)
		print_json_doc(js_at(items, i));
}

static int records(struct cli *cli, const char *word)
{
	static const struct column columns[] = {
		{ ">SEQ", "seq", CELL_INT },
		{ "TIME", .cell = time_cell },
		{ "TYPE", "record.type" },
		{ "SAYS", .cell = says_cell },
	};
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_freep) char *id = NULL;
	int r = client_job(cli, word, &id);

	if (r || (r = client_get_all(cli, id, &a, "/v1/jobs/%s/records", id)))
		return r;
	if (cli->json)
		print_lines(js_items(a.doc));
	else if (js_len(js_items(a.doc)))
		print_table(cli, columns, ELEMENTSOF(columns), js_items(a.doc));
	else
		printf("no record of %s is left in the log\n", id);
	if (!cli->json && js_int(a.doc, "first") > 1)
		printf("The log begins with record %s; what came before is in the snapshot, as a "
		       "state.\n",
		       text_int(js_int(a.doc, "first")));
	return CLI_OK;
}

static int run(struct cli *cli, int argc, char **argv)
{
	static const char *const words[] = { "records", "bundle" };
	const char *args[2] = { NULL }, *out = NULL;
	const struct opt opts[] = { { "out", 'o', OPT_STR, &out } };
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), args, 1, 2);

	if (r)
		return cli_stop(r);
	bool bundle = strcmp(args[0], "bundle") == 0;
	if (!bundle && strcmp(args[0], "records") != 0)
		return cli_misuse_word(cli, args[0], words, ELEMENTSOF(words));
	if (!args[1])
		return cli_misuse(cli, "the JOB is missing; `moectl list` shows them");
	if (out && !bundle)
		return cli_misuse(cli, "--out is for debug bundle");
	if (bundle && cli->json)
		return cli_misuse(cli, "debug bundle makes a file, not --json");
	return bundle ? bundle_write(cli, args[1], out) : records(cli, args[1]);
}

const struct verb verb_debug = {
	"debug",
	"Cluster",
	"debug records JOB | debug bundle JOB [-o FILE]",
	"what the store holds of a job; a file for a report of a bug",
	"records: what the store holds, record by record.\n"
	"  --json           one object a line: {seq,time,record{v,type,job,...}}; for jq\n"
	"bundle: a tar of what a report of a bug needs: job, why, report, ranks, events, "
	"checkpoints, metrics, environment, records, nodes, and the log of the rank that failed "
	"first.\n"
	"  -o, --out FILE   another name than JOB-bundle.tar\n"
	"Without --json members that are unknown or empty are left out.\n"
	"For the job's owner and operators. Credentials are shown as ***. Records that are folded "
	"into "
	"the newest snapshot are gone; the last line says where the log begins.\n",
	run,
	.examples = "  moectl debug records j-7\n"
		    "  moectl debug bundle j-7 -o j-7.tar; tar tvf j-7.tar\n",
};
