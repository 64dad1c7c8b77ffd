/* What a rank's lines and datagrams say. For the table. */
#pragma once
#include "agent/core/stepd/stepd_core_state.h"

void stepd_core_on_sample(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			  struct stepd_out *out);
void stepd_core_on_phase(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			 struct stepd_out *out);
void stepd_core_on_ready(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			 struct stepd_out *out);
void stepd_core_on_checkpoint(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			      struct stepd_out *out);
void stepd_core_on_saving(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			  struct stepd_out *out);
void stepd_core_on_resumed(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			   struct stepd_out *out);
