/* What every cmocka program includes first; cmocka 1.1.5 wants these headers before its own. */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
