/* One errand for each node that is to go off, with two minutes. Of what it prints the last line is
 * told. Only its exit status 0 says that the machine is off: not started, killed or late it says
 * nothing. */
#include "daemon/fence.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "daemon/errand.h"
#include "daemon/input.h"

#define TIME_US (120 * 1000000LL)
#define LINE_MAX_SHOWN 300

struct fence {
	struct fences *owner;
	char *node, *boot_id;
	struct errand *errand;
	struct fence *next;
};
struct fences {
	struct manager *manager;
	struct fence *all;
};

void fences_new(struct manager *m)
{
	m->fences = mo_alloc(sizeof(*m->fences));
	*m->fences = (struct fences){ .manager = m };
}

static void fence_free(struct fence *f)
{
	errand_free(f->errand);
	free(f->node);
	free(f->boot_id);
	free(f);
}

struct fences *fences_free(struct fences *s)
{
	for (struct fence *f = s ? s->all : NULL, *next; f; f = next) {
		next = f->next;
		fence_free(f);
	}
	free(s);
	return NULL;
}

/* The last line that is not empty, as a person may see it; caller frees, "" = there is none. */
static char *last_line(int fd)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	char part[4096];
	off_t end = lseek(fd, 0, SEEK_END), from = MO_MAX(end - (off_t)sizeof(part), (off_t)0);
	ssize_t n = end < 0 ? -1 : pread(fd, part, sizeof(part), from);
	size_t last, first;

	while (n > 0 && strchr(" \t\r\n", part[n - 1]))
		n--;
	if (n <= 0)
		return mo_strdup("");
	for (first = last = (size_t)n; first > 0 && part[first - 1] != '\n';)
		first--;
	for (size_t i = first; i < last && b.len < LINE_MAX_SHOWN; i++)
		mo_buf_add(&b, part[i] >= ' ' && part[i] < 0x7f ? &part[i] : "?", 1);
	return mo_buf_take(&b);
}

/* Takes text; f is freed. */
static void tell(struct fence *f, bool off, char *text)
{
	struct input *in = input_new(IN_POWER, NULL);
	struct manager *m = f->owner->manager;

	in->core.power = mo_desc_new(&in_power_desc);
	*in->core.power = (struct in_power){
		.node = TAKE_PTR(f->node), .boot_id = TAKE_PTR(f->boot_id), .off = off, .text = text
	};
	for (struct fence **p = &f->owner->all; *p; p = &(*p)->next)
		if (*p == f) {
			*p = f->next;
			break;
		}
	fence_free(f);
	input_push(m, in);
}

static void on_ended(void *arg, const struct errand_end *end)
{
	struct fence *f = arg;
	_cleanup_(mo_freep) char *line = last_line(end->out);
	bool off = end->exited && end->status == 0;
	const char *between = *line ? ": " : "";
	char *text;

	f->errand = NULL;
	if (end->late)
		text = mo_printf("it took more than two minutes%s%s", between, line);
	else if (off)
		text = mo_strdup(line);
	else if (end->exited)
		text = mo_printf("exit status %d%s%s", end->status, between, line);
	else
		text = mo_printf("ended by signal %d%s%s", end->status, between, line);
	tell(f, off, text);
}

static int start(struct fence *f, const char *program, const char *address)
{
	_cleanup_(mo_freep) char *boot = mo_printf("MOE_NODE_BOOT_ID=%s", f->boot_id),
				 *at = mo_printf("MOE_NODE_ADDRESS=%s", address ? address : "");
	char *const env[] = { (char *)"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:"
				      "/sbin:/bin",
			      (char *)"LANG=C.UTF-8", boot, at, NULL };
	char *const argv[] = { (char *)program, f->node, NULL };
	const struct errand_call call = {
		.program = program, .argv = argv, .env = env, .time_us = TIME_US
	};

	return errand_start(f->owner->manager->loop, &call, on_ended, f, &f->errand);
}

void fence_run(struct manager *m, const char *node)
{
	const struct node *n = node_find(manager_state(m), node);
	const char *program = m->options->fence_command;
	struct fence *f = mo_alloc(sizeof(*f));

	*f = (struct fence){ .owner = m->fences,
			     .node = mo_strdup(node),
			     .boot_id = mo_strdup(n ? n->boot.id : NULL),
			     .next = m->fences->all };
	m->fences->all = f;
	int r = n ? start(f, program, n->agent.address) : -ENOENT;
	if (r < 0)
		tell(f, false, mo_printf("%s: %s", program, strerror(-r)));
}
