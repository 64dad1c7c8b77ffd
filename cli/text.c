/* Values as people read them: numbers, times, shares, states in colour. */
#include "cli/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/output.h"
#include "lib/base/desc.h"

#define BUFFERS 16
static char *next_buffer(void)
{
	static char buffers[BUFFERS][64];
	static unsigned next;
	return buffers[next++ % BUFFERS];
}

const char *text_int(int64_t v)
{
	if (v == MO_NONE)
		return "-";
	char *b = next_buffer();
	snprintf(b, 64, "%lld", (long long)v);
	return b;
}

const char *text_real(double v, int digits)
{
	if (v == MO_NONE_F)
		return "-";
	char *b = next_buffer();
	if (isnan(v))
		return "NaN";
	if (isfinite(v) && fabs(v) >= 1e10)
		snprintf(b, 64, "%.3e", v);
	else if (v != 0 && fabs(v) < pow(10, -digits)) /* 0.00 would say that there is nothing */
		snprintf(b, 64, "%.2g", v);
	else
		snprintf(b, 64, "%.*f", digits, v);
	return b;
}

const char *text_si(double v)
{
	static const char units[] = " kMGT";
	if (v == MO_NONE_F)
		return "-";
	char *b = next_buffer();
	size_t u = 0;
	if (isfinite(v) && fabs(v) >= 1e16) {
		snprintf(b, 64, "%.3e", v);
		return b;
	}
	for (; fabs(v) >= 999.5 && u < 4; u++)
		v /= 1000;
	snprintf(b, 64, u ? "%.*f%c" : "%.*f",
		 u && fabs(v) < 9.995   ? 2
		 : u && fabs(v) < 99.95 ? 1
		 : !u && fabs(v) < 100  ? 1
					: 0,
		 v, units[u]);
	return b;
}

const char *text_bytes(int64_t v)
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB" };
	if (v == MO_NONE)
		return "-";
	char *b = next_buffer();
	double d = (double)v;
	size_t u = 0;
	for (; d >= 999.5 && u < 5; u++)
		d /= 1000;
	snprintf(b, 64, "%.*f %s", u && d < 99.95 ? 1 : 0, d, units[u]);
	return b;
}

const char *text_seconds(double v)
{
	if (v == MO_NONE_F || !isfinite(v))
		return "-";
	char *b = next_buffer();
	int64_t s = (int64_t)(v + 0.5);
	if (v < 0.9995)
		snprintf(b, 64, "%.0f ms", v * 1000);
	else if (v < 9.95)
		snprintf(b, 64, "%.1f s", v);
	else if (s < 60)
		snprintf(b, 64, "%lld s", (long long)s);
	else if (s < 3600)
		snprintf(b, 64, "%lld m %02lld s", (long long)s / 60, (long long)s % 60);
	else if (s < 86400)
		snprintf(b, 64, "%lld h %02lld m", (long long)s / 3600, (long long)s / 60 % 60);
	else
		snprintf(b, 64, "%lld d %lld h", (long long)s / 86400, (long long)s / 3600 % 24);
	return b;
}

const char *text_percent(double fraction)
{
	if (fraction == MO_NONE_F)
		return "-";
	char *b = next_buffer();
	snprintf(b, 64, "%.1f %%", fraction * 100);
	return b;
}

const char *text_or(const char *s)
{
	return s && *s ? s : "-";
}

const char *text_clock(const char *rfc3339)
{
	if (!rfc3339 || strlen(rfc3339) < 19)
		return "-";
	char *b = next_buffer();
	snprintf(b, 64, "%.8s", rfc3339 + 11);
	return b;
}

const char *text_span(int64_t a, int64_t b)
{
	char *s = next_buffer();
	if (a == MO_NONE && b == MO_NONE)
		return "-";
	if (b == MO_NONE)
		return text_int(a);
	snprintf(s, 64, "%lld/%lld", a == MO_NONE ? 0 : (long long)a, (long long)b);
	return s;
}

const char *paint(const struct cli *cli, const char *code, const char *text)
{
	if (!cli->colour || !code)
		return text;
	char *b = next_buffer();
	snprintf(b, 64, "\033[%sm%.48s\033[0m", code, text);
	return b;
}
