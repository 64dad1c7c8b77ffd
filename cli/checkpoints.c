/* checkpoints: the ledger of a job, or offline what lies in a directory: complete, torn, and
 * where a run would resume. The offline scan is moe-ckpt's, the agents' own helper. */
#include "cli/checkpoints.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/client_job.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/text.h"
#include "cli/value.h"
#include "cli/visible.h"
#include "daemon/core/rules/resume.h"
#include "daemon/core/state/state.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/model/job.h"
#include "lib/model/message.h"
#include "lib/recipe/directory.h"
#include "lib/recipe/engine_load.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

#define SCAN_BYTES_MAX (64u << 20)
static const char *const levels[] = { "marker", "sizes", "crc" };

static void print_items(const struct cli *cli, struct json_object *items)
{
	static const struct column columns[] = {
		{ ">ITERATION", "iteration", CELL_INT },
		{ "STATE", "state" },
		{ "LEVEL", "level", .less = 4 },
		{ ">SIZE", "bytes", CELL_BYTES, .less = 1 },
		{ "SAVED", "saved_at", .less = 2 },
		{ ">ATTEMPT", "attempt", CELL_INT, .less = 5 },
		{ "PATH", "path", .less = 3 },
		{ "REASON", "reason" },
	};
	for (size_t i = 0; i < js_len(items); i++) {
		struct json_object *o = js_at(items, i);

		if (js_str(o, "reason") || (!js_str(o, "fixed") && !js_str(o, "held")))
			continue;
		_cleanup_(mo_freep) char *text =
			js_str(o, "held")
				? mo_printf("not to be resumed as it is: %s", js_str(o, "held"))
				: mo_printf("does not reshard: a resume needs %s",
					    js_str(o, "fixed"));

		json_object_object_add(o, "reason", json_object_new_string(text));
	}
	print_table(cli, columns, ELEMENTSOF(columns), items);
}

static int of_job(struct cli *cli, const char *word)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_freep) char *id = NULL;
	int r = client_job(cli, word, &id);
	if (r || (r = client_get_all(cli, id, &a, "/v1/jobs/%s/checkpoints", id)))
		return r;
	if (cli->json)
		return print_answer(&a);
	if (js_len(js_items(a.doc)))
		print_items(cli, js_items(a.doc));
	else
		printf("%s has no checkpoints yet\n", id);
	return CLI_OK;
}

/* Runs moe-ckpt and gives its output. */
static int run_helper(const char *order, struct mo_buf *out)
{
	_cleanup_(mo_freep) char *path = mo_libexec("moe-ckpt");
	int fds[2], status = 0;
	char piece[65536];
	ssize_t n;
	if (!path)
		return cli_fail(CLI_FAILED, "checkpoints: moe-ckpt is neither beside moectl nor "
					    "installed; build or install it");
	if (pipe2(fds, O_CLOEXEC) < 0)
		return cli_fail(CLI_FAILED, "checkpoints: pipe: %m; try again");
	pid_t pid = fork();
	if (pid == 0) {
		char *const argv[] = { path, (char *)"--scan", (char *)order,
				       (char *)"--allow-root", NULL };
		if (dup2(fds[1], STDOUT_FILENO) >= 0)
			execv(path, argv);
		_exit(127);
	}
	mo_close(fds[1]);
	while (pid > 0 &&
	       ((n = read(fds[0], piece, sizeof(piece))) > 0 || (n < 0 && errno == EINTR)))
		if (n > 0 && out->len < SCAN_BYTES_MAX)
			mo_buf_add(out, piece, (size_t)n);
	mo_close(fds[0]);
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status) ||
	    WEXITSTATUS(status) != 0)
		return cli_fail(CLI_FAILED, "checkpoints: %s failed; its message is above", path);
	return 0;
}

MO_DEFINE_DONE(command)

struct pass {
	struct engine engine;
	char *dir; /* that was scanned */
	/* the engine's own directory was added to the one that was given */
	bool added;
	struct scan_result found;
};

static void pass_done(struct pass *l)
{
	mo_desc_done(&engine_desc, &l->engine);
	mo_desc_done(&scan_result_desc, &l->found);
	free(l->dir);
}

static void pass_init(struct pass *l)
{
	*l = (struct pass){ 0 };
	mo_desc_init(&engine_desc, &l->engine);
	mo_desc_init(&scan_result_desc, &l->found);
}

/* As a job with this checkpoint.dir scans, with or without what the engine adds; as it lies: at
 * what is there, wherever a job would look. */
