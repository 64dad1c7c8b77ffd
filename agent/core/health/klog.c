/* The kernel's log against rules (see klog.h). */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "agent/core/health/klog.h"

#include <errno.h>
#include <pcre2.h>
#include <string.h>

#include "agent/core/health/reading.h"
#include "lib/base/parse.h"

#define RECORD_BYTES_MAX 8192 /* a record of the kernel has at most that */
/* records behind a page fault that may name its process */
#define FOLLOWS_MAX 6

/* "0000:68:00.0", and "0000:06:00" of NVIDIA's Xid lines */
static const char device_pattern[] = "(?<![0-9a-fA-F])([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2})(?:("
				     "\\.[0-7])(?![0-9a-f])|(?![0-9a-f:.]))";
static const char event_pattern[] = "\\{(\\d{1,18})\\}";
/* Each text that names a process, whole from the line's beginning: what stands in its name is not
 * taken for the kernel's word. */
static const char process_pattern[] =
	"^(?|.*?\\bfor process (?:(?&comm) | )?pid (\\d+)(?: thread |\\)?$)|NVRM: Xid [^,]*, "
	"pid='?(\\d+)|(?:Out of memory|Memory cgroup out of memory): Killed process "
	"(\\d+)|(?&comm)\\[(\\d+)\\]: segfault at|watchdog: .*? \\[(?&comm):(\\d+)\\]$|INFO: task "
	"(?&comm):(\\d+) blocked)";

/* "<3>[   12.345678] [T42] " */
static const char dmesg_pattern[] =
	"^ *(?:<\\d+>)?(?:\\[ *\\d+\\.\\d+\\] *)?(?:\\[ *[CT]\\d+\\] *)?";

struct names {
	char **items;
	size_t n;
};
struct tally {
	int64_t count;
	char **lines;
	size_t n_lines;
	struct names devices, events, processes;
};
struct klog {
	struct klog_rules rules;
	pcre2_code **match, **unless;
	struct tally *tallies;
	pcre2_code *device, *event, *process, *dmesg;
	pcre2_match_data *data;
	pcre2_match_context *limits;
	int64_t since, last, n_read;
	/* the last record came with a number: lines beginning with a blank belong to it */
	bool numbered;
	/* rule whose process may be named by a following record; n_rules = none */
	size_t pending;
	int64_t pending_left;
	char *pending_device;
};

static pcre2_code *compile(const char *pattern, struct mo_error *err, int *r)
{
	int code;
	PCRE2_SIZE offset;
	PCRE2_UCHAR text[256] = "";
	_cleanup_(mo_freep) char *whole = mo_printf("%s" KLOG_WORDS, pattern);
	pcre2_code *re =
		pcre2_compile((PCRE2_SPTR)whole, PCRE2_ZERO_TERMINATED, 0, &code, &offset, NULL);

	if (!re) {
		pcre2_get_error_message(code, text, sizeof(text));
		*r = mo_error_set(err, -EINVAL, "kernel log rules: pattern '%s': %s", pattern,
				  (const char *)text);
	}
	return re;
}

static void add_any(struct mo_buf *b, char *const *patterns, size_t n)
{
	for (size_t i = 0; i < n; i++)
		mo_buf_printf(b, "%s(?:%s)", i ? "|" : "", patterns[i]);
}

/* From the first byte of the line: how a driver of the rule begins, and what it says. */
static pcre2_code *compile_match(const struct klog_rules *rules, const struct klog_rule *rule,
				 struct mo_error *err, int *r)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	mo_buf_str(&b, "^(?:");
	for (size_t i = 0; i < rule->n_from; i++)
		for (size_t k = 0; k < rules->n_drivers; k++)
			if (mo_streq(rules->drivers[k].name, rule->from[i])) {
				mo_buf_str(&b, b.data[b.len - 1] == ')' ? "|" : "");
				add_any(&b, rules->drivers[k].begins, rules->drivers[k].n_begins);
			}
	mo_buf_str(&b, ")(?:");
	add_any(&b, rule->match, rule->n_match);
	mo_buf_str(&b, ")");
	return rule->n_match ? compile(b.data, err, r) : NULL;
}

static pcre2_code *compile_unless(const struct klog_rule *rule, struct mo_error *err, int *r)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	add_any(&b, rule->unless, rule->n_unless);
	return rule->n_unless ? compile(b.data, err, r) : NULL;
}

