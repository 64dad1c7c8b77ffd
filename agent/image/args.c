/* See args.h. */
#include "agent/image/args.h"

#include <string.h>

#include "lib/base/parse.h"

#define UNPACKED_MAX (512LL << 30)
#define SILENCE_S 60
#define SECOND_US 1000000LL

const char args_usage[] =
	"usage: moe-image fetch docker://HOST/NAME[:TAG][@DIGEST] DIR [--auth FILE]\n"
	"                 [--mirror FROM=TO] .. [--silence DURATION]\n"
	"       moe-image unpack oci:DIR[:TAG]|docker-archive:FILE DEST [--by-digest]\n"
	"                 [--max-bytes SIZE]\n"
	"       moe-image list DIR\n"
	"       moe-image prune DIR --max-bytes SIZE [--unused-for DURATION] [--keep DIGEST] ..\n"
	"       moe-image stock DIR [--remove DIGEST|NAME [--keep DIGEST] ..]\n"
	"       moe-image pull IMAGE DIR [--digest DIGEST] [--never] [--own]\n"
	"                 [--auth FILE] [--mirror FROM=TO] .. [--silence DURATION]\n"
	"       moe-image make DIR [--own]\n"
	"       pull, make: [--min-uid UID]; all: [--user NAME] [--allow-root]\n"
	"       moe-image --version\n";

static const char *const verbs[] = {
	[VERB_FETCH] = "fetch", [VERB_UNPACK] = "unpack", [VERB_LIST] = "list",
	[VERB_PRUNE] = "prune", [VERB_PULL] = "pull",     [VERB_MAKE] = "make",
	[VERB_STOCK] = "stock"
};

static bool read_silence(struct args *a, const char *value)
{
	int64_t us;

	if (mo_parse_duration_us(value, &us) < 0 || us < SECOND_US)
		return false;
	a->silence_s = us / SECOND_US;
	return true;
}

/* An option with its value; false: it is none of this verb. */
static bool read_option(struct args *a, const char *name, const char *value)
{
	bool pull = a->verb == VERB_PULL, fetch = a->verb == VERB_FETCH || pull;

	if (mo_streq(name, "--user"))
		a->user = value;
	else if (mo_streq(name, "--auth") && fetch)
		a->auth_file = value;
	else if (mo_streq(name, "--mirror") && fetch && strchr(value, '='))
		mo_strs_add(&a->mirrors, &a->n_mirrors, value);
	else if (mo_streq(name, "--silence") && fetch)
		return read_silence(a, value);
	else if (mo_streq(name, "--digest") && pull)
		a->digest = value;
	else if (mo_streq(name, "--min-uid") && (pull || a->verb == VERB_MAKE))
		return mo_parse_i64(value, 0, UINT32_MAX, &a->min_uid) == 0;
	else if (mo_streq(name, "--remove") && a->verb == VERB_STOCK)
		a->removes = value;
	else if (mo_streq(name, "--keep") && (a->verb == VERB_STOCK || a->verb == VERB_PRUNE))
		mo_strs_add(&a->keeps, &a->n_keeps, value);
	else if (mo_streq(name, "--unused-for") && a->verb == VERB_PRUNE)
		return mo_parse_duration_us(value, &a->unused_us) == 0;
	else if (mo_streq(name, "--max-bytes") && (a->verb == VERB_UNPACK || a->verb == VERB_PRUNE))
		return mo_parse_size(value, &a->bytes_max) == 0;
	else
		return false;
	return true;
}

bool args_read(int argc, char **argv, struct args *ret)
{
	int at = 2;

	*ret = (struct args){ .silence_s = SILENCE_S, .bytes_max = UNPACKED_MAX };
	ret->verb = argc > 2 ? mo_enum_parse(verbs, ELEMENTSOF(verbs), argv[1]) : -1;
	if (ret->verb < 0)
		return false;
	if (ret->verb == VERB_PRUNE)
		ret->bytes_max = MO_NONE;
	if (ret->verb == VERB_FETCH || ret->verb == VERB_UNPACK || ret->verb == VERB_PULL)
		ret->source = argv[at++];
	if (at >= argc || !*argv[at] || *argv[at] == '-')
		return false;
	ret->dir = argv[at++];
	for (; at < argc; at++) {
		if (mo_streq(argv[at], "--allow-root"))
			ret->allow_root = true;
		else if (mo_streq(argv[at], "--by-digest") && ret->verb == VERB_UNPACK)
			ret->by_digest = true;
		else if (mo_streq(argv[at], "--never") && ret->verb == VERB_PULL)
			ret->never = true;
		else if (mo_streq(argv[at], "--own") &&
			 (ret->verb == VERB_PULL || ret->verb == VERB_MAKE))
			ret->own = true;
		else if (at + 1 == argc || !read_option(ret, argv[at], argv[at + 1]))
			return false;
		else
			at++;
	}
	return ret->bytes_max != MO_NONE;
}

void args_done(struct args *a)
{
	mo_strs_clear(&a->mirrors, &a->n_mirrors);
	mo_strs_clear(&a->keeps, &a->n_keeps);
}
