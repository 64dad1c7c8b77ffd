/* Timelines of pipelines (see plan_pipe.h). */
#include "cli/plan_pipe.h"

#include <errno.h>
#include <string.h>

#include "cli/value.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/wire/json.h"

#define SHOWN_MAX 64             /* micro-batches; more are lines, not boxes */
#define STAGES_MAX 128
#define DUMP_BYTES_MAX (64u << 20)
#define DUMP_RANKS_MAX 1024

void timeline_done(struct timeline *t)
{
	sched_done(&t->s);
	free(t->title);
	free(t->memory_gb);
	*t = (struct timeline){ 0 };
}

int timeline_of_plan(const struct recipe *r, const struct gpu_type *gpu, const struct plan *p, struct timeline *ret, struct mo_error *err)
{
	const struct plan_parallelism *x = &p->parallelism;
	int64_t micro = p->batch.global / (x->dp * p->batch.micro), shown = micro;
	if (x->pp == 1 || x->pp > STAGES_MAX)
		return mo_error_set(err, -EINVAL, "a pipeline of %lld stages has no picture", (long long)x->pp);
	if (micro > SHOWN_MAX)
		shown = MO_MIN(MO_MAX(SHOWN_MAX / x->pp, 2) * x->pp, micro);
	int k = plan_schedule(r, gpu, p, shown, &ret->s, err);
	if (k < 0)
		return k;
	ret->title = mo_printf("plan: %s, %lld stages, vpp %lld, %s%lld micro-batches: %.2f s, bubble %.1f %%%s", p->schedule, (long long)x->pp, (long long)x->vpp, shown < micro ? "the first " : "", (long long)shown,
			       ret->s.step, ret->s.bubble * 100, shown < micro ? " of these alone" : "");
	return 0;
}

static int read_json(const char *path, struct json_object **ret, struct mo_error *err)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	int r = mo_read_file(path, DUMP_BYTES_MAX, &b);
	if (r < 0)
		return mo_error_set(err, r, "%s: %s; give the directory that Primus wrote with dump_pp_data: true (DUMP_PP_DIR, default output/pp_data)", path, strerror(-r));
	return wire_parse(b.data ? b.data : "", b.len, ret, err);
}

/* Which chunk and micro-batch the k-th piece is, in Megatron's order, when the dump does not say. */
static void number(struct sched_node *n, struct json_object *iter, const char *what, size_t k, const struct sched *s)
{
	_cleanup_(mo_freep) char *chunk = mo_printf("%s_chunk", what), *micro = mo_printf("%s_minibatch", what);
	struct json_object *c = js_at(js_get(iter, chunk), k), *m = js_at(js_get(iter, micro), k);
	int64_t round = s->pp * s->chunks, at = (int64_t)k % round / s->pp;
	n->chunk = c ? json_object_get_int(c) : (int32_t)(n->op == SCHED_F ? at : s->chunks - 1 - at);
	n->micro = m ? json_object_get_int(m) : (int32_t)((int64_t)k / round * s->pp + (int64_t)k % s->pp);
}

static int add_pieces(struct sched *s, struct sched_rank *r, struct json_object *iter, const char *what, enum sched_op op, const char *path, struct mo_error *err)
{
	_cleanup_(mo_freep) char *start_key = mo_printf("%s_start", what), *end_key = mo_printf("%s_end", what);
	struct json_object *starts = js_get(iter, start_key), *ends = js_get(iter, end_key);
	if (js_len(starts) != js_len(ends))
		return mo_error_set(err, -EINVAL, "%s: %zu times in %s and %zu in %s: the dump is incomplete", path, js_len(starts), start_key, js_len(ends), end_key);
	for (size_t k = 0; k < js_len(starts); k++) {
		double start = json_object_get_double(js_at(starts, k)) / 1000, end = json_object_get_double(js_at(ends, k)) / 1000;
		if (!(end >= start) || start < 0)
			return mo_error_set(err, -EINVAL, "%s: %s %zu ends before it starts", path, what, k);
		struct sched_node *n = MO_GROW(r->nodes, r->n);
		*n = (struct sched_node){ .op = op, .start = start, .end = end };
		number(n, iter, what, k, s);
		r->busy += end - start;
	}
	return 0;
}

