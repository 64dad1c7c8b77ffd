/* See audit.h. A client that is refused usually asks again, and one that means ill asks as often
 * as it can: each event is a record, so the same request of the same person is reported once a
 * minute, of one person no more than REPORTED_MAX in that time, and of all no more than
 * REPORTED_ALL_MAX; the rest is counted and reported with the next of that person. Who has shown no
 * credential is one person. */
#include "daemon/audit.h"
#include "daemon/input.h"
#include <string.h>
#include <uthash.h>

#define PERIOD_US (60 * 1000000LL)
#define REPORTED_MAX 10
#define REPORTED_ALL_MAX 200

struct person {
	char *name;
	char *reported[REPORTED_MAX];
	size_t n_reported; /* requests of this period */
	int64_t unreported;
	UT_hash_handle hh;
};
struct audit {
	/* of this period, and those of whom something is untold */
	struct person *persons;
	size_t n_reported;
	int64_t period_ends; /* CLOCK_BOOTTIME */
};

void audit_new(struct manager *m)
{
	m->audit = mo_alloc(sizeof(*m->audit));
}

/* all: also those of whom something is untold. */
static void forget(struct audit *a, bool all)
{
	struct person *p, *tmp;

	HASH_ITER(hh, a->persons, p, tmp) {
		while (p->n_reported)
			free(p->reported[--p->n_reported]);
		if (p->unreported && !all)
			continue;
		HASH_DEL(a->persons, p);
		free(p->name);
		free(p);
	}
	a->n_reported = 0;
}

struct audit *audit_free(struct audit *a)
{
	if (a)
		forget(a, true);
	free(a);
	return NULL;
}

static struct person *person_of(struct audit *a, const char *name)
{
	struct person *p = NULL;

	HASH_FIND_STR(a->persons, name, p);
	if (!p) {
		p = mo_alloc(sizeof(*p));
		p->name = mo_strdup(name);
		HASH_ADD_KEYPTR(hh, a->persons, p->name, strlen(p->name), p);
	}
	return p;
}

/* false: counted only. Takes key. */
static bool worth_telling(struct audit *a, struct person *p, char *key)
{
	bool known = mo_enum_parse((const char *const *)p->reported, p->n_reported, key) >= 0;

	if (known || p->n_reported == REPORTED_MAX || a->n_reported == REPORTED_ALL_MAX) {
		p->unreported++;
		free(key);
		return false;
	}
	p->reported[p->n_reported++] = key;
	a->n_reported++;
	return true;
}

void audit_refused(void *arg, const struct http_request *r, const char *why)
{
	struct manager *m = arg;
	const struct http_caller *c = http_caller(r);
	const char *user = c->user && *c->user ? c->user : "somebody";
	int64_t now = mo_clock_boot_us();

	if (now >= m->audit->period_ends) {
		forget(m->audit, false);
		m->audit->period_ends = now + PERIOD_US;
	}

	struct person *p = person_of(m->audit, user);

	if (!worth_telling(m->audit, p, mo_printf("%s %s", http_method(r), http_path(r))))
		return;
	struct input *in = input_new(IN_REFUSED, NULL);
	in->core.by.user = mo_strdup(user);
	in->core.by.via = caller_via(c, http_peer_address(r));
	_cleanup_(mo_freep) char *others =
		p->unreported ? mo_printf(" (and %lld others since)", (long long)p->unreported)
			      : mo_strdup("");
	in->core.refused = mo_desc_new(&in_refused_desc);
	in->core.refused->what =
		mo_printf("was refused %s %.200s: %s%s", http_method(r), http_path(r), why, others);
	p->unreported = 0;
	input_push(m, in);
}
