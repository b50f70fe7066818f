/* fuzz_input.h - libFuzzer's bytes as files, since the parsers read files. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* libFuzzer calls it with each input. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* This process's own temporary folder (in memory where /dev/shm exists). */
const char *fuzz_folder(void);

/* Writes a file of that name there. */
void fuzz_write(const char *name, const uint8_t *data, size_t size);

/* Writes the bytes to a file there and returns its path. */
const char *fuzz_input_file(const uint8_t *data, size_t size);

/* The call must have failed with a message, which names the file if one was written, and is cleared; stops the fuzzer
 * otherwise. */
void fuzz_expect_message(void);
