/* The times and limits by which a core decides, as its shell sets them once (core_config_default in
 * core.h); they are the same at a replay, so what they change must be in a record. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct core_config {
	int64_t port_min, port_max; /* rank_ports, four in a row are taken */
	int64_t beat_us;            /* 1 s */
	/* silence: 2 beats (+ slack) -> suspect, 10 s -> down. Never proof of death. */
	int64_t suspect_us, down_us;
	int64_t exit_wait_us; /* one rank's exit 0 waits 300 s for the rest */
	/* health.learn, 7 days from when a node is first heard; 0 = none */
	int64_t learn_us;
	int64_t history_us;    /* history, 90 days; 0 = whatever its age */
	int64_t pull_parallel; /* nodes that are brought images at once */
	bool powers_off;       /* the site has a fence_command */
	/* floors of the times after which a job counts as hanging, in percent of those of
	 * hang_limits.c */
	int64_t hang_percent;
};
