/* explain event [TYPE]: the registry of events (lib/model/event_types.def), for a person. */
#include "cli/explain_event.h"

#include <stdio.h>
#include <string.h>

#include "cli/options.h"
#include "cli/output.h"
#include "cli/text.h"
#include "cli/visible.h"
#include "lib/base/buf.h"
#include "lib/base/parse.h"
#include "lib/model/event_type.h"
#include "lib/wire/encode.h"

static int unknown(const char *type)
{
	const char *near = mo_near_miss(type, event_type_names, _EVENT_TYPE_N);

	return cli_fail(CLI_USAGE,
			"explain: %.80s: no event of this version has such a type%s%s%s; `moectl "
			"explain event` lists them",
			type, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static void print_json_of(const struct event_about *first, size_t n, bool list)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	mo_buf_str(&b, list ? "{\"items\":[" : "");
	for (size_t i = 0; i < n; i++) {
		mo_buf_str(&b, i ? "," : "");
		wire_encode(&event_about_desc, &first[i], &b);
	}
	mo_buf_str(&b, list ? "],\"next\":null}" : "");
	print_json(b.data, b.len);
}

static void print_all(const struct cli *cli)
{
	for (size_t i = 0; i < _EVENT_TYPE_N; i++) {
		const struct event_about *a = &event_registry[i];

		printf("%s%*s  %-7s  %s\n", paint(cli, "1", a->type),
		       MO_MAX(22 - (int)strlen(a->type), 0), "", event_level_names[a->level],
		       a->subject);
	}
}

static void print_one(const struct cli *cli, const struct event_about *a)
{
	printf("%s  %s: %s\n", paint(cli, "1", a->type), event_level_names[a->level], a->subject);
	if (*a->means)
		printf("%s\n", a->means);
	printf("to do: %s\n", a->next);
	if (*a->data)
		printf("data: %s\n", a->data);
	if (a->message_id)
		printf("in the journal: journalctl -x MESSAGE_ID=%s\n", a->message_id);
}

int explain_event(struct cli *cli, const char *type)
{
	const struct event_about *a = event_about(type);

	if (type && !a)
		return unknown(type);
	if (cli->json)
		print_json_of(a ? a : event_registry, a ? 1 : _EVENT_TYPE_N, !a);
	else if (a)
		print_one(cli, a);
	else
		print_all(cli);
	return CLI_OK;
}
