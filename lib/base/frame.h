/* The head of a frame on a road (docs/protocol.md): a connection on which an agent and the
 * controller speak without HTTP, once it was asked for by HTTP. A frame is this head and `length`
 * bytes of JSON. Numbers are big-endian. Pure. */
#pragma once
#include <stdint.h>

#define FRAME_HEAD 12
#define FRAME_PROTOCOL "moe/1" /* of Upgrade: */
#define FRAME_PATH "/v1/agent/road"
/* Frames of a road that are not answered yet, at most. */
#define FRAME_UNDER_WAY_MAX 8

/* What a frame to the controller is about: the last word of the path of a request that is the
 * same. */
enum frame_word { FRAME_HELLO = 1, FRAME_SYNC, FRAME_NEWS, FRAME_ANSWER };
struct frame {
	uint32_t length; /* of the JSON behind the head */
	uint32_t id;     /* given by who asks, the same in the answer */
	/* to the controller: enum frame_word; from it: the status, as of HTTP */
	uint16_t code;
	uint16_t after_s; /* of an answer: Retry-After; 0: none */
};
void frame_write(const struct frame *f, char ret[static FRAME_HEAD]);
void frame_read(const char head[static FRAME_HEAD], struct frame *ret);
