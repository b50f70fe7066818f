/* ops/user/jit_lexer.c - splits OpenCL C code into words, numbers, quotations and single characters. */
#include "ops/user/jit_lexer.h"

#include <ctype.h>
#include <string.h>

#include "base/text.h"

bool kn_jit_token_is(const kn_jit_token *t, const char *text)
{
    return t->length == (int)strlen(text) && strncmp(t->start, text, (size_t)t->length) == 0;
}

bool kn_jit_token_is_one_of(const kn_jit_token *t, const char *const *words)
{
    while (*words && !kn_jit_token_is(t, *words))
        words++;
    return *words != NULL;
}

bool kn_jit_token_is_word(const kn_jit_token *t)
{
    return t->length > 0 && (isalpha((unsigned char)*t->start) || *t->start == '_');
}

static void skip_character(kn_jit_lexer *l)
{
    if (*l->at == '\n') {
        l->line++;
        l->line_start = true;
    } else if (!isspace((unsigned char)*l->at)) {
        l->line_start = false;
    }
    l->at++;
}

/* The length of a line continuation (a backslash before a newline) at `at`; else 0. */
static int joint(const char *at)
{
    return at[0] != '\\' ? 0 : at[1] == '\n' ? 2 : at[1] == '\r' && at[2] == '\n' ? 3 : 0;
}

static void skip_joint(kn_jit_lexer *l)
{
    l->at += joint(l->at);
    l->line++;
}

static void skip_line_comment(kn_jit_lexer *l)
{
    while (*l->at && *l->at != '\n') {
        if (joint(l->at))
            skip_joint(l);
        else
            skip_character(l);
    }
}

static kn_status skip_comment(kn_jit_lexer *l)
{
    int line = l->line;
    for (l->at += 2; *l->at && !(l->at[0] == '*' && l->at[1] == '/');)
        skip_character(l);
    if (!*l->at)
        return kn_fail(KN_ERR_ARGUMENT, "the comment that begins in line %d of the code does not end", line);
    l->at += 2;
    return KN_OK;
}

/* A comment inside it may span lines. */
static kn_status skip_directive(kn_jit_lexer *l)
{
    bool quoted = false;
    l->saw_directive = true;
    while (*l->at && *l->at != '\n') {
        quoted = quoted != (*l->at == '"');
        if (joint(l->at))
            skip_joint(l);
        else if (!quoted && l->at[0] == '/' && l->at[1] == '/')
            skip_line_comment(l);
        else if (!quoted && l->at[0] == '/' && l->at[1] == '*')
            KN_TRY(skip_comment(l));
        else
            skip_character(l);
    }
    return KN_OK;
}

/* Blanks, comments and preprocessor lines. */
static kn_status skip_space(kn_jit_lexer *l)
{
    for (;;) {
        if (isspace((unsigned char)*l->at))
            skip_character(l);
        else if (joint(l->at))
            skip_joint(l);
        else if (l->at[0] == '/' && l->at[1] == '*')
            KN_TRY(skip_comment(l));
        else if (l->at[0] == '/' && l->at[1] == '/')
            skip_line_comment(l);
        else if (*l->at == '#' && l->line_start)
            KN_TRY(skip_directive(l));
        else
            return KN_OK;
    }
}

/* From the opening quote to after the closing one. */
static kn_status skip_quotation(kn_jit_lexer *l)
{
    const char quote = *l->at++;
    const int line = l->line;
    while (*l->at && *l->at != quote && *l->at != '\n') {
        if (joint(l->at))
            skip_joint(l);
        else
            l->at += *l->at == '\\' && l->at[1] ? 2 : 1;
    }
    if (*l->at != quote)
        return kn_fail(KN_ERR_ARGUMENT, "the quotation in line %d of the code does not end", line);
    l->at++;
    return KN_OK;
}

kn_status kn_jit_next_token(kn_jit_lexer *l, kn_jit_token *t)
{
    KN_TRY(skip_space(l));
    *t = (kn_jit_token){.start = l->at, .line = l->line};
    l->line_start = false;
    const size_t length = kn_identifier_length(l->at);
    if (length > 0) {
        l->at += length;
    } else if (*l->at == '"' || *l->at == '\'') {
        KN_TRY(skip_quotation(l));
    } else if (*l->at) {
        l->at++;
    }
    t->length = (int)(l->at - t->start);
    return KN_OK;
}
