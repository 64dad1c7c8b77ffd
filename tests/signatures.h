/* The shipped signatures of failures, for cores of tests: made once, never freed. */
#pragma once
struct classifier;

const struct classifier *test_signatures(void);
