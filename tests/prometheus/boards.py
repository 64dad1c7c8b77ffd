#!/usr/bin/python3
"""boards.py [DIR]: writes the boards of config/grafana. A row of the table is a panel: title, unit,
expressions with their legends; so that boards look alike and no expression is written twice. The
suite prometheus holds what is committed against this, and each expression against a real
Prometheus."""
import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
JOB, NODE = '{job=~"$job"}', '{node=~"$node"}'
NAMED = " * on (job) group_left (name) moe_job_info"
WIDTH, HEIGHT, COLUMNS = 12, 8, 24

BOARDS = {
    "moe-cluster": (
        "Moe: cluster",
        [],
        [
            ("Nodes by state", "short", [("moe_nodes", "{{state}}")]),
            ("Jobs by state", "short", [("moe_jobs > 0", "{{state}}")]),
            ("GPUs", "short", [("moe_gpus", "all"), ("moe_gpus_free", "free")]),
            (
                "Share of GPU time that went into new iterations",
                "percentunit",
                [
                    (
                        "sum(rate(moe_job_gpu_seconds_total"
                        '{category="productive"}[$__rate_interval]))'
                        " / sum(rate(moe_job_gpu_seconds_total"
                        '{category!~"queue|idle"}[$__rate_interval]))',
                        "all jobs",
                    )
                ],
            ),
            (
                "Restarts, per hour",
                "short",
                [("increase(moe_job_restarts_total[1h])" + NAMED, "{{job}} {{name}}")],
            ),
            (
                "Silence of nodes",
                "s",
                [("moe_node_heartbeat_age_seconds", "quantile {{quantile}}")],
            ),
            ("Nodes that are not up", "short", [("moe_node_state", "{{node}} {{state}}")]),
            (
                "Checks that are not OK",
                "short",
                [("count by (check) (moe_node_check_state)", "{{check}}")],
            ),
        ],
    ),
    "moe-job": (
        "Moe: job",
        [("job", "label_values(moe_job_info, job)")],
        [
            ("Loss", "none", [("moe_job_loss" + JOB, "{{job}}")]),
            ("Iteration", "short", [("moe_job_iteration" + JOB, "{{job}}")]),
            (
                "Time of an iteration",
                "s",
                [("moe_job_step_seconds" + JOB, "{{job}} quantile {{quantile}}")],
            ),
            (
                "Tokens per second and GPU",
                "short",
                [("moe_job_tokens_per_second_per_gpu" + JOB, "{{job}}")],
            ),
            ("MFU", "percentunit", [("moe_job_mfu_ratio" + JOB, "{{job}}")]),
            ("ETTR", "percentunit", [("moe_job_ettr_ratio" + JOB, "{{job}}")]),
            (
                "Where the GPU time goes",
                "percentunit",
                [
                    (
                        "sum by (category) (rate(moe_job_gpu_seconds_total"
                        '{job=~"$job",category!="queue"}[$__rate_interval]))'
                        " / ignoring (category) group_left sum without (category)"
                        " (sum by (category) (rate(moe_job_gpu_seconds_total"
                        '{job=~"$job",category!="queue"}[$__rate_interval])))',
                        "{{category}}",
                    )
                ],
            ),
            (
                "Age of the newest checkpoint",
                "s",
                [("time() - moe_job_checkpoint_timestamp_seconds" + JOB, "{{job}}")],
            ),
            ("Checkpoints by state", "short", [("moe_job_checkpoints" + JOB, "{{job}} {{state}}")]),
            ("Restarts", "short", [("moe_job_restarts_total" + JOB, "{{job}}")]),
            (
                "Lost against its best, and by a straggler",
                "percentunit",
                [
                    ("moe_job_slower_ratio" + JOB, "{{job}} slower"),
                    ("moe_job_straggler_lost_ratio" + JOB, "{{job}} straggler"),
                ],
            ),
            (
                "Power of its GPUs",
                "watt",
                [
                    (
                        "quantile(0.5, moe_gpu_power_watts * on (node, gpu) group_left (job, rank)"
                        ' moe_gpu_assignment_info{job=~"$job"})',
                        "median",
                    ),
                    (
                        "min(moe_gpu_power_watts * on (node, gpu) group_left (job, rank)"
                        ' moe_gpu_assignment_info{job=~"$job"})',
                        "least",
                    ),
                ],
            ),
        ],
    ),
    "moe-node": (
        "Moe: node",
        [("node", "label_values(moe_agent_build_info, node)")],
        [
            ("GPU busy", "percentunit", [("moe_gpu_busy_ratio" + NODE, "{{node}} GPU {{gpu}}")]),
            ("GPU power", "watt", [("moe_gpu_power_watts" + NODE, "{{node}} GPU {{gpu}}")]),
            (
                "GPU temperature",
                "celsius",
                [("moe_gpu_temperature_celsius" + NODE, "{{node}} GPU {{gpu}}")],
            ),
            (
                "GPU memory in use",
                "bytes",
                [("moe_gpu_vram_used_bytes" + NODE, "{{node}} GPU {{gpu}}")],
            ),
            ("GPU clock", "hertz", [("moe_gpu_clock_hertz" + NODE, "{{node}} GPU {{gpu}}")]),
            (
                "GPU errors",
                "short",
                [
                    (
                        "moe_gpu_ecc_uncorrectable_total" + NODE,
                        "{{node}} GPU {{gpu}} uncorrectable",
                    ),
                    ("moe_gpu_ecc_correctable_total" + NODE, "{{node}} GPU {{gpu}} correctable"),
                    ("moe_gpu_pcie_replay_total" + NODE, "{{node}} GPU {{gpu}} PCIe replays"),
                ],
            ),
            ("Cards with a link", "short", [("moe_nic_link_up" + NODE, "{{node}} {{nic}}")]),
            (
                "Ranks here: time of an iteration",
                "s",
                [("moe_rank_step_seconds" + NODE, "{{job}} rank {{rank}}")],
            ),
            (
                "Checks that are not OK",
                "short",
                [("moe_check_state" + NODE, "{{node}} {{check}} {{object}}")],
            ),
        ],
    ),
    "moe-controller": (
        "Moe: controller",
        [],
        [
            (
                "Turns, 99th of a hundred",
                "s",
                [
                    (
                        "histogram_quantile(0.99, rate(moe_turn_seconds_bucket[$__rate_interval]))",
                        "turn",
                    ),
                    (
                        "histogram_quantile(0.99, rate(moe_loop_lag_seconds_bucket"
                        "[$__rate_interval]))",
                        "late by",
                    ),
                    (
                        "histogram_quantile(0.99, rate(moe_store_sync_seconds_bucket"
                        "[$__rate_interval]))",
                        "sync",
                    ),
                ],
            ),
            (
                "Processors in use",
                "short",
                [('rate(process_cpu_seconds_total{job="moed"}[$__rate_interval])', "moed")],
            ),
            ("Memory", "bytes", [('process_resident_memory_bytes{job="moed"}', "moed")]),
            ("Store", "bytes", [("moe_store_bytes", "{{file}}")]),
            (
                "Answers per second",
                "short",
                [("rate(moe_http_requests_total[$__rate_interval])", "{{class}}")],
            ),
            ("Connections", "short", [("moe_http_connections", "{{kind}}")]),
            (
                "Events per minute",
                "short",
                [("60 * rate(moe_events_total[$__rate_interval]) > 0", "{{type}}")],
            ),
            (
                "Records per second",
                "short",
                [("rate(moe_store_records_total[$__rate_interval])", "records")],
            ),
        ],
    ),
}


