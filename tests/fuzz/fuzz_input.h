/* fuzz_input.h - libFuzzer's bytes as a file, since the parsers read files. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* libFuzzer calls it with each input. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Writes the bytes to this process's own temporary file (in memory where /dev/shm exists) and returns its path. */
const char *fuzz_input_file(const uint8_t *data, size_t size);

/* The call must have failed with a message, which is cleared; stops the fuzzer otherwise. */
void fuzz_expect_message(void);
