/* golden.c - reading golden files. */
#include "support/golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

kn_tensor_file *golden_open(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/tests/golden/%s.safetensors", KOINE_SOURCE_DIR, name);
    kn_tensor_file *file = NULL;
    if ((file = kn_load_safetensors(path)) != NULL)
        return file;
    fprintf(stderr, "%s: %s\n", path, kn_error_message());
    return NULL;
}

char *golden_words(const kn_tensor_file *file, const char *key)
{
    const char *text = kn_tensor_file_metadata(file, key);
    size_t length = text ? strlen(text) : 0;
    char *words = calloc(length + 2, 1);
    for (size_t i = 0; words && i < length; i++)
        words[i] = text[i] == ' ' ? '\0' : text[i];
    return words;
}

golden_case golden_case_of(const kn_tensor_file *file, const char *name)
{
    const char *text = kn_tensor_file_metadata(file, name);
    return (golden_case){file, name, text ? text : ""};
}

bool golden_text(const golden_case *c, const char *key, char *buffer, size_t size)
{
    size_t length = strlen(key);
    for (const char *word = c->text; word; word = strchr(word, ' ')) {
        word += *word == ' ';
        if (strncmp(word, key, length) == 0 && word[length] == '=') {
            snprintf(buffer, size, "%.*s", (int)strcspn(word + length + 1, " "), word + length + 1);
            return true;
        }
    }
    return false;
}

double golden_number(const golden_case *c, const char *key, double absent)
{
    char text[64];
    return golden_text(c, key, text, sizeof text) ? strtod(text, NULL) : absent;
}

int64_t golden_whole(const golden_case *c, const char *key, int64_t absent)
{
    char text[64];
    return golden_text(c, key, text, sizeof text) ? strtoll(text, NULL, 10) : absent;
}

int golden_list(const golden_case *c, const char *key, int64_t *values, int capacity)
{
    char text[64];
    int count = 0;
    if (!golden_text(c, key, text, sizeof text))
        return 0;
    for (char *at = text; count < capacity; at++) {
        values[count++] = strtoll(at, &at, 10);
        if (*at != ',')
            break;
    }
    return count;
}

kn_tensor *golden_tensor(const golden_case *c, const char *role, int number)
{
    char name[160];
    if (number >= 0)
        snprintf(name, sizeof name, "%s/%s%d", c->name, role, number);
    else
        snprintf(name, sizeof name, "%s/%s", c->name, role);
    return kn_tensor_file_get(c->file, name);
}

kn_tensor *golden_on_device(kn_tensor *host, kn_dtype dtype)
{
    kn_tensor *tensor = kn_dtype_is_floating(kn_dtype_of(host)) ? kn_to_dtype(host, dtype) : host;
    return tensor ? kn_to(tensor, kn_device_current()) : NULL;
}