static int scan(const char *dir, const char *kind, const char *level, int64_t world,
		bool as_it_lies, struct pass *ret)
{
	_cleanup_(command_done) struct command c;
	_cleanup_(mo_buf_done) struct mo_buf order = { 0 }, out = { 0 };
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	mo_desc_init(&command_desc, &c);
	int r = engine_load(kind, &ret->engine, &err);
	if (r < 0)
		return cli_fail_error(CLI_USAGE, "checkpoints: --engine", &err, r);
	_cleanup_(mo_freep) char *clean = mo_path_clean(dir);
	ret->dir = as_it_lies ? mo_strdup(dir) : engine_directory(&ret->engine, dir);
	ret->added = !as_it_lies && ret->engine.save_below && !mo_streq(ret->dir, clean);
	c.kind = CMD_SCAN;
	c.dir = mo_strdup(ret->dir);
	c.named = ret->added ? mo_strdup(clean) : NULL;
	c.level = mo_strdup(level);
	c.world = world;
	c.layout = mo_desc_dup(&ckpt_layout_desc, &ret->engine.layout);
	wire_encode(&command_desc, &c, &order);
	if ((r = run_helper(order.data, &out)))
		return r;
	r = wire_decode(&scan_result_desc, out.data ? out.data : "", out.len, false, &ret->found,
			&err);
	if (r < 0)
		return cli_fail_error(CLI_FAILED, "checkpoints: moe-ckpt", &err, r);
	if (ret->found.error)
		return cli_fail(CLI_FAILED, "checkpoints: %s: %s; check --dir", dir,
				ret->found.error);
	return 0;
}

static const struct found_checkpoint *newest_complete(const struct scan_result *r)
{
	const struct found_checkpoint *newest = NULL;

	for (size_t i = 0; i < r->n_items; i++)
		if (r->items[i].complete && (!newest || r->items[i].iteration > newest->iteration))
			newest = &r->items[i];
	return newest;
}

static bool may_fix(const struct engine *e)
{
	for (size_t i = 0; i < e->layout.n_grids; i++)
		if (e->layout.grids[i].n_fixes)
			return true;
	return false;
}

char *checkpoints_misfit(const struct recipe_input *in, const struct plan_parallelism *p)
{
	_cleanup_(pass_done) struct pass seen;
	const struct recipe_checkpoint *c = &in->recipe.checkpoint;
	struct recipe sizes = {
		.parallelism = { .tp = p->tp, .pp = p->pp, .ep = p->ep, .etp = p->etp, .cp = p->cp }
	};

	pass_init(&seen);
	if (!c->dir || c->resume == -2 || !may_fix(&in->engine) ||
	    access(c->dir, R_OK | X_OK) < 0 ||
	    scan(c->dir, in->engine.kind, "marker", MO_NONE, false, &seen))
		return NULL;
	const struct found_checkpoint *newest = newest_complete(&seen.found);
	const struct checkpoint saved = { .fixed = newest ? newest->fixed : NULL };
	_cleanup_(mo_freep) char *misfit = checkpoint_misfit(&saved, &sizes);

	return misfit ? mo_printf("checkpoint %lld in %s does not reshard: a resume from it needs "
				  "%s, and this plan has %s",
				  (long long)newest->iteration, c->dir, newest->fixed, misfit)
		      : NULL;
}

static struct json_object *checkpoint_doc(const struct found_checkpoint *f, const char *level,
					  int64_t now)
{
	struct checkpoint c;
	mo_desc_init(&checkpoint_desc, &c);
	c.iteration = f->iteration;
	c.path = mo_strdup(f->path);
	c.state = f->complete ? CKPT_VERIFIED : CKPT_TORN;
	c.level = mo_strdup(f->level ? f->level : level);
	c.bytes = f->bytes;
	c.saved_at = f->saved_at;
	c.verified_at = f->complete ? now : MO_NONE;
	c.reason = mo_strdup(f->reason);
	c.fixed = mo_strdup(f->fixed);
	c.held = mo_strdup(f->held);
	struct json_object *doc = wire_to_json(&checkpoint_view_desc, &c);
	mo_desc_done(&checkpoint_desc, &c);
	return doc;
}

/* What looks like a model's state and is none of the checkpoints. */
static struct json_object *unread_doc(const struct scan_result *r)
{
	struct json_object *list = json_object_new_array();
	for (size_t i = 0; i < r->n_unread; i++) {
		struct json_object *o = json_object_new_object();
		json_object_object_add(o, "name",
				       json_object_new_string(r->unread[i].name ? r->unread[i].name
										: ""));
		json_object_object_add(o, "bytes", json_object_new_int64(r->unread[i].bytes));
		if (r->unread[i].where)
			json_object_object_add(o, "where",
					       json_object_new_string(r->unread[i].where));
		json_object_array_add(list, o);
	}
	return list;
}

static void print_unread(struct json_object *doc, const char *kind)
{
	struct json_object *list = js_get(doc, "unread");
	for (size_t i = 0; i < js_len(list); i++) {
		struct json_object *o = json_object_array_get_idx(list, i);
		const char *where = js_str(o, "where");
		printf("%s%s%s (%s bytes): engine %s %s\n", where ? where : "", where ? "/" : "",
		       js_str(o, "name"), text_int(js_int(o, "bytes")), kind,
		       where ? "does not look there" : "cannot read it");
	}
}

