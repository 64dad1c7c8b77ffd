/* From the first end to the proof that nothing is left: what each event does. For the table. */
#pragma once
#include "agent/core/stepd/stepd_core_state.h"

void stepd_release_ports(struct stepd_core *s, struct stepd_out *out);
/* No process is left: the last note, once. */
void stepd_go_gone(struct stepd_core *s, struct stepd_out *out, const char *text);
void stepd_kill_tree(struct stepd_core *s, int64_t now, struct stepd_out *out);
void stepd_on_exit_of_rank(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			   struct stepd_out *out);
void stepd_on_exit_late(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			struct stepd_out *out);
void stepd_on_stop_early(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			 struct stepd_out *out);
void stepd_on_stop_unforked(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			    struct stepd_out *out);
void stepd_on_stop(struct stepd_core *s, const struct stepd_event *e, int64_t now,
		   struct stepd_out *out);
void stepd_on_stop_again(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			 struct stepd_out *out);
void stepd_on_kill_early(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			 struct stepd_out *out);
void stepd_on_kill(struct stepd_core *s, const struct stepd_event *e, int64_t now,
		   struct stepd_out *out);
void stepd_on_empty(struct stepd_core *s, const struct stepd_event *e, int64_t now,
		    struct stepd_out *out);
void stepd_on_stuck(struct stepd_core *s, const struct stepd_event *e, int64_t now,
		    struct stepd_out *out);
void stepd_on_tick(struct stepd_core *s, const struct stepd_event *e, int64_t now,
		   struct stepd_out *out);
void stepd_on_tick_stopping(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			    struct stepd_out *out);
void stepd_on_tick_down(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			struct stepd_out *out);