int klog_new(const struct klog_rules *rules, struct klog **ret, struct mo_error *err)
{
	_cleanup_(klog_freep) struct klog *k = mo_alloc(sizeof(*k));
	int r = 0;

	mo_desc_init(&klog_rules_desc, &k->rules);
	mo_desc_copy(&klog_rules_desc, &k->rules, rules);
	k->match = mo_alloc_array(rules->n_rules, sizeof(*k->match));
	k->unless = mo_alloc_array(rules->n_rules, sizeof(*k->unless));
	k->tallies = mo_alloc_array(rules->n_rules, sizeof(*k->tallies));
	for (size_t i = 0; i < rules->n_rules; i++) {
		k->match[i] = compile_match(rules, &rules->rules[i], err, &r);
		k->unless[i] = compile_unless(&rules->rules[i], err, &r);
	}
	k->device = compile(device_pattern, err, &r);
	k->event = compile(event_pattern, err, &r);
	k->process = compile(process_pattern, err, &r);
	k->dmesg = compile(dmesg_pattern, err, &r);
	k->data = pcre2_match_data_create(8, NULL);
	k->limits = pcre2_match_context_create(NULL);
	if (!k->data || !k->limits)
		abort();
	/* a pattern of the file that explodes on a line does not match it */
	pcre2_set_match_limit(k->limits, 200000);
	k->since = k->last = -1;
	k->pending = rules->n_rules;
	if (r < 0)
		return r;
	*ret = TAKE_PTR(k);
	return 0;
}

static void names_done(struct names *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->items[i]);
	free(l->items);
}

struct klog *klog_free(struct klog *k)
{
	if (!k)
		return NULL;
	for (size_t i = 0; i < k->rules.n_rules; i++) {
		struct tally *t = &k->tallies[i];
		struct names lines = { t->lines, t->n_lines };
		pcre2_code_free(k->match[i]);
		pcre2_code_free(k->unless[i]);
		names_done(&lines);
		names_done(&t->devices);
		names_done(&t->events);
		names_done(&t->processes);
	}
	free(k->match);
	free(k->unless);
	free(k->tallies);
	pcre2_code_free(k->device);
	pcre2_code_free(k->event);
	pcre2_code_free(k->process);
	pcre2_code_free(k->dmesg);
	pcre2_match_data_free(k->data);
	pcre2_match_context_free(k->limits);
	mo_desc_done(&klog_rules_desc, &k->rules);
	free(k->pending_device);
	free(k);
	return NULL;
}

void klog_since(struct klog *k, int64_t since)
{
	k->since = since;
}

int64_t klog_last(const struct klog *k)
{
	return k->last;
}

static int matches(const struct klog *k, const pcre2_code *re, const char *text, size_t n,
		   size_t from)
{
	return re && from <= n ? pcre2_match(re, (PCRE2_SPTR)text, n, from, PCRE2_NO_UTF_CHECK,
					     k->data, k->limits)
			       : 0;
}

static void name_add(struct names *l, const char *name, size_t n)
{
	for (size_t i = 0; i < l->n; i++)
		if (strlen(l->items[i]) == n && strncmp(l->items[i], name, n) == 0)
			return;
	if (l->n >= KLOG_NAMED_MAX)
		return;
	_cleanup_(mo_freep) char *copy = mo_strndup(name, n);
	mo_strs_add(&l->items, &l->n, copy);
}

/* Every match's first group, with the second one or, when devices are meant, ".0" behind it. */
static void names_find(const struct klog *k, const pcre2_code *re, bool devices, const char *text,
		       size_t n, struct names *l)
{
	for (size_t from = 0; matches(k, re, text, n, from) > 0;) {
		const PCRE2_SIZE *o = pcre2_get_ovector_pointer(k->data);
		size_t len = o[3] - o[2];
		char name[40];
		/* process 0: the driver does not know it */
		if (len + 3 < sizeof(name) && !(len == 1 && text[o[2]] == '0')) {
			memcpy(name, text + o[2], len);
			if (devices) {
				bool given = o[1] == o[3] + 2;
				name[len++] = '.';
				name[len++] = given ? text[o[3] + 1] : '0';
			}
			name_add(l, name, len);
		}
		from = o[1] > o[0] ? o[1] : o[1] + 1;
	}
}

static void keep_line(struct tally *t, int64_t us, const char *text, size_t n)
{
	if (t->n_lines >= KLOG_EVIDENCE_MAX)
		return;
	int shown = (int)MO_MIN(n, (size_t)KLOG_EVIDENCE_BYTES);
	_cleanup_(mo_freep) char *line =
		us < 0 ? mo_printf("%.*s", shown, text)
		       : mo_printf("[%lld.%06lld] %.*s", (long long)(us / 1000000),
				   (long long)(us % 1000000), shown, text);
	mo_strs_add(&t->lines, &t->n_lines, line);
}

/* A record that no rule knows may say which process caused the page fault before it, on the same
 * device. */
static void attribute(struct klog *k, const char *text, size_t n)
{
	struct names processes = { 0 }, devices = { 0 };

	if (k->pending >= k->rules.n_rules || k->pending_left-- <= 0)
		return;
	names_find(k, k->process, false, text, n, &processes);
	names_find(k, k->device, true, text, n, &devices);
	if (processes.n &&
	    (!k->pending_device || (devices.n && mo_streq(devices.items[0], k->pending_device)))) {
		struct tally *t = &k->tallies[k->pending];
		for (size_t i = 0; i < processes.n; i++)
			name_add(&t->processes, processes.items[i], strlen(processes.items[i]));
		keep_line(t, -1, text, n);
		k->pending = k->rules.n_rules;
	}
	names_done(&processes);
	names_done(&devices);
}

