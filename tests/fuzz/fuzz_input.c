/* fuzz_input.c - libFuzzer's bytes as files. */
#include "fuzz_input.h"

#include <dirent.h>
#include <koine/status.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static const char *path_of(const char *name)
{
    static char path[sizeof folder + 256];
    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
    return path;
}

static void remove_folder(void)
{
    DIR *list = opendir(folder);
    for (struct dirent *entry; list && (entry = readdir(list));)
        unlink(path_of(entry->d_name));
    if (list)
        closedir(list);
    rmdir(folder);
}

static void stop(const char *path)
{
    perror(path);
    exit(1);
}

const char *fuzz_folder(void)
{
    if (folder[0])
        return folder;
    snprintf(folder, sizeof folder, "%s/koine-fuzz-%ld", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp",
             (long)getpid());
    if (mkdir(folder, 0700) != 0)
        stop(folder);
    atexit(remove_folder);
    return folder;
}

void fuzz_write(const char *name, const uint8_t *data, size_t size)
{
    const char *path = path_of(name);
    FILE *file = fopen(path, "wb");
    if (!file || (size > 0 && fwrite(data, 1, size, file) != size) || fclose(file) != 0)
        stop(path);
}

const char *fuzz_input_file(const uint8_t *data, size_t size)
{
    fuzz_write("input", data, size);
    return path_of("input");
}

void fuzz_expect_message(void)
{
    const char *message = kn_error_message();
    if (!message[0] || !strstr(message, folder)) {
        fprintf(stderr, "an error that does not name the file: '%s'\n", message);
        abort();
    }
    kn_error_clear();
}
