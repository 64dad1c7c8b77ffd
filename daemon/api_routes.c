/* The one table of all routes: deny by default, the least role beside each. Tests walk it
 * through /openapi.json. */
#include "daemon/api_routes.h"

#include "agent/core/bind/explain.h"
#include "daemon/agent_http.h"
#include "daemon/api_cluster.h"
#include "daemon/api_config.h"
#include "daemon/api_events.h"
#include "daemon/api_exec.h"
#include "daemon/api_fabric.h"
#include "daemon/api_explain.h"
#include "daemon/api_job_docs.h"
#include "daemon/api_job_drawn.h"
#include "daemon/api_image_check.h"
#include "daemon/api_images.h"
#include "daemon/api_jobs.h"
#include "daemon/api_logs.h"
#include "daemon/api_metrics.h"
#include "daemon/api_nodes.h"
#include "daemon/api_openapi.h"
#include "daemon/api_plan.h"
#include "daemon/api_records.h"
#include "daemon/api_sd.h"
#include "daemon/api_signin.h"
#include "daemon/api_submit.h"
#include "daemon/api_tokens.h"
#include "daemon/api_topology.h"
#include "daemon/api_webhooks.h"
#include "daemon/backup.h"
#include "daemon/core/view/curve.h"
#include "daemon/core/view/matrix.h"
#include "daemon/core/view/report.h"
#include "daemon/core/view/stack_drift.h"
#include "daemon/core/view/topology.h"
#include "daemon/core/view/view_node.h"
#include "daemon/core/view/why_view.h"
#include "daemon/effects.h"
#include "daemon/images.h"
#include "daemon/web.h"
#include "daemon/webhooks.h"
#include "lib/model/image_check.h"
#include "lib/model/limits.h"
#include "lib/plan/plan_desc.h"
#include "lib/base/frame.h"

#define B MO_BODY_BYTES_MAX
#define A MO_AGENT_BODY_BYTES_MAX
#define SMALL 16384
/* A hello costs a quarter of a millisecond: with so many before it, it is answered long before its
 * agent gives it up. */
