/* The cluster in figures, and the two probes. */
#include "daemon/api_cluster.h"

#include "daemon/api.h"

void api_cluster(void *arg, struct http_request *r)
{
	struct cluster_view v;

	mo_desc_init(&cluster_view_desc, &v);
	cluster_view(manager_state(arg), MO_VERSION, &v);
	v.loopback = options_loopback(((struct manager *)arg)->options);
	api_send_doc(r, 200, &cluster_view_desc, &v);
	mo_desc_done(&cluster_view_desc, &v);
}

struct probe_view {
	const char *status;
};
static const struct mo_field probe_view_fields[] = {
	MO_D(probe_view, status, MO_STR, "ok, or ready"),
};
const struct mo_desc probe_view_desc = MO_DESC(probe_view, probe_view_fields);

void api_healthz(void *arg, struct http_request *r)
{
	api_send_doc(r, 200, &probe_view_desc, &(struct probe_view){ "ok" });
}

/* Serving begins after the replay, so whoever gets an answer gets a ready one, unless nothing
 * new can be stored. */
void api_readyz(void *arg, struct http_request *r)
{
	struct manager *m = arg;

	if (m->store_full)
		http_problem(r, 503,
			     "the state disk is full: running jobs go on, new ones are refused");
	else
		api_send_doc(r, 200, &probe_view_desc, &(struct probe_view){ "ready" });
}