static void count(struct klog *k, size_t rule, int64_t us, const char *text, size_t n)
{
	struct tally *t = &k->tallies[rule];
	struct names devices = { 0 }, processes = { 0 };

	t->count++;
	keep_line(t, us, text, n);
	names_find(k, k->device, true, text, n, &devices);
	names_find(k, k->process, false, text, n, &processes);
	names_find(k, k->event, false, text, n, &t->events);
	for (size_t i = 0; i < devices.n; i++)
		name_add(&t->devices, devices.items[i], strlen(devices.items[i]));
	for (size_t i = 0; i < processes.n; i++)
		name_add(&t->processes, processes.items[i], strlen(processes.items[i]));
	if (k->rules.rules[rule].severity == KLOG_JOB && !processes.n) {
		k->pending = rule;
		k->pending_left = FOLLOWS_MAX;
		mo_str_set(&k->pending_device, devices.n ? devices.items[0] : NULL);
	}
	names_done(&devices);
	names_done(&processes);
}

static void judge(struct klog *k, int64_t us, const char *text, size_t n)
{
	bool known = false;

	k->n_read++;
	for (size_t i = 0; i < k->rules.n_rules; i++) {
		if (matches(k, k->match[i], text, n, 0) <= 0 ||
		    matches(k, k->unless[i], text, n, 0) > 0)
			continue;
		known = true;
		count(k, i, us, text, n);
	}
	if (!known)
		attribute(k, text, n);
}

/* "prio,seq,us," of a record; false when it has no such head. */
static bool head(const char *record, size_t n, int64_t v[static 3])
{
	size_t at = 0;

	for (size_t i = 0; i < 3; i++) {
		char word[24];
		size_t len = 0;
		while (at < n && len + 1 < sizeof(word) && record[at] >= '0' && record[at] <= '9')
			word[len++] = record[at++];
		word[len] = 0;
		if (at >= n || record[at++] != ',' ||
		    mo_parse_i64(word, 0, INT64_MAX / 2, &v[i]) < 0)
			return false;
	}
	return true;
}

/* What dmesg prints before a record's own text: how long it is. */
static size_t dmesg_head(const struct klog *k, const char *text, size_t n)
{
	return matches(k, k->dmesg, text, n, 0) > 0 ? pcre2_get_ovector_pointer(k->data)[1] : 0;
}

void klog_feed(struct klog *k, const char *record, size_t n)
{
	int64_t v[3] = { 0, k->last + 1, -1 }; /* prio, seq, us */
	const char *text = record, *semicolon = memchr(record, ';', n);

	n = MO_MIN(n, (size_t)RECORD_BYTES_MAX);
	k->numbered = semicolon && (size_t)(semicolon - record) < n && head(record, n, v);
	if (k->numbered) {
		text = semicolon + 1;
		n -= (size_t)(text - record);
	} else {
		v[0] = 0;
		v[1] = k->last + 1;
		v[2] = -1;
	}
	if (!k->numbered) {
		size_t skip = dmesg_head(k, text, n);
		text += skip;
		n -= skip;
	}
	const char *newline = memchr(text, '\n', n);
	if (v[1] > k->last)
		k->last = v[1];
	/* facility 0: the kernel itself */
	if (v[1] > k->since && v[0] >> 3 == 0)
		judge(k, v[2], text, newline ? (size_t)(newline - text) : n);
}

void klog_feed_text(struct klog *k, const char *text, size_t n)
{
	for (size_t at = 0; at < n;) {
		const char *newline = memchr(text + at, '\n', n - at);
		size_t len = newline ? (size_t)(newline - text) - at : n - at;
		if (len && !(k->numbered && text[at] == ' '))
			klog_feed(k, text + at, len);
		at += len + 1;
	}
}

static void add_names(struct probe *p, const char *what, const char *id, const struct names *l)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_freep) char *key = mo_printf("%s.%s", what, id);

	for (size_t i = 0; i < l->n; i++)
		mo_buf_printf(&b, "%s%s", i ? " " : "", l->items[i]);
	reading_add_text(p, key, b.data);
}

void klog_readings(const struct klog *k, struct probe *p)
{
	reading_add_int(p, "last_seq", k->last);
	reading_add_int(p, "records", k->n_read);
	for (size_t i = 0; i < k->rules.n_rules; i++)
		reading_add_int(p, k->rules.rules[i].id, k->tallies[i].count);
	for (size_t i = 0; i < k->rules.n_rules; i++) {
		const struct tally *t = &k->tallies[i];
		const char *id = k->rules.rules[i].id;
		add_names(p, "devices", id, &t->devices);
		add_names(p, "events", id, &t->events);
		add_names(p, "pids", id, &t->processes);
		for (size_t j = 0; j < t->n_lines; j++) {
			_cleanup_(mo_freep) char *key = mo_printf("line.%s.%zu", id, j + 1);
			reading_add_text(p, key, t->lines[j]);
		}
	}
}
