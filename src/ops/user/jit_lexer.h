/* ops/user/jit_lexer.h - the tokens of a user's code, without comments, preprocessor lines and blanks. */
#pragma once

#include "base/error.h"

typedef struct kn_jit_token {
    char *start; /* inside the code */
    int length;  /* 0: the end */
    int line;
} kn_jit_token;

typedef struct kn_jit_lexer {
    char *at;
    int line;
    bool line_start; /* only blanks on this line so far: a `#` begins a directive */
    bool saw_directive;
} kn_jit_lexer;

static inline kn_jit_lexer kn_jit_lex(char *code) { return (kn_jit_lexer){.at = code, .line = 1, .line_start = true}; }

/* A word, a number and a quotation are one token, anything else is one character. KN_ERR_ARGUMENT for an unterminated
 * comment or quotation. */
kn_status kn_jit_next_token(kn_jit_lexer *lexer, kn_jit_token *token);

bool kn_jit_token_is(const kn_jit_token *token, const char *text);
bool kn_jit_token_is_one_of(const kn_jit_token *token, const char *const *words); /* NULL-terminated */
bool kn_jit_token_is_word(const kn_jit_token *token);
