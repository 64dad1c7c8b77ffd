/* Timelines of pipelines (see plan_pipe.h). */
#include "cli/plan_pipe.h"

#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/value.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/plan/schedule_plan.h"
#include "lib/wire/parse.h"

#define PIECES_MAX 400000 /* that are simulated: a picture shows their start and end */
#define STAGES_MAX 128
#define DUMP_BYTES_MAX (16u << 20)
#define DUMP_RANKS_MAX 1024
#define DUMP_CHUNKS_MAX 1024
#define DUMP_MICRO_MAX 1000000
#define DUMP_PIECES_MAX 200000 /* of a rank */

void timeline_done(struct timeline *t)
{
	sched_done(&t->s);
	free(t->title);
	free(t->more);
	free(t->memory_gb);
	*t = (struct timeline){ 0 };
}

/* As many micro-batches as can be simulated: all, or whole rounds of the pipeline. */
static int64_t simulated(const struct plan *p, int64_t micro)
{
	int64_t pp = p->parallelism.pp, each = 3 * pp * MO_MAX(p->parallelism.vpp, 2),
		most = MO_MAX(PIECES_MAX / each / (2 * pp), 1) * 2 * pp;
	return MO_MIN(micro, most);
}

int timeline_of_plan(const struct recipe *r, const struct gpu_type *gpu, const struct plan *p,
		     const struct plan_options *o, struct timeline *ret, struct mo_error *err)
{
	const struct plan_parallelism *x = &p->parallelism;
	int64_t micro = p->batch.global / (x->dp * p->batch.micro), shown = simulated(p, micro);
	if (x->pp == 1 || x->pp > STAGES_MAX)
		return mo_error_set(err, -EINVAL, "a pipeline of %lld stages has no picture",
				    (long long)x->pp);
	int k = plan_schedule(r, gpu, p, o, shown, &ret->s, err);
	if (k < 0)
		return k;
	if (p->n_memory_stages == (size_t)x->pp) {
		ret->memory_gb = mo_alloc_array((size_t)x->pp, sizeof(double));
		for (int64_t i = 0; i < x->pp; i++)
			ret->memory_gb[i] = p->memory_stages[i].total;
	}
	ret->title = mo_printf("plan: %s, %lld stages, vpp %lld, %s%lld micro-batches: %.2f s, "
			       "idle %.1f %%",
			       p->schedule, (long long)x->pp, (long long)x->vpp,
			       shown < micro ? "the first " : "", (long long)shown, ret->s.step,
			       ret->s.bubble * 100);
	ret->more = mo_printf("the schedule's own bubble is %.1f %% of the step; the rest is "
			      "transfers and stages that have less to do than the slowest. The "
			      "step is planned at %.2f s with gradients and optimizer.",
			      100 * p->bubble, p->step_time_s.total);
	return 0;
}

/* A regular file: opening another kind may wait for ever. */
static int read_json(const char *path, struct json_object **ret, struct mo_error *err)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct stat st;
	int r = stat(path, &st) < 0    ? -errno
		: !S_ISREG(st.st_mode) ? -EINVAL
				       : mo_read_file(path, DUMP_BYTES_MAX, &b);
	if (r < 0)
		return mo_error_set(err, r,
				    "%s: %s; give the directory that Primus wrote with "
				    "dump_pp_data: true (DUMP_PP_DIR, default output/pp_data)",
				    path, r == -EINVAL ? "not a regular file" : strerror(-r));
	_cleanup_(mo_error_done) struct mo_error why = { 0 };
	if (wire_parse(b.data ? b.data : "", b.len, ret, &why) < 0)
		return mo_error_set(err, -EINVAL,
				    "%s: %s; the run may have been writing it: dump again", path,
				    mo_error_text(&why, -EINVAL));
	return 0;
}

/* Which chunk and micro-batch the k-th piece is, in Megatron's order, when the dump does not
 * say. */
static void number(struct sched_node *n, struct json_object *iter, const char *what, size_t k,
		   const struct sched *s)
{
	_cleanup_(mo_freep) char *chunk = mo_printf("%s_chunk", what),
				 *micro = mo_printf("%s_minibatch", what);
	struct json_object *c = js_at(js_get(iter, chunk), k), *m = js_at(js_get(iter, micro), k);
	int64_t round = s->pp * s->chunks, at = (int64_t)k % round / s->pp;
	n->chunk =
		c ? json_object_get_int(c) : (int32_t)(n->op == SCHED_F ? at : s->chunks - 1 - at);
	n->micro = m ? json_object_get_int(m)
		     : (int32_t)((int64_t)k / round * s->pp + (int64_t)k % s->pp);
}

