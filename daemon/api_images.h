/* /v1/images: images that nodes have, that they are to have, and that go. */
#pragma once
#include "daemon/manager.h"

struct http_request;
extern const struct mo_desc image_pull_body_desc;
void api_images_list(void *arg, struct http_request *r);
void api_images_remove(void *arg, struct http_request *r);
void api_images_pull(void *arg, struct http_request *r);
void api_images_pull_get(void *arg, struct http_request *r);
