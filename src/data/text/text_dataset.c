/* data/text/text_dataset.c - windows of tokens for language models. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "data/text/tokenizer.h"
#include "io/source.h"

typedef struct token_dataset {
    int64_t length, context, stride;
    int32_t tokens[];
} token_dataset;

static int64_t length(void *self) { return ((const token_dataset *)self)->length; }

static kn_status get(void *self, int64_t index, void *const *fields)
{
    const token_dataset *data = self;
    const int32_t *tokens = data->tokens + index * data->stride;
    int64_t *input = fields[0], *target = fields[1];
    for (int64_t i = 0; i < data->context; i++) {
        input[i] = tokens[i];
        target[i] = tokens[i + 1];
    }
    return KN_OK;
}

/* --- creation ----------------------------------------------------------------------------------------------------- */

static kn_status check(const int64_t *ids, int64_t count, int64_t context, const kn_text_dataset_params *p)
{
    if (!ids && count > 0)
        return kn_fail_argument_null("kn_token_dataset", "ids");
    if (context < 1)
        return kn_fail(KN_ERR_ARGUMENT, "text dataset: the context is %lld tokens; it must be at least 1",
                       (long long)context);
    if (p->stride < 0)
        return kn_fail(KN_ERR_ARGUMENT, "text dataset: the stride is %lld; it must not be negative",
                       (long long)p->stride);
    if (!(p->begin >= 0 && p->begin <= p->end && p->end <= 1))
        return kn_fail(KN_ERR_ARGUMENT, "text dataset: the part from %g to %g must be within 0 and 1, in this order",
                       p->begin, p->end);
    for (int64_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] > INT32_MAX)
            return kn_fail(KN_ERR_ARGUMENT, "text dataset: id %lld is %lld; it must be from 0 to %d", (long long)i,
                           (long long)ids[i], INT32_MAX);
    return KN_OK;
}

static kn_status make(kn_dataset **made, const int64_t *ids, int64_t count, int64_t context,
                      const kn_text_dataset_params *p)
{
    static const kn_dataset_functions functions = {.length = length, .get = get, .destroy = kn_free};
    KN_TRY(check(ids, count, context, p));
    const int64_t first = (int64_t)(p->begin * (double)count), tokens = (int64_t)(p->end * (double)count) - first;
    if (tokens <= context)
        return kn_fail(KN_ERR_ARGUMENT,
                       "text dataset: %lld tokens are too few for a context of %lld, which needs one more",
                       (long long)tokens, (long long)context);
    token_dataset *data = kn_malloc(sizeof *data + (size_t)tokens * sizeof data->tokens[0]);
    if (!data)
        return KN_ERR_MEMORY;
    const int64_t stride = p->stride > 0 ? p->stride : context;
    *data = (token_dataset){(tokens - context - 1) / stride + 1, context, stride};
    for (int64_t i = 0; i < tokens; i++)
        data->tokens[i] = (int32_t)ids[first + i];
    return kn_dataset_make(
        made, &functions, data,
        KN_FIELDS({.dtype = KN_I64, .ndim = 1, .shape = {context}}, {.dtype = KN_I64, .ndim = 1, .shape = {context}}));
}

kn_text_dataset_params kn_text_dataset_params_init(void) { return (kn_text_dataset_params){KN_TEXT_DATASET_DEFAULTS}; }

kn_dataset *kn_token_dataset_with(const int64_t *ids, int64_t count, int64_t context,
                                  const kn_text_dataset_params *params)
{
    const kn_text_dataset_params *p = params ? params : &(kn_text_dataset_params){KN_TEXT_DATASET_DEFAULTS};
    kn_dataset *made = NULL;
    return make(&made, ids, count, context, p) == KN_OK ? made : kn_error_make_sticky();
}

static kn_status make_of_file(kn_dataset **made, const char *path, const kn_tokenizer *tokenizer, int64_t context,
                              const kn_text_dataset_params *p)
{
    char *text = NULL;
    size_t size;
    int64_t *ids = NULL, count;
    if (!path || !tokenizer)
        return kn_fail_argument_null("kn_text_dataset", path ? "tokenizer" : "path");
    kn_status status = kn_source_read_file(&text, &size, path);
    if (status == KN_OK)
        status = kn_tokenizer_encode(tokenizer, text, size, &ids, &count);
    kn_free(text);
    if (status == KN_OK && (status = make(made, ids, count, context, p)) != KN_OK)
        kn_error_prefix("'%s'", path);
    kn_free(ids);
    return status;
}

kn_dataset *kn_text_dataset_with(const char *path, const kn_tokenizer *tokenizer, int64_t context,
                                 const kn_text_dataset_params *params)
{
    const kn_text_dataset_params *p = params ? params : &(kn_text_dataset_params){KN_TEXT_DATASET_DEFAULTS};
    kn_dataset *made = NULL;
    return make_of_file(&made, path, tokenizer, context, p) == KN_OK ? made : kn_error_make_sticky();
}
