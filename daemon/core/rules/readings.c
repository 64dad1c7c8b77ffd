/* The newest sensor values of nodes: held beside the state, never stored, and shown as evidence
 * when a job fails or makes no progress. What GPUs did while all ranks waited tells which one
 * did not take part: it is cold and idle among others that spin. */
#include "daemon/core/rules/readings.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/core/rules/turn.h"
#include "daemon/core/state/slot_health.h"
#include "lib/base/buf.h"
#include "lib/model/limits.h"

#define NICS_FRESH_US (120 * 1000000LL) /* cards are probed every 30 s */
#define LINES_MAX 16
/* cards that are not active and belong to no GPU that is reported */
#define OTHER_NICS_MAX 8

/* ---- held */

static void take_gpu(struct live *l, const struct gpu_sensors *g, int64_t now)
{
	struct gpu_sensors *at = NULL;

	for (size_t i = 0; i < l->n_sensors && !at; i++)
		at = l->sensors[i].slot == g->slot ? &l->sensors[i] : NULL;
	if (!at && l->n_sensors >= MO_GPUS_PER_NODE_MAX)
		return;
	at = at ? at : MO_ADD(l, sensors, &gpu_sensors_desc);
	*at = *g; /* it owns nothing */
	at->at = now;
}

static void take_nic(struct live *l, const struct nic_sensors *n, int64_t now)
{
	struct nic_sensors *at = NULL;

	for (size_t i = 0; i < l->n_nics && !at; i++)
		at = mo_streq(l->nics[i].name, n->name) ? &l->nics[i] : NULL;
	if (!at && l->n_nics >= MO_GPUS_PER_NODE_MAX)
		return;
	at = at ? at : MO_ADD(l, nics, &nic_sensors_desc);
	mo_desc_copy(&nic_sensors_desc, at, n);
	at->at = now;
}

/* A sync tells what was read since the one before: of some GPUs, not of all. */
void health_sensed(struct turn *t, const struct agent_sync *s)
{
	struct live *l = core_live(t->core, s->node);

	for (size_t i = l->n_sensors; i-- > 0;)
		if (t->now - l->sensors[i].at > SENSORS_FRESH_US)
			mo_vec_remove(&gpu_sensors_desc, l->sensors, &l->n_sensors, i);
	for (size_t i = l->n_nics; i-- > 0;)
		if (t->now - l->nics[i].at > NICS_FRESH_US)
			mo_vec_remove(&nic_sensors_desc, l->nics, &l->n_nics, i);
	for (size_t i = 0; i < s->n_sensors; i++)
		take_gpu(l, &s->sensors[i], t->now);
	for (size_t i = 0; i < s->n_nics; i++)
		if (s->nics[i].name)
			take_nic(l, &s->nics[i], t->now);
	l->sensors_at = s->n_sensors ? t->now : l->sensors_at;
}

const struct gpu_sensors *core_sensors(const struct core *c, const char *node, int64_t now,
				       size_t *ret_n)
{
	const struct live *l = live_of(c, node);
	bool fresh = l && l->n_sensors && now - l->sensors_at <= SENSORS_FRESH_US;

	*ret_n = fresh ? l->n_sensors : 0;
	return fresh ? l->sensors : NULL;
}

const struct nic_sensors *core_nics(const struct core *c, const char *node, int64_t now,
				    size_t *ret_n)
{
	const struct live *l = live_of(c, node);
	bool fresh = false;

	for (size_t i = 0; l && i < l->n_nics && !fresh; i++)
		fresh = now - l->nics[i].at <= NICS_FRESH_US;
	*ret_n = fresh ? l->n_nics : 0;
	return fresh ? l->nics : NULL;
}

/* ---- shown */

struct seen {
	const struct node *node;
	const struct gpu_sensors *g;
	int64_t rank;
};