static int read_rank(const char *dir, int64_t rank, struct timeline *t, struct mo_error *err)
{
	_cleanup_(mo_freep) char *path = mo_printf("%s/pp_rank_%lld.json", dir, (long long)rank), *key = NULL;
	struct json_object *doc = NULL;
	struct sched_rank *r = &t->s.ranks[rank];
	int k = read_json(path, &doc, err);
	if (k < 0)
		return k;
	if (t->iteration == 0 && json_object_is_type(doc, json_type_object)) {
		json_object_object_foreach(doc, name, v) {
			int64_t n;
			if (v && mo_parse_i64(name, 1, INT32_MAX, &n) == 0)
				t->iteration = MO_MAX(t->iteration, n);
		}
	}
	key = mo_printf("%lld", (long long)t->iteration);
	struct json_object *iter = js_get(doc, key);
	double total = js_real(iter, "total");
	if (!iter || total == MO_NONE_F)
		k = mo_error_set(err, -EINVAL, "%s: no iteration %s with a total: give another one", path, key);
	if (k == 0)
		k = add_pieces(&t->s, r, iter, "fwd", SCHED_F, path, err);
	if (k == 0)
		k = add_pieces(&t->s, r, iter, "bwd", SCHED_B, path, err);
	if (k == 0)
		k = add_pieces(&t->s, r, iter, "wgrad", SCHED_W, path, err);
	if (k == 0) {
		t->memory_gb[rank] = js_real(iter, "memory");
		t->s.step = MO_MAX(t->s.step, total / 1000);
	}
	json_object_put(doc);
	return k;
}

int timeline_read(const char *dir, int64_t iteration, struct timeline *ret, struct mo_error *err)
{
	_cleanup_(mo_freep) char *path = mo_printf("%s/config.json", dir);
	struct json_object *config = NULL;
	int r = read_json(path, &config, err);
	if (r < 0)
		return r;
	int64_t pp = js_int(config, "pp_size"), chunks = js_int(config, "vp_size"), micro = js_int(config, "num_mbs");
	json_object_put(config);
	if (pp < 1 || pp > DUMP_RANKS_MAX)
		return mo_error_set(err, -EINVAL, "%s: pp_size must be 1 to %d", path, DUMP_RANKS_MAX);
	*ret = (struct timeline){ .measured = true, .iteration = iteration, .s = { .kind = "measured", .pp = pp, .chunks = MO_MAX(chunks == MO_NONE ? 1 : chunks, 1), .micro = micro } };
	ret->s.ranks = mo_alloc_array((size_t)pp, sizeof(*ret->s.ranks));
	ret->memory_gb = mo_alloc_array((size_t)pp, sizeof(double));
	double busy = 0;
	for (int64_t i = 0; i < pp && r == 0; i++) {
		r = read_rank(dir, i, ret, err);
		busy += ret->s.ranks[i].busy;
	}
	if (r < 0) {
		timeline_done(ret);
		return r;
	}
	ret->s.bubble = ret->s.step > 0 ? 1 - busy / (ret->s.step * (double)pp) : 0;
	ret->title = mo_printf("run: %lld stages, vpp %lld, %lld micro-batches, iteration %lld: %.2f s, bubble %.1f %%", (long long)pp, (long long)ret->s.chunks, (long long)micro, (long long)ret->iteration, ret->s.step,
			       ret->s.bubble * 100);
	return 0;
}

struct json_object *timeline_json(const struct timeline *t)
{
	static const char *const keys[] = { "forward_s", "backward_s", "wgrad_s" };
	struct json_object *o = json_object_new_object(), *ranks = json_object_new_array();
	for (int64_t i = 0; i < t->s.pp; i++) {
		const struct sched_rank *r = &t->s.ranks[i];
		struct json_object *rank = json_object_new_object();
		double sums[3] = { 0 };
		for (size_t k = 0; k < r->n; k++)
			sums[r->nodes[k].op] += r->nodes[k].end - r->nodes[k].start;
		for (size_t k = 0; k < ELEMENTSOF(keys); k++)
			json_object_object_add(rank, keys[k], json_object_new_double(sums[k]));
		json_object_object_add(rank, "bubble", json_object_new_double(t->s.step > 0 ? 1 - r->busy / t->s.step : 0));
		if (t->memory_gb)
			json_object_object_add(rank, "memory_gb", t->memory_gb[i] == MO_NONE_F ? NULL : json_object_new_double(t->memory_gb[i]));
		json_object_array_add(ranks, rank);
	}
	json_object_object_add(o, "iteration", t->measured ? json_object_new_int64(t->iteration) : NULL);
	json_object_object_add(o, "iter_time_s", json_object_new_double(t->s.step));
	json_object_object_add(o, "bubble", json_object_new_double(t->s.bubble));
	json_object_object_add(o, "ranks", ranks);
	return o;
}
