/* data/text/tokenizer_load.c - reads a tokenizer.json of Hugging Face's tokenizers, which is untrusted input. */
#include <cjson/cJSON.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/threads.h"
#include "base/utf8.h"
#include "data/text/tokenizer.h"

#define LARGEST_FILE ((size_t)256 << 20)

/* "'PATH': "PART": expected ..." */
typedef struct reader {
    const char *path;
    kn_tokenizer *tokenizer;
    bool has_byte_level;
} reader;

static kn_status refuse(const reader *r, const char *format, ...) KN_PRINTF(2, 3);
static kn_status refuse(const reader *r, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return kn_fail(KN_ERR_FORMAT, "'%s': %s", r->path, text);
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

static const cJSON *member(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

/* Absent and null are the same. */
static const cJSON *value_of(const cJSON *object, const char *name)
{
    const cJSON *value = member(object, name);
    return value && !cJSON_IsNull(value) ? value : NULL;
}

static const char *string_of(const cJSON *object, const char *name)
{
    const cJSON *value = value_of(object, name);
    return cJSON_IsString(value) ? value->valuestring : "";
}

static bool is_true(const cJSON *object, const char *name) { return cJSON_IsTrue(member(object, name)); }

static bool whole_number(const cJSON *item, int64_t *value)
{
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble < KN_MAX_TOKENS))
        return false;
    *value = (int64_t)item->valuedouble;
    return (double)*value == item->valuedouble;
}

/* Does a string have a NUL? After a backslash that is escaped itself, the same letters are text. */
static bool has_escaped_nul(const char *text)
{
    for (const char *at = strchr(text, '\\'); at && at[1]; at = strchr(at + 2, '\\'))
        if (strncmp(at + 1, "u0000", 5) == 0)
            return true;
    return false;
}

/* cJSON would cut a string at a NUL. */
static kn_status parse(cJSON **json, const reader *r, const char *text, size_t size)
{
    static kn_mutex parsing = KN_MUTEX_INIT; /* cJSON keeps its last error in a global variable */
    const char *end = text;
    size_t bad;
    if (!kn_is_utf8(text, size, &bad))
        return refuse(r, "at byte %zu: expected UTF-8", bad);
    if (memchr(text, '\0', size) || has_escaped_nul(text))
        return refuse(r, "expected no NUL characters");
    kn_lock(&parsing);
    *json = cJSON_ParseWithLengthOpts(text, size, &end, 0);
    kn_unlock(&parsing);
    return *json ? KN_OK : refuse(r, "at byte %zu: expected JSON", (size_t)(end - text));
}

/* --- the model: vocabulary and merges ----------------------------------------------------------------------------- */

static kn_status read_vocabulary(const reader *r, const cJSON *vocabulary)
{
    if (!cJSON_IsObject(vocabulary))
        return refuse(r, "\"model\": expected \"vocab\", an object of tokens and ids");
    for (const cJSON *item = vocabulary->child; item; item = item->next) {
        int64_t id;
        if (!whole_number(item, &id) || item->string[0] == '\0')
            return refuse(r, "\"vocab\": the id of \"%.100s\" must be a whole number from 0 to %d", item->string,
                          KN_MAX_TOKENS - 1);
        kn_status status = kn_tokenizer_add(r->tokenizer, item->string, id, false);
        if (status != KN_OK) {
            kn_error_prefix("'%s': \"vocab\"", r->path);
            return status;
        }
    }
    return KN_OK;
}

