/* Images that the controller wants this node to have: which are being brought, when a try that
 * failed is made again, what is told of them. Pure; moe-image brings them (agent/images.c). */
#pragma once
#include "agent/core/agent/agent_core_state.h"

/* An order; it comes again with each reply while it holds. */
void agent_core_image(struct agent_core *s, const struct command *c, int64_t now,
		      struct agent_out *out);
/* The reply to a sync names all orders: what it does not name is not wanted any more. */
void agent_core_images_due(struct agent_core *s, const struct sync_reply *r, struct agent_out *out);
/* AE_IMAGE */
void agent_core_image_news(struct agent_core *s, const struct agent_event *e, int64_t now,
			   struct agent_out *out);
void agent_core_images_tick(struct agent_core *s, int64_t now, struct agent_out *out);
/* When the next try is due; INT64_MAX: none. */
int64_t agent_core_images_deadline(const struct agent_core *s);
/* Something of them the controller waits for: not until the next beat. */
bool agent_core_images_urgent(const struct agent_core *s);
/* All of them, into a message. */
void agent_core_images_report(struct agent_core *s, struct agent_sync *ret);
void agent_core_images_done(struct agent_core *s);
