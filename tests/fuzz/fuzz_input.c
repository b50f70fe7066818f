/* fuzz_input.c - libFuzzer's bytes as a file. */
#include "fuzz_input.h"

#include <koine/status.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[64];

static void remove_file(void) { unlink(path); }

const char *fuzz_input_file(const uint8_t *data, size_t size)
{
    if (!path[0]) {
        snprintf(path, sizeof(path), "%s/koine-fuzz-%ld", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp",
                 (long)getpid());
        atexit(remove_file);
    }
    FILE *file = fopen(path, "wb");
    if (!file || (size > 0 && fwrite(data, 1, size, file) != size) || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
    return path;
}

void fuzz_expect_message(void)
{
    if (!strstr(kn_error_message(), path)) {
        fprintf(stderr, "an error that does not name the file: %s\n", kn_error_message());
        abort();
    }
    kn_error_clear();
}