/* A merge is "left right" or ["left", "right"]. */
static kn_status read_merge(const reader *r, const cJSON *item, int32_t rank)
{
    const cJSON *first = cJSON_IsArray(item) ? item->child : NULL, *second = first ? first->next : NULL;
    const char *space = cJSON_IsString(item) ? strchr(item->valuestring, ' ') : NULL;
    if (!space && !(cJSON_IsString(first) && cJSON_IsString(second) && !second->next))
        return refuse(r, "\"merges\": merge %d must be two tokens, with a space between them or as a list", rank);
    const size_t left = space ? (size_t)(space - item->valuestring) : strlen(first->valuestring);
    const char *right = space ? space + 1 : second->valuestring;
    char *joined = kn_malloc(left + strlen(right) + 1);
    if (!joined)
        return KN_ERR_MEMORY;
    memcpy(joined, space ? item->valuestring : first->valuestring, left);
    joined[left] = '\0';
    const int64_t left_id = kn_tokenizer_id(r->tokenizer, joined), right_id = kn_tokenizer_id(r->tokenizer, right);
    memcpy(joined + left, right, strlen(right) + 1);
    const int64_t id = kn_tokenizer_id(r->tokenizer, joined);
    kn_free(joined);
    if (left_id < 0 || right_id < 0 || id < 0)
        return refuse(r, "\"merges\": the tokens of merge %d, and the two together, must be in \"vocab\"", rank);
    r->tokenizer->merges[rank] = (kn_merge){(int32_t)left_id, (int32_t)right_id, (int32_t)id, rank};
    return KN_OK;
}

static kn_status read_merges(const reader *r, const cJSON *merges)
{
    if (!cJSON_IsArray(merges))
        return refuse(r, "\"model\": expected \"merges\", a list");
    const int count = cJSON_GetArraySize(merges);
    if (!(r->tokenizer->merges = kn_calloc((size_t)count, sizeof *r->tokenizer->merges)))
        return KN_ERR_MEMORY;
    for (const cJSON *item = merges->child; item; item = item->next)
        KN_TRY(read_merge(r, item, (int32_t)r->tokenizer->num_merges++));
    return KN_OK;
}

