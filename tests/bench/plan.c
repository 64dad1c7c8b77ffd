/* The binding plan of a machine: reads a nodeinfo document (moe-discover) from standard input and
 * prints {"binds": [...]} for the given slots, in order.
 *   plan [--gpus LIST] [--taken CPUS] [--reserve N] [--smt one] [--memory bind] [--times N]
 * --times: plans N times instead and prints {"us": [...]}, the time of each. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "agent/core/bind/bind.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/idset.h"
#include "lib/base/parse.h"
#include "lib/model/recipe.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

struct options {
	const char *gpus, *taken;
	int64_t times;
	struct recipe_bind how;
};

static int parse(int argc, char **argv, struct options *o)
{
	for (int i = 1; i < argc; i += 2) {
		const char *name = argv[i], *value = argv[i + 1];
		int r = value ? 0 : -1;
		if (r == 0 && mo_streq(name, "--gpus"))
			o->gpus = value;
		else if (r == 0 && mo_streq(name, "--taken"))
			o->taken = value;
		else if (r == 0 && mo_streq(name, "--smt"))
			mo_str_set(&o->how.smt, value);
		else if (r == 0 && mo_streq(name, "--memory"))
			mo_str_set(&o->how.memory, value);
		else if (r == 0 && mo_streq(name, "--reserve"))
			r = mo_parse_i64(value, 0, 1024, &o->how.reserve_cores);
		else if (r == 0 && mo_streq(name, "--times"))
			r = mo_parse_i64(value, 1, 1000000, &o->times);
		else
			r = -1;
		if (r < 0) {
			fprintf(stderr, "plan: %s %s: not an option\n", name, value ? value : "");
			return r;
		}
	}
	return 0;
}

static void print(const struct rank_bind *binds, size_t n)
{
	struct mo_buf text = { 0 };

	mo_buf_str(&text, "{\"binds\": [");
	for (size_t i = 0; i < n; i++) {
		mo_buf_str(&text, i ? ", " : "");
		wire_encode(&rank_bind_desc, &binds[i], &text);
	}
	printf("%s]}\n", text.data);
	mo_buf_done(&text);
}

static int plan(const struct nodeinfo *info, const struct options *o, struct mo_error *err)
{
	_cleanup_(mo_idset_done) struct mo_idset wanted = { 0 };
	int64_t *gpus = NULL;
	size_t n = 0, n_binds = 0;
	struct rank_bind *binds = NULL;
	int r = o->gpus ? mo_idset_parse(o->gpus, &wanted) : 0;

	for (size_t i = 0; i < info->n_gpus; i++)
		if (!o->gpus || mo_idset_has(&wanted, (size_t)info->gpus[i].index))
			mo_ints_add(&gpus, &n, info->gpus[i].index);
	for (int64_t i = 0; i < MO_MAX(o->times, 1) && r == 0; i++) {
		mo_vec_clear(&rank_bind_desc, (void **)&binds, &n_binds);
		int64_t begin = mo_clock_mono_ns();
		r = bind_plan(info, &o->how, gpus, n, o->taken, &binds, &n_binds, err);
		if (o->times)
			printf("%s%.1f%s", i ? ", " : "{\"us\": [",
			       (double)(mo_clock_mono_ns() - begin) / 1000,
			       i + 1 == o->times ? "]}\n" : "");
	}
	if (r == 0 && !o->times)
		print(binds, n_binds);
	mo_vec_clear(&rank_bind_desc, (void **)&binds, &n_binds);
	free(gpus);
	return r;
}

int main(int argc, char **argv)
{
	struct options o = { .taken = "" };
	struct nodeinfo info;
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
	char chunk[65536];

	mo_desc_init(&recipe_bind_desc, &o.how);
	mo_desc_init(&nodeinfo_desc, &info);
	if (parse(argc, argv, &o) < 0)
		return 2;
	for (ssize_t n; (n = read(STDIN_FILENO, chunk, sizeof(chunk))) > 0;)
		mo_buf_add(&text, chunk, (size_t)n);
	int r = wire_decode(&nodeinfo_desc, text.data ? text.data : "", text.len, true, &info,
			    &err);
	if (r == 0)
		r = plan(&info, &o, &err);
	if (r < 0)
		fprintf(stderr, "plan: %s\n", mo_error_text(&err, r));
	mo_desc_done(&nodeinfo_desc, &info);
	mo_desc_done(&recipe_bind_desc, &o.how);
	return r < 0;
}
