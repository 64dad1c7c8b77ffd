/* One process for each node that is to go off, in a process group of its own, with two minutes.
 * What it prints goes to a memory file, of which the last line is told. Only its exit status 0
 * says that the machine is off: not started, killed or late it says nothing. */
#include "daemon/fence.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/input.h"
#include "lib/base/fd.h"
#include "lib/loop/loop.h"

#define TIME_US (120 * 1000000LL)
#define OUTPUT_MAX (1u << 20)
#define LINE_MAX_SHOWN 300

struct fence {
	struct fences *owner;
	char *node, *boot_id;
	pid_t pid;
	int out;
	bool late;
	sd_event_source *child;
	struct mo_timer *timer;
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
	sd_event_source_disable_unref(f->child);
	mo_timer_free(f->timer);
	if (f->pid > 0) {
		kill(-f->pid, SIGKILL);
		waitpid(f->pid, NULL, 0);
	}
	mo_close(f->out);
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

static int on_exit_status(sd_event_source *s, const siginfo_t *si, void *userdata)
{
	struct fence *f = userdata;
	_cleanup_(mo_freep) char *line = last_line(f->out);
	bool off = si->si_code == CLD_EXITED && si->si_status == 0;
	const char *between = *line ? ": " : "";
	char *text;

	/* reaped by the event loop; what it left behind goes too */
	kill(-f->pid, SIGKILL);
	f->pid = 0;
	if (f->late)
		text = mo_printf("it took more than two minutes%s%s", between, line);
	else if (off)
		text = mo_strdup(line);
	else if (si->si_code == CLD_EXITED)
		text = mo_printf("exit status %d%s%s", si->si_status, between, line);
	else
		text = mo_printf("ended by signal %d%s%s", si->si_status, between, line);
	tell(f, off, text);
	return 0;
}

static void on_time(void *arg)
{
	struct fence *f = arg;

	f->late = true;
	kill(-f->pid, SIGKILL);
}

static int spawn(struct fence *f, const char *program, const char *address)
{
	_cleanup_(mo_freep) char *boot = mo_printf("MOE_NODE_BOOT_ID=%s", f->boot_id),
				 *at = mo_printf("MOE_NODE_ADDRESS=%s", address ? address : "");
	char *const env[] = { (char *)"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:"
				      "/sbin:/bin",
			      (char *)"LANG=C.UTF-8", boot, at, NULL };
	char *const argv[] = { (char *)program, f->node, NULL };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, all;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, f->out, 1);
	posix_spawn_file_actions_adddup2(&files, f->out, 2);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
						POSIX_SPAWN_SETPGROUP);
	int r = -posix_spawn(&f->pid, program, &files, &attr, argv, env);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	if (r < 0) {
		f->pid = 0;
		return r;
	}
	const struct rlimit output = { OUTPUT_MAX, OUTPUT_MAX };
	prlimit(f->pid, RLIMIT_FSIZE, &output, NULL);
	return 0;
}

static int start(struct fence *f, const char *program, const char *address)
{
	sd_event *loop = f->owner->manager->loop;
	int r = 0;

	f->out = memfd_create("fence", MFD_CLOEXEC);
	if (f->out < 0)
		r = -errno;
	if (r >= 0)
		r = mo_timer_new(loop, on_time, f, &f->timer);
	if (r >= 0)
		r = spawn(f, program, address);
	if (r >= 0)
		r = sd_event_add_child(loop, &f->child, f->pid, WEXITED, on_exit_status, f);
	if (r >= 0)
		mo_timer_in(f->timer, TIME_US);
	return r;
}

void fence_run(struct manager *m, const char *node)
{
	const struct node *n = node_find(manager_state(m), node);
	const char *program = m->options->fence_command;
	struct fence *f = mo_alloc(sizeof(*f));

	*f = (struct fence){ .owner = m->fences,
			     .node = mo_strdup(node),
			     .out = -1,
			     .boot_id = mo_strdup(n ? n->boot.id : NULL),
			     .next = m->fences->all };
	m->fences->all = f;
	int r = n ? start(f, program, n->agent.address) : -ENOENT;
	if (r < 0)
		tell(f, false, mo_printf("%s: %s", program, strerror(-r)));
}
