/* base/plain_numbers.h - numbers with a decimal point, whatever the program's locale: to the end of the enclosing block
 * printf and strtod of the calling thread write and read them as in C. */
#pragma once

#include <koine/common.h>
#include <locale.h>

typedef struct kn_plain_numbers {
    locale_t plain, before; /* plain 0: out of memory, and the locale is as before */
} kn_plain_numbers;

static inline kn_plain_numbers kn_plain_numbers_enter(void)
{
    const locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    return (kn_plain_numbers){plain, uselocale(plain)};
}

static inline void kn_plain_numbers_leave(kn_plain_numbers *numbers)
{
    uselocale(numbers->before);
    if (numbers->plain != (locale_t)0)
        freelocale(numbers->plain);
}

#define KN_PLAIN_NUMBERS KN_GUARD(kn_plain_numbers, kn_plain_numbers_, kn_plain_numbers_enter(), kn_plain_numbers_leave)
