/* See audit.h. A client that is refused usually asks again, and one that means ill asks as often as it can: each event is a record, so the same request of the same person is told once a
 * minute, and of all no more than TOLD_MAX in that time; the rest is counted and told with the next. */
#include "daemon/audit.h"
#include <string.h>
#include "daemon/turn.h"

#define PERIOD_US (60 * 1000000LL)
#define TOLD_MAX 30

struct audit {
	char *told[TOLD_MAX]; size_t n_told; /* requests of this period */
	int64_t period_ends;                 /* CLOCK_BOOTTIME */
	int64_t untold;
};

static void forget(struct audit *a)
{
	for (size_t i = 0; i < a->n_told; i++)
		free(a->told[i]);
	a->n_told = 0;
}

void audit_new(struct manager *m)
{
	m->audit = mo_alloc(sizeof(*m->audit));
}

struct audit *audit_free(struct audit *a)
{
	if (a)
		forget(a);
	free(a);
	return NULL;
}

/* false: counted only. Takes key. */
static bool worth_telling(struct audit *a, char *key)
{
	int64_t now = mo_clock_boot_us();
	bool known;

	if (now >= a->period_ends) {
		forget(a);
		a->period_ends = now + PERIOD_US;
	}
	known = mo_enum_parse((const char *const *)a->told, a->n_told, key) >= 0;
	if (known || a->n_told == TOLD_MAX) {
		a->untold++;
		free(key);
		return false;
	}
	a->told[a->n_told++] = key;
	return true;
}

void audit_refused(void *arg, const struct http_request *r, const char *why)
{
	struct manager *m = arg;
	const struct http_caller *c = http_caller(r);
	const char *user = c->user && *c->user ? c->user : "somebody";

	if (!worth_telling(m->audit, mo_printf("%s %s %s", user, http_method(r), http_path(r))))
		return;
	struct input *in = input_new(EV_REFUSED, NULL);
	in->user = mo_strdup(user);
	in->via = caller_via(c, http_peer_address(r));
	in->text = m->audit->untold ? mo_printf("was refused %s %.200s: %s (and %lld others were since)", http_method(r), http_path(r), why, (long long)m->audit->untold) :
		mo_printf("was refused %s %.200s: %s", http_method(r), http_path(r), why);
	m->audit->untold = 0;
	turn_push(m, in);
}
