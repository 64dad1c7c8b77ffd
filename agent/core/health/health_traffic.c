/* What network cards and the XGMI links of GPUs move, by their counters of bytes: when that was a
 * good deal last. Kept of every probe, so that it is known whether the job that runs sends by a
 * card at all; cards are probed as often as GPUs only while somebody asks (health_traffic_asked()),
 * because reading them asks their firmware. */
#include "agent/core/health/health_state.h"
#include "agent/core/health/reading.h"

/* Less than that a second is what goes over a card beside collectives: management datagrams, agents
 * and exporters over IPoIB. A collective that waits sends nothing by RDMA: its proxies poll
 * completions in memory. A card of 400 Gb/s moves 50,000 times as much. */
#define TRAFFIC_LEAST (1 << 20)
/* Kernels that wait for a flag in another GPU's memory read it over XGMI again and again: a line of
 * 64 bytes in about a microsecond each. So much less than what the job moved is no work. */
#define TRAFFIC_SHARE 100
/* Two probes that come together tell no rate. */
#define TRAFFIC_APART_US 1000000
/* So long somebody is taken to ask. */
#define TRAFFIC_ASKED_US 10000000

void health_traffic_begin(struct object *o)
{
	o->traffic.most = 0;
	o->traffic.moved_at = MO_NONE;
}

void health_traffic_take(struct object *o, const struct probe *p, int64_t now)
{
	struct traffic *t = &o->traffic;
	double bytes = reading_value(p, o->area == PROBE_NIC ? "rdma_bytes" : "xgmi_bytes");
	int64_t passed = t->read_at == MO_NONE ? 0 : now - t->read_at;
	double rate;

	if (bytes != MO_NONE_F && t->read_at != MO_NONE && bytes >= t->bytes) {
		if (passed < TRAFFIC_APART_US)
			return;
		rate = (bytes - t->bytes) * 1e6 / (double)passed;
		t->most = MO_MAX(t->most, rate);
		if (rate >= MO_MAX((double)TRAFFIC_LEAST, t->most / TRAFFIC_SHARE))
			t->moved_at = now;
	} else if (t->moved_at != MO_NONE) {
		t->moved_at = now; /* it may have, unseen */
	}
	t->bytes = bytes;
	t->read_at = bytes == MO_NONE_F ? MO_NONE : now;
}

void health_traffic_asked(struct health *h, int64_t now)
{
	h->traffic_until = now + TRAFFIC_ASKED_US;
	for (size_t i = 0; i < h->n_objects; i++)
		if (h->objects[i]->area == PROBE_NIC && h->objects[i]->next_sensors == INT64_MAX)
			h->objects[i]->next_sensors = now;
}

struct health_traffic health_traffic(const struct health *h, int area, const char *name)
{
	const struct object *o = health_object(h, area, name);

	return o ? (struct health_traffic){ o->traffic.read_at, o->traffic.moved_at }
		 : (struct health_traffic){ MO_NONE, MO_NONE };
}
