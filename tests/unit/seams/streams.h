/* Between disk.c, which has the descriptors, and streams.c. */
#pragma once
#include "lib/base/buf.h"

struct seam_fd {
	int holders; /* 0: closed */
	struct file *file;
	char *dir; /* of a directory: its name */
	size_t at;
	bool append;
	/* a stream: where what is written goes, -1 nowhere; what came; no more comes */
	int peer;
	struct mo_buf in;
	bool packets, ended;
};
int seam_fd_new(void);
struct seam_fd *seam_fd(int fd);
bool seam_is_open(int fd);
/* As read(2) and write(2) of a stream. */
ssize_t seam_take(struct seam_fd *d, void *ret, size_t n);
ssize_t seam_give(struct seam_fd *d, const void *data, size_t n);