def panel(i, title, unit, targets):
    return {
        "id": i + 1,
        "type": "timeseries",
        "title": title,
        "datasource": {"type": "prometheus", "uid": "$datasource"},
        "gridPos": {
            "x": i * WIDTH % COLUMNS,
            "y": i * WIDTH // COLUMNS * HEIGHT,
            "w": WIDTH,
            "h": HEIGHT,
        },
        "fieldConfig": {"defaults": {"unit": unit, "min": None}, "overrides": []},
        "options": {"legend": {"showLegend": True, "displayMode": "list", "placement": "bottom"}},
        "targets": [
            {"refId": chr(ord("A") + n), "expr": expr, "legendFormat": legend}
            for n, (expr, legend) in enumerate(targets)
        ],
    }


def variable(name, query):
    return {
        "name": name,
        "type": "query",
        "datasource": {"type": "prometheus", "uid": "$datasource"},
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "sort": 3,
    }


def board(uid):
    title, variables, panels = BOARDS[uid]
    return {
        "uid": uid,
        "title": title,
        "tags": ["moe"],
        "schemaVersion": 38,
        "timezone": "browser",
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "links": [
            {
                "type": "dashboards",
                "tags": ["moe"],
                "title": "Moe",
                "keepTime": True,
                "icon": "dashboard",
            }
        ],
        "templating": {
            "list": [{"name": "datasource", "type": "datasource", "query": "prometheus"}]
            + [variable(*v) for v in variables]
        },
        "panels": [panel(i, *p) for i, p in enumerate(panels)],
    }


def text(uid):
    return json.dumps(board(uid), indent=1) + "\n"


def main():
    dir = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "config/grafana")
    os.makedirs(dir, exist_ok=True)
    for uid in BOARDS:
        with open(os.path.join(dir, uid + ".json"), "w") as f:
            f.write(text(uid))


if __name__ == "__main__":
    main()