static bool numbered(const struct sched_node *n, const struct sched *s)
{
	return n->chunk >= 0 && n->chunk < s->chunks && n->micro >= 0 && n->micro < DUMP_MICRO_MAX;
}

static int add_pieces(struct sched *s, struct sched_rank *r, struct json_object *iter,
		      const char *what, enum sched_op op, const char *path, struct mo_error *err)
{
	_cleanup_(mo_freep) char *start_key = mo_printf("%s_start", what),
				 *end_key = mo_printf("%s_end", what);
	struct json_object *starts = js_get(iter, start_key), *ends = js_get(iter, end_key);
	if (js_len(starts) > DUMP_PIECES_MAX)
		return mo_error_set(err, -EFBIG,
				    "%s: %zu pieces of one iteration; more than %d are not read",
				    path, js_len(starts), DUMP_PIECES_MAX);
	if (js_len(starts) != js_len(ends))
		return mo_error_set(err, -EINVAL,
				    "%s: %zu times in %s and %zu in %s: the dump is incomplete",
				    path, js_len(starts), start_key, js_len(ends), end_key);
	for (size_t k = 0; k < js_len(starts); k++) {
		double start = json_object_get_double(js_at(starts, k)) / 1000,
		       end = json_object_get_double(js_at(ends, k)) / 1000;
		if (!(end >= start) || !(start >= 0) || !isfinite(end))
			return mo_error_set(err, -EINVAL,
					    "%s: %s %zu ends before it starts: the dump is damaged",
					    path, what, k);
		struct sched_node *n = MO_GROW(r->nodes, r->n);
		*n = (struct sched_node){ .op = op, .start = start, .end = end };
		number(n, iter, what, k, s);
		if (!numbered(n, s))
			return mo_error_set(err, -EINVAL,
					    "%s: %s %zu is of chunk %d, micro-batch %d; "
					    "config.json has %lld chunks per rank: the dump is "
					    "damaged",
					    path, what, k, n->chunk, n->micro,
					    (long long)s->chunks);
		r->busy += end - start;
	}
	return 0;
}

