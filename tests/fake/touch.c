/* A rank that touches memory and says where it lies, in its own words and the kernel's: after exec
 * it maps and fills 4 MiB, asks move_pages() for the node of each page, and writes OUT/rank-R.json
 * {"pid", "pages": {"NODE": COUNT}, "policy": MPOL_*, "nodes": mask}. Then it waits for its end;
 * for each SIGUSR1 it tells the notify socket of one iteration.
 * Options: --out DIR  --thread NAME:CPU (a thread of that name that binds itself to this CPU, as a
 * library would; -1 = one that does not)  --threads N (N plain ones). */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define BYTES (4UL << 20)
#define PAGE 4096UL
#define PAGES (BYTES / PAGE)
#define NODES 64

static const char *thread_name = "plain";
static long thread_cpu = -1;

static void die(const char *what)
{
	fprintf(stderr, "touch: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void *live(void *arg)
{
	if (arg) {
		cpu_set_t set;
		prctl(PR_SET_NAME, thread_name);
		CPU_ZERO(&set);
		if (thread_cpu >= 0)
			CPU_SET((size_t)thread_cpu, &set);
		if (thread_cpu >= 0 && sched_setaffinity(0, sizeof set, &set) < 0)
			die("sched_setaffinity");
	}
	for (;;)
		pause();
	return NULL;
}

static void start_thread(void *arg)
{
	static pthread_attr_t attr;
	pthread_t t;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	errno = pthread_create(&t, &attr, live, arg);
	if (errno)
		die("pthread_create");
}

static void count_pages(char *memory, long *counts)
{
	static void *pages[PAGES];
	static int status[PAGES];
	for (size_t i = 0; i < PAGES; i++)
		pages[i] = memory + i * PAGE;
	if (syscall(SYS_move_pages, 0, PAGES, pages, NULL, status, 0) < 0)
		die("move_pages");
	for (size_t i = 0; i < PAGES; i++)
		if (status[i] >= 0 && status[i] < NODES)
			counts[status[i]]++;
}

static void report(const char *dir, const long *counts)
{
	char path[4096], ready[4200];
	unsigned long mask[16] = { 0 };
	int policy = -1;
	snprintf(path, sizeof path, "%s/rank-%s.json", dir, getenv("RANK"));
	snprintf(ready, sizeof ready, "%s.new", path);
	if (syscall(SYS_get_mempolicy, &policy, mask, 8 * sizeof mask, NULL, 0) < 0)
		die("get_mempolicy");
	FILE *f = fopen(ready, "w");
	if (!f)
		die(ready);
	fprintf(f, "{\"pid\": %d, \"policy\": %d, \"nodes\": %lu, \"pages\": {", (int)getpid(),
		policy, mask[0]);
	for (int n = 0, any = 0; n < NODES; n++)
		if (counts[n])
			fprintf(f, "%s\"%d\": %ld", any++ ? ", " : "", n, counts[n]);
	fprintf(f, "}}\n");
	if (fclose(f) || rename(ready, path) < 0)
		die(path);
}

static void notify_iteration(int n)
{
	const char *path = getenv("MOE_NOTIFY_SOCKET");
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	char text[64];
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || !path || strlen(path) >= sizeof a.sun_path)
		die("notify socket");
	memcpy(a.sun_path, path, strlen(path) + 1);
	snprintf(text, sizeof text, "ITERATION=%d\nLOSS=1.0\nSTEP_MS=1.0", n);
	if (sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&a, sizeof a) < 0)
		die(path);
	close(fd);
}

int main(int argc, char **argv)
{
	const char *dir = ".";
	long counts[NODES] = { 0 };
	sigset_t usr1;
	int which;
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	for (int i = 1; i + 1 < argc; i += 2) {
		char *value = argv[i + 1], *colon = strchr(value, ':');
		if (!strcmp(argv[i], "--out"))
			dir = value;
		for (long n = !strcmp(argv[i], "--threads") ? strtol(value, NULL, 10) : 0; n > 0;
		     n--)
			start_thread(NULL);
		if (!strcmp(argv[i], "--thread") && colon) {
			*colon = '\0';
			thread_name = value;
			thread_cpu = strtol(colon + 1, NULL, 10);
			start_thread((void *)1);
		}
	}
	char *memory =
		mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		die("mmap");
	madvise(memory, BYTES, MADV_NOHUGEPAGE);
	memset(memory, 1, BYTES);
	count_pages(memory, counts);
	report(dir, counts);
	for (int n = 1;; n++) {
		sigwait(&usr1, &which);
		notify_iteration(n);
	}
}
