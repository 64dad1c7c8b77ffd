/* Server-Sent Events (see sse.h). */
#include "cli/sse.h"

#include <stdio.h>
#include <string.h>

void sse_done(struct sse *s)
{
	mo_buf_done(&s->line);
	mo_buf_done(&s->data);
	*s = (struct sse){ 0 };
}

static const char *value_of(const char *line, const char *field)
{
	size_t n = strlen(field);
	if (strncmp(line, field, n) || line[n] != ':')
		return NULL;
	return line[n + 1] == ' ' ? line + n + 2 : line + n + 1;
}

static int end_of_line(struct sse *s, int (*fn)(void *arg, const char *data), void *arg)
{
	const char *line = s->line.data ? s->line.data : "", *v;
	int r = 0;
	if (!*line && s->data.len) {
		memcpy(s->last_id, s->id, sizeof(s->id));
		r = fn(arg, s->data.data);
		mo_buf_reset(&s->data);
	} else if ((v = value_of(line, "data"))) {
		if (s->data.len)
			mo_buf_str(&s->data, "\n");
		if (s->data.len + strlen(v) <= SSE_LINE_MAX)
			mo_buf_str(&s->data, v);
	} else if ((v = value_of(line, "id"))) {
		snprintf(s->id, sizeof(s->id), "%s", v);
	}
	return r;
}

int sse_feed(struct sse *s, const char *bytes, size_t n, int (*fn)(void *arg, const char *data),
	     void *arg)
{
	while (n) {
		const char *nl = memchr(bytes, '\n', n);
		size_t piece = nl ? (size_t)(nl - bytes) : n;
		if (s->line.len + piece > SSE_LINE_MAX)
			s->overlong = true;
		else
			mo_buf_add(&s->line, bytes, piece);
		if (nl) {
			if (s->line.data && s->line.len && s->line.data[s->line.len - 1] == '\r')
				s->line.data[--s->line.len] = 0;
			int r = s->overlong ? 0 : end_of_line(s, fn, arg);
			mo_buf_reset(&s->line);
			if (s->line.data)
				s->line.data[0] = 0;
			s->overlong = false;
			if (r)
				return r;
			piece++;
		}
		bytes += piece;
		n -= piece;
	}
	return 0;
}
