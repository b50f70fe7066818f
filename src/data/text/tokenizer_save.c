/* data/text/tokenizer_save.c - writes a tokenizer.json that Hugging Face's tokenizers reads. */
#include "base/error.h"
#include "base/files.h"
#include "data/text/tokenizer.h"

/* Appends `value` as a JSON string, which may be UTF-8. */
static void append_string(kn_text *text, const char *value)
{
    kn_text_append(text, "\"");
    for (; *value; value++) {
        const char c = *value;
        if (c == '"' || c == '\\')
            kn_text_format(text, "\\%c", c);
        else if ((unsigned char)c < ' ')
            kn_text_format(text, "\\u%04x", (unsigned)c);
        else
            kn_text_append_bytes(text, &c, 1);
    }
    kn_text_append(text, "\"");
}

static void append_flag(kn_text *text, const char *name, bool value)
{
    kn_text_format(text, ", \"%s\": %s", name, value ? "true" : "false");
}

static void append_added(kn_text *text, const kn_tokenizer *tokenizer)
{
    kn_text_append(text, "  \"added_tokens\": [");
    for (int i = 0; i < tokenizer->num_added; i++) {
        const kn_token *token = &tokenizer->tokens[tokenizer->added[i]];
        kn_text_format(text, "%s\n    {\"id\": %d, \"content\": ", i > 0 ? "," : "", tokenizer->added[i]);
        append_string(text, token->text);
        append_flag(text, "single_word", false);
        append_flag(text, "lstrip", token->lstrip);
        append_flag(text, "rstrip", token->rstrip);
        append_flag(text, "normalized", token->normalized);
        append_flag(text, "special", token->special);
        kn_text_append(text, "}");
    }
    kn_text_append(text, tokenizer->num_added > 0 ? "\n  ],\n" : "],\n");
}

static void append_pre_tokenizer(kn_text *text, const kn_tokenizer *tokenizer)
{
    const bool own = tokenizer->split == KN_SPLIT_GPT2, other = tokenizer->split > KN_SPLIT_GPT2;
    kn_text_append(text, "  \"pre_tokenizer\": ");
    if (other) {
        kn_text_append(text,
                       "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", \"pattern\": {\"Regex\": ");
        append_string(text, kn_split_pattern(tokenizer->split));
        kn_text_append(text, "}, \"behavior\": \"Isolated\", \"invert\": false}, ");
    }
    kn_text_append(text, "{\"type\": \"ByteLevel\"");
    append_flag(text, "add_prefix_space", tokenizer->add_prefix_space);
    append_flag(text, "trim_offsets", true);
    append_flag(text, "use_regex", own);
    kn_text_append(text, other ? "}]},\n" : "},\n");
}

static void append_model(kn_text *text, const kn_tokenizer *tokenizer)
{
    kn_text_append(text, "  \"model\": {\n    \"type\": \"BPE\", \"dropout\": null, \"unk_token\": ");
    if (tokenizer->unknown >= 0)
        append_string(text, tokenizer->tokens[tokenizer->unknown].text);
    else
        kn_text_append(text, "null");
    kn_text_append(text, ", \"continuing_subword_prefix\": null, \"end_of_word_suffix\": null, \"fuse_unk\": false");
    append_flag(text, "byte_fallback", false);
    append_flag(text, "ignore_merges", tokenizer->ignore_merges);
    kn_text_append(text, ",\n    \"vocab\": {");
    bool first = true;
    for (int64_t id = 0; id < tokenizer->count; id++) {
        if (!tokenizer->tokens[id].text)
            continue;
        kn_text_append(text, first ? "\n      " : ",\n      ");
        append_string(text, tokenizer->tokens[id].text);
        kn_text_format(text, ": %lld", (long long)id);
        first = false;
    }
    kn_text_append(text, "\n    },\n    \"merges\": [");
    for (int64_t i = 0; i < tokenizer->num_merges; i++) {
        kn_text_append(text, i > 0 ? ",\n      [" : "\n      [");
        append_string(text, tokenizer->tokens[tokenizer->merges[i].left].text);
        kn_text_append(text, ", ");
        append_string(text, tokenizer->tokens[tokenizer->merges[i].right].text);
        kn_text_append(text, "]");
    }
    kn_text_append(text, "\n    ]\n  }\n");
}

kn_status kn_tokenizer_save(const kn_tokenizer *tokenizer, const char *path)
{
    kn_text text = {0};
    if (!tokenizer || !path)
        return kn_fail_argument_null("kn_tokenizer_save", tokenizer ? "path" : "tokenizer");
    kn_text_append(&text, "{\n  \"version\": \"1.0\", \"truncation\": null, \"padding\": null,\n");
    append_added(&text, tokenizer);
    kn_text_append(&text, "  \"normalizer\": null,\n");
    append_pre_tokenizer(&text, tokenizer);
    kn_text_append(&text, "  \"post_processor\": null,\n");
    kn_text_append(&text,
                   "  \"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true, \"trim_offsets\": true, "
                   "\"use_regex\": true},\n");
    append_model(&text, tokenizer);
    kn_text_append(&text, "}\n");
    char *json = kn_text_finish(&text);
    if (!json)
        return KN_ERR_MEMORY;
    kn_status status = kn_file_save_text(path, json);
    kn_free(json);
    return status;
}