/* The items are what lies there; what a job would do is its own decision. */
static struct json_object *scan_doc(const struct pass *l, const struct scan_result *items_of,
				    const char *level)
{
	struct json_object *doc = json_object_new_object(), *items = json_object_new_array(),
			   *resume = NULL;
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	int64_t now = mo_clock_wall_us(), iteration = MO_NONE;
	int r = checkpoint_would(&l->engine, l->dir, l->added, &l->found, &iteration, &err);
	for (size_t i = 0; i < items_of->n_items; i++)
		json_object_array_add(items, checkpoint_doc(&items_of->items[i], level, now));
	if (r == 0 && iteration >= 0) {
		resume = json_object_new_object();
		json_object_object_add(resume, "iteration", json_object_new_int64(iteration));
	}
	json_object_object_add(doc, "resume", resume);
	json_object_object_add(doc, "items", items);
	if (l->found.n_unread)
		json_object_object_add(doc, "unread", unread_doc(&l->found));
	if (r)
		json_object_object_add(doc, "waits",
				       json_object_new_string(mo_error_text(&err, r)));
	return doc;
}

static void print_scan(struct cli *cli, struct json_object *doc, const char *dir, const char *kind)
{
	int64_t resume = js_int(doc, "resume.iteration");
	visible_json(doc);
	if (js_len(js_items(doc)))
		print_items(cli, js_items(doc));
	if (js_str(doc, "waits"))
		print_unread(doc, kind);
	if (js_str(doc, "waits"))
		printf("%s: a run would wait: %s\n", dir, js_str(doc, "waits"));
	else if (resume == MO_NONE)
		printf("%s: nothing usable; a run would start afresh\n", dir);
	else
		printf("%s: a run would resume from iteration %s\n", dir, text_int(resume));
}

static int of_dir(struct cli *cli, const char *dir, const char *kind, const char *level,
		  int64_t world)
{
	_cleanup_(pass_done) struct pass seen, lies;
	pass_init(&seen);
	pass_init(&lies);
	struct stat st;
	if (stat(dir, &st) < 0 && (errno == ENOENT || errno == ENOTDIR))
		return cli_fail(CLI_NOT_FOUND,
				"checkpoints: %s: no such directory; --dir is what checkpoint.dir "
				"of the recipe would be",
				dir);
	int r = scan(dir, kind, level, world, false, &seen);
	/* Where the engine's own directory is not there yet, what lies in the given one is
	 * judged where it lies. */
	bool there = !seen.added || access(seen.dir, F_OK) == 0;
	if (!r && !there)
		r = scan(dir, kind, level, world, true, &lies);
	if (r)
		return r;
	struct json_object *doc = scan_doc(&seen, there ? &seen.found : &lies.found, level);
	if (cli->json)
		print_json_doc(doc);
	else
		print_scan(cli, doc, dir, kind);
	json_object_put(doc);
	return CLI_OK;
}

static int run(struct cli *cli, int argc, char **argv)
{
	const char *args[1] = { NULL }, *dir = NULL, *kind = NULL, *level = NULL;
	int64_t world = MO_NONE;
	const struct opt opts[] = { { "dir", 0, OPT_STR, &dir },
				    { "engine", 0, OPT_STR, &kind },
				    { "world", 0, OPT_INT, &world, 1, INT32_MAX },
				    { "verify", 0, OPT_STR, &level } };
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), args, 0, 1);
	if (r)
		return cli_stop(r);
	if (args[0] ? dir || kind || level || world != MO_NONE : !dir)
		return cli_misuse(cli, "%s",
				  args[0] ? "JOB excludes --dir, --engine, --world and --verify"
					  : "neither JOB nor --dir is given");
	if (args[0])
		return of_job(cli, args[0]);
	if (!kind)
		return cli_misuse(cli, "--engine is missing: it tells how this directory is laid "
				       "out; one of torch, command, megatron-lm, ...");
	level = level ? level : "sizes";
	if (mo_enum_parse(levels, ELEMENTSOF(levels), level) < 0)
		return cli_misuse(cli, "--verify %s is none of marker, sizes and crc", level);
	return of_dir(cli, dir, kind, level, world);
}

const struct verb verb_checkpoints = {
	"checkpoints",
	"Look",
	"checkpoints JOB | --dir DIR --engine KIND [--world N] [--verify LEVEL]",
	"the ledger of a job, or offline what is usable in a directory",
	"  --dir DIR        look there (what checkpoint.dir would be); needs no cluster\n  "
	"--engine KIND    whose layout it has\n"
	"  --world N        ranks that must have written it\n  --verify LEVEL   marker, sizes "
	"(default), or crc: against the checksums that a job with checkpoint.verify: crc left\n",
	run,
	.examples = "  moectl checkpoints j-7\n"
		    "  moectl checkpoints --dir /ckpt/my-job --engine megatron-lm --verify crc\n",
};
