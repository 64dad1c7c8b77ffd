/* The node's health (health.c). All accept NULL: health is off then. */
#pragma once
#include "agent/core/health/health.h"
#include "agent/manager.h"

int watch_new(struct manager *m, struct watch **ret);
struct watch *watch_free(struct watch *w);
void watch_devices(struct watch *w); /* after each discovery */
void watch_steps(struct watch *w);   /* steps may have come or gone */
/* What is known of the slots that a step is to have: health_release(). */
enum health_release watch_release(struct watch *w, const int64_t *slots, size_t n, int64_t since,
				  char **ret);
/* What moves is asked, for a while; what a card or the links of a GPU moved: health_traffic(). */
void watch_traffic_asked(struct watch *w);
struct health_traffic watch_traffic(const struct watch *w, int area, const char *name);
/* health_activity() of a GPU; none when it is not watched. */
const struct health_activity *watch_activity(const struct watch *w, const char *gpu);
struct gpu_work watch_work(const struct watch *w, const char *gpu);
void watch_reply(struct watch *w, const struct sync_reply *r);
/* NULL: nothing is known yet */
const struct node_health *watch_results(const struct watch *w);
/* health_newest() */
void watch_newest(const struct watch *w, struct gpu_sensors **gpus, size_t *n_gpus,
		  struct nic_sensors **nics, size_t *n_nics);
/* What the controller does not have. */
void watch_sync(struct watch *w, struct agent_sync *s);
/* It has programs for a check that is thorough. */
bool watch_doubts(const struct watch *w);
/* Of that what jobs may wait for: no sensor values. */
void watch_urgent(struct watch *w, struct agent_sync *s);