static kn_status read_model(const reader *r, const cJSON *model)
{
    /* Without a type it is a BPE if it has merges: files of earlier versions. */
    const char *type = string_of(model, "type"), *unknown = string_of(model, "unk_token");
    if (strcmp(type, "BPE") != 0 && !(type[0] == '\0' && member(model, "merges")))
        return refuse(r, "the model's type is \"%.50s\"; only BPE is supported", type);
    static const char *const without[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    for (int i = 0; i < 2; i++)
        if (string_of(model, without[i])[0] != '\0')
            return refuse(r, "\"model\": \"%s\" is not supported", without[i]);
    if (is_true(model, "byte_fallback"))
        return refuse(r, "\"model\": \"byte_fallback\" is not supported: only byte-level BPE is");
    const cJSON *dropout = value_of(model, "dropout");
    if (dropout && dropout->valuedouble != 0)
        return refuse(r, "\"model\": \"dropout\" is not supported");
    KN_TRY(read_vocabulary(r, member(model, "vocab")));
    KN_TRY(read_merges(r, member(model, "merges")));
    r->tokenizer->ignore_merges = is_true(model, "ignore_merges");
    if (unknown[0] != '\0' && (r->tokenizer->unknown = (int32_t)kn_tokenizer_id(r->tokenizer, unknown)) < 0)
        return refuse(r, "\"model\": \"unk_token\" must be in \"vocab\"");
    return KN_OK;
}

/* --- the split into words ----------------------------------------------------------------------------------------- */

static kn_status read_byte_level(reader *r, const cJSON *step)
{
    const cJSON *use_regex = member(step, "use_regex");
    r->has_byte_level = true;
    r->tokenizer->add_prefix_space = is_true(step, "add_prefix_space");
    if (!use_regex || cJSON_IsTrue(use_regex)) {
        if (r->tokenizer->split != KN_SPLIT_NONE)
            return refuse(r, "\"pre_tokenizer\": \"ByteLevel\" must not split a second time");
        r->tokenizer->split = KN_SPLIT_GPT2;
    }
    return KN_OK;
}

static kn_status read_split(reader *r, const cJSON *step)
{
    const char *pattern = string_of(member(step, "pattern"), "Regex");
    if (strcmp(string_of(step, "behavior"), "Isolated") != 0 || is_true(step, "invert"))
        return refuse(r, "\"pre_tokenizer\": \"Split\" must have the behavior \"Isolated\"");
    if (r->tokenizer->split != KN_SPLIT_NONE || r->has_byte_level)
        return refuse(r, "\"pre_tokenizer\": only one \"Split\", before \"ByteLevel\", is supported");
    if (!kn_split_find(&r->tokenizer->split, pattern))
        return refuse(r,
                      "\"pre_tokenizer\": the expression \"%.200s\" is not supported; those of GPT-2, Llama 3 and "
                      "Qwen are",
                      pattern);
    return KN_OK;
}

static kn_status read_step(reader *r, const cJSON *step)
{
    const char *type = string_of(step, "type");
    if (strcmp(type, "ByteLevel") == 0)
        return read_byte_level(r, step);
    if (strcmp(type, "Split") == 0)
        return read_split(r, step);
    return refuse(r, "\"pre_tokenizer\": the type \"%.50s\" is not supported; \"ByteLevel\" and \"Split\" are", type);
}

static kn_status read_pre_tokenizer(reader *r, const cJSON *step)
{
    if (strcmp(string_of(step, "type"), "Sequence") != 0)
        KN_TRY(read_step(r, step));
    else
        for (step = cJSON_IsArray(member(step, "pretokenizers")) ? member(step, "pretokenizers")->child : NULL; step;
             step = step->next)
            KN_TRY(read_step(r, step));
    return r->has_byte_level ? KN_OK
                             : refuse(r, "\"pre_tokenizer\": expected \"ByteLevel\": only byte-level BPE is supported");
}

/* --- added tokens ------------------------------------------------------------------------------------------------- */

static kn_status read_added(const reader *r, const cJSON *item)
{
    int64_t id;
    const char *content = string_of(item, "content");
    if (content[0] == '\0' || !whole_number(member(item, "id"), &id))
        return refuse(r, "\"added_tokens\": each needs an \"id\", a whole number, and a \"content\"");
    if (is_true(item, "single_word"))
        return refuse(r, "\"added_tokens\": \"single_word\" of \"%.100s\" is not supported", content);
    if (kn_tokenizer_id(r->tokenizer, content) != id) {
        kn_status status = kn_tokenizer_add(r->tokenizer, content, id, true);
        if (status != KN_OK) {
            kn_error_prefix("'%s': \"added_tokens\"", r->path);
            return status;
        }
    }
    kn_token *token = &r->tokenizer->tokens[id];
    token->added = true;
    token->length = strlen(token->text); /* it is in the vocabulary, too: it stands for itself */
    memcpy(token->bytes, token->text, token->length);
    token->special = is_true(item, "special");
    token->lstrip = is_true(item, "lstrip");
    token->rstrip = is_true(item, "rstrip");
    token->normalized = is_true(item, "normalized");
    return KN_OK;
}

static kn_status read_all(reader *r, const cJSON *json)
{
    const cJSON *added = value_of(json, "added_tokens");
    if (!cJSON_IsObject(json) || !cJSON_IsObject(member(json, "model")))
        return refuse(r, "expected an object with a \"model\"");
    if (value_of(json, "normalizer"))
        return refuse(r, "\"normalizer\": \"%.50s\" is not supported", string_of(member(json, "normalizer"), "type"));
    KN_TRY(read_model(r, member(json, "model")));
    KN_TRY(read_pre_tokenizer(r, member(json, "pre_tokenizer")));
    if (added && !cJSON_IsArray(added))
        return refuse(r, "expected \"added_tokens\" to be a list");
    for (const cJSON *item = added ? added->child : NULL; item; item = item->next)
        KN_TRY(read_added(r, item));
    return kn_tokenizer_finish(r->tokenizer);
}

static kn_status load(kn_tokenizer **made, const char *path)
{
    reader r = {.path = path};
    char *text = NULL;
    size_t size;
    cJSON *json = NULL;
    if (!path)
        return kn_fail_argument_null("kn_tokenizer_load", "path");
    KN_TRY(kn_file_read_all(&text, &size, path, LARGEST_FILE));
    kn_status status = parse(&json, &r, text, size);
    kn_free(text);
    if (status == KN_OK)
        status = kn_tokenizer_new(&r.tokenizer);
    if (status == KN_OK)
        status = read_all(&r, json);
    cJSON_Delete(json);
    if (status == KN_OK)
        *made = r.tokenizer;
    else
        kn_tokenizer_free(r.tokenizer);
    return status;
}

kn_tokenizer *kn_tokenizer_load(const char *path)
{
    kn_tokenizer *made = NULL;
    return load(&made, path) == KN_OK ? made : kn_error_make_sticky();
}
