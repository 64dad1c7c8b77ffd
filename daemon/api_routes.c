/* The one table of all routes: deny by default, the least role beside each. Tests walk it through /openapi.json. */
#include "daemon/api.h"
#include "lib/model/limits.h"

#define B MO_BODY_BYTES_MAX
#define A MO_AGENT_BODY_BYTES_MAX
#define SMALL 16384
const struct api_route api_routes[] = {
	{ { "POST", "/v1/jobs", ROLE_USER, api_jobs_submit, B, true }, "Submit a recipe (YAML or JSON). Idempotency-Key makes repeats harmless; dry_run=1 starts nothing.", "jobs", "dry_run Idempotency-Key" },
	{ { "GET", "/v1/jobs", ROLE_VIEWER, api_jobs_list, 0, false }, "List jobs; state= (several with commas), name=, limit=, after=, last=1 for the newest.", "jobs", "state name limit after last" },
	{ { "GET", "/v1/jobs/{id}", ROLE_VIEWER, api_jobs_get, 0, false }, "One job.", "jobs" },
	{ { "POST", "/v1/jobs/{id}/cancel", ROLE_USER, api_jobs_cancel, SMALL, false }, "End a job; {\"now\":true} without grace.", "jobs" },
	{ { "POST", "/v1/jobs/{id}/pause", ROLE_USER, api_jobs_pause, SMALL, false }, "Stop a job as planned and free its GPUs.", "jobs" },
	{ { "POST", "/v1/jobs/{id}/resume", ROLE_USER, api_jobs_resume, SMALL, false }, "Queue a paused job again.", "jobs" },
	{ { "POST", "/v1/jobs/{id}/restart", ROLE_USER, api_jobs_restart, SMALL, false }, "Stop as planned and start again from a checkpoint; {\"from\":ITERATION}.", "jobs" },
	{ { "GET", "/v1/jobs/{id}/ranks", ROLE_VIEWER, api_job_ranks, 0, false }, "Ranks of the current or last attempt.", "jobs", "limit after" },
	{ { "GET", "/v1/jobs/{id}/metrics", ROLE_VIEWER, api_job_metrics, 0, false }, "Samples by attempt and iteration; since=ITERATION, last=1 for the newest.", "jobs", "since limit after last" },
	{ { "GET", "/v1/jobs/{id}/events", ROLE_VIEWER, api_job_events, 0, false }, "Events of the job; follow=1 streams them.", "jobs", "type follow limit after last Last-Event-ID" },
	{ { "GET", "/v1/jobs/{id}/checkpoints", ROLE_VIEWER, api_job_checkpoints, 0, false }, "The ledger of checkpoints; last=1 for the newest.", "jobs", "limit after last" },
	{ { "GET", "/v1/jobs/{id}/report", ROLE_VIEWER, api_job_report, 0, false }, "GPU seconds by category, ETTR, incidents; anchor=1: as moectl plan --anchor reads it.", "jobs", "anchor" },
	{ { "GET", "/v1/jobs/{id}/logs", ROLE_VIEWER, api_job_logs, 0, false }, "Output of the ranks as text; rank=, attempt=, lines=, follow=1, records=1, from=.", "jobs", "rank attempt lines follow records from" },
	{ { "GET", "/v1/jobs/{id}/why", ROLE_VIEWER, api_job_why, 0, false }, "Why the job is in its state, with evidence.", "jobs" },
	{ { "GET", "/v1/jobs/{id}/env", ROLE_VIEWER, api_job_env, 0, false }, "Environment of a rank (rank=0) with reason and source.", "jobs", "rank limit after" },
	{ { "GET", "/v1/nodes", ROLE_VIEWER, api_nodes_list, 0, false }, "List nodes.", "nodes", "limit after" },
	{ { "GET", "/v1/nodes/{name}", ROLE_VIEWER, api_nodes_get, 0, false }, "One node with its GPUs and NUMA nodes.", "nodes" },
	{ { "GET", "/v1/nodes/{name}/why", ROLE_VIEWER, api_nodes_why, 0, false }, "Why the node is in its state.", "nodes" },
	{ { "POST", "/v1/nodes/{name}/drain", ROLE_OPERATOR, api_nodes_drain, SMALL, false }, "Give a node no new work: {\"reason\":TEXT,\"when\":\"idle|checkpoint|now\"}.", "nodes" },
	{ { "POST", "/v1/nodes/{name}/undrain", ROLE_OPERATOR, api_nodes_undrain, SMALL, false }, "Give it work again.", "nodes" },
	{ { "POST", "/v1/nodes/{name}/fence", ROLE_OPERATOR, api_nodes_fence, SMALL, false }, "State that a silent node is powered off: {\"confirmed\":true}.", "nodes" },
	{ { "POST", "/v1/plan", ROLE_VIEWER, api_plan, B, true }, "Plan a recipe; gpus=, gpu=, top=, scale=. Two searches at once, then 429.", "planning", "gpus gpu top scale" },
	{ { "POST", "/v1/validate", ROLE_VIEWER, api_validate, B, true }, "Check a recipe.", "planning" },
	{ { "GET", "/v1/events", ROLE_VIEWER, api_events, 0, false }, "Events; follow=1 for Server-Sent Events, resumable with Last-Event-ID; job=, node=, type=, last=.", "cluster", "job node type follow limit after last Last-Event-ID" },
	{ { "GET", "/v1/cluster", ROLE_VIEWER, api_cluster, 0, false }, "Nodes, GPUs and jobs in figures.", "cluster" },
	{ { "POST", "/v1/tokens", ROLE_ADMIN, api_tokens_create, SMALL, false }, "Make a token: {\"role\":ROLE,\"user\":NAME,\"ttl\":\"30d\"}; its text is shown once.", "access" },
	{ { "GET", "/v1/tokens", ROLE_ADMIN, api_tokens_list, 0, false }, "List tokens.", "access", "limit after" },
	{ { "DELETE", "/v1/tokens/{id}", ROLE_ADMIN, api_tokens_revoke, 0, false }, "Revoke a token; its streams end.", "access" },
	{ { "POST", "/v1/session", ROLE_VIEWER, api_session_create, SMALL, false }, "Cookie for the bearer token of this request.", "access" },
	{ { "DELETE", "/v1/session", ROLE_VIEWER, api_session_delete, 0, false }, "Drop the cookie.", "access" },
	{ { "POST", "/v1/agent/hello", ROLE_AGENT, link_hello, A, false }, "Agent protocol: an agent registers.", "agent" },
	{ { "POST", "/v1/agent/sync", ROLE_AGENT, link_sync, A, false }, "Agent protocol: beat; held until a command is due.", "agent" },
	{ { "POST", "/v1/agent/news", ROLE_AGENT, link_news, A, false }, "Agent protocol: urgent notes.", "agent" },
	{ { "POST", "/v1/agent/answer", ROLE_AGENT, link_answer, A, false }, "Agent protocol: answer of a question.", "agent" },
	{ { "GET", "/metrics", ROLE_VIEWER, api_metrics, 0, false }, "Prometheus metrics.", "cluster" },
	{ { "GET", "/healthz", ROLE_NONE, api_healthz, 0, false }, "The controller runs.", "probes" },
	{ { "GET", "/readyz", ROLE_NONE, api_readyz, 0, false }, "It takes new work.", "probes" },
	{ { "GET", "/openapi.json", ROLE_NONE, api_openapi, 0, false }, "This description.", "page" },
	{ { "GET", "/", ROLE_NONE, api_web, 0, false }, "The dashboard.", "page" },
	{ { "GET", "/app.js", ROLE_NONE, api_web, 0, false }, "Dashboard file.", "page" },
	{ { "GET", "/style.css", ROLE_NONE, api_web, 0, false }, "Dashboard file.", "page" },
	{ { "GET", "/favicon.svg", ROLE_NONE, api_web, 0, false }, "Dashboard file.", "page" },
	{ { "GET", "/uPlot.iife.min.js", ROLE_NONE, api_web, 0, false }, "Dashboard file.", "page" },
	{ { "GET", "/uPlot.min.css", ROLE_NONE, api_web, 0, false }, "Dashboard file.", "page" },
};
const size_t n_api_routes = ELEMENTSOF(api_routes);
