/* support/full.h - KOINE_TEST_FULL=1, which `sh tests/run.sh --full` sets: runs all cases of a test, including slow
 * ones that differ from the others only in sizes. */
#pragma once

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline bool test_full(void)
{
    const char *value = getenv("KOINE_TEST_FULL");
    return value && strcmp(value, "1") == 0;
}
