/* A finding under way: its limits, its evidence, the sentence. */
#include "agent/core/health/health_finding.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/core/health/health_state.h"

void finding_done(struct finding *f)
{
	free(f->text);
	mo_strs_clear(&f->evidence, &f->n_evidence);
	*f = (struct finding){ 0 };
}

int rule_limits(const struct health_check *c, double x)
{
	if ((c->crit_above != MO_NONE_F && x > c->crit_above) ||
	    (c->crit_below != MO_NONE_F && x < c->crit_below))
		return CHECK_CRIT;
	if ((c->warn_above != MO_NONE_F && x > c->warn_above) ||
	    (c->warn_below != MO_NONE_F && x < c->warn_below))
		return CHECK_WARN;
	return CHECK_OK;
}

char *rule_number(const char *reading, double x)
{
	if (strstr(reading, "_bytes") && fabs(x) >= 1024 * 1024)
		return mo_printf(fabs(x) >= 1e9 ? "%.1f GiB" : "%.1f MiB",
				 x / (fabs(x) >= 1e9 ? 1073741824.0 : 1048576.0));
	if (strstr(reading, "_share"))
		return mo_printf("%.3g %%", 100 * x);
	return mo_printf("%.6g", x);
}

char *finding_limit_text(const struct health_check *c, const char *unit_of, double x, double scale,
			 const char *unit)
{
	bool crit = rule_limits(c, x) == CHECK_CRIT;
	double above = crit ? c->crit_above : c->warn_above,
	       below = crit ? c->crit_below : c->warn_below;
	bool is_above = above != MO_NONE_F && x > above;
	double limit = is_above ? above : below;

	if (limit == MO_NONE_F)
		return mo_strdup("");
	_cleanup_(mo_freep) char *number = rule_number(unit_of, limit * scale);
	return mo_printf(", %s %s%s", is_above ? "above" : "below", number, unit);
}

void finding_add_evidence(struct finding *f, const struct reading *r)
{
	if (f->n_evidence >= EVIDENCE_MAX)
		return;
	_cleanup_(mo_freep) char *number = r->text ? NULL : rule_number(r->key, r->value);
	_cleanup_(mo_freep) char *line = mo_printf("%s = %s", r->key, r->text ? r->text : number);
	mo_strs_add(&f->evidence, &f->n_evidence, line);
}

void finding_evidence(struct finding *f, const struct health_check *c, const struct probe *p)
{
	size_t n = strcspn(c->reading, "*");

	for (size_t i = 0; p->area != PROBE_KLOG && i < p->n_readings; i++) {
		const struct reading *r = &p->readings[i];
		bool part =
			(mo_starts_with(r->key, c->reading) && r->key[strlen(c->reading)] == '.') ||
			(c->of && mo_starts_with(r->key, c->of) && r->key[strlen(c->of)] == '.');
		bool many = c->reading[n] && strncmp(r->key, c->reading, n) == 0;
		if (mo_streq(r->key, c->reading) || mo_streq(r->key, c->of) || part || many)
			finding_add_evidence(f, r);
	}
}

void finding_found(struct finding *f, const struct health_check *c, int state,
		   const struct probe *p, char *said)
{
	f->state = state;
	if (state != CHECK_OK) {
		f->text = mo_printf("%s: %s", c->what, said);
		finding_evidence(f, c, p);
	}
	free(said);
}

void finding_absent(struct finding *f, const struct health_check *c, const struct probe *p)
{
	f->clears_nothing = p->problem != NULL;
	finding_found(f, c, c->absent, p, mo_printf("%s is not there", c->reading));
}
