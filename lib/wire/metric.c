/* See metric.h. */
#include "lib/wire/metric.h"

#include <math.h>

static const char *const kind_names[] = { "gauge", "counter", "summary", "histogram" };

void metric_begin(struct mo_buf *b, const struct metric *m)
{
	mo_buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n", m->name, m->help, m->name,
		      kind_names[m->kind]);
}

static void put_label(struct mo_buf *b, const char *name, const char *value)
{
	mo_buf_printf(b, "%s=\"", name);
	for (const char *p = value ? value : ""; *p; p++) {
		if (*p == '\n')
			mo_buf_str(b, "\\n");
		else if (*p == '"' || *p == '\\')
			mo_buf_printf(b, "\\%c", *p);
		else
			mo_buf_add(b, p, 1);
	}
	mo_buf_str(b, "\"");
}

static void put_value(struct mo_buf *b, double v)
{
	if (isnan(v))
		mo_buf_str(b, "NaN\n");
	else if (isinf(v))
		mo_buf_str(b, v > 0 ? "+Inf\n" : "-Inf\n");
	else
		mo_buf_printf(b, "%.15g\n", v);
}

void metric_add_part(struct mo_buf *b, const struct metric *m, const char *suffix, double v,
		     const char *const *labels)
{
	if (v == MO_NONE_F)
		return;
	mo_buf_printf(b, "%s%s", m->name, suffix);
	for (size_t i = 0; labels && labels[i]; i += 2) {
		mo_buf_str(b, i ? "," : "{");
		put_label(b, labels[i], labels[i + 1]);
	}
	mo_buf_str(b, labels ? "} " : " ");
	put_value(b, v);
}

void metric_add(struct mo_buf *b, const struct metric *m, double v, const char *const *labels)
{
	metric_add_part(b, m, "", v, labels);
}

void metric_one(struct mo_buf *b, const struct metric *m, double v)
{
	metric_begin(b, m);
	metric_add(b, m, v, NULL);
}
