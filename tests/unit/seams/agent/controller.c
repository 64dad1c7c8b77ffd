/* In place of agent/controller.c: messages lie here until the test answers. */
#include "agent/controller.h"

#include "lib/wire/encode.h"
#include "tests/unit/seams/agent/bed.h"

static struct message {
	uint64_t id; /* 0: free */
	char *path, *json;
	controller_fn fn;
	void *arg;
} messages[16];
static uint64_t n_messages;

static struct message *find(uint64_t id)
{
	for (size_t i = 0; i < ELEMENTSOF(messages); i++)
		if (messages[i].id == id)
			return &messages[i];
	return NULL;
}

static void drop(struct message *m)
{
	free(m->path);
	free(m->json);
	*m = (struct message){ 0 };
}

uint64_t seam_message(const char **ret_path, const char **ret_json)
{
	struct message *first = NULL;

	for (size_t i = 0; i < ELEMENTSOF(messages); i++)
		if (messages[i].id && (!first || messages[i].id < first->id))
			first = &messages[i];
	if (!first)
		return 0;
	*ret_path = first->path;
	*ret_json = first->json;
	return first->id;
}

void seam_answer(uint64_t id, int status, const struct mo_desc *desc, const void *body)
{
	struct message *m = find(id), answered = *m;
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	*m = (struct message){ 0 };
	if (body)
		wire_encode(desc, body, &b);
	answered.fn(answered.arg, status, b.data ? b.data : "", b.len, body ? NULL : "silence");
	drop(&answered);
}

void seam_controller_done(void)
{
	for (size_t i = 0; i < ELEMENTSOF(messages); i++)
		drop(&messages[i]);
}

int controller_new(struct manager *m, struct controller **ret, struct mo_error *err)
{
	*ret = NULL;
	return 0;
}

struct controller *controller_free(struct controller *c)
{
	return NULL;
}

uint64_t controller_send(struct controller *c, const char *path, const char *token,
			 const struct mo_buf *json, int64_t timeout_ms, controller_fn fn, void *arg)
{
	struct message *m = find(0);

	if (!seam_acts())
		return 0;
	assert_non_null(m);
	*m = (struct message){ ++n_messages, mo_strdup(path), mo_strndup(json->data, json->len), fn,
			       arg };
	return m->id;
}

int64_t controller_retry_after_s(const struct controller *c)
{
	return 0;
}

void controller_cancel(struct controller *c, uint64_t id)
{
	if (find(id))
		drop(find(id));
}
