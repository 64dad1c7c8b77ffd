/* See child_found.h. Up to child_look: no allocation, no stdio, no locks. */
#include "agent/stepd/child_found.h"

#include <fcntl.h>
#include <string.h>

#include "agent/stepd/child.h"
#include "lib/base/fd.h"

/* O_NONBLOCK: a FIFO in its place. */
static size_t read_head(const char *path, char ret[PROGRAM_HEAD_BYTES])
{
	int fd = mo_open_at(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	ssize_t n = fd < 0 ? -1 : mo_read(fd, ret, PROGRAM_HEAD_BYTES);

	mo_close(fd);
	return n > 0 ? (size_t)n : 0;
}

/* False: it is too long, and ret is as it was. */
static bool copy(char *ret, size_t size, const char *s)
{
	size_t n = strlen(s);

	if (n >= size)
		return false;
	memcpy(ret, s, n + 1);
	return true;
}

static void look_at(const char *path, struct child_found *f)
{
	char head[PROGRAM_HEAD_BYTES], by[PROGRAM_NAME_MAX];
	size_t n = read_head(path, head);

	copy(f->path, sizeof(f->path), path);
	f->forbidden = mo_access(path, X_OK) != 0;
	f->machine = program_machine(head, n);
	if (program_by(head, n, by) == 0)
		return;
	if (mo_access(by, F_OK) != 0)
		copy(f->by, sizeof(f->by), by);
	else if (f->machine == 0)
		f->machine = program_machine(head, read_head(by, head));
}

static void look_elsewhere(const char *program, struct child_found *f)
{
	const char *slash = strrchr(program, '/'), *name = slash ? slash + 1 : program;
	char path[PROGRAM_NAME_MAX];

	for (size_t i = 0; program_dirs[i] && *name; i++) {
		size_t n = strlen(program_dirs[i]);

		if (!copy(path, sizeof(path), program_dirs[i]))
			continue;
		path[n] = '/';
		if (!copy(path + n + 1, sizeof(path) - n - 1, name))
			continue;
		if (mo_access(path, X_OK) == 0) {
			copy(f->elsewhere, sizeof(f->elsewhere), path);
			return;
		}
	}
}

void child_look(const struct child_plan *p, struct child_found *ret)
{
	static const char name[] = "PATH=";

	ret->looked = 1;
	for (char *const *path = p->candidates; *path; path++)
		if (mo_access(*path, F_OK) == 0) {
			look_at(*path, ret);
			return;
		}
	look_elsewhere(p->argv[0], ret);
	for (char *const *env = p->envp; *env && !strchr(p->argv[0], '/'); env++)
		if (strncmp(*env, name, strlen(name)) == 0)
			copy(ret->search, sizeof(ret->search), *env + strlen(name));
}

static const char *known(const char *s)
{
	return *s ? s : NULL;
}

char *child_found_problem(const struct child_found *f, const char *program)
{
	const struct program_found found = { .wanted = program,
					     .path = known(f->path),
					     .search = known(f->search),
					     .elsewhere = known(f->elsewhere),
					     .forbidden = f->forbidden != 0,
					     .machine = f->machine,
					     .own = program_own_machine(),
					     .by = known(f->by) };

	return f->looked ? program_problem(&found) : NULL;
}
