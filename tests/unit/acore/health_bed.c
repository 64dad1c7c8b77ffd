/* See health_bed.h. */
#include "tests/unit/acore/health_bed.h"

const struct health_intervals bed_every = { .sensors_us = 5 * SECOND,
					    .device_us = 30 * SECOND,
					    .host_us = MINUTE,
					    .klog_us = 10 * SECOND };
static char ids[8][32], what[] = "it is bad", next[] = "look";

struct health_check bed_check(int i, const char *id, int area, int64_t when, char *reading,
			      double crit_above)
{
	struct health_check c;

	mo_desc_init(&health_check_desc, &c);
	strncpy(ids[i], id, sizeof(ids[i]) - 1);
	c.id = ids[i];
	c.what = what;
	c.next = next;
	c.area = area;
	c.when = when;
	c.reading = reading;
	c.measure = MEASURE_VALUE;
	c.crit_above = crit_above;
	c.otherwise = CHECK_UNKNOWN;
	c.absent = CHECK_OK;
	c.needs = NEEDS_NOTHING;
	c.consecutive = 1;
	c.window_us = 3600 * SECOND;
	c.action = ACTION_CORDON;
	c.enabled = true;
	return c;
}

struct health *bed_make(const struct health_check *checks, size_t n, int64_t version)
{
	static char bdf0[] = GPU0, bdf1[] = GPU1;
	struct gpu_slot gpus[2];
	struct nodeinfo info;
	struct health *h = health_new(&(struct health_checks){ (struct health_check *)checks, n },
				      "boot", &bed_every, version);

	mo_desc_init(&nodeinfo_desc, &info);
	for (size_t i = 0; i < 2; i++) {
		mo_desc_init(&gpu_slot_desc, &gpus[i]);
		gpus[i].index = (int64_t)i;
		gpus[i].bdf = i ? bdf1 : bdf0;
	}
	info.gpus = gpus;
	info.n_gpus = 2;
	health_devices(h, &info, 0, START);
	return h;
}

void bed_probe(struct health *h, int area, const char *object, const char *identity,
	       const char *key, double value, const char *trouble, int64_t now)
{
	struct probe p;

	mo_desc_init(&probe_desc, &p);
	p.area = area;
	p.object = mo_strdup(object);
	p.identity = mo_strdup(identity);
	p.problem = mo_strdup(trouble);
	if (key)
		reading_add(&p, key, value);
	health_probe(h, &p, now);
	mo_desc_done(&probe_desc, &p);
}

const struct check_result *bed_result(struct health *h, const char *id, const char *object)
{
	const struct node_health *n = health_results(h);

	for (size_t i = 0; i < n->n_results; i++)
		if (mo_streq(n->results[i].check, id) && mo_streq(n->results[i].object, object))
			return &n->results[i];
	return NULL;
}

int bed_state(struct health *h, const char *id, const char *object)
{
	const struct check_result *r = bed_result(h, id, object);
	return r ? r->state : CHECK_OK;
}
