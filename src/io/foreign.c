/* io/foreign.c - see io/foreign.h. Pickles are never unpacked: a pickle is a program, which loading would run. */
#include "io/foreign.h"

#include <string.h>

#define SAVE_IT_AS                                                                                                     \
    "in PyTorch, safetensors.torch.save_file(torch.load(PATH, weights_only=True), OTHER) saves a state dict so that "  \
    "Koine can load it"

static bool contains(const unsigned char *bytes, size_t count, const char *text)
{
    const size_t length = strlen(text);
    for (size_t i = 0; i + length <= count; i++)
        if (memcmp(bytes + i, text, length) == 0)
            return true;
    return false;
}

static bool begins(const unsigned char *bytes, size_t count, const char *text, size_t length)
{
    return count >= length && memcmp(bytes, text, length) == 0;
}

/* A zip archive begins with the header of its first file: NAME/data.pkl since PyTorch 1.6, NAME/data/0 if TorchScript
 * wrote it. Older files are a sequence of pickles, the first of which is the number 0x1950a86a20f9469cfc6c. */
const char *kn_foreign_format(const unsigned char *bytes, size_t count)
{
    if (count > 8 && bytes[8] == '{') /* a safetensors file whose header length looks like one of these */
        return NULL;
    const bool zip = begins(bytes, count, "PK\x03\x04", 4), pickle = count >= 3 && bytes[0] == 0x80 && bytes[1] <= 5;
    if (zip && (contains(bytes, count, "/data.pkl") || contains(bytes, count, "/data/") ||
                contains(bytes, count, "/version") || contains(bytes, count, "/.format_version")))
        return "a PyTorch pickle, not a tensor file; " SAVE_IT_AS;
    if (zip && contains(bytes, count, ".npy"))
        return "a NumPy archive (.npz), not a tensor file; numpy.save writes single arrays as .npy "
               "files, "
               "which can be loaded here";
    if (pickle && begins(bytes + 2, count - 2, "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 12))
        return "a pickle of PyTorch before 1.6, not a tensor file; " SAVE_IT_AS;
    if (pickle && (bytes[2] == 0x95 || contains(bytes, count, "torch")))
        return "a Python pickle, not a tensor file; " SAVE_IT_AS;
    return NULL;
}
