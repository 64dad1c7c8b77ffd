/* One RDMA card: its port's state, its error counters under the names of each driver, and its network interface. Files: hardware facts 1.4 (sysfs-class-infiniband,
 * sysfs-class-net); counter names from mlx5, bnxt_re and ionic. A card with several ports is judged by its first one, as the launcher uses it. */
#include <string.h>

#include "agent/core/reading.h"
#include "agent/core/sysfs_text.h"
#include "agent/probe/look.h"

struct counter { const char *key, *names[5]; };        /* the first that is there; drivers call one thing by different names */
static const struct counter counters[] = {
	{ "link_downed", { "counters/link_downed" } },
	{ "symbol_error", { "counters/symbol_error" } },
	{ "link_error_recovery", { "counters/link_error_recovery" } },
	{ "rcv_errors", { "counters/port_rcv_errors" } },
	{ "xmit_discards", { "counters/port_xmit_discards" } },
	{ "out_of_sequence", { "hw_counters/out_of_sequence", "hw_counters/oos_drop_count", "hw_counters/resp_rx_outouf_seq", "hw_counters/resp_rx_outof_seq" } },
	{ "packet_seq_err", { "hw_counters/packet_seq_err", "hw_counters/seq_err_naks_rcvd", "hw_counters/req_rx_pkt_seq_err" } },
	{ "local_ack_timeout", { "hw_counters/local_ack_timeout_err", "hw_counters/to_retransmits", "hw_counters/req_tx_retry_excd_err" } },
	{ "rnr_nak_retry", { "hw_counters/rnr_nak_retry_err", "hw_counters/rnr_naks_rcvd", "hw_counters/req_rx_rnr_retry_err" } },
};

static void add_state(struct look *l, const char *key, const char *port, const char *file) {
	_cleanup_(mo_freep) char *path = mo_printf("ports/%s/%s", port, file);
	const char *s = look_text(l, path);
	_cleanup_(mo_freep) char *state = s ? text_state(s) : NULL;

	reading_add_text(l->probe, key, state);
}

static void add_counter(struct look *l, const char *port, const struct counter *c) {
	for (size_t i = 0; i < ELEMENTSOF(c->names) && c->names[i]; i++) {
		_cleanup_(mo_freep) char *path = mo_printf("ports/%s/%s", port, c->names[i]);
		int64_t v = look_int(l, path);
		if (v == MO_NONE)
			continue;
		reading_add_int(l->probe, c->key, v);
		return;
	}
}

/* GIDs that another network segment can answer to: RoCE v2 with an address, neither an empty slot nor link-local. */
static void count_gids(struct look *l, const char *port) {
	_cleanup_(mo_freep) char *path = mo_printf("ports/%s/gids", port);
	struct look_names slots = look_list(l, false, path);
	int64_t n = 0;

	for (size_t i = 0; i < slots.n; i++) {
		_cleanup_(mo_freep) char *gid = mo_printf("%s/%s", path, slots.items[i]), *type = mo_printf("ports/%s/gid_attrs/types/%s", port, slots.items[i]);
		const char *s = look_text(l, gid);
		if (!s || !s[strspn(s, "0:\n")] || mo_starts_with(s, "fe80:"))
			continue;
		_cleanup_(mo_freep) char *word = (s = look_text(l, type)) ? text_line(s) : NULL;
		n += mo_streq(word, "RoCE v2");
	}
	if (slots.n)
		reading_add_int(l->probe, "gid_rocev2", n);
	look_names_done(&slots);
}

static double rate_of(struct look *l, const char *nic, const char *port) {
	_cleanup_(mo_freep) char *path = mo_printf("sys/class/infiniband/%s/ports/%s/rate", nic, port);
	const char *s = look_root(l, path);
	return s ? text_leading(s) : MO_NONE_F;
}

/* vendor:device of a card's PCI function, NULL unknown; caller frees. */
static char *kind_of(struct look *l, const char *nic) {
	_cleanup_(mo_freep) char *vendor = mo_printf("sys/class/infiniband/%s/device/vendor", nic), *device = mo_printf("sys/class/infiniband/%s/device/device", nic);
	int64_t v = look_root_int(l, vendor), d = look_root_int(l, device);
	return v == MO_NONE || d == MO_NONE ? NULL : mo_printf("%04llx:%04llx", (long long)v, (long long)d);
}

/* What the link should run at: the highest rate of a card of the same kind on this node. One that is alone is compared with nothing but itself. */
static void look_rates(struct look *l, const char *nic, const char *port) {
	_cleanup_(mo_freep) char *kind = kind_of(l, nic);
	struct look_names all = look_list(l, true, "sys/class/infiniband");
	double own = rate_of(l, nic, port), best = own;

	reading_add_text(l->probe, "device_id", kind);
	for (size_t i = 0; kind && i < all.n; i++) {
		_cleanup_(mo_freep) char *other = mo_streq(all.items[i], nic) ? NULL : kind_of(l, all.items[i]);
		if (other && mo_streq(kind, other))
			best = MO_MAX(best, rate_of(l, all.items[i], port));
	}
	look_names_done(&all);
	reading_add(l->probe, "rate_gbps", own);
	reading_add(l->probe, "rate_expected_gbps", best);
}

static void look_netdev(struct look *l) {
	struct look_names names = look_list(l, false, "device/net");

	if (names.n) {
		_cleanup_(mo_freep) char *base = mo_printf("device/net/%s", names.items[0]), *operstate = mo_printf("%s/operstate", base), *mtu = mo_printf("%s/mtu", base),
			*downs = mo_printf("%s/carrier_down_count", base);
		reading_add_text(l->probe, "netdev", names.items[0]);
		look_add_text(l, "operstate", operstate);
		look_add_int(l, "mtu", mtu);
		look_add_int(l, "carrier_down", downs);
	}
	look_names_done(&names);
}

void probe_nic(struct look *l, const char *name) {
	_cleanup_(mo_freep) char *path = mo_printf("sys/class/infiniband/%s", name);

	if (!look_enter(l, path)) {
		l->problems++;
		probe_problem(l->probe, "%s: " PROBE_NO_DEVICE, name);
		return;
	}
	const char *s = look_text(l, "node_guid");
	l->probe->identity = s ? text_line(s) : NULL;
	struct look_names ports = look_list(l, false, "ports");
	if (ports.n) {
		const char *port = ports.items[0];
		add_state(l, "state", port, "state");
		add_state(l, "phys_state", port, "phys_state");
		add_state(l, "link_layer", port, "link_layer");
		look_rates(l, name, port);
		for (size_t i = 0; i < ELEMENTSOF(counters); i++)
			add_counter(l, port, &counters[i]);
		if (mo_streq(reading_text(l->probe, "link_layer"), "Ethernet"))
			count_gids(l, port);
	} else {
		l->problems++;
		probe_problem(l->probe, "%s: it has no port", name);
	}
	look_names_done(&ports);
	look_netdev(l);
	look_add_text(l, "fw", "fw_ver");
	_cleanup_(mo_freep) char *driver = look_link(l, "device/driver");
	reading_add_text(l->probe, "driver", driver);
}
