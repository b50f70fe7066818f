/* common/text_files.c - reads files and folders; prints what may be no text. */
#include "common/text_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Appends a file to *text. */
static bool append_file(char **text, size_t *size, const char *path)
{
    FILE *file = fopen(path, "rb");
    bool done = false;
    while (file != NULL) {
        char *larger = realloc(*text, *size + 65537);
        if (larger == NULL)
            break;
        *text = larger;
        size_t got = fread(*text + *size, 1, 65536, file);
        *size += got;
        (*text)[*size] = '\0';
        done = got == 0 && !ferror(file);
        if (got == 0)
            break;
    }
    if (file != NULL)
        fclose(file);
    return done;
}

static bool append_folder(char **text, size_t *size, const char *path)
{
    struct dirent **names;
    int count = scandir(path, &names, NULL, alphasort);
    bool done = count >= 0;
    for (int i = 0; i < count; i++) {
        char file[4096];
        struct stat status;
        int length = snprintf(file, sizeof file, "%s/%s", path, names[i]->d_name);
        if (done && length < (int)sizeof file && lstat(file, &status) == 0 && S_ISREG(status.st_mode))
            done = append_file(text, size, file);
        free(names[i]);
    }
    if (count >= 0)
        free(names);
    return done;
}

char *text_files_read(const char *program, const char *path, size_t *size)
{
    char *text = NULL;
    struct stat status;
    *size = 0;
    errno = 0;
    bool done = stat(path, &status) == 0 &&
                (S_ISDIR(status.st_mode) ? append_folder(&text, size, path) : append_file(&text, size, path));
    if (done && text != NULL && *size > 0)
        return text;
    fprintf(stderr, "%s: '%s' cannot be read: %s\n", program, path, errno != 0 ? strerror(errno) : "there is no text");
    free(text);
    return NULL;
}

void text_print(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)text[i], next = i + 1 < length ? (unsigned char)text[i + 1] : 0;
        const bool is_control = (c < ' ' && c != '\n' && c != '\t') || c == 0x7f || (c == 0xc2 && next < 0xa0);
        putchar(is_control ? '?' : c);
    }
}