static const struct nic_sensors *find_nic(const struct core *c, const struct node *n,
					  const char *name, int64_t now)
{
	size_t count = 0;
	const struct nic_sensors *nics = name ? core_nics(c, n->name, now, &count) : NULL;

	for (size_t i = 0; nics && i < count; i++)
		if (mo_streq(nics[i].name, name) && now - nics[i].at <= NICS_FRESH_US)
			return &nics[i];
	return NULL;
}

static void add_real(struct mo_buf *b, const char *before, double x, const char *unit)
{
	if (x != MO_NONE_F)
		mo_buf_printf(b, "%s%s%.*f%s", b->len ? ", " : "", before,
			      x < 10 && x != (double)(int64_t)x ? 1 : 0, x, unit);
}

static void add_count(struct mo_buf *b, const char *before, int64_t n)
{
	if (n != MO_NONE)
		mo_buf_printf(b, ", %s %lld", before, (long long)n);
}

static void add_nic(struct mo_buf *b, const struct nic_sensors *n, int64_t now)
{
	mo_buf_printf(b, "NIC %s %s", n->name, n->state ? n->state : "state unknown");
	if (n->rate_gbps != MO_NONE_F)
		mo_buf_printf(b, " %g Gb/s", n->rate_gbps);
	add_count(b, "link went down", n->link_downed);
	add_count(b, "carrier lost", n->carrier_down);
	add_count(b, "symbol errors", n->symbol_error);
	add_count(b, "recoveries", n->link_error_recovery);
	add_count(b, "receive errors", n->rcv_errors);
	add_count(b, "out of sequence", n->out_of_sequence);
	add_count(b, "late answers", n->local_ack_timeout);
	mo_buf_printf(b, ", read %lld s before", (long long)((now - n->at) / 1000000));
}

static char *line_of(const struct core *c, const struct seen *s, int64_t now)
{
	const struct gpu_slot *slot = node_slot(s->node, s->g->slot);
	const struct nic_sensors *nic = slot ? find_nic(c, s->node, slot->nic, now) : NULL;
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 }, card = { 0 };

	add_real(&b, "", s->g->power_w, " W");
	add_real(&b, "busy ", s->g->busy_pct, " %");
	add_real(&b, "", s->g->temp_c, " C");
	add_real(&b, "memory ", s->g->mem_temp_c, " C");
	add_real(&b, "", s->g->clock_mhz, " MHz");
	add_real(&b, "memory used ",
		 s->g->vram_used_bytes == MO_NONE_F ? MO_NONE_F : s->g->vram_used_bytes / 1e9,
		 " GB");
	add_real(&b, "slowed down ", s->g->throttle_pct, " %");
	add_count(&b, "uncorrected", s->g->ue);
	add_count(&b, "corrected", s->g->ce);
	add_count(&b, "PCIe replays", s->g->pcie_replay);
	if (nic)
		add_nic(&card, nic, now);
	return mo_printf("rank %lld on %s: GPU %lld%s%s: %s, read %lld s before%s%s",
			 (long long)s->rank, s->node->name, (long long)s->g->slot,
			 slot && slot->bdf ? " " : "", slot && slot->bdf ? slot->bdf : "",
			 b.len ? b.data : "no values", (long long)((now - s->g->at) / 1000000),
			 nic ? "; " : "", nic ? card.data : "");
}

