/* What cards and links moved last, by the counters that probes tell. */
#include "tests/unit/acore/health_bed.h"

#define MIB ((double)(1 << 20))
#define NIC "mlx5_0"

static struct health *bed(void)
{
	static char bdf[] = GPU0, nic[] = NIC;
	struct gpu_slot gpu;
	struct nic_info card;
	struct nodeinfo info;
	struct health *h = health_new(&(struct health_checks){ 0 }, "boot", &bed_every, 1);

	mo_desc_init(&nodeinfo_desc, &info);
	mo_desc_init(&gpu_slot_desc, &gpu);
	mo_desc_init(&nic_info_desc, &card);
	gpu.bdf = bdf;
	gpu.index = 0;
	gpu.nic = card.name = nic;
	info.gpus = &gpu, info.n_gpus = 1;
	info.nics = &card, info.n_nics = 1;
	health_devices(h, &info, 0, START);
	health_busy(h, (int64_t[]){ 0 }, 1, 1, START);
	return h;
}

static void rdma(struct health *h, double bytes, int64_t at)
{
	bed_probe(h, PROBE_NIC, NIC, NULL, bytes < 0 ? NULL : "rdma_bytes", bytes, NULL, at);
}

static int64_t moved(const struct health *h)
{
	return health_traffic(h, PROBE_NIC, NIC).moved_at;
}

static void it_moves_by_a_good_deal_alone(void **state)
{
	_cleanup_(health_freep) struct health *h = bed();
	int64_t now = START;
	double bytes = 1e12;

	assert_int_equal(health_traffic(h, PROBE_NIC, NIC).read_at, MO_NONE);
	rdma(h, bytes, now);
	assert_int_equal(health_traffic(h, PROBE_NIC, NIC).read_at, now);
	assert_int_equal(moved(h), MO_NONE); /* since when, nobody knows */
	for (int i = 0; i < 10; i++)         /* beats of agents, exporters */
		rdma(h, bytes += 200e3 * 5, now += 5 * SECOND);
	assert_int_equal(moved(h), MO_NONE);
	rdma(h, bytes += 2 * MIB * 5, now += 5 * SECOND);
	assert_int_equal(moved(h), now);
	rdma(h, bytes += MIB, now + SECOND / 10); /* two probes at once tell no rate */
	assert_int_equal(moved(h), now);
	assert_int_equal(health_traffic(h, PROBE_NIC, "mlx5_9").read_at, MO_NONE);
}

/* Polling is much less than what the job moved. */
static void a_hundredth_of_what_it_moved_is_none(void **state)
{
	_cleanup_(health_freep) struct health *h = bed();
	int64_t now = START, worked;
	double bytes = 0;

	rdma(h, bytes, now);
	rdma(h, bytes += 30e9 * 5, worked = now += 5 * SECOND);
	rdma(h, bytes += 200e6 * 5, now += 5 * SECOND);
	assert_int_equal(moved(h), worked);
	rdma(h, bytes += 400e6 * 5, now += 5 * SECOND);
	assert_int_equal(moved(h), now);
	/* the next job moves less */
	health_busy(h, NULL, 0, 0, now);
	health_busy(h, (int64_t[]){ 0 }, 1, 1, now);
	assert_int_equal(moved(h), MO_NONE);
	rdma(h, bytes += 200e6 * 5, now += 5 * SECOND);
	assert_int_equal(moved(h), now);
}

/* A counter that cannot be read, or began anew, may have moved meanwhile. */
static void what_was_not_seen_may_have_moved(void **state)
{
	_cleanup_(health_freep) struct health *h = bed();
	int64_t now = START;

	rdma(h, 0, now);
	rdma(h, 1e9, now += 5 * SECOND);
	rdma(h, -1, now += 30 * SECOND);
	assert_int_equal(health_traffic(h, PROBE_NIC, NIC).read_at, MO_NONE);
	rdma(h, 1e9, now += 30 * SECOND);
	assert_int_equal(moved(h), now);
	rdma(h, 1e9, now + 30 * SECOND);
	assert_int_equal(moved(h), now);
	rdma(h, 5, now += 60 * SECOND);
	assert_int_equal(moved(h), now);
}

static void links_are_a_gpu_s(void **state)
{
	_cleanup_(health_freep) struct health *h = bed();

	bed_probe(h, PROBE_GPU, GPU0, NULL, "xgmi_bytes", 0, NULL, START);
	bed_probe(h, PROBE_GPU, GPU0, NULL, "xgmi_bytes", 1e9, NULL, START + 5 * SECOND);
	assert_int_equal(health_traffic(h, PROBE_GPU, GPU0).moved_at, START + 5 * SECOND);
	assert_int_equal(moved(h), MO_NONE);
}

static size_t probes(struct health *h, int64_t now, bool *ret_sensors)
{
	struct health_pass l;
	size_t n = 0;

	while (health_due(h, now, &l)) {
		if (l.area == PROBE_NIC) {
			n++;
			*ret_sensors = l.sensors;
			rdma(h, 0, now);
		} else {
			bed_probe(h, l.area, l.object, NULL, NULL, 0, NULL, now);
		}
	}
	return n;
}

/* Its counters ask the firmware: every 5 seconds only while somebody wants to know. */
static void cards_are_read_often_while_it_is_asked(void **state)
{
	_cleanup_(health_freep) struct health *h = bed();
	int64_t now = START + MINUTE;
	struct nic_sensors *told = NULL;
	size_t n = 0, often = 0, n_told = 0;
	bool sensors = false;

	probes(h, now, &sensors);
	for (int i = 0; i < 60; i++)
		n += probes(h, now += SECOND, &sensors);
	assert_in_range(n, 1, 3);
	assert_false(sensors);
	health_nics(h, &told, &n_told);
	assert_int_equal(n_told, 1);
	mo_vec_clear(&nic_sensors_desc, (void **)&told, &n_told);
	for (int i = 0; i < 20; i++) {
		health_traffic_asked(h, now += SECOND);
		often += probes(h, now, &sensors);
		if (often == 1 && sensors) { /* of that nobody tells */
			health_nics(h, &told, &n_told);
			assert_int_equal(n_told, 0);
		}
	}
	assert_in_range(often, 4, 6);
	now += 20 * SECOND;
	for (int i = n = 0; i < 60; i++)
		n += probes(h, now += SECOND, &sensors);
	assert_in_range(n, 1, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_moves_by_a_good_deal_alone),
		cmocka_unit_test(a_hundredth_of_what_it_moved_is_none),
		cmocka_unit_test(what_was_not_seen_may_have_moved),
		cmocka_unit_test(links_are_a_gpu_s),
		cmocka_unit_test(cards_are_read_often_while_it_is_asked),
	};

	return cmocka_run_group_tests_name("acore/traffic", tests, NULL, NULL);
}
