/* Reads a checkpoint directory into the entries that agent/core/ckpt/ckpt.h judges. Links are
 * never followed below the directory itself; sizes and counts are limited. */
#pragma once
#include <dirent.h>

#include "agent/core/ckpt/archive.h"
#include "agent/core/ckpt/manifest.h"
#include "lib/model/message.h"

#define FILES_MAX 400000 /* files of one checkpoint: 131,072 ranks with three each */
#define DEPTH_MAX 4      /* directories below an entry */
/* what checkpoint.keep removes has this name from its first moment on */
#define REMOVING ".moe-removing-"

/* Scans order->dir and fills items (newest iteration first, MO_CHECKPOINTS_MAX at most, one
 * per iteration). A missing directory has no items. bandwidth: bytes per second for checksums, 0
 * = no limit. 0, or a negative errno with err: the directory or the layout cannot be read. */
int scan_directory(const struct command *order, enum ckpt_level level, int64_t bandwidth,
		   struct scan_result *ret, struct mo_error *err);
/* Makes the directory and a file in it, removes the file. 0, -EACCES and its like: not writable;
 * other errors with err. */
int scan_probe(const char *dir, struct mo_error *err);

/* unread.c: whether the file, or all that lies in the directory, is what a run writes beside its
 * state. *ret_empty: there is no file at all. */
bool unread_is_beside(int at, const char *name, const struct ckpt_rules *rules, bool *ret_empty);
/* place.c: whether what the controller doubts (order->doubt) lies in order->dir; after
 * scan_directory(). */
void place_compare(const struct command *order, struct scan_result *ret);
/* unread.c: what in the directory looks like a model's state and was not read; after
 * scan_directory(). */
void unread_find(const struct command *order, struct scan_result *ret);

/* ckpt_entry.c. Follows a link only in the last part, and only when asked to. NULL with errno. */
DIR *directory_open(int at, const char *name, bool follow);
void directory_close(DIR **d);
/* A regular file below `at` ("/" in name allowed), no link in any part of its path. -errno. */
int file_open(int at, const char *name);
/* Fills e: markers (their content too, when `read`), files sorted by name. thorough: also what
 * files hold, as far as their formats tell (opens every file). */
void ckpt_entry_read(int dir_fd, const struct ckpt_layout *layout, const struct ckpt_rules *rules,
		     enum ckpt_level level, bool read, bool thorough, struct ckpt_entry *e);

/* format.c. Why this file cannot be whole, NULL = it may be; caller frees. */
char *format_damage(int fd, const char *name, int64_t bytes, enum ckpt_format format);
/* The pickle in an archive of torch.save; false = there is none (*ret may hold something, caller
 * frees). */
bool format_pickle(int fd, int64_t bytes, char **ret, size_t *ret_n);
/* The directory of the last archive in the file's first `bytes`, caller frees; NULL with *ret_why
 * (static text). */
unsigned char *format_directory(int fd, int64_t bytes, struct archive *ret, const char **ret_why);
/* Where the record's content begins; else why it is not where it should be (static text). */
const char *format_record(int fd, const struct archive *a, const struct archive_record *r,
			  int64_t *ret_content);

/* record.c: the records of a file's archives, in the order in which they lie in it */
struct file_record {
	int64_t at, bytes;
	uint32_t crc;
};
struct file_records {
	struct file_record *items;
	size_t n, next; /* next: that is fed now */
	uint32_t crc;
	bool all; /* the file is nothing but archives, and each record in it carries a checksum */
};
/* NULL, also where the file is no archive (n = 0); else what is wrong, caller frees. */
char *file_records_find(int fd, int64_t bytes, struct file_records *ret);
/* The file's bytes from `at` on, in order. NULL, or which record is not what its archive says,
 * caller frees. */
char *file_records_feed(struct file_records *r, const char *data, size_t n, int64_t at);
void file_records_done(struct file_records *r);

/* checksum.c: manifests and checksums of one entry, in MANIFEST_DIR of the checkpoint directory */
struct checksums {
	int dir_fd;
	const char *entry;
	int64_t part, parts, bandwidth;
	bool own; /* also the checksums that the files carry themselves */
};
/* CRC32C of each file of this part. NULL, or why a file cannot be what it was; caller frees. */
char *checksums_make(const struct checksums *c, struct ckpt_file *files, size_t n);
int checksums_save_part(const struct checksums *c, const struct ckpt_file *files, size_t n);
/* How many of all files carry checksums over all of their records. */
size_t checksums_own(const struct checksums *c, const struct ckpt_file *files, size_t n);
/* Takes what the parts found. NULL, or which file no part read as it is now; caller frees. */
char *checksums_join(const struct checksums *c, struct ckpt_file *files, size_t n);
void manifest_save(int dir_fd, const char *entry, const struct ckpt_file *files, size_t n);
/* 0, -ENOENT, -EINVAL */
int manifest_load(int dir_fd, const char *entry, struct ckpt_file **ret, size_t *n_ret);
void manifest_remove(int dir_fd, const char *entry);

/* prune.c: checkpoint.keep */
bool prune_ordered(int dir_fd, const char *dir, const struct command *order,
		   const struct ckpt_entry *e);
/* true when it is gone */
bool prune_entry(int dir_fd, const char *name);
void prune_leftovers(int dir_fd);
/* A file or a directory with all below it, of moectl's own. */
void tree_remove(int at, const char *name);
