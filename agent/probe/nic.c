/* One RDMA card: its port's state, its error counters under the names of each driver, and its
 * network interface. Files: hardware facts 1.4 (sysfs-class-infiniband, sysfs-class-net);
 * counter names from mlx5, bnxt_re and ionic. A card with several ports is judged by its first
 * one, as the launcher uses it. */
#include <string.h>

#include "agent/core/health/reading.h"
#include "agent/core/health/sysfs_text.h"
#include "agent/probe/probe_pass.h"

/* the first that is there; drivers call one thing by different names */
struct counter {
	const char *key, *names[5];
};
static const struct counter counters[] = {
	{ "link_downed", { "counters/link_downed" } },
	{ "symbol_error", { "counters/symbol_error" } },
	{ "link_error_recovery", { "counters/link_error_recovery" } },
	{ "rcv_errors", { "counters/port_rcv_errors" } },
	{ "xmit_discards", { "counters/port_xmit_discards" } },
	{ "out_of_sequence",
	  { "hw_counters/out_of_sequence", "hw_counters/oos_drop_count",
	    "hw_counters/resp_rx_outouf_seq", "hw_counters/resp_rx_outof_seq" } },
	{ "packet_seq_err",
	  { "hw_counters/packet_seq_err", "hw_counters/seq_err_naks_rcvd",
	    "hw_counters/req_rx_pkt_seq_err" } },
	{ "local_ack_timeout",
	  { "hw_counters/local_ack_timeout_err", "hw_counters/to_retransmits",
	    "hw_counters/req_tx_retry_excd_err" } },
	{ "rnr_nak_retry",
	  { "hw_counters/rnr_nak_retry_err", "hw_counters/rnr_naks_rcvd",
	    "hw_counters/req_rx_rnr_retry_err" } },
};

/* Bytes that the card sent and received; the first two that are there. Units: the kernel's
 * sysfs-class-infiniband (4 bytes); ionic's and bnxt_re's names of their own. */
static const struct {
	const char *sent, *received;
	double unit;
} traffic[] = {
	{ "counters/port_xmit_data", "counters/port_rcv_data", 4 },
	{ "hw_counters/tx_rdma_ucast_bytes", "hw_counters/rx_rdma_ucast_bytes", 1 },
	{ "hw_counters/tx_bytes", "hw_counters/rx_bytes", 1 },
};

static void add_traffic(struct probe_pass *l, const char *port)
{
	for (size_t i = 0; i < ELEMENTSOF(traffic); i++) {
		_cleanup_(mo_freep) char *sent = mo_printf("ports/%s/%s", port, traffic[i].sent),
					 *received = mo_printf("ports/%s/%s", port,
							       traffic[i].received);
		int64_t out = pass_int(l, sent),
			in = out == MO_NONE ? MO_NONE : pass_int(l, received);

		if (in == MO_NONE)
			continue;
		reading_add(l->probe, "rdma_bytes", ((double)out + (double)in) * traffic[i].unit);
		return;
	}
}

/* "4: ACTIVE" */
static void add_state(struct probe_pass *l, const char *key, const char *port, const char *file)
{
	_cleanup_(mo_freep) char *path = mo_printf("ports/%s/%s", port, file);
	_cleanup_(mo_freep) char *line = pass_line(l, path);
	_cleanup_(mo_freep) char *state =
		line && line[strspn(line, "0123456789")] == ':' ? text_state(line) : NULL;

	if (line && (!state || *line == ':'))
		pass_bad(l, path, "it is no state");
	else
		reading_add_text(l->probe, key, state);
}

static void add_counter(struct probe_pass *l, const char *port, const struct counter *c)
{
	for (size_t i = 0; i < ELEMENTSOF(c->names) && c->names[i]; i++) {
		_cleanup_(mo_freep) char *path = mo_printf("ports/%s/%s", port, c->names[i]);
		int64_t v = pass_int(l, path);
		if (v == MO_NONE)
			continue;
		reading_add_int(l->probe, c->key, v);
		return;
	}
}

/* 1: a GID that another network segment can answer to, RoCE v2 with an address; 0: an empty
 * slot, a link-local one, another type; -1: not understood. */
static int usable_gid(struct probe_pass *l, const char *port, const char *slot)
{
	_cleanup_(mo_freep) char *gid = mo_printf("ports/%s/gids/%s", port, slot),
				 *type = mo_printf("ports/%s/gid_attrs/types/%s", port, slot);
	int64_t problems = l->problems;
	_cleanup_(mo_freep) char *address = pass_line(l, gid);

	if (address &&
	    (address[strspn(address, "0123456789abcdefABCDEF:")] || !strchr(address, ':')))
		pass_bad(l, gid, "it is no address");
	if (!address || l->problems > problems)
		return l->problems > problems ? -1 : 0;
	if (!address[strspn(address, "0:")] || mo_starts_with(address, "fe80:"))
		return 0;
	_cleanup_(mo_freep) char *word = pass_line(l, type);
	if (word && !mo_streq(word, "RoCE v2") && !mo_streq(word, "IB/RoCE v1") &&
	    !mo_streq(word, "RoCE v1"))
		pass_bad(l, type, "it is no type of an address");
	return l->problems > problems ? -1 : mo_streq(word, "RoCE v2");
}

