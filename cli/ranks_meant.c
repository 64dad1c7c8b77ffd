/* See ranks_meant.h. */
#include "cli/ranks_meant.h"

#include <string.h>

#include "cli/client.h"
#include "cli/options.h"
#include "cli/value.h"
#include "lib/base/parse.h"

#define AXES 5
#define RANK_LIMIT 131071
static const char *const axes[AXES] = { "tp", "pp", "ep", "cp", "dp" };

/* "pp=3,tp=0"; ret: MO_NONE where an axis is not named. */
static int read_place(const struct cli *cli, const char *word, int64_t ret[AXES])
{
	for (size_t i = 0; i < AXES; i++)
		ret[i] = MO_NONE;
	for (const char *s = word; s; s = strchr(s, ',') ? strchr(s, ',') + 1 : NULL) {
		_cleanup_(mo_freep) char *one = mo_strndup(s, strcspn(s, ","));
		char *value = strchr(one, '=');
		int axis;

		if (value)
			*value++ = 0;
		axis = mo_enum_parse(axes, AXES, one);
		if (axis < 0 || !value || mo_parse_i64(value, 0, RANK_LIMIT, &ret[axis]) < 0)
			return cli_misuse(cli,
					  "--rank %.80s is neither ranks, such as 0-7,12, nor a "
					  "place in the mesh, such as pp=3,tp=0 (tp, pp, ep, cp, "
					  "dp)",
					  word);
	}
	return CLI_OK;
}

static bool is_there(struct json_object *rank, const int64_t place[AXES])
{
	struct json_object *coords = js_get(rank, "coords");

	for (size_t i = 0; i < AXES; i++)
		if (place[i] != MO_NONE && js_int(coords, axes[i]) != place[i])
			return false;
	return coords != NULL;
}

int ranks_meant(struct cli *cli, const char *job, const char *word, struct mo_idset *ret)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	int64_t place[AXES];
	int r;

	if (*word && mo_idset_parse(word, ret) == 0)
		return CLI_OK;
	mo_idset_done(ret);
	if ((r = read_place(cli, word, place)) ||
	    (r = client_get_all(cli, job, &a, "/v1/jobs/%s/ranks", job)))
		return r;
	for (size_t i = 0; i < js_len(js_items(a.doc)); i++) {
		struct json_object *rank = js_at(js_items(a.doc), i);

		if (is_there(rank, place))
			mo_idset_add(ret, (size_t)js_int(rank, "rank"));
	}
	return mo_idset_count(ret) ? CLI_OK
				   : cli_fail(CLI_NOT_FOUND,
					      "%s: no rank is at %.80s; `moectl ranks %s` shows "
					      "their places",
					      job, word, job);
}
