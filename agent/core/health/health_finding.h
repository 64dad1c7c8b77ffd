/* A finding under way; see health_finding.c. */
#pragma once
#include "agent/core/health/health.h"
#include "agent/core/health/health_state.h"

/* ", above 100": the limit that x is beyond; an unspoken one is empty. */
char *finding_limit_text(const struct health_check *c, const char *unit_of, double x, double scale,
			 const char *unit);
void finding_add_evidence(struct finding *f, const struct reading *r);
/* The readings that it rests on: the one that is named, its partner, and its parts (ras_ue.umc
 * of ras_ue). */
void finding_evidence(struct finding *f, const struct health_check *c, const struct probe *p);
void finding_found(struct finding *f, const struct health_check *c, int state,
		   const struct probe *p, char *said);
/* With a problem it may only be unreadable for the moment: that clears nothing. */
void finding_absent(struct finding *f, const struct health_check *c, const struct probe *p);
void finding_done(struct finding *f);
int rule_limits(const struct health_check *c, double x);
/* with a unit where the key names one; caller frees */
char *rule_number(const char *reading, double x);