static int read_rank(const char *dir, int64_t rank, struct timeline *t, struct mo_error *err)
{
	_cleanup_(mo_freep) char *path = mo_printf("%s/pp_rank_%lld.json", dir, (long long)rank),
				 *key = NULL;
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
	if (!iter || total == MO_NONE_F || !(total > 0) || !isfinite(total))
		k = mo_error_set(err, -EINVAL, "%s: no iteration %s with a total: give another one",
				 path, key);
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

/* What the dump says of the pipeline as a whole. */
static int read_config(const char *path, struct timeline *ret, struct mo_error *err)
{
	struct json_object *config = NULL;
	int r = read_json(path, &config, err);
	if (r < 0)
		return r;
	int64_t pp = js_int(config, "pp_size"), chunks = js_int(config, "vp_size"),
		micro = js_int(config, "num_mbs");
	json_object_put(config);
	if (pp < 1 || pp > DUMP_RANKS_MAX)
		return mo_error_set(err, -EINVAL, "%s: pp_size must be 1 to %d", path,
				    DUMP_RANKS_MAX);
	if (chunks != MO_NONE && (chunks < 1 || chunks > DUMP_CHUNKS_MAX))
		return mo_error_set(err, -EINVAL, "%s: vp_size must be 1 to %d", path,
				    DUMP_CHUNKS_MAX);
	if (micro < 1 || micro > DUMP_MICRO_MAX)
		return mo_error_set(err, -EINVAL, "%s: num_mbs must be 1 to %d", path,
				    DUMP_MICRO_MAX);
	ret->s = (struct sched){ .kind = "measured",
				 .pp = pp,
				 .chunks = chunks == MO_NONE ? 1 : chunks,
				 .micro = micro };
	return 0;
}

/* Inside the iteration, and not more than it. */
static int check_times(const char *dir, const struct timeline *t, struct mo_error *err)
{
	for (int64_t i = 0; i < t->s.pp; i++) {
		const struct sched_rank *r = &t->s.ranks[i];
		double last = 0;
		for (size_t k = 0; k < r->n; k++)
			last = MO_MAX(last, r->nodes[k].end);
		if (last > t->s.step * 1.01 || r->busy > t->s.step * 1.01)
			return mo_error_set(err, -EINVAL,
					    "%s/pp_rank_%lld.json: work until %.4g s, %.4g s in "
					    "all, in an iteration of %.4g s: the dump is damaged",
					    dir, (long long)i, last, r->busy, t->s.step);
	}
	return 0;
}

/* A piece that took much longer than its like says where to look. */
#define ODD 2.5
static char *oddest(const struct timeline *t)
{
	static const char *const words[] = { "forward", "backward", "weight gradient" };
	double sum[3] = { 0 }, worst = ODD;
	size_t count[3] = { 0 };
	const struct sched_node *odd = NULL;
	int64_t rank = 0;
	for (int64_t i = 0; i < t->s.pp; i++)
		for (size_t k = 0; k < t->s.ranks[i].n; k++) {
			const struct sched_node *n = &t->s.ranks[i].nodes[k];
			sum[n->op] += n->end - n->start;
			count[n->op]++;
		}
	for (int64_t i = 0; i < t->s.pp; i++)
		for (size_t k = 0; k < t->s.ranks[i].n; k++) {
			const struct sched_node *n = &t->s.ranks[i].nodes[k];
			double mean = sum[n->op] / (double)count[n->op],
			       times = mean > 0 ? (n->end - n->start) / mean : 0;
			if (times <= worst)
				continue;
			worst = times;
			odd = n;
			rank = i;
		}
	return odd ? mo_printf("longest piece: %s of micro-batch %d, chunk %d, on rank %lld: %.1f "
			       "ms, %.1f times the mean of its kind",
			       words[odd->op], odd->micro, odd->chunk, (long long)rank,
			       (odd->end - odd->start) * 1000, worst)
		   : NULL;
}

int timeline_read(const char *dir, int64_t iteration, struct timeline *ret, struct mo_error *err)
{
	_cleanup_(mo_freep) char *path = mo_printf("%s/config.json", dir);
	struct timeline t = { .measured = true, .iteration = iteration };
	int r = read_config(path, &t, err);
	if (r < 0)
		return r;
	int64_t pp = t.s.pp;
	t.s.ranks = mo_alloc_array((size_t)pp, sizeof(*t.s.ranks));
	t.memory_gb = mo_alloc_array((size_t)pp, sizeof(double));
	double busy = 0;
	for (int64_t i = 0; i < pp && r == 0; i++) {
		r = read_rank(dir, i, &t, err);
		busy += t.s.ranks[i].busy;
	}
	r = r < 0 ? r : check_times(dir, &t, err);
	if (r < 0) {
		timeline_done(&t);
		return r;
	}
	t.s.bubble = MO_MAX(1 - busy / (t.s.step * (double)pp), 0);
	t.title = mo_printf("run: %lld stages, vpp %lld, %lld micro-batches, iteration %lld: %.2f "
			    "s, bubble %.1f %%",
			    (long long)pp, (long long)t.s.chunks, (long long)t.s.micro,
			    (long long)t.iteration, t.s.step, t.s.bubble * 100);
	t.more = oddest(&t);
	*ret = t;
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
		json_object_object_add(rank, "bubble",
				       json_object_new_double(
					       t->s.step > 0 ? MO_MAX(1 - r->busy / t->s.step, 0)
							     : 0));
		if (t->memory_gb)
			json_object_object_add(rank, "memory_gb",
					       t->memory_gb[i] == MO_NONE_F
						       ? NULL
						       : json_object_new_double(t->memory_gb[i]));
		json_object_array_add(ranks, rank);
	}
	json_object_object_add(o, "iteration",
			       t->measured ? json_object_new_int64(t->iteration) : NULL);
	json_object_object_add(o, "iter_time_s", json_object_new_double(t->s.step));
	json_object_object_add(o, "bubble", json_object_new_double(t->s.bubble));
	json_object_object_add(o, "ranks", ranks);
	if (t->measured && t->more)
		json_object_object_add(o, "note", json_object_new_string(t->more));
	return o;
}
