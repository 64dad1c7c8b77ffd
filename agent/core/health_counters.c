/* Baselines of this boot: where a counter stood when it was first seen, and what the kernel's log counted so far. Kept on disk over restarts of the agent (health_save()); a new boot,
 * another device in the same place, or a counter that went backwards makes new ones. */
#include <string.h>

#include "agent/core/health_state.h"
#include "agent/core/reading.h"
#include "lib/model/limits.h"

static struct health_counter *find(const struct health *h, const struct object *o, const char *reading) {
	for (size_t i = 0; i < h->n_counters; i++) {
		struct health_counter *k = &h->counters[i];
		if (k->area == o->area && mo_streq(k->object, o->name) && mo_streq(k->reading, reading))
			return k;
	}
	return NULL;
}

const struct health_counter *health_counter_find(const struct health *h, const struct object *o, const char *reading) {
	return find(h, o, reading);
}

static struct health_counter *add(struct health *h, const struct object *o, const char *reading) {
	struct health_counter *k = mo_vec_add(&health_counter_desc, (void **)&h->counters, &h->n_counters);

	k->area = o->area;
	mo_str_set(&k->object, o->name);
	mo_str_set(&k->identity, o->identity);
	mo_str_set(&k->reading, reading);
	h->unsaved = true;
	return k;
}

double health_since_boot(struct health *h, const struct object *o, const char *reading, double value) {
	struct health_counter *k = find(h, o, reading);

	if (!k && h->n_counters >= MO_COUNTERS_MAX)
		return 0;
	if (!k)
		k = add(h, o, reading);
	if (k->base == MO_NONE_F || value < k->base) {
		k->base = value;
		h->unsaved = true;
	}
	return value - k->base;
}

double health_klog_total(struct health *h, const struct object *o, const char *rule, double more, const struct probe *p) {
	struct health_counter *k = find(h, o, rule);

	if (!k && h->n_counters >= MO_COUNTERS_MAX)
		return more;
	if (!k)
		k = add(h, o, rule);
	if (k->total == MO_NONE_F)
		k->total = 0;
	k->total += more;
	for (size_t i = 1; more > 0 && k->n_lines < EVIDENCE_MAX; i++) {
		_cleanup_(mo_freep) char *key = mo_printf("line.%s.%zu", rule, i);
		const char *line = reading_text(p, key);
		if (!line)
			break;
		mo_strs_add(&k->lines, &k->n_lines, line);
	}
	h->unsaved |= more > 0;
	return k->total;
}

void health_counters_forget(struct health *h, const struct object *o) {
	for (size_t i = h->n_counters; i-- > 0;)
		if (h->counters[i].area == o->area && mo_streq(h->counters[i].object, o->name)) {
			mo_vec_remove(&health_counter_desc, h->counters, &h->n_counters, i);
			h->unsaved = true;
		}
}

bool health_unsaved(const struct health *h) { return h->unsaved; }

void health_save(struct health *h, struct health_memory *ret) {
	mo_str_set(&ret->boot_id, h->boot_id);
	ret->version = h->told.version;
	ret->klog_seq = h->klog_seq;
	ret->gpus = h->gpus_seen;
	for (size_t i = 0; i < h->n_counters; i++)
		mo_desc_copy(&health_counter_desc, MO_ADD(ret, counters, &health_counter_desc), &h->counters[i]);
	h->unsaved = false;
}

void health_load(struct health *h, const struct health_memory *m) {
	if (m->version != MO_NONE)
		h->told.version = MO_MAX(h->told.version, m->version + 1);
	if (!mo_streq(m->boot_id, h->boot_id))
		return;
	h->klog_known = m->klog_seq != MO_NONE && m->klog_seq >= 0;
	h->klog_seq = h->klog_known ? m->klog_seq : -1;
	h->gpus_seen = m->gpus == MO_NONE ? 0 : m->gpus;
	for (size_t i = 0; i < m->n_counters; i++)
		if (m->counters[i].object && m->counters[i].reading)
			mo_desc_copy(&health_counter_desc, mo_vec_add(&health_counter_desc, (void **)&h->counters, &h->n_counters), &m->counters[i]);
}