/* The least active first; what is not known last. */
static int by_activity(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;
	const double keys[][2] = { { x->g->busy_pct, y->g->busy_pct },
				   { x->g->power_w, y->g->power_w } };

	for (size_t i = 0; i < ELEMENTSOF(keys); i++) {
		double p = keys[i][0], q = keys[i][1];

		if (p == q)
			continue;
		if (p == MO_NONE_F || q == MO_NONE_F)
			return p == MO_NONE_F ? 1 : -1;
		return p < q ? -1 : 1;
	}
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void add_range(struct mo_buf *b, const char *what, const char *unit, const struct seen *seen,
		      size_t n, size_t offset)
{
	_cleanup_(mo_freep) double *values = mo_alloc_array(n + 1, sizeof(*values));
	size_t known = 0;

	for (size_t i = 0; i < n; i++) {
		double x;

		memcpy(&x, (const char *)seen[i].g + offset, sizeof(x));
		if (x != MO_NONE_F)
			values[known++] = x;
	}
	if (!known)
		return;
	qsort(values, known, sizeof(*values), by_value);
	mo_buf_printf(b, "%s%s %.0f to %.0f %s, median %.0f", b->len ? "; " : "", what, values[0],
		      values[known - 1], unit, values[known / 2]);
}

/* Every GPU of the job whose values are fresh; ranks that ended count too: what they did before
 * is the question. */
static void find_seen(const struct core *c, const struct job *j, int64_t now, struct seen **ret,
		      size_t *n_ret, size_t *ret_gpus)
{
	for (size_t i = 0; i < j->run.n_places; i++) {
		const struct place *p = &j->run.places[i];
		const struct node *node = node_find(&c->state, p->node);
		size_t n = 0;
		const struct gpu_sensors *g = node ? core_sensors(c, p->node, now, &n) : NULL;

		*ret_gpus += p->n_gpus;
		for (size_t k = 0; k < p->n_gpus; k++)
			for (size_t m = 0; m < n; m++)
				if (g[m].slot == p->gpus[k] && now - g[m].at <= SENSORS_FRESH_US)
					*MO_GROW(*ret, *n_ret) =
						(struct seen){ node, &g[m], place_rank(p, k) };
	}
}

static bool is_reported(const struct seen *seen, size_t n, const struct node *node, const char *nic)
{
	for (size_t i = 0; i < n; i++) {
		const struct gpu_slot *slot =
			seen[i].node == node ? node_slot(node, seen[i].g->slot) : NULL;

		if (slot && mo_streq(slot->nic, nic))
			return true;
	}
	return false;
}

static void other_nics(const struct core *c, const struct job *j, int64_t now,
		       const struct seen *seen, size_t n_seen, char ***texts, size_t *n_texts)
{
	size_t reported = 0, n = 0;

	for (size_t i = 0; i < j->run.n_places && reported < OTHER_NICS_MAX; i++) {
		const struct node *node = node_find(&c->state, j->run.places[i].node);
		const struct nic_sensors *nics = node ? core_nics(c, node->name, now, &n) : NULL;

		for (size_t k = 0; nics && k < n && reported < OTHER_NICS_MAX; k++) {
			_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

			if (mo_streq(nics[k].state, "ACTIVE") || now - nics[k].at > NICS_FRESH_US ||
			    is_reported(seen, n_seen, node, nics[k].name))
				continue;
			mo_buf_printf(&b, "%s: ", node->name);
			add_nic(&b, &nics[k], now);
			mo_strs_add(texts, n_texts, b.data);
			reported++;
		}
	}
}

void core_readings(const struct core *c, const struct job *j, int64_t now, char ***texts,
		   size_t *n_texts)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_freep) char *head = NULL;
	struct seen *seen = NULL;
	size_t n = 0, gpus = 0, shown;

	find_seen(c, j, now, &seen, &n, &gpus);
	shown = MO_MIN(n, (size_t)LINES_MAX);
	if (n) {
		add_range(&b, "power", "W", seen, n, offsetof(struct gpu_sensors, power_w));
		add_range(&b, "busy", "%", seen, n, offsetof(struct gpu_sensors, busy_pct));
		add_range(&b, "hottest point", "C", seen, n, offsetof(struct gpu_sensors, temp_c));
		head = mo_printf("last readings of %zu of its %zu GPUs%s%s%s", n, gpus,
				 b.len ? ": " : "", b.len ? b.data : "",
				 shown < n ? "; the least active:" : "");
		mo_strs_add(texts, n_texts, head);
	}
	if (shown < n)
		qsort(seen, n, sizeof(*seen), by_activity);
	for (size_t i = 0; i < shown; i++) {
		_cleanup_(mo_freep) char *line = line_of(c, &seen[i], now);

		mo_strs_add(texts, n_texts, line);
	}
	other_nics(c, j, now, seen, shown, texts, n_texts);
	free(seen);
}
