/* Checkpoints in the shared file system: what is saved, damaged, scanned and removed. */
#include "tests/sim/sim.h"

#include "lib/base/parse.h"

struct file *train_file(struct sim *s, int64_t job, int64_t iteration)
{
	struct truth *t = sim_job(s, job);

	for (size_t i = 0; i < t->n_files; i++)
		if (t->files[i].iteration == iteration)
			return &t->files[i];
	return NULL;
}

/* Behind a restore an agent tells once more what it verified before the files changed. */
bool train_changed(const struct sim *s, int64_t job, const struct file *f, int64_t *ret_was)
{
	const struct job *j = job_find(core_state(s->ctl.shadow), job);
	const struct checkpoint *c = j ? checkpoint_find(j, f->iteration) : NULL;

	*ret_was = f->was;
	return f->altered ||
	       (c && c->state == CKPT_TORN && f->complete && c->manifest &&
		mo_parse_i64(c->manifest, 0, INT64_MAX, ret_was) == 0 && *ret_was != f->stamp);
}

/* checkpoint.keep: only what is not among the newest two whole ones may go. */
static void prune(struct sim *s, int64_t job, int64_t iteration)
{
	struct truth *t = sim_job(s, job);
	struct file *f = train_file(s, job, iteration);
	int newer = 0;

	if (!f)
		return;
	for (size_t i = 0; i < t->n_files; i++)
		newer += t->files[i].iteration > iteration && t->files[i].told != s->n_restores &&
			 (t->files[i].complete || t->files[i].torn);
	if (newer < KEEP)
		sim_violation(s,
			      "checkpoint %lld of j-%lld is removed although only %d newer ones "
			      "were whole",
			      (long long)iteration, (long long)job, newer);
	*f = t->files[--t->n_files];
	s->fault_counts[F_PRUNED]++;
}

void train_scan(struct sim *s, const struct command *order, struct scan_result *ret)
{
	int64_t job = order->job;
	const struct truth *t = sim_job(s, job);

	for (size_t i = 0; i < order->n_prune; i++)
		prune(s, job, order->prune[i].iteration);
	for (size_t i = 0; i < t->n_files; i++) {
		struct found_checkpoint *f;

		if (order->only != MO_NONE && order->only != t->files[i].iteration)
			continue;
		f = MO_ADD(ret, items, &found_checkpoint_desc);
		f->iteration = t->files[i].iteration;
		f->path = mo_printf("/ckpt/%lld/%lld", (long long)job,
				    (long long)t->files[i].iteration);
		f->bytes = 1000;
		f->complete = t->files[i].complete;
		f->reason = f->complete ? NULL : mo_strdup("COMPLETE is empty");
		f->saved_at = WALL_US + t->files[i].changed_at;
		f->manifest = f->complete ? mo_printf("%lld", (long long)t->files[i].stamp) : NULL;
		f->level = f->complete ? mo_strdup(order->level) : NULL;
		for (size_t k = 0; k < order->n_known; k++)
			if (order->known[k].iteration == f->iteration && f->complete &&
			    order->known[k].manifest &&
			    !mo_streq(order->known[k].manifest, f->manifest)) {
				f->complete = false;
				mo_str_set(&f->reason, "a file changed since it was verified");
			}
		s->fault_counts[F_VERIFIED] += order->only != MO_NONE && f->complete;
	}
}
