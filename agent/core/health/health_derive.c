/* Readings that are made of others: totals of NUMA nodes, medians of GPUs, shares. */
#include "agent/core/health/health_derive.h"

#include <stdio.h>
#include <string.h>

#include "agent/core/health/health_state.h"
#include "agent/core/health/reading.h"
#include "lib/base/buf.h"
#include "lib/model/limits.h"

#define NVIDIA "10de:"
#define NUMA_FREE "numa_free_bytes."
#define NUMA_TOTAL "numa_total_bytes."
/* different values of one reading among equal devices */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Among the GPUs that are busy, this one included; MO_NONE_F: fewer than three are. */
static double median_power(const struct health *h, const struct object *o, const struct probe *p)
{
	double values[MO_GPUS_PER_NODE_MAX];
	size_t n = 0;

	for (size_t i = 0; i < h->n_objects && n < ELEMENTSOF(values); i++) {
		const struct probe *q = h->objects[i] == o ? p : &h->objects[i]->last;
		double power = reading_value(q, "power_w");
		if (h->objects[i]->area == PROBE_GPU && reading_value(q, "busy_pct") >= 90 &&
		    power != MO_NONE_F)
			values[n++] = power;
	}
	if (n < 3)
		return MO_NONE_F;
	qsort(values, n, sizeof(*values), by_value);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* Of the largest NUMA node: one with fewer modules than the others has a smaller part. */
static void derive_numa_totals(struct probe *p)
{
	size_t n_readings = p->n_readings;
	double most = 0;

	for (size_t i = 0; i < n_readings; i++)
		if (mo_starts_with(p->readings[i].key, NUMA_TOTAL))
			most = MO_MAX(most, p->readings[i].value);
	for (size_t i = 0; most > 0 && i < n_readings; i++) {
		if (!mo_starts_with(p->readings[i].key, NUMA_TOTAL))
			continue;
		_cleanup_(mo_freep) char *key =
			mo_printf("numa_total_share.%s", p->readings[i].key + strlen(NUMA_TOTAL));
		reading_add(p, key, p->readings[i].value / most);
	}
}

/* How many GPUs there should be, by whom: what agent.yaml says is said by a person; else the
 * most that one of the others says. */
static void derive_gpus(const struct health *h, struct probe *p)
{
	double pci = reading_value(p, "gpus_pci"), off = reading_value(p, "gpus_off_bus");
	_cleanup_(mo_buf_done) struct mo_buf missing = { 0 };
	int64_t there = pci == MO_NONE_F ? 0 : (int64_t)pci, n_missing = 0;
	size_t most = 0;

	for (size_t i = 0; i < h->n_objects; i++) {
		const struct object *o = h->objects[i];
		if (o->area != PROBE_GPU || !o->last.problem ||
		    !strstr(o->last.problem, PROBE_NO_DEVICE))
			continue;
		mo_buf_printf(&missing, "%s%s", missing.len ? " " : "", o->name);
		n_missing++;
	}
	const struct {
		int64_t n;
		const char *by;
	} known[] = {
		{ h->gpus_expected, "expect_gpus of agent.yaml" },
		{ h->gpus_seen, "the PCI bus, earlier in this boot" },
		{ there + n_missing, "what was found of this machine earlier in this boot" },
		{ there + (off == MO_NONE_F ? 0 : (int64_t)off),
		  "the driver (KFD), which still lists it" },
	};
	for (size_t i = 1; h->gpus_expected <= 0 && i < ELEMENTSOF(known); i++)
		most = most == 0 || known[i].n > known[most].n ? i : most;
	reading_add_int(p, "gpus_expected", known[most].n);
	reading_add_text(p, "gpus_expected.by", known[most].by);
	if (missing.len)
		reading_add_text(p, "gpus_pci.missing", missing.data);
}

/* Shares of what there is, so that small machines are judged by their own size. */
static void derive_host(const struct health *h, struct probe *p)
{
	double total = reading_value(p, "mem_total_bytes"), shm = reading_value(p, "shm_bytes");
	size_t n = 0, n_readings = p->n_readings;

	if (h->memory_expected > 0)
		reading_add_int(p, "mem_expected_bytes", h->memory_expected);
	derive_numa_totals(p);
	reading_add_text(p, "device_walls", h->walls);
	if (h->n_gpus)
		derive_gpus(h, p);
	for (size_t i = 0; i < n_readings; i++)
		n += mo_starts_with(p->readings[i].key, NUMA_FREE);
	for (size_t i = 0; total > 0 && i < n_readings; i++) {
		if (!mo_starts_with(p->readings[i].key, NUMA_FREE))
			continue;
		_cleanup_(mo_freep) char *key =
			mo_printf("numa_free_share.%s", p->readings[i].key + strlen(NUMA_FREE));
		reading_add(p, key, p->readings[i].value * (double)n / total);
	}
	if (total > 0 && shm != MO_NONE_F)
		reading_add(p, "shm_share", shm / total);
}

/* In the form of the expectation: with the memory's partition or without. */
static void derive_partition(const char *expected, struct probe *p)
{
	const char *compute = reading_text(p, "compute_partition"),
		   *memory = reading_text(p, "memory_partition");
	bool both = strchr(expected, '/') != NULL;
	_cleanup_(mo_freep) char *partition = !compute || (both && !memory) ? NULL
					      : both ? mo_printf("%s/%s", compute, memory)
						     : mo_strdup(compute);

	reading_add_text(p, "partition", partition);
	reading_add_text(p, "partition_expected", expected);
}

void health_derive(const struct health *h, const struct object *o, struct probe *p)
{
	double busy = reading_value(p, "busy_pct"), power = reading_value(p, "power_w"),
	       cap = reading_value(p, "power_cap_w");

	if (o->area == PROBE_HOST)
		derive_host(h, p);
	if (o->area != PROBE_GPU)
		return;
	if (h->partition_expected)
		derive_partition(h->partition_expected, p);
	if (health_idle(h, o))
		reading_add(p, "vram_held_bytes", reading_value(p, "vram_used_bytes"));
	if (busy >= 99 && power != MO_NONE_F && cap != MO_NONE_F && cap > 0)
		reading_add(p, "spinning_power_ratio", power / cap);
	/* those slow their links down while idle */
	if (reading_text(p, "device_id") && !mo_starts_with(reading_text(p, "device_id"), NVIDIA))
		reading_add(p, "pcie_speed_fixed_gts", reading_value(p, "pcie_speed_gts"));
	double median = busy >= 90 && power != MO_NONE_F ? median_power(h, o, p) : MO_NONE_F;
	if (median != MO_NONE_F && median > 0)
		reading_add(p, "power_of_median", power / median);
}
