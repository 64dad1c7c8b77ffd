/* What a disk holds, and what is left of it when the power goes: the files of this world by their
 * names. disk.c has the calls and the descriptors. A file's bytes are pages of one sector each: one
 * that was not synced is on the disk as it was or as it is, whatever became of its neighbours. The
 * names of a directory change in order, as in a journal: of the changes since its last sync some
 * first ones are on the disk. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/buf.h"

#define SECTOR 512
struct file {
	char *name; /* NULL: removed */
	bool dir;
	int64_t number;
	int open; /* by so many descriptors */
	int lock; /* the descriptor that holds it, 0 none, -1 somebody else */
	struct mo_buf data;
	int64_t reserved;       /* space for so many bytes: its size, when data is shorter */
	int64_t changed_ns;     /* st_mtime, and no two are the same */
	struct mo_buf synced;   /* as the disk has it, but for */
	struct mo_buf unsynced; /* these of data's sectors: a byte each */
	int64_t synced_ns;
};

struct file *file_find(const char *name); /* NULL: none */
/* An empty one; what was there under the name is removed. */
struct file *file_new(const char *name, bool dir);
void file_rename(struct file *f, const char *to);
void file_remove(struct file *f);
void file_resize(struct file *f, size_t n); /* what is new is zero */
/* data changed there */
void file_touched(struct file *f, size_t at, size_t n);
void file_sync(struct file *f);
void file_sync_names(const char *dir);
/* It was there before all of this: whole, under its name. */
void file_settle(struct file *f);
void file_lose(struct file *f); /* it was never there */
/* fn of all that are below, and of some others: in no order */
void file_each_below(const char *dir, void (*fn)(void *arg, struct file *f), void *arg);
bool file_is_below(const char *name, const char *dir);
/* Of the machine that has what is below that directory ("/": all). seed 0: nothing that was not
 * synced is left */
void file_power_loss(const char *host, uint64_t seed);
void files_done(void);
