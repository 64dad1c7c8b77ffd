/* From the launch to ranks that run: what each event does on the way. For the table. */
#pragma once
#include "agent/core/stepd/stepd_core_state.h"

void stepd_on_launch(struct stepd_core *s, const struct stepd_event *e, int64_t now,
		     struct stepd_out *out);
void stepd_on_namespace(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			struct stepd_out *out);
void stepd_on_prepared(struct stepd_core *s, const struct stepd_event *e, int64_t now,
		       struct stepd_out *out);
void stepd_on_ports(struct stepd_core *s, const struct stepd_event *e, int64_t now,
		    struct stepd_out *out);
void stepd_on_config_read(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			  struct stepd_out *out);
void stepd_on_started(struct stepd_core *s, const struct stepd_event *e, int64_t now,
		      struct stepd_out *out);
void stepd_on_started_late(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			   struct stepd_out *out);
void stepd_on_start_failed(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			   struct stepd_out *out);
void stepd_on_start_failed_late(struct stepd_core *s, const struct stepd_event *e, int64_t now,
				struct stepd_out *out);
void stepd_on_bind_failed(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			  struct stepd_out *out);
void stepd_on_binding(struct stepd_core *s, const struct stepd_event *e, int64_t now,
		      struct stepd_out *out);
void stepd_on_tick_preparing(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			     struct stepd_out *out);