/* Nothing is said where one slot cannot be understood: it may be the one that counts. */
static void count_gids(struct probe_pass *l, const char *port)
{
	_cleanup_(mo_freep) char *path = mo_printf("ports/%s/gids", port);
	struct pass_names slots = pass_list(l, false, path);
	int64_t n = 0, unknown = 0;

	for (size_t i = 0; i < slots.n; i++) {
		int usable = usable_gid(l, port, slots.items[i]);
		n += usable > 0;
		unknown += usable < 0;
	}
	if (slots.n && (n || !unknown))
		reading_add_int(l->probe, "gid_rocev2", n);
	pass_names_done(&slots);
}

static double rate_of(struct probe_pass *l, const char *nic, const char *port)
{
	_cleanup_(mo_freep) char *path =
		mo_printf("sys/class/infiniband/%s/ports/%s/rate", nic, port);
	return pass_root_leading(l, path);
}

/* vendor:device of a card's PCI function, NULL unknown; caller frees. */
static char *kind_of(struct probe_pass *l, const char *nic)
{
	_cleanup_(mo_freep) char *vendor = mo_printf("sys/class/infiniband/%s/device/vendor", nic),
				 *device = mo_printf("sys/class/infiniband/%s/device/device", nic);
	int64_t v = pass_root_int(l, vendor), d = pass_root_int(l, device);
	return v == MO_NONE || d == MO_NONE
		       ? NULL
		       : mo_printf("%04llx:%04llx", (long long)v, (long long)d);
}

/* What the link should run at: the highest rate of a card of the same kind on this node. One
 * that is alone is compared with nothing but itself. */
static void pass_rates(struct probe_pass *l, const char *nic, const char *port)
{
	_cleanup_(mo_freep) char *kind = kind_of(l, nic);
	struct pass_names all = pass_list(l, true, "sys/class/infiniband");
	double own = rate_of(l, nic, port), best = own;

	reading_add_text(l->probe, "device_id", kind);
	l->others = true;
	for (size_t i = 0; kind && i < all.n; i++) {
		_cleanup_(mo_freep) char *other =
			mo_streq(all.items[i], nic) ? NULL : kind_of(l, all.items[i]);
		if (other && mo_streq(kind, other))
			best = MO_MAX(best, rate_of(l, all.items[i], port));
	}
	l->others = false;
	pass_names_done(&all);
	reading_add(l->probe, "rate_gbps", own);
	reading_add(l->probe, "rate_expected_gbps", best);
}

static void pass_netdev(struct probe_pass *l)
{
	struct pass_names names = pass_list(l, false, "device/net");

	if (names.n) {
		_cleanup_(mo_freep) char *base = mo_printf("device/net/%s", names.items[0]),
					 *operstate = mo_printf("%s/operstate", base),
					 *mtu = mo_printf("%s/mtu", base),
					 *downs = mo_printf("%s/carrier_down_count", base);
		reading_add_text(l->probe, "netdev", names.items[0]);
		pass_add_text(l, "operstate", operstate);
		pass_add_int(l, "mtu", mtu);
		pass_add_int(l, "carrier_down", downs);
	}
	pass_names_done(&names);
}

void probe_nic_sensors(struct probe_pass *l, const char *name)
{
	if (!pass_device(l, "sys/class/infiniband", name))
		return;
	struct pass_names ports = pass_list(l, false, "ports");
	if (ports.n)
		add_traffic(l, ports.items[0]);
	pass_names_done(&ports);
}

void probe_nic(struct probe_pass *l, const char *name)
{
	if (!pass_device(l, "sys/class/infiniband", name))
		return;
	l->probe->identity = pass_line(l, "node_guid");
	struct pass_names ports = pass_list(l, false, "ports");
	if (ports.n) {
		const char *port = ports.items[0];
		add_state(l, "state", port, "state");
		add_state(l, "phys_state", port, "phys_state");
		_cleanup_(mo_freep) char *layer = mo_printf("ports/%s/link_layer", port);
		pass_add_text(l, "link_layer", layer);
		pass_rates(l, name, port);
		for (size_t i = 0; i < ELEMENTSOF(counters); i++)
			add_counter(l, port, &counters[i]);
		add_traffic(l, port);
		if (mo_streq(reading_text(l->probe, "link_layer"), "Ethernet"))
			count_gids(l, port);
	} else {
		l->problems++;
		probe_problem(l->probe, "%s: it has no port", name);
	}
	pass_names_done(&ports);
	pass_netdev(l);
	pass_add_text(l, "fw", "fw_ver");
	_cleanup_(mo_freep) char *driver = pass_link(l, "device/driver");
	reading_add_text(l->probe, "driver", driver);
}