#define HELLOS_MOST 500
const struct api_route api_routes[] = {
	{ { "POST", "/v1/jobs", ROLE_USER, api_jobs_submit, B, true },
	  "Submit a recipe (YAML or JSON). Idempotency-Key makes repeats harmless; dry_run=1 "
	  "starts nothing.",
	  "jobs",
	  "dry_run Idempotency-Key",
	  .answer = &submitted_view_desc,
	  .other = "dry_run" },
	{ { "GET", "/v1/jobs", ROLE_VIEWER, api_jobs_list, 0, false },
	  "List jobs; state= (several with commas), name=, user=, label= (NAME or NAME=VALUE, "
	  "several with commas), limit=, after=, last=1 for the newest.",
	  "jobs",
	  "state name user label limit after last",
	  .answer = &job_view_desc,
	  .list = true },
	{ { "GET", "/v1/jobs/{id}", ROLE_VIEWER, api_jobs_get, 0, false },
	  "One job.",
	  "jobs",
	  .answer = &job_view_desc },
	{ { "POST", "/v1/jobs/{id}/cancel", ROLE_USER, api_jobs_cancel, SMALL, false },
	  "End a job; {\"now\":true} without grace.",
	  "jobs",
	  .answer = &job_view_desc,
	  .body = &cancel_body_desc },
	{ { "POST", "/v1/jobs/{id}/pause", ROLE_USER, api_jobs_pause, SMALL, false },
	  "Stop a job as planned and free its GPUs.",
	  "jobs",
	  .answer = &job_view_desc },
	{ { "POST", "/v1/jobs/{id}/resume", ROLE_USER, api_jobs_resume, SMALL, false },
	  "Queue a paused job again.",
	  "jobs",
	  .answer = &job_view_desc },
	{ { "POST", "/v1/jobs/{id}/restart", ROLE_USER, api_jobs_restart, SMALL, false },
	  "Stop as planned and start again from a checkpoint; {\"from\":ITERATION}.",
	  "jobs",
	  .answer = &job_view_desc,
	  .body = &restart_body_desc },
	{ { "POST", "/v1/jobs/{id}/exec", ROLE_USER, api_job_exec, SMALL, false },
	  "Run a command beside a rank, as the job's user, for its owner and admins: "
	  "{\"rank\":N,\"command\":[WORDS],\"timeout_s\":N}; four at once.",
	  "jobs",
	  .answer = &exec_desc,
	  .body = &exec_body_desc },
	{ { "GET", "/v1/jobs/{id}/exec/{exec}", ROLE_USER, api_job_exec_get, 0, false },
	  "What came of such a command; kept for ten minutes.",
	  "jobs",
	  .answer = &exec_desc },
	{ { "POST", "/v1/jobs/{id}/fabric", ROLE_OPERATOR, api_job_fabric, B, false },
	  "Tell what a check of the fabric over the job's nodes found (moectl fabric check --job): "
	  "recorded in the job, shown by why; the newest counts.",
	  "jobs",
	  .answer = &job_view_desc,
	  .body = &fabric_result_desc },
	{ { "GET", "/v1/jobs/{id}/ranks", ROLE_VIEWER, api_job_ranks, 0, false },
	  "Ranks of the current or last attempt.",
	  "jobs",
	  "limit after",
	  .answer = &rank_view_desc,
	  .list = true },
	{ { "GET", "/v1/jobs/{id}/metrics", ROLE_VIEWER, api_job_metrics, 0, false },
	  "Samples by attempt and iteration; since=ITERATION, last=1 for the newest. "
	  "points=N (10 to 2000): the run of all attempts to be drawn, in about N buckets with "
	  "least, greatest and newest value; names=loss,step_ms; after= for what is newer.",
	  "jobs",
	  "since limit after last points names",
	  .answer = &sample_desc,
	  .list = true,
	  .beside = &samples_view_desc,
	  .other = "points",
	  .other_answer = &curve_view_desc },
	{ { "GET", "/v1/jobs/{id}/matrix", ROLE_VIEWER, api_job_matrix, 0, false },
	  "One value of every rank, by rank, up to 8192 an answer, and the ranks that stand "
	  "out; metric=step_ms, iteration, state, doing and what processes and GPUs do.",
	  "jobs",
	  "metric limit after",
	  .answer = &matrix_view_desc },
	{ { "GET", "/v1/jobs/{id}/events", ROLE_VIEWER, api_job_events, 0, false },
	  "Events of the job; follow=1 streams them, progress=j-7 beside them how far that job "
	  "is.",
	  "jobs",
	  "type follow limit after last progress Last-Event-ID",
	  .answer = &event_desc,
	  .list = true,
	  .beside = &events_view_desc },
	{ { "GET", "/v1/jobs/{id}/checkpoints", ROLE_VIEWER, api_job_checkpoints, 0, false },
	  "The ledger of checkpoints; last=1 for the newest.",
	  "jobs",
	  "limit after last",
	  .answer = &checkpoint_view_desc,
	  .list = true },
	{ { "GET", "/v1/jobs/{id}/records", ROLE_VIEWER, api_job_records, 0, false },
	  "What the store holds of the job, a record an item: for its owner and for operators.",
	  "jobs",
	  "limit after",
	  .answer = &record_line_desc,
	  .list = true,
	  .beside = &records_view_desc },
	{ { "GET", "/v1/jobs/{id}/report", ROLE_VIEWER, api_job_report, 0, false },
	  "GPU seconds by category, ETTR, incidents; anchor=1: as moectl plan --anchor reads it.",
	  "jobs",
	  "anchor",
	  .answer = &report_view_desc,
	  .other = "anchor" },
	{ { "GET", "/v1/jobs/{id}/ledger", ROLE_VIEWER, api_job_ledger, 0, false },
	  "GPU seconds by category alone; window=1h: of the last hour of the job's time.",
	  "jobs",
	  "window",
	  .answer = &ledger_view_desc },
	{ { "GET", "/v1/jobs/{id}/incidents", ROLE_VIEWER, api_job_incidents, 0, false },
	  "Its failures, each with cause, evidence, what was done, and how long each part of the "
	  "restart took; last=1 for the newest.",
	  "jobs",
	  "limit after last",
	  .answer = &incident_desc,
	  .list = true },
	{ { "GET", "/v1/jobs/{id}/logs", ROLE_VIEWER, api_job_logs, 0, false },
	  "Output of the ranks as text; rank= or ranks=0-7,12, attempt=, lines=, since=10m or "
	  "a time, follow=1, "
	  "records=1, from=.",
	  "jobs",
	  "rank ranks attempt lines since follow records from",
	  .media = "text/plain" },
	{ { "GET", "/v1/jobs/{id}/why", ROLE_VIEWER, api_job_why, 0, false },
	  "Why the job is in its state, with evidence.",
	  "jobs",
	  .answer = &why_view_desc },
	{ { "GET", "/v1/jobs/{id}/env", ROLE_VIEWER, api_job_env, 0, false },
	  "Environment of a rank (rank=0) with reason and source, as its node recorded it.",
	  "jobs",
	  "rank limit after",
	  .answer = &env_item_desc,
	  .list = true,
	  .beside = &explained_view_desc },
	{ { "GET", "/v1/jobs/{id}/bind", ROLE_VIEWER, api_job_bind, 0, false },
	  "What each rank is bound to and why; rank= one of them.",
	  "jobs",
	  "rank limit after",
	  .answer = &bind_view_desc,
	  .list = true,
	  .beside = &explained_view_desc },
	{ { "GET", "/v1/jobs/{id}/config", ROLE_VIEWER, api_job_config, 0, false },
	  "Every key of the engine's own configuration that the job is launched with, and who said "
	  "it; key= one of them and those below it.",
	  "jobs",
	  "key" },
	{ { "GET", "/v1/nodes", ROLE_VIEWER, api_nodes_list, 0, false },
	  "List nodes.",
	  "nodes",
	  "limit after",
	  .answer = &node_view_desc,
	  .list = true },
	{ { "GET", "/v1/nodes/{name}", ROLE_VIEWER, api_nodes_get, 0, false },
	  "One node with its GPUs and NUMA nodes.",
	  "nodes",
	  .answer = &node_view_desc },
	{ { "GET", "/v1/nodes/{name}/topology", ROLE_VIEWER, api_nodes_topology, 0, false },
	  "The node drawn, SVG; format=text, width= for a text tree.",
	  "nodes",
	  "format width",
	  .media = "image/svg+xml" },
	{ { "GET", "/v1/nodes/{name}/why", ROLE_VIEWER, api_nodes_why, 0, false },
	  "Why the node is in its state.",
	  "nodes",
	  .answer = &why_view_desc },
	{ { "GET", "/v1/nodes/{name}/image", ROLE_USER, api_nodes_image, 0, false },
	  "Whether an image fits the node, asked of its agent: image=dir:/PATH, looked at as the "
	  "caller; user= (admins) as somebody else. Nothing of the image is executed.",
	  "nodes",
	  "image user",
	  .answer = &image_checks_desc },
	{ { "GET", "/v1/images", ROLE_VIEWER, api_images_list, 0, false },
	  "Images that nodes have, asked of their agents, and those that people have brought "
	  "there: "
	  "node= one or several, with commas. Nodes that could not be asked are named.",
	  "nodes",
	  "node",
	  .answer = &images_view_desc },
	{ { "POST", "/v1/images/pull", ROLE_USER, api_images_pull, B, false },
	  "Have an image brought to nodes before a job needs it: {\"image\":NAME,\"nodes\":[NAMES],"
	  "\"auth\":FILE}; without nodes to all that are up. A start of the controller ends it; "
	  "nodes keep what they have.",
	  "nodes",
	  .answer = &prefetch_desc,
	  .body = &image_pull_body_desc },
	{ { "GET", "/v1/images/pull/{pull}", ROLE_VIEWER, api_images_pull_get, 0, false },
	  "How far such an order is.",
	  "nodes",
	  .answer = &prefetch_desc },
	{ { "DELETE", "/v1/images", ROLE_OPERATOR, api_images_remove, 0, false },
	  "Remove an image from nodes: image=DIGEST or NAME, nodes=, with commas (not given: all). "
	  "What is in use stays, and who uses it is named.",
	  "nodes",
	  "image nodes",
	  .answer = &images_view_desc },
	{ { "GET", "/v1/drift", ROLE_VIEWER, api_stack_drift, 0, false },
	  "What of the software differs among nodes with GPUs of one model.",
	  "nodes",
	  .answer = &drift_view_desc },
	{ { "POST", "/v1/nodes/{name}/drain", ROLE_OPERATOR, api_nodes_drain, SMALL, false },
	  "Give a node no new work: {\"reason\":TEXT,\"when\":\"idle|checkpoint|now\"}.",
	  "nodes",
	  .answer = &node_view_desc,
	  .body = &drain_body_desc },
	{ { "POST", "/v1/nodes/{name}/undrain", ROLE_OPERATOR, api_nodes_undrain, SMALL, false },
	  "Give it work again; where what its GPUs did has cordoned it, they are tried before, "
	  "unless {\"force\":true}.",
	  "nodes",
	  .answer = &node_view_desc,
	  .body = &undrain_body_desc },
	{ { "POST", "/v1/nodes/{name}/ack", ROLE_OPERATOR, api_nodes_ack, SMALL, false },
	  "Say that what a check found since the boot is known: it keeps no job away before the "
	  "next one: {\"check\":ID}; 409 for what is so now. Or {\"learned\":true}: its checks can "
	  "be trusted, its time of learning (health.learn) is over; 409 when it was over.",
	  "nodes",
	  .answer = &node_view_desc,
	  .body = &ack_body_desc },
	{ { "POST", "/v1/nodes/{name}/fence", ROLE_OPERATOR, api_nodes_fence, SMALL, false },
	  "State that a silent node is powered off: {\"confirmed\":true,\"boot_id\":ID}; 409 when "
	  "it is in another boot by then (boot_id: as its document shows it; optional).",
	  "nodes",
	  .answer = &node_view_desc,
	  .body = &fence_body_desc },
	{ { "POST", "/v1/steps/{step}/resolve", ROLE_OPERATOR, api_steps_resolve, SMALL, false },
	  "Decide about a step on which controller and node disagree: "
	  "{\"how\":\"kill|gone\",\"node\":NAME}; kill: one that this controller never stored; "
	  "gone: one that its agent does not know any more.",
	  "nodes",
	  .answer = &resolved_view_desc,
	  .body = &resolve_body_desc },
	{ { "GET", "/v1/backup", ROLE_ADMIN, api_backup, 0, false },
	  "The whole state: a line of JSON (bytes, crc32c), then that many bytes; moed --restore "
	  "reads it.",
	  "cluster",
	  .media = "application/octet-stream" },
	{ { "POST", "/v1/plan", ROLE_VIEWER, api_plan, B, true },
	  "Plan a recipe, calibrated by what the cluster has measured; gpus=, gpu=, top=, scale=, "
	  "tokens=, failures=, fabric=, open=1. Two searches at once, one of each user, one of "
	  "viewers; others wait up to 10 s, then 429.",
	  "planning",
	  "gpus gpu top scale tokens failures fabric open",
	  .answer = &plan_doc_desc },
	{ { "GET", "/v1/anchors", ROLE_VIEWER, api_anchors, 0, false },
	  "Measured runs that calibrate plans, as moectl plan --anchor reads them.",
	  "planning" },
	{ { "POST", "/v1/validate", ROLE_VIEWER, api_validate, B, true },
	  "Check a recipe.",
	  "planning",
	  .answer = &valid_view_desc },
	{ { "GET", "/v1/events", ROLE_VIEWER, api_events, 0, false },
	  "Events; follow=1 for Server-Sent Events, resumable with Last-Event-ID; job=, node=, "
	  "type=, last=. progress=j-7 with follow=1: also how far that job is, at most once a "
	  "second (event: progress).",
	  "cluster",
	  "job node type follow limit after last progress Last-Event-ID",
	  .answer = &event_desc,
	  .list = true,
	  .beside = &events_view_desc },
	{ { "GET", "/v1/cluster", ROLE_VIEWER, api_cluster, 0, false },
	  "Nodes, GPUs and jobs in figures.",
	  "cluster",
	  .answer = &cluster_view_desc },
	{ { "GET", "/v1/cluster/topology", ROLE_VIEWER, api_cluster_topology, 0, false },
	  "All nodes with their NUMA nodes, GPUs and cards, and the rank on each GPU; up to 256 an "
	  "answer.",
	  "cluster",
	  "limit after",
	  .answer = &topology_view_desc,
	  .list = true },
	{ { "GET", "/v1/whoami", ROLE_VIEWER, api_whoami, 0, false },
	  "Who the caller is to the controller.",
	  "tokens",
	  .answer = &whoami_view_desc },
	{ { "POST", "/v1/tokens", ROLE_ADMIN, api_tokens_create, SMALL, false },
	  "Make a token: {\"role\":ROLE,\"user\":NAME,\"ttl\":\"30d\"}, with role join also "
	  "\"nodes\":N; its text is shown once.",
	  "access",
	  .answer = &token_view_desc,
	  .body = &token_body_desc },
	{ { "GET", "/v1/tokens", ROLE_ADMIN, api_tokens_list, 0, false },
	  "List tokens.",
	  "access",
	  "limit after",
	  .answer = &token_view_desc,
	  .list = true },
	{ { "DELETE", "/v1/tokens/{id}", ROLE_ADMIN, api_tokens_revoke, 0, false },
	  "Revoke a token; its streams end.",
	  "access",
	  .answer = &revoked_view_desc },
	{ { "POST", "/v1/session", ROLE_VIEWER, api_session_create, SMALL, false },
	  "Cookie for the bearer token of this request.",
	  "access",
	  .answer = &session_view_desc },
	{ { "POST", "/v1/session/link", ROLE_VIEWER, api_signin_create, SMALL, false },
	  "A link that signs a browser in once, within minutes, with the bearer token of this "
	  "request.",
	  "access",
	  .answer = &signin_view_desc },
	{ { "POST", "/v1/session/use", ROLE_NONE, api_signin_use, SMALL, false },
	  "Cookie for the code of a sign-in link: {\"code\":CODE}.",
	  "access",
	  .answer = &session_view_desc,
	  .body = &use_body_desc },
	{ { "DELETE", "/v1/session", ROLE_VIEWER, api_session_delete, 0, false },
	  "Drop the cookie.",
	  "access" },
	{ { "POST", "/v1/agent/hello", ROLE_AGENT, agent_http_hello, MO_HELLO_BYTES_MAX, false,
	    .most = HELLOS_MOST, .frame = FRAME_HELLO },
	  "Agent protocol: an agent registers.",
	  "agent",
	  .body = &agent_hello_desc,
	  .answer = &agent_welcome_desc },
	{ { "POST", "/v1/agent/sync", ROLE_AGENT, agent_http_sync, A, false, .prompt = true,
	    .frame = FRAME_SYNC },
	  "Agent protocol: beat; held until a command is due.",
	  "agent",
	  .body = &agent_sync_desc,
	  .answer = &sync_reply_desc },
	{ { "POST", "/v1/agent/news", ROLE_AGENT, agent_http_urgent, A, false, .prompt = true,
	    .frame = FRAME_NEWS },
	  "Agent protocol: urgent notes.",
	  "agent",
	  .body = &agent_sync_desc,
	  .answer = &sync_reply_desc },
	{ { "POST", "/v1/agent/answer", ROLE_AGENT, agent_http_answer, A, false, .prompt = true,
	    .frame = FRAME_ANSWER },
	  "Agent protocol: answer of a question.",
	  "agent",
	  .body = &query_answer_desc },
	{ { "GET", "/v1/agent/road", ROLE_AGENT, agent_http_road, 0, false, .prompt = true },
	  "Agent protocol: asked with Upgrade: moe/1, hello, sync, news and answer come by frames "
	  "on "
	  "this connection from then on (docs/protocol.md).",
	  "agent" },
	{ { "POST", "/v1/agent/token", ROLE_AGENT, agent_http_token, SMALL, false },
	  "Agent protocol: trades the token that it is sent with (a join token, or the node's own) "
	  "for a new one of the node.",
	  "agent",
	  .body = &token_trade_desc,
	  .answer = &token_traded_desc },
	{ { "GET", "/v1/webhooks", ROLE_OPERATOR, api_webhooks_list, 0, false },
	  "Where events are posted to (webhooks in moed.yaml), how far each receiver is and what "
	  "came of the newest deliveries.",
	  "cluster",
	  "limit after",
	  .answer = &webhook_view_desc,
	  .list = true },
	{ { "POST", "/v1/webhooks/{name}/test", ROLE_ADMIN, api_webhooks_test, SMALL, false },
	  "Post an event of type webhook.test to one of them; answered with what came of it.",
	  "cluster",
	  .answer = &webhook_delivery_desc },
	{ { "GET", "/metrics", ROLE_VIEWER, api_metrics, 0, false },
	  "Prometheus metrics.",
	  "cluster",
	  .media = "text/plain" },
	{ { "GET", "/v1/sd", ROLE_VIEWER, api_sd, 0, false },
	  "Where the agents' metrics are, for Prometheus (http_sd_configs): a list of groups "
	  "{targets[],labels{}}.",
	  "cluster" },
	{ { "GET", "/healthz", ROLE_NONE, api_healthz, 0, false, .prompt = true },
	  "The controller runs.",
	  "probes",
	  .answer = &probe_view_desc },
	{ { "GET", "/readyz", ROLE_NONE, api_readyz, 0, false, .prompt = true },
	  "It takes new work.",
	  "probes",
	  .answer = &probe_view_desc },
	{ { "GET", "/openapi.json", ROLE_NONE, api_openapi, 0, false },
	  "This description.",
	  "page" },
	{ { "GET", "/v1/openapi.json", ROLE_NONE, api_openapi, 0, false }, "The same.", "page" },
	{ { "GET", "/v1/schema/recipe", ROLE_NONE, api_schema_recipe, 0, false },
	  "What a recipe may say, as JSON Schema (draft 7), for editors.",
	  "page" },
	{ { "GET", "/", ROLE_NONE, api_web, 0, false }, "The dashboard.", "page" },
	{ { "GET", "/app.js", ROLE_NONE, api_web, 0, false }, "Dashboard file.", "page" },
	{ { "GET", "/style.css", ROLE_NONE, api_web, 0, false }, "Dashboard file.", "page" },
	{ { "GET", "/favicon.svg", ROLE_NONE, api_web, 0, false }, "Dashboard file.", "page" },
};
const size_t n_api_routes = ELEMENTSOF(api_routes);
